cimport cython


@cython.final
cdef class Overriding:
    cdef readonly int modes
    cdef readonly int possible
    cdef readonly bint has_classes

    cpdef count_modes(self, int change)
    cpdef note_class(self)
