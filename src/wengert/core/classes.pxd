cimport cython


@cython.final
cdef class Classes:
    cpdef object method(self, object function, object instance)
    cpdef name_function(self, object operator, str name)
    cpdef attach(self, object cls, str name, object value)
    cpdef give_metaclass(self, object cls, object metaclass)
    cpdef hide_init(self, object cls)
    cpdef change_class(self, object target, object cls)
    cpdef set_attribute(self, object target, str name, object value)


cpdef object make(object cls)
