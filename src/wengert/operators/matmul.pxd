from ..core.classes cimport Classes
from ..core.overriding cimport Overriding


cdef Classes _classes
cdef Overriding _overriding
