# cython: boundscheck=False, wraparound=False
"""Elementwise loops and sums over small arrays.

A ufunc call on four floats costs five times its work. The loops here serve small, aligned,
contiguous float32 and float64 operands and answer None for anything else, in which case the caller
goes through NumPy. `loops.py` beside this file is the interface without C.
"""
cimport numpy as cnp
from libc.string cimport memmove

from ..core.array_checks cimport is_number, is_row_of, is_small, same_dims
from ..core.reuse cimport new_like
from .vector_loops cimport VectorLoop

from .vector_loops import vector_loop

cnp.import_array()

cdef extern from "loops.h":
    void wengert_float(
        int code, const float* a, const float* b, float* out, Py_ssize_t n) noexcept nogil
    void wengert_float_right(
        int code, const float* a, float s, float* out, Py_ssize_t n) noexcept nogil
    void wengert_float_left(
        int code, float s, const float* b, float* out, Py_ssize_t n) noexcept nogil
    void wengert_float_differential(
        int code, const float* t, const float* y, float* out, Py_ssize_t n) noexcept nogil
    void wengert_double(
        int code, const double* a, const double* b, double* out, Py_ssize_t n) noexcept nogil
    void wengert_double_right(
        int code, const double* a, double s, double* out, Py_ssize_t n) noexcept nogil
    void wengert_double_left(
        int code, double s, const double* b, double* out, Py_ssize_t n) noexcept nogil
    void wengert_double_differential(
        int code, const double* t, const double* y, double* out, Py_ssize_t n) noexcept nogil
    void wengert_float_unary(int code, const float* a, float* out, Py_ssize_t n) noexcept nogil
    void wengert_double_unary(int code, const double* a, double* out, Py_ssize_t n) noexcept nogil
    void wengert_float_sum_rows(
        const float* a, float* out, Py_ssize_t rows, Py_ssize_t n) noexcept nogil
    void wengert_double_sum_rows(
        const double* a, double* out, Py_ssize_t rows, Py_ssize_t n) noexcept nogil
    void wengert_float_scaled_add(
        float* out, const float* b, float factor, Py_ssize_t n) noexcept nogil
    void wengert_double_scaled_add(
        double* out, const double* b, double factor, Py_ssize_t n) noexcept nogil
    void wengert_float_logistic_tail(float* out, Py_ssize_t n) noexcept nogil
    void wengert_double_logistic_tail(double* out, Py_ssize_t n) noexcept nogil
    void wengert_float_sum(const float* a, float* out, Py_ssize_t n) noexcept nogil
    void wengert_double_sum(const double* a, double* out, Py_ssize_t n) noexcept nogil

# The numbers of loop_codes.py, as far as they are told apart here.
cdef enum:
    EXP = 2
    SQRT = 4
    SIGMOID = 8
    TOTAL = 12

cdef enum:
    COPY = 50

# By these numbers the loops that all processors with vectors have.
cdef list vector_loops = [
    vector_loop(name)
    for name in (
        "neg", "", "exp", "log", "sqrt", "sin", "cos", "tanh", "sigmoid", "relu", "square",
        "reciprocal",
    )
]

# The most elements that a loop takes; beyond, NumPy's own are as fast.
cdef enum:
    ARITHMETIC_LIMIT = 32768
    TRANSCENDENTAL_LIMIT = 96


# No limit: what NumPy would do in several passes.
cdef Py_ssize_t WHOLE = <Py_ssize_t>1 << 60


cdef inline Py_ssize_t small_rows(cnp.ndarray a, Py_ssize_t limit) noexcept:
    """In how many contiguous runs a small float array lies: one, or its rows; 0 for neither."""
    cdef int kind = cnp.PyArray_TYPE(a)
    if is_small(a, limit):
        return 1
    if (
        (kind == cnp.NPY_FLOAT or kind == cnp.NPY_DOUBLE)
        and cnp.PyArray_NDIM(a) == 2
        and 0 < cnp.PyArray_SIZE(a) <= limit
        and cnp.PyArray_STRIDE(a, 1) == cnp.PyArray_ITEMSIZE(a)
        and cnp.PyArray_STRIDE(a, 0) != cnp.PyArray_ITEMSIZE(a)
        and cnp.PyArray_ISALIGNED(a)
        and cnp.PyArray_ISNOTSWAPPED(a)
    ):
        return cnp.PyArray_DIM(a, 0)
    return 0


cdef inline Py_ssize_t row_step(cnp.ndarray a, Py_ssize_t rows) noexcept:
    """Bytes from one run of `small_rows` to the next."""
    return cnp.PyArray_STRIDE(a, 0) if rows > 1 else 0


cdef bint binary_loop(int code, object a, object b, cnp.ndarray out) except -1:
    """Fill `out`, which has the dtype and shape of the array operand; a number is the other."""
    cdef Py_ssize_t n = cnp.PyArray_SIZE(out)
    cdef double s
    if cnp.PyArray_TYPE(out) == cnp.NPY_FLOAT:
        if is_number(b):
            wengert_float_right(
                code, <float*>cnp.PyArray_DATA(<cnp.ndarray>a), <float><double>b,
                <float*>cnp.PyArray_DATA(out), n)
        elif is_number(a):
            wengert_float_left(
                code, <float><double>a, <float*>cnp.PyArray_DATA(<cnp.ndarray>b),
                <float*>cnp.PyArray_DATA(out), n)
        else:
            wengert_float(
                code, <float*>cnp.PyArray_DATA(<cnp.ndarray>a),
                <float*>cnp.PyArray_DATA(<cnp.ndarray>b), <float*>cnp.PyArray_DATA(out), n)
    else:
        if is_number(b):
            wengert_double_right(
                code, <double*>cnp.PyArray_DATA(<cnp.ndarray>a), <double>b,
                <double*>cnp.PyArray_DATA(out), n)
        elif is_number(a):
            wengert_double_left(
                code, <double>a, <double*>cnp.PyArray_DATA(<cnp.ndarray>b),
                <double*>cnp.PyArray_DATA(out), n)
        else:
            wengert_double(
                code, <double*>cnp.PyArray_DATA(<cnp.ndarray>a),
                <double*>cnp.PyArray_DATA(<cnp.ndarray>b), <double*>cnp.PyArray_DATA(out), n)
    return True


cdef inline bint overlaps(cnp.ndarray a, cnp.ndarray b) noexcept:
    """Whether two contiguous arrays share memory without being the same elements."""
    cdef char* first = <char*>cnp.PyArray_DATA(a)
    cdef char* second = <char*>cnp.PyArray_DATA(b)
    if first == second:
        return not same_dims(a, b)
    return first < second + cnp.PyArray_NBYTES(b) and second < first + cnp.PyArray_NBYTES(a)


cdef void scaled_add_loop(cnp.ndarray a, cnp.ndarray b, double alpha) noexcept:
    if cnp.PyArray_TYPE(a) == cnp.NPY_FLOAT:
        wengert_float_scaled_add(
            <float*>cnp.PyArray_DATA(a), <float*>cnp.PyArray_DATA(b), <float>alpha,
            cnp.PyArray_SIZE(a))
    else:
        wengert_double_scaled_add(
            <double*>cnp.PyArray_DATA(a), <double*>cnp.PyArray_DATA(b), alpha, cnp.PyArray_SIZE(a))


cdef void row_loop(int code, cnp.ndarray a, cnp.ndarray b, cnp.ndarray out) noexcept:
    """A matrix with a row vector, the bias pattern."""
    cdef Py_ssize_t i, rows = cnp.PyArray_DIM(a, 0), n = cnp.PyArray_DIM(a, 1)
    for i in range(rows):
        if cnp.PyArray_TYPE(a) == cnp.NPY_FLOAT:
            wengert_float(
                code, <float*>cnp.PyArray_DATA(a) + i * n, <float*>cnp.PyArray_DATA(b),
                <float*>cnp.PyArray_DATA(out) + i * n, n)
        else:
            wengert_double(
                code, <double*>cnp.PyArray_DATA(a) + i * n, <double*>cnp.PyArray_DATA(b),
                <double*>cnp.PyArray_DATA(out) + i * n, n)


cdef bint copied(cnp.ndarray a, object b) noexcept:
    """Copy an array of the same dtype and shape; False for anything else."""
    if (
        not is_small(b, WHOLE)
        or cnp.PyArray_TYPE(a) != cnp.PyArray_TYPE(<cnp.ndarray>b)
        or not same_dims(a, <cnp.ndarray>b)
        or overlaps(a, <cnp.ndarray>b)
    ):
        return False
    memmove(cnp.PyArray_DATA(a), cnp.PyArray_DATA(<cnp.ndarray>b), cnp.PyArray_NBYTES(a))
    return True


cdef object sum_all(object a):
    """Sum of a small array as a 0-d array; None when not small."""
    cdef cnp.ndarray x, out
    if not is_small(a, 64):
        return None
    x = <cnp.ndarray>a
    out = cnp.PyArray_EMPTY(0, NULL, cnp.PyArray_TYPE(x), 0)
    if cnp.PyArray_TYPE(out) == cnp.NPY_FLOAT:
        wengert_float_sum(
            <float*>cnp.PyArray_DATA(x), <float*>cnp.PyArray_DATA(out), cnp.PyArray_SIZE(x))
    else:
        wengert_double_sum(
            <double*>cnp.PyArray_DATA(x), <double*>cnp.PyArray_DATA(out), cnp.PyArray_SIZE(x))
    return out


cdef class Loops:
    """Loops by the numbers of `loop_codes.py`; one instance, `loops`."""

    cpdef object unary(self, int code, object a):
        """A function of each element of a small array, or its sum; None when not small."""
        cdef cnp.ndarray x, out
        cdef Py_ssize_t i, rows, n, limit = ARITHMETIC_LIMIT
        cdef bint single
        cdef VectorLoop vector
        if code == TOTAL:
            return sum_all(a)
        if not cnp.PyArray_CheckExact(a):
            return None
        vector = <VectorLoop>vector_loops[code]
        if vector is not None:
            found = vector.run_one(a)
            if found is not None:
                return found
        x = <cnp.ndarray>a
        single = cnp.PyArray_TYPE(x) == cnp.NPY_FLOAT
        if EXP <= code <= SIGMOID and code != SQRT:
            limit = TRANSCENDENTAL_LIMIT
        rows = small_rows(x, limit)
        if rows == 0:
            return None
        out = new_like(x)
        n = cnp.PyArray_SIZE(out) // rows
        for i in range(rows):
            if single:
                wengert_float_unary(code, <float*>(cnp.PyArray_BYTES(x) + i * row_step(x, rows)),
                                 <float*>cnp.PyArray_DATA(out) + i * n, n)
            else:
                wengert_double_unary(code, <double*>(cnp.PyArray_BYTES(x) + i * row_step(x, rows)),
                                  <double*>cnp.PyArray_DATA(out) + i * n, n)
        return out

    cpdef object binary(self, int code, object a, object b):
        """Arithmetic with small arrays of one dtype and shape, a row, or a number; else None."""
        cdef cnp.ndarray out
        if code == COPY:
            return None
        if is_small(a, ARITHMETIC_LIMIT):
            if is_number(b):
                pass
            elif not is_small(b, ARITHMETIC_LIMIT) or (
                cnp.PyArray_TYPE(<cnp.ndarray>a) != cnp.PyArray_TYPE(<cnp.ndarray>b)
            ):
                return None
            elif not same_dims(<cnp.ndarray>a, <cnp.ndarray>b):
                if not is_row_of(<cnp.ndarray>b, <cnp.ndarray>a):
                    return None
                out = new_like(<cnp.ndarray>a)
                row_loop(code, <cnp.ndarray>a, <cnp.ndarray>b, out)
                return out
            out = new_like(<cnp.ndarray>a)
        elif is_number(a) and is_small(b, ARITHMETIC_LIMIT):
            out = new_like(<cnp.ndarray>b)
        else:
            return None
        binary_loop(code, a, b, out)
        return out

    cpdef bint binary_into(self, int code, object a, object b, double alpha=1.0):
        """`a = a op alpha * b` in place; False when the operands are not small and alike.

        Other factors than one are for addition. Operands that overlap are declined.
        """
        if not is_small(a, WHOLE) or not cnp.PyArray_ISWRITEABLE(<cnp.ndarray>a):
            return False
        if code == COPY:
            return copied(<cnp.ndarray>a, b)
        if cnp.PyArray_SIZE(<cnp.ndarray>a) > ARITHMETIC_LIMIT and alpha == 1.0:
            return False
        if is_number(b):
            return binary_loop(code, a, b if alpha == 1.0 else alpha * <double>b, <cnp.ndarray>a)
        if (
            not is_small(b, WHOLE)
            or cnp.PyArray_TYPE(<cnp.ndarray>a) != cnp.PyArray_TYPE(<cnp.ndarray>b)
            or overlaps(<cnp.ndarray>a, <cnp.ndarray>b)
        ):
            return False
        if same_dims(<cnp.ndarray>a, <cnp.ndarray>b):
            if alpha != 1.0:
                scaled_add_loop(<cnp.ndarray>a, <cnp.ndarray>b, alpha)
                return True
            return binary_loop(code, a, b, <cnp.ndarray>a)
        if alpha == 1.0 and is_row_of(<cnp.ndarray>b, <cnp.ndarray>a):
            row_loop(code, <cnp.ndarray>a, <cnp.ndarray>b, <cnp.ndarray>a)
            return True
        return False

    cpdef object differential(self, int code, object t, object value, bint into=False):
        """The differential of tanh, sigmoid or relu in one pass, from their result `value`.

        It is written `into` the tangent where that may be changed.
        """
        cdef cnp.ndarray out
        if (
            not is_small(t, ARITHMETIC_LIMIT)
            or not is_small(value, ARITHMETIC_LIMIT)
            or cnp.PyArray_TYPE(<cnp.ndarray>t) != cnp.PyArray_TYPE(<cnp.ndarray>value)
            or not same_dims(<cnp.ndarray>t, <cnp.ndarray>value)
        ):
            return None
        if into and cnp.PyArray_ISWRITEABLE(<cnp.ndarray>t):
            out = <cnp.ndarray>t
        else:
            out = new_like(<cnp.ndarray>t)
        if cnp.PyArray_TYPE(out) == cnp.NPY_FLOAT:
            wengert_float_differential(
                code, <float*>cnp.PyArray_DATA(<cnp.ndarray>t),
                <float*>cnp.PyArray_DATA(<cnp.ndarray>value), <float*>cnp.PyArray_DATA(out),
                cnp.PyArray_SIZE(out))
        else:
            wengert_double_differential(
                code, <double*>cnp.PyArray_DATA(<cnp.ndarray>t),
                <double*>cnp.PyArray_DATA(<cnp.ndarray>value), <double*>cnp.PyArray_DATA(out),
                cnp.PyArray_SIZE(out))
        return out

    cpdef object sum_rows(self, object a):
        """Sum of a small matrix over its rows; None when not small."""
        cdef cnp.ndarray out
        cdef cnp.npy_intp columns
        cdef Py_ssize_t rows
        if not is_small(a, ARITHMETIC_LIMIT) or cnp.PyArray_NDIM(<cnp.ndarray>a) != 2:
            return None
        rows, columns = cnp.PyArray_DIM(<cnp.ndarray>a, 0), cnp.PyArray_DIM(<cnp.ndarray>a, 1)
        if rows > 64:
            return None
        out = cnp.PyArray_ZEROS(1, &columns, cnp.PyArray_TYPE(<cnp.ndarray>a), 0)
        if cnp.PyArray_TYPE(out) == cnp.NPY_FLOAT:
            wengert_float_sum_rows(
                <float*>cnp.PyArray_DATA(<cnp.ndarray>a), <float*>cnp.PyArray_DATA(out),
                rows, columns)
        else:
            wengert_double_sum_rows(
                <double*>cnp.PyArray_DATA(<cnp.ndarray>a), <double*>cnp.PyArray_DATA(out),
                rows, columns)
        return out

    cpdef bint logistic_tail(self, object e):
        """`e = 1 / (1 + e)` in place; False when not a contiguous float array."""
        cdef cnp.ndarray a
        if not is_small(e, WHOLE) or not cnp.PyArray_ISWRITEABLE(<cnp.ndarray>e):
            return False
        a = <cnp.ndarray>e
        if cnp.PyArray_TYPE(a) == cnp.NPY_FLOAT:
            wengert_float_logistic_tail(<float*>cnp.PyArray_DATA(a), cnp.PyArray_SIZE(a))
        else:
            wengert_double_logistic_tail(<double*>cnp.PyArray_DATA(a), cnp.PyArray_SIZE(a))
        return True


loops = Loops()
