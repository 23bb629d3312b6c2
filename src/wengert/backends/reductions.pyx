# cython: boundscheck=False, wraparound=False
"""Sums, products and extrema of contiguous float32 and float64 arrays over some dimensions.

An array is taken in chunks that depend on its shape alone, and their results are combined in order,
so that the number of threads does not matter. `reductions.py` beside this file is the interface
without C.
"""
cimport numpy as cnp
from libc.math cimport sqrt
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

from ..core.pool cimport split
from .vector_loops cimport rows_of

cnp.import_array()

cdef extern from "vector_loops.h":
    ctypedef struct wengert_rows:
        void (*reduce)(int, const char*, double*, int64_t, int64_t) noexcept nogil

SUM, SQUARES, LARGEST, LEAST, PRODUCT = range(5)

cdef enum:
    CHUNK = 32768      # elements that are reduced by themselves, at least 32 rows of them
    LEAST_ROWS = 32
    QUICK = 4096       # elements below which the interpreter's lock is kept
    FEW = 512          # results of chunks that need no memory of their own


cdef struct Job:
    # An array of `outer` blocks of `count` rows of `columns`; each block is `chunks` chunks of rows.
    const wengert_rows* table
    int kind
    char* data
    double* partial
    int64_t outer, count, columns, chunk, chunks, units, units_per_part, itemsize


cdef void run_part(void* data, int64_t part) noexcept nogil:
    cdef Job* job = <Job*>data
    cdef int64_t unit = part * job.units_per_part, end = unit + job.units_per_part, first, rows
    if end > job.units:
        end = job.units
    while unit < end:
        first = unit % job.chunks * job.chunk
        rows = min(job.chunk, job.count - first)
        first += unit // job.chunks * job.count
        job.table.reduce(
            job.kind, job.data + first * job.columns * job.itemsize,
            job.partial + unit * job.columns, rows, job.columns)
        unit += 1


cdef inline double combined(int kind, double a, double b) noexcept nogil:
    if kind == 2:
        return a if a != a or a > b else b
    if kind == 3:
        return a if a != a or a < b else b
    return a * b if kind == 4 else a + b


cdef void combine_rows(int kind, double* to, const double* other, int64_t n) noexcept nogil:
    cdef int64_t i
    if kind < 2:
        for i in range(n):
            to[i] += other[i]
    else:
        for i in range(n):
            to[i] = combined(kind, to[i], other[i])


cdef void combine(Job* job, char* out, bint single, double divisor, bint root) noexcept nogil:
    """Put the results of chunks together, in order, and finish them."""
    cdef int64_t i, j, k
    cdef double value
    cdef double* total
    for i in range(job.outer):
        total = job.partial + i * job.chunks * job.columns
        for k in range(1, job.chunks):
            combine_rows(job.kind, total, total + k * job.columns, job.columns)
        for j in range(job.columns):
            value = total[j]
            if divisor != 1:
                value /= divisor
            if root:
                value = sqrt(value)
            if single:
                (<float*>out)[i * job.columns + j] = <float>value
            else:
                (<double*>out)[i * job.columns + j] = value


def reduce(int kind, x, tuple dims, bint keepdim):
    """The reduction of an array over neighbouring dimensions; None where NumPy has to do it."""
    cdef int i, first, last
    if not cnp.PyArray_CheckExact(x) or not dims:
        return None
    first = last = dims[0]
    for i in range(1, <int>len(dims)):
        if dims[i] != last + 1:
            return None
        last = dims[i]
    return reduced(kind, <cnp.ndarray>x, first, last, keepdim, 1, False)


def reduce_all(x, bint is_mean):
    """The sum of all elements, or their mean; None where NumPy has to do it."""
    cdef int ndim
    if not cnp.PyArray_CheckExact(x):
        return None
    ndim = cnp.PyArray_NDIM(<cnp.ndarray>x)
    return reduced(
        0, <cnp.ndarray>x, 0, ndim - 1, False,
        <double>cnp.PyArray_SIZE(<cnp.ndarray>x) if is_mean else 1.0, False) if ndim else None


cdef object reduced(
    int kind, cnp.ndarray a, int first, int last, bint keepdim, double divisor, bint root
):
    """The reduction over dimensions from `first` to `last`, divided, of which then the root is taken.

    None where the array does not suit.
    """
    cdef Job job
    cdef cnp.ndarray out
    cdef double few[FEW]
    cdef cnp.npy_intp shape[32]
    cdef int i, ndim, kept = 0
    cdef int64_t results
    job.table = <const wengert_rows*>rows_of(cnp.PyArray_TYPE(a))
    ndim = cnp.PyArray_NDIM(a)
    if (
        job.table == NULL or ndim > 32 or cnp.PyArray_SIZE(a) == 0
        or not cnp.PyArray_ISCARRAY_RO(a)
    ):
        return None
    job.kind = kind
    job.outer = job.count = job.columns = 1
    for i in range(ndim):
        if i < first:
            job.outer *= cnp.PyArray_DIM(a, i)
        elif i <= last:
            job.count *= cnp.PyArray_DIM(a, i)
        else:
            job.columns *= cnp.PyArray_DIM(a, i)
        if i < first or i > last or keepdim:
            shape[kept] = 1 if first <= i <= last else cnp.PyArray_DIM(a, i)
            kept += 1
    job.data = cnp.PyArray_BYTES(a)
    job.itemsize = cnp.PyArray_ITEMSIZE(a)
    job.chunk = CHUNK // job.columns
    if job.columns > 1 and job.chunk < LEAST_ROWS:
        job.chunk = LEAST_ROWS
    job.chunks = (job.count + job.chunk - 1) // job.chunk
    job.units = job.outer * job.chunks
    job.units_per_part = max(1, CHUNK // (min(job.chunk, job.count) * job.columns))
    results = job.units * job.columns
    job.partial = few
    if results > FEW:
        job.partial = <double*>malloc(results * sizeof(double))
    if job.partial == NULL:
        return None
    out = cnp.PyArray_EMPTY(kept, shape, cnp.PyArray_TYPE(a), 0)
    if cnp.PyArray_SIZE(a) < QUICK:
        job.units_per_part = job.units
        run_part(&job, 0)
        combine(&job, cnp.PyArray_BYTES(out), job.itemsize == 4, divisor, root)
    else:
        with nogil:
            split(run_part, &job, (job.units + job.units_per_part - 1) // job.units_per_part)
            combine(&job, cnp.PyArray_BYTES(out), job.itemsize == 4, divisor, root)
    if job.partial != few:
        free(job.partial)
    return out
