from ..core.native cimport Native


cdef Native _native
