cimport cython
from ..autograd.function_node cimport FunctionNode, among, save_tensors
from ..tape.node cimport edge_target, new_node
from ..tape.plans cimport GradientPlan
from ..core.collector cimport Collector
from ..core.ndarrays cimport NDArrays
from ..core.state cimport ThreadState
from ..core.tensor cimport Tensor, requires_of


cdef Collector _collector
cdef NDArrays _ndarrays
cdef object _no_output


cdef class OperatorNode(FunctionNode):
    cdef public tuple input_kinds
    cdef public tuple result_kinds

    @cython.locals(i=cython.int, values=tuple, inputs=tuple, result=list)
    cdef list gradients(self, object returned)


@cython.locals(node=OperatorNode, t=Tensor, i=cython.int, outs=list)
cpdef OperatorNode record_call(object operator, ThreadState state, tuple args, object out)
@cython.locals(
    node=OperatorNode, i=cython.int, needs=list, inputs=list, nodes=list, nrs=list,
    several=cython.bint)
cpdef OperatorNode new_operator_node(
    object operator, ThreadState state, tuple args, object out_array)
cdef bint _add_edge(Tensor t, list nodes, list nrs)
@cython.locals(enabled=cython.bint)
cpdef set_up(object operator, ThreadState state, OperatorNode node, tuple args, object out)
