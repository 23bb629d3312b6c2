# cython: boundscheck=False, wraparound=False
"""Kernels of order: elements sorted along the last dimension, and the first of them."""
cimport numpy as cnp
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from ..core.array_checks cimport empty_like
from .kernels cimport is_plain, known, span

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    int PyArray_Sort(cnp.ndarray a, int axis, cnp.NPY_SORTKIND kind) except -1

cdef enum:
    SHORT_ROW = 48     # elements that are sorted by insertion
    MOST_PICKED = 32   # elements that are picked by insertion

ctypedef fused real:
    float
    double


cdef inline bint precedes(real a, real b, bint descending) noexcept nogil:
    """Whether `a` comes before `b` for certain; NaN counts as largest."""
    if descending:
        return a > b or (a != a and b == b)
    return a < b or (b != b and a == a)


cdef void insertion_sort(
    const real* x, real* values, int64_t* order, Py_ssize_t n, bint descending
) noexcept nogil:
    cdef Py_ssize_t i, j
    cdef real value
    for i in range(n):
        value = x[i]
        j = i
        while j > 0 and precedes(value, values[j - 1], descending):
            values[j] = values[j - 1]
            order[j] = order[j - 1]
            j -= 1
        values[j] = value
        order[j] = i


cdef inline uint64_t sortable(float value, uint32_t place, bint descending) noexcept nogil:
    """A number that is ordered as the value is, then by its place."""
    cdef uint32_t bits
    if value != value:
        bits = 0xffffffff
    else:
        value = value + 0  # no negative zero
        memcpy(&bits, &value, 4)
        bits = ~bits if bits >> 31 else bits | 0x80000000u
    if descending:
        bits = ~bits
    return <uint64_t>bits << 32 | place


cdef object sort(tuple v):
    """(self, dim, descending, stable) along the last dimension."""
    cdef cnp.ndarray a, values, order, keys
    cdef int first, last
    cdef Py_ssize_t rows, n, i, j
    cdef bint descending = v[2]
    cdef uint64_t key
    cdef const float* x
    if not is_plain(v[0]) or type(v[1]) is not int:
        return None
    a = <cnp.ndarray>v[0]
    if not span(v[1], cnp.PyArray_NDIM(a), &first, &last) or first != cnp.PyArray_NDIM(a) - 1:
        return None
    n = cnp.PyArray_DIM(a, first)
    rows = cnp.PyArray_SIZE(a) // n
    if n > SHORT_ROW and (cnp.PyArray_TYPE(a) != cnp.NPY_FLOAT or n > 0x7fffffff):
        return None
    values = empty_like(a)
    order = cnp.PyArray_EMPTY(cnp.PyArray_NDIM(a), cnp.PyArray_DIMS(a), cnp.NPY_INT64, 0)
    if n <= SHORT_ROW:
        with nogil:
            for i in range(rows):
                if cnp.PyArray_TYPE(a) == cnp.NPY_FLOAT:
                    insertion_sort[float](
                        <float*>cnp.PyArray_DATA(a) + i * n,
                        <float*>cnp.PyArray_DATA(values) + i * n,
                        <int64_t*>cnp.PyArray_DATA(order) + i * n, n, descending)
                else:
                    insertion_sort[double](
                        <double*>cnp.PyArray_DATA(a) + i * n,
                        <double*>cnp.PyArray_DATA(values) + i * n,
                        <int64_t*>cnp.PyArray_DATA(order) + i * n, n, descending)
        return values, order
    keys = cnp.PyArray_EMPTY(cnp.PyArray_NDIM(a), cnp.PyArray_DIMS(a), cnp.NPY_UINT64, 0)
    x = <const float*>cnp.PyArray_DATA(a)
    with nogil:
        for i in range(rows):
            for j in range(n):
                (<uint64_t*>cnp.PyArray_DATA(keys))[i * n + j] = sortable(
                    x[i * n + j], <uint32_t>j, descending)
    PyArray_Sort(keys, first, cnp.NPY_QUICKSORT)
    with nogil:
        for i in range(rows):
            for j in range(n):
                key = (<uint64_t*>cnp.PyArray_DATA(keys))[i * n + j] & 0xffffffffu
                (<int64_t*>cnp.PyArray_DATA(order))[i * n + j] = <int64_t>key
                (<float*>cnp.PyArray_DATA(values))[i * n + j] = x[i * n + <Py_ssize_t>key]
    return values, order


cdef void pick_best(
    const real* x, real* values, int64_t* order, Py_ssize_t n, Py_ssize_t k, bint largest
) noexcept nogil:
    """The first k elements of a row in order, by insertion of those that are better."""
    cdef Py_ssize_t i, j, filled = 0
    cdef real value
    for i in range(n):
        value = x[i]
        if filled == k:
            if not precedes(value, values[k - 1], largest):
                continue
            j = k - 1
        else:
            j = filled
            filled += 1
        while j > 0 and precedes(value, values[j - 1], largest):
            values[j] = values[j - 1]
            order[j] = order[j - 1]
            j -= 1
        values[j] = value
        order[j] = i


cdef object topk(tuple v):
    """(self, k, dim, largest, sorted) along the last dimension."""
    cdef cnp.npy_intp shape[32]
    cdef cnp.ndarray a, values, order
    cdef int first, last, i, ndim
    cdef Py_ssize_t rows, n, k, row
    cdef bint largest = v[3]
    if not is_plain(v[0]) or type(v[2]) is not int or type(v[1]) is not int:
        return None
    a = <cnp.ndarray>v[0]
    ndim = cnp.PyArray_NDIM(a)
    if not span(v[2], ndim, &first, &last) or first != ndim - 1:
        return None
    n = cnp.PyArray_DIM(a, first)
    if not 0 < v[1] <= n or v[1] > MOST_PICKED:
        return None
    k = v[1]
    rows = cnp.PyArray_SIZE(a) // n
    for i in range(ndim):
        shape[i] = cnp.PyArray_DIM(a, i) if i != first else k
    values = cnp.PyArray_EMPTY(ndim, shape, cnp.PyArray_TYPE(a), 0)
    order = cnp.PyArray_EMPTY(ndim, shape, cnp.NPY_INT64, 0)
    with nogil:
        for row in range(rows):
            if cnp.PyArray_TYPE(a) == cnp.NPY_FLOAT:
                pick_best[float](
                    <float*>cnp.PyArray_DATA(a) + row * n,
                    <float*>cnp.PyArray_DATA(values) + row * k,
                    <int64_t*>cnp.PyArray_DATA(order) + row * k, n, k, largest)
            else:
                pick_best[double](
                    <double*>cnp.PyArray_DATA(a) + row * n,
                    <double*>cnp.PyArray_DATA(values) + row * k,
                    <int64_t*>cnp.PyArray_DATA(order) + row * k, n, k, largest)
    return values, order


known("sort", sort)
known("topk", topk)
