# cython: boundscheck=False, wraparound=False
"""Questions about NumPy arrays that their headers answer, and parts of arrays by copying headers.

`ndarrays.py` beside this file is the interface without C.
"""
cimport numpy as cnp
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from .array_checks cimport same_dims

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    int NPY_HALF
    object PyArray_NewFromDescr(
        type subtype, cnp.dtype descr, int ndim, const cnp.npy_intp* dims,
        const cnp.npy_intp* strides, void* data, int flags, PyObject* obj)

cdef enum:
    MOST_DIMENSIONS = 8


cdef bint is_in_rows(cnp.ndarray array):
    """Whether strides grow from the last dimension to the first, as far as dimensions tell.

    Dimensions of length one tell something only beside expanded ones, which do not.
    """
    cdef int i
    cdef bint expanded = False
    cdef cnp.npy_intp stride, inner = 0
    if cnp.PyArray_IS_C_CONTIGUOUS(array):
        return True
    for i in range(cnp.PyArray_NDIM(array)):
        if cnp.PyArray_STRIDE(array, i) == 0 and cnp.PyArray_DIM(array, i) != 1:
            expanded = True
    for i in range(cnp.PyArray_NDIM(array) - 1, -1, -1):
        stride = cnp.PyArray_STRIDE(array, i)
        if stride == 0 or (cnp.PyArray_DIM(array, i) == 1 and not expanded):
            continue
        if stride <= inner:
            return False
        inner = stride
    return True


cdef bint outside_in(cnp.ndarray array, int* order):
    """Sort dimensions by their strides, those of length one first; False if that is ambiguous."""
    cdef int i, j, dim
    cdef bint alone
    cdef cnp.npy_intp stride
    for dim in range(cnp.PyArray_NDIM(array)):
        stride = cnp.PyArray_STRIDE(array, dim)
        alone = cnp.PyArray_DIM(array, dim) == 1
        if stride <= 0 and not alone:
            return False
        i = dim
        while i > 0:
            j = order[i - 1]
            if cnp.PyArray_DIM(array, j) == 1:
                break
            if not alone:
                if cnp.PyArray_STRIDE(array, j) > stride:
                    break
                if cnp.PyArray_STRIDE(array, j) == stride:
                    return False
            order[i] = j
            i -= 1
        order[i] = dim
    return True


cdef class NDArrays:
    """What a NumPy array is, without Python objects on the way; one instance, `ndarrays`."""

    def __cinit__(self):
        self.last_ndim = -1

    cpdef tuple shape_of(self, object array):
        """`array.shape`; equal shapes in a row share one tuple."""
        cdef int i, ndim
        cdef cnp.npy_intp* dims
        if not isinstance(array, cnp.ndarray):
            return array.shape
        ndim = cnp.PyArray_NDIM(<cnp.ndarray>array)
        dims = cnp.PyArray_DIMS(<cnp.ndarray>array)
        if ndim == self.last_ndim:
            for i in range(ndim):
                if dims[i] != self.last_dims[i]:
                    break
            else:
                return self.last_shape
        cdef tuple shape = array.shape
        if ndim <= 8:
            self.last_ndim = ndim
            for i in range(ndim):
                self.last_dims[i] = dims[i]
            self.last_shape = shape
        return shape

    cpdef int ndim_of(self, object array):
        """`array.ndim`."""
        if not isinstance(array, cnp.ndarray):
            return array.ndim
        return cnp.PyArray_NDIM(<cnp.ndarray>array)

    cpdef bint has_shape(self, object array, tuple shape):
        cdef int i
        if not isinstance(array, cnp.ndarray):
            return array.shape == shape
        if cnp.PyArray_NDIM(<cnp.ndarray>array) != len(shape):
            return False
        for i in range(cnp.PyArray_NDIM(<cnp.ndarray>array)):
            if cnp.PyArray_DIM(<cnp.ndarray>array, i) != <Py_ssize_t>shape[i]:
                return False
        return True

    cpdef object dtype_of(self, object array):
        if not isinstance(array, cnp.ndarray):
            return array.dtype
        return <object>cnp.PyArray_DESCR(<cnp.ndarray>array)

    cpdef bint is_real_float(self, object array):
        """Whether the dtype is float32 or float64."""
        cdef int kind
        if not isinstance(array, cnp.ndarray):
            return array.dtype.char in "fd"
        kind = cnp.PyArray_TYPE(<cnp.ndarray>array)
        return kind == cnp.NPY_FLOAT or kind == cnp.NPY_DOUBLE

    cpdef bint is_half(self, object array):
        """Whether the dtype is one of the 16-bit floats."""
        cdef int kind
        if not isinstance(array, cnp.ndarray):
            return array.dtype.char == "e" or array.dtype.kind == "V"
        kind = cnp.PyArray_TYPE(<cnp.ndarray>array)
        return kind == NPY_HALF or kind >= 256

    cpdef bint is_differentiable(self, object array):
        """Whether the dtype is floating or complex; user-defined types are bfloat16."""
        cdef int kind
        if not isinstance(array, cnp.ndarray):
            return array.dtype.kind in "fc"
        kind = cnp.PyArray_TYPE(<cnp.ndarray>array)
        return (cnp.NPY_FLOAT <= kind <= cnp.NPY_CDOUBLE) or kind == NPY_HALF or kind >= 256

    cpdef bint owns_memory(self, object array):
        """Whether an array is no view of another."""
        return cnp.PyArray_BASE(<cnp.ndarray>array) == NULL

    cpdef bint is_empty(self, object array):
        return cnp.PyArray_SIZE(<cnp.ndarray>array) == 0

    cpdef bint in_row_order(self, tuple values):
        """Whether elementwise results of these values are in row-major order without more ado.

        They are if no array has its dimensions in another order; expanded ones tell nothing.
        """
        for value in values:
            if isinstance(value, cnp.ndarray) and not is_in_rows(<cnp.ndarray>value):
                return False
        return True

    cpdef object order_of_first(self, tuple values):
        """The dimensions of arrays of one shape from the outermost in memory to the innermost.

        They are those of the first array; an empty tuple if the others have the same order, None if
        shapes differ, or if expanded or equal strides leave the order open.
        """
        cdef int order[MOST_DIMENSIONS]
        cdef int other[MOST_DIMENSIONS]
        cdef int ndim = -1
        cdef bint agree = True
        cdef cnp.ndarray first = None, array
        for value in values:
            if not isinstance(value, cnp.ndarray):
                continue
            array = <cnp.ndarray>value
            if first is None:
                first = array
                ndim = cnp.PyArray_NDIM(array)
                if ndim > MOST_DIMENSIONS or not outside_in(array, order):
                    return None
                continue
            if not same_dims(first, array) or not outside_in(array, other):
                return None
            for i in range(ndim):
                if order[i] != other[i]:
                    agree = False
        if first is None:
            return None
        return () if agree else tuple([order[i] for i in range(ndim)])

    cpdef bint same_view(self, object a, object b):
        """Whether two arrays are the same elements of the same memory."""
        cdef int i
        if not isinstance(a, cnp.ndarray) or not isinstance(b, cnp.ndarray):
            return a.shape == b.shape
        if (
            cnp.PyArray_DATA(<cnp.ndarray>a) != cnp.PyArray_DATA(<cnp.ndarray>b)
            or not same_dims(<cnp.ndarray>a, <cnp.ndarray>b)
        ):
            return False
        for i in range(cnp.PyArray_NDIM(<cnp.ndarray>a)):
            if cnp.PyArray_STRIDE(<cnp.ndarray>a, i) != cnp.PyArray_STRIDE(<cnp.ndarray>b, i):
                return False
        return True

    cpdef list cut(self, object array, int dim, list sizes):
        """Views of consecutive parts along a dimension, as long as there is something left.

        None for what is no plain array.
        """
        cdef cnp.ndarray a
        cdef cnp.dtype descr
        cdef cnp.npy_intp dims[32]
        cdef int i, ndim
        cdef Py_ssize_t size, left
        cdef char* data
        cdef list parts = []
        if not cnp.PyArray_CheckExact(array) or cnp.PyArray_NDIM(<cnp.ndarray>array) > 32:
            return None
        a = <cnp.ndarray>array
        descr = <cnp.dtype>cnp.PyArray_DESCR(a)
        ndim = cnp.PyArray_NDIM(a)
        for i in range(ndim):
            dims[i] = cnp.PyArray_DIM(a, i)
        left = dims[dim]
        data = cnp.PyArray_BYTES(a)
        for size in sizes:
            size = min(size, left)
            left -= size
            dims[dim] = size
            Py_INCREF(descr)  # the call takes a reference over
            part = PyArray_NewFromDescr(
                cnp.ndarray, descr, ndim, dims, cnp.PyArray_STRIDES(a), data,
                cnp.PyArray_FLAGS(a) & cnp.NPY_ARRAY_WRITEABLE, NULL)
            cnp.set_array_base(<cnp.ndarray>part, a)
            parts.append(part)
            data += size * cnp.PyArray_STRIDE(a, dim)
        return parts


ndarrays = NDArrays()
