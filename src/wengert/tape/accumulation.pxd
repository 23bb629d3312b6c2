cimport cython
from ..backends.loops cimport Loops
from ..core.collector cimport Collector
from ..core.state cimport Overriding
from ..core.state cimport ThreadState, thread_state
from ..core.tensor cimport Cold, Tensor, bump_version, wrap


cdef Collector _collector
cdef Loops _loops
cdef Overriding _overriding


@cython.locals(state=ThreadState, old=Tensor)
cpdef add_gradient(Tensor variable, Tensor new)
cdef _add_by_class(Tensor variable, Tensor new)
cdef _add_recorded(Tensor variable, Tensor new)
cdef Tensor _first(Tensor variable, Tensor new)
