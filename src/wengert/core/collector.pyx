"""Reference counts, and the list of objects that the cyclic collector walks.

`collector.py` beside this file is the interface without C.
"""

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(object value)
    void PyObject_GC_Track(object value)
    void PyObject_GC_UnTrack(object value)
    bint PyObject_GC_IsTracked(object value)


cdef class Collector:
    """Who holds an object, and whether the collector sees it; one instance, `collector`."""

    cpdef Py_ssize_t refcount(self, object value):
        """References to `value` held outside this call and its caller's own argument."""
        return Py_REFCNT(value)

    cpdef hide(self, object value):
        """Keep an object away from the cyclic collector's walks."""
        PyObject_GC_UnTrack(value)

    cpdef show(self, object value):
        """Undo `hide`."""
        if not PyObject_GC_IsTracked(value):
            PyObject_GC_Track(value)

    cpdef bint is_hidden(self, object value):
        return not PyObject_GC_IsTracked(value)


collector = Collector()
