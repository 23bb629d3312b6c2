# cython: boundscheck=False, wraparound=False
"""Kernels of copies in another arrangement, with those of their gradients."""
cimport numpy as cnp
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.math cimport signbit
from libc.string cimport memset

from ..core.array_checks cimport empty_like, fits
from ..core.pool cimport split, work_t
from .arrangement cimport find_runs, holds_numbers, measure_around
from .kernels cimport is_plain, known, span

cnp.import_array()

cdef extern from "copying.h":
    void copy "wengert_copy" (char* to, const char* source, Py_ssize_t size) noexcept nogil

cdef extern from "turning.h":
    void wengert_reverse_1(char* to, const char* source, Py_ssize_t n) noexcept nogil
    void wengert_reverse_2(char* to, const char* source, Py_ssize_t n) noexcept nogil
    void wengert_reverse_4(char* to, const char* source, Py_ssize_t n) noexcept nogil
    void wengert_reverse_8(char* to, const char* source, Py_ssize_t n) noexcept nogil
    void wengert_turn_4(
        const char* data, Py_ssize_t step, char* out, Py_ssize_t columns, Py_ssize_t top,
        Py_ssize_t bottom, Py_ssize_t left, Py_ssize_t right) noexcept nogil
    void wengert_turn_8(
        const char* data, Py_ssize_t step, char* out, Py_ssize_t columns, Py_ssize_t top,
        Py_ssize_t bottom, Py_ssize_t left, Py_ssize_t right) noexcept nogil

cdef enum:
    TILE = 32          # rows and columns that are turned at a time
    PART = 131072      # bytes that a thread takes at a time
    LEAST = 32         # bytes of a row that are worth a call
    MOST = 16          # dimensions

# Of margins, diagonals and lengths that are repeated, so that sums of them stay in range.
cdef int64_t FURTHEST = <int64_t>1 << 40


cdef bint is_data(object value) noexcept:
    """Whether a value is a contiguous array of numbers with some elements."""
    return (
        holds_numbers(value)
        and cnp.PyArray_ISCARRAY_RO(<cnp.ndarray>value)
        and cnp.PyArray_SIZE(<cnp.ndarray>value) > 0
    )


# Copies ------------------------------------------------------------------------------------------


cdef struct Copy:
    # `rows` of `length` bytes, which lie some steps apart; what else there is, a kernel knows
    const char* data
    char* out
    int64_t rows, length, from_row, to_row, columns, itemsize, from_column, per_part
    int64_t shift, rows_of_block
    bint lower


cdef void share_out(Copy* job, work_t work) noexcept:
    """Have threads do parts of so many rows that the bytes of a result pay."""
    cdef int64_t parts
    job.per_part = max(<int64_t>1, PART // max(<int64_t>1, job.to_row))
    parts = (job.rows + job.per_part - 1) // job.per_part
    if parts == 1:
        work(job, 0)
        return
    with nogil:
        split(work, job, parts)


cdef void copy_part(void* data, int64_t part) noexcept nogil:
    cdef Copy* job = <Copy*>data
    cdef int64_t i = part * job.per_part, end = min(i + job.per_part, job.rows)
    while i < end:
        copy(job.out + i * job.to_row, job.data + i * job.from_row, job.length)
        i += 1


cdef void bytes_part(void* data, int64_t part) noexcept nogil:
    cdef Copy* job = <Copy*>data
    cdef int64_t begin = part * PART
    copy(job.out + begin, job.data + begin, min(<int64_t>PART, job.length - begin))


cdef void copy_bytes(char* out, const char* data, int64_t size) noexcept:
    cdef Copy job
    if size <= PART:
        copy(out, data, size)
        return
    job.data, job.out, job.length = data, out, size
    with nogil:
        split(bytes_part, &job, (size + PART - 1) // PART)


cdef cnp.ndarray copied(cnp.ndarray x):
    cdef cnp.ndarray out = empty_like(x)
    copy_bytes(cnp.PyArray_BYTES(out), cnp.PyArray_BYTES(x), cnp.PyArray_NBYTES(x))
    return out


cdef object clone(tuple v):
    return copied(<cnp.ndarray>v[0]) if is_data(v[0]) else None


cdef void turn_part(void* data, int64_t part) noexcept nogil:
    """Some rows of a matrix whose columns lie behind one another, tile by tile."""
    cdef Copy* job = <Copy*>data
    cdef int64_t top = part * TILE, bottom = min(top + TILE, job.rows), left = 0, right, i, j
    cdef bint by_columns = job.from_row == job.itemsize and job.from_column % job.itemsize == 0
    while left < job.columns:
        right = min(left + TILE, job.columns)
        if by_columns and job.itemsize == 4:
            wengert_turn_4(
                job.data, job.from_column // 4, job.out, job.columns, top, bottom, left, right)
        elif by_columns:
            wengert_turn_8(
                job.data, job.from_column // 8, job.out, job.columns, top, bottom, left, right)
        elif job.itemsize == 4:
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


cdef bint lies_in_rows(cnp.ndarray x, Copy* job) noexcept:
    """Whether an array is a number of contiguous rows that lie one step apart."""
    if not find_runs(x, &job.rows, &job.length, &job.from_row) or job.length < LEAST:
        return False
    job.to_row = job.length
    return True


cdef struct Runs:
    # Runs of `length` elements, contiguous or one element repeated, at places that lie in dimensions.
    const char* data
    char* out
    int64_t rows, length, itemsize, per_part
    int ndim
    bint repeats
    int64_t dims[MOST]
    int64_t steps[MOST]


cdef inline void repeat_element(
    char* to, const char* source, int64_t count, int64_t itemsize
) noexcept nogil:
    cdef int64_t i
    cdef uint32_t short_one
    cdef uint64_t long_one
    if itemsize == 4:
        short_one = (<const uint32_t*>source)[0]
        for i in range(count):
            (<uint32_t*>to)[i] = short_one
    else:
        long_one = (<const uint64_t*>source)[0]
        for i in range(count):
            (<uint64_t*>to)[i] = long_one


cdef void fill_part(void* data, int64_t part) noexcept nogil:
    cdef Runs* job = <Runs*>data
    cdef int64_t begin = part * PART
    repeat_element(
        job.out + begin, job.data, min(PART, job.length * job.itemsize - begin) // job.itemsize,
        job.itemsize)


cdef void run_part(void* data, int64_t part) noexcept nogil:
    cdef Runs* job = <Runs*>data
    cdef int64_t row = part * job.per_part, end = min(row + job.per_part, job.rows), rest = row
    cdef int64_t size = job.length * job.itemsize
    cdef int64_t at[MOST]
    cdef const char* source = job.data
    cdef char* to = job.out + row * size
    cdef int d
    for d in range(job.ndim - 1, -1, -1):
        at[d] = rest % job.dims[d]
        rest //= job.dims[d]
        source += at[d] * job.steps[d]
    while row < end:
        if not job.repeats:
            copy(to, source, size)
        else:
            repeat_element(to, source, job.length, job.itemsize)
        to += size
        row += 1
        d = job.ndim - 1
        while d >= 0:
            source += job.steps[d]
            at[d] += 1
            if at[d] < job.dims[d]:
                break
            source -= job.steps[d] * job.dims[d]
            at[d] = 0
            d -= 1


cdef object in_runs(cnp.ndarray x):
    """A copy in row-major order of an array whose last dimensions are contiguous or repeat an
    element; None if they are not, or too short to be worth it."""
    cdef Runs job
    cdef cnp.ndarray out
    cdef int d = cnp.PyArray_NDIM(x) - 1
    cdef int64_t step
    job.itemsize = cnp.PyArray_ITEMSIZE(x)
    while d >= 0 and cnp.PyArray_DIM(x, d) == 1:
        d -= 1
    if d < 0 or d >= MOST:
        return None
    step = cnp.PyArray_STRIDE(x, d)
    job.repeats = step == 0
    if step != 0 and step != job.itemsize:
        return None
    job.length = 1
    while d >= 0 and (
        cnp.PyArray_DIM(x, d) == 1
        or cnp.PyArray_STRIDE(x, d) == (0 if job.repeats else job.length * job.itemsize)
    ):
        job.length *= cnp.PyArray_DIM(x, d)
        d -= 1
    if job.length * job.itemsize < LEAST:
        return None
    job.rows, job.ndim = 1, d + 1
    while d >= 0:
        job.dims[d], job.steps[d] = cnp.PyArray_DIM(x, d), cnp.PyArray_STRIDE(x, d)
        job.rows *= job.dims[d]
        d -= 1
    out = empty_like(x)
    job.data, job.out = cnp.PyArray_BYTES(x), cnp.PyArray_BYTES(out)
    if job.ndim == 0:
        # One element everywhere, of which threads share the repetitions.
        with nogil:
            split(fill_part, &job, (job.length * job.itemsize + PART - 1) // PART)
        return out
    job.per_part = max(<int64_t>1, PART // (job.length * job.itemsize))
    if job.rows <= job.per_part:
        job.per_part = job.rows
        run_part(&job, 0)
    else:
        with nogil:
            split(run_part, &job, (job.rows + job.per_part - 1) // job.per_part)
    return out


cdef object contiguous(tuple v):
    """A copy in row-major order, of a matrix that is turned or of rows with gaps between them."""
    cdef Copy job
    cdef cnp.ndarray x, out
    cdef int kind
    if is_data(v[0]):
        return copied(<cnp.ndarray>v[0])
    if not cnp.PyArray_CheckExact(v[0]):
        return None
    x = <cnp.ndarray>v[0]
    kind = cnp.PyArray_TYPE(x)
    if kind >= cnp.NPY_OBJECT or not cnp.PyArray_ISBEHAVED_RO(x) or cnp.PyArray_SIZE(x) == 0:
        return None
    if lies_in_rows(x, &job):
        out = empty_like(x)
        job.data, job.out = cnp.PyArray_BYTES(x), cnp.PyArray_BYTES(out)
        share_out(&job, copy_part)
        return out
    job.itemsize = cnp.PyArray_ITEMSIZE(x)
    if job.itemsize != 4 and job.itemsize != 8:
        return None
    out = in_runs(x)
    if out is not None:
        return out
    if cnp.PyArray_NDIM(x) != 2:
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
    measure_around(x, dim, dim, outer, count, width)
    width[0] *= cnp.PyArray_ITEMSIZE(x)


cdef void roll_part(void* data, int64_t part) noexcept nogil:
    cdef Copy* job = <Copy*>data
    cdef int64_t i = part * job.per_part, end = min(i + job.per_part, job.rows)
    cdef const char* row
    cdef char* to
    while i < end:
        row, to = job.data + i * job.length, job.out + i * job.length
        copy(to, row + job.length - job.shift, job.shift)
        copy(to + job.shift, row, job.length - job.shift)
        i += 1


cdef object rolled(object x, object shifts, object dims, int sign):
    cdef Copy job
    cdef cnp.ndarray a, out
    cdef int first = 0, last
    cdef int64_t outer, count, width
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
    job.shift = (sign * (<tuple>shifts)[0]) % count
    job.shift *= width
    job.rows, job.length = outer, count * width
    job.to_row = job.length
    out = empty_like(a)
    job.data, job.out = cnp.PyArray_BYTES(a), cnp.PyArray_BYTES(out)
    if outer == 1:
        copy_bytes(job.out, job.data + job.length - job.shift, job.shift)
        copy_bytes(job.out + job.shift, job.data, job.length - job.shift)
    else:
        share_out(&job, roll_part)
    return out


cdef object roll(tuple v):
    return rolled(v[0], v[1], v[2], 1)


cdef object roll_gradient(tuple v):
    return rolled(v[0], v[1], v[2], -1)


cdef inline void reverse(
    char* to, const char* source, int64_t n, int64_t itemsize
) noexcept nogil:
    if itemsize == 4:
        wengert_reverse_4(to, source, n)
    elif itemsize == 8:
        wengert_reverse_8(to, source, n)
    elif itemsize == 2:
        wengert_reverse_2(to, source, n)
    else:
        wengert_reverse_1(to, source, n)


cdef void reverse_rows(void* data, int64_t part) noexcept nogil:
    cdef Copy* job = <Copy*>data
    cdef int64_t i = part * job.per_part, end = min(i + job.per_part, job.rows)
    while i < end:
        reverse(
            job.out + i * job.to_row, job.data + i * job.to_row, job.columns, job.itemsize)
        i += 1


cdef void reverse_piece(void* data, int64_t part) noexcept nogil:
    """A piece of a single row, whose elements lie as far from its other end."""
    cdef Copy* job = <Copy*>data
    cdef int64_t begin = part * PART, size = min(<int64_t>PART, job.to_row - begin)
    reverse(
        job.out + begin, job.data + job.to_row - begin - size, size // job.itemsize, job.itemsize)


cdef void flip_part(void* data, int64_t part) noexcept nogil:
    """Rows of blocks, each at the place that the blocks in reverse order have for it."""
    cdef Copy* job = <Copy*>data
    cdef int64_t i = part * job.per_part, end = min(i + job.per_part, job.rows), j
    while i < end:
        j = i % job.rows_of_block
        copy(
            job.out + i * job.length,
            job.data + (i - j + job.rows_of_block - 1 - j) * job.length, job.length)
        i += 1


cdef object flip(tuple v):
    """(self, dims) of one dimension; of the gradient too."""
    cdef Copy job
    cdef cnp.ndarray a, out
    cdef int first, last
    if not is_data(v[0]) or type(v[1]) is not tuple or len(<tuple>v[1]) != 1:
        return None
    a = <cnp.ndarray>v[0]
    if not span(v[1], cnp.PyArray_NDIM(a), &first, &last):
        return None
    shape_of(a, first, &job.rows, &job.rows_of_block, &job.length)
    out = empty_like(a)
    job.data, job.out = cnp.PyArray_BYTES(a), cnp.PyArray_BYTES(out)
    if job.length == 1 or job.length == 2 or job.length == 4 or job.length == 8:
        job.itemsize, job.columns = job.length, job.rows_of_block
        job.to_row = job.columns * job.itemsize
        if job.rows == 1:
            with nogil:
                split(reverse_piece, &job, (job.to_row + PART - 1) // PART)
        else:
            share_out(&job, reverse_rows)
    else:
        job.rows *= job.rows_of_block
        job.to_row = job.length
        share_out(&job, flip_part)
    return out


cdef void triangle_part(void* data, int64_t part) noexcept nogil:
    cdef Copy* job = <Copy*>data
    cdef int64_t i = part * job.per_part, end = min(i + job.per_part, job.rows), edge
    cdef const char* row
    cdef char* to
    while i < end:
        edge = i % job.rows_of_block + job.shift + (1 if job.lower else 0)
        edge = (0 if edge < 0 else job.columns if edge > job.columns else edge) * job.itemsize
        row, to = job.data + i * job.length, job.out + i * job.length
        if job.lower:
            copy(to, row, edge)
            memset(to + edge, 0, job.length - edge)
        else:
            memset(to, 0, edge)
            copy(to + edge, row + edge, job.length - edge)
        i += 1


cdef object triangle(tuple v, bint lower):
    """(self, diagonal); of the gradient too."""
    cdef Copy job
    cdef cnp.ndarray a, out
    cdef int ndim
    if not is_data(v[0]) or type(v[1]) is not int or not -FURTHEST < v[1] < FURTHEST:
        return None
    a = <cnp.ndarray>v[0]
    ndim = cnp.PyArray_NDIM(a)
    if ndim < 2:
        return None
    job.shift, job.lower = v[1], lower
    job.rows_of_block, job.columns = cnp.PyArray_DIM(a, ndim - 2), cnp.PyArray_DIM(a, ndim - 1)
    job.itemsize = cnp.PyArray_ITEMSIZE(a)
    job.rows = cnp.PyArray_SIZE(a) // job.columns
    job.length = job.to_row = job.columns * job.itemsize
    out = empty_like(a)
    job.data, job.out = cnp.PyArray_BYTES(a), cnp.PyArray_BYTES(out)
    share_out(&job, triangle_part)
    return out


cdef object tril(tuple v):
    return triangle(v, True)


cdef object triu(tuple v):
    return triangle(v, False)


# Repeating ---------------------------------------------------------------------------------------


cdef struct Tiling:
    int ndim
    int64_t sizes[MOST]
    int64_t repeats[MOST]
    int64_t widths[MOST]  # bytes of a row of the source
    const char* data
    char* out
    int64_t row  # bytes of a result for one row of the first dimension


cdef int64_t tile(Tiling* job, int dim, const char* data, char* to, int64_t width) noexcept nogil:
    """Write copies of a part side by side; how many bytes that were."""
    cdef int64_t i, written = 0, step
    if dim == job.ndim:
        copy(to, data, width)
        return width
    if dim == job.ndim - 1:
        copy(to, data, job.sizes[dim] * width)
        written = job.sizes[dim] * width
    else:
        step = job.widths[dim]
        for i in range(job.sizes[dim]):
            written += tile(job, dim + 1, data + i * step, to + written, width)
    step = written
    for i in range(1, job.repeats[dim]):
        copy(to + written, to, step)
        written += step
    return written


cdef void tile_part(void* data, int64_t part) noexcept nogil:
    cdef Tiling* job = <Tiling*>data
    tile(job, 1, job.data + part * job.widths[0], job.out + part * job.row, job.widths[job.ndim - 1])


cdef object repeat(tuple v):
    """(self, repeats)"""
    cdef Tiling job
    cdef cnp.npy_intp shape[MOST]
    cdef cnp.ndarray a, out
    cdef int i, own, missing
    cdef int64_t width, whole
    if not is_data(v[0]) or type(v[1]) is not tuple or not 0 < len(<tuple>v[1]) <= MOST:
        return None
    a = <cnp.ndarray>v[0]
    own, job.ndim = cnp.PyArray_NDIM(a), <int>len(<tuple>v[1])
    missing = job.ndim - own
    if missing < 0:
        return None
    for i in range(job.ndim):
        job.sizes[i] = 1 if i < missing else cnp.PyArray_DIM(a, i - missing)
        if type((<tuple>v[1])[i]) is not int or not (
            1 <= (<tuple>v[1])[i] <= FURTHEST // job.sizes[i]
        ):
            return None
        job.repeats[i] = (<tuple>v[1])[i]
        shape[i] = job.sizes[i] * job.repeats[i]
    width = cnp.PyArray_ITEMSIZE(a)
    for i in range(job.ndim - 1, -1, -1):
        job.widths[i] = width
        width *= job.sizes[i]
    out = cnp.PyArray_EMPTY(job.ndim, shape, cnp.PyArray_TYPE(a), 0)
    job.data, job.out = cnp.PyArray_BYTES(a), cnp.PyArray_BYTES(out)
    if job.ndim == 1 or cnp.PyArray_NBYTES(out) <= PART:
        with nogil:
            tile(&job, 0, job.data, job.out, cnp.PyArray_ITEMSIZE(a))
        return out
    whole = cnp.PyArray_NBYTES(out) // job.repeats[0]
    job.row = whole // job.sizes[0]
    with nogil:
        split(tile_part, &job, job.sizes[0])
    for i in range(1, job.repeats[0]):
        copy_bytes(job.out + i * whole, job.out, whole)
    return out


# Padding -----------------------------------------------------------------------------------------


cdef struct Window:
    # Rows of `length` bytes at places in two arrays; strides in bytes for the dimensions before.
    int outer
    int64_t sizes[MOST]
    int64_t from_steps[MOST]
    int64_t to_steps[MOST]
    int64_t length
    # Of the first dimension: rows of the result, its first row that is copied, and what fills them.
    const char* data
    char* out
    int64_t rows, first, offset, per_part
    bint grows, is_double
    double value


cdef void copy_window(Window* job, int dim, const char* data, char* to) noexcept nogil:
    cdef int64_t i
    if dim == job.outer:
        copy(to, data, job.length)
        return
    for i in range(job.sizes[dim]):
        copy_window(job, dim + 1, data + i * job.from_steps[dim], to + i * job.to_steps[dim])


cdef void pad_part(void* data, int64_t part) noexcept nogil:
    """Some rows of the first dimension: fill them, then copy what there is to copy."""
    cdef Window* job = <Window*>data
    cdef int64_t i = part * job.per_part, end = min(i + job.per_part, job.rows), j
    cdef int64_t step = job.to_steps[0]
    cdef char* to = job.out + i * step
    if job.grows:
        if job.value == 0 and not signbit(job.value):
            memset(to, 0, (end - i) * step)
        elif job.is_double:
            for j in range((end - i) * step // 8):
                (<double*>to)[j] = job.value
        else:
            for j in range((end - i) * step // 4):
                (<float*>to)[j] = <float>job.value
    while i < end:
        if 0 <= i - job.first < job.sizes[0]:
            copy_window(
                job, 1, job.data + (i - job.first) * job.from_steps[0],
                job.out + i * step + job.offset)
        i += 1


cdef object padded(object x, object pad, int sign, double value):
    """Margins added to dimensions from the last on, or taken away where they are negative."""
    cdef Window job
    cdef cnp.npy_intp shape[MOST]
    cdef cnp.ndarray a, out
    cdef int i, ndim, count
    cdef int64_t before, after, kept, from_offset = 0, to_offset = 0, from_step, to_step
    cdef bint grows = False
    if not is_plain(x) or type(pad) is not tuple:
        return None
    a = <cnp.ndarray>x
    if not fits(value, cnp.PyArray_TYPE(a)):
        return None
    ndim, count = cnp.PyArray_NDIM(a), <int>len(<tuple>pad) // 2
    if not 0 < ndim <= MOST or count > ndim or len(<tuple>pad) % 2:
        return None
    from_step = to_step = cnp.PyArray_ITEMSIZE(a)
    for i in range(ndim - 1, -1, -1):
        before = after = 0
        if ndim - 1 - i < count:
            first, last = (<tuple>pad)[2 * (ndim - 1 - i)], (<tuple>pad)[2 * (ndim - 1 - i) + 1]
            if type(first) is not int or type(last) is not int or not (
                -FURTHEST < first < FURTHEST and -FURTHEST < last < FURTHEST
            ):
                return None
            before, after = sign * first, sign * last
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
    job.outer = ndim - 1
    out = cnp.PyArray_EMPTY(ndim, shape, cnp.PyArray_TYPE(a), 0)
    job.data, job.out = cnp.PyArray_BYTES(a) + from_offset, cnp.PyArray_BYTES(out)
    job.grows, job.value, job.is_double = grows, value, cnp.PyArray_TYPE(a) == cnp.NPY_DOUBLE
    if ndim == 1:
        # A vector is a matrix of one row.
        job.rows = job.sizes[0] = 1
        job.first, job.offset, job.outer = 0, to_offset, 1
        job.from_steps[0], job.to_steps[0] = from_step, to_step
    else:
        job.rows = shape[0]
        job.first, job.offset = to_offset // job.to_steps[0], to_offset % job.to_steps[0]
    job.per_part = max(<int64_t>1, PART // job.to_steps[0])
    if job.per_part >= job.rows:
        pad_part(&job, 0)
        return out
    with nogil:
        split(pad_part, &job, (job.rows + job.per_part - 1) // job.per_part)
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
known("repeat", repeat)
known("constant_pad_nd", pad)
known("constant_pad_nd.self", pad_gradient)
