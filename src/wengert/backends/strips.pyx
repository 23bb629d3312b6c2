# cython: boundscheck=False, wraparound=False
"""Work on contiguous arrays seen as blocks of rows, by strips of columns, see strips.h.

Reduced dimensions are the rows, those behind them the columns. Threads take strips, and chunks of
rows where a work allows it, whose sizes depend on the shape alone.
"""
cimport numpy as cnp
from libc.stdint cimport int64_t

from ..core.pool cimport split
from .arrangement cimport measure_around
from .vector_loops cimport rows_of

cnp.import_array()

cdef enum:
    STRIP = 256        # columns, as in rows.h
    CHUNK = 32768      # elements of a part
    LEAST_ROWS = 32    # of a chunk
    QUICK = 4096       # elements below which the interpreter's lock is kept


cdef bint start(Strips* job, cnp.ndarray a, int first, int last) noexcept:
    """Fill in the shape of an array of which the dimensions from `first` to `last` are rows."""
    job.table = <const wengert_rows*>rows_of(cnp.PyArray_TYPE(a))
    if job.table == NULL:
        return False
    measure_around(a, first, last, &job.outer, &job.count, &job.columns)
    job.itemsize = cnp.PyArray_ITEMSIZE(a)
    job.strips = (job.columns + STRIP - 1) // STRIP
    job.chunk, job.chunks = job.count, 1
    job.a = cnp.PyArray_BYTES(a)
    return True


cdef void run_part(void* data, int64_t part) noexcept nogil:
    cdef Strips* job = <Strips*>data
    cdef int64_t unit = part * job.per_part, end = unit + job.per_part
    cdef int64_t left, rest, block, first, rows, width
    if end > job.units:
        end = job.units
    while unit < end:
        left = unit % job.strips * STRIP
        rest = unit // job.strips
        block = rest // job.chunks
        first = rest % job.chunks * job.chunk
        rows = min(job.chunk, job.count - first)
        width = min(<int64_t>STRIP, job.columns - left)
        job.work(
            job, ((block * job.count + first) * job.columns + left) * job.itemsize,
            (block * job.columns + left) * job.itemsize, rest * job.columns + left, rows, width)
        unit += 1


cdef void run(Strips* job, strip_work work, bint by_chunks) noexcept:
    """Do all the work, whose rows may be taken in chunks if `by_chunks`."""
    cdef int64_t width = min(<int64_t>STRIP, job.columns)
    if by_chunks:
        job.chunk = max(<int64_t>LEAST_ROWS, CHUNK // width)
        if job.chunk > job.count:
            job.chunk = job.count
        job.chunks = (job.count + job.chunk - 1) // job.chunk
    job.work = work
    job.units = job.outer * job.chunks * job.strips
    job.per_part = max(1, CHUNK // (job.chunk * width))
    if job.outer * job.count * job.columns < QUICK:
        job.per_part = job.units
        run_part(job, 0)
        return
    with nogil:
        split(run_part, job, (job.units + job.per_part - 1) // job.per_part)


cdef cnp.ndarray reduced_like(cnp.ndarray a, int first, int last, bint keepdim, int kind):
    """A new array of the shape without the rows, or with them as ones."""
    cdef cnp.npy_intp shape[32]
    cdef int i, kept = 0
    for i in range(cnp.PyArray_NDIM(a)):
        if i < first or i > last or keepdim:
            shape[kept] = 1 if first <= i <= last else cnp.PyArray_DIM(a, i)
            kept += 1
    return cnp.PyArray_EMPTY(kept, shape, kind, 0)


cdef bint is_reduced(object value, cnp.ndarray a, int first, int last) noexcept:
    """Whether a value is a contiguous array of the type of `a` with one element for all its rows."""
    cdef cnp.npy_intp size = 1
    cdef int i
    if not (
        cnp.PyArray_CheckExact(value)
        and cnp.PyArray_TYPE(<cnp.ndarray>value) == cnp.PyArray_TYPE(a)
        and cnp.PyArray_ISCARRAY_RO(<cnp.ndarray>value)
    ):
        return False
    for i in range(cnp.PyArray_NDIM(a)):
        if i < first or i > last:
            size *= cnp.PyArray_DIM(a, i)
    return cnp.PyArray_SIZE(<cnp.ndarray>value) == size
