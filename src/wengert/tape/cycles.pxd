cdef class PartOfGraph:
    cdef list show_itself(self)


cpdef show_graph(object start)
