# cython: boundscheck=False, wraparound=False
"""Convolutions of pictures: their windows are columns of matrices, which BLAS multiplies.

The pictures are taken in pieces whose columns stay in the processor's cache, one picture, some rows
of a large one or several small ones, and the pool's threads share the pieces. Which pieces there are
and in what order they are added up does not depend on the number of threads. Pictures that are not
for C are declined with False. `window_loops.py` beside this file is the interface without C.
"""
cimport numpy as cnp
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from ..core.pool cimport split, threads_allowed
from .matrices cimport blas_alone, blas_together, gemm, has_gemm

cnp.import_array()

ctypedef fused real:
    float
    double

cdef enum:
    PIECE = 1 << 18  # elements of the columns of a piece
    SUMS = 8         # that the gradient of a weight is added up in, each by one thread
    SUMMED = 1 << 22  # elements of all of them, unless there are two


cdef struct Windows:
    # The pictures, of which windows are read or to which they are added.
    char* x
    Py_ssize_t item, count, channels, height, width, image_step, channel_step, row_step
    # Windows: their size, how many of them are below and beside each other, and where they lie.
    Py_ssize_t tall, wide, rows, columns, down, across, top, left, apart_down, apart_across
    bint whole       # whether all windows of a place in the kernel are the picture, shifted
    bint direct      # whether pictures are their own columns
    # What they are multiplied with, in groups of `made` channels and windows of `length` elements.
    char* weight
    char* other
    Py_ssize_t groups, made, length
    # Pieces: pictures together or rows of one.
    Py_ssize_t together, strip, strips, pieces, per_part
    char* columns_of
    Py_ssize_t columns_size
    char* turned
    Py_ssize_t turned_size


cdef struct Piece:
    Py_ssize_t image, images, row, rows, places


cdef Piece piece_of(Windows* job, Py_ssize_t number) noexcept nogil:
    cdef Piece piece
    piece.image = number // job.strips * job.together
    piece.images = min(job.together, job.count - piece.image)
    piece.row = number % job.strips * job.strip
    piece.rows = min(job.strip, job.rows - piece.row)
    piece.places = piece.images * piece.rows * job.columns
    return piece


# Windows as columns ------------------------------------------------------------------------------


cdef inline void inside(Windows* job, Py_ssize_t shift, Py_ssize_t* begin, Py_ssize_t* end) noexcept nogil:
    """The windows of a row in which the element `shift` after the window's first is in the picture."""
    begin[0] = min(max((-shift + job.across - 1) // job.across, 0), job.columns)
    end[0] = max(begin[0], min(job.columns, (job.width - shift + job.across - 1) // job.across))


cdef void copy_row(Windows* job, const char* source, char* to, Py_ssize_t shift) noexcept nogil:
    """One element of all windows of a row: `shift + i * across` of the source, zeros beyond it."""
    cdef Py_ssize_t i, begin, end, item = job.item
    inside(job, shift, &begin, &end)
    memset(to, 0, begin * item)
    if job.across == 1:
        memcpy(to + begin * item, source + (begin + shift) * item, (end - begin) * item)
    elif item == 4:
        for i in range(begin, end):
            (<float*>to)[i] = (<const float*>source)[shift + i * job.across]
    else:
        for i in range(begin, end):
            (<double*>to)[i] = (<const double*>source)[shift + i * job.across]
    memset(to + end * item, 0, (job.columns - end) * item)


cdef void copy_plane(
    Windows* job, const char* source, char* to, Py_ssize_t below, Py_ssize_t beside
) noexcept nogil:
    """One element of all windows where there are as many as elements: the picture shifted."""
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


cdef void fill(Windows* job, Piece* piece, char* to) noexcept nogil:
    """The columns of a piece: a row for each channel and place in the kernel."""
    cdef Py_ssize_t channel, i, j, image, row, place, line = job.columns * job.item
    cdef bint whole = job.whole and piece.rows == job.rows
    cdef const char* source
    for channel in range(job.channels):
        for i in range(job.tall):
            for j in range(job.wide):
                for image in range(piece.image, piece.image + piece.images):
                    source = job.x + image * job.image_step + channel * job.channel_step
                    if whole:
                        copy_plane(
                            job, source, to, i * job.apart_down - job.top,
                            j * job.apart_across - job.left)
                        to += job.rows * line
                        continue
                    for row in range(piece.row, piece.row + piece.rows):
                        place = row * job.down - job.top + i * job.apart_down
                        if 0 <= place < job.height:
                            copy_row(
                                job, source + place * job.row_step, to,
                                j * job.apart_across - job.left)
                        else:
                            memset(to, 0, line)
                        to += line


cdef void add_row(
    Windows* job, real* to, const real* source, Py_ssize_t shift
) noexcept nogil:
    cdef Py_ssize_t i, begin, end, across = job.across
    inside(job, shift, &begin, &end)
    to += shift
    if across == 1:
        for i in range(begin, end):
            to[i] += source[i]
    else:
        for i in range(begin, end):
            to[i * across] += source[i]


cdef void add_back(Windows* job, Piece* piece, const char* source) noexcept nogil:
    """Add the columns of one picture to it, where its windows lie."""
    cdef Py_ssize_t channel, i, j, row, place, line = job.columns * job.item
    cdef char* to
    for channel in range(job.channels):
        for i in range(job.tall):
            for j in range(job.wide):
                to = job.x + piece.image * job.image_step + channel * job.channel_step
                for row in range(piece.row, piece.row + piece.rows):
                    place = row * job.down - job.top + i * job.apart_down
                    if 0 <= place < job.height:
                        if job.item == 4:
                            add_row[float](
                                job, <float*>(to + place * job.row_step), <const float*>source,
                                j * job.apart_across - job.left)
                        else:
                            add_row[double](
                                job, <double*>(to + place * job.row_step), <const double*>source,
                                j * job.apart_across - job.left)
                    source += line


# Products of pieces ------------------------------------------------------------------------------


cdef char* columns_for(
    Windows* job, Piece* piece, int64_t part, Py_ssize_t* step
) noexcept nogil:
    """The columns of a piece, and how many elements each of their rows is after the one before."""
    cdef char* to
    if job.direct:
        step[0] = job.rows * job.columns
        return job.x + piece.image * job.image_step + piece.row * job.row_step
    to = job.columns_of + part * job.columns_size
    fill(job, piece, to)
    step[0] = piece.places
    return to


cdef inline char* place_in(
    Windows* job, Piece* piece, Py_ssize_t image, Py_ssize_t channel
) noexcept nogil:
    """Where a channel of a picture of `other` has the places of a piece."""
    cdef Py_ssize_t made = job.groups * job.made, places = job.rows * job.columns
    return job.other + (
        ((piece.image + image) * made + channel) * places + piece.row * job.columns
    ) * job.item


cdef void gather_part(void* data, int64_t part) noexcept nogil:
    """Convolve the pieces of a part."""
    cdef Windows* job = <Windows*>data
    cdef Py_ssize_t number, group, image, channel, step, size
    cdef char* columns
    cdef char* turned = job.turned + part * job.turned_size
    cdef char* weight
    cdef Piece piece
    for number in range(part * job.per_part, min((part + 1) * job.per_part, job.pieces)):
        piece = piece_of(job, number)
        columns = columns_for(job, &piece, part, &step)
        for group in range(job.groups):
            weight = job.weight + group * job.made * job.length * job.item
            if piece.images == 1:
                gemm(
                    job.item == 8, False, False, job.made, piece.places, job.length, weight,
                    job.length, columns, step, False,
                    place_in(job, &piece, 0, group * job.made), job.rows * job.columns)
            else:
                gemm(
                    job.item == 8, False, False, job.made, piece.places, job.length, weight,
                    job.length, columns, step, False, turned, piece.places)
                size = job.rows * job.columns * job.item
                for channel in range(job.made):
                    for image in range(piece.images):
                        memcpy(
                            place_in(job, &piece, image, group * job.made + channel),
                            turned + channel * piece.places * job.item + image * size, size)
            columns += job.length * step * job.item


cdef void weigh_part(void* data, int64_t part) noexcept nogil:
    """Add up what the pieces of a part give the gradient of the weight."""
    cdef Windows* job = <Windows*>data
    cdef Py_ssize_t number, group, image, channel, step, size, total
    cdef char* columns
    cdef char* turned = job.turned + part * job.turned_size
    cdef char* sums
    cdef Piece piece
    total = job.made * job.length * job.item
    sums = job.weight + part * job.groups * total
    memset(sums, 0, job.groups * total)
    for number in range(part * job.per_part, min((part + 1) * job.per_part, job.pieces)):
        piece = piece_of(job, number)
        columns = columns_for(job, &piece, part, &step)
        for group in range(job.groups):
            if piece.images == 1:
                gemm(
                    job.item == 8, False, True, job.made, job.length, piece.places,
                    place_in(job, &piece, 0, group * job.made), job.rows * job.columns, columns,
                    step, True, sums + group * total, job.length)
            else:
                size = job.rows * job.columns * job.item
                for channel in range(job.made):
                    for image in range(piece.images):
                        memcpy(
                            turned + channel * piece.places * job.item + image * size,
                            place_in(job, &piece, image, group * job.made + channel), size)
                gemm(
                    job.item == 8, False, True, job.made, job.length, piece.places, turned,
                    piece.places, columns, step, True, sums + group * total, job.length)
            columns += job.length * step * job.item


cdef void spread_part(void* data, int64_t part) noexcept nogil:
    """Add the windows of some pictures to what they are spread over."""
    cdef Windows* job = <Windows*>data
    cdef Py_ssize_t number, group
    cdef char* columns = job.columns_of + part * job.columns_size
    cdef Piece piece
    for number in range(
        part * job.per_part * job.strips, min((part + 1) * job.per_part * job.strips, job.pieces)
    ):
        piece = piece_of(job, number)
        for group in range(job.groups):
            gemm(
                job.item == 8, True, False, job.length, piece.places, job.made,
                job.weight + group * job.made * job.length * job.item, job.length,
                place_in(job, &piece, 0, group * job.made), job.rows * job.columns, False,
                columns + group * job.length * piece.places * job.item, piece.places)
        add_back(job, &piece, columns)


# What operators call -----------------------------------------------------------------------------


cdef bint prepare(
    Windows* job, object x, object other, object weight, tuple kernel, tuple sizes, tuple stride,
    tuple padding, tuple dilation, Py_ssize_t groups
):
    """Describe the work; False if it is not for C."""
    cdef cnp.ndarray pictures, values
    cdef int kind
    if len(kernel) != 2 or not has_gemm() or not cnp.PyArray_CheckExact(x):
        return False
    pictures = <cnp.ndarray>x
    kind = cnp.PyArray_TYPE(pictures)
    if kind != cnp.NPY_FLOAT and kind != cnp.NPY_DOUBLE or cnp.PyArray_NDIM(pictures) != 4:
        return False
    for each in (other, weight):
        if not cnp.PyArray_CheckExact(each):
            return False
        values = <cnp.ndarray>each
        if cnp.PyArray_TYPE(values) != kind or not cnp.PyArray_ISCARRAY_RO(values):
            return False
    job.item = 4 if kind == cnp.NPY_FLOAT else 8
    if not cnp.PyArray_ISBEHAVED_RO(pictures) or cnp.PyArray_STRIDE(pictures, 3) != job.item:
        return False
    job.count, job.channels = cnp.PyArray_DIM(pictures, 0), cnp.PyArray_DIM(pictures, 1)
    job.height, job.width = cnp.PyArray_DIM(pictures, 2), cnp.PyArray_DIM(pictures, 3)
    job.image_step = cnp.PyArray_STRIDE(pictures, 0)
    job.channel_step = cnp.PyArray_STRIDE(pictures, 1)
    job.row_step = cnp.PyArray_STRIDE(pictures, 2)
    job.tall, job.wide = kernel
    job.rows, job.columns = sizes
    job.down, job.across = stride
    job.top, job.left = padding
    job.apart_down, job.apart_across = dilation
    job.groups = groups
    job.length = job.channels // groups * job.tall * job.wide
    job.made = cnp.PyArray_DIM(<cnp.ndarray>other, 1) // groups
    job.x, job.other = cnp.PyArray_BYTES(pictures), cnp.PyArray_BYTES(<cnp.ndarray>other)
    job.weight = cnp.PyArray_BYTES(<cnp.ndarray>weight)
    job.whole = (
        job.across == 1 and job.down == 1 and job.rows == job.height
        and job.columns == job.width and job.row_step == job.width * job.item
    )
    job.direct = (
        job.whole and job.tall == 1 and job.wide == 1 and job.top == 0 and job.left == 0
        and job.channel_step == job.height * job.row_step
    )
    return True


cdef void cut(Windows* job, bint joins) noexcept:
    """Choose the pieces: rows of a picture, or several pictures where it `joins` them."""
    cdef Py_ssize_t row = job.length * job.groups * job.columns, image = row * job.rows
    job.together = max(1, min(job.count, PIECE // image)) if joins and not job.direct else 1
    job.strip = max(1, min(job.rows, PIECE // row))
    job.strips = (job.rows + job.strip - 1) // job.strip
    job.pieces = (job.count + job.together - 1) // job.together * job.strips


cdef object room(Windows* job, Py_ssize_t parts, bint turns):
    """Memory for the columns of each part, and for what is turned around beside them."""
    cdef cnp.npy_intp size
    cdef cnp.ndarray memory
    cdef Py_ssize_t places = job.together * job.strip * job.columns * job.item
    job.columns_size = 0 if job.direct else job.length * job.groups * places
    job.turned_size = job.made * places if turns and job.together > 1 else 0
    size = parts * (job.columns_size + job.turned_size)
    memory = cnp.PyArray_EMPTY(1, &size, cnp.NPY_INT8, 0)
    job.columns_of = cnp.PyArray_BYTES(memory)
    job.turned = job.columns_of + parts * job.columns_size
    return memory


cdef Py_ssize_t share(Windows* job, Py_ssize_t pieces, Py_ssize_t parts) noexcept:
    """How many parts of equally many pieces there are: as many as asked for, or fewer."""
    job.per_part = (pieces + parts - 1) // parts
    return (pieces + job.per_part - 1) // job.per_part


cdef bint work(Windows* job, void (*part)(void*, int64_t) noexcept nogil, Py_ssize_t parts):
    with nogil:
        if blas_alone():
            split(part, job, parts)
            blas_together()
        else:
            for number in range(parts):
                part(job, number)
    return True


def gather(
    object x, object weight, object out, tuple kernel, tuple sizes, tuple stride, tuple padding,
    tuple dilation, Py_ssize_t groups
):
    """Write the convolution of pictures by a weight into `out`; False if it is not for C."""
    cdef Windows job
    cdef Py_ssize_t parts
    if not prepare(&job, x, out, weight, kernel, sizes, stride, padding, dilation, groups):
        return False
    cut(&job, True)
    parts = share(&job, job.pieces, 4 * threads_allowed() if threads_allowed() > 1 else 1)
    memory = room(&job, parts, True)
    return work(&job, gather_part, parts)


def weigh(
    object x, object gradient, object out, tuple kernel, tuple sizes, tuple stride, tuple padding,
    tuple dilation, Py_ssize_t groups
):
    """Write the gradient of a convolution by its weight into `out`; False if it is not for C."""
    cdef Windows job
    cdef Py_ssize_t parts, size
    cdef cnp.npy_intp dims[2]
    cdef cnp.ndarray sums
    if not prepare(&job, x, gradient, out, kernel, sizes, stride, padding, dilation, groups):
        return False
    size = cnp.PyArray_SIZE(<cnp.ndarray>out)
    cut(&job, True)
    parts = share(&job, job.pieces, min(SUMS, max(2, SUMMED // size)))
    if parts > 1:
        dims[0], dims[1] = parts, size
        sums = cnp.PyArray_EMPTY(2, dims, cnp.PyArray_TYPE(<cnp.ndarray>x), 0)
        job.weight = cnp.PyArray_BYTES(sums)
    memory = room(&job, parts, True)
    work(&job, weigh_part, parts)
    if parts > 1:
        cnp.PyArray_Sum(sums, 0, cnp.PyArray_TYPE(sums), (<cnp.ndarray>out).reshape(size))
    return True


def spread(
    object x, object weight, object out, tuple kernel, tuple stride, tuple padding, tuple dilation,
    Py_ssize_t groups
):
    """Add a transposed convolution of pictures by a weight to `out`; False if it is not for C."""
    cdef Windows job
    cdef Py_ssize_t parts
    if not prepare(
        &job, out, x, weight, kernel, x.shape[2:], stride, padding, dilation, groups
    ):
        return False
    job.direct = False
    cut(&job, False)
    parts = share(&job, job.count, 4 * threads_allowed() if threads_allowed() > 1 else 1)
    memory = room(&job, parts, False)
    return work(&job, spread_part, parts)
