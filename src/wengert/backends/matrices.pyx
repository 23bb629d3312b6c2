# cython: boundscheck=False, wraparound=False
"""Products of matrices: loops for small ones, see products.h, and for those of middle size, see
panels.h; NumPy's own BLAS for others.

BLAS is called directly, because NumPy clears every result first and cannot add to one. Operands
that none of them serves are declined with None or False, and the caller goes through NumPy.
`matrices.py` beside this file is the interface without C.
"""
cimport numpy as cnp
from libc.math cimport INFINITY
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
        double factor, const void* a, Py_ssize_t a_step, const void* b, Py_ssize_t b_step,
        bint adds, void* out, Py_ssize_t out_step
    ) noexcept nogil

ctypedef fused real:
    float
    double

cdef enum:
    ADDEND_LIMIT = 32768  # elements of what a product is added to
    SMALL = 6000  # multiplications for which BLAS takes longer to start than to run
    MIDDLE = 65536  # the same where the columns of the second factor lie side by side
    WORTH_SPLITTING = 200_000  # multiplications
    WORTH_FOUR = 1 << 25  # multiplications
    FOUR_SMALL = 4_000_000  # multiplications: BLAS has a quicker way for a quarter of them
    LARGEST_SPLIT = 1 << 27  # multiplications that four threads are enough for
    PARTS = 4  # of a product by BLAS at most
    NARROWEST = 64  # rows or columns of a part
    GRAIN = 16  # rows or columns that parts have a multiple of
    WORTH_PANELS = 1_000_000  # multiplications from which panels are faster than BLAS
    FEWEST_ROWS = 10  # of a product with a factor that BLAS turns more slowly than panels are made
    FEWEST_COLUMNS = 32
    SHORTEST = 8  # terms of the sums
    SHORTEST_PART = 150_000  # multiplications of a part by panels
    LONGEST_PART = 1 << 24  # the same; shorter ones let threads that are late catch up

cdef bint has_blas = False
cdef const wengert_rows* tables[2]  # in single and double precision
tables[0] = <const wengert_rows*>rows_of(cnp.NPY_FLOAT)
tables[1] = <const wengert_rows*>rows_of(cnp.NPY_DOUBLE)
cdef bint has_panels = tables[0] != NULL and tables[0].panels != NULL


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
    bint is_double, turn_a, turn_b, by_panels
    Py_ssize_t m, n, k, a_step, b_step, start_step, tall, wide, down
    double factor, least  # what the product is multiplied by; what no element is less than
    const char* a
    const char* b
    const char* start  # what the product is added to, or NULL; the result itself may be
    char* out


cdef inline bint suits_panels(
    bint turn_a, bint turn_b, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k
) noexcept nogil:
    """Whether a product is better made by panels than by BLAS, as measured."""
    cdef double work = <double>m * n * k
    return (
        has_panels and k >= SHORTEST and n >= FEWEST_COLUMNS and work <= LARGEST_SPLIT
        and m >= FEWEST_ROWS and (work >= WORTH_PANELS or turn_b and not turn_a)
    )


cdef void one_part(
    Product* job, Py_ssize_t row, Py_ssize_t column, Py_ssize_t tall, Py_ssize_t wide
) noexcept nogil:
    """Some rows and columns of a product, by one thread."""
    cdef Py_ssize_t item = 8 if job.is_double else 4
    cdef const char* a = job.a + row * item * (1 if job.turn_a else job.a_step)
    cdef const char* b = job.b + column * item * (job.b_step if job.turn_b else 1)
    cdef char* out = job.out + (row * job.n + column) * item
    cdef const char* start = NULL
    if job.start != NULL:
        start = job.start + (row * job.start_step + column) * item
    if job.by_panels:
        tables[job.is_double].panels(
            a, b, start, out, tall, job.k, wide, 1 if job.turn_a else job.a_step,
            job.a_step if job.turn_a else 1, 1 if job.turn_b else job.b_step,
            job.b_step if job.turn_b else 1, job.start_step, job.n, job.factor, job.least)
        return
    if start != NULL and start != out:
        copy_rows(out, start, tall, wide * item, job.n * item, job.start_step * item)
    wengert_gemm(
        job.is_double, job.turn_a, job.turn_b, tall, wide, job.k, job.factor, a, job.a_step, b,
        job.b_step, start != NULL, out, job.n)
    if job.least > -INFINITY:
        if job.is_double:
            bound_rows[double](<double*>out, tall, wide, job.n, job.least)
        else:
            bound_rows[float](<float*>out, tall, wide, job.n, <float>job.least)


cdef void bound_rows(
    real* out, Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t step, real least
) noexcept nogil:
    """Let no element be less than a number; what is not a number stays."""
    cdef Py_ssize_t i, j
    for i in range(rows):
        for j in range(columns):
            if out[i * step + j] < least:
                out[i * step + j] = least


cdef void product_part(void* data, int64_t part) noexcept nogil:
    """A part of a product that threads share."""
    cdef Product* job = <Product*>data
    cdef Py_ssize_t row = part % job.down * job.tall, column = part // job.down * job.wide
    one_part(job, row, column, min(job.tall, job.m - row), min(job.wide, job.n - column))


cdef void copy_rows(
    char* out, const char* rows, Py_ssize_t count, Py_ssize_t size, Py_ssize_t step,
    Py_ssize_t row_step
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(count):
        memcpy(out + i * step, rows + i * row_step, size)


cdef inline Py_ssize_t in_parts(Py_ssize_t length, Py_ssize_t parts) noexcept nogil:
    """How long each of some parts is, the last one perhaps shorter: a multiple of the grain."""
    return (length + parts * GRAIN - 1) // (parts * GRAIN) * GRAIN


cdef void part_for_blas(Product* job, double work) noexcept nogil:
    """Two or four parts, the same however many threads there are.

    BLAS brings both factors into an order of its own for each part again, so that parts are few, and
    two by two cost less than four in a row.
    """
    cdef Py_ssize_t m = job.m, n = job.n, parts
    if (work >= WORTH_FOUR or work < FOUR_SMALL) and min(m, n) >= 2 * NARROWEST:
        job.tall, job.wide = max(in_parts(m, 2), NARROWEST), max(in_parts(n, 2), NARROWEST)
    else:
        parts = PARTS if work >= WORTH_FOUR else 2
        job.tall, job.wide = m, n
        if m > n:
            job.tall = max(in_parts(m, parts), NARROWEST)
        else:
            job.wide = max(in_parts(n, parts), NARROWEST)


cdef void part_for_panels(Product* job, double work) noexcept nogil:
    """A part or more for each thread, which changes no result.

    Parts that have the same columns copy them again, so that columns are split first.
    """
    cdef Py_ssize_t wanted = threads_allowed(), down, across
    wanted *= max(1, <Py_ssize_t>(work / (wanted * LONGEST_PART)))
    wanted = max(1, min(wanted, <Py_ssize_t>(work / SHORTEST_PART)))
    across = max(1, min(wanted, job.n // NARROWEST))
    down = max(1, min(wanted // across, job.m // GRAIN))
    job.tall, job.wide = in_parts(job.m, down), in_parts(job.n, across)


cdef void shared_product(Product* job) noexcept nogil:
    """A product in parts that our threads share, if it is large enough.

    More threads than parts leave a large product to those of BLAS, which may round in another way.
    """
    cdef double work = <double>job.m * job.n * job.k
    job.by_panels = suits_panels(job.turn_a, job.turn_b, job.m, job.n, job.k)
    if work < WORTH_SPLITTING or not job.by_panels and (
        not wengert_can_be_alone() or work > LARGEST_SPLIT and threads_allowed() > PARTS
    ):
        one_part(job, 0, 0, job.m, job.n)
        return
    if job.by_panels:
        part_for_panels(job, work)
    else:
        part_for_blas(job, work)
        wengert_alone()
    job.down = (job.m + job.tall - 1) // job.tall
    split(product_part, job, job.down * ((job.n + job.wide - 1) // job.wide))
    if not job.by_panels:
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
    cdef Product job
    if start != NULL and m * k * n <= MIDDLE:
        copy_rows(cnp.PyArray_BYTES(out), start, m, n * item, n * item, 0)
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
    job.is_double, job.turn_a, job.turn_b = is_double, a_turned != turn_a, b_turned != turn_b
    job.m, job.n, job.k, job.factor, job.least = m, n, k, 1, -INFINITY
    job.a, job.a_step = cnp.PyArray_BYTES(a), a_step
    job.b, job.b_step = cnp.PyArray_BYTES(b), b_step
    job.out = cnp.PyArray_BYTES(out)
    job.start, job.start_step = start, 0
    if start == NULL and adds:
        job.start, job.start_step = job.out, n
    with nogil:
        shared_product(&job)
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
    cdef Product job
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
        gemm(is_double, a_turned, b_turned, m, n, k, a, a_step, b, b_step, False, out, n)
        return True
    job.is_double, job.turn_a, job.turn_b = is_double, a_turned, b_turned
    job.m, job.n, job.k, job.factor, job.least = m, n, k, 1, -INFINITY
    job.a, job.b, job.a_step, job.b_step = a, b, a_step, b_step
    job.out, job.start, job.start_step = out, NULL, 0
    shared_product(&job)
    return True


cdef bint has_gemm() noexcept:
    """Whether there is a BLAS that `gemm` may call."""
    return has_blas


cdef void gemm(
    bint is_double, bint turn_a, bint turn_b, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k,
    const void* a, Py_ssize_t a_step, const void* b, Py_ssize_t b_step, bint adds, void* out,
    Py_ssize_t out_step
) noexcept nogil:
    """A product by one thread; steps are those between rows as they lie in memory."""
    if suits_panels(turn_a, turn_b, m, n, k):
        tables[is_double].panels(
            <const char*>a, <const char*>b, <const char*>out if adds else NULL, <char*>out, m, k, n,
            1 if turn_a else a_step, a_step if turn_a else 1, 1 if turn_b else b_step,
            b_step if turn_b else 1, out_step, out_step, 1, -INFINITY)
    else:
        wengert_gemm(
            is_double, turn_a, turn_b, m, n, k, 1, a, a_step, b, b_step, adds, out, out_step)


cdef void product_step(
    char** bases, const int64_t* slots, int64_t begin, int64_t end, int64_t part
) noexcept nogil:
    """The step of a compiled program that multiplies matrices from one of a batch to another.

    Its slots are places of four operands, the factors, the result and what the product is added to,
    each a base and an offset, and numbers: whether there is something to add to, its step between
    rows, whether elements are doubles, which factors lie turned, rows, columns, terms, steps of both
    factors, how many matrices there are, how far they are apart, and the bits of what the product is
    multiplied by and of what no element is less than.
    """
    cdef Product job
    cdef const int64_t* numbers = slots + 8
    cdef int64_t i, item = 8 if numbers[2] else 4
    cdef const char* a = bases[slots[0]] + slots[1]
    cdef const char* b = bases[slots[2]] + slots[3]
    cdef char* out = bases[slots[4]] + slots[5]
    cdef const char* start = bases[slots[6]] + slots[7] if numbers[0] else NULL
    job.start_step = numbers[1]
    job.is_double, job.turn_a, job.turn_b = numbers[2], numbers[3], numbers[4]
    job.m, job.n, job.k = numbers[5], numbers[6], numbers[7]
    job.a_step, job.b_step = numbers[8], numbers[9]
    memcpy(&job.factor, numbers + 14, 8)
    memcpy(&job.least, numbers + 15, 8)
    for i in range(begin, end):
        job.a, job.b = a + i * numbers[11] * item, b + i * numbers[12] * item
        job.out = out + i * job.m * job.n * item
        job.start = start + i * numbers[13] * item if start != NULL else NULL
        if numbers[10] == 1:
            shared_product(&job)
        else:
            job.by_panels = suits_panels(job.turn_a, job.turn_b, job.m, job.n, job.k)
            one_part(&job, 0, 0, job.m, job.n)


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
        self.step = <size_t>&product_step if has_blas else 0

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
