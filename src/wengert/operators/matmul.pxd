from ..core.classes cimport Classes
from ..core.state cimport Overriding


cdef Classes _classes
cdef Overriding _overriding
