"""What kernels ask of arrays that they index, and of the indices."""
cimport numpy as cnp
from libc.stdint cimport int64_t, uint64_t

from ..core.pool cimport split
from .arrangement cimport holds_numbers

cdef enum:
    INDICES = 32768  # that a thread checks at a time


cdef inline bint is_data(object value) noexcept:
    """Whether a value is a contiguous array of numbers."""
    return holds_numbers(value) and cnp.PyArray_ISCARRAY_RO(<cnp.ndarray>value)


cdef inline bint is_index(object value) noexcept:
    """Whether a value is a contiguous array of 64-bit integers."""
    return (
        cnp.PyArray_CheckExact(value) and cnp.PyArray_TYPE(<cnp.ndarray>value) == cnp.NPY_INT64
        and cnp.PyArray_ISCARRAY_RO(<cnp.ndarray>value)
    )


cdef struct Bounds:
    const int64_t* index
    int64_t size, least, count
    bint broken


cdef inline void bounds_part(void* data, int64_t part) noexcept nogil:
    cdef Bounds* job = <Bounds*>data
    cdef const int64_t* at = job.index
    cdef int64_t i
    cdef uint64_t least = <uint64_t>job.least, last = <uint64_t>(job.count - 1), found = 0
    for i in range(part * INDICES, min((part + 1) * INDICES, job.size)):
        # Its sign bit is set if one of them is negative.
        found |= (<uint64_t>at[i] - least) | (last - <uint64_t>at[i])
    if <int64_t>found < 0:
        job.broken = True


cdef inline bint within(cnp.ndarray index, int64_t least, int64_t count) noexcept:
    """Whether all indices are at least `least` and below `count`."""
    cdef Bounds job
    job.index, job.size = <const int64_t*>cnp.PyArray_DATA(index), cnp.PyArray_SIZE(index)
    job.least, job.count, job.broken = least, count, False
    if job.size <= INDICES:
        bounds_part(&job, 0)
    else:
        with nogil:
            split(bounds_part, &job, (job.size + INDICES - 1) // INDICES)
    return not job.broken


cdef inline cnp.ndarray new_of(tuple size, int kind):
    """A new array, not yet filled; None if it has too many dimensions."""
    cdef cnp.npy_intp shape[32]
    cdef int i
    if len(size) > 32:
        return None
    for i in range(<int>len(size)):
        shape[i] = size[i]
    return cnp.PyArray_EMPTY(<int>len(size), shape, kind, 0)
