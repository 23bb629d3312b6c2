cimport cython
from .schema cimport Argument, Schema
from ..core.tensor cimport Tensor, wrap


cdef int _TENSOR, _TENSORS, _INTS, _INTEGER, _FLOAT, _SCALAR, _BOOLEAN, _STRING, _DTYPE


cpdef tuple bind_arguments(object operator, tuple args, dict kwargs)
cpdef tuple bind_overload(object operator, tuple args, dict kwargs)
@cython.locals(schema=Schema, arguments=tuple, values=list, argument=Argument, places=dict,
               i=cython.int, given=cython.int, declared=cython.bint)
cdef tuple _bind(object operator, tuple args, dict kwargs, object manner)
@cython.locals(last=cython.int, argument=Argument)
cdef tuple _with_integers_joined(object operator, Schema schema, tuple args, object manner)
@cython.locals(position=cython.int)
cdef dict _places(object operator, Schema schema, int given, dict kwargs, object manner)
cdef int _position(object operator, Schema schema, object name, object manner) except -2
cpdef object convert_declared(
    object operator, Argument argument, int index, object value, object manner
)
@cython.locals(code=cython.int)
cpdef object convert(object operator, Argument argument, int index, object value, object manner)
cpdef bint is_int(object value)
cdef bint _all_ints(object values)
cpdef object check_operand(object value)
