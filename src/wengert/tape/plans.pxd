cimport cython

from ..backends.vector_loops cimport NativeLoop


@cython.final
cdef class GradientStep:
    cdef public int edge
    cdef public int reads
    cdef public int first
    cdef public int loop
    cdef public object rule
    cdef public NativeLoop vector
    cdef public tuple indices
    cdef public bint spreads
    cdef public bint is_product
    cdef public bint shares
    cdef public bint alone


@cython.final
cdef class GradientPlan:
    cdef public object operator
    cdef public str name
    cdef public type node_class
    cdef public type made_as
    cdef public NativeLoop joint
    cdef public int edges
    cdef public int saves
    cdef public bint saves_tensors
    cdef public bint conjugates
    cdef public bint several_outputs
    cdef public bint custom
    cdef public bint is_missing
    cdef public bint loops
    cdef public tuple steps
    cdef public tuple slots
    cdef public tuple saved_names
