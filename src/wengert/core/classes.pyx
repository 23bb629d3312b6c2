"""What compiled classes refuse to Python code: class attributes, fields, making without `__init__`.

`classes.py` beside this file is the interface without C.
"""

from cpython.ref cimport Py_INCREF, PyObject

# A class is an `object` here: for `type` alone Cython refuses instances of metaclasses.
cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        object (*tp_new)(PyTypeObject* cls, object args, PyObject* kwargs)

cdef extern from "Python.h":
    void Py_SET_TYPE(PyObject* target, PyTypeObject* cls)
    int PyObject_GenericSetAttr(object target, object name, object value) except -1
    void PyType_Modified(PyTypeObject* cls)
    object PyMethod_New(object function, object instance)

cdef extern from *:
    """
    #if PY_VERSION_HEX >= 0x030C0000
    #define wengert_type_dict PyType_GetDict
    #else
    static PyObject* wengert_type_dict(PyTypeObject* cls) {
        Py_XINCREF(cls->tp_dict);
        return cls->tp_dict;
    }
    #endif
    """
    dict wengert_type_dict(PyTypeObject* cls)

#: Whether this is the compiled package.
COMPILED = True


cdef class Classes:
    """Changes of classes and of their instances; one instance, `classes`."""

    cpdef object method(self, object function, object instance):
        """The method that `function` is on an instance."""
        return PyMethod_New(function, instance)

    cpdef name_function(self, object operator, str name):
        """Uncompiled operators are given the names of a function here."""

    cpdef attach(self, object cls, str name, object value):
        """Set a class attribute; unlike setattr it reaches compiled classes too."""
        wengert_type_dict(<PyTypeObject*> cls)[name] = value
        PyType_Modified(<PyTypeObject*> cls)

    cpdef give_metaclass(self, object cls, object metaclass):
        """Make a class an instance of a metaclass without fields, as its statement cannot."""
        Py_INCREF(metaclass)
        Py_SET_TYPE(<PyObject*> cls, <PyTypeObject*> metaclass)
        PyType_Modified(<PyTypeObject*> cls)

    cpdef hide_init(self, object cls):
        """Take `__init__` from a class, of which subclasses made from now on see nothing.

        Instances of the compiled class itself are still initialised by it: the slot remains. So
        does that of `__getattr__`, which would slow down every attribute of a subclass.
        """
        for name in ("__init__", "__getattr__"):
            wengert_type_dict(<PyTypeObject*> cls).pop(name, None)  # it is gone already after a reload
        PyType_Modified(<PyTypeObject*> cls)

    cpdef change_class(self, object target, object cls):
        """Make an instance one of a subclass without fields, which a class statement has made."""
        Py_INCREF(cls)
        Py_SET_TYPE(<PyObject*> target, <PyTypeObject*> cls)

    cpdef set_attribute(self, object target, str name, object value):
        """What `object.__setattr__` does, which compiled classes may not be given."""
        PyObject_GenericSetAttr(target, name, value)


cpdef object make(object cls):
    """An instance without a call of __init__."""
    return (<PyTypeObject*> cls).tp_new(<PyTypeObject*> cls, (), NULL)


classes = Classes()
