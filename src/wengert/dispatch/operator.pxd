cimport cython
from ..tape.node cimport Node
from .binding cimport bind_arguments, check_operand
from .declaration cimport Declaration, is_foreign, only_tensors, plain_arrays
from ..backends.loops cimport Loops
from ..core.collector cimport Collector
from ..core.ndarrays cimport NDArrays
from ..core.state cimport Overriding
from .recording cimport fill_saved, record, record_small, set_view
from ..core.state cimport ThreadState, thread_state
from ..core.tensor cimport Tensor, VersionCounter, ViewMeta, any_requires, requires_of, wrap_as, wrapped


cdef Collector _collector
cdef bint _hides
cdef Loops _loops
cdef NDArrays _ndarrays
cdef Overriding _overriding
cdef type _ndarray


cdef class Operator(Declaration):
    @cython.locals(state=ThreadState, tensor=Tensor, result=Tensor, code=cython.int)
    cpdef object call1(self, object x)
    @cython.locals(state=ThreadState, tensor=Tensor, result=Tensor, mask=cython.int,
                   code=cython.int)
    cpdef object call2(self, object x, object y)
    @cython.locals(state=ThreadState)
    cpdef object call(self, tuple args)
    @cython.locals(node=Node, t=Tensor, i=cython.int, index=cython.int, outs=tuple)
    cpdef object finish(self, ThreadState state, tuple args, object out)
    @cython.locals(node=Node, result=Tensor)
    cdef Tensor _finish_one(self, ThreadState state, tuple args, object out)
    cpdef tuple bind(self, tuple args, dict kwargs)


cpdef object call_function(Operator operator, tuple args, dict kwargs)
