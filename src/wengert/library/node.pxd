cimport cython
from ..autograd.node cimport (
    Freed, GradientPlan, Node, edge_target, new_node, save, save_output, unpack_saved,
)
from ..native cimport Native
from ..state cimport ThreadState
from ..tensor cimport Tensor, requires_of


cdef Native _native
cdef object _no_output
cdef frozenset _ATOMS


cdef class OperatorNode(Node):
    cdef public object needs_input_grad
    cdef public tuple arguments
    cdef public tuple results
    cdef public object to_save
    cdef public object saved_for_forward
    cdef public object non_differentiable
    cdef public bint keeps_undefined

    @cython.locals(i=cython.int, values=tuple, arguments=tuple, result=list)
    cdef list gradients(self, object returned)


@cython.locals(node=OperatorNode, t=Tensor, i=cython.int, outs=list)
cpdef OperatorNode record_call(object operator, ThreadState state, tuple args, object out)
@cython.locals(
    node=OperatorNode, i=cython.int, needs=list, arguments=list, nodes=list, nrs=list,
    several=cython.bint)
cpdef OperatorNode new_operator_node(
    object operator, ThreadState state, tuple args, object out_array)
cdef bint _add_edge(Tensor t, list nodes, list nrs)
@cython.locals(enabled=cython.bint)
cpdef set_up(object operator, ThreadState state, OperatorNode node, tuple args, object out)
@cython.locals(saved=list, t=Tensor)
cdef _save(OperatorNode node, ThreadState state, list outs)
cdef bint _among(object value, object items)
cpdef show_if_needed(OperatorNode node)
