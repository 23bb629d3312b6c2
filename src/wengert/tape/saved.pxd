cimport cython
from ..core.state cimport ThreadState, thread_state
from ..core.tensor cimport (
    Cold, Tensor, VersionCounter, counter_of, node_of, requires_of, wrap,
)


@cython.final
cdef class Freed:
    cdef public object code
    cdef public int lasti


@cython.final
cdef class SavedVariable:
    cdef public object array
    cdef public Tensor tensor
    cdef public VersionCounter counter
    cdef public int version
    cdef public int output_nr
    cdef public bint is_output
    cdef public bint needs_grad
    cdef public object hooks
    cdef public object packed
    cdef public object tangent

    cpdef list show_itself(self)
    @cython.locals(t=Tensor, alias=Tensor)
    cpdef Tensor unpack(self, object node)
    @cython.locals(current=cython.int)
    cpdef check_version(self, object node)
    cpdef Tensor _as_output(self, Tensor t, object node)
    @cython.locals(original=Tensor, alias=Tensor)
    cpdef Tensor _with_history(self, Tensor t)


@cython.locals(t=Tensor, counter=VersionCounter, saved=SavedVariable)
cpdef save(object value, ThreadState state)
@cython.locals(saved=SavedVariable, counter=VersionCounter)
cpdef save_output(Tensor t, ThreadState state)
@cython.locals(t=Tensor)
cpdef object unpack_item(object item, object node)
cdef check_attached(Tensor t, object node)
cpdef bint holds_tensors(tuple items)
