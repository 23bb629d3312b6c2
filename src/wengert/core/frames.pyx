"""Where the program is: the running thread, and the innermost frame outside this package.

`frames.py` beside this file is the interface without C.
"""
from . import PACKAGE_FOLDER

cdef extern from "pythread.h":
    unsigned long PyThread_get_thread_ident()

cdef extern from "Python.h":
    ctypedef struct PyFrameObject:
        pass
    ctypedef struct PyCodeObject:
        pass
    PyFrameObject* PyEval_GetFrame()
    PyCodeObject* PyFrame_GetCode(PyFrameObject* frame)
    PyFrameObject* PyFrame_GetBack(PyFrameObject* frame)
    int PyFrame_GetLasti(PyFrameObject* frame)
    void Py_DECREF(void* value)

cdef str package = PACKAGE_FOLDER


cdef inline object code_of(PyFrameObject* frame):
    cdef PyCodeObject* owned = PyFrame_GetCode(frame)
    cdef object code = <object>owned
    Py_DECREF(owned)
    return code


cdef class Frames:
    """What runs in the calling thread; one instance, `frames`."""

    cpdef unsigned long thread_ident(self):
        """The number by which Python knows the calling thread."""
        return PyThread_get_thread_ident()

    cpdef object caller(self, int inside=1):
        """Code object of the innermost frame outside this package; its instruction in `lasti`.

        Compiled modules have no frames, so the number of those `inside` says nothing here.
        """
        cdef PyFrameObject* frame = PyEval_GetFrame()
        cdef object code
        if frame is NULL:
            self.lasti = -1
            return None
        code = code_of(frame)
        if code is not self.last_code:
            if (<str>code.co_filename).startswith(package):
                return self._caller_outside()
            self.last_code = code
        self.lasti = PyFrame_GetLasti(frame)
        return code

    cdef object _caller_outside(self):
        """Walk outward from a frame that is this package's own."""
        cdef PyFrameObject* frame = PyFrame_GetBack(PyEval_GetFrame())
        cdef PyFrameObject* back
        cdef object code
        while frame is not NULL:
            code = code_of(frame)
            if not (<str>code.co_filename).startswith(package):
                self.lasti = PyFrame_GetLasti(frame)
                Py_DECREF(frame)
                return code
            back = PyFrame_GetBack(frame)
            Py_DECREF(frame)
            frame = back
        self.lasti = -1
        return None


frames = Frames()
