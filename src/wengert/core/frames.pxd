cimport cython


@cython.final
cdef class Frames:
    cdef readonly int lasti
    cdef object last_code

    cpdef unsigned long thread_ident(self)
    cpdef object caller(self, int inside=*)
    cdef object _caller_outside(self)
