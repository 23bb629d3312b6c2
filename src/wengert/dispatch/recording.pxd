cimport cython
from ..tape.node cimport Node, edge_target, keep_items, new_node
from ..tape.plans cimport GradientPlan
from ..tape.saved cimport save, save_output
from .declaration cimport Declaration
from ..core.collector cimport Collector
from ..core.state cimport ThreadState, thread_state
from ..core.tensor cimport Tensor, VersionCounter, ViewMeta, counter_of, node_of, requires_of


cdef Collector _collector
cdef bint _hides
cdef int _SHAPE_SLOT
cdef int _OUT_SLOT
cdef int _FRAMES


@cython.locals(plan=GradientPlan, node=Node, t=Tensor, slots=tuple, nodes=tuple, nrs=tuple,
               count=cython.int, nr=cython.int, other_nr=cython.int, from_leaf=cython.bint)
cpdef record_small(
    Declaration operator, ThreadState state, object x, object y, int mask, Tensor result
)
@cython.locals(t=Tensor, counter=VersionCounter)
cdef object saved_value(
    Declaration operator, ThreadState state, int slot, object x, object y, Tensor result
)
@cython.locals(node=Node, t=Tensor, position=cython.int, mask=cython.int, bit=cython.int,
               nr=cython.int, nodes=list, nrs=list, plan=GradientPlan)
cpdef Node record(Declaration operator, ThreadState state, tuple args, object out_array)
cpdef fill_saved(Node node, tuple args, tuple outs)
@cython.locals(index=cython.int, saved=list, state=ThreadState)
cpdef list saved_arguments(Node node, tuple args)
@cython.locals(i=cython.int, index=cython.int, state=ThreadState)
cpdef fill_outputs(Node node, list saved, tuple outs)
@cython.locals(x=Tensor, t=Tensor, meta=ViewMeta, counter=VersionCounter)
cpdef set_view(Declaration operator, ThreadState state, tuple args, tuple outs)
