cimport cython
from ..tape.node cimport Node
from .binding cimport bind_arguments, check_operand
from .declaration cimport Declaration
from ..core.native cimport Native
from .recording cimport fill_saved, record, record_small, set_view
from ..core.state cimport ThreadState, thread_state
from ..core.tensor cimport Tensor, VersionCounter, ViewMeta, requires_of, wrap, wrap_as


cdef Native _native
cdef type _ndarray
cdef dict _classes
cdef object _call_layers, _run_below


cdef class Operator(Declaration):
    @cython.locals(state=ThreadState, tensor=Tensor, result=Tensor, code=cython.int)
    cpdef object call1(self, object x)
    @cython.locals(state=ThreadState, tensor=Tensor, result=Tensor, mask=cython.int,
                   code=cython.int)
    cpdef object call2(self, object x, object y)
    @cython.locals(state=ThreadState)
    cpdef object call(self, tuple args)
    @cython.locals(node=Node, t=Tensor, i=cython.int, index=cython.int, outs=tuple)
    cpdef object finish(self, ThreadState state, tuple args, object out)


cdef Tensor fresh(object out)
cpdef bint is_foreign(object array)
@cython.locals(t=Tensor)
cpdef bint any_foreign(tuple args)
cpdef bint only_tensors(tuple args, int count)
@cython.locals(t=Tensor)
cpdef bint any_requires(tuple args, tuple positions)
@cython.locals(t=Tensor)
cpdef tuple arrays_of(tuple args)
