cimport cython
from ..tape.node cimport Node, edge_node, edges
from ..core.collector cimport Collector
from ..core.state cimport ThreadState, thread_state
from ..core.tensor cimport Tensor, ViewMeta, node_of, requires_of, wrap


cdef Collector _collector


@cython.locals(meta=ViewMeta)
cpdef check_inplace(Tensor t, bint recording, ThreadState state)
@cython.locals(meta=ViewMeta, base=Tensor)
cpdef rebase_history(Tensor t, Node node, int written=*)
@cython.locals(base=Tensor, fresh=Tensor, last=Node)
cdef Tensor _view_of_detached(ViewMeta meta)
@cython.locals(state=ThreadState, meta=ViewMeta, fresh=Tensor)
cpdef regenerate_view(Tensor t)
