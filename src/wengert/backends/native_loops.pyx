"""Kernels in C of operators and gradient rules: those written by hand, and the vector loops.

`native_loops.py` beside this file is the interface without C.
"""

from importlib import import_module

from .kernels import kernel_of
from .vector_loops import vector_loop

#: The operators that modules have kernels of, which are imported when one of them is declared.
KERNELS = {
    "copy_kernels": "_contiguous clone constant_pad_nd flip repeat roll stack tril triu",
    "index_kernels": """
        _gather_backward _index_backward embedding gather index index_add index_select masked_fill
        masked_select scatter_add sort topk
    """,
    "network_kernels": "_nll_loss _nll_loss_backward _normalize_channels native_layer_norm",
    "product_kernels": "_bmm_left _bmm_right bmm dot mv",
    "reduction_kernels": """
        all amax amin any argmax argmin cumsum kthvalue linalg_vector_norm log_softmax logsumexp max
        mean median min mode prod softmax sort std std_mean sum topk var var_mean
    """,
}
cdef dict _MODULES = {}
for _module, _names in KERNELS.items():
    for _name in _names.split():
        _MODULES.setdefault(_name, []).append("wengert.backends." + _module)


def native_loop(str key):
    """What computes the operator or rule of this key on plain arrays; None if nothing does."""
    for module in _MODULES.get(key.partition(".")[0], ()):
        import_module(module)
    found = kernel_of(key)
    return vector_loop(key) if found is None else found
