cimport cython
from ..core.state cimport ThreadState, thread_state
from ..core.tensor cimport Tensor, wrap, wrap_as
from .base_operator cimport BaseOperator


cdef class Level:
    cdef public int number
    cdef public list outer_levels
    cdef public bint grad_enabled
    cdef public bint inference
    cdef public bint forward_grad_enabled
    cdef public int dual_level
    cdef public list duals
    cdef public bint tangents_aside
    cdef public object hooks_refusal

    @cython.locals(values=tuple)
    cpdef object call(self, ThreadState state, BaseOperator operator, tuple args)
    cpdef object raised(self, object out, object dims=*)


@cython.locals(levels=list)
cpdef tuple descend(ThreadState state, int number)
cpdef ascend(ThreadState state, tuple saved)
cpdef object level_array(Tensor value, object level, object dim=*)
cpdef Tensor lifted(Tensor value, object level, object dim=*)
@cython.locals(t=Tensor, values=list, dims=list, batched=cython.bint)
cdef tuple _split(tuple args)
cpdef check_alive(Level level)
