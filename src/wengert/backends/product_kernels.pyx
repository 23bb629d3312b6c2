# cython: boundscheck=False, wraparound=False
"""Kernels of products of matrices, of batches of them and of small ones of vectors; with gradients."""
cimport numpy as cnp
from libc.stdint cimport int64_t
from libc.string cimport memset

from ..core.array_checks cimport empty_like
from ..core.pool cimport split
from .kernels cimport is_plain, known
from .matrices cimport Matrices, blas_alone, blas_together, raw_product
from .strips cimport wengert_rows
from .vector_loops cimport rows_of

from .matrices import matrices

cnp.import_array()

cdef enum:
    PART = 500_000     # multiplications that a thread takes at a time
    FEW = 4            # products of a batch that are not shared out one by one
    QUICK = 20_000     # multiplications below which the interpreter's lock is kept
    SMALL = 6000       # multiplications of a matrix and a vector that BLAS is not called for
    SHORT = 512        # elements of a vector for which no vectors are needed
    LONG = 65536       # elements that one thread takes
    BLOCK = 256        # columns that one thread takes

ctypedef fused real:
    float
    double


cdef Matrices shared_matrices = matrices


cdef object mm(tuple v):
    return shared_matrices.product(v[0], v[1], False, False)


cdef object mm_right(tuple v):
    return shared_matrices.product(v[0], v[1], False, True)


cdef object mm_left(tuple v):
    return shared_matrices.product(v[0], v[1], True, False)


cdef object addmm(tuple v):
    """(self, mat1, mat2, beta, alpha)"""
    return shared_matrices.addmm(v[0], v[1], v[2]) if v[3] == 1 and v[4] == 1 else None


cdef object affine(tuple v):
    """(bias, self, weight)"""
    return shared_matrices.addmm(v[0], v[1], v[2], True)


# Batches -----------------------------------------------------------------------------------------


cdef bint is_operand(object value, int ndim) noexcept:
    """Whether a value is an array of floats of some dimensions, whose strides are whole elements."""
    cdef cnp.ndarray a
    cdef int kind, i
    if not cnp.PyArray_CheckExact(value) or cnp.PyArray_NDIM(<cnp.ndarray>value) != ndim:
        return False
    a = <cnp.ndarray>value
    kind = cnp.PyArray_TYPE(a)
    if kind != cnp.NPY_FLOAT and kind != cnp.NPY_DOUBLE or not cnp.PyArray_ISBEHAVED_RO(a):
        return False
    for i in range(ndim):
        if cnp.PyArray_STRIDE(a, i) % cnp.PyArray_ITEMSIZE(a) or cnp.PyArray_DIM(a, i) == 0:
            return False
    return True


cdef struct Batches:
    bint is_double
    const char* a
    const char* b
    char* out
    int64_t count, per_part, m, k, n, itemsize
    int64_t a_next, a_row, a_column, b_next, b_row, b_column
    bint alone, failed


cdef void multiply_part(void* data, int64_t part) noexcept nogil:
    cdef Batches* job = <Batches*>data
    cdef int64_t i = part * job.per_part, end = min(i + job.per_part, job.count)
    while i < end:
        if not raw_product(
            job.is_double, job.a + i * job.a_next, job.b + i * job.b_next,
            job.out + i * job.m * job.n * job.itemsize, job.m, job.k, job.n, job.a_row,
            job.a_column, job.b_row, job.b_column, job.alone
        ):
            job.failed = True
            return
        i += 1


cdef object batched(tuple v, int turn_a, int turn_b):
    """Products of the matrices of two batches, of which those of one may be transposed."""
    cdef Batches job
    cdef cnp.npy_intp shape[3]
    cdef cnp.ndarray a, b, out
    cdef int64_t work
    if not is_operand(v[0], 3) or not is_operand(v[1], 3):
        return None
    a, b = <cnp.ndarray>v[0], <cnp.ndarray>v[1]
    job.itemsize = cnp.PyArray_ITEMSIZE(a)
    job.count = cnp.PyArray_DIM(a, 0)
    job.m, job.k = cnp.PyArray_DIM(a, 1 + turn_a), cnp.PyArray_DIM(a, 2 - turn_a)
    job.n = cnp.PyArray_DIM(b, 2 - turn_b)
    if (
        cnp.PyArray_TYPE(a) != cnp.PyArray_TYPE(b) or cnp.PyArray_DIM(b, 0) != job.count
        or cnp.PyArray_DIM(b, 1 + turn_b) != job.k
    ):
        return None
    job.is_double = job.itemsize == 8
    job.a_next, job.b_next = cnp.PyArray_STRIDE(a, 0), cnp.PyArray_STRIDE(b, 0)
    job.a_row = cnp.PyArray_STRIDE(a, 1 + turn_a) // job.itemsize
    job.a_column = cnp.PyArray_STRIDE(a, 2 - turn_a) // job.itemsize
    job.b_row = cnp.PyArray_STRIDE(b, 1 + turn_b) // job.itemsize
    job.b_column = cnp.PyArray_STRIDE(b, 2 - turn_b) // job.itemsize
    job.a, job.b = cnp.PyArray_BYTES(a), cnp.PyArray_BYTES(b)
    job.failed = False
    shape[0], shape[1], shape[2] = job.count, job.m, job.n
    out = cnp.PyArray_EMPTY(3, shape, cnp.PyArray_TYPE(a), 0)
    job.out = cnp.PyArray_BYTES(out)
    work = job.m * job.k * job.n
    # Few large products are split one by one.
    job.alone = work < PART or job.count >= FEW
    job.per_part = max(1, PART // work) if job.alone else job.count
    if work * job.count < QUICK:
        job.per_part = job.count
        multiply_part(&job, 0)
    else:
        with nogil:
            if job.alone and blas_alone():
                split(multiply_part, &job, (job.count + job.per_part - 1) // job.per_part)
                blas_together()
            else:
                job.alone, job.per_part = False, job.count
                multiply_part(&job, 0)
    return None if job.failed else out


cdef object bmm(tuple v):
    return batched(v, 0, 0)


cdef object bmm_right(tuple v):
    return batched(v, 0, 1)


cdef object bmm_left(tuple v):
    return batched(v, 1, 0)


cdef object bmm_by_first(tuple v):
    """(gradient, mat2)"""
    return batched(v, 0, 1)


cdef object bmm_by_second(tuple v):
    """(gradient, self)"""
    return batched((v[1], v[0]), 1, 0)


# Vectors -----------------------------------------------------------------------------------------


cdef object times_vector(object matrix, object vector, int turned):
    cdef cnp.npy_intp rows
    cdef cnp.ndarray a, x, out
    cdef Py_ssize_t item, k
    if not is_operand(matrix, 2) or not is_operand(vector, 1):
        return None
    a, x = <cnp.ndarray>matrix, <cnp.ndarray>vector
    item = cnp.PyArray_ITEMSIZE(a)
    rows, k = cnp.PyArray_DIM(a, turned), cnp.PyArray_DIM(a, 1 - turned)
    if cnp.PyArray_TYPE(a) != cnp.PyArray_TYPE(x) or cnp.PyArray_DIM(x, 0) != k:
        return None
    if rows * k > SMALL:
        if not is_plain(a) or not is_plain(x):
            return None
        return by_columns(a, x) if turned else by_rows(a, x)
    out = cnp.PyArray_EMPTY(1, &rows, cnp.PyArray_TYPE(a), 0)
    # The vector as a matrix of one column, of which the stride does not matter but is not one.
    raw_product(
        item == 8, cnp.PyArray_BYTES(a), cnp.PyArray_BYTES(x), cnp.PyArray_BYTES(out), rows, k, 1,
        cnp.PyArray_STRIDE(a, turned) // item, cnp.PyArray_STRIDE(a, 1 - turned) // item,
        cnp.PyArray_STRIDE(x, 0) // item, 0, True)
    return out


cdef struct Rows:
    const wengert_rows* table
    const char* a
    const char* x
    char* out
    int64_t rows, n, per_part
    int itemsize


cdef void rows_part(void* data, int64_t part) noexcept nogil:
    cdef Rows* job = <Rows*>data
    cdef int64_t i = part * job.per_part, end = min(i + job.per_part, job.rows)
    cdef double plain, product, zero = 0
    while i < end:
        job.table.products(
            job.x, job.a + i * job.n * job.itemsize, <char*>&zero, &plain, &product, job.n, 1, 1)
        if job.itemsize == 4:
            (<float*>job.out)[i] = <float>product
        else:
            (<double*>job.out)[i] = product
        i += 1


cdef object by_rows(cnp.ndarray a, cnp.ndarray x):
    """The sums of the products of each row of an array with a vector."""
    cdef Rows job
    cdef cnp.ndarray out
    job.table = <const wengert_rows*>rows_of(cnp.PyArray_TYPE(a))
    if job.table == NULL:
        return None
    job.n = cnp.PyArray_SIZE(x)
    job.rows = cnp.PyArray_SIZE(a) // job.n
    job.itemsize = cnp.PyArray_ITEMSIZE(a)
    out = cnp.PyArray_EMPTY(
        cnp.PyArray_NDIM(a) - 1, cnp.PyArray_DIMS(a), cnp.PyArray_TYPE(a), 0)
    job.a, job.x = cnp.PyArray_BYTES(a), cnp.PyArray_BYTES(x)
    job.out = cnp.PyArray_BYTES(out)
    job.per_part = max(1, 32768 // job.n)
    with nogil:
        split(rows_part, &job, (job.rows + job.per_part - 1) // job.per_part)
    return out


cdef struct Columns:
    const char* a
    const char* x
    char* out
    int64_t rows, columns
    bint is_double


cdef void add_columns(
    const real* a, const real* x, real* out, int64_t rows, int64_t columns, int64_t begin, int64_t n
) noexcept nogil:
    """Sum rows, each times an element of a vector, over some columns: four rows at a time."""
    cdef int64_t i = 0, j
    cdef const real* first
    memset(out + begin, 0, n * sizeof(real))
    while i + 4 <= rows:
        first = a + i * columns + begin
        for j in range(n):
            out[begin + j] += (
                (x[i] * first[j] + x[i + 1] * first[columns + j])
                + (x[i + 2] * first[2 * columns + j] + x[i + 3] * first[3 * columns + j]))
        i += 4
    while i < rows:
        first = a + i * columns + begin
        for j in range(n):
            out[begin + j] += x[i] * first[j]
        i += 1


cdef void columns_part(void* data, int64_t part) noexcept nogil:
    cdef Columns* job = <Columns*>data
    cdef int64_t begin = part * BLOCK, n = min(BLOCK, job.columns - begin)
    if job.is_double:
        add_columns[double](
            <const double*>job.a, <const double*>job.x, <double*>job.out, job.rows, job.columns,
            begin, n)
    else:
        add_columns[float](
            <const float*>job.a, <const float*>job.x, <float*>job.out, job.rows, job.columns,
            begin, n)


cdef object by_columns(cnp.ndarray a, cnp.ndarray x):
    """The sums of the products of each column of a matrix with a vector."""
    cdef Columns job
    cdef cnp.ndarray out
    cdef cnp.npy_intp size = cnp.PyArray_DIM(a, 1)
    out = cnp.PyArray_EMPTY(1, &size, cnp.PyArray_TYPE(a), 0)
    job.rows, job.columns = cnp.PyArray_DIM(a, 0), size
    job.a, job.x, job.out = cnp.PyArray_BYTES(a), cnp.PyArray_BYTES(x), cnp.PyArray_BYTES(out)
    job.is_double = cnp.PyArray_TYPE(a) == cnp.NPY_DOUBLE
    with nogil:
        split(columns_part, &job, (size + BLOCK - 1) // BLOCK)
    return out


cdef object mv(tuple v):
    return times_vector(v[0], v[1], 0)


cdef object mv_by_vector(tuple v):
    """(gradient, self)"""
    return times_vector(v[1], v[0], 1)


cdef struct Outer:
    # Rows of `columns` elements, each a vector times a factor.
    const char* x
    const char* factors
    char* out
    int64_t rows, columns, per_part
    bint is_double


cdef void scale_loop(const real* x, real factor, real* out, int64_t n) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        out[i] = factor * x[i]


cdef void outer_part(void* data, int64_t part) noexcept nogil:
    """Some rows, or a block of a single one."""
    cdef Outer* job = <Outer*>data
    cdef int64_t i = part * job.per_part, end = min(i + job.per_part, job.rows), begin = 0
    cdef int64_t n = job.columns
    if job.rows == 1:
        i, end, begin = 0, 1, part * LONG
        n = min(LONG, job.columns - begin)
    while i < end:
        if job.is_double:
            scale_loop[double](
                <const double*>job.x + begin, (<const double*>job.factors)[i],
                <double*>job.out + i * job.columns + begin, n)
        else:
            scale_loop[float](
                <const float*>job.x + begin, (<const float*>job.factors)[i],
                <float*>job.out + i * job.columns + begin, n)
        i += 1


cdef object outer(cnp.ndarray factors, cnp.ndarray x, cnp.ndarray out):
    """A vector times each of some factors, written into `out`."""
    cdef Outer job
    cdef int64_t parts
    job.rows, job.columns = cnp.PyArray_SIZE(factors), cnp.PyArray_SIZE(x)
    job.x, job.factors = cnp.PyArray_BYTES(x), cnp.PyArray_BYTES(factors)
    job.out = cnp.PyArray_BYTES(out)
    job.is_double = cnp.PyArray_TYPE(x) == cnp.NPY_DOUBLE
    job.per_part = max(1, LONG // job.columns)
    parts = (job.rows + job.per_part - 1) // job.per_part
    if job.rows == 1:
        parts = (job.columns + LONG - 1) // LONG
    with nogil:
        split(outer_part, &job, parts)
    return out


cdef object mv_by_matrix(tuple v):
    """(gradient, vec)"""
    cdef cnp.npy_intp shape[2]
    cdef cnp.ndarray g, x
    if not is_plain(v[0]) or not is_plain(v[1]):
        return None
    g, x = <cnp.ndarray>v[0], <cnp.ndarray>v[1]
    if cnp.PyArray_TYPE(g) != cnp.PyArray_TYPE(x) or cnp.PyArray_NDIM(g) != 1 or (
        cnp.PyArray_NDIM(x) != 1
    ):
        return None
    shape[0], shape[1] = cnp.PyArray_SIZE(g), cnp.PyArray_SIZE(x)
    return outer(g, x, cnp.PyArray_EMPTY(2, shape, cnp.PyArray_TYPE(g), 0))


cdef double dot_loop(const real* a, const real* b, Py_ssize_t n) noexcept nogil:
    """Eight sums, so that none waits for another."""
    cdef double parts[8]
    cdef Py_ssize_t i = 0, k
    for k in range(8):
        parts[k] = 0
    while i + 8 <= n:
        for k in range(8):
            parts[k] += <double>a[i + k] * b[i + k]
        i += 8
    while i < n:
        parts[0] += <double>a[i] * b[i]
        i += 1
    return ((parts[0] + parts[1]) + (parts[2] + parts[3])) + (
        (parts[4] + parts[5]) + (parts[6] + parts[7]))


cdef struct Sums:
    const wengert_rows* table
    const char* a
    const char* b
    double* sums
    int64_t size
    int itemsize


cdef void dot_part(void* data, int64_t part) noexcept nogil:
    cdef Sums* job = <Sums*>data
    cdef int64_t at = part * LONG * job.itemsize
    cdef double plain, zero = 0
    job.table.products(
        job.a + at, job.b + at, <char*>&zero, &plain, job.sums + part,
        min(LONG, job.size - part * LONG), 1, 1)


cdef object long_dot(cnp.ndarray a, cnp.ndarray b):
    """The sum of the products of two vectors, by blocks that do not depend on the threads."""
    cdef Sums job
    cdef cnp.npy_intp parts
    cdef cnp.ndarray sums, out
    cdef double total = 0
    cdef int64_t i
    job.table = <const wengert_rows*>rows_of(cnp.PyArray_TYPE(a))
    if job.table == NULL:
        return None
    job.size, job.itemsize = cnp.PyArray_SIZE(a), cnp.PyArray_ITEMSIZE(a)
    parts = (job.size + LONG - 1) // LONG
    sums = cnp.PyArray_EMPTY(1, &parts, cnp.NPY_DOUBLE, 0)
    job.a, job.b, job.sums = (
        cnp.PyArray_BYTES(a), cnp.PyArray_BYTES(b), <double*>cnp.PyArray_DATA(sums)
    )
    with nogil:
        split(dot_part, &job, parts)
    for i in range(parts):
        total += job.sums[i]
    out = cnp.PyArray_EMPTY(0, NULL, cnp.PyArray_TYPE(a), 0)
    if job.itemsize == 4:
        (<float*>cnp.PyArray_DATA(out))[0] = <float>total
    else:
        (<double*>cnp.PyArray_DATA(out))[0] = total
    return out


cdef object dot(tuple v):
    cdef cnp.ndarray a, b, out
    if not is_plain(v[0]) or not is_plain(v[1]):
        return None
    a, b = <cnp.ndarray>v[0], <cnp.ndarray>v[1]
    if (
        cnp.PyArray_TYPE(a) != cnp.PyArray_TYPE(b) or cnp.PyArray_NDIM(a) != 1
        or cnp.PyArray_NDIM(b) != 1 or cnp.PyArray_SIZE(a) != cnp.PyArray_SIZE(b)
    ):
        return None
    if cnp.PyArray_SIZE(a) > LONG:
        return long_dot(a, b)
    if cnp.PyArray_SIZE(a) > SHORT:
        return by_rows(a, b)
    out = cnp.PyArray_EMPTY(0, NULL, cnp.PyArray_TYPE(a), 0)
    if cnp.PyArray_TYPE(a) == cnp.NPY_FLOAT:
        (<float*>cnp.PyArray_DATA(out))[0] = <float>dot_loop[float](
            <float*>cnp.PyArray_DATA(a), <float*>cnp.PyArray_DATA(b), cnp.PyArray_SIZE(a))
    else:
        (<double*>cnp.PyArray_DATA(out))[0] = dot_loop[double](
            <double*>cnp.PyArray_DATA(a), <double*>cnp.PyArray_DATA(b), cnp.PyArray_SIZE(a))
    return out


cdef object dot_gradient(tuple v):
    """(gradient, the other vector)"""
    cdef cnp.ndarray g, x
    if not is_plain(v[0]) or not is_plain(v[1]):
        return None
    g, x = <cnp.ndarray>v[0], <cnp.ndarray>v[1]
    if cnp.PyArray_TYPE(g) != cnp.PyArray_TYPE(x) or cnp.PyArray_NDIM(g) != 0:
        return None
    return outer(g, x, empty_like(x))


known("mm", mm)
known("_mm_right", mm_right)
known("_mm_left", mm_left)
known("addmm", addmm)
known("_affine", affine)
known("bmm", bmm)
known("bmm.self", bmm_by_first)
known("bmm.mat2", bmm_by_second)
known("_bmm_right", bmm_right)
known("_bmm_left", bmm_left)
known("mv", mv)
known("mv.self", mv_by_matrix)
known("mv.vec", mv_by_vector)
known("dot", dot)
known("dot.self", dot_gradient)
known("dot.tensor", dot_gradient)
