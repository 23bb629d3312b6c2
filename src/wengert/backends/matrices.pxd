cimport cython


cdef bint raw_product(
    bint is_double, const char* a, const char* b, char* out, Py_ssize_t m, Py_ssize_t k,
    Py_ssize_t n, Py_ssize_t a_row, Py_ssize_t a_column, Py_ssize_t b_row, Py_ssize_t b_column
) noexcept nogil


@cython.final
cdef class Matrices:
    cdef public bint blas

    cpdef object product(self, object a, object b, bint turn_a, bint turn_b)
    cpdef bint product_into(self, object out, object a, object b, bint turn_a, bint turn_b)
    cpdef object addmm(self, object x, object a, object b, bint turn_b=*)
