# cython: boundscheck=False
"""The windows of pictures as columns of a matrix, of which convolutions are products.

Rows of windows are copied as a whole where steps are one, by the pool's threads, and the border is
filled with zeros on the way. `window_loops.py` beside this file is the interface without C.
"""
cimport numpy as cnp
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from ..core.pool cimport split

cnp.import_array()

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
