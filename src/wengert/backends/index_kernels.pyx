# cython: boundscheck=False, wraparound=False
"""Kernels of indexing: rows at indices and masks; with gradients.

Indices that are not there are not theirs to complain of: they answer None.
"""
cimport numpy as cnp
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from ..core.array_checks cimport empty_like, fits, same_dims
from ..core.pool cimport split
from .arrangement cimport measure_around
from .indices cimport is_data, is_index, new_of, within
from .kernels cimport is_plain, known, span

cnp.import_array()

cdef enum:
    PART = 32768       # elements that a thread takes at a time
    QUICK = 4096       # elements below which the interpreter's lock is kept
    WIDE = 32          # elements of rows that several threads add up
    BLOCKS = 8         # of rows that threads add to

ctypedef fused real:
    float
    double


cdef bint is_mask(object value) noexcept:
    """Whether a value is a contiguous array of bools; any byte but zero may be a true one."""
    return (
        cnp.PyArray_CheckExact(value) and cnp.PyArray_TYPE(<cnp.ndarray>value) == cnp.NPY_BOOL
        and cnp.PyArray_ISCARRAY_RO(<cnp.ndarray>value)
    )


# Rows at indices ---------------------------------------------------------------------------------


cdef struct Rows:
    # `outer` blocks of `count` rows of `width` bytes, of which `taken` are at the places of `index`.
    const char* data
    char* out
    const int64_t* index
    int64_t outer, count, taken, width, per_part
    int64_t skipped


cdef void take_part(void* data, int64_t part) noexcept nogil:
    cdef Rows* job = <Rows*>data
    cdef int64_t i = part * job.per_part, end = i + job.per_part, at, width = job.width
    cdef const char* source
    cdef char* to = job.out + i * width
    if end > job.outer * job.taken:
        end = job.outer * job.taken
    while i < end:
        at = job.index[i % job.taken]
        if at < 0:
            at += job.count
        source = job.data + (i // job.taken * job.count + at) * width
        if width == 4:
            (<uint32_t*>to)[0] = (<const uint32_t*>source)[0]
        elif width == 8:
            (<uint64_t*>to)[0] = (<const uint64_t*>source)[0]
        else:
            memcpy(to, source, width)
        to += width
        i += 1


cdef bint describe(Rows* job, cnp.ndarray x, int dim) noexcept:
    measure_around(x, dim, dim, &job.outer, &job.count, &job.width)
    job.width *= cnp.PyArray_ITEMSIZE(x)
    job.data = cnp.PyArray_BYTES(x)
    return job.width > 0


cdef object taken(object source, object dim, object places, bint negative):
    """The rows at indices of a dimension, in the shape of the indices."""
    cdef Rows job
    cdef cnp.npy_intp shape[64]
    cdef cnp.ndarray x, index, out
    cdef int first, last, i, ndim = 0
    if not is_data(source) or not is_index(places):
        return None
    x, index = <cnp.ndarray>source, <cnp.ndarray>places
    if not span(dim, cnp.PyArray_NDIM(x), &first, &last) or cnp.PyArray_NDIM(index) > 30:
        return None
    if not describe(&job, x, first) or not within(index, -job.count if negative else 0, job.count):
        return None
    for i in range(cnp.PyArray_NDIM(x)):
        if i != first:
            shape[ndim] = cnp.PyArray_DIM(x, i)
            ndim += 1
        else:
            for last in range(cnp.PyArray_NDIM(index)):
                shape[ndim] = cnp.PyArray_DIM(index, last)
                ndim += 1
    if ndim > 32:
        return None
    out = cnp.PyArray_EMPTY(ndim, shape, cnp.PyArray_TYPE(x), 0)
    job.taken = cnp.PyArray_SIZE(index)
    if job.taken * job.outer == 0:
        return out
    job.index = <const int64_t*>cnp.PyArray_DATA(index)
    job.out = cnp.PyArray_BYTES(out)
    job.per_part = max(1, 4 * PART // job.width)
    if job.outer * job.taken * job.width < 4 * QUICK:
        job.per_part = job.outer * job.taken
        take_part(&job, 0)
    else:
        with nogil:
            split(take_part, &job, (job.outer * job.taken + job.per_part - 1) // job.per_part)
    return out


cdef object index_select(tuple v):
    if type(v[1]) is not int or not cnp.PyArray_CheckExact(v[2]):
        return None
    return taken(v[0], v[1], v[2], False) if cnp.PyArray_NDIM(<cnp.ndarray>v[2]) == 1 else None


cdef object embedding(tuple v):
    if not cnp.PyArray_CheckExact(v[0]) or cnp.PyArray_NDIM(<cnp.ndarray>v[0]) != 2:
        return None
    if v[4]:  # sparse gradients are refused
        return None
    return taken(v[0], 0, v[1], False)


cdef void add_loop(real* out, const real* values, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        out[i] += values[i]


cdef void scaled_add_loop(real* out, const real* values, real factor, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        out[i] += factor * values[i]


cdef struct Adding:
    # Blocks of `count` rows of `width` elements, of which a part has `block` rows of each.
    char* out
    const char* values
    const char* start  # what rows are added to, NULL for zeros
    const int64_t* index
    int64_t outer, count, taken, width, block, skipped
    double factor
    bint is_double


cdef void add_all(
    Adding* job, real* out, const real* values, const real* start, int64_t begin, int64_t end
) noexcept nogil:
    """Add rows at indices from `begin` to `end`, in order; those of one index are left out."""
    cdef int64_t i, j, at, width = job.width
    cdef real factor = <real>job.factor
    for i in range(job.outer):
        if start != NULL:
            memcpy(
                out + begin * width, start + (i * job.count + begin) * width,
                (end - begin) * width * sizeof(real))
        else:
            memset(out + begin * width, 0, (end - begin) * width * sizeof(real))
        for j in range(job.taken):
            at = job.index[j]
            if at < 0:
                at += job.count
            if at != job.skipped and begin <= at < end:
                if width == 1:
                    out[at] += factor * values[j]
                elif factor == 1:
                    add_loop(out + at * width, values + j * width, width)
                else:
                    scaled_add_loop(out + at * width, values + j * width, factor, width)
        out += job.count * width
        values += job.taken * width


cdef void add_part(void* data, int64_t part) noexcept nogil:
    cdef Adding* job = <Adding*>data
    cdef int64_t begin = part * job.block, end = min(begin + job.block, job.count)
    if job.is_double:
        add_all[double](
            job, <double*>job.out, <const double*>job.values, <const double*>job.start, begin, end)
    else:
        add_all[float](
            job, <float*>job.out, <const float*>job.values, <const float*>job.start, begin, end)


cdef bint added(
    cnp.ndarray out, int dim, cnp.ndarray index, cnp.ndarray values, int64_t skipped, double factor,
    const char* start
) noexcept:
    """Make an array what lies at `start`, or zeros if that is NULL, with rows of values added;
    False if there are not as many."""
    cdef Rows rows
    cdef Adding job
    cdef int64_t n = cnp.PyArray_SIZE(index)
    if not describe(&rows, out, dim):
        return False
    job.width = rows.width // cnp.PyArray_ITEMSIZE(out)
    if cnp.PyArray_SIZE(values) != rows.outer * n * job.width:
        return False
    job.out, job.values, job.start = cnp.PyArray_BYTES(out), cnp.PyArray_BYTES(values), start
    job.index = <const int64_t*>cnp.PyArray_DATA(index)
    job.outer, job.count, job.taken = rows.outer, rows.count, n
    job.skipped, job.factor = skipped, factor
    job.is_double = cnp.PyArray_TYPE(out) == cnp.NPY_DOUBLE
    job.block = job.count
    # Each part looks at all indices: wide rows make that worth while.
    if cnp.PyArray_SIZE(out) + cnp.PyArray_SIZE(values) > 2 * PART and job.width >= WIDE:
        job.block = (job.count + BLOCKS - 1) // BLOCKS
    with nogil:
        split(add_part, &job, (job.count + job.block - 1) // job.block)
    return True


cdef object summed_rows(
    object gradient, object size, object dim, object places, int64_t skipped, bint negative
):
    """Zeros of a size with the rows of a gradient added at indices."""
    cdef int first, last
    cdef cnp.ndarray out
    cdef int64_t count
    if not is_plain(gradient) or not is_index(places) or type(size) is not tuple:
        return None
    if not span(dim, <int>len(<tuple>size), &first, &last):
        return None
    count = (<tuple>size)[first]
    if not within(<cnp.ndarray>places, -count if negative else 0, count):
        return None
    out = new_of(<tuple>size, cnp.PyArray_TYPE(<cnp.ndarray>gradient))
    if out is None or not added(
        out, first, <cnp.ndarray>places, <cnp.ndarray>gradient, skipped, 1, NULL
    ):
        return None
    return out


cdef object index_select_gradient(tuple v):
    """(gradient, shape, dim, index)"""
    return summed_rows(v[0], v[1], v[2], v[3], -1, False) if type(v[2]) is int else None


cdef object embedding_gradient(tuple v):
    """(gradient, shape, indices, padding_idx, scale_grad_by_freq)"""
    if v[4]:
        return None
    return summed_rows(v[0], v[1], 0, v[2], v[3], False)


cdef object index_add(tuple v):
    """(self, dim, index, source, alpha)"""
    cdef int first, last, i
    cdef cnp.ndarray x, out, source
    if not is_plain(v[0]) or not is_plain(v[3]) or not is_index(v[2]) or type(v[1]) is not int:
        return None
    if type(v[4]) is not int and type(v[4]) is not float:
        return None
    x, source = <cnp.ndarray>v[0], <cnp.ndarray>v[3]
    if (
        cnp.PyArray_TYPE(x) != cnp.PyArray_TYPE(source)
        or cnp.PyArray_NDIM(x) != cnp.PyArray_NDIM(source)
        or cnp.PyArray_NDIM(<cnp.ndarray>v[2]) != 1
        or not span(v[1], cnp.PyArray_NDIM(x), &first, &last)
        or cnp.PyArray_DIM(source, first) != cnp.PyArray_SIZE(<cnp.ndarray>v[2])
        or not within(<cnp.ndarray>v[2], 0, cnp.PyArray_DIM(x, first))
        or not fits(<double>v[4], cnp.PyArray_TYPE(x))
    ):
        return None
    for i in range(cnp.PyArray_NDIM(x)):
        if i != first and cnp.PyArray_DIM(x, i) != cnp.PyArray_DIM(source, i):
            return None
    out = empty_like(x)
    if added(
        out, first, <cnp.ndarray>v[2], source, -1, <double>v[4], cnp.PyArray_BYTES(x)
    ):
        return out
    return None


cdef object index_add_gradient(tuple v):
    """(gradient, dim, index, source_shape, alpha)"""
    if v[4] != 1 or type(v[1]) is not int:
        return None
    out = taken(v[0], v[1], v[2], False)
    return out if out is not None and out.shape == v[3] else None


# x[index] ----------------------------------------------------------------------------------------


cdef object only_index(object indices, int* dim):
    """The one index among those of several dimensions, and which it is of."""
    cdef object found = None
    cdef int i = 0
    if type(indices) is not list:
        return None
    for value in <list>indices:
        if value is not None:
            if found is not None:
                return None
            found = value
            dim[0] = i
        i += 1
    return found


cdef object index(tuple v):
    """(self, indices)"""
    cdef int dim = 0
    places = only_index(v[1], &dim)
    if places is None:
        return None
    if is_mask(places):
        return picked(v[0], places) if dim == 0 else None
    return taken(v[0], dim, places, True)


cdef object index_gradient(tuple v):
    """(gradient, shape, indices)"""
    cdef int dim = 0
    places = only_index(v[2], &dim)
    if places is None:
        return None
    if is_mask(places):
        return unpicked(v[0], v[1], places) if dim == 0 else None
    return summed_rows(v[0], v[1], dim, places, -1, True)


cdef object picked(object x, object mask):
    """The elements where a mask of the same shape is true."""
    cdef cnp.ndarray a, m, out
    cdef cnp.npy_intp count = 0
    cdef Py_ssize_t i, n, j = 0
    cdef const char* chosen
    if not is_data(x) or not is_mask(mask) or not same_dims(<cnp.ndarray>x, <cnp.ndarray>mask):
        return None
    a, m = <cnp.ndarray>x, <cnp.ndarray>mask
    if cnp.PyArray_ITEMSIZE(a) != 4 and cnp.PyArray_ITEMSIZE(a) != 8:
        return None
    chosen, n = cnp.PyArray_BYTES(m), cnp.PyArray_SIZE(m)
    for i in range(n):
        count += chosen[i] != 0
    out = cnp.PyArray_EMPTY(1, &count, cnp.PyArray_TYPE(a), 0)
    if count == 0:
        return out
    with nogil:
        # Every element is written, and the next over it unless it was chosen; the last place is safe.
        if cnp.PyArray_ITEMSIZE(a) == 4:
            for i in range(n):
                if j == count:
                    break
                (<uint32_t*>cnp.PyArray_DATA(out))[j] = (<uint32_t*>cnp.PyArray_DATA(a))[i]
                j += chosen[i] != 0
        else:
            for i in range(n):
                if j == count:
                    break
                (<uint64_t*>cnp.PyArray_DATA(out))[j] = (<uint64_t*>cnp.PyArray_DATA(a))[i]
                j += chosen[i] != 0
    return out


cdef object unpicked(object gradient, object size, object mask):
    """Zeros with the elements of a gradient where a mask is true."""
    cdef cnp.ndarray g, m, out
    cdef Py_ssize_t i, n, j = 0, count = 0
    cdef const char* chosen
    if not is_plain(gradient) or not is_mask(mask) or type(size) is not tuple:
        return None
    g, m = <cnp.ndarray>gradient, <cnp.ndarray>mask
    chosen, n = cnp.PyArray_BYTES(m), cnp.PyArray_SIZE(m)
    for i in range(n):
        count += chosen[i] != 0
    if cnp.PyArray_NDIM(g) != 1 or count != cnp.PyArray_SIZE(g):
        return None
    if cnp.PyArray_NDIM(m) != len(<tuple>size):
        return None
    for i in range(cnp.PyArray_NDIM(m)):
        if cnp.PyArray_DIM(m, <int>i) != (<tuple>size)[i]:
            return None
    out = cnp.PyArray_EMPTY(cnp.PyArray_NDIM(m), cnp.PyArray_DIMS(m), cnp.PyArray_TYPE(g), 0)
    with nogil:
        if cnp.PyArray_TYPE(g) == cnp.NPY_FLOAT:
            for i in range(n):
                (<float*>cnp.PyArray_DATA(out))[i] = (
                    (<float*>cnp.PyArray_DATA(g))[j] if chosen[i] else 0)
                j += chosen[i] != 0
        else:
            for i in range(n):
                (<double*>cnp.PyArray_DATA(out))[i] = (
                    (<double*>cnp.PyArray_DATA(g))[j] if chosen[i] else 0)
                j += chosen[i] != 0
    return out


cdef object masked_select(tuple v):
    return picked(v[0], v[1])


cdef object masked_select_gradient(tuple v):
    """(gradient, shape, mask)"""
    return unpicked(v[0], v[1], v[2])


cdef struct Filling:
    const char* x
    const char* mask
    char* out
    int64_t size
    double value
    bint is_double


cdef void fill_loop(
    const real* x, const char* mask, real* out, real value, int64_t n
) noexcept nogil:
    cdef int64_t i
    cdef real kept
    for i in range(n):
        kept = x[i]  # read in any case, so that there is no branch
        out[i] = value if mask[i] else kept


cdef void fill_part(void* data, int64_t part) noexcept nogil:
    cdef Filling* job = <Filling*>data
    cdef int64_t i = part * PART, n = min(PART, job.size - i)
    if job.is_double:
        fill_loop[double](
            <const double*>job.x + i, job.mask + i, <double*>job.out + i, job.value, n)
    else:
        fill_loop[float](
            <const float*>job.x + i, job.mask + i, <float*>job.out + i, <float>job.value, n)


cdef object filled(object x, object mask, double value):
    cdef Filling job
    cdef cnp.ndarray a, out
    if not is_plain(x) or not is_mask(mask) or not same_dims(<cnp.ndarray>x, <cnp.ndarray>mask):
        return None
    a = <cnp.ndarray>x
    if not fits(value, cnp.PyArray_TYPE(a)):
        return None
    out = empty_like(a)
    job.x, job.mask = cnp.PyArray_BYTES(a), cnp.PyArray_BYTES(<cnp.ndarray>mask)
    job.out, job.size, job.value = cnp.PyArray_BYTES(out), cnp.PyArray_SIZE(a), value
    job.is_double = cnp.PyArray_TYPE(a) == cnp.NPY_DOUBLE
    if job.size <= PART:
        fill_part(&job, 0)
    else:
        with nogil:
            split(fill_part, &job, (job.size + PART - 1) // PART)
    return out


cdef object masked_fill(tuple v):
    """(self, mask, value)"""
    if type(v[2]) is float or type(v[2]) is int and -(1 << 24) < v[2] < 1 << 24:
        return filled(v[0], v[1], <double>v[2])
    return None


cdef object masked_fill_gradient(tuple v):
    """(gradient, mask)"""
    return filled(v[0], v[1], 0)


known("index_select", index_select)
known("index_select.self", index_select_gradient)
known("embedding", embedding)
known("embedding.weight", embedding_gradient)
known("index_add", index_add)
known("index_add.source", index_add_gradient)
known("index", index)
known("index.self", index_gradient)
known("_index_backward", index_gradient)
known("masked_select", masked_select)
known("masked_select.self", masked_select_gradient)
known("masked_fill", masked_fill)
known("masked_fill.self", masked_fill_gradient)
