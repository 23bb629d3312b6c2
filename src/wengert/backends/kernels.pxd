cimport numpy as cnp

from .vector_loops cimport NativeLoop

ctypedef object (*kernel_t)(tuple values)


cdef class Kernel(NativeLoop):
    cdef kernel_t function


cdef int known(str key, kernel_t function) except -1
cdef bint is_plain(object value) noexcept
cdef bint span(object dim, int ndim, int* first, int* last) noexcept
