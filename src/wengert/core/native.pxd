cimport cython


@cython.final
cdef class Native:
    cdef readonly bint compiled
    cdef public bint blas
    cdef readonly int lasti
    cdef object last_code
    cdef tuple last_shape
    cdef Py_ssize_t last_dims[8]
    cdef int last_ndim
    cdef readonly int watching
    cdef readonly int overriding
    cdef bint overriding_classes

    cpdef watch(self, int change)
    cpdef watch_classes(self)
    cpdef unsigned long thread_ident(self)
    cpdef Py_ssize_t refcount(self, object value)
    cpdef hide(self, object value)
    cpdef show(self, object value)
    cpdef bint is_hidden(self, object value)
    cpdef object caller(self, int inside=*)
    cdef object _caller_outside(self)
    cpdef tuple shape_of(self, object array)
    cpdef bint has_shape(self, object array, tuple shape)
    cpdef bint is_real_float(self, object array)
    cpdef bint is_half(self, object array)
    cpdef bint is_differentiable(self, object array)
    cpdef bint is_empty(self, object array)
    cpdef bint in_row_order(self, tuple values)
    cpdef object order_of_first(self, tuple values)
    cpdef bint same_view(self, object a, object b)
    cpdef object unary(self, int code, object a)
    cpdef object binary(self, int code, object a, object b)
    cpdef bint binary_into(self, int code, object a, object b, double alpha=*)
    cpdef object product(self, object a, object b, bint turn_a, bint turn_b)
    cpdef bint product_into(self, object out, object a, object b, bint turn_a, bint turn_b)
    cpdef object addmm(self, object x, object a, object b)
    cpdef object differential(self, int code, object t, object value)
    cpdef list cut(self, object array, int dim, list sizes)
    cpdef object join(self, list arrays, int dim)
    cpdef object sum_rows(self, object a)
    cpdef bint logistic_tail(self, object e)
    cpdef object matmul(self, object a, object b)
    cpdef object sum_all(self, object a)
    cpdef object method(self, object function, object instance)
    cpdef name_function(self, object operator, str name)
    cpdef attach(self, type cls, str name, object value)
    cpdef hide_init(self, type cls)
    cpdef set_attribute(self, object target, str name, object value)


cpdef object make(type cls)
