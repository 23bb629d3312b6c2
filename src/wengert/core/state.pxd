cimport cython
from .frames cimport Frames


cdef Frames _frames


@cython.final
cdef class ThreadState:
    cdef public unsigned long ident
    cdef public bint grad_enabled
    cdef public bint inference
    cdef public bint multithreading
    cdef public bint view_replay
    cdef public bint grad_layout
    cdef public int layers
    cdef public list modes
    cdef public list function_modes
    cdef public int function_disabled
    cdef public bint inside
    cdef public bint dispatch_disabled
    cdef public object profiler
    cdef public list levels
    cdef public int dual_level
    cdef public bint tangents_aside
    cdef public list duals
    cdef public bint forward_grad_enabled
    cdef public list saved_hooks
    cdef public object saved_hooks_disabled
    cdef public long sequence
    cdef public object graph_task
    cdef public set needed
    cdef public object node
    cdef public int depth

    cpdef bint recording(self)
    cpdef int layers_with(self, object profiler)
    cpdef count_layers(self)


@cython.final
cdef class AnomalyMode:
    cdef public bint enabled
    cdef public bint check_nan


cdef ThreadState _current


cpdef ThreadState thread_state()

@cython.locals(state=ThreadState)
cdef ThreadState _look_up(unsigned long ident)


@cython.final
cdef class Overriding:
    cdef readonly int modes
    cdef readonly int possible
    cdef readonly bint has_classes

    cpdef count_modes(self, int change)
    cpdef note_class(self)
