cimport cython
from ..core.native cimport Native
from ..core.tensor cimport Cold, Tensor, VersionCounter, wrap_as
from .saved cimport SavedVariable


cdef Native _native
cdef int _pass_on
cdef int _fused
cdef int _scale
cdef int _product


@cython.final
cdef class GradientStep:
    cdef public int edge
    cdef public int reads
    cdef public int first
    cdef public int loop
    cdef public object rule
    cdef public tuple indices
    cdef public bint spreads
    cdef public bint is_product
    cdef public bint alone


@cython.final
cdef class GradientPlan:
    cdef public object operator
    cdef public str name
    cdef public type node_class
    cdef public type made_as
    cdef public int edges
    cdef public int saves
    cdef public bint conjugates
    cdef public bint several_outputs
    cdef public bint custom
    cdef public bint loops
    cdef public tuple steps
    cdef public tuple slots
    cdef public tuple saved_names


@cython.locals(loop=cython.int, t=Tensor, variable=SavedVariable)
cpdef Tensor apply_loop(
    GradientStep step, Tensor g, object saved, bint inference, Tensor total
)
@cython.locals(indices=tuple, count=cython.int)
cpdef object apply_rule(GradientStep step, object grads, list values)
