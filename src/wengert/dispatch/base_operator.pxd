cimport cython
from ..core.native cimport Native
from ..core.tensor cimport AbstractOperator
from .binding cimport bind_arguments


cdef Native _native


cdef class BaseOperator(AbstractOperator):
    cdef public str name
    cdef public object schema
    cdef public bint mutates
    cdef public str doc
    cdef public dict facts
    cdef public object aliases
