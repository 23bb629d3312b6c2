cimport cython
from .schema cimport Argument, Schema
from ..core.tensor cimport Tensor, wrap


cdef int _TENSOR, _TENSORS, _INTS, _INTEGER, _FLOAT, _SCALAR, _BOOLEAN, _STRING, _DTYPE


@cython.locals(schema=Schema, arguments=tuple, values=list, argument=Argument,
               index=cython.int, i=cython.int, total=cython.int, position=cython.int)
cpdef tuple bind_arguments(object operator, tuple args, dict kwargs)
cdef int _position(object operator, Schema schema, object name) except -1
@cython.locals(code=cython.int)
cpdef object convert(object operator, Argument argument, int index, object value)
cpdef bint is_int(object value)
cpdef object check_operand(object value)
