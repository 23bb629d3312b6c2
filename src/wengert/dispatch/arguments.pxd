cimport cython
from ..core.tensor cimport Tensor, requires_of, wrap


cdef type _ndarray


cpdef Tensor fresh(object out)
cpdef bint is_foreign(object array)
@cython.locals(t=Tensor)
cpdef bint any_foreign(tuple args)
cpdef bint only_tensors(tuple args, int count)
@cython.locals(t=Tensor)
cpdef bint any_requires(tuple args, tuple positions)
@cython.locals(t=Tensor)
cpdef tuple arrays_of(tuple args)
