cdef class Overridable:
    cdef void* vectorcall
    cdef readonly object function
    cdef public object public
    cdef dict __dict__
    cdef object __weakref__


cdef class OverridableProperty:
    cdef readonly object fget
    cdef readonly object fset
    cdef readonly object fdel
    cdef dict __dict__
