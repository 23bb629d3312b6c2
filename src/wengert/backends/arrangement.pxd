"""How arrays lie in memory, as kernels ask it; compiled into each module that cimports it."""
cimport numpy as cnp
from libc.stdint cimport int64_t

cdef extern from "numpy/arrayobject.h":
    int NPY_HALF


cdef inline bint holds_numbers(object value) noexcept:
    """Whether a value is a plain array of numbers of a type that NumPy has."""
    cdef int kind
    if not cnp.PyArray_CheckExact(value):
        return False
    kind = cnp.PyArray_TYPE(<cnp.ndarray>value)
    return kind < cnp.NPY_OBJECT or kind == NPY_HALF


cdef inline bint is_data(object value) noexcept:
    """Whether a value is a contiguous array of numbers with some elements."""
    return (
        holds_numbers(value)
        and cnp.PyArray_ISCARRAY_RO(<cnp.ndarray>value)
        and cnp.PyArray_SIZE(<cnp.ndarray>value) > 0
    )


cdef inline bint find_runs(
    cnp.ndarray a, int64_t* runs, int64_t* length, int64_t* step
) noexcept:
    """Find the runs of memory without gaps that an array consists of: how many there are, the bytes
    of one and those from one to the next. False if it is a single run, or steps differ."""
    cdef int d = cnp.PyArray_NDIM(a) - 1
    cdef int64_t reach
    runs[0], length[0] = 1, cnp.PyArray_ITEMSIZE(a)
    while d >= 0 and (cnp.PyArray_DIM(a, d) == 1 or cnp.PyArray_STRIDE(a, d) == length[0]):
        length[0] *= cnp.PyArray_DIM(a, d)
        d -= 1
    if d < 0:
        return False
    step[0] = reach = cnp.PyArray_STRIDE(a, d)
    while d >= 0:
        if cnp.PyArray_DIM(a, d) != 1:
            if cnp.PyArray_STRIDE(a, d) != reach:
                return False
            runs[0] *= cnp.PyArray_DIM(a, d)
            reach *= cnp.PyArray_DIM(a, d)
        d -= 1
    return True


cdef inline void measure_around(
    cnp.ndarray a, int first, int last, int64_t* before, int64_t* count, int64_t* behind
) noexcept:
    """How many elements there are in the dimensions before some neighbouring ones, in these, and in
    those behind them."""
    cdef int i
    before[0] = count[0] = behind[0] = 1
    for i in range(cnp.PyArray_NDIM(a)):
        if i < first:
            before[0] *= cnp.PyArray_DIM(a, i)
        elif i <= last:
            count[0] *= cnp.PyArray_DIM(a, i)
        else:
            behind[0] *= cnp.PyArray_DIM(a, i)
