# cython: boundscheck=False, wraparound=False
"""Kernels that join arrays, along a dimension or a new one, with copies of themselves or with margins.

A source is a number of equally long runs of memory, some of which make up its part of a block of the
result. Threads take blocks, which are written from the first to the last, or runs and pieces of runs of
blocks that are long.
"""
cimport numpy as cnp
from libc.math cimport signbit
from libc.stdint cimport int64_t
from libc.string cimport memset

from ..core.array_checks cimport fits, same_dims
from ..core.pool cimport split
from .arrangement cimport find_runs, holds_numbers, is_data
from .kernels cimport is_plain, known

cnp.import_array()

cdef extern from "copying.h":
    void copy "wengert_copy" (char* to, const char* source, Py_ssize_t size) noexcept nogil

cdef extern from "repeats.h":
    void wengert_add_copies_4(
        char* to, const char* data, const int64_t* places, int count, int64_t n) noexcept nogil
    void wengert_add_copies_8(
        char* to, const char* data, const int64_t* places, int count, int64_t n) noexcept nogil

cdef enum:
    PART = 131072      # bytes that a thread takes at a time
    SOURCES = 32       # arrays that are joined by threads at a time
    MOST = 32          # dimensions
    COPIES = 16        # of an element, added up in its own precision
    LEAST = 8          # elements of a row that are worth a call

# Of margins and of lengths that are repeated, so that sums of them stay in range.
cdef int64_t FURTHEST = <int64_t>1 << 40


# Joining -----------------------------------------------------------------------------------------


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
    cdef int64_t i, block = begin // s.per_block, place = begin % s.per_block
    cdef const char* data = s.data + begin * s.step + offset
    cdef char* to = s.to + block * s.block + place * s.length + offset
    for i in range(begin, end):
        copy(to, data, size)
        data += s.step
        to += s.length
        place += 1
        if place == s.per_block:
            place = 0
            to += s.block - s.per_block * s.length


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


# Repeating ---------------------------------------------------------------------------------------


cdef struct Tiling:
    # Copies of a source of so many rows in each dimension; the last has elements.
    int ndim
    int64_t sizes[MOST]
    int64_t repeats[MOST]
    int64_t narrow[MOST]  # bytes of a row of the source
    int64_t wide[MOST]    # bytes of what becomes of it
    const char* data
    char* out
    int64_t per_part
    # Of gradients: rows of the last dimension, pieces of one, and where its copies lie
    int64_t rows, pieces
    int count
    int64_t places[COPIES]


cdef bint describe(
    Tiling* job, tuple repeats, int own, const cnp.npy_intp* shape, int64_t itemsize
):
    """Lay out copies of an array in as few dimensions as will do; False if numbers are unusual."""
    cdef int i, ndim = <int>len(repeats), missing = ndim - own
    cdef int64_t size, times, most = FURTHEST
    if not 0 < ndim <= MOST or missing < 0:
        return False
    job.ndim = 0
    for i in range(ndim):
        size = 1 if i < missing else shape[i - missing]
        if size < 1 or type(repeats[i]) is not int or not 1 <= repeats[i] <= most // size:
            return False
        times = repeats[i]
        most //= size * times
        if job.ndim and job.sizes[job.ndim - 1] == 1:
            job.sizes[job.ndim - 1] = size
            job.repeats[job.ndim - 1] *= times
        elif job.ndim and times == 1:
            job.sizes[job.ndim - 1] *= size
        else:
            job.sizes[job.ndim], job.repeats[job.ndim] = size, times
            job.ndim += 1
    i = job.ndim - 1
    job.narrow[i] = job.wide[i] = itemsize
    while i > 0:
        i -= 1
        job.narrow[i] = job.narrow[i + 1] * job.sizes[i + 1]
        job.wide[i] = job.wide[i + 1] * job.sizes[i + 1] * job.repeats[i + 1]
    return True


cdef void tile(Tiling* job, int dim, const char* data, char* to) noexcept nogil:
    """All rows of a dimension, and all copies of them."""
    cdef int64_t i, done = job.sizes[dim] * job.wide[dim], size = done
    if dim == job.ndim - 1:
        copy(to, data, done)
    else:
        for i in range(job.sizes[dim]):
            tile(job, dim + 1, data + i * job.narrow[dim], to + i * job.wide[dim])
    i = done * job.repeats[dim]
    while done < i:
        # What is there is copied behind itself, twice as much each time while it is at hand.
        copy(to + done, to, min(size, i - done))
        done += size
        if 2 * size <= PART:
            size *= 2


cdef void tile_part(void* data, int64_t part) noexcept nogil:
    """Some rows of the first dimension, in all its copies."""
    cdef Tiling* job = <Tiling*>data
    cdef int64_t begin = part * job.per_part, end = min(begin + job.per_part, job.sizes[0]), i
    cdef int64_t width = job.wide[0]
    cdef char* to = job.out + begin * width
    if job.ndim == 1:
        copy(to, job.data + begin * width, (end - begin) * width)
    else:
        for i in range(begin, end):
            tile(job, 1, job.data + i * job.narrow[0], job.out + i * width)
    for i in range(1, job.repeats[0]):
        copy(to + i * job.sizes[0] * width, to, (end - begin) * width)


cdef object repeat(tuple v):
    """(self, repeats)"""
    cdef Tiling job
    cdef cnp.npy_intp shape[MOST]
    cdef cnp.ndarray a, out
    cdef int i, missing
    if not is_data(v[0]) or type(v[1]) is not tuple:
        return None
    a = <cnp.ndarray>v[0]
    missing = <int>len(<tuple>v[1]) - cnp.PyArray_NDIM(a)
    if not describe(
        &job, <tuple>v[1], cnp.PyArray_NDIM(a), cnp.PyArray_DIMS(a), cnp.PyArray_ITEMSIZE(a)
    ):
        return None
    for i in range(<int>len(<tuple>v[1])):
        shape[i] = (<tuple>v[1])[i]
        if i >= missing:
            shape[i] *= cnp.PyArray_DIM(a, i - missing)
    out = cnp.PyArray_EMPTY(<int>len(<tuple>v[1]), shape, cnp.PyArray_TYPE(a), 0)
    job.data, job.out = cnp.PyArray_BYTES(a), cnp.PyArray_BYTES(out)
    job.per_part = max(<int64_t>1, PART // job.wide[0])
    if job.per_part >= job.sizes[0]:
        with nogil:
            tile(&job, 0, job.data, job.out)
    else:
        with nogil:
            split(tile_part, &job, (job.sizes[0] + job.per_part - 1) // job.per_part)
    return out


cdef void add_part(void* data, int64_t part) noexcept nogil:
    """Some rows of the last dimension, or a piece of one: the sums of their copies."""
    cdef Tiling* job = <Tiling*>data
    cdef int last = job.ndim - 1, d
    cdef int64_t row = part // job.pieces * job.per_part, rest, i
    cdef int64_t offset = part % job.pieces * PART, size = job.sizes[last] * job.wide[last]
    cdef int64_t rows = min(job.per_part, job.rows - row)
    cdef const char* source
    cdef char* to = job.out + row * size + offset
    if job.pieces > 1:
        size = min(<int64_t>PART, size - offset)
    for i in range(row, row + rows):
        source, rest = job.data + offset, i
        for d in range(last - 1, -1, -1):
            source += rest % job.sizes[d] * job.wide[d]
            rest //= job.sizes[d]
        if job.wide[last] == 4:
            wengert_add_copies_4(to, source, job.places, job.count, size // 4)
        else:
            wengert_add_copies_8(to, source, job.places, job.count, size // 8)
        to += size


cdef bint find_copies(Tiling* job) noexcept:
    """Find the places of all copies, in the order in which they lie; False if they are too many."""
    cdef int64_t i, step, old
    cdef int d
    job.count = 1
    job.places[0] = 0
    for d in range(job.ndim - 1, -1, -1):
        if job.repeats[d] > COPIES // job.count:
            return False
        step, old = job.sizes[d] * job.wide[d], job.count
        for i in range(old, old * job.repeats[d]):
            job.places[i] = job.places[i - old] + step
        job.count = <int>(old * job.repeats[d])
    return True


cdef object repeat_gradient(tuple v):
    """(gradient, shape, repeats): the sum of all copies of each element."""
    cdef Tiling job
    cdef cnp.npy_intp shape[MOST]
    cdef cnp.ndarray g, out
    cdef int i, ndim
    cdef int64_t size
    if not is_plain(v[0]) or type(v[1]) is not tuple or type(v[2]) is not tuple:
        return None
    g, ndim = <cnp.ndarray>v[0], <int>len(<tuple>v[1])
    if ndim > MOST:
        return None
    for i in range(ndim):
        shape[i] = (<tuple>v[1])[i]
    if not describe(&job, <tuple>v[2], ndim, shape, cnp.PyArray_ITEMSIZE(g)):
        return None
    size = job.sizes[job.ndim - 1]
    if size < LEAST or not find_copies(&job) or job.count == 1:
        return None
    out = cnp.PyArray_EMPTY(ndim, shape, cnp.PyArray_TYPE(g), 0)
    if cnp.PyArray_SIZE(out) * job.count != cnp.PyArray_SIZE(g):
        return None
    job.data, job.out = cnp.PyArray_BYTES(g), cnp.PyArray_BYTES(out)
    job.rows = cnp.PyArray_SIZE(out) // size
    size *= cnp.PyArray_ITEMSIZE(g)
    job.per_part = max(<int64_t>1, PART // size)
    job.pieces = (size + PART - 1) // PART
    with nogil:
        split(add_part, &job, (job.rows + job.per_part - 1) // job.per_part * job.pieces)
    return out


# Padding -----------------------------------------------------------------------------------------


cdef struct Window:
    # What is copied of each dimension, and bytes from one row of it to the next in both arrays.
    int ndim
    int64_t sizes[MOST]
    int64_t from_steps[MOST]
    int64_t to_steps[MOST]
    # Bytes of the result before and after what is copied.
    int64_t before[MOST]
    int64_t after[MOST]
    const char* data
    char* out
    int64_t rows, per_part
    bint is_double
    double value


cdef inline void fill(Window* job, char* to, int64_t size) noexcept nogil:
    cdef int64_t i
    if size > 64 and job.value == 0 and not signbit(job.value):
        memset(to, 0, size)
    elif job.is_double:
        for i in range(size // 8):
            (<double*>to)[i] = job.value
    else:
        for i in range(size // 4):
            (<float*>to)[i] = <float>job.value


cdef void pad_rows(Window* job, int dim, const char* data, char* to) noexcept nogil:
    """All rows of a dimension, with the margins around them."""
    cdef int64_t i, size = job.sizes[dim] * job.to_steps[dim]
    fill(job, to, job.before[dim])
    to += job.before[dim]
    if dim == job.ndim - 1:
        copy(to, data, size)
    else:
        for i in range(job.sizes[dim]):
            pad_rows(job, dim + 1, data + i * job.from_steps[dim], to + i * job.to_steps[dim])
    fill(job, to + size, job.after[dim])


cdef void pad_part(void* data, int64_t part) noexcept nogil:
    """Some rows of the first dimension, of its margins too."""
    cdef Window* job = <Window*>data
    cdef int64_t i = part * job.per_part, end = min(i + job.per_part, job.rows)
    cdef int64_t step = job.to_steps[0], first = job.before[0] // step
    while i < end:
        if first <= i < first + job.sizes[0]:
            pad_rows(job, 1, job.data + (i - first) * job.from_steps[0], job.out + i * step)
        else:
            fill(job, job.out + i * step, step)
        i += 1


cdef object padded(object x, object pad, int sign, double value):
    """Margins added to dimensions from the last on, or taken away where they are negative."""
    cdef Window job
    cdef cnp.npy_intp shape[MOST]
    cdef cnp.ndarray a, out
    cdef int i, ndim, count
    cdef int64_t before, after, kept, offset = 0, from_step, to_step
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
        job.sizes[i], job.from_steps[i], job.to_steps[i] = kept, from_step, to_step
        job.before[i], job.after[i] = max(before, 0) * to_step, max(after, 0) * to_step
        offset -= min(before, 0) * from_step
        from_step *= cnp.PyArray_DIM(a, i)
        to_step *= shape[i]
    out = cnp.PyArray_EMPTY(ndim, shape, cnp.PyArray_TYPE(a), 0)
    job.data, job.out = cnp.PyArray_BYTES(a) + offset, cnp.PyArray_BYTES(out)
    job.value, job.is_double = value, cnp.PyArray_TYPE(a) == cnp.NPY_DOUBLE
    job.ndim, job.rows = ndim, shape[0]
    job.per_part = max(<int64_t>1, PART // job.to_steps[0])
    if ndim == 1 or job.per_part >= job.rows:
        pad_rows(&job, 0, job.data, job.out)
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


known("split.self", cut_gradient)
known("split_with_sizes.self", cut_gradient)
known("unbind.self", unbind_gradient)
known("_cat", cat)
known("stack", stack)
known("repeat", repeat)
known("repeat.self", repeat_gradient)
known("constant_pad_nd", pad)
known("constant_pad_nd.self", pad_gradient)
