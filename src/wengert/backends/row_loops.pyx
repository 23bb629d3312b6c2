# cython: boundscheck=False, wraparound=False
"""Fused loops over the rows of contiguous float32 and float64 arrays, see rows.h.

Threads take some rows at a time; a row is the work of one of them, so results do not depend on
their number. `row_loops.py` beside this file is the interface without C.
"""
cimport numpy as cnp
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

from ..core.array_checks cimport empty_like, same_dims
from ..core.pool cimport split
from .vector_loops cimport rows_of

cnp.import_array()

cdef extern from "vector_loops.h":
    ctypedef struct wengert_rows:
        void (*reduce)(int, const char*, double*, int64_t, int64_t) noexcept nogil
        void (*softmax)(const char*, char*, int64_t, int64_t) noexcept nogil
        void (*log_softmax)(const char*, char*, int64_t, int64_t) noexcept nogil
        void (*logsumexp)(const char*, char*, int64_t, int64_t) noexcept nogil
        void (*cumsum)(const char*, char*, int64_t, int64_t) noexcept nogil
        void (*softmax_gradient)(
            const char*, const char*, char*, int64_t, int64_t) noexcept nogil
        void (*log_softmax_gradient)(
            const char*, const char*, char*, int64_t, int64_t) noexcept nogil
        void (*layer_norm)(
            const char*, const char*, const char*, char*, char*, char*, int64_t, int64_t,
            double) noexcept nogil
        void (*layer_norm_gradient)(
            const char*, const char*, const char*, const char*, const char*, char*, int64_t,
            int64_t) noexcept nogil
        void (*layer_norm_weight)(
            const char*, const char*, const char*, const char*, double*, int64_t,
            int64_t) noexcept nogil

cdef enum:
    PART = 32768   # elements that one thread takes at a time
    QUICK = 4096   # elements below which the interpreter's lock is kept
    LEAST_ROWS = 32  # that are summed by themselves

cdef enum Kind:
    SOFTMAX, LOG_SOFTMAX, LOGSUMEXP, CUMSUM, SOFTMAX_GRADIENT, LOG_SOFTMAX_GRADIENT, LAYER_NORM
    LAYER_NORM_GRADIENT, LAYER_NORM_WEIGHT


cdef struct Job:
    const wengert_rows* table
    Kind kind
    # Operands of full rows, then those that all rows share, then one number for each row.
    char* full[2]
    char* shared[2]
    char* single[2]
    char* out
    double* partial  # one row for each part
    int64_t rows, n, rows_per_part, itemsize
    double eps


cdef void run_part(void* data, int64_t part) noexcept nogil:
    cdef Job* job = <Job*>data
    cdef const wengert_rows* table = job.table
    cdef int64_t first = part * job.rows_per_part, rows = job.rows - first
    cdef int64_t offset = first * job.n * job.itemsize, place = first * job.itemsize
    cdef char* a = job.full[0] + offset
    cdef char* b = job.full[1] + offset
    cdef char* out = job.out + offset
    if rows > job.rows_per_part:
        rows = job.rows_per_part
    if job.kind == SOFTMAX:
        table.softmax(a, out, rows, job.n)
    elif job.kind == LOG_SOFTMAX:
        table.log_softmax(a, out, rows, job.n)
    elif job.kind == LOGSUMEXP:
        table.logsumexp(a, job.out + place, rows, job.n)
    elif job.kind == CUMSUM:
        table.cumsum(a, out, rows, job.n)
    elif job.kind == SOFTMAX_GRADIENT:
        table.softmax_gradient(a, b, out, rows, job.n)
    elif job.kind == LOG_SOFTMAX_GRADIENT:
        table.log_softmax_gradient(a, b, out, rows, job.n)
    elif job.kind == LAYER_NORM:
        table.layer_norm(
            a, job.shared[0], job.shared[1], out, job.single[0] + place, job.single[1] + place, rows,
            job.n, job.eps)
    elif job.kind == LAYER_NORM_WEIGHT:
        table.layer_norm_weight(
            a, b, job.single[0] + place, job.single[1] + place, job.partial + part * job.n, rows,
            job.n)
    else:
        table.layer_norm_gradient(
            a, b, job.shared[0], job.single[0] + place, job.single[1] + place, out, rows, job.n)


cdef bint suits(object value, int kind) noexcept:
    """Whether an operand is a contiguous array of a type."""
    return (
        cnp.PyArray_CheckExact(value)
        and cnp.PyArray_TYPE(<cnp.ndarray>value) == kind
        and cnp.PyArray_ISCARRAY_RO(<cnp.ndarray>value)
    )


cdef bint start(Job* job, Kind kind, object x, int dims) noexcept:
    """Fill in what all loops need, rows being the last `dims` dimensions; False if unsuited."""
    cdef cnp.ndarray a
    cdef int i, ndim
    if not cnp.PyArray_CheckExact(x):
        return False
    a = <cnp.ndarray>x
    job.table = <const wengert_rows*>rows_of(cnp.PyArray_TYPE(a))
    ndim = cnp.PyArray_NDIM(a)
    if job.table == NULL or not cnp.PyArray_ISCARRAY_RO(a) or ndim < dims or dims < 1:
        return False
    if cnp.PyArray_SIZE(a) == 0:
        return False
    job.kind = kind
    job.n = 1
    for i in range(ndim - dims, ndim):
        job.n *= cnp.PyArray_DIM(a, i)
    job.rows = cnp.PyArray_SIZE(a) // job.n
    job.itemsize = cnp.PyArray_ITEMSIZE(a)
    job.rows_per_part = max(1, PART // job.n)
    job.full[0] = cnp.PyArray_BYTES(a)
    job.full[1] = job.full[0]
    return True


cdef void run(Job* job) noexcept:
    cdef int64_t parts = (job.rows + job.rows_per_part - 1) // job.rows_per_part
    if job.rows * job.n < QUICK:
        run_part(job, 0)
        return
    with nogil:
        split(run_part, job, parts)


cdef object same_shape(Kind kind, object x):
    cdef Job job
    cdef cnp.ndarray out
    if not start(&job, kind, x, 1):
        return None
    out = empty_like(<cnp.ndarray>x)
    job.out = cnp.PyArray_BYTES(out)
    run(&job)
    return out


cdef object reduced(Kind kind, object x):
    cdef Job job
    cdef cnp.ndarray out, a
    if not start(&job, kind, x, 1):
        return None
    a = <cnp.ndarray>x
    out = cnp.PyArray_EMPTY(
        cnp.PyArray_NDIM(a) - 1, cnp.PyArray_DIMS(a), cnp.PyArray_TYPE(a), 0)
    job.out = cnp.PyArray_BYTES(out)
    run(&job)
    return out


cdef object gradient(Kind kind, object g, object y):
    cdef Job job
    cdef cnp.ndarray out
    if not start(&job, kind, g, 1) or not suits(y, cnp.PyArray_TYPE(<cnp.ndarray>g)):
        return None
    if not same_dims(<cnp.ndarray>g, <cnp.ndarray>y):
        return None
    out = empty_like(<cnp.ndarray>g)
    job.full[1] = cnp.PyArray_BYTES(<cnp.ndarray>y)
    job.out = cnp.PyArray_BYTES(out)
    run(&job)
    return out


def softmax(x):
    """Softmax over the last dimension."""
    return same_shape(SOFTMAX, x)


def log_softmax(x):
    """Logarithm of softmax over the last dimension."""
    return same_shape(LOG_SOFTMAX, x)


def logsumexp(x):
    """Logarithm of the sum of exponentials over the last dimension, which is dropped."""
    return reduced(LOGSUMEXP, x)


def cumsum(x):
    """Cumulative sums along the last dimension."""
    return same_shape(CUMSUM, x)


def softmax_gradient(g, y):
    """The gradient of softmax over the last dimension, by its result."""
    return gradient(SOFTMAX_GRADIENT, g, y)


def log_softmax_gradient(g, y):
    """The gradient of log_softmax over the last dimension, by its result."""
    return gradient(LOG_SOFTMAX_GRADIENT, g, y)


cdef bint share(Job* job, int place, object value, int kind) noexcept:
    """Note an operand that all rows share, or that there is none; False if it does not suit."""
    job.shared[place] = NULL
    if value is None:
        return True
    if not suits(value, kind) or cnp.PyArray_SIZE(<cnp.ndarray>value) != job.n:
        return False
    job.shared[place] = cnp.PyArray_BYTES(<cnp.ndarray>value)
    return True


def layer_norm(x, int dims, weight, bias, double eps):
    """The array with mean 0 and variance 1 over the last `dims` dimensions, scaled and shifted;
    then the means and the reciprocal standard deviations."""
    cdef Job job
    cdef cnp.ndarray out, mean, scale
    cdef int i, kind
    cdef cnp.npy_intp shape[32]
    if not start(&job, LAYER_NORM, x, dims):
        return None
    kind = cnp.PyArray_TYPE(<cnp.ndarray>x)
    if not share(&job, 0, weight, kind) or not share(&job, 1, bias, kind):
        return None
    out = empty_like(<cnp.ndarray>x)
    if cnp.PyArray_NDIM(out) > 32:
        return None
    for i in range(cnp.PyArray_NDIM(out)):
        shape[i] = cnp.PyArray_DIM(out, i) if i < cnp.PyArray_NDIM(out) - dims else 1
    mean = cnp.PyArray_EMPTY(cnp.PyArray_NDIM(out), shape, kind, 0)
    scale = cnp.PyArray_EMPTY(cnp.PyArray_NDIM(out), shape, kind, 0)
    job.out = cnp.PyArray_BYTES(out)
    job.single[0] = cnp.PyArray_BYTES(mean)
    job.single[1] = cnp.PyArray_BYTES(scale)
    job.eps = eps
    run(&job)
    return out, mean, scale


def layer_norm_gradient(g, x, int dims, weight, mean, scale):
    """The gradient of `layer_norm` by its input."""
    cdef Job job
    cdef cnp.ndarray out
    cdef int kind
    if not start(&job, LAYER_NORM_GRADIENT, g, dims):
        return None
    kind = cnp.PyArray_TYPE(<cnp.ndarray>g)
    if not share(&job, 0, weight, kind) or not (
        suits(x, kind) and suits(mean, kind) and suits(scale, kind)
        and same_dims(<cnp.ndarray>g, <cnp.ndarray>x)
        and cnp.PyArray_SIZE(<cnp.ndarray>mean) == job.rows
        and cnp.PyArray_SIZE(<cnp.ndarray>scale) == job.rows
    ):
        return None
    out = empty_like(<cnp.ndarray>g)
    job.full[1] = cnp.PyArray_BYTES(<cnp.ndarray>x)
    job.single[0] = cnp.PyArray_BYTES(<cnp.ndarray>mean)
    job.single[1] = cnp.PyArray_BYTES(<cnp.ndarray>scale)
    job.out = cnp.PyArray_BYTES(out)
    run(&job)
    return out


def layer_norm_weight(g, x, int dims, mean, scale):
    """The gradient of `layer_norm` by its weight, in the shape of a row."""
    cdef Job job
    cdef cnp.ndarray out
    cdef int kind, ndim
    cdef int64_t parts, i, j
    cdef double total
    if not start(&job, LAYER_NORM_WEIGHT, g, dims):
        return None
    kind = cnp.PyArray_TYPE(<cnp.ndarray>g)
    if not (
        suits(x, kind) and suits(mean, kind) and suits(scale, kind)
        and same_dims(<cnp.ndarray>g, <cnp.ndarray>x)
        and cnp.PyArray_SIZE(<cnp.ndarray>mean) == job.rows
        and cnp.PyArray_SIZE(<cnp.ndarray>scale) == job.rows
    ):
        return None
    job.rows_per_part = max(<int64_t>LEAST_ROWS, job.rows_per_part)
    parts = (job.rows + job.rows_per_part - 1) // job.rows_per_part
    job.partial = <double*>malloc(parts * job.n * sizeof(double))
    if job.partial == NULL:
        return None
    ndim = cnp.PyArray_NDIM(<cnp.ndarray>g)
    out = cnp.PyArray_EMPTY(dims, cnp.PyArray_DIMS(<cnp.ndarray>g) + (ndim - dims), kind, 0)
    job.full[1] = cnp.PyArray_BYTES(<cnp.ndarray>x)
    job.single[0] = cnp.PyArray_BYTES(<cnp.ndarray>mean)
    job.single[1] = cnp.PyArray_BYTES(<cnp.ndarray>scale)
    job.out = cnp.PyArray_BYTES(out)
    with nogil:
        split(run_part, &job, parts)
        for j in range(job.n):
            total = 0
            for i in range(parts):
                total += job.partial[i * job.n + j]
            if kind == cnp.NPY_FLOAT:
                (<float*>job.out)[j] = <float>total
            else:
                (<double*>job.out)[j] = total
        free(job.partial)
    return out


def add_rows(out, rows, values):
    """Add rows of values to those of a contiguous array that are listed, in order.

    False, with nothing done, for other types than float32 and float64 or places that are not there.
    """
    cdef int kind
    cdef int64_t count, width, most, i, j
    cdef const int64_t* places
    cdef float* single
    cdef double* real
    if not cnp.PyArray_CheckExact(out) or not suits(rows, cnp.NPY_INT64):
        return False
    kind = cnp.PyArray_TYPE(<cnp.ndarray>out)
    if kind != cnp.NPY_FLOAT and kind != cnp.NPY_DOUBLE or not suits(values, kind):
        return False
    count = cnp.PyArray_SIZE(<cnp.ndarray>rows)
    if not cnp.PyArray_ISCARRAY(<cnp.ndarray>out) or count == 0:
        return False
    width = cnp.PyArray_SIZE(<cnp.ndarray>values) // count
    if width == 0 or cnp.PyArray_SIZE(<cnp.ndarray>values) != count * width:
        return False
    most = cnp.PyArray_SIZE(<cnp.ndarray>out) // width
    places = <const int64_t*>cnp.PyArray_DATA(<cnp.ndarray>rows)
    for i in range(count):
        if not 0 <= places[i] < most:
            return False
    with nogil:
        if kind == cnp.NPY_FLOAT:
            for i in range(count):
                single = <float*>cnp.PyArray_DATA(<cnp.ndarray>out) + places[i] * width
                for j in range(width):
                    single[j] += (<const float*>cnp.PyArray_DATA(<cnp.ndarray>values))[i * width + j]
        else:
            for i in range(count):
                real = <double*>cnp.PyArray_DATA(<cnp.ndarray>out) + places[i] * width
                for j in range(width):
                    real[j] += (<const double*>cnp.PyArray_DATA(<cnp.ndarray>values))[i * width + j]
    return True
