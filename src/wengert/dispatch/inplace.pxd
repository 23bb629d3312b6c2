cimport cython
from ..tape.accumulation cimport edge_node, edges
from ..tape.node cimport Node
from .binding cimport bind_arguments, check_operand
from .declaration cimport any_foreign, arrays_of
from .operator cimport Operator
from ..core.native cimport Native
from .recording cimport fill_saved, record
from ..core.state cimport ThreadState, thread_state
from ..core.tensor cimport AbstractOperator, Tensor, ViewMeta, any_requires, bump_version, node_of, requires_of, wrap


cdef Native _native
cdef type _ndarray
cdef object _quiet_set, _quiet_reset, _quiet_ignore


cdef class InplaceOperator(AbstractOperator):
    cdef public str name
    cdef public Operator functional
    cdef public object schema
    cdef public tuple tail
    cdef public str doc
    cdef public object aliases
    cdef public bint casts_freely
    cdef public bint uniform
    cdef public bint mutates

    @cython.locals(state=ThreadState, target=Tensor, functional=Operator)
    cpdef object call2(self, object x, object y)
    @cython.locals(state=ThreadState, target=Tensor, functional=Operator)
    cpdef object call(self, tuple args)
    @cython.locals(target=Tensor, before=Tensor, node=Node, functional=Operator)
    cpdef object record_around(self, ThreadState state, tuple args, object below)


@cython.locals(meta=ViewMeta)
cpdef check_inplace(Tensor t, bint recording, ThreadState state)
@cython.locals(meta=ViewMeta, base=Tensor)
cpdef rebase_history(Tensor t, Node node, int written=*)
@cython.locals(state=ThreadState, meta=ViewMeta, fresh=Tensor)
cpdef regenerate_view(Tensor t)
