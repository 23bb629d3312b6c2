cimport cython
from .classes cimport Classes, make
from .collector cimport Collector
from .frames cimport Frames
from .state cimport Overriding
from .state cimport ThreadState, thread_state


cdef extern from *:
    ctypedef bint flag "unsigned char"  # a bint of one byte, for records that there are many of


cdef Classes _classes
cdef Collector _collector
cdef Frames _frames
cdef Overriding _overriding
cdef bint _hides


cdef class AbstractOperator:
    cpdef object call1(self, object x)
    cpdef object call2(self, object x, object y)
    cpdef object call(self, tuple args)


@cython.final
@cython.no_gc
cdef class VersionCounter:
    cdef public int value
    cdef public bint watched
    cdef public str operator
    cdef public object code
    cdef public int lasti


@cython.final
cdef class ViewMeta:
    cdef public Tensor base
    cdef public tuple steps
    cdef public int creation
    cdef public int version


@cython.final
cdef class Cold:
    cdef public object hooks
    cdef public object post_hooks
    cdef public bint retains_grad
    cdef public object tangents
    cdef public object tangent_source
    cdef public object tangent_base
    cdef public dict attributes
    cdef public str name
    cdef public long detached_at
    cdef public object former_shapes
    cdef public bint counts_versions


cdef class Tensor:
    cdef public object array
    cdef public VersionCounter counter
    cdef public object node
    cdef public object gradient
    cdef public object accumulator
    cdef public ViewMeta view_meta
    cdef public Cold cold
    cdef public int output_index
    cdef public flag needs_grad
    cdef public flag inference
    cdef public flag watched
    cdef object __weakref__

    cpdef Cold make_cold(self)


cpdef Tensor wrap(object array)
@cython.locals(t=Tensor)
cpdef Tensor wrap_as(object array, bint inference)
cpdef Tensor wrapped(object out, bint inference)
cpdef VersionCounter counter_of(Tensor t)
@cython.locals(counter=VersionCounter)
cpdef bump_version(Tensor t, str operator)
@cython.locals(view=ViewMeta)
cpdef bint requires_of(Tensor t)
@cython.locals(t=Tensor)
cpdef bint any_requires(tuple args, tuple positions)
@cython.locals(view=ViewMeta)
cpdef object node_of(Tensor t)

cdef AbstractOperator _add, _sub, _mul, _div, _pow, _matmul, _neg, _abs
cdef AbstractOperator _rsub, _rsub_tensor, _remainder, _floor_divide
cdef AbstractOperator _lt, _le, _gt, _ge, _eq, _ne
cdef AbstractOperator _and, _or, _xor, _invert, _lshift, _rshift
cdef AbstractOperator _iadd, _isub, _imul, _idiv, _ipow, _iremainder, _ifloor_divide
cdef AbstractOperator _iand, _ior, _ixor, _ilshift, _irshift
cdef object _getitem, _setitem, _regenerate_view, _show_graph, _repr
cdef object _override, _PLAIN, _marked, _fill
