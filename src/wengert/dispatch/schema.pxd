cimport cython


@cython.final
cdef class Argument:
    cdef public str name
    cdef public str base
    cdef public tuple suffixes
    cdef public object size
    cdef public str type
    cdef public int code
    cdef public bint optional
    cdef public object default
    cdef public bint keyword_only
    cdef public object alias
    cdef public object converter


@cython.final
cdef class Schema:
    cdef public str name
    cdef public tuple arguments
    cdef public tuple returns
    cdef public str text
    cdef public dict names
    cdef public int positional
    cdef public bint is_custom
