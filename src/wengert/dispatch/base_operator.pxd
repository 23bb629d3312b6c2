cimport cython
from ..core.classes cimport Classes
from ..core.state cimport Overriding
from ..core.tensor cimport AbstractOperator
from .binding cimport bind_arguments


cdef Classes _classes
cdef Overriding _overriding


cdef class BaseOperator(AbstractOperator):
    cdef public str name
    cdef public object schema
    cdef public bint mutates
    cdef public bint finishes
    cdef public str doc
    cdef public dict facts
    cdef public object aliases

    cpdef tuple bind(self, tuple args, dict kwargs)
    cpdef object call_bound(self, tuple args, dict kwargs)
