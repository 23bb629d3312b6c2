# cython: boundscheck=False, wraparound=False
"""The largest element of every window of pictures, its place, and what flows back to such places.

The pool's threads share the pictures. `pooling_loops.py` beside this file is the interface without C.
"""
cimport numpy as cnp
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from ..core.array_checks cimport same_dims
from ..core.pool cimport split

cnp.import_array()

cdef extern from *:
    """
    #define REAL double
    #define WHOLE int64_t
    #define NAME(x) wengert_double_##x
    #include "pools.h"
    #undef REAL
    #undef WHOLE
    #undef NAME
    #define REAL float
    #define WHOLE int32_t
    #define NAME(x) wengert_float_##x
    #include "pools.h"
    """
    ctypedef struct wengert_pool:
        Py_ssize_t height, width, rows, columns, tall, wide, down, across, top, left
        Py_ssize_t apart_down, apart_across
    void wengert_double_pool(
        const double* x, const wengert_pool* pool, double* out, int64_t* places,
        int64_t* at) noexcept nogil
    void wengert_float_pool(
        const float* x, const wengert_pool* pool, float* out, int64_t* places,
        int32_t* at) noexcept nogil

cdef enum:
    LARGE = 1 << 16  # elements that one thread looks at, at least


cdef struct Pools:
    wengert_pool pool
    const char* x
    char* out
    int64_t* places
    Py_ssize_t count, together
    bint single, failed


cdef void pool_work(void* data, int64_t part) noexcept nogil:
    cdef Pools* job = <Pools*>data
    cdef Py_ssize_t plane, size = job.pool.height * job.pool.width
    cdef Py_ssize_t windows = job.pool.rows * job.pool.columns
    cdef void* room = malloc(job.pool.columns * 8)
    if room == NULL:
        job.failed = True
        return
    for plane in range(part * job.together, min((part + 1) * job.together, job.count)):
        if job.single:
            wengert_float_pool(
                <const float*>job.x + plane * size, &job.pool, <float*>job.out + plane * windows,
                job.places + plane * windows, <int32_t*>room)
        else:
            wengert_double_pool(
                <const double*>job.x + plane * size, &job.pool, <double*>job.out + plane * windows,
                job.places + plane * windows, <int64_t*>room)
    free(room)


def largest(object x, tuple kernel, tuple sizes, tuple stride, tuple padding, tuple dilation):
    """The largest element of every window of pictures and its place in the picture; None if the
    pictures are not for C."""
    cdef Pools job
    cdef cnp.ndarray pictures, out, places
    cdef cnp.npy_intp dims[64]
    cdef int kind, i, ndim
    if len(kernel) != 2 or not cnp.PyArray_CheckExact(x):
        return None
    pictures = <cnp.ndarray>x
    kind, ndim = cnp.PyArray_TYPE(pictures), cnp.PyArray_NDIM(pictures)
    if (kind != cnp.NPY_FLOAT and kind != cnp.NPY_DOUBLE) or ndim < 2:
        return None
    if not cnp.PyArray_ISCARRAY_RO(pictures) or not cnp.PyArray_SIZE(pictures):
        return None
    job.pool.height, job.pool.width = (
        cnp.PyArray_DIM(pictures, ndim - 2), cnp.PyArray_DIM(pictures, ndim - 1)
    )
    if job.pool.height * job.pool.width >= 1 << 31:
        return None
    job.pool.rows, job.pool.columns = sizes
    job.pool.tall, job.pool.wide = kernel
    job.pool.down, job.pool.across = stride
    job.pool.top, job.pool.left = padding
    job.pool.apart_down, job.pool.apart_across = dilation
    for i in range(ndim - 2):
        dims[i] = cnp.PyArray_DIM(pictures, i)
    dims[ndim - 2], dims[ndim - 1] = job.pool.rows, job.pool.columns
    out = cnp.PyArray_EMPTY(ndim, dims, kind, 0)
    places = cnp.PyArray_EMPTY(ndim, dims, cnp.NPY_INT64, 0)
    job.x, job.out = cnp.PyArray_BYTES(pictures), cnp.PyArray_BYTES(out)
    job.places = <int64_t*>cnp.PyArray_DATA(places)
    job.count = cnp.PyArray_SIZE(pictures) // (job.pool.height * job.pool.width)
    job.single, job.failed = kind == cnp.NPY_FLOAT, False
    job.together = max(1, LARGE // (job.pool.height * job.pool.width))
    with nogil:
        split(pool_work, &job, (job.count + job.together - 1) // job.together)
    return None if job.failed else (out, places)


cdef struct Spread:
    const char* g
    const int64_t* places
    char* out
    Py_ssize_t count, windows, volume, together
    bint single, failed


cdef void spread_work(void* data, int64_t part) noexcept nogil:
    """Clear some pictures and add elements at their places; no place is outside."""
    cdef Spread* job = <Spread*>data
    cdef Py_ssize_t first = part * job.together, i
    cdef Py_ssize_t end = min(first + job.together, job.count), plane
    cdef Py_ssize_t item = 4 if job.single else 8
    cdef const int64_t* places
    memset(job.out + first * job.volume * item, 0, (end - first) * job.volume * item)
    for plane in range(first, end):
        places = job.places + plane * job.windows
        for i in range(job.windows):
            if places[i] < 0 or places[i] >= job.volume:
                job.failed = True
                return
        if job.single:
            for i in range(job.windows):
                (<float*>job.out + plane * job.volume)[places[i]] += (
                    <const float*>job.g + plane * job.windows)[i]
        else:
            for i in range(job.windows):
                (<double*>job.out + plane * job.volume)[places[i]] += (
                    <const double*>job.g + plane * job.windows)[i]


def spread(object g, object indices, tuple size):
    """Zeros in pictures of a size, with the elements of `g` added at their places in the picture;
    None if this is not for C or a place is outside."""
    cdef Spread job
    cdef cnp.ndarray values, places, out
    cdef cnp.npy_intp dims[64]
    cdef int kind, i, ndim, lead
    if not cnp.PyArray_CheckExact(g) or not cnp.PyArray_CheckExact(indices):
        return None
    values, places = <cnp.ndarray>g, <cnp.ndarray>indices
    kind, ndim = cnp.PyArray_TYPE(values), cnp.PyArray_NDIM(values)
    lead = ndim - <int>len(size)
    if (kind != cnp.NPY_FLOAT and kind != cnp.NPY_DOUBLE) or lead < 0:
        return None
    if cnp.PyArray_TYPE(places) != cnp.NPY_INT64 or not same_dims(values, places):
        return None
    if not cnp.PyArray_SIZE(values) or not cnp.PyArray_ISCARRAY_RO(places):
        return None
    if not cnp.PyArray_ISCARRAY_RO(values):
        values = values.copy("C")
    job.volume = job.count = 1
    for i in range(ndim):
        dims[i] = cnp.PyArray_DIM(values, i) if i < lead else size[i - lead]
        if i < lead:
            job.count *= dims[i]
        else:
            job.volume *= dims[i]
    job.windows = cnp.PyArray_SIZE(values) // job.count
    out = cnp.PyArray_EMPTY(ndim, dims, kind, 0)
    job.g, job.out = cnp.PyArray_BYTES(values), cnp.PyArray_BYTES(out)
    job.places = <const int64_t*>cnp.PyArray_DATA(places)
    job.single, job.failed = kind == cnp.NPY_FLOAT, False
    job.together = max(1, LARGE // max(1, job.volume))
    with nogil:
        split(spread_work, &job, (job.count + job.together - 1) // job.together)
    return None if job.failed else out
