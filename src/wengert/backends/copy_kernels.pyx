# cython: boundscheck=False, wraparound=False
"""Kernels of copies in another arrangement, with those of their gradients."""
cimport numpy as cnp
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memset

from ..core.array_checks cimport empty_like
from ..core.pool cimport split, work_t
from .arrangement cimport find_runs, is_data, measure_around
from .kernels cimport known, span

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

# Of diagonals, so that sums of them stay in range.
cdef int64_t FURTHEST = <int64_t>1 << 40


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
