# cython: boundscheck=False, wraparound=False
"""Kernels that join arrays, along a dimension or a new one.

A source is a number of equally long runs of memory, some of which make up its part of a block of the
result. Threads take blocks, which are written from the first to the last, or runs and pieces of runs of
blocks that are long.
"""
cimport numpy as cnp
from libc.stdint cimport int64_t

from ..core.array_checks cimport same_dims
from ..core.pool cimport split
from .arrangement cimport find_runs, holds_numbers
from .kernels cimport known

cnp.import_array()

cdef extern from "copying.h":
    void copy "wengert_copy" (char* to, const char* source, Py_ssize_t size) noexcept nogil

cdef enum:
    PART = 131072      # bytes that a thread takes at a time
    SOURCES = 32       # arrays that are joined by threads at a time
    MOST = 32          # dimensions


cdef struct Source:
    const char* data
    char* to
    # runs in all and of a block, bytes of a run, between runs, and between blocks of the result
    int64_t runs, per_block, length, step, block
    # how the runs are shared out: runs of a part, pieces of a run, the number of the first part
    int64_t per_part, pieces, first


cdef struct Join:
    Source sources[SOURCES]
    int count
    # blocks in all and of a part
    int64_t blocks, per_part


cdef bint measure(cnp.ndarray a, int64_t blocks, Source* source) noexcept:
    """Find the runs of an array; False if some belong to two blocks, or there is more than a step."""
    source.data = cnp.PyArray_BYTES(a)
    if cnp.PyArray_IS_C_CONTIGUOUS(a):
        source.runs, source.per_block = blocks, 1
        source.length = source.step = cnp.PyArray_NBYTES(a) // blocks
        return True
    if not find_runs(a, &source.runs, &source.length, &source.step):
        return False
    if source.length == cnp.PyArray_ITEMSIZE(a):
        return False
    source.per_block = source.runs // blocks
    return source.per_block * blocks == source.runs


cdef inline void copy_runs(
    const Source* s, int64_t begin, int64_t end, int64_t offset, int64_t size
) noexcept nogil:
    """Some runs of a source, or `size` bytes of each from an offset on."""
    cdef int64_t i
    for i in range(begin, end):
        copy(
            s.to + i // s.per_block * s.block + i % s.per_block * s.length + offset,
            s.data + i * s.step + offset, size)


cdef void block_part(void* data, int64_t part) noexcept nogil:
    """The runs of all sources in some blocks."""
    cdef Join* job = <Join*>data
    cdef int64_t i = part * job.per_part, end = min(i + job.per_part, job.blocks)
    cdef Source* s
    cdef int k
    while i < end:
        for k in range(job.count):
            s = &job.sources[k]
            copy_runs(s, i * s.per_block, (i + 1) * s.per_block, 0, s.length)
        i += 1


cdef void run_part(void* data, int64_t part) noexcept nogil:
    """Some runs of one source, or a piece of one."""
    cdef Join* job = <Join*>data
    cdef int i = job.count - 1
    cdef int64_t begin, offset
    cdef Source* s
    while part < job.sources[i].first:
        i -= 1
    s = &job.sources[i]
    part -= s.first
    begin = part // s.pieces * s.per_part
    offset = part % s.pieces * PART
    copy_runs(
        s, begin, min(begin + s.per_part, s.runs), offset,
        s.length if s.pieces == 1 else min(<int64_t>PART, s.length - offset))


cdef void join_sources(Join* job, int64_t parts) noexcept:
    """Have threads copy the sources, `parts` being those of runs."""
    if job.per_part:
        parts = (job.blocks + job.per_part - 1) // job.per_part
    with nogil:
        split(block_part if job.per_part else run_part, job, parts)


cdef bint join(list arrays, int64_t blocks, char* out, int64_t block) noexcept:
    """Put arrays side by side in each block of a result; False if one of them does not suit."""
    cdef Join job
    cdef Source* s
    cdef int64_t parts = 0, offset = 0, size
    cdef bint small
    job.count = 0
    job.blocks, job.per_part = blocks, PART // block
    small = blocks * block <= 2 * PART
    for value in arrays:
        size = cnp.PyArray_NBYTES(<cnp.ndarray>value)
        if size == 0:
            continue
        s = &job.sources[job.count]
        if not measure(<cnp.ndarray>value, blocks, s):
            return False
        s.to, s.block = out + offset, block
        offset += size // blocks
        if small:
            copy_runs(s, 0, s.runs, 0, s.length)
            continue
        s.per_part = max(<int64_t>1, PART // s.length)
        s.pieces = (s.length + PART - 1) // PART
        s.first = parts
        parts += (s.runs + s.per_part - 1) // s.per_part * s.pieces
        job.count += 1
        if job.count == SOURCES:
            join_sources(&job, parts)
            job.count = parts = 0
    if job.count:
        join_sources(&job, parts)
    return True


cdef bint is_part(object value, cnp.ndarray first) noexcept:
    """Whether a value is an array of numbers of the dtype and rank of another."""
    return (
        holds_numbers(value)
        and cnp.PyArray_TYPE(<cnp.ndarray>value) == cnp.PyArray_TYPE(first)
        and cnp.PyArray_NDIM(<cnp.ndarray>value) == cnp.PyArray_NDIM(first)
        and cnp.PyArray_ISBEHAVED_RO(<cnp.ndarray>value)
    )


cdef object joined(list arrays, int64_t blocks, int ndim, cnp.npy_intp* dims):
    """Arrays joined into a result of some shape, `blocks` being that of the dimensions before."""
    cdef cnp.ndarray out = cnp.PyArray_EMPTY(
        ndim, dims, cnp.PyArray_TYPE(<cnp.ndarray>arrays[0]), 0)
    if cnp.PyArray_SIZE(out) == 0 or join(
        arrays, blocks, cnp.PyArray_BYTES(out), cnp.PyArray_NBYTES(out) // blocks
    ):
        return out
    return None


cdef object cat(tuple v):
    """(tensors, dim, sizes)"""
    cdef cnp.npy_intp dims[MOST]
    cdef cnp.ndarray first, a
    cdef int i, dim, ndim
    cdef int64_t blocks = 1
    if type(v[0]) is not list or not v[0] or not cnp.PyArray_CheckExact((<list>v[0])[0]):
        return None
    first = <cnp.ndarray>(<list>v[0])[0]
    ndim, dim = cnp.PyArray_NDIM(first), v[1]
    if not 0 <= dim < ndim <= MOST:
        return None
    for i in range(ndim):
        dims[i] = cnp.PyArray_DIM(first, i)
        if i < dim:
            blocks *= dims[i]
    dims[dim] = 0
    for value in <list>v[0]:
        if not is_part(value, first):
            return None
        a = <cnp.ndarray>value
        for i in range(ndim):
            if i != dim and cnp.PyArray_DIM(a, i) != dims[i]:
                return None
        dims[dim] += cnp.PyArray_DIM(a, dim)
    return joined(<list>v[0], blocks, ndim, dims)


cdef object stack(tuple v):
    """(tensors, dim)"""
    cdef cnp.npy_intp dims[MOST + 1]
    cdef cnp.ndarray first
    cdef int i, dim, ndim
    cdef int64_t blocks = 1
    if type(v[0]) is not list or not v[0] or not cnp.PyArray_CheckExact((<list>v[0])[0]):
        return None
    first = <cnp.ndarray>(<list>v[0])[0]
    ndim = cnp.PyArray_NDIM(first)
    if ndim > MOST - 1 or type(v[1]) is not int or not -ndim - 1 <= v[1] <= ndim:
        return None
    dim = v[1] if v[1] >= 0 else v[1] + ndim + 1
    for value in <list>v[0]:
        if not is_part(value, first) or not same_dims(<cnp.ndarray>value, first):
            return None
    for i in range(ndim):
        dims[i if i < dim else i + 1] = cnp.PyArray_DIM(first, i)
        if i < dim:
            blocks *= cnp.PyArray_DIM(first, i)
    dims[dim] = len(<list>v[0])
    return joined(<list>v[0], blocks, ndim + 1, dims)


cdef tuple gathered(tuple v):
    """(gradients of all parts one by one, dim) as `cat` and `stack` are given them."""
    cdef Py_ssize_t count = len(v) - 1
    dim = v[count]
    if count < 1 or type(dim) is not int or not cnp.PyArray_CheckExact(v[0]):
        return None
    return list(v[:count]), dim


cdef object cut_gradient(tuple v):
    cdef tuple given = gathered(v)
    if given is None:
        return None
    dim = given[1]
    return cat((given[0], dim if dim >= 0 else dim + cnp.PyArray_NDIM(<cnp.ndarray>v[0]), None))


cdef object unbind_gradient(tuple v):
    cdef tuple given = gathered(v)
    return None if given is None else stack(given)


known("split.self", cut_gradient)
known("split_with_sizes.self", cut_gradient)
known("unbind.self", unbind_gradient)
known("_cat", cat)
known("stack", stack)
