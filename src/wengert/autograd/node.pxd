cimport cython
from ..native cimport Native, make
from ..state cimport AnomalyMode, ThreadState, thread_state
from ..tensor cimport (
    Cold, Tensor, VersionCounter, ViewMeta, bump_version, counter_of, node_of, requires_of, wrap,
    wrap_as,
)


cdef Native _native
cdef bint _hides
cdef int _pass_on
cdef int _fused
cdef int _scale
cdef int _product
cdef AnomalyMode _anomaly


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


@cython.final
@cython.freelist(256)
cdef class SavedVariable:
    cdef public object array
    cdef public Tensor tensor
    cdef public VersionCounter counter
    cdef public int version
    cdef public int output_nr
    cdef public bint is_output
    cdef public bint needs_grad
    cdef public object hooks
    cdef public object packed
    cdef public object tangent

    @cython.locals(t=Tensor)
    cpdef Tensor unpack(self, Node node)
    @cython.locals(current=cython.int)
    cpdef check_version(self, Node node)


@cython.final
cdef class Freed:
    cdef public object code
    cdef public int lasti


@cython.final
cdef class NodeCold:
    cdef public object post_hooks
    cdef public object pre_hooks
    cdef public dict tensor_hooks
    cdef public dict retain_hooks
    cdef public dict metadata


@cython.freelist(512)
@cython.trashcan(True)
cdef class Node:
    cdef public GradientPlan plan
    cdef public tuple next_nodes
    cdef public tuple next_nrs
    cdef public bint unresolved
    cdef public bint shown
    cdef public object saved
    cdef public long sequence
    cdef public tuple out_shape
    cdef public object out_dtype
    cdef public object out_device
    cdef public list outputs_meta
    cdef public NodeCold cold
    cdef public object code
    cdef public int lasti
    # the slot that one running backward may claim
    cdef public object claim
    cdef public object buffer
    cdef public int pending
    cdef public bint buffer_owned
    cdef public bint is_accumulator

    cdef list run(self, object grads)
    cdef release(self, object freed)
    cpdef NodeCold make_cold(self)


@cython.final
cdef class AccumulateGrad(Node):
    cdef public Tensor variable
    cdef object __weakref__

    @cython.locals(variable=Tensor, grad=Tensor, old=Tensor, state=ThreadState)
    cpdef accumulate(self, Tensor new)


@cython.final
cdef class CopySlices(Node):
    cdef public Node inner
    cdef public tuple steps
    cdef public tuple order
    cdef public int written


cdef bint _any_shown(tuple next_nodes)
@cython.locals(node=Node, sequence=cython.long)
cpdef Node new_node(
    GradientPlan plan, ThreadState state, object out_array, tuple next_nodes, tuple next_nrs,
    int inside=*
)

@cython.locals(t=Tensor, counter=VersionCounter, saved=SavedVariable)
cpdef save(object value, ThreadState state)
@cython.locals(saved=SavedVariable, counter=VersionCounter)
cpdef save_output(Tensor t, ThreadState state)
cpdef object edge_target(Tensor t)
@cython.locals(nodes=list)
cpdef tuple edges(Node node)
@cython.locals(plan=GradientPlan, step=GradientStep, state=ThreadState, result=list,
               edge=cython.int, needed=set, loops=cython.bint, conjugate=cython.bint)
cpdef list apply_rules(Node node, object grads, list values)
@cython.locals(loop=cython.int, t=Tensor, variable=SavedVariable)
cpdef Tensor apply_loop(
    GradientStep step, Tensor g, object values, bint inference, Tensor total
)
@cython.locals(indices=tuple, count=cython.int)
cdef object apply_rule(GradientStep step, object grads, list values)
cpdef list unpack_saved(Node node)
@cython.locals(t=Tensor)
cpdef object unpack_item(object item, Node node)
cdef check_attached(Tensor t, Node node)
cdef bint _holds_tensors(tuple items)
@cython.locals(node=AccumulateGrad)
cpdef Node accumulator_of(Tensor t)
cpdef Node edge_node(Tensor t)
