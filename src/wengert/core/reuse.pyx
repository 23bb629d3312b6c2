# cython: boundscheck=False, wraparound=False
"""Records of tensors and nodes, and small arrays, that were freed and are kept for the next ones.

Making a small array and freeing it takes longer than the arithmetic on it. `reuse.py` beside this
file is the interface without C.
"""
cimport numpy as cnp
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_DECREF, Py_INCREF

cnp.import_array()

cdef extern from "reuse.h":
    ctypedef void (*destructor)(PyObject* record) noexcept
    destructor wengert_tensor_dealloc_below
    void wengert_tensor_install(PyTypeObject* cls, destructor dealloc)
    void wengert_node_install(PyTypeObject* cls, destructor dealloc)
    void wengert_node_dealloc(PyObject* node) noexcept
    Py_ssize_t wengert_place_of(PyObject* record, PyObject* value)

cdef extern from "numpy/arrayobject.h":
    ctypedef struct PyArrayObject_fields:
        PyObject* weakreflist
    # It takes over the reference to the descriptor that PyArray_DescrFromType gives.
    cnp.ndarray PyArray_NewFromDescr "PyArray_NewFromDescr" (
        type subtype, PyObject* descr, int ndim, const cnp.npy_intp* dims,
        const cnp.npy_intp* strides, void* data, int flags, PyObject* obj)
    PyObject* wengert_descr_from_type "PyArray_DescrFromType" (int kind)

cdef enum:
    SHELVES = 64
    PLACES = 256
    MOST_DIMENSIONS = 4
    LARGEST = 1 << 11  # bytes of one array
    USUAL = cnp.NPY_ARRAY_CARRAY | cnp.NPY_ARRAY_OWNDATA

cdef Py_ssize_t bound = 1 << 14  # bytes of all of them: peaks of memory should not show them
cdef Py_ssize_t total = 0
cdef Py_ssize_t place = 0  # of the array in the record of a tensor
cdef int counts[SHELVES]
cdef PyObject* shelves[SHELVES][PLACES]
cdef cnp.dtype single = cnp.PyArray_DescrFromType(cnp.NPY_FLOAT)
cdef cnp.dtype double_ = cnp.PyArray_DescrFromType(cnp.NPY_DOUBLE)


cdef inline int shelf_of(cnp.ndarray a) noexcept:
    """Where arrays of a shape and type are kept, possibly beside others."""
    cdef int i, ndim = cnp.PyArray_NDIM(a)
    cdef size_t mixed = <size_t>(4 * ndim + cnp.PyArray_TYPE(a))
    for i in range(ndim):
        mixed = mixed * 31 + <size_t>cnp.PyArray_DIM(a, i)
    return <int>((mixed ^ (mixed >> 6)) & (SHELVES - 1))


cdef inline Py_ssize_t bytes_of(cnp.ndarray a) noexcept:
    """The size of its elements."""
    cdef int i
    cdef Py_ssize_t size = cnp.PyArray_ITEMSIZE(a)
    for i in range(cnp.PyArray_NDIM(a)):
        size *= cnp.PyArray_DIM(a, i)
    return size


cdef void keep_array(PyObject* array) noexcept:
    """Take an array from a tensor that is being freed, if nobody else holds it."""
    global total
    cdef cnp.ndarray a
    cdef int shelf
    if array.ob_refcnt != 1 or array.ob_type != <PyTypeObject*>cnp.ndarray:
        return
    a = <cnp.ndarray>array
    if (
        (cnp.PyArray_FLAGS(a) & USUAL) != USUAL
        or cnp.PyArray_NDIM(a) > MOST_DIMENSIONS
        or not (<PyObject*>cnp.PyArray_DESCR(a) == <PyObject*>single
                or <PyObject*>cnp.PyArray_DESCR(a) == <PyObject*>double_)
        or bytes_of(a) > LARGEST
        or cnp.PyArray_BASE(a) != NULL
        or (<PyArrayObject_fields*>a).weakreflist != NULL
        or total + bytes_of(a) > bound
    ):
        return
    shelf = shelf_of(a)
    if counts[shelf] == PLACES:
        return
    Py_INCREF(a)
    shelves[shelf][counts[shelf]] = <PyObject*>a
    counts[shelf] += 1
    total += bytes_of(a)


cdef object new_like(object like):
    """A new array of the shape and type of a float32 or float64 one, in row-major order."""
    global total
    cdef cnp.ndarray a = <cnp.ndarray>like, kept
    cdef int i, shelf = shelf_of(a)
    if counts[shelf] and bytes_of(a) <= LARGEST:
        counts[shelf] -= 1
        kept = <cnp.ndarray>shelves[shelf][counts[shelf]]
        Py_DECREF(kept)  # that of the shelf
        total -= bytes_of(kept)
        if cnp.PyArray_NDIM(a) == cnp.PyArray_NDIM(kept) and (
            cnp.PyArray_TYPE(a) == cnp.PyArray_TYPE(kept)
        ):
            for i in range(cnp.PyArray_NDIM(a)):
                if cnp.PyArray_DIM(a, i) != cnp.PyArray_DIM(kept, i):
                    break
            else:
                return kept
        # Another shape has the place: what is no longer asked for leaves it in this way.
    return PyArray_NewFromDescr(
        cnp.ndarray, wengert_descr_from_type(cnp.PyArray_TYPE(a)), cnp.PyArray_NDIM(a),
        cnp.PyArray_DIMS(a), NULL, NULL, 0, NULL)


cdef void free_tensor(PyObject* tensor) noexcept:
    """What the class of tensors does when the last reference to one is gone."""
    keep_array((<PyObject**>(<char*>tensor + place))[0])
    wengert_tensor_dealloc_below(tensor)


def keep_tensors(example, array):
    """Keep records of the class of a tensor, whose array is given too, and their arrays."""
    global place
    place = wengert_place_of(<PyObject*>example, <PyObject*>array)
    if place:
        cls = type(example)
        wengert_tensor_install(<PyTypeObject*>cls, free_tensor)


def keep_nodes(cls):
    """Keep records of a class of nodes."""
    wengert_node_install(<PyTypeObject*>cls, wengert_node_dealloc)


def kept_arrays():
    """How many arrays are kept."""
    cdef int shelf, count = 0
    for shelf in range(SHELVES):
        count += counts[shelf]
    return count


def release_arrays():
    """Free all arrays that are kept."""
    global total
    cdef int shelf
    for shelf in range(SHELVES):
        while counts[shelf]:
            counts[shelf] -= 1
            Py_DECREF(<object>shelves[shelf][counts[shelf]])
    total = 0
