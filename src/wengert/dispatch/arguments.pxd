cimport cython
from ..core.state cimport ThreadState
from ..core.tensor cimport Tensor, wrap_as


cdef type _ndarray
cdef dict _backends


cpdef Tensor fresh(object out, ThreadState state)
cpdef bint is_foreign(object array)
@cython.locals(t=Tensor)
cpdef bint any_foreign(tuple args)
cpdef bint only_tensors(tuple args, int count)
@cython.locals(t=Tensor)
cpdef tuple arrays_of(tuple args)
