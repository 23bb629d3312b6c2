cimport cython
from ..native cimport Native
from ..state cimport AnomalyMode, ThreadState, thread_state
from ..tensor cimport Cold, Tensor, wrap
from .accumulation cimport AccumulateGrad, edges
from .node cimport Node, NodeCold, unpack_saved
from .plans cimport GradientPlan, GradientStep, apply_loop
from .saved cimport Freed


cdef Native _native
cdef type _ndarray
cdef AnomalyMode _anomaly
cdef object _add, _reduce_gradient


@cython.final
cdef class Slot:
    cdef public int pending
    cdef public object buffer
    cdef public bint buffer_owned


@cython.final
cdef class GraphTask:
    cdef public long id
    cdef public bint keep_graph
    cdef public bint create_graph
    cdef public bint done
    cdef public bint parallel
    cdef public bint plain
    cdef public set needed
    cdef public set executed
    cdef public dict captures
    cdef public list captured
    cdef public list callbacks
    cdef public Node next_ready
    cdef public list heap
    cdef public dict overflow
    cdef public Freed freed
    cdef public object parent
    cdef public ThreadState caller
    cdef public object parallel_run
    cdef public list roots
    cdef public set reachable


@cython.locals(node=Node, following=Node, unseen=Node, stack=list, is_new=cython.bint)
cdef count_dependencies(GraphTask task, list roots)
@cython.locals(slot=Slot, owner=GraphTask)
cdef bint claim(GraphTask task, Node node)
cdef list find_needed(list roots)

@cython.locals(state=ThreadState)
cpdef list evaluate(GraphTask task, Node node)
cdef list evaluate_observed(GraphTask task, Node node, ThreadState state)
@cython.locals(outputs=list)
cdef list run_node(GraphTask task, Node node, ThreadState state)
@cython.locals(g=Tensor, value=Tensor, total=Tensor, nodes=tuple, step=GradientStep,
               edge=cython.int, fresh=cython.bint, following=Node, outputs=list)
cdef run_loops(GraphTask task, Node node, ThreadState state)
cdef list run_inside(Node node, object grads, ThreadState state)
@cython.locals(i=cython.int, following=Node, g=Tensor)
cpdef hand_on(GraphTask task, Node node, list outputs)
cdef bint receive(GraphTask task, Node node, Tensor g, bint fresh)
@cython.locals(node=Node, nrs=tuple, nr=cython.int)
cdef hand(GraphTask task, Node producer, int index, Tensor g)
@cython.locals(ready=cython.bint, slot=Slot)
cdef bint deliver(GraphTask task, Node node, int nr, Tensor g)
cdef object combine(GraphTask task, object old, Tensor g, bint owned)
cpdef Tensor validated(Node producer, int index, Node node, int nr, Tensor g)

@cython.locals(first=Node, top=Node)
cdef queue(GraphTask task, Node node)
@cython.locals(i=cython.Py_ssize_t, parent=cython.Py_ssize_t, other=Node)
cdef push(list heap, Node node)
@cython.locals(
    i=cython.Py_ssize_t, child=cython.Py_ssize_t, n=cython.Py_ssize_t, last=Node, top=Node,
    left=Node, right=Node)
cdef Node pop(list heap)

@cython.locals(state=ThreadState, node=Node, watched=cython.bint, recorded=cython.bint)
cdef run_on_caller(GraphTask task)
