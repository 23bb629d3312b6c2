cimport cython
from ..core.state cimport ThreadState, thread_state
from .node cimport Node, edges
from .saved cimport Freed


@cython.final
cdef class Slot:
    cdef public int pending
    cdef public object buffer
    cdef public bint buffer_owned


@cython.final
cdef class GraphTask:
    cdef public long id
    cdef public bint keep_graph
    cdef public bint create_graph
    cdef public bint done
    cdef public bint parallel
    cdef public bint plain
    cdef public set needed
    cdef public set executed
    cdef public dict captures
    cdef public list captured
    cdef public list callbacks
    cdef public Node next_ready
    cdef public list heap
    cdef public dict overflow
    cdef public Freed freed
    cdef public object parent
    cdef public ThreadState caller
    cdef public object parallel_run
    cdef public list roots
    cdef public set reachable


@cython.locals(node=Node, following=Node, unseen=Node, stack=list, is_new=cython.bint)
cpdef count_dependencies(GraphTask task, list roots)
@cython.locals(slot=Slot, owner=GraphTask)
cdef bint claim(GraphTask task, Node node)
cdef list find_needed(list roots)

@cython.locals(first=Node, top=Node)
cpdef queue(GraphTask task, Node node)
@cython.locals(i=cython.Py_ssize_t, parent=cython.Py_ssize_t, other=Node)
cdef push(list heap, Node node)
@cython.locals(
    i=cython.Py_ssize_t, child=cython.Py_ssize_t, n=cython.Py_ssize_t, last=Node, top=Node,
    left=Node, right=Node)
cpdef Node pop(list heap)
