cimport cython
from ..backends.vector_loops cimport NativeLoop
from ..core.classes cimport Classes
from ..core.ndarrays cimport NDArrays
from ..core.tensor cimport Tensor
from .base_operator cimport BaseOperator


cdef Classes _classes
cdef NDArrays _ndarrays
cdef type _ndarray
cdef dict _backends
cdef object _quiet_set, _quiet_reset, _quiet_ignore


cdef class Declaration(BaseOperator):
    cdef public str family
    cdef public object kernel
    cdef public object ufunc
    cdef public object dtype_rule
    cdef public int native_code
    cdef public NativeLoop vector_loop
    cdef public int arity
    cdef public int operands
    cdef public int outputs
    cdef public bint broadcasts
    cdef public bint tail_has_defaults
    cdef public bint is_view
    cdef public bint widens
    cdef public bint moves_operands
    cdef public tuple tail
    cdef public tuple tensor_positions
    cdef public tuple grad_positions
    cdef public tuple list_positions
    cdef public tuple nondifferentiable_outputs
    cdef public bint takes_undefined
    cdef public dict rules
    cdef public dict loops
    cdef public dict vector_loops
    cdef public object jvp_rule
    cdef public object meta_rule
    cdef public object batch
    cdef public bint batches_by_loop
    cdef public dict plans
    cdef public list small_plans
    cdef public str node_name
    cdef public object namer
    cdef public object ordering
    cdef public str refuses
    cdef public str refusal
    cdef public bint guarded

    @cython.locals(position=cython.int)
    cpdef object run_kernel(self, tuple args)
    cdef object _run_vector_loop(self, tuple args)
    cdef object _computed(self, tuple args)
    cpdef tuple promoted(self, tuple args)


@cython.locals(i=cython.int)
cpdef bint alike_floats(tuple arrays, int count)
cdef bint _is_array(object value)
cpdef bint is_foreign(object array)
@cython.locals(t=Tensor)
cpdef bint any_foreign(tuple args)
cpdef bint only_tensors(tuple args, int count)
@cython.locals(t=Tensor)
cpdef tuple arrays_of(tuple args)
@cython.locals(t=Tensor, out=list, inner=list)
cpdef tuple plain_arrays(tuple args)
cdef bint _has_half(tuple args)
@cython.locals(found=cython.bint)
cdef bint _only_halves(tuple args)
