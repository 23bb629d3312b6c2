"""Made by `make generate` from the declarations: do not edit.

Which module declares which operators, and what is made of their names.
"""

from __future__ import annotations

#: What each module that is imported on first use has; a last underscore: in place.
DEFERRED: dict[str, tuple[str, ...]] = {
    "activations": ("hardshrink",),
    "affine": (
        "addbmm", "addbmm_", "addmm", "addmm_", "addmv", "addmv_", "addr", "addr_", "baddbmm",
        "baddbmm_", "linear",
    ),
    "arranging": (
        "flip", "fliplr", "flipud", "repeat", "repeat_interleave", "roll", "rot90", "tile",
    ),
    "bags": (),
    "columns": (),
    "comparison": (
        "eq", "eq_", "ge", "ge_", "greater", "greater_", "greater_equal", "greater_equal_", "gt",
        "gt_", "le", "le_", "less", "less_", "less_equal", "less_equal_", "lt", "lt_", "ne", "ne_",
        "not_equal", "not_equal_",
    ),
    "complex": (
        "angle", "complex", "conj", "conj_physical", "conj_physical_", "imag", "is_conj", "is_neg",
        "polar", "real", "resolve_conj", "resolve_neg", "view_as_complex", "view_as_real",
    ),
    "conditions": (),
    "contraction": ("chain_matmul", "einsum", "inner", "tensordot"),
    "convolution": ("convolution",),
    "counting": (
        "bincount", "combinations", "gradient", "histc", "isin", "trapz", "unravel_index",
    ),
    "diagonals": (
        "diag", "diag_embed", "diagflat", "diagonal", "diagonal_copy", "tril", "tril_", "triu",
        "triu_",
    ),
    "distances": (
        "cdist", "corrcoef", "cov", "dist", "pdist", "renorm", "renorm_",
    ),
    "extrema": ("amax", "amin", "aminmax", "argmax", "argmin", "max", "min"),
    "floats": (
        "clamp_max", "clamp_max_", "clamp_min", "clamp_min_", "copysign", "copysign_", "deg2rad",
        "deg2rad_", "float_power", "float_power_", "fmax", "fmin", "frac", "frac_", "frexp", "gcd",
        "gcd_", "heaviside", "heaviside_", "isneginf", "isposinf", "isreal", "lcm", "lcm_", "ldexp",
        "ldexp_", "logaddexp", "logaddexp2", "nan_to_num", "nan_to_num_", "nextafter", "nextafter_",
        "rad2deg", "rad2deg_", "signbit",
    ),
    "fourier": (),
    "gamma_samples": (),
    "getitem": ("index", "index_put", "index_put_"),
    "histograms": ("histogram", "histogramdd", "nonzero_static"),
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
    "linalg_determinants": (),
    "linalg_functions": (),
    "linalg_ldl": (),
    "linalg_least_squares": (),
    "linalg_low_rank": ("lobpcg", "pca_lowrank", "svd_lowrank"),
    "linalg_lu": ("lu", "lu_solve", "lu_unpack"),
    "linalg_names": (
        "cholesky", "cholesky_inverse", "cholesky_solve", "cross", "det", "inverse", "logdet",
        "matrix_exp", "matrix_power", "pinverse", "qr", "slogdet", "svd", "triangular_solve",
        "vander",
    ),
    "linalg_norms": (),
    "linalg_reflections": ("geqrf", "orgqr", "ormqr"),
    "linalg_solving": (),
    "linalg_spectral": (),
    "logic": (
        "bitwise_and", "bitwise_and_", "bitwise_left_shift", "bitwise_left_shift_", "bitwise_not",
        "bitwise_not_", "bitwise_or", "bitwise_or_", "bitwise_right_shift", "bitwise_right_shift_",
        "bitwise_xor", "bitwise_xor_", "isfinite", "isinf", "isnan", "logical_and", "logical_and_",
        "logical_not", "logical_not_", "logical_or", "logical_or_", "logical_xor", "logical_xor_",
    ),
    "losses": (),
    "matmul": (
        "bmm", "dot", "ger", "kron", "matmul", "mm", "mv", "outer", "trace", "vdot",
    ),
    "nn": ("constant_pad_nd", "native_layer_norm"),
    "normalisation": (),
    "norms": ("norm",),
    "older_names": (
        "detach", "fill", "fill_", "frobenius_norm", "get_device", "is_same_size",
        "norm_except_dim", "nuclear_norm",
    ),
    "pooling": (),
    "recurrent": (),
    "reduce": (
        "all", "allclose", "any", "count_nonzero", "equal", "isclose", "mean", "nanmean", "nansum",
        "prod", "std", "std_mean", "sum", "sum_to_size", "var", "var_mean",
    ),
    "resampling": (),
    "scan": (
        "cummax", "cummin", "cumprod", "cumprod_", "cumsum", "cumsum_", "cumulative_trapezoid",
        "diff", "logcumsumexp", "trapezoid",
    ),
    "scatter": (
        "gather", "scatter", "scatter_", "scatter_add", "scatter_add_", "scatter_reduce",
        "scatter_reduce_",
    ),
    "selection": (
        "abs", "abs_", "absolute", "absolute_", "ceil", "ceil_", "clamp", "clamp_", "clip", "clip_",
        "fix", "fix_", "floor", "floor_", "maximum", "minimum", "round", "round_", "sgn", "sgn_",
        "sign", "sign_", "trunc", "trunc_", "where",
    ),
    "short_fourier": ("istft", "stft"),
    "softmax": ("log_softmax", "logsumexp", "softmax", "softmin"),
    "sorting": (
        "argsort", "bucketize", "kthvalue", "median", "mode", "msort", "nanmedian", "nanquantile",
        "quantile", "searchsorted", "sort", "topk", "unique", "unique_consecutive",
    ),
    "special_bessel": ("i0", "i0_"),
    "special_errors": (
        "erfc", "erfc_", "erfinv", "erfinv_", "logit", "logit_", "sinc", "sinc_", "xlogy", "xlogy_",
    ),
    "special_gamma": (
        "digamma", "digamma_", "igamma", "igamma_", "igammac", "igammac_", "lgamma", "lgamma_",
        "mvlgamma", "mvlgamma_", "polygamma", "polygamma_",
    ),
    "special_polynomials": (),
    "strides": ("as_strided", "unfold"),
    "transcendental": (
        "acos", "acos_", "acosh", "acosh_", "arccos", "arccos_", "arccosh", "arccosh_", "arcsin",
        "arcsin_", "arcsinh", "arcsinh_", "arctan", "arctan2", "arctan2_", "arctan_", "arctanh",
        "arctanh_", "asin", "asin_", "asinh", "asinh_", "atan", "atan2", "atan2_", "atan_", "atanh",
        "atanh_", "cos", "cos_", "cosh", "cosh_", "erf", "erf_", "exp", "exp2", "exp2_", "exp_",
        "expm1", "expm1_", "hypot", "hypot_", "log", "log10", "log10_", "log1p", "log1p_", "log2",
        "log2_", "log_", "relu", "relu_", "rsqrt", "rsqrt_", "sigmoid", "sigmoid_", "sin", "sin_",
        "sinh", "sinh_", "sqrt", "sqrt_", "tan", "tan_", "tanh", "tanh_",
    ),
    "view_copies": (
        "alias_copy", "as_strided_copy", "as_strided_scatter", "detach_copy", "expand_copy",
        "narrow_copy", "permute_copy", "select_copy", "slice_copy", "split_copy",
        "split_with_sizes_copy", "squeeze_copy", "t_copy", "transpose_copy", "unbind_copy",
        "unfold_copy", "unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes", "unsqueeze_copy",
        "view_as_complex_copy", "view_as_real_copy", "view_copy",
    ),
    "views": (
        "adjoint", "broadcast_to", "expand", "expand_as", "flatten", "moveaxis", "movedim",
        "narrow", "permute", "ravel", "reshape", "reshape_as", "select", "squeeze", "swapaxes",
        "swapdims", "t", "transpose", "unflatten", "unsqueeze", "view", "view_as",
    ),
    "write_parts": (
        "diagonal_scatter", "index_reduce", "index_reduce_", "select_scatter", "slice_scatter",
    ),
    "write_view": (),
}  # fmt: skip
#: Other names of functions and methods.
ALIASES = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh",
    "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh", "clip": "clamp", "divide": "div",
    "fix": "trunc", "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le",
    "multiply": "mul", "negative": "neg", "not_equal": "ne", "subtract": "sub",
    "true_divide": "div",
}  # fmt: skip
#: What is no method of Tensor, and what is no function.
FUNCTIONS_ONLY = frozenset((
    "alias_copy", "as_strided_copy", "atleast_1d", "atleast_2d", "atleast_3d", "block_diag",
    "broadcast_tensors", "bucketize", "cartesian_prod", "cat", "cdist", "chain_matmul",
    "column_stack", "combinations", "complex", "concat", "concatenate", "constant_pad_nd",
    "convolution", "cumulative_trapezoid", "detach", "detach_copy", "diagonal_copy", "dstack",
    "einsum", "embedding", "expand_copy", "fill", "frobenius_norm", "get_device", "gradient",
    "histogramdd", "hstack", "imag", "is_same_size", "isin", "linear", "lobpcg", "lu_unpack",
    "meshgrid", "native_layer_norm", "norm_except_dim", "nuclear_norm", "one_hot", "pca_lowrank",
    "pdist", "permute_copy", "polar", "real", "row_stack", "rsub", "searchsorted", "select_copy",
    "slice_copy", "softmin", "split_copy", "split_with_sizes_copy", "squeeze_copy", "stack",
    "std_mean", "svd_lowrank", "t_copy", "tensordot", "transpose_copy", "trapezoid", "trapz",
    "unbind_copy", "unfold_copy", "unravel_index", "unsqueeze_copy", "vander", "var_mean",
    "view_as_complex", "view_as_complex_copy", "view_as_real", "view_as_real_copy", "view_copy",
    "vstack", "where",
))  # fmt: skip
METHODS_ONLY = frozenset((
    "expand", "expand_as", "float_power_", "index", "index_reduce_", "linear", "one_hot",
    "polygamma_", "renorm_", "repeat", "reshape_as", "softmin", "sum_to_size", "unfold", "view",
    "view_as",
))  # fmt: skip
#: Ours for the names of NumPy's ufuncs, where they differ.
NUMPY_NAMES = {
    "conjugate": "conj", "equal": "eq", "fabs": "abs", "invert": "bitwise_not",
    "left_shift": "bitwise_left_shift", "power": "pow", "right_shift": "bitwise_right_shift",
    "rint": "round",
}  # fmt: skip
