cimport cython
from ..core.state cimport Overriding, ThreadState, thread_state
from ..core.tensor cimport Tensor
from .base_operator cimport BaseOperator
from .declaration cimport arrays_of
from .levels cimport Level, ascend, check_alive, descend


cdef Overriding _overriding


cpdef object call_layers(ThreadState state, BaseOperator operator, tuple args)
@cython.locals(levels=list, level=Level, number=cython.int)
cdef object _call_at_level(ThreadState state, BaseOperator operator, tuple args)
cdef object _recorded(ThreadState state, BaseOperator operator, tuple args, Level level)
cdef object _call_on_values(ThreadState state, BaseOperator operator, tuple args)
cpdef object run_below(ThreadState state, BaseOperator operator, tuple args)
@cython.locals(found=Level)
cpdef Level innermost(tuple args)
@cython.locals(level=Level)
cdef Level _inner(Level found, Tensor t)
@cython.locals(found=Level, level=Level)
cpdef Level level_of_call(ThreadState state, tuple args)
@cython.locals(number=cython.int)
cdef _check_active(Level level, list levels)
@cython.locals(t=Tensor)
cdef tuple _at_level(BaseOperator operator, tuple args, Level level)
cdef bint _is_outer(Tensor t, Level level)
@cython.locals(t=Tensor)
cdef object _lifted(object value, Level level)
