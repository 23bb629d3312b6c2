# cython: boundscheck=False
"""Fourier transforms of contiguous arrays along dimensions whose lengths are powers of two, and of
contiguous rows of any length, as convolutions.

The rows or columns of an array are shared out to the pool's threads. What does not suit is declined
with None, and the caller goes through SciPy. `fourier_loops.py` beside this file is the interface
without C.
"""
cimport numpy as cnp
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

from ..core.pool cimport split

cnp.import_array()

cdef extern from *:
    """
    #define REAL double
    #define NAME(x) wengert_double_##x
    #include "fourier.h"
    #undef REAL
    #undef NAME
    #define REAL float
    #define NAME(x) wengert_float_##x
    #include "fourier.h"
    """
    int wengert_double_prepare(int power) noexcept nogil
    int wengert_float_prepare(int power) noexcept nogil
    void wengert_double_complex(
        const double* x, double* y, int power, Py_ssize_t inner, Py_ssize_t begin, Py_ssize_t end,
        bint backward, double scale, double* room) noexcept nogil
    void wengert_float_complex(
        const float* x, float* y, int power, Py_ssize_t inner, Py_ssize_t begin, Py_ssize_t end,
        bint backward, float scale, float* room) noexcept nogil
    void wengert_double_real(
        const double* x, double* y, int power, bint whole, double scale, double* room) noexcept nogil
    void wengert_float_real(
        const float* x, float* y, int power, bint whole, float scale, float* room) noexcept nogil
    void wengert_double_inverse(
        const double* x, double* y, int power, double scale, double* room) noexcept nogil
    void wengert_float_inverse(
        const float* x, float* y, int power, float scale, float* room) noexcept nogil
    void wengert_double_any(
        const double* x, double* y, Py_ssize_t n, int power, int kind, bint backward, double scale,
        const double* table, double* room) noexcept nogil
    void wengert_float_any(
        const float* x, float* y, Py_ssize_t n, int power, int kind, bint backward, float scale,
        const float* table, float* room) noexcept nogil
    int WENGERT_LONGEST, WENGERT_GAP

cdef enum:
    COMPLEX, REAL_TO_HALF, REAL_TO_WHOLE, HALF_TO_REAL
    LARGE = 16384  # elements that one thread takes at least
    ROOM = 8192  # elements of transforms that are computed side by side


cdef struct Job:
    const char* x
    char* y
    int kind, power
    Py_ssize_t outer, inner, blocks, width  # columns are taken in blocks
    Py_ssize_t x_row, y_row, room_size  # in bytes
    Py_ssize_t parts, together
    bint single, backward, failed
    double scale
    const char* table  # of a convolution that is a transform of any length, or NULL
    Py_ssize_t length


cdef int power_of(Py_ssize_t n) noexcept:
    """The binary logarithm of a length, or -1 if it has none that suits."""
    cdef int power = 0
    if n < 2 or n & (n - 1):
        return -1
    while n > 1:
        n >>= 1
        power += 1
    return power if power <= WENGERT_LONGEST else -1


cdef void work(void* data, int64_t part) noexcept nogil:
    cdef Job* job = <Job*>data
    cdef Py_ssize_t i, row, block, begin, end
    cdef const char* x
    cdef char* y
    cdef char* room = <char*>malloc(job.room_size)
    if room == NULL:
        job.failed = True
        return
    for i in range(part * job.together, min((part + 1) * job.together, job.outer * job.blocks)):
        row = i // job.blocks
        x, y = job.x + row * job.x_row, job.y + row * job.y_row
        if job.table != NULL:
            if job.single:
                wengert_float_any(
                    <const float*>x, <float*>y, job.length, job.power, job.kind, job.backward,
                    <float>job.scale, <const float*>job.table, <float*>room)
            else:
                wengert_double_any(
                    <const double*>x, <double*>y, job.length, job.power, job.kind, job.backward,
                    job.scale, <const double*>job.table, <double*>room)
        elif job.kind == COMPLEX:
            block = i % job.blocks
            begin = block * job.width
            end = min(begin + job.width, job.inner)
            if job.single:
                wengert_float_complex(
                    <const float*>x, <float*>y, job.power, job.inner, begin, end, job.backward,
                    <float>job.scale, <float*>room)
            else:
                wengert_double_complex(
                    <const double*>x, <double*>y, job.power, job.inner, begin, end, job.backward,
                    job.scale, <double*>room)
        elif job.kind == HALF_TO_REAL:
            if job.single:
                wengert_float_inverse(
                    <const float*>x, <float*>y, job.power, <float>job.scale, <float*>room)
            else:
                wengert_double_inverse(
                    <const double*>x, <double*>y, job.power, job.scale, <double*>room)
        elif job.single:
            wengert_float_real(
                <const float*>x, <float*>y, job.power, job.kind == REAL_TO_WHOLE,
                <float>job.scale, <float*>room)
        else:
            wengert_double_real(
                <const double*>x, <double*>y, job.power, job.kind == REAL_TO_WHOLE, job.scale,
                <double*>room)
    free(room)


cdef bint perform(Job* job) noexcept:
    """Prepare roots and share the work out; False where there is no memory."""
    cdef Py_ssize_t item = 4 if job.single else 8
    cdef Py_ssize_t length = (<Py_ssize_t>1) << job.power, count = job.outer * job.blocks
    cdef bint whole = job.kind == COMPLEX or job.table != NULL
    cdef int last = job.power if whole else job.power + 2
    if job.single:
        if not wengert_float_prepare(job.power) or not wengert_float_prepare(last):
            return False
    elif not wengert_double_prepare(job.power) or not wengert_double_prepare(last):
        return False
    job.together = max(1, LARGE // (length * job.width))
    job.parts = (count + job.together - 1) // job.together
    job.room_size, job.failed = 4 * (length * job.width * item + WENGERT_GAP), False
    if job.table != NULL:
        job.room_size += 2 * job.length * item
    with nogil:
        split(work, job, job.parts)
    return not job.failed


cdef bint suits(object x, bint is_complex) noexcept:
    cdef int kind
    if not cnp.PyArray_CheckExact(x) or not cnp.PyArray_ISCARRAY_RO(<cnp.ndarray>x):
        return False
    kind = cnp.PyArray_TYPE(<cnp.ndarray>x)
    if is_complex:
        return kind == cnp.NPY_CFLOAT or kind == cnp.NPY_CDOUBLE
    return kind == cnp.NPY_FLOAT or kind == cnp.NPY_DOUBLE


cdef bint along(cnp.ndarray x, cnp.ndarray y, int axis, bint backward, double scale) noexcept:
    """A complex transform of one dimension; `x` and `y` may be one array."""
    cdef Job job
    cdef int i
    cdef Py_ssize_t item
    job.kind, job.power = COMPLEX, power_of(cnp.PyArray_DIM(x, axis))
    job.single = cnp.PyArray_TYPE(x) == cnp.NPY_CFLOAT
    item = 8 if job.single else 16
    job.outer = job.inner = 1
    for i in range(axis):
        job.outer *= cnp.PyArray_DIM(x, i)
    for i in range(axis + 1, cnp.PyArray_NDIM(x)):
        job.inner *= cnp.PyArray_DIM(x, i)
    job.blocks = max(1, min(job.inner, (job.inner << job.power) // ROOM))
    job.width = (job.inner + job.blocks - 1) // job.blocks
    job.blocks = (job.inner + job.width - 1) // job.width
    job.x, job.y = cnp.PyArray_BYTES(x), cnp.PyArray_BYTES(y)
    job.x_row = job.y_row = (job.inner << job.power) * item
    job.backward, job.scale, job.table = backward, scale, NULL
    return perform(&job)


cdef bint rows(cnp.ndarray x, cnp.ndarray y, int kind, Py_ssize_t length, double scale) noexcept:
    """A transform between real and complex rows, of which the real ones have a length."""
    cdef Job job
    cdef int last = cnp.PyArray_NDIM(x) - 1
    job.kind, job.power = kind, power_of(length) - 1
    job.single = cnp.PyArray_TYPE(x) in (cnp.NPY_FLOAT, cnp.NPY_CFLOAT)
    job.outer = cnp.PyArray_SIZE(x) // cnp.PyArray_DIM(x, last)
    job.inner = job.blocks = job.width = 1
    job.x, job.y = cnp.PyArray_BYTES(x), cnp.PyArray_BYTES(y)
    job.x_row = cnp.PyArray_DIM(x, last) * cnp.PyArray_ITEMSIZE(x)
    job.y_row = cnp.PyArray_DIM(y, last) * cnp.PyArray_ITEMSIZE(y)
    job.backward, job.scale, job.table = False, scale, NULL
    return perform(&job)


cdef bint powers(cnp.ndarray x, tuple axes) except -1:
    """Whether dimensions have lengths that suit."""
    cdef int axis
    for axis in axes:
        if power_of(cnp.PyArray_DIM(x, axis)) < 0:
            return False
    return True


def transformed(object x, tuple axes, bint backward, double scale):
    """The transform of complex numbers along dimensions, multiplied by a scale; else None."""
    cdef cnp.ndarray source, out
    cdef Py_ssize_t i
    if not suits(x, True) or not axes or not cnp.PyArray_SIZE(<cnp.ndarray>x):
        return None
    source = <cnp.ndarray>x
    if not powers(source, axes):
        return None
    out = cnp.PyArray_EMPTY(
        cnp.PyArray_NDIM(source), cnp.PyArray_DIMS(source), cnp.PyArray_TYPE(source), 0)
    for i in range(len(axes)):
        if not along(source, out, axes[i], backward, scale if i == 0 else 1):
            return None
        source = out
    return out


def halved(object x, tuple axes, double scale, bint whole):
    """Half of the transform of real numbers, the last dimension the last of `axes`; else None.

    The `whole` transform is that of one dimension.
    """
    cdef cnp.ndarray source, out
    cdef cnp.npy_intp dims[64]
    cdef Py_ssize_t length
    cdef int i, last
    if not suits(x, False) or not axes or not cnp.PyArray_SIZE(<cnp.ndarray>x):
        return None
    source = <cnp.ndarray>x
    last = cnp.PyArray_NDIM(source) - 1
    if axes[-1] != last or (whole and len(axes) > 1) or not powers(source, axes):
        return None
    for i in range(last):
        dims[i] = cnp.PyArray_DIM(source, i)
    length = cnp.PyArray_DIM(source, last)
    if length < 4 or power_of(length) + 1 > WENGERT_LONGEST:
        return None
    dims[last] = length if whole else length // 2 + 1
    out = cnp.PyArray_EMPTY(
        last + 1, dims,
        cnp.NPY_CFLOAT if cnp.PyArray_TYPE(source) == cnp.NPY_FLOAT else cnp.NPY_CDOUBLE, 0)
    if not rows(source, out, REAL_TO_WHOLE if whole else REAL_TO_HALF, length, scale):
        return None
    for axis in axes[:-1]:
        if not along(out, out, axis, False, 1):
            return None
    return out


def restored(object x, tuple axes, Py_ssize_t length, double scale):
    """The real numbers of which half a transform is given, as many in the last dimension as
    `length`, multiplied by a scale; else None."""
    cdef cnp.ndarray source, out
    cdef cnp.npy_intp dims[64]
    cdef int i, last
    if not suits(x, True) or not axes or not cnp.PyArray_SIZE(<cnp.ndarray>x):
        return None
    source = <cnp.ndarray>x
    last = cnp.PyArray_NDIM(source) - 1
    if axes[-1] != last or cnp.PyArray_DIM(source, last) != length // 2 + 1 or length < 4:
        return None
    if power_of(length) < 0 or power_of(length) + 1 > WENGERT_LONGEST or not powers(
        source, axes[:-1]
    ):
        return None
    if len(axes) > 1:
        source = <cnp.ndarray>transformed(source, axes[:-1], True, 1)
        if source is None:
            return None
    for i in range(last):
        dims[i] = cnp.PyArray_DIM(source, i)
    dims[last] = length
    out = cnp.PyArray_EMPTY(
        last + 1, dims,
        cnp.NPY_FLOAT if cnp.PyArray_TYPE(source) == cnp.NPY_CFLOAT else cnp.NPY_DOUBLE, 0)
    return out if rows(source, out, HALF_TO_REAL, length, scale) else None


def convolved(object x, int kind, Py_ssize_t length, bint backward, double scale, object table):
    """The transform of contiguous rows of any `length` by a table of `chirps`; else None.

    Kinds are complex to complex (0), real to half (1), real to whole (2), half to real (3).
    """
    cdef cnp.ndarray source, out, chirps
    cdef cnp.npy_intp dims[64]
    cdef Job job
    cdef int i, last, type_number
    if not suits(x, kind == COMPLEX or kind == HALF_TO_REAL):
        return None
    source, chirps = <cnp.ndarray>x, <cnp.ndarray>table
    last = cnp.PyArray_NDIM(source) - 1
    job.kind, job.length, job.single = kind, length, cnp.PyArray_TYPE(chirps) == cnp.NPY_FLOAT
    job.power = power_of((cnp.PyArray_SIZE(chirps) - 2 * length) // 2)
    if job.power < 0:
        return None
    for i in range(last):
        dims[i] = cnp.PyArray_DIM(source, i)
    dims[last] = length // 2 + 1 if kind == REAL_TO_HALF else length
    type_number = cnp.NPY_CFLOAT if job.single else cnp.NPY_CDOUBLE
    if kind == HALF_TO_REAL:
        type_number = cnp.NPY_FLOAT if job.single else cnp.NPY_DOUBLE
    out = cnp.PyArray_EMPTY(last + 1, dims, type_number, 0)
    job.outer = cnp.PyArray_SIZE(source) // cnp.PyArray_DIM(source, last)
    job.inner = job.blocks = job.width = 1
    job.x, job.y = cnp.PyArray_BYTES(source), cnp.PyArray_BYTES(out)
    job.x_row = cnp.PyArray_DIM(source, last) * cnp.PyArray_ITEMSIZE(source)
    job.y_row = dims[last] * cnp.PyArray_ITEMSIZE(out)
    job.backward, job.scale, job.table = backward, scale, cnp.PyArray_BYTES(chirps)
    return out if perform(&job) else None
