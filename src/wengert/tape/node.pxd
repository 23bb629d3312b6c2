cimport cython
from ..core.native cimport Native, make
from ..core.state cimport AnomalyMode, ThreadState, thread_state
from ..core.tensor cimport Tensor, flag
from .plans cimport GradientPlan, GradientStep, apply_loop, apply_rule
from .saved cimport Freed, SavedVariable, holds_tensors, unpack_item


cdef Native _native
cdef bint _hides
cdef AnomalyMode _anomaly


@cython.final
cdef class NodeCold:
    cdef public object post_hooks
    cdef public object pre_hooks
    cdef public dict tensor_hooks
    cdef public dict retain_hooks
    cdef public dict metadata


cdef class Node:
    cdef public GradientPlan plan
    cdef public tuple next_nodes
    cdef public tuple next_nrs
    cdef public object saved
    cdef public long sequence
    cdef public tuple out_shape
    cdef public object out_dtype
    cdef public object out_device
    cdef public list outputs_meta
    cdef public NodeCold cold
    cdef public object code
    # the slot that one running backward may claim
    cdef public object claim
    cdef public object buffer
    # what is shorter than a pointer, together
    cdef public int pending
    cdef public int lasti
    cdef public flag buffer_owned
    cdef public flag unresolved
    cdef public flag shown
    cdef public flag is_accumulator

    @cython.locals(state=ThreadState)
    cdef start(self, GradientPlan plan, tuple next_nodes, tuple next_nrs)
    cdef list run(self, object grads)
    cdef release(self, object freed)
    cpdef NodeCold make_cold(self)


cdef bint _any_shown(tuple next_nodes)
@cython.locals(node=Node, sequence=cython.long)
cpdef Node new_node(
    GradientPlan plan, ThreadState state, object out_array, tuple next_nodes, tuple next_nrs,
    int inside=*
)
@cython.locals(plan=GradientPlan, step=GradientStep, state=ThreadState, result=list,
               edge=cython.int, needed=set, loops=cython.bint, conjugate=cython.bint)
cpdef list apply_rules(Node node, object grads, list values)
cpdef tuple saved_items(Node node)
cpdef keep_items(Node node, tuple items)
cpdef list unpack_saved(Node node)
