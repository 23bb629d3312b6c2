# cython: boundscheck=False, wraparound=False
"""Kernels of normalisation over channels and of losses of classes, with those of their gradients."""
cimport numpy as cnp
from libc.math cimport sqrt
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

from ..core.array_checks cimport empty_like, same_dims
from .kernels cimport is_plain, known
from .strips cimport Strips, run, start

from .row_loops import layer_norm as normalized_rows
from .row_loops import layer_norm_gradient, layer_norm_weight

cnp.import_array()

cdef enum:
    MEAN = 1


cdef inline double get(const char* data, int64_t i, bint single) noexcept nogil:
    return (<const float*>data)[i] if single else (<const double*>data)[i]


cdef inline void put(char* data, int64_t i, double value, bint single) noexcept nogil:
    if single:
        (<float*>data)[i] = <float>value
    else:
        (<double*>data)[i] = value


# Layer normalisation -----------------------------------------------------------------------------


cdef bint ends_with(cnp.ndarray x, tuple shape) noexcept:
    cdef int i, count = <int>len(shape), ndim = cnp.PyArray_NDIM(x)
    if not 0 < count <= ndim:
        return False
    for i in range(count):
        if cnp.PyArray_DIM(x, ndim - count + i) != <int64_t>shape[i]:
            return False
    return True


cdef bint has_shape(object value, tuple shape) noexcept:
    """Whether an operand is missing or a contiguous array of a shape."""
    if value is None:
        return True
    return (
        is_plain(value) and cnp.PyArray_NDIM(<cnp.ndarray>value) == len(shape)
        and ends_with(<cnp.ndarray>value, shape)
    )


cdef object layer_norm(tuple v):
    """(input, normalized_shape, weight, bias, eps)"""
    if not is_plain(v[0]) or type(v[1]) is not tuple or not ends_with(<cnp.ndarray>v[0], <tuple>v[1]):
        return None
    if not has_shape(v[2], <tuple>v[1]) or not has_shape(v[3], <tuple>v[1]):
        return None
    return normalized_rows(v[0], len(<tuple>v[1]), v[2], v[3], v[4])


cdef object layer_norm_by_input(tuple v):
    """(gradient, input, normalized_shape, weight, mean, scale)"""
    if type(v[2]) is not tuple:
        return None
    return layer_norm_gradient(v[0], v[1], len(<tuple>v[2]), v[3], v[4], v[5])


cdef object layer_norm_by_weight(tuple v):
    """(gradient, input, normalized_shape, mean, scale)"""
    return layer_norm_weight(v[0], v[1], len(<tuple>v[2]), v[3], v[4])


# Normalisation of channels -----------------------------------------------------------------------


cdef struct Channels:
    # Examples of `channels` of `length` elements; numbers for each channel and, where a channel is
    # more than one element of an example, copies of them for each channel of each example.
    Strips strips
    int64_t examples, channels, length
    bint single
    char* copies[4]
    double* sums


cdef bint begin(Channels* job, cnp.ndarray x) noexcept:
    cdef int i, ndim = cnp.PyArray_NDIM(x)
    cdef int64_t places
    for i in range(4):
        job.copies[i] = NULL
    job.sums = NULL
    if ndim < 2:
        return False
    job.examples, job.channels, job.length = cnp.PyArray_DIM(x, 0), cnp.PyArray_DIM(x, 1), 1
    for i in range(2, ndim):
        job.length *= cnp.PyArray_DIM(x, i)
    job.single = cnp.PyArray_TYPE(x) == cnp.NPY_FLOAT
    if job.length == 1:
        if not start(&job.strips, x, 0, 0):
            return False
        job.strips.columns = job.channels
        job.strips.strips = (job.channels + 255) // 256
    elif not start(&job.strips, x, 2, ndim - 1):
        return False
    places = job.channels if job.length == 1 else job.channels * job.examples
    for i in range(4):
        job.copies[i] = <char*>malloc(places * 8)
    # Two sums for each chunk of at least 32 rows.
    job.sums = <double*>malloc(
        2 * job.strips.outer * job.strips.columns * (job.strips.count // 32 + 1) * sizeof(double))
    if job.sums == NULL or job.copies[0] == NULL or job.copies[1] == NULL or (
        job.copies[2] == NULL or job.copies[3] == NULL
    ):
        end(job)
        return False
    return True


cdef void end(Channels* job) noexcept:
    cdef int i
    for i in range(4):
        free(job.copies[i])
    free(job.sums)


cdef void spread_number(Channels* job, int place, int64_t channel, double value) noexcept nogil:
    """Note a number of a channel for all its examples."""
    cdef int64_t i
    if job.length == 1:
        put(job.copies[place], channel, value, job.single)
        return
    for i in range(job.examples):
        put(job.copies[place], i * job.channels + channel, value, job.single)


cdef double summed(Channels* job, const double* sums, int64_t channel) noexcept nogil:
    """The sums of all chunks of a channel, in order."""
    cdef double total = 0
    cdef int64_t i, k
    if job.length == 1:
        for k in range(job.strips.chunks):
            total += sums[k * job.channels + channel]
        return total
    for i in range(job.examples):
        for k in range(job.strips.chunks):
            total += sums[(i * job.channels + channel) * job.strips.chunks + k]
    return total


cdef void products_work(
    Strips* job, int64_t full, int64_t single, int64_t partial, int64_t rows, int64_t width
) noexcept nogil:
    job.table.products(
        job.a + full, job.b + full, job.c + single, job.partial + partial, job.other + partial,
        rows, job.columns, width)


cdef void spread_work(
    Strips* job, int64_t full, int64_t single, int64_t partial, int64_t rows, int64_t width
) noexcept nogil:
    job.table.spread(
        job.a + full, job.c + single, job.partial + partial, rows, job.columns, width)


cdef void affine_work(
    Strips* job, int64_t full, int64_t single, int64_t partial, int64_t rows, int64_t width
) noexcept nogil:
    job.table.affine(
        job.a + full, job.c + single, job.d + single, NULL if job.e == NULL else job.e + single,
        job.out + full, rows, job.columns, width)


cdef void centred_work(
    Strips* job, int64_t full, int64_t single, int64_t partial, int64_t rows, int64_t width
) noexcept nogil:
    job.table.centred(
        job.a + full, job.b + full, job.c + single, job.d + single, job.e + single,
        job.more + single, job.out + full, rows, job.columns, width)


cdef bint is_vector(object value, cnp.ndarray x, bint optional) noexcept:
    """Whether a value has a number for each channel of `x`."""
    if value is None:
        return optional
    return (
        is_plain(value) and cnp.PyArray_TYPE(<cnp.ndarray>value) == cnp.PyArray_TYPE(x)
        and cnp.PyArray_SIZE(<cnp.ndarray>value) == cnp.PyArray_DIM(x, 1)
    )


cdef object normalize_channels(tuple v):
    """(input, weight, bias, eps)"""
    cdef Channels job
    cdef Strips* strips = &job.strips
    cdef cnp.npy_intp shape[32]
    cdef cnp.ndarray x, out, mean, scale, spread
    cdef int64_t channel, place
    cdef double value, factor, size, eps = v[3]
    cdef int i
    if not is_plain(v[0]) or not 2 <= cnp.PyArray_NDIM(<cnp.ndarray>v[0]) <= 32:
        return None
    x = <cnp.ndarray>v[0]
    for i in range(1, 3):
        if not is_vector(v[i], x, True) or (
            v[i] is not None and cnp.PyArray_NDIM(<cnp.ndarray>v[i]) != 1
        ):
            return None
    if not begin(&job, x):
        return None
    for i in range(cnp.PyArray_NDIM(x)):
        shape[i] = cnp.PyArray_DIM(x, i) if i == 1 else 1
    out = empty_like(x)
    mean = cnp.PyArray_EMPTY(cnp.PyArray_NDIM(x), shape, cnp.PyArray_TYPE(x), 0)
    scale, spread = empty_like(mean), empty_like(mean)
    size = <double>(job.examples * job.length)
    # The sums of x, as those of x * (x - 0) leave them.
    for channel in range(job.channels):
        spread_number(&job, 0, channel, 0)
    strips.b, strips.c = strips.a, job.copies[0]
    strips.partial = job.sums
    strips.other = job.sums + strips.outer * strips.columns * (strips.count // 32 + 1)
    run(strips, products_work, True)
    for channel in range(job.channels):
        value = summed(&job, job.sums, channel) / size
        put(cnp.PyArray_BYTES(mean), channel, value, job.single)
        spread_number(&job, 0, channel, value)
    run(strips, spread_work, True)
    for channel in range(job.channels):
        value = summed(&job, job.sums, channel) / size
        put(cnp.PyArray_BYTES(spread), channel, value, job.single)
        factor = 1 / sqrt(value + eps)
        put(cnp.PyArray_BYTES(scale), channel, factor, job.single)
        if v[1] is not None:
            factor *= get(cnp.PyArray_BYTES(<cnp.ndarray>v[1]), channel, job.single)
        spread_number(&job, 1, channel, factor)
        if v[2] is not None:
            spread_number(
                &job, 2, channel, get(cnp.PyArray_BYTES(<cnp.ndarray>v[2]), channel, job.single))
    strips.d = job.copies[1]
    strips.e = NULL if v[2] is None else job.copies[2]
    strips.out = cnp.PyArray_BYTES(out)
    run(strips, affine_work, True)
    end(&job)
    return out, mean, scale, spread


cdef bint sum_products(Channels* job, object gradient, object x, object mean) noexcept:
    """Sums of g and of g * (x - mean) for each channel; False if the operands do not suit."""
    cdef Strips* strips = &job.strips
    cdef int64_t channel
    if not is_plain(gradient) or not is_plain(x):
        return False
    if cnp.PyArray_TYPE(<cnp.ndarray>gradient) != cnp.PyArray_TYPE(<cnp.ndarray>x) or (
        not same_dims(<cnp.ndarray>gradient, <cnp.ndarray>x)
        or cnp.PyArray_NDIM(<cnp.ndarray>x) < 2
        or not is_vector(mean, <cnp.ndarray>x, False)
    ):
        return False
    if not begin(job, <cnp.ndarray>gradient):
        return False
    for channel in range(job.channels):
        spread_number(
            job, 0, channel, get(cnp.PyArray_BYTES(<cnp.ndarray>mean), channel, job.single))
    strips.b, strips.c = cnp.PyArray_BYTES(<cnp.ndarray>x), job.copies[0]
    strips.partial = job.sums
    strips.other = job.sums + strips.outer * strips.columns * (strips.count // 32 + 1)
    run(strips, products_work, True)
    return True


cdef cnp.ndarray input_gradient(Channels* job, cnp.ndarray g, object weight, cnp.ndarray scales):
    """The gradient by the input, from the sums that `sum_products` has left."""
    cdef Strips* strips = &job.strips
    cdef cnp.ndarray out = empty_like(g)
    cdef double size = <double>(job.examples * job.length), scale, factor, weighted
    cdef int64_t channel
    for channel in range(job.channels):
        scale = get(cnp.PyArray_BYTES(scales), channel, job.single)
        factor = scale
        if weight is not None:
            factor *= get(cnp.PyArray_BYTES(<cnp.ndarray>weight), channel, job.single)
        weighted = summed(job, strips.other, channel)
        spread_number(job, 1, channel, summed(job, strips.partial, channel) / size)
        spread_number(job, 2, channel, factor)
        spread_number(job, 3, channel, factor * scale * scale * weighted / size)
    strips.d, strips.e, strips.more = job.copies[1], job.copies[2], job.copies[3]
    strips.out = cnp.PyArray_BYTES(out)
    run(strips, centred_work, True)
    return out


cdef cnp.ndarray weight_gradient(Channels* job, cnp.ndarray g, cnp.ndarray scales):
    cdef cnp.npy_intp count = job.channels
    cdef cnp.ndarray out = cnp.PyArray_EMPTY(1, &count, cnp.PyArray_TYPE(g), 0)
    cdef int64_t channel
    for channel in range(job.channels):
        put(cnp.PyArray_BYTES(out), channel,
            summed(job, job.strips.other, channel)
            * get(cnp.PyArray_BYTES(scales), channel, job.single), job.single)
    return out


cdef cnp.ndarray bias_gradient(Channels* job, cnp.ndarray g):
    cdef cnp.npy_intp count = job.channels
    cdef cnp.ndarray out = cnp.PyArray_EMPTY(1, &count, cnp.PyArray_TYPE(g), 0)
    cdef int64_t channel
    for channel in range(job.channels):
        put(cnp.PyArray_BYTES(out), channel, summed(job, job.strips.partial, channel), job.single)
    return out


cdef bint begin_gradient(
    Channels* job, object gradient, object x, object weight, object mean, object scale
) noexcept:
    """Sum the products for gradients; False if the operands do not suit."""
    return (
        is_plain(x) and cnp.PyArray_NDIM(<cnp.ndarray>x) >= 2
        and is_vector(weight, <cnp.ndarray>x, True) and is_vector(scale, <cnp.ndarray>x, False)
        and sum_products(job, gradient, x, mean)
    )


cdef object channels_by_input(tuple v):
    """(gradient, input, weight, mean, scale)"""
    cdef Channels job
    if not begin_gradient(&job, v[0], v[1], v[2], v[3], v[4]):
        return None
    out = input_gradient(&job, <cnp.ndarray>v[0], v[2], <cnp.ndarray>v[4])
    end(&job)
    return out


cdef object channels_by_weight(tuple v):
    """(gradient, input, mean, scale)"""
    cdef Channels job
    if not begin_gradient(&job, v[0], v[1], None, v[2], v[3]):
        return None
    out = weight_gradient(&job, <cnp.ndarray>v[0], <cnp.ndarray>v[3])
    end(&job)
    return out


cdef object channels_by_all(tuple v):
    """(gradient, input, weight, mean, scale): all three gradients, from one pass for the sums."""
    cdef Channels job
    if not begin_gradient(&job, v[0], v[1], v[2], v[3], v[4]):
        return None
    of_weight = weight_gradient(&job, <cnp.ndarray>v[0], <cnp.ndarray>v[4])
    of_bias = bias_gradient(&job, <cnp.ndarray>v[0])
    of_input = input_gradient(&job, <cnp.ndarray>v[0], v[2], <cnp.ndarray>v[4])
    end(&job)
    return of_input, of_weight, of_bias


cdef object channels_by_parameters(tuple v):
    """(gradient, input, mean, scale): the gradients by weight and bias."""
    cdef Channels job
    if not begin_gradient(&job, v[0], v[1], None, v[2], v[3]):
        return None
    of_weight = weight_gradient(&job, <cnp.ndarray>v[0], <cnp.ndarray>v[3])
    of_bias = bias_gradient(&job, <cnp.ndarray>v[0])
    end(&job)
    return of_weight, of_bias


cdef object channels_by_bias(tuple v):
    """(gradient,)"""
    cdef Channels job
    cdef Strips* strips = &job.strips
    cdef int64_t channel
    if not is_plain(v[0]) or not begin(&job, <cnp.ndarray>v[0]):
        return None
    for channel in range(job.channels):
        spread_number(&job, 0, channel, 0)
    strips.b, strips.c = strips.a, job.copies[0]
    strips.partial = job.sums
    strips.other = job.sums + strips.outer * strips.columns * (strips.count // 32 + 1)
    run(strips, products_work, True)
    out = bias_gradient(&job, <cnp.ndarray>v[0])
    end(&job)
    return out


# Losses of classes -------------------------------------------------------------------------------


cdef int64_t kept_classes(object target, object size, int64_t ignored) noexcept:
    """How many targets of a matrix are not to be ignored; -1 if they do not suit it."""
    cdef cnp.ndarray t
    cdef const int64_t* classes
    cdef int64_t i, kept = 0, most
    if not (
        cnp.PyArray_CheckExact(target) and cnp.PyArray_TYPE(<cnp.ndarray>target) == cnp.NPY_INT64
        and cnp.PyArray_ISCARRAY_RO(<cnp.ndarray>target)
    ):
        return -1
    t = <cnp.ndarray>target
    if len(<tuple>size) != 2 or cnp.PyArray_NDIM(t) != 1:
        return -1
    if cnp.PyArray_DIM(t, 0) != <int64_t>(<tuple>size)[0]:
        return -1
    most = (<tuple>size)[1]
    classes = <const int64_t*>cnp.PyArray_DATA(t)
    for i in range(cnp.PyArray_SIZE(t)):
        if classes[i] == ignored:
            continue
        if not 0 <= classes[i] < most:
            return -1
        kept += 1
    return kept


cdef object nll_loss(tuple v):
    """(self, target, weight, reduction, ignore_index)"""
    cdef cnp.ndarray x, out
    cdef int64_t i, n, columns, ignored, kept
    cdef int reduction
    cdef const int64_t* classes
    cdef double total = 0, value
    cdef bint single
    if not is_plain(v[0]) or v[2] is not None or cnp.PyArray_NDIM(<cnp.ndarray>v[0]) != 2:
        return None
    x, ignored, reduction = <cnp.ndarray>v[0], v[4], v[3]
    kept = kept_classes(v[1], (<object>x).shape, ignored)
    if kept < 0:
        return None
    n, columns = cnp.PyArray_DIM(x, 0), cnp.PyArray_DIM(x, 1)
    classes = <const int64_t*>cnp.PyArray_DATA(<cnp.ndarray>v[1])
    single = cnp.PyArray_TYPE(x) == cnp.NPY_FLOAT
    out = cnp.PyArray_EMPTY(0 if reduction else 1, cnp.PyArray_DIMS(x), cnp.PyArray_TYPE(x), 0)
    for i in range(n):
        value = 0
        if classes[i] != ignored:
            value = -get(cnp.PyArray_BYTES(x), i * columns + classes[i], single)
        if reduction:
            total += value
        else:
            put(cnp.PyArray_BYTES(out), i, value, single)
    if reduction:
        put(cnp.PyArray_BYTES(out), 0, total / kept if reduction == MEAN else total, single)
    return out


cdef object class_gradient(
    object gradient, object size, object target, object weight, int reduction, int64_t ignored
):
    cdef cnp.npy_intp shape[2]
    cdef cnp.ndarray g, out
    cdef int64_t i, kept
    cdef const int64_t* classes
    cdef double value
    cdef bint single
    if not is_plain(gradient) or weight is not None or type(size) is not tuple:
        return None
    kept = kept_classes(target, size, ignored)
    g = <cnp.ndarray>gradient
    if kept < 0 or cnp.PyArray_SIZE(g) != (1 if reduction else <int64_t>(<tuple>size)[0]):
        return None
    shape[0], shape[1] = (<tuple>size)[0], (<tuple>size)[1]
    out = cnp.PyArray_ZEROS(2, shape, cnp.PyArray_TYPE(g), 0)
    classes = <const int64_t*>cnp.PyArray_DATA(<cnp.ndarray>target)
    single = cnp.PyArray_TYPE(g) == cnp.NPY_FLOAT
    value = get(cnp.PyArray_BYTES(g), 0, single)
    if reduction == MEAN:
        value /= kept
    for i in range(shape[0]):
        if classes[i] == ignored:
            continue
        if not reduction:
            value = get(cnp.PyArray_BYTES(g), i, single)
        put(cnp.PyArray_BYTES(out), i * shape[1] + classes[i], -value, single)
    return out


cdef object nll_loss_gradient(tuple v):
    """(gradient, self, target, weight, reduction, ignore_index)"""
    if not is_plain(v[1]) or not is_plain(v[0]) or (
        cnp.PyArray_TYPE(<cnp.ndarray>v[0]) != cnp.PyArray_TYPE(<cnp.ndarray>v[1])
    ):
        return None
    return class_gradient(v[0], (<object>v[1]).shape, v[2], v[3], v[4], v[5])


cdef object nll_loss_backward(tuple v):
    """(gradient, size, target, weight, reduction, ignore_index)"""
    return class_gradient(v[0], v[1], v[2], v[3], v[4], v[5])


known("native_layer_norm", layer_norm)
known("native_layer_norm.input", layer_norm_by_input)
known("native_layer_norm.weight", layer_norm_by_weight)
known("_normalize_channels", normalize_channels)
known("_normalize_channels.input", channels_by_input)
known("_normalize_channels.weight", channels_by_weight)
known("_normalize_channels.bias", channels_by_bias)
known("_normalize_channels.input+weight+bias", channels_by_all)
known("_normalize_channels.weight+bias", channels_by_parameters)
known("_nll_loss", nll_loss)
known("_nll_loss.self", nll_loss_gradient)
known("_nll_loss_backward", nll_loss_backward)
