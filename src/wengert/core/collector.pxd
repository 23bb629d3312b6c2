cimport cython


@cython.final
cdef class Collector:
    cpdef Py_ssize_t refcount(self, object value)
    cpdef hide(self, object value)
    cpdef show(self, object value)
    cpdef bint is_hidden(self, object value)
