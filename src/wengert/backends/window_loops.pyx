# cython: boundscheck=False
"""The windows of pictures: as columns of a matrix, of which convolutions are products, and the
largest element of each.

Rows of windows are copied as a whole where steps are one, by the pool's threads, and the border is
filled with zeros on the way. `window_loops.py` beside this file is the interface without C.
"""
cimport numpy as cnp
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

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
    LARGE = 1 << 16  # elements that one thread copies at least


cdef struct Windows:
    const char* x
    char* out
    Py_ssize_t item, count, channels, height, width, image_step, channel_step, row_step
    Py_ssize_t tall, wide, rows, columns, down, across, top, left, apart_down, apart_across
    Py_ssize_t together


cdef void copy_row(Windows* job, const char* source, char* to, Py_ssize_t shift) noexcept nogil:
    """One row of places: element `shift + i * across` of the source, zeros beyond its ends."""
    cdef Py_ssize_t i, place, begin, end, item = job.item
    if job.across == 1:
        begin = min(max(-shift, 0), job.columns)
        end = max(begin, min(job.columns, job.width - shift))
        if begin:
            memset(to, 0, begin * item)
        memcpy(to + begin * item, source + (begin + shift) * item, (end - begin) * item)
        if end < job.columns:
            memset(to + end * item, 0, (job.columns - end) * item)
        return
    for i in range(job.columns):
        place = shift + i * job.across
        if place < 0 or place >= job.width:
            memset(to + i * item, 0, item)
        elif item == 4:
            (<float*>to)[i] = (<const float*>source)[place]
        else:
            (<double*>to)[i] = (<const double*>source)[place]


cdef void copy_plane(
    Windows* job, const char* source, char* to, Py_ssize_t below, Py_ssize_t beside
) noexcept nogil:
    """All rows of places at once where there are as many as elements: the picture shifted."""
    cdef Py_ssize_t item = job.item, line = job.width * item, size = job.height * line
    cdef Py_ssize_t shift = below * line + beside * item, row
    if below <= -job.height or below >= job.height or beside <= -job.width or beside >= job.width:
        memset(to, 0, size)
        return
    if shift < 0:
        memcpy(to - shift, source, size + shift)
    else:
        memcpy(to, source + shift, size - shift)
    if below < 0:
        memset(to, 0, -below * line)
    elif below > 0:
        memset(to + size - below * line, 0, below * line)
    if beside < 0:
        for row in range(job.height):
            clear(to + row * line, -beside, item)
    elif beside > 0:
        for row in range(job.height):
            clear(to + (row + 1) * line - beside * item, beside, item)


cdef inline void clear(char* to, Py_ssize_t count, Py_ssize_t item) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(count):
        if item == 4:
            (<float*>to)[i] = 0
        else:
            (<double*>to)[i] = 0


cdef void work(void* data, int64_t part) noexcept nogil:
    cdef Windows* job = <Windows*>data
    cdef bint whole = (
        job.across == 1 and job.down == 1 and job.rows == job.height
        and job.columns == job.width and job.row_step == job.width * job.item
    )
    cdef Py_ssize_t channel, i, j, image, row, place, line = job.columns * job.item
    cdef const char* source
    cdef char* to
    for channel in range(
        part * job.together, min((part + 1) * job.together, job.channels)
    ):
        to = job.out + channel * job.tall * job.wide * job.count * job.rows * line
        for i in range(job.tall):
            for j in range(job.wide):
                for image in range(job.count):
                    source = job.x + image * job.image_step + channel * job.channel_step
                    if whole:
                        copy_plane(
                            job, source, to, i * job.apart_down - job.top,
                            j * job.apart_across - job.left)
                        to += job.rows * line
                        continue
                    for row in range(job.rows):
                        place = row * job.down - job.top + i * job.apart_down
                        if 0 <= place < job.height:
                            copy_row(
                                job, source + place * job.row_step, to,
                                j * job.apart_across - job.left)
                        else:
                            memset(to, 0, line)
                        to += line


def columns(
    object x, tuple kernel, tuple sizes, tuple stride, tuple padding, tuple dilation
):
    """The elements of all windows: those of one channel and place in the kernel follow each other
    for all images and places. None if the pictures are not for C."""
    cdef Windows job
    cdef cnp.ndarray pictures, out
    cdef cnp.npy_intp dims[6]
    cdef int kind
    if len(kernel) != 2 or not cnp.PyArray_CheckExact(x):
        return None
    pictures = <cnp.ndarray>x
    kind = cnp.PyArray_TYPE(pictures)
    if (kind != cnp.NPY_FLOAT and kind != cnp.NPY_DOUBLE) or cnp.PyArray_NDIM(pictures) != 4:
        return None
    job.item = 4 if kind == cnp.NPY_FLOAT else 8
    if not cnp.PyArray_ISBEHAVED_RO(pictures) or cnp.PyArray_STRIDE(pictures, 3) != job.item:
        return None
    job.count, job.channels = cnp.PyArray_DIM(pictures, 0), cnp.PyArray_DIM(pictures, 1)
    job.height, job.width = cnp.PyArray_DIM(pictures, 2), cnp.PyArray_DIM(pictures, 3)
    job.image_step, job.channel_step = (
        cnp.PyArray_STRIDE(pictures, 0), cnp.PyArray_STRIDE(pictures, 1)
    )
    job.row_step = cnp.PyArray_STRIDE(pictures, 2)
    job.tall, job.wide = kernel
    job.rows, job.columns = sizes
    job.down, job.across = stride
    job.top, job.left = padding
    job.apart_down, job.apart_across = dilation
    dims[0], dims[1], dims[2] = job.channels, job.tall, job.wide
    dims[3], dims[4], dims[5] = job.count, job.rows, job.columns
    out = cnp.PyArray_EMPTY(6, dims, kind, 0)
    job.x, job.out = cnp.PyArray_BYTES(pictures), cnp.PyArray_BYTES(out)
    job.together = max(
        1, LARGE // max(1, job.tall * job.wide * job.count * job.rows * job.columns))
    with nogil:
        split(work, &job, (job.channels + job.together - 1) // job.together)
    return out


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
