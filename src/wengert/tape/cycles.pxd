cimport cython
from ..core.tensor cimport Tensor, ViewMeta


cdef class PartOfGraph:
    cdef list show_itself(self)


@cython.locals(t=Tensor, part=PartOfGraph, stack=list)
cpdef show_graph(object start)
