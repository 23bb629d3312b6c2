cimport cython
from ..core.collector cimport Collector
from ..core.ndarrays cimport NDArrays
from ..core.state cimport ThreadState, thread_state
from ..core.tensor cimport Tensor, requires_of
from ..tape.node cimport edge_target, new_node
from ..tape.plans cimport GradientPlan
from .function_node cimport FunctionNode, among, save_tensors


cdef Collector _collector
cdef NDArrays _ndarrays
cdef type _ndarray
cdef object _unknown_output


@cython.locals(state=ThreadState)
cpdef object call_function(object function, tuple args, dict kwargs)
cdef object call_bound(object function, ThreadState state, tuple args, object setup)
@cython.locals(node=FunctionNode, enabled=cython.bint, forward_enabled=cython.bint)
cpdef object call_recorded(
    object function, ThreadState state, tuple args, object setup, object forward)
@cython.locals(
    t=Tensor, node=FunctionNode, plan=GradientPlan, needs=list, flags=list, nodes=list, nrs=list,
    any_needs=cython.bint, any_nr=cython.bint, elsewhere=cython.bint, plain=cython.bint,
    recording=cython.bint)
cdef FunctionNode new_function_node(object function, ThreadState state, tuple args)
@cython.locals(t=Tensor)
cdef object finish(
    FunctionNode node, ThreadState state, tuple args, object output, bint separate)
