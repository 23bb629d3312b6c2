# cython: boundscheck=False, wraparound=False
"""Kernels of copies in another arrangement, with those of their gradients, and of small products."""
cimport numpy as cnp
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from ..core.array_checks cimport empty_like, same_dims
from ..core.pool cimport split
from .kernels cimport is_plain, known, span

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    int NPY_HALF

cdef enum:
    TILE = 32          # rows and columns that are turned at a time
    PART = 131072      # bytes that a thread takes at a time
    MOST = 16          # dimensions


cdef bint is_data(object value) noexcept:
    """Whether a value is a contiguous array of numbers with some elements."""
    cdef int kind
    if not cnp.PyArray_CheckExact(value):
        return False
    kind = cnp.PyArray_TYPE(<cnp.ndarray>value)
    return (
        (kind < cnp.NPY_OBJECT or kind == NPY_HALF)
        and cnp.PyArray_ISCARRAY_RO(<cnp.ndarray>value)
        and cnp.PyArray_SIZE(<cnp.ndarray>value) > 0
    )


# Copies ------------------------------------------------------------------------------------------


cdef struct Copy:
    const char* data
    char* out
    int64_t size, rows, columns, itemsize, from_row, from_column


cdef void copy_part(void* data, int64_t part) noexcept nogil:
    cdef Copy* job = <Copy*>data
    cdef int64_t begin = part * PART
    memcpy(job.out + begin, job.data + begin, min(<int64_t>PART, job.size - begin))


cdef cnp.ndarray copied(cnp.ndarray x):
    cdef Copy job
    cdef cnp.ndarray out = empty_like(x)
    job.data, job.out = cnp.PyArray_BYTES(x), cnp.PyArray_BYTES(out)
    job.size = cnp.PyArray_NBYTES(x)
    if job.size <= PART:
        memcpy(job.out, job.data, job.size)
    else:
        with nogil:
            split(copy_part, &job, (job.size + PART - 1) // PART)
    return out


cdef object clone(tuple v):
    return copied(<cnp.ndarray>v[0]) if is_data(v[0]) else None


cdef void turn_part(void* data, int64_t part) noexcept nogil:
    """Some rows of a matrix whose columns lie behind one another, tile by tile."""
    cdef Copy* job = <Copy*>data
    cdef int64_t top = part * TILE, bottom = min(top + TILE, job.rows), left = 0, right, i, j
    while left < job.columns:
        right = min(left + TILE, job.columns)
        if job.itemsize == 4:
            for i in range(top, bottom):
                for j in range(left, right):
                    (<uint32_t*>job.out)[i * job.columns + j] = (<const uint32_t*>(
                        job.data + i * job.from_row + j * job.from_column))[0]
        else:
            for i in range(top, bottom):
                for j in range(left, right):
                    (<uint64_t*>job.out)[i * job.columns + j] = (<const uint64_t*>(
                        job.data + i * job.from_row + j * job.from_column))[0]
        left = right


cdef object contiguous(tuple v):
    """A copy in row-major order, of a matrix that is turned."""
    cdef Copy job
    cdef cnp.ndarray x, out
    cdef int kind
    if is_data(v[0]):
        return copied(<cnp.ndarray>v[0])
    if not cnp.PyArray_CheckExact(v[0]):
        return None
    x = <cnp.ndarray>v[0]
    kind = cnp.PyArray_TYPE(x)
    job.itemsize = cnp.PyArray_ITEMSIZE(x)
    if (
        kind >= cnp.NPY_OBJECT or cnp.PyArray_NDIM(x) != 2 or not cnp.PyArray_ISBEHAVED_RO(x)
        or job.itemsize != 4 and job.itemsize != 8 or cnp.PyArray_SIZE(x) == 0
    ):
        return None
    job.rows, job.columns = cnp.PyArray_DIM(x, 0), cnp.PyArray_DIM(x, 1)
    job.from_row, job.from_column = cnp.PyArray_STRIDE(x, 0), cnp.PyArray_STRIDE(x, 1)
    out = empty_like(x)
    job.data, job.out = cnp.PyArray_BYTES(x), cnp.PyArray_BYTES(out)
    if job.rows * job.columns < 4096:
        for kind in range((job.rows + TILE - 1) // TILE):
            turn_part(&job, kind)
    else:
        with nogil:
            split(turn_part, &job, (job.rows + TILE - 1) // TILE)
    return out


# Blocks of rows ----------------------------------------------------------------------------------


cdef void shape_of(cnp.ndarray x, int dim, int64_t* outer, int64_t* count, int64_t* width) noexcept:
    """Blocks, rows of a block and bytes of a row, rows being those of one dimension."""
    cdef int i
    outer[0], width[0] = 1, cnp.PyArray_ITEMSIZE(x)
    for i in range(cnp.PyArray_NDIM(x)):
        if i < dim:
            outer[0] *= cnp.PyArray_DIM(x, i)
        elif i > dim:
            width[0] *= cnp.PyArray_DIM(x, i)
    count[0] = cnp.PyArray_DIM(x, dim)


cdef object rolled(object x, object shifts, object dims, int sign):
    cdef cnp.ndarray a, out
    cdef int first = 0, last
    cdef int64_t outer, count, width, shift, i
    cdef const char* data
    cdef char* to
    if not is_data(x) or type(shifts) is not tuple or type(dims) is not tuple:
        return None
    if len(<tuple>shifts) != 1 or len(<tuple>dims) > 1 or type((<tuple>shifts)[0]) is not int:
        return None
    a = <cnp.ndarray>x
    if len(<tuple>dims) == 0:
        outer, count, width = 1, cnp.PyArray_SIZE(a), cnp.PyArray_ITEMSIZE(a)
    else:
        if not span(dims, cnp.PyArray_NDIM(a), &first, &last):
            return None
        shape_of(a, first, &outer, &count, &width)
    shift = (sign * (<tuple>shifts)[0]) % count
    shift *= width
    count *= width
    out = empty_like(a)
    data, to = cnp.PyArray_BYTES(a), cnp.PyArray_BYTES(out)
    with nogil:
        for i in range(outer):
            memcpy(to, data + count - shift, shift)
            memcpy(to + shift, data, count - shift)
            data += count
            to += count
    return out


cdef object roll(tuple v):
    return rolled(v[0], v[1], v[2], 1)


cdef object roll_gradient(tuple v):
    return rolled(v[0], v[1], v[2], -1)


cdef object flip(tuple v):
    """(self, dims) of one dimension; of the gradient too."""
    cdef cnp.ndarray a, out
    cdef int first, last
    cdef int64_t outer, count, width, i, j
    cdef const char* data
    cdef char* to
    if not is_data(v[0]) or type(v[1]) is not tuple or len(<tuple>v[1]) != 1:
        return None
    a = <cnp.ndarray>v[0]
    if not span(v[1], cnp.PyArray_NDIM(a), &first, &last):
        return None
    shape_of(a, first, &outer, &count, &width)
    out = empty_like(a)
    data, to = cnp.PyArray_BYTES(a), cnp.PyArray_BYTES(out)
    with nogil:
        for i in range(outer):
            if width == 4:
                for j in range(count):
                    (<uint32_t*>to)[j] = (<const uint32_t*>data)[count - 1 - j]
            elif width == 8:
                for j in range(count):
                    (<uint64_t*>to)[j] = (<const uint64_t*>data)[count - 1 - j]
            else:
                for j in range(count):
                    memcpy(to + j * width, data + (count - 1 - j) * width, width)
            data += count * width
            to += count * width
    return out


cdef object triangle(tuple v, bint lower):
    """(self, diagonal); of the gradient too."""
    cdef cnp.ndarray a, out
    cdef int ndim
    cdef int64_t matrices, rows, columns, width, i, j, edge, diagonal
    cdef const char* data
    cdef char* to
    if not is_data(v[0]) or type(v[1]) is not int or not -(1 << 40) < v[1] < 1 << 40:
        return None
    a = <cnp.ndarray>v[0]
    ndim = cnp.PyArray_NDIM(a)
    if ndim < 2:
        return None
    diagonal = v[1]
    rows, columns = cnp.PyArray_DIM(a, ndim - 2), cnp.PyArray_DIM(a, ndim - 1)
    matrices = cnp.PyArray_SIZE(a) // (rows * columns)
    width = cnp.PyArray_ITEMSIZE(a)
    out = empty_like(a)
    data, to = cnp.PyArray_BYTES(a), cnp.PyArray_BYTES(out)
    with nogil:
        for i in range(matrices):
            for j in range(rows):
                edge = j + diagonal + (1 if lower else 0)
                edge = (0 if edge < 0 else columns if edge > columns else edge) * width
                if lower:
                    memcpy(to, data, edge)
                    memset(to + edge, 0, columns * width - edge)
                else:
                    memset(to, 0, edge)
                    memcpy(to + edge, data + edge, columns * width - edge)
                data += columns * width
                to += columns * width
    return out


cdef object tril(tuple v):
    return triangle(v, True)


cdef object triu(tuple v):
    return triangle(v, False)


# Joining -----------------------------------------------------------------------------------------


cdef object stack(tuple v):
    """(tensors, dim)"""
    cdef cnp.npy_intp shape[33]
    cdef cnp.ndarray first, a, out
    cdef list arrays
    cdef int i, dim, ndim
    cdef int64_t outer = 1, width, j, k, n
    cdef char* to
    if type(v[0]) is not list or not v[0] or type(v[1]) is not int:
        return None
    arrays = <list>v[0]
    n = len(arrays)
    if not is_data(arrays[0]):
        return None
    first = <cnp.ndarray>arrays[0]
    ndim = cnp.PyArray_NDIM(first)
    if not -ndim - 1 <= v[1] <= ndim or ndim > 31:
        return None
    dim = v[1] if v[1] >= 0 else v[1] + ndim + 1
    for each in arrays:
        if not is_data(each):
            return None
        a = <cnp.ndarray>each
        if cnp.PyArray_TYPE(a) != cnp.PyArray_TYPE(first) or not same_dims(a, first):
            return None
    width = cnp.PyArray_ITEMSIZE(first)
    for i in range(ndim):
        shape[i if i < dim else i + 1] = cnp.PyArray_DIM(first, i)
        if i < dim:
            outer *= cnp.PyArray_DIM(first, i)
        else:
            width *= cnp.PyArray_DIM(first, i)
    shape[dim] = n
    out = cnp.PyArray_EMPTY(ndim + 1, shape, cnp.PyArray_TYPE(first), 0)
    to = cnp.PyArray_BYTES(out)
    for j in range(n):
        a = <cnp.ndarray>arrays[j]
        for k in range(outer):
            memcpy(to + (k * n + j) * width, cnp.PyArray_BYTES(a) + k * width, width)
    return out


cdef struct Tiling:
    int ndim
    int64_t sizes[MOST]
    int64_t repeats[MOST]
    int64_t widths[MOST]  # bytes of a row of the source, and of the result


cdef int64_t tile(Tiling* job, int dim, const char* data, char* to, int64_t width) noexcept nogil:
    """Write copies of a part side by side; how many bytes that were."""
    cdef int64_t i, written = 0, step
    if dim == job.ndim:
        memcpy(to, data, width)
        return width
    if dim == job.ndim - 1:
        memcpy(to, data, job.sizes[dim] * width)
        written = job.sizes[dim] * width
    else:
        step = job.widths[dim]
        for i in range(job.sizes[dim]):
            written += tile(job, dim + 1, data + i * step, to + written, width)
    step = written
    for i in range(1, job.repeats[dim]):
        memcpy(to + written, to, step)
        written += step
    return written


cdef object repeat(tuple v):
    """(self, repeats)"""
    cdef Tiling job
    cdef cnp.npy_intp shape[MOST]
    cdef cnp.ndarray a, out
    cdef int i, own, missing
    cdef int64_t width
    if not is_data(v[0]) or type(v[1]) is not tuple or not 0 < len(<tuple>v[1]) <= MOST:
        return None
    a = <cnp.ndarray>v[0]
    own, job.ndim = cnp.PyArray_NDIM(a), <int>len(<tuple>v[1])
    missing = job.ndim - own
    if missing < 0:
        return None
    for i in range(job.ndim):
        if type((<tuple>v[1])[i]) is not int or (<tuple>v[1])[i] < 1:
            return None
        job.repeats[i] = (<tuple>v[1])[i]
        job.sizes[i] = 1 if i < missing else cnp.PyArray_DIM(a, i - missing)
        shape[i] = job.sizes[i] * job.repeats[i]
    width = cnp.PyArray_ITEMSIZE(a)
    for i in range(job.ndim - 1, -1, -1):
        job.widths[i] = width
        width *= job.sizes[i]
    out = cnp.PyArray_EMPTY(job.ndim, shape, cnp.PyArray_TYPE(a), 0)
    with nogil:
        tile(&job, 0, cnp.PyArray_BYTES(a), cnp.PyArray_BYTES(out), cnp.PyArray_ITEMSIZE(a))
    return out


# Padding -----------------------------------------------------------------------------------------


cdef struct Window:
    # Rows of `length` bytes at places in two arrays; strides in bytes for the dimensions before.
    int outer
    int64_t sizes[MOST]
    int64_t from_steps[MOST]
    int64_t to_steps[MOST]
    int64_t length


cdef void copy_window(Window* job, int dim, const char* data, char* to) noexcept nogil:
    cdef int64_t i
    if dim == job.outer:
        memcpy(to, data, job.length)
        return
    for i in range(job.sizes[dim]):
        copy_window(job, dim + 1, data + i * job.from_steps[dim], to + i * job.to_steps[dim])


cdef object padded(object x, object pad, int sign, double value):
    """Margins added to dimensions from the last on, or taken away where they are negative."""
    cdef Window job
    cdef cnp.npy_intp shape[MOST]
    cdef cnp.ndarray a, out
    cdef int i, ndim, count
    cdef int64_t before, after, kept, from_offset = 0, to_offset = 0, from_step, to_step
    cdef bint grows = False
    cdef Py_ssize_t j
    if not is_plain(x) or type(pad) is not tuple:
        return None
    a = <cnp.ndarray>x
    ndim, count = cnp.PyArray_NDIM(a), <int>len(<tuple>pad) // 2
    if not 0 < ndim <= MOST or count > ndim or len(<tuple>pad) % 2:
        return None
    job.outer = ndim - 1
    from_step = to_step = cnp.PyArray_ITEMSIZE(a)
    for i in range(ndim - 1, -1, -1):
        before = after = 0
        if ndim - 1 - i < count:
            if type((<tuple>pad)[2 * (ndim - 1 - i)]) is not int or (
                type((<tuple>pad)[2 * (ndim - 1 - i) + 1]) is not int
            ):
                return None
            before = sign * (<tuple>pad)[2 * (ndim - 1 - i)]
            after = sign * (<tuple>pad)[2 * (ndim - 1 - i) + 1]
        shape[i] = cnp.PyArray_DIM(a, i) + before + after
        kept = cnp.PyArray_DIM(a, i) + min(before, 0) + min(after, 0)
        if shape[i] <= 0 or kept <= 0:
            return None
        grows = grows or before > 0 or after > 0
        job.sizes[i], job.from_steps[i], job.to_steps[i] = kept, from_step, to_step
        from_offset -= min(before, 0) * from_step
        to_offset += max(before, 0) * to_step
        from_step *= cnp.PyArray_DIM(a, i)
        to_step *= shape[i]
    job.length = job.sizes[ndim - 1] * cnp.PyArray_ITEMSIZE(a)
    out = cnp.PyArray_EMPTY(ndim, shape, cnp.PyArray_TYPE(a), 0)
    if grows:
        if value == 0:
            memset(cnp.PyArray_DATA(out), 0, cnp.PyArray_NBYTES(out))
        elif cnp.PyArray_TYPE(out) == cnp.NPY_FLOAT:
            for j in range(cnp.PyArray_SIZE(out)):
                (<float*>cnp.PyArray_DATA(out))[j] = <float>value
        else:
            for j in range(cnp.PyArray_SIZE(out)):
                (<double*>cnp.PyArray_DATA(out))[j] = value
    with nogil:
        copy_window(
            &job, 0, cnp.PyArray_BYTES(a) + from_offset, cnp.PyArray_BYTES(out) + to_offset)
    return out


cdef object pad(tuple v):
    """(self, pad, value)"""
    if type(v[2]) is not int and type(v[2]) is not float:
        return None
    return padded(v[0], v[1], 1, <double>v[2])


cdef object pad_gradient(tuple v):
    """(gradient, pad)"""
    return padded(v[0], v[1], -1, 0)


known("clone", clone)
known("_contiguous", contiguous)
known("roll", roll)
known("roll.self", roll_gradient)
known("flip", flip)
known("flip.self", flip)
known("tril", tril)
known("tril.self", tril)
known("triu", triu)
known("triu.self", triu)
known("stack", stack)
known("repeat", repeat)
known("constant_pad_nd", pad)
known("constant_pad_nd.self", pad_gradient)
