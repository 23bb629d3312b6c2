cimport cython


@cython.final
cdef class Loops:
    cpdef object unary(self, int code, object a)
    cpdef object binary(self, int code, object a, object b)
    cpdef bint binary_into(self, int code, object a, object b, double alpha=*)
    cpdef object differential(self, int code, object t, object value, bint into=*)
    cpdef object sum_rows(self, object a)
    cpdef bint logistic_tail(self, object e)
