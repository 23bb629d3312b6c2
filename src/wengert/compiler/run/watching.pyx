"""Who is told of the calls that a function makes while it is traced.

`watching.py` beside this file is the form without C.
"""
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF

cdef extern from "Python.h":
    ctypedef struct PyCodeObject:
        pass
    ctypedef struct PyFrameObject:
        pass
    ctypedef int (*Py_tracefunc)(PyObject*, PyFrameObject*, int, PyObject*) except -1
    void PyEval_SetProfile(Py_tracefunc, PyObject*)
    PyCodeObject* PyFrame_GetCode(PyFrameObject*)  # a new reference
    int PyTrace_CALL, PyTrace_C_CALL
    int PyCFunction_CheckExact(PyObject*)
    ctypedef struct PyCFunctionObject:
        void* m_ml
        PyObject* m_self
    int PyType_Check(PyObject*)
    int PyModule_Check(PyObject*)

cdef enum:
    PLACES = 4096  # a power of two


cdef struct Known:
    void* method
    void* owner


cdef class Watch:
    """What has been met: code whose frames are ignored, and functions written in C."""

    cdef object event, ignored, matters
    cdef set codes  # addresses of those that are kept
    cdef list kept
    cdef Known known[PLACES]

    def __init__(self, event, ignored, matters):
        self.event, self.ignored, self.matters = event, ignored, matters
        self.codes, self.kept = set(), []
        cdef int i
        for i in range(PLACES):
            self.known[i].method = NULL


cdef int told(PyObject* given, PyFrameObject* at, int what, PyObject* argument) except -1:
    cdef Watch watch = <Watch>given
    cdef Known* known
    cdef void* method
    cdef PyObject* owner
    if what == PyTrace_CALL:
        code = <object>PyFrame_GetCode(at)
        Py_DECREF(code)
        place = <size_t><PyObject*>code
        if place in watch.codes:
            return 0
        frame = <object><PyObject*>at
        if watch.ignored(frame):
            watch.codes.add(place)
            watch.kept.append(code)
            return 0
        return tell(watch, frame, "call", None)
    if what != PyTrace_C_CALL:
        return 0
    if not PyCFunction_CheckExact(argument):
        if watch.matters(<object>argument):
            return tell(watch, <object><PyObject*>at, "c_call", <object>argument)
        return 0
    method = (<PyCFunctionObject*>argument).m_ml
    owner = (<PyCFunctionObject*>argument).m_self
    if owner != NULL and not PyType_Check(owner) and not PyModule_Check(owner):
        owner = <PyObject*>owner.ob_type
    known = &watch.known[((<size_t>method >> 4) ^ (<size_t>owner >> 5)) & (PLACES - 1)]
    if known.method == method and known.owner == owner:
        return 0
    if watch.matters(<object>argument):
        return tell(watch, <object><PyObject*>at, "c_call", <object>argument)
    if owner != NULL:
        watch.kept.append(<object>owner)  # so that nothing else gets its address
    known.method, known.owner = method, owner
    return 0


cdef int tell(Watch watch, frame, name, argument) except -1:
    try:
        watch.event(frame, name, argument)
    except BaseException:
        PyEval_SetProfile(NULL, NULL)
        raise
    return 0


def watch(event, ignored, matters):
    """Have `event` told of calls in this thread, as a profiler is."""
    cdef Watch made = Watch(event, ignored, matters)
    PyEval_SetProfile(told, <PyObject*>made)


def unwatch():
    """Tell nobody any more."""
    PyEval_SetProfile(NULL, NULL)
