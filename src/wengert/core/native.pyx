# cython: boundscheck=False, wraparound=False
"""The few pieces that need C types throughout: small loops, frames, thread identity.

A ufunc call on four floats costs five times its work. The loops here serve small, aligned,
contiguous float32 and float64 operands and answer None for anything else, in which case the caller
goes through NumPy. `native.py` beside this file is the same interface without C.
"""
cimport numpy as cnp
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.string cimport memcpy

from numpy._core import _multiarray_umath as umath

cnp.import_array()

cdef extern from "pythread.h":
    unsigned long PyThread_get_thread_ident()

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(object value)
    ctypedef struct PyFrameObject:
        pass
    ctypedef struct PyCodeObject:
        pass
    PyFrameObject* PyEval_GetFrame()
    PyCodeObject* PyFrame_GetCode(PyFrameObject* frame)
    PyFrameObject* PyFrame_GetBack(PyFrameObject* frame)
    int PyFrame_GetLasti(PyFrameObject* frame)
    void Py_DECREF(void* value)
    int PyObject_GenericSetAttr(object target, object name, object value) except -1
    void PyType_Modified(type cls)
    object PyMethod_New(object function, object instance)
    void PyObject_GC_Track(object value)
    void PyObject_GC_UnTrack(object value)
    bint PyObject_GC_IsTracked(object value)

cdef extern from *:
    """
    #if PY_VERSION_HEX >= 0x030C0000
    #define wengert_type_dict(cls) PyType_GetDict((PyTypeObject*)(cls))
    #else
    static PyObject* wengert_type_dict(PyObject* cls) {
        PyObject* dict = ((PyTypeObject*)cls)->tp_dict;
        Py_XINCREF(dict);
        return dict;
    }
    #endif
    """
    dict wengert_type_dict(type cls)

cdef extern from "numpy/arrayobject.h":
    int NPY_HALF
    object PyArray_NewFromDescr(
        type subtype, cnp.dtype descr, int ndim, const cnp.npy_intp* dims,
        const cnp.npy_intp* strides, void* data, int flags, PyObject* obj)

cdef extern from "native_loops.h":
    void wengert_float(int code, const float* a, const float* b, float* out, Py_ssize_t n) noexcept nogil
    void wengert_float_right(int code, const float* a, float s, float* out, Py_ssize_t n) noexcept nogil
    void wengert_float_left(int code, float s, const float* b, float* out, Py_ssize_t n) noexcept nogil
    void wengert_float_differential(
        int code, const float* t, const float* y, float* out, Py_ssize_t n) noexcept nogil
    void wengert_double(int code, const double* a, const double* b, double* out, Py_ssize_t n) noexcept nogil
    void wengert_double_right(int code, const double* a, double s, double* out, Py_ssize_t n) noexcept nogil
    void wengert_double_left(int code, double s, const double* b, double* out, Py_ssize_t n) noexcept nogil
    void wengert_double_differential(
        int code, const double* t, const double* y, double* out, Py_ssize_t n) noexcept nogil
    void wengert_float_unary(int code, const float* a, float* out, Py_ssize_t n) noexcept nogil
    void wengert_double_unary(int code, const double* a, double* out, Py_ssize_t n) noexcept nogil
    void wengert_float_sum_rows(const float* a, float* out, Py_ssize_t rows, Py_ssize_t n) noexcept nogil
    void wengert_double_sum_rows(const double* a, double* out, Py_ssize_t rows, Py_ssize_t n) noexcept nogil
    void wengert_float_scaled_add(float* out, const float* b, float factor, Py_ssize_t n) noexcept nogil
    void wengert_double_scaled_add(double* out, const double* b, double factor, Py_ssize_t n) noexcept nogil
    void wengert_float_logistic_tail(float* out, Py_ssize_t n) noexcept nogil
    void wengert_double_logistic_tail(double* out, Py_ssize_t n) noexcept nogil
    void wengert_float_sum(const float* a, float* out, Py_ssize_t n) noexcept nogil
    void wengert_double_sum(const double* a, double* out, Py_ssize_t n) noexcept nogil

cdef extern from "native_blas.h":
    bint wengert_serves(Py_ssize_t largest) noexcept nogil
    bint wengert_find_blas(const char* path) noexcept
    void wengert_gemm(
        bint is_double, bint turn_a, bint turn_b, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k,
        const void* a, Py_ssize_t a_step, const void* b, Py_ssize_t b_step, bint adds, void* out
    ) noexcept nogil

ctypedef fused real:
    float
    double

# The same numbers as in operators/loops.py.
cdef enum:
    ADD = 0
    SUB = 1
    MUL = 2
    DIV = 3
    RSUB = 4

    NEG = 0
    ABS = 1
    EXP = 2
    LOG = 3
    SQRT = 4
    SIN = 5
    COS = 6
    TANH = 7
    SIGMOID = 8
    RELU = 9
    SQUARE = 10
    RECIPROCAL = 11

    ARITHMETIC_LIMIT = 32768
    TRANSCENDENTAL_LIMIT = 96
    MATMUL_LIMIT = 6000
    DOT_LIMIT = 20000

cdef str PACKAGE_FOLDER = __file__.rsplit("/", 2)[0] + "/"


cdef inline bint is_small(object value, Py_ssize_t limit) noexcept:
    cdef int kind
    if not cnp.PyArray_CheckExact(value):
        return False
    kind = cnp.PyArray_TYPE(<cnp.ndarray>value)
    return (
        (kind == cnp.NPY_FLOAT or kind == cnp.NPY_DOUBLE)
        and cnp.PyArray_SIZE(<cnp.ndarray>value) <= limit
        and cnp.PyArray_ISCARRAY_RO(<cnp.ndarray>value)
    )


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


cdef inline bint is_number(object value) noexcept:
    return type(value) is float or type(value) is int


cdef inline bint same_dims(cnp.ndarray a, cnp.ndarray b) noexcept:
    cdef int i
    if cnp.PyArray_NDIM(a) != cnp.PyArray_NDIM(b):
        return False
    for i in range(cnp.PyArray_NDIM(a)):
        if cnp.PyArray_DIM(a, i) != cnp.PyArray_DIM(b, i):
            return False
    return True


cdef inline bint is_target(object value) noexcept:
    """Whether a loop may write to an array: contiguous, aligned, writable."""
    return cnp.PyArray_CheckExact(value) and cnp.PyArray_ISCARRAY(<cnp.ndarray>value)


cdef inline bint are_factors(object a, object b, bint turn_a, bint turn_b) noexcept:
    """Whether two matrices of one real dtype fit together, transposed or not."""
    cdef int kind
    if not is_matrix_like(a, a) or not is_matrix_like(b, a):
        return False
    kind = cnp.PyArray_TYPE(<cnp.ndarray>a)
    return (
        (kind == cnp.NPY_FLOAT or kind == cnp.NPY_DOUBLE)
        and cnp.PyArray_DIM(<cnp.ndarray>a, not turn_a) == cnp.PyArray_DIM(<cnp.ndarray>b, turn_b)
        and cnp.PyArray_ISALIGNED(<cnp.ndarray>a) and cnp.PyArray_ISALIGNED(<cnp.ndarray>b)
        and cnp.PyArray_ISNOTSWAPPED(<cnp.ndarray>a) and cnp.PyArray_ISNOTSWAPPED(<cnp.ndarray>b)
    )


cdef inline bint is_matrix_like(object value, object like) noexcept:
    """Whether `value` is a plain matrix of the dtype of `like`, an array."""
    return (
        cnp.PyArray_CheckExact(value)
        and cnp.PyArray_NDIM(<cnp.ndarray>value) == 2
        and cnp.PyArray_TYPE(<cnp.ndarray>value) == cnp.PyArray_TYPE(<cnp.ndarray>like)
    )


cdef void matmul_loop(
    real* a, real* b, real* out, Py_ssize_t m, Py_ssize_t k, Py_ssize_t n,
    Py_ssize_t a_row, Py_ssize_t a_col, Py_ssize_t b_row, Py_ssize_t b_col, bint adds,
) noexcept nogil:
    cdef Py_ssize_t i, j, p
    cdef real s
    cdef real* row
    cdef real* source
    if b_col == 1:
        for i in range(m):
            row = out + i * n
            if not adds:
                for j in range(n):
                    row[j] = 0
            for p in range(k):
                s = a[i * a_row + p * a_col]
                source = b + p * b_row
                for j in range(n):
                    row[j] += s * source[j]
    else:
        for i in range(m):
            for j in range(n):
                s = 0
                for p in range(k):
                    s += a[i * a_row + p * a_col] * b[p * b_row + j * b_col]
                out[i * n + j] = out[i * n + j] + s if adds else s


cdef bint multiply_into(
    cnp.ndarray a, cnp.ndarray b, bint turn_a, bint turn_b, cnp.ndarray out, bint adds, bint blas
) noexcept:
    """`out = a @ b`, or `out += a @ b`, for matrices that fit; False if large and not for BLAS."""
    cdef int kind = cnp.PyArray_TYPE(out)
    cdef Py_ssize_t item = 4 if kind == cnp.NPY_FLOAT else 8
    cdef Py_ssize_t m = cnp.PyArray_DIM(out, 0), n = cnp.PyArray_DIM(out, 1)
    cdef Py_ssize_t k = cnp.PyArray_DIM(a, 0 if turn_a else 1)
    cdef Py_ssize_t a_step, b_step
    cdef bint a_turned, b_turned
    if m * k * n <= MATMUL_LIMIT:
        if kind == cnp.NPY_FLOAT:
            matmul_loop[float](
                <float*>cnp.PyArray_DATA(a), <float*>cnp.PyArray_DATA(b),
                <float*>cnp.PyArray_DATA(out), m, k, n,
                cnp.PyArray_STRIDE(a, turn_a) // item, cnp.PyArray_STRIDE(a, not turn_a) // item,
                cnp.PyArray_STRIDE(b, turn_b) // item, cnp.PyArray_STRIDE(b, not turn_b) // item,
                adds)
        else:
            matmul_loop[double](
                <double*>cnp.PyArray_DATA(a), <double*>cnp.PyArray_DATA(b),
                <double*>cnp.PyArray_DATA(out), m, k, n,
                cnp.PyArray_STRIDE(a, turn_a) // item, cnp.PyArray_STRIDE(a, not turn_a) // item,
                cnp.PyArray_STRIDE(b, turn_b) // item, cnp.PyArray_STRIDE(b, not turn_b) // item,
                adds)
        return True
    if not blas:
        return False
    a_step, b_step = blas_step(a, item, &a_turned), blas_step(b, item, &b_turned)
    if a_step == 0 or b_step == 0 or not wengert_serves(max(m, n, k, a_step, b_step)):
        return False
    with nogil:
        wengert_gemm(
            kind == cnp.NPY_DOUBLE, a_turned != turn_a, b_turned != turn_b, m, n, k,
            cnp.PyArray_DATA(a), a_step, cnp.PyArray_DATA(b), b_step, adds, cnp.PyArray_DATA(out))
    return True


cdef Py_ssize_t blas_step(cnp.ndarray a, Py_ssize_t item, bint* turned) noexcept:
    """Elements from one row, or column if `turned`, to the next; 0 if BLAS cannot read the matrix."""
    cdef Py_ssize_t rows = cnp.PyArray_DIM(a, 0), columns = cnp.PyArray_DIM(a, 1)
    cdef Py_ssize_t down = cnp.PyArray_STRIDE(a, 0), across = cnp.PyArray_STRIDE(a, 1)
    turned[0] = False
    if across == item or columns == 1:
        if rows == 1:
            return columns
        if down % item == 0 and down // item >= columns:
            return down // item
    turned[0] = True
    if down == item or rows == 1:
        if columns == 1:
            return rows
        if across % item == 0 and across // item >= rows:
            return across // item
    return 0


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


cdef inline bint is_row_of(cnp.ndarray row, cnp.ndarray matrix) noexcept:
    return (
        cnp.PyArray_NDIM(matrix) == 2
        and cnp.PyArray_NDIM(row) == 1
        and cnp.PyArray_DIM(matrix, 1) == cnp.PyArray_DIM(row, 0)
    )


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
            wengert_float(code, <float*>cnp.PyArray_DATA(a) + i * n,
                               <float*>cnp.PyArray_DATA(b), <float*>cnp.PyArray_DATA(out) + i * n, n)
        else:
            wengert_double(code, <double*>cnp.PyArray_DATA(a) + i * n,
                                <double*>cnp.PyArray_DATA(b), <double*>cnp.PyArray_DATA(out) + i * n, n)


cdef inline object code_of(PyFrameObject* frame):
    cdef PyCodeObject* owned = PyFrame_GetCode(frame)
    cdef object code = <object>owned
    Py_DECREF(owned)
    return code


cdef inline cnp.ndarray empty_like(cnp.ndarray a):
    return cnp.PyArray_EMPTY(cnp.PyArray_NDIM(a), cnp.PyArray_DIMS(a), cnp.PyArray_TYPE(a), 0)


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


cdef enum:
    MOST_DIMENSIONS = 8


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


cdef class Native:
    """Process-wide helpers; one instance, `native`."""

    def __cinit__(self):
        self.compiled = True
        self.last_ndim = -1
        # without the matrix products of NumPy's own library, NumPy is called for them
        self.blas = wengert_find_blas(umath.__file__.encode())

    cpdef unsigned long thread_ident(self):
        return PyThread_get_thread_ident()

    cpdef Py_ssize_t refcount(self, object value):
        """References to `value` held outside this call and its caller's own argument."""
        return Py_REFCNT(value)

    cpdef hide(self, object value):
        """Keep an object away from the cyclic collector's walks."""
        PyObject_GC_UnTrack(value)

    cpdef show(self, object value):
        """Undo `hide`."""
        if not PyObject_GC_IsTracked(value):
            PyObject_GC_Track(value)

    cpdef bint is_hidden(self, object value):
        return not PyObject_GC_IsTracked(value)

    cpdef object caller(self, int inside=1):
        """Code object of the innermost frame outside this package; its instruction in `lasti`.

        Compiled modules have no frames, so the number of those `inside` says nothing here.
        """
        cdef PyFrameObject* frame = PyEval_GetFrame()
        cdef object code
        if frame is NULL:
            self.lasti = -1
            return None
        code = code_of(frame)
        if code is not self.last_code:
            if (<str>code.co_filename).startswith(PACKAGE_FOLDER):
                return self._caller_outside()
            self.last_code = code
        self.lasti = PyFrame_GetLasti(frame)
        return code

    cdef object _caller_outside(self):
        cdef PyFrameObject* frame = PyFrame_GetBack(PyEval_GetFrame())
        cdef PyFrameObject* back
        cdef object code
        while frame is not NULL:
            code = code_of(frame)
            if not (<str>code.co_filename).startswith(PACKAGE_FOLDER):
                self.lasti = PyFrame_GetLasti(frame)
                Py_DECREF(frame)
                return code
            back = PyFrame_GetBack(frame)
            Py_DECREF(frame)
            frame = back
        self.lasti = -1
        return None

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
            return array.dtype.char == "e"
        kind = cnp.PyArray_TYPE(<cnp.ndarray>array)
        return kind == NPY_HALF or kind >= 256

    cpdef bint is_differentiable(self, object array):
        """Whether the dtype is floating or complex; user-defined types are bfloat16."""
        cdef int kind
        if not isinstance(array, cnp.ndarray):
            return array.dtype.kind in "fc"
        kind = cnp.PyArray_TYPE(<cnp.ndarray>array)
        return (cnp.NPY_FLOAT <= kind <= cnp.NPY_CDOUBLE) or kind == NPY_HALF or kind >= 256

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

    cpdef object unary(self, int code, object a):
        cdef cnp.ndarray x, out
        cdef Py_ssize_t i, rows, n, limit = ARITHMETIC_LIMIT
        cdef bint single
        if not cnp.PyArray_CheckExact(a):
            return None
        x = <cnp.ndarray>a
        single = cnp.PyArray_TYPE(x) == cnp.NPY_FLOAT
        if EXP <= code <= SIGMOID and code != SQRT and not (single and code >= TANH):
            limit = TRANSCENDENTAL_LIMIT
        rows = small_rows(x, limit)
        if rows == 0:
            return None
        out = empty_like(x)
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
        cdef cnp.ndarray out
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
                out = empty_like(<cnp.ndarray>a)
                row_loop(code, <cnp.ndarray>a, <cnp.ndarray>b, out)
                return out
            out = empty_like(<cnp.ndarray>a)
        elif is_number(a) and is_small(b, ARITHMETIC_LIMIT):
            out = empty_like(<cnp.ndarray>b)
        else:
            return None
        binary_loop(code, a, b, out)
        return out

    cpdef bint binary_into(self, int code, object a, object b, double alpha=1.0):
        """`a = a op alpha * b` in place; False when the operands are not small and alike.

        Other factors than one are for addition. Operands that overlap are declined.
        """
        if not is_small(a, ARITHMETIC_LIMIT) or not cnp.PyArray_ISWRITEABLE(<cnp.ndarray>a):
            return False
        if is_number(b):
            return binary_loop(code, a, b if alpha == 1.0 else alpha * <double>b, <cnp.ndarray>a)
        if (
            not is_small(b, ARITHMETIC_LIMIT)
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

    cpdef object matmul(self, object a, object b):
        """Product of two small matrices of one dtype, any strides; None when not small."""
        cdef Py_ssize_t k
        if not are_factors(a, b, False, False):
            return None
        k = cnp.PyArray_DIM(<cnp.ndarray>a, 1)
        if cnp.PyArray_DIM(<cnp.ndarray>a, 0) * k * cnp.PyArray_DIM(<cnp.ndarray>b, 1) > MATMUL_LIMIT:
            return None
        return self.product(a, b, False, False)

    cpdef object product(self, object a, object b, bint turn_a, bint turn_b):
        """Product of two real matrices of one dtype, either of them transposed first; else None."""
        cdef cnp.npy_intp dims[2]
        cdef cnp.ndarray out
        if not are_factors(a, b, turn_a, turn_b):
            return None
        dims[0] = cnp.PyArray_DIM(<cnp.ndarray>a, turn_a)
        dims[1] = cnp.PyArray_DIM(<cnp.ndarray>b, not turn_b)
        out = cnp.PyArray_EMPTY(2, dims, cnp.PyArray_TYPE(<cnp.ndarray>a), 0)
        if multiply_into(<cnp.ndarray>a, <cnp.ndarray>b, turn_a, turn_b, out, False, self.blas):
            return out
        if dims[0] * dims[1] > DOT_LIMIT:
            return None
        return cnp.PyArray_MatrixProduct(
            cnp.PyArray_SwapAxes(<cnp.ndarray>a, 0, 1) if turn_a else a,
            cnp.PyArray_SwapAxes(<cnp.ndarray>b, 0, 1) if turn_b else b)

    cpdef bint product_into(self, object out, object a, object b, bint turn_a, bint turn_b):
        """`out += a @ b` for the same operands, `out` an array of its own; False when declined."""
        return (
            is_target(out)
            and are_factors(a, b, turn_a, turn_b)
            and is_matrix_like(out, a)
            and cnp.PyArray_DIM(<cnp.ndarray>out, 0) == cnp.PyArray_DIM(<cnp.ndarray>a, turn_a)
            and cnp.PyArray_DIM(<cnp.ndarray>out, 1) == cnp.PyArray_DIM(<cnp.ndarray>b, not turn_b)
            and multiply_into(
                <cnp.ndarray>a, <cnp.ndarray>b, turn_a, turn_b, <cnp.ndarray>out, True, self.blas)
        )

    cpdef object addmm(self, object x, object a, object b):
        """`x + a @ b` for small operands, `x` a row or a matrix; None when not small."""
        cdef cnp.npy_intp dims[2]
        cdef cnp.ndarray out
        cdef Py_ssize_t i, row
        if not is_small(x, ARITHMETIC_LIMIT) or not are_factors(a, b, False, False):
            return None
        if cnp.PyArray_TYPE(<cnp.ndarray>x) != cnp.PyArray_TYPE(<cnp.ndarray>a):
            return None
        dims[0] = cnp.PyArray_DIM(<cnp.ndarray>a, 0)
        dims[1] = cnp.PyArray_DIM(<cnp.ndarray>b, 1)
        out = cnp.PyArray_EMPTY(2, dims, cnp.PyArray_TYPE(<cnp.ndarray>a), 0)
        if is_row_of(<cnp.ndarray>x, out):
            row = cnp.PyArray_NBYTES(<cnp.ndarray>x)
            for i in range(dims[0]):
                memcpy(cnp.PyArray_BYTES(out) + i * row, cnp.PyArray_DATA(<cnp.ndarray>x), row)
        elif same_dims(<cnp.ndarray>x, out):
            memcpy(cnp.PyArray_DATA(out), cnp.PyArray_DATA(<cnp.ndarray>x), cnp.PyArray_NBYTES(out))
        else:
            return None
        if multiply_into(<cnp.ndarray>a, <cnp.ndarray>b, False, False, out, True, self.blas):
            return out
        product = cnp.PyArray_MatrixProduct(a, b)
        return product if self.binary_into(ADD, product, x) else None

    cpdef object differential(self, int code, object t, object value):
        """The differential of tanh, sigmoid or relu in one pass, from their result `value`."""
        cdef cnp.ndarray out
        if (
            not is_small(t, ARITHMETIC_LIMIT)
            or not is_small(value, ARITHMETIC_LIMIT)
            or cnp.PyArray_TYPE(<cnp.ndarray>t) != cnp.PyArray_TYPE(<cnp.ndarray>value)
            or not same_dims(<cnp.ndarray>t, <cnp.ndarray>value)
        ):
            return None
        out = empty_like(<cnp.ndarray>t)
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

    cpdef list cut(self, object array, int dim, list sizes):
        """Views of consecutive parts along a dimension, the last as long as there is something left.

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

    cpdef object join(self, list arrays, int dim):
        """Contiguous arrays of one dtype and fitting shapes, joined along a dimension; else None."""
        cdef cnp.ndarray first, a, out
        cdef cnp.npy_intp dims[32]
        cdef int i, ndim
        cdef Py_ssize_t j, rows = 1, row, part
        cdef char* target
        cdef char* source
        if not arrays or not cnp.PyArray_CheckExact(arrays[0]):
            return None
        first = <cnp.ndarray>arrays[0]
        ndim = cnp.PyArray_NDIM(first)
        if ndim == 0 or ndim > 32 or cnp.PyArray_TYPE(first) > cnp.NPY_CDOUBLE:
            return None
        for i in range(ndim):
            dims[i] = cnp.PyArray_DIM(first, i)
        dims[dim] = 0
        for value in arrays:
            if not cnp.PyArray_CheckExact(value):
                return None
            a = <cnp.ndarray>value
            if (
                cnp.PyArray_NDIM(a) != ndim
                or cnp.PyArray_TYPE(a) != cnp.PyArray_TYPE(first)
                or not cnp.PyArray_ISCARRAY_RO(a)
            ):
                return None
            for i in range(ndim):
                if i != dim and cnp.PyArray_DIM(a, i) != dims[i]:
                    return None
            dims[dim] += cnp.PyArray_DIM(a, dim)
        out = cnp.PyArray_EMPTY(ndim, dims, cnp.PyArray_TYPE(first), 0)
        for i in range(dim):
            rows *= dims[i]
        if rows == 0:
            return out
        row = cnp.PyArray_NBYTES(out) // rows
        target = cnp.PyArray_BYTES(out)
        for value in arrays:
            a = <cnp.ndarray>value
            source = cnp.PyArray_BYTES(a)
            part = cnp.PyArray_NBYTES(a) // rows
            for j in range(rows):
                memcpy(target + j * row, source + j * part, part)
            target += part
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
                <float*>cnp.PyArray_DATA(<cnp.ndarray>a), <float*>cnp.PyArray_DATA(out), rows, columns)
        else:
            wengert_double_sum_rows(
                <double*>cnp.PyArray_DATA(<cnp.ndarray>a), <double*>cnp.PyArray_DATA(out), rows, columns)
        return out

    cpdef bint logistic_tail(self, object e):
        """`e = 1 / (1 + e)` in place; False when not a contiguous float array."""
        cdef cnp.ndarray a
        if not is_small(e, 1 << 40) or not cnp.PyArray_ISWRITEABLE(<cnp.ndarray>e):
            return False
        a = <cnp.ndarray>e
        if cnp.PyArray_TYPE(a) == cnp.NPY_FLOAT:
            wengert_float_logistic_tail(<float*>cnp.PyArray_DATA(a), cnp.PyArray_SIZE(a))
        else:
            wengert_double_logistic_tail(<double*>cnp.PyArray_DATA(a), cnp.PyArray_SIZE(a))
        return True

    cpdef object sum_all(self, object a):
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

    cpdef object method(self, object function, object instance):
        """The method that `function` is on an instance."""
        return PyMethod_New(function, instance)

    cpdef name_function(self, object operator, str name):
        """Uncompiled operators are given the names of a function here."""

    cpdef watch(self, int change):
        """Count the modes that are active, in all threads."""
        self.watching += change
        self.overriding += change

    cpdef watch_classes(self):
        """Note that there are tensors whose class overrides functions."""
        if not self.overriding_classes:
            self.overriding_classes = True
            self.overriding += 1

    cpdef attach(self, type cls, str name, object value):
        """Set a class attribute; unlike setattr it reaches compiled classes too."""
        wengert_type_dict(cls)[name] = value
        PyType_Modified(cls)

    cpdef hide_init(self, type cls):
        """Take `__init__` from a class, of which subclasses made from now on see nothing.

        Instances of the compiled class itself are still initialised by it: the slot remains. So
        does that of `__getattr__`, which would slow down every attribute of a subclass.
        """
        for name in ("__init__", "__getattr__"):
            wengert_type_dict(cls).pop(name, None)  # it is gone already after a reload
        PyType_Modified(cls)

    cpdef set_attribute(self, object target, str name, object value):
        """What `object.__setattr__` does, which compiled classes may not be given."""
        PyObject_GenericSetAttr(target, name, value)


cpdef object make(type cls):
    """An instance without a call of __init__."""
    return cls.__new__(cls)


cdef Native shared = Native()
native = shared
