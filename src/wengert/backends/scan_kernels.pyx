# cython: boundscheck=False, wraparound=False
"""Kernels of cumulative products and of their gradient, one pass over the elements each."""
cimport numpy as cnp
from libc.stdint cimport int64_t

from numpy import isnan

from ..core.array_checks cimport empty_like, same_dims
from ..core.pool cimport split
from .kernels cimport is_plain, known, span

cnp.import_array()

cdef enum:
    PART = 32768       # elements that a thread takes at a time
    STRIP = 128        # columns that are gone down together

ctypedef fused real:
    float
    double


cdef struct Scan:
    # Blocks of `count` rows of `columns` elements; threads take strips of columns of blocks.
    const void* x
    const void* g
    const void* y
    void* out
    int64_t blocks, count, columns, strips, per_part
    bint is_double


cdef void products(
    const real* x, real* out, int64_t count, int64_t columns, int64_t width
) noexcept nogil:
    cdef double total[STRIP]
    cdef int64_t i, j
    for j in range(width):
        total[j] = 1
    for i in range(count):
        for j in range(width):
            total[j] *= x[i * columns + j]
            out[i * columns + j] = <real>total[j]


cdef void gradients(
    const real* g, const real* x, const real* y, real* out, int64_t count, int64_t columns,
    int64_t width
) noexcept nogil:
    """Product of all before, times the sum of what comes after; zeros need nothing of their own."""
    cdef double rest[STRIP]
    cdef int64_t i, j
    for j in range(width):
        rest[j] = 0
    for i in range(count - 1, -1, -1):
        for j in range(width):
            if i + 1 < count:
                rest[j] *= x[(i + 1) * columns + j]
            rest[j] += g[i * columns + j]
            out[i * columns + j] = <real>(rest[j] * y[(i - 1) * columns + j] if i else rest[j])


cdef void strip(Scan* job, int64_t at, int64_t width, real* kind) noexcept nogil:
    """The work on one strip that begins at some element; `kind` tells the type of elements alone."""
    if job.g == NULL:
        products[real](
            <const real*>job.x + at, <real*>job.out + at, job.count, job.columns, width)
    else:
        gradients[real](
            <const real*>job.g + at, <const real*>job.x + at, <const real*>job.y + at,
            <real*>job.out + at, job.count, job.columns, width)


cdef void scan_part(void* data, int64_t part) noexcept nogil:
    cdef Scan* job = <Scan*>data
    cdef int64_t unit = part * job.per_part, end = unit + job.per_part, left, at, width
    if end > job.blocks * job.strips:
        end = job.blocks * job.strips
    while unit < end:
        left = unit % job.strips * STRIP
        at = unit // job.strips * job.count * job.columns + left
        width = min(<int64_t>STRIP, job.columns - left)
        if job.is_double:
            strip[double](job, at, width, NULL)
        else:
            strip[float](job, at, width, NULL)
        unit += 1


cdef object scanned(cnp.ndarray x, object dim, object g, object y):
    cdef Scan job
    cdef cnp.ndarray out
    cdef int first, last, i
    cdef int64_t units
    if type(dim) is not int or not span(dim, cnp.PyArray_NDIM(x), &first, &last):
        return None
    job.g = NULL
    if g is not None:
        job.g, job.y = cnp.PyArray_DATA(<cnp.ndarray>g), cnp.PyArray_DATA(<cnp.ndarray>y)
    job.blocks = job.columns = 1
    for i in range(cnp.PyArray_NDIM(x)):
        if i < first:
            job.blocks *= cnp.PyArray_DIM(x, i)
        elif i > first:
            job.columns *= cnp.PyArray_DIM(x, i)
    job.count = cnp.PyArray_DIM(x, first)
    job.strips = (job.columns + STRIP - 1) // STRIP
    job.is_double = cnp.PyArray_TYPE(x) == cnp.NPY_DOUBLE
    out = empty_like(x)
    job.x, job.out = cnp.PyArray_DATA(x), cnp.PyArray_DATA(out)
    job.per_part = max(<int64_t>1, PART // (job.count * min(<int64_t>STRIP, job.columns)))
    units = job.blocks * job.strips
    if units <= job.per_part:
        scan_part(&job, 0)
    else:
        with nogil:
            split(scan_part, &job, (units + job.per_part - 1) // job.per_part)
    return out


cdef object cumprod(tuple v):
    """(self, dim, dtype)"""
    if v[2] is not None or not is_plain(v[0]):
        return None
    return scanned(<cnp.ndarray>v[0], v[1], None, None)


cdef object cumprod_gradient(tuple v):
    """(gradient, self, dim, out)"""
    cdef cnp.ndarray x
    if not is_plain(v[0]) or not is_plain(v[1]) or not is_plain(v[3]):
        return None
    x = <cnp.ndarray>v[1]
    for other in (v[0], v[3]):
        if cnp.PyArray_TYPE(<cnp.ndarray>other) != cnp.PyArray_TYPE(x) or not same_dims(
            <cnp.ndarray>other, x
        ):
            return None
    out = scanned(x, v[2], v[0], v[3])
    if out is not None and isnan(out).any() and not (<object>x).all():
        return None  # NaN does not come past a factor of zero: the rule knows
    return out


known("cumprod", cumprod)
known("cumprod.self", cumprod_gradient)
