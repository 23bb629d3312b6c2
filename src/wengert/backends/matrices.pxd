cimport cython


cdef bint raw_product(
    bint is_double, const char* a, const char* b, char* out, Py_ssize_t m, Py_ssize_t k,
    Py_ssize_t n, Py_ssize_t a_row, Py_ssize_t a_column, Py_ssize_t b_row, Py_ssize_t b_column,
    bint alone
) noexcept nogil
cdef bint has_gemm() noexcept
cdef void gemm(
    bint is_double, bint turn_a, bint turn_b, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k,
    const void* a, Py_ssize_t a_step, const void* b, Py_ssize_t b_step, bint adds, void* out,
    Py_ssize_t out_step
) noexcept nogil
cdef bint blas_alone() noexcept nogil
cdef void blas_together() noexcept nogil


@cython.final
cdef class Matrices:
    cdef public bint blas
    cdef readonly size_t step  # the address of `product_step`, or 0

    cpdef object product(self, object a, object b, bint turn_a, bint turn_b)
    cpdef bint product_into(self, object out, object a, object b, bint turn_a, bint turn_b)
    cpdef object addmm(self, object x, object a, object b, bint turn_b=*)
