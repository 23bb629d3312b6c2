"""The operators that are declared when they are first asked for, by module.

Importing the package declares what the core stands on: `arithmetic`, `transcendental`,
`selection`, `comparison` and `copying`, which list their public names in `__all__`. The modules
below are imported by the first use of a name in their list; a name with an underscore at its end is
an in-place variant. So the number of operators does not slow down the import.
"""

from __future__ import annotations

from ..core.loading import load

DEFERRED: dict[str, tuple[str, ...]] = {
    "activations": ("hardshrink",),
    "affine": (
        "addbmm", "addbmm_", "addmm", "addmm_", "addmv", "addmv_", "addr", "addr_", "baddbmm",
        "baddbmm_", "linear",
    ),
    "arranging": (
        "flip", "fliplr", "flipud", "repeat", "repeat_interleave", "roll", "rot90", "tile",
    ),
    "complex": (
        "angle", "complex", "conj", "conj_physical", "conj_physical_", "imag", "is_conj", "is_neg",
        "polar", "real", "resolve_conj", "resolve_neg", "view_as_complex", "view_as_real",
    ),
    "contraction": ("chain_matmul", "einsum", "inner", "tensordot"),
    "diagonals": (
        "diag", "diag_embed", "diagflat", "diagonal", "diagonal_copy", "tril", "tril_", "triu",
        "triu_",
    ),
    "extrema": ("amax", "amin", "aminmax", "argmax", "argmin", "max", "min"),
    "getitem": ("index", "index_put", "index_put_"),
    "indexing": (
        "argwhere", "embedding", "index_add", "index_add_", "index_copy", "index_copy_",
        "index_fill", "index_fill_", "index_select", "masked_fill", "masked_fill_",
        "masked_scatter", "masked_scatter_", "masked_select", "nonzero", "one_hot", "put", "put_",
        "take", "take_along_dim",
    ),
    "inplace_views": (
        "as_strided_", "squeeze_", "swapaxes_", "swapdims_", "t_", "transpose_", "unsqueeze_",
    ),
    "joining": (
        "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_tensors",
        "cartesian_prod", "cat", "chunk", "column_stack", "concat", "concatenate", "dsplit",
        "dstack", "hsplit", "hstack", "meshgrid", "row_stack", "split", "split_with_sizes", "stack",
        "tensor_split", "unbind", "vsplit", "vstack",
    ),
    "losses": (),
    "matmul": ("bmm", "dot", "ger", "kron", "matmul", "mm", "mv", "outer", "trace", "vdot"),
    "nn": ("constant_pad_nd", "native_layer_norm"),
    "norms": ("norm",),
    "reduce": (
        "all", "allclose", "any", "count_nonzero", "equal", "isclose", "mean", "nanmean", "nansum",
        "prod", "std", "std_mean", "sum", "sum_to_size", "var", "var_mean",
    ),
    "scan": (
        "cummax", "cummin", "cumprod", "cumprod_", "cumsum", "cumsum_", "cumulative_trapezoid",
        "diff", "logcumsumexp", "trapezoid",
    ),
    "scatter": (
        "gather", "scatter", "scatter_", "scatter_add", "scatter_add_", "scatter_reduce",
        "scatter_reduce_",
    ),
    "softmax": ("log_softmax", "logsumexp", "softmax", "softmin"),
    "sorting": (
        "argsort", "bucketize", "kthvalue", "median", "mode", "msort", "nanmedian", "nanquantile",
        "quantile", "searchsorted", "sort", "topk", "unique", "unique_consecutive",
    ),
    "strides": ("as_strided", "unfold"),
    "views": (
        "adjoint", "broadcast_to", "expand", "expand_as", "flatten", "moveaxis", "movedim",
        "narrow", "permute", "ravel", "reshape", "reshape_as", "select", "squeeze", "swapaxes",
        "swapdims", "t", "transpose", "unflatten", "unsqueeze", "view", "view_as",
    ),
    "write_view": (),
}  # fmt: skip
MODULE_OF = {name: module for module, names in DEFERRED.items() for name in names}

_complete = False


def declare(name: str) -> None:
    """Import the module that declares `name`, or all if the name is none of the public ones."""
    if name in MODULE_OF:
        load("operators." + MODULE_OF[name])
    else:
        declare_all()


def declare_all() -> None:
    """Import every module of operators."""
    global _complete
    if not _complete:
        for module in DEFERRED:
            load("operators." + module)
        _complete = True
