cimport cython
from ..core.classes cimport Classes
from ..core.collector cimport Collector
from ..core.state cimport ThreadState, thread_state
from ..core.tensor cimport (
    Cold, Tensor, VersionCounter, ViewMeta, bump_version, counter_of, node_of, requires_of, wrap,
)
from ..tape.copy_slices cimport CopySlices
from ..tape.node cimport Node, NodeCold, unpack_saved
from ..tape.plans cimport GradientPlan
from ..tape.saved cimport Freed, SavedVariable, save, save_output


cdef Classes _classes
cdef Collector _collector
cdef type _ndarray
cdef frozenset _ATOMS


cdef class FunctionNode(Node):
    cdef public object needs_input_grad
    cdef public object to_save
    cdef public object saved_for_forward
    cdef public object dirty_tensors
    cdef public object non_differentiable
    cdef public tuple tensor_flags
    cdef public int argument_count
    cdef public bint keeps_undefined
    cdef public bint boxes_grads
    cdef public bint clears_on_access
    cdef public bint saved_were_read
    cdef public tuple input_devices
    cdef public tuple output_devices

    @cython.locals(i=cython.int, arguments=list)
    cdef list defined(self, object grads)
    @cython.locals(i=cython.int, got=cython.int, values=tuple, flags=tuple, result=list, g=Tensor)
    cdef list gradients(self, object returned)


@cython.final
cdef class Error(Node):
    cdef public str message


cpdef object user_backward(object function)
@cython.locals(saved=list)
cpdef save_tensors(FunctionNode node, ThreadState state, tuple outputs)
cpdef bint among(object value, tuple items)
