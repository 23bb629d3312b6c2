# cython: boundscheck=False, wraparound=False
"""Kernels of gathering and scattering along a dimension, with an index for each element.

Indices that are not there are not theirs to complain of: they answer None.
"""
cimport numpy as cnp
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from ..core.array_checks cimport empty_like, same_dims
from ..core.pool cimport split
from .indices cimport is_data, is_index, new_of, within
from .kernels cimport is_plain, known, span

cnp.import_array()

cdef enum:
    PART = 32768       # elements that a thread takes at a time
    QUICK = 4096       # elements below which the interpreter's lock is kept

ctypedef fused real:
    float
    double


cdef struct Picking:
    # `outer` blocks; `count` rows of `columns` elements in the one array, `taken` in the other.
    char* data
    char* out
    const char* start  # what elements are added to, NULL for zeros
    const int64_t* index
    int64_t outer, count, taken, columns, per_part
    int itemsize


cdef bint fits(Picking* job, cnp.ndarray like, int dim, cnp.ndarray index) noexcept:
    """Fill in the shapes; False unless the index differs from `like` in `dim` alone."""
    cdef int i
    cdef int64_t n
    job.outer = job.columns = 1
    if cnp.PyArray_NDIM(index) != cnp.PyArray_NDIM(like):
        return False
    for i in range(cnp.PyArray_NDIM(like)):
        n = cnp.PyArray_DIM(like, i)
        if i == dim:
            job.count = n
            continue
        if cnp.PyArray_DIM(index, i) != n:
            return False
        if i < dim:
            job.outer *= n
        else:
            job.columns *= n
    job.taken = cnp.PyArray_DIM(index, dim)
    job.index = <const int64_t*>cnp.PyArray_DATA(index)
    return cnp.PyArray_SIZE(index) > 0 and within(index, 0, job.count)


ctypedef fused word:
    uint32_t
    uint64_t


cdef void gather_block(
    const word* x, const int64_t* index, word* out, int64_t taken, int64_t columns
) noexcept nogil:
    """Pick `taken` rows of `columns` elements, each element from the row that its index says."""
    cdef int64_t j, k
    if columns == 1:
        for j in range(taken):
            out[j] = x[index[j]]
        return
    for j in range(taken):
        for k in range(columns):
            out[k] = x[index[k] * columns + k]
        index += columns
        out += columns


cdef void scatter_block(
    const real* x, const int64_t* index, real* out, int64_t taken, int64_t columns
) noexcept nogil:
    """Add `taken` rows of `columns` elements, each element to the row that its index says."""
    cdef int64_t j, k
    if columns == 1:
        for j in range(taken):
            out[index[j]] += x[j]
        return
    for j in range(taken):
        for k in range(columns):
            out[index[k] * columns + k] += x[k]
        index += columns
        x += columns


cdef void gather_part(void* data, int64_t part) noexcept nogil:
    cdef Picking* job = <Picking*>data
    cdef int64_t i = part * job.per_part, end = min(i + job.per_part, job.outer)
    cdef int64_t block = job.count * job.columns, step = job.taken * job.columns
    while i < end:
        if job.itemsize == 4:
            gather_block[uint32_t](
                <const uint32_t*>job.data + i * block, job.index + i * step,
                <uint32_t*>job.out + i * step, job.taken, job.columns)
        else:
            gather_block[uint64_t](
                <const uint64_t*>job.data + i * block, job.index + i * step,
                <uint64_t*>job.out + i * step, job.taken, job.columns)
        i += 1


cdef void scatter_part(void* data, int64_t part) noexcept nogil:
    cdef Picking* job = <Picking*>data
    cdef int64_t i = part * job.per_part, end = min(i + job.per_part, job.outer)
    cdef int64_t block = job.count * job.columns, step = job.taken * job.columns
    cdef int64_t size = block * job.itemsize
    while i < end:
        if job.start != NULL:
            memcpy(job.out + i * size, job.start + i * size, size)
        else:
            memset(job.out + i * size, 0, size)
        if job.itemsize == 4:
            scatter_block[float](
                <const float*>job.data + i * step, job.index + i * step,
                <float*>job.out + i * block, job.taken, job.columns)
        else:
            scatter_block[double](
                <const double*>job.data + i * step, job.index + i * step,
                <double*>job.out + i * block, job.taken, job.columns)
        i += 1


cdef void pick_all(Picking* job, bint adds) noexcept:
    cdef int64_t size = job.taken * job.columns
    job.per_part = max(1, PART // size)
    if job.outer * size < QUICK:
        job.per_part = job.outer
        if adds:
            scatter_part(job, 0)
        else:
            gather_part(job, 0)
        return
    with nogil:
        split(
            scatter_part if adds else gather_part, job,
            (job.outer + job.per_part - 1) // job.per_part)


cdef object gathered(object x, object dim, object places):
    cdef Picking job
    cdef cnp.ndarray a, out
    cdef int first, last
    if not is_data(x) or not is_index(places) or type(dim) is not int:
        return None
    a = <cnp.ndarray>x
    job.itemsize = cnp.PyArray_ITEMSIZE(a)
    if job.itemsize != 4 and job.itemsize != 8:
        return None
    if not span(dim, cnp.PyArray_NDIM(a), &first, &last) or not fits(
        &job, a, first, <cnp.ndarray>places
    ):
        return None
    out = cnp.PyArray_EMPTY(
        cnp.PyArray_NDIM(a), cnp.PyArray_DIMS(<cnp.ndarray>places), cnp.PyArray_TYPE(a), 0)
    job.data, job.out = cnp.PyArray_BYTES(a), cnp.PyArray_BYTES(out)
    pick_all(&job, False)
    return out


cdef object scattered(
    cnp.ndarray out, const char* start, object dim, object places, object values
):
    """Make an array what lies at `start`, or zeros if that is NULL, with elements added along a
    dimension."""
    cdef Picking job
    cdef int first, last
    if not is_plain(values) or not is_index(places) or type(dim) is not int:
        return None
    if (
        cnp.PyArray_TYPE(out) != cnp.PyArray_TYPE(<cnp.ndarray>values)
        or not span(dim, cnp.PyArray_NDIM(out), &first, &last)
        or not same_dims(<cnp.ndarray>values, <cnp.ndarray>places)
        or not fits(&job, out, first, <cnp.ndarray>places)
    ):
        return None
    job.itemsize = cnp.PyArray_ITEMSIZE(out)
    job.data, job.out = cnp.PyArray_BYTES(<cnp.ndarray>values), cnp.PyArray_BYTES(out)
    job.start = start
    pick_all(&job, True)
    return out


cdef object gather(tuple v):
    return gathered(v[0], v[1], v[2])


cdef object gather_gradient(tuple v):
    """(gradient, shape, dim, index)"""
    if not is_plain(v[0]) or type(v[1]) is not tuple:
        return None
    out = new_of(<tuple>v[1], cnp.PyArray_TYPE(<cnp.ndarray>v[0]))
    return None if out is None else scattered(<cnp.ndarray>out, NULL, v[2], v[3], v[0])


cdef object scatter_add(tuple v):
    """(self, dim, index, src)"""
    cdef cnp.ndarray out
    if not is_plain(v[0]):
        return None
    out = empty_like(<cnp.ndarray>v[0])
    return scattered(out, cnp.PyArray_BYTES(<cnp.ndarray>v[0]), v[1], v[2], v[3])


cdef object scatter_add_gradient(tuple v):
    """(gradient, dim, index, src_shape)"""
    if not cnp.PyArray_CheckExact(v[2]) or (<object>v[2]).shape != v[3]:
        return None
    return gathered(v[0], v[1], v[2])


known("gather", gather)
known("gather.self", gather_gradient)
known("_gather_backward", gather_gradient)
known("scatter_add", scatter_add)
known("scatter_add.src", scatter_add_gradient)
