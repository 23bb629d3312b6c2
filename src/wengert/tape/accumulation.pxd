cimport cython
from ..core.native cimport Native
from ..core.state cimport ThreadState, thread_state
from ..core.tensor cimport Cold, Tensor, ViewMeta, bump_version, node_of, wrap
from .node cimport Node, NodeCold
from .plans cimport GradientPlan


cdef Native _native


@cython.final
cdef class AccumulateGrad(Node):
    cdef public Tensor variable
    cdef object __weakref__

    @cython.locals(variable=Tensor, grad=Tensor, old=Tensor, state=ThreadState)
    cpdef accumulate(self, Tensor new)


@cython.locals(node=AccumulateGrad)
cpdef Node accumulator_of(Tensor t)
cpdef reset_accumulator(Tensor t, bint renewed)
@cython.locals(nodes=list)
cpdef tuple edges(Node node)
cpdef object edge_target(Tensor t)
cpdef Node edge_node(Tensor t)
