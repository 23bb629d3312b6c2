from ..native cimport Native


cdef Native _native
