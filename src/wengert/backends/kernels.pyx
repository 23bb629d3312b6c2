# cython: boundscheck=False, wraparound=False
"""Kernels in C by the keys of `vector_loops`: an operator's name, or that and an argument's.

The one under a name computes the operator, the one under a name and an argument what the rule of
that argument does, from the gradient and what the rule reads; one under several arguments, as
"name.input+weight", what all their rules do, from what the first of them reads. Each answers None
for what it does not suit, errors among it, and the declared kernel or rule is called.

`kernels.py` beside this file is the interface without C.
"""
cimport cython
cimport numpy as cnp

from importlib import import_module

from .vector_loops import vector_loop

cnp.import_array()

#: The operators that modules have kernels of, which are imported when one of them is declared.
KERNELS = {
    "copy_kernels": "_contiguous clone flip roll tril triu",
    "division_kernels": "fmod remainder",
    "gather_kernels": "_gather_backward gather scatter_add",
    "index_kernels": """
        _index_backward embedding index index_add index_select masked_fill masked_select
    """,
    "join_kernels": "_cat constant_pad_nd repeat split split_with_sizes stack unbind",
    "network_kernels": "_nll_loss _nll_loss_backward _normalize_channels native_layer_norm",
    "order_kernels": "sort topk",
    "product_kernels": "_affine _bmm_left _bmm_right _mm_left _mm_right addmm bmm dot mm mv",
    "reduction_kernels": """
        _sum_to all amax amin any argmax argmin cumsum kthvalue linalg_vector_norm log_softmax logsumexp max
        mean median min mode prod softmax sort std std_mean sum topk var var_mean
    """,
    "scan_kernels": "cumprod",
}
cdef dict _MODULES = {}
for _module, _names in KERNELS.items():
    for _name in _names.split():
        _MODULES.setdefault(_name, []).append("wengert.backends." + _module)


@cython.final
cdef class Kernel(NativeLoop):
    """A function of all values; see `known`."""

    cpdef object run(self, tuple values):
        return self.function(values)


cdef dict _KERNELS = {}


cdef int known(str key, kernel_t function) except -1:
    """Make a kernel known by its key."""
    cdef Kernel kernel = Kernel.__new__(Kernel)
    kernel.function = function
    _KERNELS[key] = kernel
    return 0


def native_loop(str key):
    """What computes the operator or rule of this key on plain arrays; None if nothing does."""
    for module in _MODULES.get(key.partition(".")[0], ()):
        import_module(module)
    found = _KERNELS.get(key)
    return vector_loop(key) if found is None else found


def kernel_keys():
    """The keys of all kernels of the modules that are imported."""
    return set(_KERNELS)


cdef bint is_plain(object value) noexcept:
    """Whether a value is a contiguous array of float32 or float64 with some elements."""
    cdef int kind
    if not cnp.PyArray_CheckExact(value):
        return False
    kind = cnp.PyArray_TYPE(<cnp.ndarray>value)
    return (
        (kind == cnp.NPY_FLOAT or kind == cnp.NPY_DOUBLE)
        and cnp.PyArray_SIZE(<cnp.ndarray>value) > 0
        and cnp.PyArray_ISCARRAY_RO(<cnp.ndarray>value)
    )


cdef bint span(object dim, int ndim, int* first, int* last) noexcept:
    """The first and the last of neighbouring dimensions; False if they are not, or are wrong.

    None and an empty tuple stand for all of them.
    """
    cdef int found[32]
    cdef int i, j, d, count
    if ndim == 0 or ndim > 32:
        return False
    first[0], last[0] = 0, ndim - 1
    if dim is None:
        return True
    if type(dim) is tuple:
        count = <int>len(<tuple>dim)
        if count == 0:
            return True
        if count > ndim:
            return False
    elif type(dim) is int:
        count = 1
    else:
        return False
    for i in range(count):
        value = (<tuple>dim)[i] if type(dim) is tuple else dim
        if type(value) is not int or not -ndim <= value < ndim:
            return False
        d = value
        if d < 0:
            d += ndim
        j = i
        while j > 0 and found[j - 1] > d:
            found[j] = found[j - 1]
            j -= 1
        found[j] = d
    for i in range(1, count):
        if found[i] != found[i - 1] + 1:
            return False
    first[0], last[0] = found[0], found[count - 1]
    return True
