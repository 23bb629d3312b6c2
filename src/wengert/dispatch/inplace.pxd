cimport cython
from ..tape.node cimport Node
from .declaration cimport any_foreign, arrays_of
from .base_operator cimport BaseOperator
from .binding cimport check_operand
from .operator cimport Operator
from .rebasing cimport check_inplace, rebase_history
from ..backends.loops cimport Loops
from ..core.classes cimport Classes
from ..core.collector cimport Collector
from ..core.ndarrays cimport NDArrays
from .recording cimport fill_outputs, record, saved_arguments
from ..core.state cimport ThreadState, thread_state
from ..core.tensor cimport Tensor, any_requires, bump_version, counter_of, node_of, requires_of, wrap


cdef Classes _classes
cdef Collector _collector
cdef Loops _loops
cdef NDArrays _ndarrays
cdef type _ndarray
cdef int _copy
cdef object _quiet_set, _quiet_reset, _quiet_ignore


cdef class InplaceOperator(BaseOperator):
    cdef public Operator functional
    cdef public tuple tail
    cdef public bint casts_freely
    cdef public bint uniform

    @cython.locals(state=ThreadState, target=Tensor, functional=Operator)
    cpdef object call2(self, object x, object y)
    @cython.locals(state=ThreadState, target=Tensor, functional=Operator)
    cpdef object call(self, tuple args)
    @cython.locals(target=Tensor, before=Tensor, node=Node, functional=Operator, kept=cython.bint,
                   saved=list)
    cpdef object record_around(self, ThreadState state, tuple args, object below)
