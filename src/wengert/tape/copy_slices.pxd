cimport cython
from ..core.state cimport ThreadState, thread_state
from ..core.tensor cimport Tensor, wrap
from .node cimport Node, apply_rules, edge_node, edges, unpack_saved
from .plans cimport GradientPlan
from .saved cimport Freed


@cython.final
cdef class CopySlices(Node):
    cdef public Node inner
    cdef public tuple steps
    cdef public tuple order
    cdef public int written
    cdef public object changed
    cdef public int version
    cdef public object shared

    @cython.locals(base=Tensor, view=Tensor, alias=Tensor, changed=Tensor)
    cpdef Tensor view_of_output(self, Tensor saved, object base_array)
