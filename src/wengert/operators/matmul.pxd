cimport cython
from ..core.ndarrays cimport NDArrays
from ..core.state cimport Overriding, ThreadState, thread_state
from ..core.tensor cimport Tensor
from ..dispatch.operator cimport Operator


cdef NDArrays _ndarrays
cdef Overriding _overriding
cdef Operator _bmm, _dot, _mm, _mv


cdef class Matmul(Operator):
    @cython.locals(a=Tensor, b=Tensor, left=cython.int, right=cython.int)
    cpdef object call2(self, object x, object y)


@cython.locals(state=ThreadState)
cdef _matmul(Tensor x, Tensor y, int left, int right)
