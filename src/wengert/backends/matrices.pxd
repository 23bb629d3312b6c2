cimport cython


@cython.final
cdef class Matrices:
    cdef public bint blas

    cpdef object matmul(self, object a, object b)
    cpdef object product(self, object a, object b, bint turn_a, bint turn_b)
    cpdef bint product_into(self, object out, object a, object b, bint turn_a, bint turn_b)
    cpdef object addmm(self, object x, object a, object b)
