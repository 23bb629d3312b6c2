cimport cython
from ..backends.loops cimport Loops
from ..core.frames cimport Frames
from ..core.ndarrays cimport NDArrays
from ..core.state cimport Overriding
from ..core.state cimport AnomalyMode, ThreadState, thread_state
from ..core.tensor cimport Cold, Tensor, wrap
from .accumulation cimport add_gradient
from .node cimport AccumulateGrad, Node, NodeCold, apply_loop, unpack_saved
from .plans cimport GradientPlan, GradientStep
from .saved cimport Freed
from .tasks cimport GraphTask, Slot, count_dependencies, pop, queue


cdef Frames _frames
cdef Loops _loops
cdef NDArrays _ndarrays
cdef Overriding _overriding
cdef type _ndarray
cdef AnomalyMode _anomaly


@cython.locals(state=ThreadState)
cpdef list evaluate(GraphTask task, Node node)
cdef list evaluate_observed(GraphTask task, Node node, ThreadState state)
@cython.locals(outputs=list, sink=AccumulateGrad)
cdef list run_node(GraphTask task, Node node, ThreadState state)
@cython.locals(g=Tensor, value=Tensor, total=Tensor, nodes=tuple, step=GradientStep,
               edge=cython.int, left=cython.int, fresh=cython.bint, owned=cython.bint,
               last=cython.bint, following=Node, outputs=list, plan=GradientPlan, steps=tuple)
cdef run_loops(GraphTask task, Node node, ThreadState state)
cdef list run_inside(Node node, object grads, ThreadState state)
@cython.locals(i=cython.int, following=Node, g=Tensor)
cpdef hand_on(GraphTask task, Node node, list outputs)
cdef bint receive(GraphTask task, Node node, Tensor g, bint fresh)
@cython.locals(node=Node, nrs=tuple, nr=cython.int)
cdef hand(GraphTask task, Node producer, int index, Tensor g)
@cython.locals(ready=cython.bint, owned=cython.bint, slot=Slot)
cdef bint deliver(GraphTask task, Node node, int nr, Tensor g)
cdef object with_one_more(
    GraphTask task, Node node, object waiting, bint owned, int nr, Tensor g
)
cdef object combine(GraphTask task, object old, Tensor g, bint owned)
@cython.locals(shape=tuple)
cpdef Tensor validated(Node producer, int index, Node node, int nr, Tensor g)

@cython.locals(node=Node, sink=AccumulateGrad, g=Tensor, watched=cython.bint, recorded=cython.bint)
cdef run_on_caller(GraphTask task, ThreadState state)
