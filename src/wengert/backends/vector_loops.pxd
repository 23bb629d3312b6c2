cimport cython
cimport numpy as cnp
from libc.stdint cimport int64_t

cdef const void* rows_of(int kind) noexcept

ctypedef void (*loop_t)(
    const char* const* operands, const double* numbers, char* to, int64_t n) noexcept nogil


@cython.final
cdef class VectorLoop:
    cdef loop_t single, double_
    cdef bytes roles
    cdef tuple literals
    cdef VectorLoop other

    cpdef object run(self, tuple values)
    cdef object run_one(self, object value)
    cpdef bint run_into(self, tuple values, object out)
    cdef object compute(self, tuple values, cnp.ndarray given)
