# cython: boundscheck=False
"""Small real matrices, many of them: solutions, inverses, determinants, factors, spectra.

LAPACK is called once for each matrix, which takes longer than computing with a small one. What is
not small or not real is declined with None, and the caller goes through NumPy. `systems.py` beside
this file is the interface without C.
"""
cimport numpy as cnp
from libc.stdint cimport int64_t

from ..core.pool cimport split

cnp.import_array()

cdef extern from *:
    """
    #include <float.h>
    #define REAL double
    #define NAME(x) wengert_double_##x
    #define wengert_double_size fabs
    #define wengert_double_log log
    #define wengert_double_root sqrt
    #define wengert_double_distance hypot
    #define wengert_double_epsilon DBL_EPSILON
    #define wengert_double_least DBL_MIN
    #define wengert_double_most 1e100
    #include "systems.h"
    #include "spectra.h"
    #undef REAL
    #undef NAME
    #define REAL float
    #define NAME(x) wengert_float_##x
    #define wengert_float_size fabsf
    #define wengert_float_log logf
    #define wengert_float_root sqrtf
    #define wengert_float_distance hypotf
    #define wengert_float_epsilon FLT_EPSILON
    #define wengert_float_least FLT_MIN
    #define wengert_float_most 1e12f
    #include "systems.h"
    #include "spectra.h"
    """
    int wengert_double_solve(
        const void* a, const Py_ssize_t* a_steps, const void* b, const Py_ssize_t* b_steps,
        void* out, Py_ssize_t count, Py_ssize_t n, Py_ssize_t columns) noexcept nogil
    int wengert_float_solve(
        const void* a, const Py_ssize_t* a_steps, const void* b, const Py_ssize_t* b_steps,
        void* out, Py_ssize_t count, Py_ssize_t n, Py_ssize_t columns) noexcept nogil
    void wengert_double_determinants(
        const void* a, const Py_ssize_t* steps, void* out, void* logs, Py_ssize_t count,
        Py_ssize_t n) noexcept nogil
    void wengert_float_determinants(
        const void* a, const Py_ssize_t* steps, void* out, void* logs, Py_ssize_t count,
        Py_ssize_t n) noexcept nogil
    int wengert_double_cholesky(
        const void* a, const Py_ssize_t* steps, void* out, Py_ssize_t count,
        Py_ssize_t n) noexcept nogil
    int wengert_float_cholesky(
        const void* a, const Py_ssize_t* steps, void* out, Py_ssize_t count,
        Py_ssize_t n) noexcept nogil
    void wengert_double_factor(
        const void* a, const Py_ssize_t* steps, void* out, int* rows, int* failed,
        Py_ssize_t count, Py_ssize_t n) noexcept nogil
    void wengert_float_factor(
        const void* a, const Py_ssize_t* steps, void* out, int* rows, int* failed,
        Py_ssize_t count, Py_ssize_t n) noexcept nogil
    int wengert_double_spectrum(
        const double* a, Py_ssize_t down, Py_ssize_t across, double* values, double* vectors,
        Py_ssize_t n) noexcept nogil
    int wengert_float_spectrum(
        const float* a, Py_ssize_t down, Py_ssize_t across, float* values, float* vectors,
        Py_ssize_t n) noexcept nogil
    int WIDEST

cdef enum:
    TOGETHER = 64  # matrices that one thread takes at a time


cdef cnp.ndarray batch_of(object a):
    """A batch, not empty, of small real square matrices with three dimensions; else None."""
    cdef cnp.ndarray x
    cdef int kind, rank
    cdef Py_ssize_t n
    if not cnp.PyArray_CheckExact(a):
        return None
    x = <cnp.ndarray>a
    kind, rank = cnp.PyArray_TYPE(x), cnp.PyArray_NDIM(x)
    if (kind != cnp.NPY_DOUBLE and kind != cnp.NPY_FLOAT) or rank < 2:
        return None
    if not cnp.PyArray_SIZE(x):
        return None
    n = cnp.PyArray_DIM(x, rank - 1)
    if n > WIDEST or n != cnp.PyArray_DIM(x, rank - 2) or not cnp.PyArray_ISBEHAVED_RO(x):
        return None
    return flat(x)


cdef cnp.ndarray flat(cnp.ndarray x):
    cdef int rank = cnp.PyArray_NDIM(x)
    if rank == 3:
        return x
    return x.reshape((-1, cnp.PyArray_DIM(x, rank - 2), cnp.PyArray_DIM(x, rank - 1)))


cdef int measure(cnp.ndarray x, Py_ssize_t* steps) except -1:
    """The strides in elements."""
    cdef Py_ssize_t item = 8 if cnp.PyArray_TYPE(x) == cnp.NPY_DOUBLE else 4
    cdef int i
    for i in range(3):
        steps[i] = cnp.PyArray_STRIDE(x, i) // item
    return 0


cdef enum:
    SOLVE, DETERMINANTS, FACTOR, CHOLESKY


cdef struct Batch:
    int what
    const char* a
    const char* b  # or NULL
    char* out
    char* logs  # or NULL
    int* rows
    int* failed
    Py_ssize_t a_steps[3]
    Py_ssize_t b_steps[3]
    Py_ssize_t count, n, columns, item
    bint lost


cdef void batch_work(void* data, int64_t part) noexcept nogil:
    """What is asked for some of the matrices, all of which are lost if one is."""
    cdef Batch* job = <Batch*>data
    cdef Py_ssize_t first = part * TOGETHER, n = job.n, item = job.item
    cdef Py_ssize_t count = min(TOGETHER, job.count - first)
    cdef const void* a = job.a + first * job.a_steps[0] * item
    cdef const void* b = NULL if job.b == NULL else job.b + first * job.b_steps[0] * item
    cdef void* logs = NULL if job.logs == NULL else job.logs + first * item
    cdef void* out
    cdef bint done = True
    if job.what == SOLVE:
        out = job.out + first * n * job.columns * item
        if item == 8:
            done = wengert_double_solve(
                a, job.a_steps, b, job.b_steps, out, count, n, job.columns)
        else:
            done = wengert_float_solve(a, job.a_steps, b, job.b_steps, out, count, n, job.columns)
    elif job.what == DETERMINANTS:
        out = job.out + first * item
        if item == 8:
            wengert_double_determinants(a, job.a_steps, out, logs, count, n)
        else:
            wengert_float_determinants(a, job.a_steps, out, logs, count, n)
    elif job.what == FACTOR:
        out = job.out + first * n * n * item
        if item == 8:
            wengert_double_factor(
                a, job.a_steps, out, job.rows + first * n, job.failed + first, count, n)
        else:
            wengert_float_factor(
                a, job.a_steps, out, job.rows + first * n, job.failed + first, count, n)
    else:
        out = job.out + first * n * n * item
        if item == 8:
            done = wengert_double_cholesky(a, job.a_steps, out, count, n)
        else:
            done = wengert_float_cholesky(a, job.a_steps, out, count, n)
    if not done:
        job.lost = True


cdef Batch job_for(int what, cnp.ndarray x) except *:
    """A job of a batch of matrices, without the places of its results."""
    cdef Batch job
    job.what, job.a, job.b, job.logs = what, cnp.PyArray_BYTES(x), NULL, NULL
    job.rows = job.failed = NULL
    job.count, job.n, job.columns = cnp.PyArray_DIM(x, 0), cnp.PyArray_DIM(x, 1), 0
    job.item = 8 if cnp.PyArray_TYPE(x) == cnp.NPY_DOUBLE else 4
    job.lost = False
    measure(x, job.a_steps)
    return job


cdef bint run(Batch* job) noexcept:
    """Compute, on several threads if there are many matrices; whether no matrix was lost."""
    with nogil:
        split(batch_work, job, (job.count + TOGETHER - 1) // TOGETHER)
    return not job.lost


def solved(object a, object b):
    """The X of ``a X = b``, inverses where `b` is None, as columns; None if this is not for C.

    None too if a matrix is singular.
    """
    cdef cnp.ndarray x, y, out
    cdef cnp.npy_intp dims[3]
    cdef Batch job
    cdef Py_ssize_t columns
    x = batch_of(a)
    if x is None:
        return None
    job = job_for(SOLVE, x)
    columns = job.n
    if b is not None:
        if (
            not cnp.PyArray_CheckExact(b)
            or cnp.PyArray_TYPE(<cnp.ndarray>b) != cnp.PyArray_TYPE(x)
            or b.shape[:-2] != a.shape[:-2]
            or not cnp.PyArray_ISBEHAVED_RO(<cnp.ndarray>b)
            or not cnp.PyArray_SIZE(<cnp.ndarray>b)
        ):
            return None
        y = flat(<cnp.ndarray>b)
        columns = cnp.PyArray_DIM(y, 2)
        if columns > WIDEST or not columns:
            return None
        measure(y, job.b_steps)
        job.b = cnp.PyArray_BYTES(y)
    dims[0], dims[1], dims[2] = job.count, columns, job.n
    out = cnp.PyArray_EMPTY(3, dims, cnp.PyArray_TYPE(x), 0)
    job.columns, job.out = columns, cnp.PyArray_BYTES(out)
    if not run(&job):
        return None
    return out.reshape((*a.shape[:-2], columns, job.n)).swapaxes(-1, -2)


def determinants(object a, bint logarithmic):
    """Determinants, or their signs and the logarithms of their sizes; None if not for C."""
    cdef cnp.ndarray x = batch_of(a), out, logs
    cdef cnp.npy_intp dims[3]
    cdef Batch job
    if x is None:
        return None
    job = job_for(DETERMINANTS, x)
    dims[0] = job.count
    out = cnp.PyArray_EMPTY(1, dims, cnp.PyArray_TYPE(x), 0)
    job.out = cnp.PyArray_BYTES(out)
    if logarithmic:
        logs = cnp.PyArray_EMPTY(1, dims, cnp.PyArray_TYPE(x), 0)
        job.logs = cnp.PyArray_BYTES(logs)
    run(&job)
    shape = a.shape[:-2]
    return (out.reshape(shape), logs.reshape(shape)) if logarithmic else out.reshape(shape)


def factored(object a):
    """LU factors in one matrix, as columns, exchanged rows, zero divisors; None if not for C."""
    cdef cnp.ndarray x = batch_of(a), out, rows, failed
    cdef cnp.npy_intp dims[3]
    cdef Batch job
    if x is None:
        return None
    job = job_for(FACTOR, x)
    dims[0], dims[1], dims[2] = job.count, job.n, job.n
    out = cnp.PyArray_EMPTY(3, dims, cnp.PyArray_TYPE(x), 0)
    rows = cnp.PyArray_EMPTY(2, dims, cnp.NPY_INT32, 0)
    failed = cnp.PyArray_EMPTY(1, dims, cnp.NPY_INT32, 0)
    job.out = cnp.PyArray_BYTES(out)
    job.rows, job.failed = <int*>cnp.PyArray_DATA(rows), <int*>cnp.PyArray_DATA(failed)
    run(&job)
    shape = a.shape
    return (
        out.reshape(shape).swapaxes(-1, -2), rows.reshape(shape[:-1]), failed.reshape(shape[:-2])
    )


def cholesky(object a):
    """Lower Cholesky factors, as columns; None if not for C or if a matrix has none."""
    cdef cnp.ndarray x = batch_of(a), out
    cdef cnp.npy_intp dims[3]
    cdef Batch job
    if x is None:
        return None
    job = job_for(CHOLESKY, x)
    dims[0], dims[1], dims[2] = job.count, job.n, job.n
    out = cnp.PyArray_EMPTY(3, dims, cnp.PyArray_TYPE(x), 0)
    job.out = cnp.PyArray_BYTES(out)
    return out.reshape(a.shape).swapaxes(-1, -2) if run(&job) else None


cdef struct Spectra:
    const char* matrices
    char* values
    char* vectors  # or NULL
    Py_ssize_t count, n, apart, down, across
    bint single, failed


cdef void spectra_work(void* data, int64_t part) noexcept nogil:
    """The spectra of some of the matrices, all of which fail if one does."""
    cdef Spectra* job = <Spectra*>data
    cdef Py_ssize_t i, n = job.n
    cdef bint done
    for i in range(part * TOGETHER, min((part + 1) * TOGETHER, job.count)):
        if job.single:
            done = wengert_float_spectrum(
                <const float*>job.matrices + i * job.apart, job.down, job.across,
                <float*>job.values + i * n,
                NULL if job.vectors == NULL else <float*>job.vectors + i * n * n, n)
        else:
            done = wengert_double_spectrum(
                <const double*>job.matrices + i * job.apart, job.down, job.across,
                <double*>job.values + i * n,
                NULL if job.vectors == NULL else <double*>job.vectors + i * n * n, n)
        if not done:
            job.failed = True
            return


def spectra(object a, bint upper, bint with_vectors):
    """Eigenvalues, ascending, and eigenvectors, as columns, of symmetric matrices, of which one
    triangle is read; None if not for C or if numbers are very large, very small or no numbers."""
    cdef cnp.ndarray x = batch_of(a), values, vectors
    cdef cnp.npy_intp dims[3]
    cdef Py_ssize_t steps[3]
    cdef Spectra job
    if x is None:
        return None
    measure(x, steps)
    job.count, job.n = cnp.PyArray_DIM(x, 0), cnp.PyArray_DIM(x, 1)
    job.apart, job.down, job.across = steps[0], steps[1], steps[2]
    if upper:
        job.down, job.across = steps[2], steps[1]
    job.single, job.failed = cnp.PyArray_TYPE(x) == cnp.NPY_FLOAT, False
    dims[0], dims[1], dims[2] = job.count, job.n, job.n
    values = cnp.PyArray_EMPTY(2, dims, cnp.PyArray_TYPE(x), 0)
    job.matrices, job.values, job.vectors = cnp.PyArray_BYTES(x), cnp.PyArray_BYTES(values), NULL
    if with_vectors:
        vectors = cnp.PyArray_EMPTY(3, dims, cnp.PyArray_TYPE(x), 0)
        job.vectors = cnp.PyArray_BYTES(vectors)
    with nogil:
        split(spectra_work, &job, (job.count + TOGETHER - 1) // TOGETHER)
    if job.failed:
        return None
    shape = a.shape
    if not with_vectors:
        return values.reshape(shape[:-1])
    return values.reshape(shape[:-1]), vectors.reshape(shape).swapaxes(-1, -2)
