cimport cython
cimport numpy as cnp
from libc.stdint cimport int64_t

cdef const void* rows_of(int kind) noexcept

ctypedef void (*loop_t)(
    const char* const* operands, const double* numbers, char* to, int64_t n) noexcept nogil


cdef class NativeLoop:
    cpdef object run(self, tuple values)
    cpdef bint run_into(self, tuple values, object out)


@cython.final
cdef class VectorLoop(NativeLoop):
    cdef loop_t single, double_
    cdef bytes roles
    cdef tuple literals  # places and values in turn
    cdef VectorLoop other

    cdef bint holds_for(self, tuple values) except -1
    cdef object run_one(self, object value)
    cdef object compute(self, tuple values, cnp.ndarray given)
