# cython: boundscheck=False, wraparound=False
"""Kernels of reductions, extrema, scans and softmax, with those of their gradients."""
cimport numpy as cnp
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.math cimport sqrt
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memchr, memcmp, memset

from ..core.array_checks cimport empty_like, same_dims
from .arrangement cimport measure_around
from .kernels cimport is_plain, known, span
from .reductions cimport reduced
from .strips cimport Strips, is_reduced, reduced_like, run, start

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    object PyArray_NewFromDescr(
        type subtype, cnp.dtype descr, int ndim, const cnp.npy_intp* dims,
        const cnp.npy_intp* strides, void* data, int flags, PyObject* obj)

cdef enum:
    SUM, SQUARES, LARGEST, LEAST, PRODUCT

ctypedef fused real:
    float
    double

cdef type ndarray = cnp.ndarray


cdef inline int64_t size_of(cnp.ndarray a, int first, int last) noexcept:
    """How many elements are reduced to one."""
    cdef int64_t size = 1
    cdef int i
    for i in range(first, last + 1):
        size *= cnp.PyArray_DIM(a, i)
    return size


cdef inline object reduction(int kind, object x, object dim, bint keepdim, bint is_mean, bint root):
    cdef int first, last
    cdef cnp.ndarray a
    if not is_plain(x):
        return None
    a = <cnp.ndarray>x
    if not span(dim, cnp.PyArray_NDIM(a), &first, &last):
        return None
    return reduced(kind, a, first, last, keepdim,
                   <double>size_of(a, first, last) if is_mean else 1.0, root)


# Sums, means, products, norms --------------------------------------------------------------------


cdef object sum_all(tuple v):
    return reduction(SUM, v[0], None, False, False, False) if v[1] is None else None


cdef object sum_dims(tuple v):
    return reduction(SUM, v[0], v[1], v[2], False, False) if v[3] is None else None


cdef object sum_to(tuple v):
    """(self, size): a matrix to a row."""
    if (
        not is_plain(v[0]) or cnp.PyArray_NDIM(<cnp.ndarray>v[0]) != 2 or len(<tuple>v[1]) != 1
        or v[1][0] != cnp.PyArray_DIM(<cnp.ndarray>v[0], 1)
    ):
        return None
    return reduction(SUM, v[0], 0, False, False, False)


cdef object mean_all(tuple v):
    return reduction(SUM, v[0], None, False, True, False) if v[1] is None else None


cdef object mean_dims(tuple v):
    return reduction(SUM, v[0], v[1], v[2], True, False) if v[3] is None else None


cdef object amax(tuple v):
    return reduction(LARGEST, v[0], v[1], v[2], False, False)


cdef object amin(tuple v):
    return reduction(LEAST, v[0], v[1], v[2], False, False)


cdef object max_all(tuple v):
    return reduction(LARGEST, v[0], None, False, False, False)


cdef object min_all(tuple v):
    return reduction(LEAST, v[0], None, False, False, False)


cdef object prod_all(tuple v):
    return reduction(PRODUCT, v[0], None, False, False, False) if v[1] is None else None


cdef object prod_dim(tuple v):
    if v[1] is None or v[3] is not None:
        return None
    return reduction(PRODUCT, v[0], v[1], v[2], False, False)


cdef inline bint is_two(object order) noexcept:
    return (type(order) is int or type(order) is float) and order == 2


cdef object vector_norm(tuple v):
    if not is_two(v[1]) or v[4] is not None:
        return None
    return reduction(SQUARES, v[0], v[2], v[3], False, True)


# Gradients that spread one number to all elements it came from ------------------------------------


cdef object spread_over(cnp.ndarray g, tuple shape, int first, int last):
    """A view of a reduced array in which its elements stand for all the reduced ones."""
    cdef cnp.npy_intp dims[32]
    cdef cnp.npy_intp strides[32]
    cdef cnp.npy_intp step = cnp.PyArray_ITEMSIZE(g), size = 1
    cdef int i, ndim = <int>len(shape)
    cdef cnp.dtype descr = g.dtype
    for i in range(ndim - 1, -1, -1):
        dims[i] = shape[i]
        if first <= i <= last and dims[i] != 1:
            strides[i] = 0
        else:
            strides[i] = step
            step *= dims[i]
            size *= dims[i]
    if size != cnp.PyArray_SIZE(g):
        return None
    Py_INCREF(descr)
    out = PyArray_NewFromDescr(
        ndarray, descr, ndim, dims, strides, cnp.PyArray_DATA(g),
        cnp.PyArray_FLAGS(g) & (cnp.NPY_ARRAY_ALIGNED | cnp.NPY_ARRAY_WRITEABLE), NULL)
    cnp.set_array_base(<cnp.ndarray>out, g)
    return out


cdef object spread_mean(tuple v, bint whole):
    """(gradient, shape, dim, keepdim) of a mean, or (gradient, shape)."""
    cdef int first, last, i
    cdef cnp.ndarray g, part
    cdef tuple shape
    cdef double size = 1
    if not is_plain(v[0]) or type(v[1]) is not tuple:
        return None
    shape = <tuple>v[1]
    if not span(None if whole else v[2], <int>len(shape), &first, &last):
        return None
    for i in range(first, last + 1):
        size *= <double>shape[i]
    if size == 0:
        return None
    g = <cnp.ndarray>v[0]
    part = empty_like(g)
    scale(g, part, size)
    return spread_over(part, shape, first, last)


cdef void scale(cnp.ndarray g, cnp.ndarray out, double divisor) noexcept:
    cdef Py_ssize_t i
    if cnp.PyArray_TYPE(g) == cnp.NPY_FLOAT:
        for i in range(cnp.PyArray_SIZE(g)):
            (<float*>cnp.PyArray_DATA(out))[i] = (
                (<float*>cnp.PyArray_DATA(g))[i] / <float>divisor)
    else:
        for i in range(cnp.PyArray_SIZE(g)):
            (<double*>cnp.PyArray_DATA(out))[i] = (<double*>cnp.PyArray_DATA(g))[i] / divisor


cdef object mean_all_gradient(tuple v):
    return spread_mean(v, True)


cdef object mean_dims_gradient(tuple v):
    return spread_mean(v, False)


cdef object sum_dims_gradient(tuple v):
    cdef int first, last
    if not is_plain(v[0]) or type(v[1]) is not tuple:
        return None
    if not span(v[2], <int>len(<tuple>v[1]), &first, &last):
        return None
    return spread_over(<cnp.ndarray>v[0], <tuple>v[1], first, last)


# Products and norms: gradients by elements --------------------------------------------------------


cdef void ratio_work(
    Strips* job, int64_t full, int64_t single, int64_t partial, int64_t rows, int64_t width
) noexcept nogil:
    job.table.ratio(
        job.kind, job.b + single, job.a + full, job.c + single, job.out + full, rows, job.columns,
        width)


cdef bint has_zeros(cnp.ndarray a) noexcept:
    cdef Py_ssize_t i
    cdef bint found = False
    if cnp.PyArray_TYPE(a) == cnp.NPY_FLOAT:
        for i in range(cnp.PyArray_SIZE(a)):
            found |= (<float*>cnp.PyArray_DATA(a))[i] == 0
    else:
        for i in range(cnp.PyArray_SIZE(a)):
            found |= (<double*>cnp.PyArray_DATA(a))[i] == 0
    return found


cdef object by_ratio(object gradient, object x, object value, object dim, bint is_norm):
    """The gradient of a norm, or of a product without zeros."""
    cdef Strips job
    cdef int first, last
    cdef cnp.ndarray a, out
    if not is_plain(x):
        return None
    a = <cnp.ndarray>x
    if not span(dim, cnp.PyArray_NDIM(a), &first, &last) or not start(&job, a, first, last):
        return None
    if not is_reduced(gradient, a, first, last) or not is_reduced(value, a, first, last):
        return None
    if not is_norm and has_zeros(a):
        return None
    out = empty_like(a)
    job.kind = is_norm
    job.b = cnp.PyArray_BYTES(<cnp.ndarray>gradient)
    job.c = cnp.PyArray_BYTES(<cnp.ndarray>value)
    job.out = cnp.PyArray_BYTES(out)
    run(&job, ratio_work, True)
    return out


cdef object prod_all_gradient(tuple v):
    return by_ratio(v[0], v[1], v[2], None, False)


cdef object prod_dim_gradient(tuple v):
    return None if v[2] is None else by_ratio(v[0], v[1], v[4], v[2], False)


cdef object vector_norm_gradient(tuple v):
    return by_ratio(v[0], v[1], v[5], v[3], True) if is_two(v[2]) else None


# Variances ---------------------------------------------------------------------------------------


cdef void spread_work(
    Strips* job, int64_t full, int64_t single, int64_t partial, int64_t rows, int64_t width
) noexcept nogil:
    job.table.spread(
        job.a + full, job.b + single, job.partial + partial, rows, job.columns, width)


cdef void affine_work(
    Strips* job, int64_t full, int64_t single, int64_t partial, int64_t rows, int64_t width
) noexcept nogil:
    job.table.affine(
        job.a + full, job.b + single, job.c + single, NULL, job.out + full, rows, job.columns,
        width)


cdef double freedom_of(object correction, double size) except? -1:
    if correction is None:
        return size - 1
    if type(correction) is int or type(correction) is float:
        return size - <double>correction
    return 0


cdef object variance(tuple v, bint root, bint with_mean):
    """(self, dim, correction, keepdim): the variance or its root, with the mean."""
    cdef Strips job
    cdef int first, last
    cdef cnp.ndarray a, mean, out
    cdef double freedom, total
    cdef int64_t i, j, k
    cdef bint single, keepdim = v[3]
    if not is_plain(v[0]):
        return None
    a = <cnp.ndarray>v[0]
    if not span(v[1], cnp.PyArray_NDIM(a), &first, &last) or not start(&job, a, first, last):
        return None
    freedom = freedom_of(v[2], <double>job.count)
    if freedom <= 0:
        return None
    mean = reduced(SUM, a, first, last, keepdim, <double>job.count, False)
    out = empty_like(mean)
    job.b = cnp.PyArray_BYTES(mean)
    # As many results as `run` makes chunks of at least 32 rows.
    job.partial = <double*>malloc(
        job.outer * job.columns * (job.count // 32 + 1) * sizeof(double))
    if job.partial == NULL:
        return None
    run(&job, spread_work, True)
    single = cnp.PyArray_TYPE(a) == cnp.NPY_FLOAT
    for i in range(job.outer):
        for j in range(job.columns):
            total = 0
            for k in range(job.chunks):
                total += job.partial[(i * job.chunks + k) * job.columns + j]
            total = settled(&job, total, i, j, single) / freedom
            if root:
                total = sqrt(total)
            if single:
                (<float*>cnp.PyArray_DATA(out))[i * job.columns + j] = <float>total
            else:
                (<double*>cnp.PyArray_DATA(out))[i * job.columns + j] = total
    free(job.partial)
    return (out, mean) if with_mean else out


cdef double settled(Strips* job, double total, int64_t i, int64_t j, bint single) noexcept:
    """The sum of squares, none for equal numbers that differ from their mean by its rounding."""
    cdef int64_t k, at = i * job.count * job.columns + j
    cdef double middle, rounded
    if single:
        middle = (<float*>job.b)[i * job.columns + j]
        rounded = middle * 2.4e-7
    else:
        middle = (<double*>job.b)[i * job.columns + j]
        rounded = middle * 4.5e-16
    if not total <= rounded * rounded * <double>job.count:
        return total
    for k in range(1, job.count):
        if single:
            if (<float*>job.a)[at + k * job.columns] != (<float*>job.a)[at]:
                return total
        elif (<double*>job.a)[at + k * job.columns] != (<double*>job.a)[at]:
            return total
    return 0


cdef object var(tuple v):
    return variance(v, False, False)


cdef object std(tuple v):
    return variance(v, True, False)


cdef object var_mean(tuple v):
    return variance(v, False, True)


cdef object std_mean(tuple v):
    return variance(v, True, True)


cdef object variance_gradient(
    object gradient, object x, object dim, object correction, object value
):
    """The gradient of a variance, or of its root if `value` is that."""
    cdef Strips job
    cdef int first, last
    cdef cnp.ndarray a, mean, factor, out
    cdef double freedom, part
    cdef int64_t i
    if not is_plain(x):
        return None
    a = <cnp.ndarray>x
    if not span(dim, cnp.PyArray_NDIM(a), &first, &last) or not start(&job, a, first, last):
        return None
    freedom = freedom_of(correction, <double>job.count)
    if freedom <= 0 or not is_reduced(gradient, a, first, last):
        return None
    if value is not None and not is_reduced(value, a, first, last):
        return None
    mean = reduced(SUM, a, first, last, False, <double>job.count, False)
    factor, out = empty_like(mean), empty_like(a)
    for i in range(cnp.PyArray_SIZE(mean)):
        part = number_at(<cnp.ndarray>gradient, i) * (2 / freedom)
        if value is not None:
            part = 0 if number_at(<cnp.ndarray>value, i) == 0 else (
                part * 0.5 / number_at(<cnp.ndarray>value, i))
        if cnp.PyArray_TYPE(a) == cnp.NPY_FLOAT:
            (<float*>cnp.PyArray_DATA(factor))[i] = <float>part
        else:
            (<double*>cnp.PyArray_DATA(factor))[i] = part
    job.b, job.c = cnp.PyArray_BYTES(mean), cnp.PyArray_BYTES(factor)
    job.out = cnp.PyArray_BYTES(out)
    run(&job, affine_work, True)
    return out


cdef inline double number_at(cnp.ndarray a, int64_t i) noexcept:
    if cnp.PyArray_TYPE(a) == cnp.NPY_FLOAT:
        return (<float*>cnp.PyArray_DATA(a))[i]
    return (<double*>cnp.PyArray_DATA(a))[i]


cdef object var_gradient(tuple v):
    return variance_gradient(v[0], v[1], v[2], v[3], None)


cdef object std_gradient(tuple v):
    return variance_gradient(v[0], v[1], v[2], v[3], v[5])


# Softmax -----------------------------------------------------------------------------------------


cdef void softmax_work(
    Strips* job, int64_t full, int64_t single, int64_t partial, int64_t rows, int64_t width
) noexcept nogil:
    if job.columns > 1:
        job.table.strip_softmax(job.kind, job.a + full, job.out + full, rows, job.columns, width)
    elif job.kind:
        job.table.log_softmax(job.a + full, job.out + full, 1, rows)
    else:
        job.table.softmax(job.a + full, job.out + full, 1, rows)


cdef void logsumexp_work(
    Strips* job, int64_t full, int64_t single, int64_t partial, int64_t rows, int64_t width
) noexcept nogil:
    if job.columns > 1:
        job.table.strip_logsumexp(job.a + full, job.out + single, rows, job.columns, width)
    else:
        job.table.logsumexp(job.a + full, job.out + single, 1, rows)


cdef void softmax_gradient_work(
    Strips* job, int64_t full, int64_t single, int64_t partial, int64_t rows, int64_t width
) noexcept nogil:
    if job.columns > 1:
        job.table.strip_softmax_gradient(
            job.kind, job.a + full, job.b + full, job.out + full, rows, job.columns, width)
    elif job.kind:
        job.table.log_softmax_gradient(job.a + full, job.b + full, job.out + full, 1, rows)
    else:
        job.table.softmax_gradient(job.a + full, job.b + full, job.out + full, 1, rows)


cdef void shares_work(
    Strips* job, int64_t full, int64_t single, int64_t partial, int64_t rows, int64_t width
) noexcept nogil:
    job.table.shares(
        job.b + single, job.a + full, job.c + single, job.out + full, rows, job.columns, width)


cdef void ties_work(
    Strips* job, int64_t full, int64_t single, int64_t partial, int64_t rows, int64_t width
) noexcept nogil:
    job.table.ties(
        job.b + single, job.a + full, job.c + single, job.out + full, rows, job.columns, width)


cdef object along_softmax(tuple v, bint is_log):
    cdef Strips job
    cdef int first, last
    cdef cnp.ndarray a, out
    if not is_plain(v[0]) or type(v[1]) is not int or v[2] is not None:
        return None
    a = <cnp.ndarray>v[0]
    if not span(v[1], cnp.PyArray_NDIM(a), &first, &last) or not start(&job, a, first, last):
        return None
    out = empty_like(a)
    job.kind, job.out = is_log, cnp.PyArray_BYTES(out)
    run(&job, softmax_work, False)
    return out


cdef object softmax(tuple v):
    return along_softmax(v, False)


cdef object log_softmax(tuple v):
    return along_softmax(v, True)


cdef object along_softmax_gradient(tuple v, bint is_log):
    """(gradient, dim, out)"""
    cdef Strips job
    cdef int first, last
    cdef cnp.ndarray g, out
    if not is_plain(v[0]) or not is_plain(v[2]) or type(v[1]) is not int:
        return None
    g = <cnp.ndarray>v[0]
    if (
        cnp.PyArray_TYPE(g) != cnp.PyArray_TYPE(<cnp.ndarray>v[2])
        or not same_dims(g, <cnp.ndarray>v[2])
        or not span(v[1], cnp.PyArray_NDIM(g), &first, &last) or not start(&job, g, first, last)
    ):
        return None
    out = empty_like(g)
    job.kind, job.out = is_log, cnp.PyArray_BYTES(out)
    job.b = cnp.PyArray_BYTES(<cnp.ndarray>v[2])
    run(&job, softmax_gradient_work, False)
    return out


cdef object softmax_gradient(tuple v):
    return along_softmax_gradient(v, False)


cdef object log_softmax_gradient(tuple v):
    return along_softmax_gradient(v, True)


cdef object logsumexp(tuple v):
    """(self, dim, keepdim)"""
    cdef Strips job
    cdef int first, last
    cdef cnp.ndarray a, out
    if not is_plain(v[0]) or type(v[1]) is not tuple:
        return None
    a = <cnp.ndarray>v[0]
    if not span(v[1], cnp.PyArray_NDIM(a), &first, &last) or not start(&job, a, first, last):
        return None
    out = reduced_like(a, first, last, v[2], cnp.PyArray_TYPE(a))
    job.out = cnp.PyArray_BYTES(out)
    run(&job, logsumexp_work, False)
    return out


cdef object with_two_reduced(tuple v, bint is_share):
    """(gradient, self, dim, keepdim, out)"""
    cdef Strips job
    cdef int first, last
    cdef cnp.ndarray a, out
    if not is_plain(v[1]):
        return None
    a = <cnp.ndarray>v[1]
    if not span(v[2], cnp.PyArray_NDIM(a), &first, &last) or not start(&job, a, first, last):
        return None
    if not is_reduced(v[0], a, first, last) or not is_reduced(v[4], a, first, last):
        return None
    out = empty_like(a)
    job.b, job.c = cnp.PyArray_BYTES(<cnp.ndarray>v[0]), cnp.PyArray_BYTES(<cnp.ndarray>v[4])
    job.out = cnp.PyArray_BYTES(out)
    run(&job, shares_work if is_share else ties_work, is_share)
    return out


cdef object logsumexp_gradient(tuple v):
    return with_two_reduced(v, True)


cdef object extremum_gradient(tuple v):
    return with_two_reduced(v, False)


# Scans -------------------------------------------------------------------------------------------


cdef void cumsum_work(
    Strips* job, int64_t full, int64_t single, int64_t partial, int64_t rows, int64_t width
) noexcept nogil:
    if job.columns == 1 and not job.kind:
        job.table.cumsum(job.a + full, job.out + full, 1, rows)
    else:
        job.table.strip_cumsum(job.kind, job.a + full, job.out + full, rows, job.columns, width)


cdef void cumsum_rows_work(
    Strips* job, int64_t full, int64_t single, int64_t partial, int64_t rows, int64_t width
) noexcept nogil:
    job.table.cumsum(job.a + full, job.out + full, rows, job.columns)


cdef object summed_up(object x, object dim, bint backward):
    cdef Strips job
    cdef int first, last
    cdef cnp.ndarray a, out
    if not is_plain(x) or type(dim) is not int:
        return None
    a = <cnp.ndarray>x
    if not span(dim, cnp.PyArray_NDIM(a), &first, &last) or not start(&job, a, first, last):
        return None
    out = empty_like(a)
    job.out = cnp.PyArray_BYTES(out)
    job.kind = backward
    if job.columns == 1 and not backward:
        # Rows of which several are summed up at a time.
        job.columns, job.count, job.outer = job.count, job.outer, 1
        job.strips = 1
        job.chunk = max(4, 32768 // job.columns // 4 * 4)
        job.chunks = (job.count + job.chunk - 1) // job.chunk
        run(&job, cumsum_rows_work, False)
        return out
    run(&job, cumsum_work, False)
    return out


cdef object cumsum(tuple v):
    return summed_up(v[0], v[1], False) if v[2] is None else None


cdef object cumsum_gradient(tuple v):
    return summed_up(v[0], v[1], True)


# Where extrema are -------------------------------------------------------------------------------


cdef void arg_work(
    Strips* job, int64_t full, int64_t single, int64_t partial, int64_t rows, int64_t width
) noexcept nogil:
    job.table.arg(
        job.kind, job.a + full, NULL if job.out == NULL else job.out + single,
        <int64_t*>job.more + single // job.itemsize, rows, job.columns, width)


cdef object positions(object x, object dim, bint keepdim, int sign, bint with_values):
    cdef Strips job
    cdef int first, last
    cdef cnp.ndarray a, indices, values
    if not is_plain(x):
        return None
    a = <cnp.ndarray>x
    if not span(dim, cnp.PyArray_NDIM(a), &first, &last) or not start(&job, a, first, last):
        return None
    if job.count > 0x7fffffff:
        return None
    indices = reduced_like(a, first, last, keepdim, cnp.NPY_INT64)
    job.kind, job.more, job.out = sign, cnp.PyArray_BYTES(indices), NULL
    if with_values:
        values = reduced_like(a, first, last, keepdim, cnp.PyArray_TYPE(a))
        job.out = cnp.PyArray_BYTES(values)
    run(&job, arg_work, False)
    return (values, indices) if with_values else indices


cdef object argmax(tuple v):
    return positions(v[0], v[1], v[2], 1, False)


cdef object argmin(tuple v):
    return positions(v[0], v[1], v[2], -1, False)


cdef object max_dim(tuple v):
    return positions(v[0], v[1], v[2], 1, True) if type(v[1]) is int else None


cdef object min_dim(tuple v):
    return positions(v[0], v[1], v[2], -1, True) if type(v[1]) is int else None


cdef bint put_loop(
    real* g, int64_t* index, real* out, Py_ssize_t outer, Py_ssize_t taken, Py_ssize_t count,
    Py_ssize_t columns
) noexcept nogil:
    """Put elements where they came from, in zeros; False if an index is not there."""
    cdef Py_ssize_t i, j, k
    cdef int64_t at
    for i in range(outer):
        for j in range(taken):
            for k in range(columns):
                at = index[k]
                if not 0 <= at < count:
                    return False
                out[(i * count + at) * columns + k] = g[k]
            g += columns
            index += columns
    return True


cdef object put_back(object gradient, object size, object dim, object index):
    """Zeros with a gradient at the indices along a dimension that it was taken from."""
    cdef cnp.npy_intp dims[32]
    cdef cnp.ndarray g, places, out
    cdef int first, last, i, ndim
    cdef Py_ssize_t outer = 1, columns = 1, count, taken
    cdef bint done
    if not is_plain(gradient) or type(size) is not tuple or type(dim) is not int:
        return None
    g = <cnp.ndarray>gradient
    ndim = <int>len(<tuple>size)
    if not span(dim, ndim, &first, &last) or not (
        cnp.PyArray_CheckExact(index) and cnp.PyArray_TYPE(<cnp.ndarray>index) == cnp.NPY_INT64
        and cnp.PyArray_ISCARRAY_RO(<cnp.ndarray>index)
        and cnp.PyArray_SIZE(<cnp.ndarray>index) == cnp.PyArray_SIZE(g)
    ):
        return None
    places = <cnp.ndarray>index
    for i in range(ndim):
        dims[i] = (<tuple>size)[i]
        if i < first:
            outer *= dims[i]
        elif i > first:
            columns *= dims[i]
    if outer * columns == 0 or cnp.PyArray_SIZE(g) % (outer * columns):
        return None
    count, taken = dims[first], cnp.PyArray_SIZE(g) // (outer * columns)
    out = cnp.PyArray_EMPTY(ndim, dims, cnp.PyArray_TYPE(g), 0)
    with nogil:
        memset(cnp.PyArray_DATA(out), 0, cnp.PyArray_NBYTES(out))
        if cnp.PyArray_TYPE(g) == cnp.NPY_FLOAT:
            done = put_loop[float](
                <float*>cnp.PyArray_DATA(g), <int64_t*>cnp.PyArray_DATA(places),
                <float*>cnp.PyArray_DATA(out), outer, taken, count, columns)
        else:
            done = put_loop[double](
                <double*>cnp.PyArray_DATA(g), <int64_t*>cnp.PyArray_DATA(places),
                <double*>cnp.PyArray_DATA(out), outer, taken, count, columns)
    return out if done else None


cdef object selected_gradient(tuple v):
    """(gradient, shape, dim, keepdim, indices) of one element along a dimension."""
    return put_back(v[0], v[1], v[2], v[4])


cdef object ordered_gradient(tuple v):
    """(gradient, shape, dim, indices) of several elements along a dimension."""
    return put_back(v[0], v[1], v[2], v[3])


# Logic -------------------------------------------------------------------------------------------


cdef object truth(tuple v, bint is_any):
    """(self, dim, keepdim) of bools, any byte but zero being true."""
    cdef cnp.ndarray a, out
    cdef int first, last
    cdef int64_t outer, count, columns, i, j, k
    cdef char* data
    cdef char* to
    cdef bint keepdim = v[2]
    x = v[0]
    if not (
        cnp.PyArray_CheckExact(x) and cnp.PyArray_TYPE(<cnp.ndarray>x) == cnp.NPY_BOOL
        and cnp.PyArray_ISCARRAY_RO(<cnp.ndarray>x)
    ):
        return None
    a = <cnp.ndarray>x
    if v[1] == () or cnp.PyArray_SIZE(a) == 0:
        return None
    if not span(v[1], cnp.PyArray_NDIM(a), &first, &last):
        return None
    measure_around(a, first, last, &outer, &count, &columns)
    out = reduced_like(a, first, last, keepdim, cnp.NPY_BOOL)
    data, to = cnp.PyArray_BYTES(a), cnp.PyArray_BYTES(out)
    with nogil:
        for i in range(outer):
            if columns == 1:
                if is_any:
                    # All are zero if the first is and each is what the one before is.
                    to[0] = data[0] != 0 or memcmp(data, data + 1, count - 1) != 0
                else:
                    to[0] = memchr(data, 0, count) == NULL
                data += count
                to += 1
                continue
            for k in range(columns):
                to[k] = data[k] != 0
            for j in range(1, count):
                for k in range(columns):
                    to[k] = to[k] | (data[j * columns + k] != 0) if is_any else (
                        to[k] & (data[j * columns + k] != 0))
            data += count * columns
            to += columns
    return out


cdef object any_(tuple v):
    return truth(v, True)


cdef object all_(tuple v):
    return truth(v, False)


known("sum", sum_all)
known("sum.dim_IntList", sum_dims)
known("sum.dim_IntList.self", sum_dims_gradient)
known("mean", mean_all)
known("mean.self", mean_all_gradient)
known("mean.dim", mean_dims)
known("mean.dim.self", mean_dims_gradient)
known("amax", amax)
known("amin", amin)
known("amax.self", extremum_gradient)
known("amin.self", extremum_gradient)
known("max", max_all)
known("min", min_all)
known("prod", prod_all)
known("prod.self", prod_all_gradient)
known("prod.dim_int", prod_dim)
known("prod.dim_int.self", prod_dim_gradient)
known("linalg_vector_norm", vector_norm)
known("linalg_vector_norm.self", vector_norm_gradient)
known("var", var)
known("var.self", var_gradient)
known("std", std)
known("std.self", std_gradient)
known("var_mean", var_mean)
known("std_mean", std_mean)
known("softmax", softmax)
known("softmax.self", softmax_gradient)
known("log_softmax", log_softmax)
known("log_softmax.self", log_softmax_gradient)
known("_sum_to", sum_to)
known("logsumexp", logsumexp)
known("logsumexp.self", logsumexp_gradient)
known("cumsum", cumsum)
known("cumsum.self", cumsum_gradient)
known("argmax", argmax)
known("argmin", argmin)
known("max.dim", max_dim)
known("max.dim.self", selected_gradient)
known("min.dim", min_dim)
known("min.dim.self", selected_gradient)
known("median.dim.self", selected_gradient)
known("kthvalue.self", selected_gradient)
known("mode.self", selected_gradient)
known("sort.self", ordered_gradient)
known("topk.self", ordered_gradient)
known("any", any_)
known("all", all_)
