"""What loops in C ask of plain arrays first, compiled into each module that cimports it."""
cimport numpy as cnp
from cpython.object cimport PyObject
from libc.float cimport FLT_MAX
from libc.math cimport fabs, isinf

cdef extern from "numpy/arrayobject.h":
    # It takes over the reference to the descriptor that PyArray_DescrFromType gives.
    cnp.ndarray PyArray_NewFromDescr "PyArray_NewFromDescr" (
        type subtype, PyObject* descr, int ndim, const cnp.npy_intp* dims,
        const cnp.npy_intp* strides, void* data, int flags, PyObject* obj)
    PyObject* wengert_descr_from_type "PyArray_DescrFromType" (int kind)


cdef inline bint is_small(object value, Py_ssize_t limit) noexcept:
    """Whether a value is a contiguous float32 or float64 array of at most so many elements."""
    cdef int kind
    if not cnp.PyArray_CheckExact(value):
        return False
    kind = cnp.PyArray_TYPE(<cnp.ndarray>value)
    return (
        (kind == cnp.NPY_FLOAT or kind == cnp.NPY_DOUBLE)
        and cnp.PyArray_SIZE(<cnp.ndarray>value) <= limit
        and cnp.PyArray_ISCARRAY_RO(<cnp.ndarray>value)
    )


cdef inline bint is_number(object value) noexcept:
    """Whether a value is a Python number that loops take as an operand."""
    return type(value) is float or type(value) is int


cdef inline bint fits(double value, int kind) noexcept:
    """Whether float32 or float64 elements can hold a number; infinity is one."""
    return kind != cnp.NPY_FLOAT or not fabs(value) > FLT_MAX or isinf(value)


cdef inline bint same_dims(cnp.ndarray a, cnp.ndarray b) noexcept:
    """Whether two arrays have one shape."""
    cdef int i
    if cnp.PyArray_NDIM(a) != cnp.PyArray_NDIM(b):
        return False
    for i in range(cnp.PyArray_NDIM(a)):
        if cnp.PyArray_DIM(a, i) != cnp.PyArray_DIM(b, i):
            return False
    return True


cdef inline bint is_row_of(cnp.ndarray row, cnp.ndarray matrix) noexcept:
    """Whether a vector is as long as the rows of a matrix."""
    return (
        cnp.PyArray_NDIM(matrix) == 2
        and cnp.PyArray_NDIM(row) == 1
        and cnp.PyArray_DIM(matrix, 1) == cnp.PyArray_DIM(row, 0)
    )


cdef inline cnp.ndarray empty_like(cnp.ndarray a):
    """A new array of the shape and dtype of another, in row-major order."""
    # PyArray_EMPTY does this and a little more, which small arrays would feel.
    return PyArray_NewFromDescr(
        cnp.ndarray, wengert_descr_from_type(cnp.PyArray_TYPE(a)), cnp.PyArray_NDIM(a),
        cnp.PyArray_DIMS(a), NULL, NULL, 0, NULL)
