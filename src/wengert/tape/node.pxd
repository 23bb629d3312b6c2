cimport cython
from ..backends.loops cimport Loops
from ..backends.matrices cimport Matrices
from ..core.classes cimport Classes, make
from ..core.collector cimport Collector
from ..core.frames cimport Frames
from ..core.ndarrays cimport NDArrays
from ..core.state cimport AnomalyMode, ThreadState, thread_state
from ..core.tensor cimport (
    Cold, Tensor, VersionCounter, ViewMeta, flag, node_of, wrap_as,
)
from .accumulation cimport add_gradient
from .plans cimport GradientPlan, GradientStep
from .saved cimport Freed, SavedVariable, holds_tensors, unpack_item


cdef Classes _classes
cdef Collector _collector
cdef Frames _frames
cdef Loops _loops
cdef Matrices _matrices
cdef NDArrays _ndarrays
cdef bint _hides
cdef AnomalyMode _anomaly
cdef int _fused, _mul, _pass_on, _scale, _spread, _vector
cdef type _ndarray


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
    cpdef list show_itself(self)
    cpdef NodeCold make_cold(self)


@cython.locals(leaf=Tensor, cold=Cold)
cdef bint _any_shown(tuple next_nodes)
cpdef tuple kept_items(Node node)
cpdef keep_items(Node node, tuple items)
@cython.locals(node=Node, sequence=cython.long)
cpdef Node new_node(
    GradientPlan plan, ThreadState state, object out_array, tuple next_nodes, tuple next_nrs,
    int inside=*
)
@cython.locals(plan=GradientPlan, step=GradientStep, state=ThreadState, result=list,
               edge=cython.int, needed=set, loops=cython.bint, conjugate=cython.bint)
cpdef list apply_rules(Node node, object grads, list values)
@cython.locals(loop=cython.int)
cpdef Tensor apply_loop(
    GradientStep step, Tensor g, object saved, bint inference, Tensor total, bint last
)
@cython.locals(plan=GradientPlan, step=GradientStep)
cdef bint apply_joint(Node node, object grads, object saved, ThreadState state, list result)
@cython.locals(values=tuple)
cpdef Tensor apply_vector(GradientStep step, object g, object saved, bint inference)
@cython.locals(values=list, t=Tensor)
cdef tuple vector_values(GradientStep step, object g, object saved)
@cython.locals(t=Tensor, variable=SavedVariable)
cdef object read_saved(object value)
@cython.locals(indices=tuple, count=cython.int)
cpdef object apply_rule(GradientStep step, object grads, list values)
cpdef list unpack_saved(Node node)


@cython.final
cdef class AccumulateGrad(Node):
    cdef public Tensor variable
    cdef object __weakref__


cpdef Node accumulator_of(Tensor t)
cdef object _known_sink(Tensor t)
cpdef reset_accumulator(Tensor t, bint renewed)
@cython.locals(nodes=list)
cpdef tuple edges(Node node)
cpdef object edge_target(Tensor t)
cpdef Node edge_node(Tensor t)
