cimport cython
from ..core.native cimport Native
from ..core.state cimport ThreadState, thread_state
from ..core.tensor cimport Cold, Tensor, bump_version, wrap


cdef Native _native


@cython.locals(state=ThreadState, old=Tensor)
cpdef add_gradient(Tensor variable, Tensor new)
cdef _add_by_class(Tensor variable, Tensor new)
cdef _add_recorded(Tensor variable, Tensor new)
cdef Tensor _first(Tensor variable, Tensor new)
