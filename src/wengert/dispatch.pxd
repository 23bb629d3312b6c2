cimport cython
from .autograd.accumulation cimport edge_node, edge_target, edges
from .autograd.node cimport Node, new_node
from .autograd.plans cimport GradientPlan
from .autograd.saved cimport save, save_output
from .native cimport Native
from .state cimport ThreadState, thread_state
from .tensor cimport (
    AbstractOperator, Cold, Tensor, VersionCounter, ViewMeta, bump_version, counter_of, node_of, requires_of,
    wrap, wrap_as,
)


cdef Native _native
cdef bint _hides
cdef type _ndarray
cdef int _SHAPE_SLOT
cdef int _OUT_SLOT
cdef int _FRAMES
cdef object _quiet_set, _quiet_reset, _quiet_ignore
cdef object _call_layers, _run_below


cdef class Operator(AbstractOperator):
    cdef public str name
    cdef public str family
    cdef public object schema
    cdef public object kernel
    cdef public object ufunc
    cdef public object dtype_rule
    cdef public int native_code
    cdef public int arity
    cdef public int operands
    cdef public int outputs
    cdef public bint broadcasts
    cdef public bint tail_has_defaults
    cdef public bint is_view
    cdef public bint mutates
    cdef public bint widens
    cdef public tuple tail
    cdef public tuple tensor_positions
    cdef public tuple grad_positions
    cdef public tuple list_positions
    cdef public tuple nondifferentiable_outputs
    cdef public dict rules
    cdef public dict loops
    cdef public object jvp_rule
    cdef public object meta_rule
    cdef public object batch_rule
    cdef public bint batches_by_loop
    cdef public dict plans
    cdef public list small_plans
    cdef public str node_name
    cdef public object namer
    cdef public str refuses
    cdef public bint guarded
    cdef public str doc
    cdef public object aliases

    @cython.locals(state=ThreadState, tensor=Tensor, result=Tensor, code=cython.int)
    cpdef object call1(self, object x)
    @cython.locals(state=ThreadState, tensor=Tensor, result=Tensor, mask=cython.int,
                   code=cython.int)
    cpdef object call2(self, object x, object y)
    @cython.locals(state=ThreadState)
    cpdef object call(self, tuple args)
    @cython.locals(position=cython.int)
    cpdef object run_kernel(self, tuple args)
    @cython.locals(node=Node, t=Tensor, i=cython.int, index=cython.int, outs=tuple)
    cpdef object finish(self, ThreadState state, tuple args, object out)
    @cython.locals(plan=GradientPlan, node=Node, t=Tensor, slots=tuple, nodes=tuple, nrs=tuple,
                   count=cython.int, nr=cython.int, other_nr=cython.int, from_leaf=cython.bint)
    cdef record_small(self, ThreadState state, object x, object y, int mask, Tensor result)
    @cython.locals(t=Tensor, counter=VersionCounter)
    cdef object saved_value(self, ThreadState state, int slot, object x, object y, Tensor result)
    @cython.locals(node=Node, t=Tensor, position=cython.int, mask=cython.int, bit=cython.int,
                   nr=cython.int, nodes=list, nrs=list, plan=GradientPlan)
    cpdef Node record(self, ThreadState state, tuple args, object out_array)
    @cython.locals(index=cython.int, saved=list, state=ThreadState)
    cpdef fill_saved(self, Node node, tuple args, tuple outs)
    @cython.locals(x=Tensor, t=Tensor, meta=ViewMeta, counter=VersionCounter)
    cpdef set_view(self, ThreadState state, tuple args, tuple outs)


cdef Tensor fresh(object out)
cpdef bint is_foreign(object array)
@cython.locals(t=Tensor)
cpdef bint any_foreign(tuple args)
cdef bint _has_half(tuple args)
@cython.locals(found=cython.bint)
cdef bint _only_halves(tuple args)
cpdef bint only_tensors(tuple args, int count)
@cython.locals(i=cython.int)
cpdef bint alike_floats(tuple arrays, int count)
@cython.locals(t=Tensor)
cpdef bint any_requires(tuple args, tuple positions)
@cython.locals(t=Tensor)
cpdef tuple arrays_of(tuple args)
