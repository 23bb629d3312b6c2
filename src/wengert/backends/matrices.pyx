# cython: boundscheck=False, wraparound=False
"""Products of matrices: loops for small ones, see products.h, NumPy's own BLAS for others.

BLAS is called directly, because NumPy clears every result first and cannot add to one. Operands
that neither serves are declined with None or False, and the caller goes through NumPy.
`matrices.py` beside this file is the interface without C.
"""
cimport numpy as cnp
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from ..core.array_checks cimport is_row_of, is_small, same_dims
from ..core.pool cimport split, threads_allowed
from .strips cimport wengert_rows
from .vector_loops cimport rows_of

from numpy._core import _multiarray_umath as umath

cnp.import_array()

cdef extern from "blas.h":
    bint wengert_serves(Py_ssize_t largest) noexcept nogil
    bint wengert_find_blas(const char* path) noexcept
    void wengert_alone() noexcept nogil
    void wengert_together() noexcept nogil
    bint wengert_can_be_alone() noexcept nogil
    void wengert_gemm(
        bint is_double, bint turn_a, bint turn_b, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k,
        const void* a, Py_ssize_t a_step, const void* b, Py_ssize_t b_step, bint adds, void* out,
        Py_ssize_t out_step
    ) noexcept nogil

ctypedef fused real:
    float
    double

cdef enum:
    ADDEND_LIMIT = 32768  # elements of what a product is added to
    SMALL = 6000  # multiplications for which BLAS takes longer to start than to run
    MIDDLE = 65536  # the same where the columns of the second factor lie side by side
    WORTH_SPLITTING = 400_000  # multiplications
    WORTH_FOUR = 1 << 25  # multiplications
    FOUR_SMALL = 4_000_000  # multiplications: BLAS has a quicker way for a quarter of them
    LARGEST_SPLIT = 1 << 27  # multiplications that four threads are enough for
    PARTS = 4  # of a product at most
    NARROWEST = 64  # rows or columns of a part
    GRAIN = 16  # rows or columns that parts have a multiple of

cdef bint has_blas = False
cdef const wengert_rows* tables[2]  # in single and double precision
tables[0] = <const wengert_rows*>rows_of(cnp.NPY_FLOAT)
tables[1] = <const wengert_rows*>rows_of(cnp.NPY_DOUBLE)


cdef inline bint is_target(object value) noexcept:
    """Whether a loop may write to an array: contiguous, aligned, writable."""
    return cnp.PyArray_CheckExact(value) and cnp.PyArray_ISCARRAY(<cnp.ndarray>value)


cdef inline bint are_factors(object a, object b, bint turn_a, bint turn_b) noexcept:
    """Whether two matrices of one real dtype fit together, transposed or not."""
    cdef int kind
    if not is_matrix_like(a, a) or not is_matrix_like(b, a):
        return False
    kind = cnp.PyArray_TYPE(<cnp.ndarray>a)
    return (
        (kind == cnp.NPY_FLOAT or kind == cnp.NPY_DOUBLE)
        and cnp.PyArray_DIM(<cnp.ndarray>a, not turn_a) == cnp.PyArray_DIM(<cnp.ndarray>b, turn_b)
        and cnp.PyArray_ISALIGNED(<cnp.ndarray>a) and cnp.PyArray_ISALIGNED(<cnp.ndarray>b)
        and cnp.PyArray_ISNOTSWAPPED(<cnp.ndarray>a) and cnp.PyArray_ISNOTSWAPPED(<cnp.ndarray>b)
    )


cdef inline bint is_matrix_like(object value, object like) noexcept:
    """Whether `value` is a plain matrix of the dtype of `like`, an array."""
    return (
        cnp.PyArray_CheckExact(value)
        and cnp.PyArray_NDIM(<cnp.ndarray>value) == 2
        and cnp.PyArray_TYPE(<cnp.ndarray>value) == cnp.PyArray_TYPE(<cnp.ndarray>like)
    )


cdef void matmul_loop(
    real* a, real* b, real* out, Py_ssize_t m, Py_ssize_t k, Py_ssize_t n,
    Py_ssize_t a_row, Py_ssize_t a_col, Py_ssize_t b_row, Py_ssize_t b_col, bint adds,
) noexcept nogil:
    cdef Py_ssize_t i, j, p
    cdef real s
    cdef real* row
    cdef real* source
    if b_col == 1:
        for i in range(m):
            row = out + i * n
            if not adds:
                for j in range(n):
                    row[j] = 0
            for p in range(k):
                s = a[i * a_row + p * a_col]
                source = b + p * b_row
                for j in range(n):
                    row[j] += s * source[j]
    else:
        for i in range(m):
            for j in range(n):
                s = 0
                for p in range(k):
                    s += a[i * a_row + p * a_col] * b[p * b_row + j * b_col]
                out[i * n + j] = out[i * n + j] + s if adds else s


cdef bint small_product(
    bint is_double, const char* a, const char* b, char* out, Py_ssize_t m, Py_ssize_t k,
    Py_ssize_t n, Py_ssize_t a_row, Py_ssize_t a_column, Py_ssize_t b_row, Py_ssize_t b_column,
    bint adds
) noexcept nogil:
    """A product by a loop, strides in elements; False if BLAS is to compute it."""
    cdef const wengert_rows* table = tables[is_double]
    cdef Py_ssize_t work = m * k * n
    if work > MIDDLE or work > SMALL and b_column != 1:
        return False
    if table != NULL and table.multiply(
        a, b, out, m, k, n, a_row, a_column, b_row, b_column, adds
    ):
        return True
    if work > SMALL:
        return False
    if is_double:
        matmul_loop[double](
            <double*>a, <double*>b, <double*>out, m, k, n, a_row, a_column, b_row, b_column, adds)
    else:
        matmul_loop[float](
            <float*>a, <float*>b, <float*>out, m, k, n, a_row, a_column, b_row, b_column, adds)
    return True


cdef struct Product:
    bint is_double, turn_a, turn_b, adds
    Py_ssize_t m, n, k, a_step, b_step, tall, wide, down
    const char* a
    const char* b
    const char* start  # a row that all rows of the result begin as, or NULL
    char* out


cdef void product_part(void* data, int64_t part) noexcept nogil:
    """Some rows and columns of a product."""
    cdef Product* job = <Product*>data
    cdef Py_ssize_t row = part % job.down * job.tall, column = part // job.down * job.wide
    cdef Py_ssize_t tall = min(job.tall, job.m - row), wide = min(job.wide, job.n - column)
    cdef Py_ssize_t item = 8 if job.is_double else 4
    if job.start != NULL:
        repeat_row(
            job.out + (row * job.n + column) * item, job.start + column * item, tall, wide * item,
            job.n * item)
    wengert_gemm(
        job.is_double, job.turn_a, job.turn_b, tall, wide, job.k,
        job.a + row * item * (1 if job.turn_a else job.a_step), job.a_step,
        job.b + column * item * (job.b_step if job.turn_b else 1), job.b_step,
        job.adds, job.out + (row * job.n + column) * item, job.n)


cdef void repeat_row(
    char* out, const char* row, Py_ssize_t count, Py_ssize_t size, Py_ssize_t step
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(count):
        memcpy(out + i * step, row, size)


cdef inline Py_ssize_t in_parts(Py_ssize_t length, Py_ssize_t parts) noexcept nogil:
    """How long each of some parts is, the last one perhaps shorter: a multiple of the grain."""
    return max((length + parts * GRAIN - 1) // (parts * GRAIN) * GRAIN, NARROWEST)


cdef void shared_product(
    bint is_double, bint turn_a, bint turn_b, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k,
    const void* a, Py_ssize_t a_step, const void* b, Py_ssize_t b_step, bint adds,
    const void* start, void* out
) noexcept nogil:
    """A product by BLAS in two or four parts for our threads, the same however many they are.

    BLAS brings both factors into an order of its own for each part again, so that parts are few, and
    two by two cost less than four in a row. More threads than parts leave a large product to those
    of BLAS, which may round in another way.
    """
    cdef Product job
    cdef double work = <double>m * n * k
    cdef Py_ssize_t size
    cdef int parts
    if work < WORTH_SPLITTING or not wengert_can_be_alone() or (
        work > LARGEST_SPLIT and threads_allowed() > PARTS
    ):
        if start != NULL:
            size = n * (8 if is_double else 4)
            repeat_row(<char*>out, <const char*>start, m, size, size)
        wengert_gemm(
            is_double, turn_a, turn_b, m, n, k, a, a_step, b, b_step, adds, out, n)
        return
    if (work >= WORTH_FOUR or work < FOUR_SMALL) and min(m, n) >= 2 * NARROWEST:
        job.tall, job.wide = in_parts(m, 2), in_parts(n, 2)
    else:
        parts = PARTS if work >= WORTH_FOUR else 2
        job.tall, job.wide = (in_parts(m, parts), n) if m > n else (m, in_parts(n, parts))
    job.is_double, job.turn_a, job.turn_b, job.adds = is_double, turn_a, turn_b, adds
    job.m, job.n, job.k, job.a_step, job.b_step = m, n, k, a_step, b_step
    job.a, job.b, job.out = <const char*>a, <const char*>b, <char*>out
    job.start = <const char*>start
    job.down = (m + job.tall - 1) // job.tall
    wengert_alone()
    split(product_part, &job, job.down * ((n + job.wide - 1) // job.wide))
    wengert_together()


cdef bint multiply_into(
    cnp.ndarray a, cnp.ndarray b, bint turn_a, bint turn_b, cnp.ndarray out, bint adds, bint blas,
    const char* start
) except -1:
    """`out = a @ b`, or `out += a @ b`, for matrices that fit; False if large and there is no BLAS.

    Rows of `out` that it is added to are first made those of `start`, if that is not NULL.
    """
    cdef bint is_double = cnp.PyArray_TYPE(out) == cnp.NPY_DOUBLE
    cdef Py_ssize_t item = 8 if is_double else 4
    cdef Py_ssize_t m = cnp.PyArray_DIM(out, 0), n = cnp.PyArray_DIM(out, 1)
    cdef Py_ssize_t k = cnp.PyArray_DIM(a, 0 if turn_a else 1)
    cdef Py_ssize_t a_step, b_step
    cdef bint a_turned, b_turned
    if start != NULL and m * k * n <= MIDDLE:
        repeat_row(cnp.PyArray_BYTES(out), start, m, n * item, n * item)
    if small_product(
        is_double, cnp.PyArray_BYTES(a), cnp.PyArray_BYTES(b), cnp.PyArray_BYTES(out), m, k, n,
        cnp.PyArray_STRIDE(a, turn_a) // item, cnp.PyArray_STRIDE(a, not turn_a) // item,
        cnp.PyArray_STRIDE(b, turn_b) // item, cnp.PyArray_STRIDE(b, not turn_b) // item, adds
    ):
        return True
    if not blas:
        return False
    a_step = blas_step(a, item, &a_turned)
    if a_step == 0:
        a = cnp.PyArray_GETCONTIGUOUS(a)
        a_step = blas_step(a, item, &a_turned)
    b_step = blas_step(b, item, &b_turned)
    if b_step == 0:
        b = cnp.PyArray_GETCONTIGUOUS(b)
        b_step = blas_step(b, item, &b_turned)
    if a_step == 0 or b_step == 0 or not wengert_serves(max(m, n, k, a_step, b_step)):
        return False
    with nogil:
        shared_product(
            is_double, a_turned != turn_a, b_turned != turn_b, m, n, k,
            cnp.PyArray_DATA(a), a_step, cnp.PyArray_DATA(b), b_step, adds, start,
            cnp.PyArray_DATA(out))
    return True


cdef Py_ssize_t blas_step(cnp.ndarray a, Py_ssize_t item, bint* turned) noexcept:
    """Elements from one row, or column if `turned`, to the next; 0 if BLAS cannot read them."""
    cdef Py_ssize_t down = cnp.PyArray_STRIDE(a, 0), across = cnp.PyArray_STRIDE(a, 1)
    if down % item or across % item:
        return 0
    return step_of(
        cnp.PyArray_DIM(a, 0), cnp.PyArray_DIM(a, 1), down // item, across // item, turned)


cdef bint raw_product(
    bint is_double, const char* a, const char* b, char* out, Py_ssize_t m, Py_ssize_t k,
    Py_ssize_t n, Py_ssize_t a_row, Py_ssize_t a_column, Py_ssize_t b_row, Py_ssize_t b_column,
    bint alone
) noexcept nogil:
    """A product of matrices by their addresses, by one thread if `alone`; False if BLAS cannot read
    them by their strides, which are in elements."""
    cdef Py_ssize_t a_step, b_step
    cdef bint a_turned, b_turned
    if small_product(
        is_double, a, b, out, m, k, n, a_row, a_column, b_row, b_column, False
    ):
        return True
    a_step = step_of(m, k, a_row, a_column, &a_turned)
    b_step = step_of(k, n, b_row, b_column, &b_turned)
    if not has_blas or a_step == 0 or b_step == 0 or not wengert_serves(
        max(m, n, k, a_step, b_step)
    ):
        return False
    if alone:
        wengert_gemm(is_double, a_turned, b_turned, m, n, k, a, a_step, b, b_step, False, out, n)
    else:
        shared_product(
            is_double, a_turned, b_turned, m, n, k, a, a_step, b, b_step, False, NULL, out)
    return True


cdef bint has_gemm() noexcept:
    """Whether there is a BLAS that `gemm` may call."""
    return has_blas


cdef void gemm(
    bint is_double, bint turn_a, bint turn_b, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k,
    const void* a, Py_ssize_t a_step, const void* b, Py_ssize_t b_step, bint adds, void* out,
    Py_ssize_t out_step
) noexcept nogil:
    """BLAS's own product, whose steps are those between rows as they lie in memory."""
    wengert_gemm(is_double, turn_a, turn_b, m, n, k, a, a_step, b, b_step, adds, out, out_step)


cdef bint blas_alone() noexcept nogil:
    """Let BLAS use one thread until `blas_together()`; False where it cannot be told to."""
    if not wengert_can_be_alone():
        return False
    wengert_alone()
    return True


cdef void blas_together() noexcept nogil:
    """Undo a `blas_alone()` that was True."""
    wengert_together()


cdef Py_ssize_t step_of(
    Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t down, Py_ssize_t across, bint* turned
) noexcept nogil:
    """What `blas_step` tells of an array, by its lengths and strides in elements."""
    turned[0] = False
    if across == 1 or columns == 1:
        if rows == 1:
            return columns
        if down >= columns:
            return down
    turned[0] = True
    if down == 1 or rows == 1:
        if columns == 1:
            return rows
        if across >= rows:
            return across
    return 0


cdef class Matrices:
    """Products of real matrices; one instance, `matrices`. `blas` may be switched off."""

    def __cinit__(self):
        # without the matrix products of NumPy's own library, NumPy is called for them
        global has_blas
        self.blas = has_blas = wengert_find_blas(umath.__file__.encode())

    cpdef object product(self, object a, object b, bint turn_a, bint turn_b):
        """Product of two real matrices of one dtype, either of them transposed first; else None."""
        cdef cnp.npy_intp dims[2]
        cdef cnp.ndarray out
        if not are_factors(a, b, turn_a, turn_b):
            return None
        dims[0] = cnp.PyArray_DIM(<cnp.ndarray>a, turn_a)
        dims[1] = cnp.PyArray_DIM(<cnp.ndarray>b, not turn_b)
        out = cnp.PyArray_EMPTY(2, dims, cnp.PyArray_TYPE(<cnp.ndarray>a), 0)
        if multiply_into(
            <cnp.ndarray>a, <cnp.ndarray>b, turn_a, turn_b, out, False, self.blas, NULL
        ):
            return out
        return None

    cpdef bint product_into(self, object out, object a, object b, bint turn_a, bint turn_b):
        """`out += a @ b` for real matrices of one dtype, `out` an array of its own; else False."""
        return (
            is_target(out)
            and are_factors(a, b, turn_a, turn_b)
            and is_matrix_like(out, a)
            and cnp.PyArray_DIM(<cnp.ndarray>out, 0) == cnp.PyArray_DIM(<cnp.ndarray>a, turn_a)
            and cnp.PyArray_DIM(<cnp.ndarray>out, 1) == cnp.PyArray_DIM(<cnp.ndarray>b, not turn_b)
            and multiply_into(
                <cnp.ndarray>a, <cnp.ndarray>b, turn_a, turn_b, <cnp.ndarray>out, True, self.blas,
                NULL)
        )

    cpdef object addmm(self, object x, object a, object b, bint turn_b=False):
        """`x + a @ b`, with `b` transposed first or not, `x` a small row or matrix; else None."""
        cdef cnp.npy_intp dims[2]
        cdef cnp.ndarray out
        cdef const char* start = NULL
        if not is_small(x, ADDEND_LIMIT) or not are_factors(a, b, False, turn_b):
            return None
        if cnp.PyArray_TYPE(<cnp.ndarray>x) != cnp.PyArray_TYPE(<cnp.ndarray>a):
            return None
        dims[0] = cnp.PyArray_DIM(<cnp.ndarray>a, 0)
        dims[1] = cnp.PyArray_DIM(<cnp.ndarray>b, not turn_b)
        out = cnp.PyArray_EMPTY(2, dims, cnp.PyArray_TYPE(<cnp.ndarray>a), 0)
        if is_row_of(<cnp.ndarray>x, out):
            start = cnp.PyArray_BYTES(<cnp.ndarray>x)
        elif same_dims(<cnp.ndarray>x, out):
            memcpy(cnp.PyArray_DATA(out), cnp.PyArray_DATA(<cnp.ndarray>x), cnp.PyArray_NBYTES(out))
        else:
            return None
        if multiply_into(
            <cnp.ndarray>a, <cnp.ndarray>b, False, turn_b, out, True, self.blas, start
        ):
            return out
        return None


matrices = Matrices()
