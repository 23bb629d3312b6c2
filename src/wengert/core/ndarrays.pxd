cimport cython


@cython.final
cdef class NDArrays:
    cdef tuple last_shape
    cdef Py_ssize_t last_dims[8]
    cdef int last_ndim

    cpdef tuple shape_of(self, object array)
    cpdef int ndim_of(self, object array)
    cpdef bint has_shape(self, object array, tuple shape)
    cpdef object dtype_of(self, object array)
    cpdef bint is_real_float(self, object array)
    cpdef bint is_half(self, object array)
    cpdef bint is_differentiable(self, object array)
    cpdef bint owns_memory(self, object array)
    cpdef bint is_empty(self, object array)
    cpdef bint in_row_order(self, tuple values)
    cpdef object order_of_first(self, tuple values)
    cpdef bint same_view(self, object a, object b)
    cpdef list cut(self, object array, int dim, list sizes)
