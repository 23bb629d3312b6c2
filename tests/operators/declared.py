"""Graphs that are other than PyTorch's on purpose, each with its reason.

The comparison of all operators (`test_nodes.py`) and random programs (`fuzz`) both read it.
"""

#: Calls whose graph has other nodes than PyTorch's.
NODES = {
    "floor_divide": "has a derivative, which is zero; PyTorch has none",
    "einsum": "contracts pairs of operands without permuting and reshaping what needs it not",
    "Tensor.sum_to_size": "sums dimensions away in one step, PyTorch in two",
    "trapezoid": "weights and sums, where PyTorch sums and subtracts the ends",
    "cumulative_trapezoid": "the same",
    "trapz": "the same",
    "cdist": "made of norms where the norm is not the Euclidean one",
    "pdist": "made of indexing and norms",
    "dist": "made of a difference and linalg.vector_norm",
    "renorm": "made of linalg.vector_norm and a product",
    "index_reduce": "scatter_reduce with indices that are expanded",
    "combinations": "selects by indices, where PyTorch selects by a mask",
    "gradient": "weights and sums of parts in another order",
    "special.ndtr": "one operator, exact for small probabilities, where PyTorch adds one to erf",
    "nn.functional.linear": "multiplies by the transpose without a node for the transpose",
    "nn.functional.nll_loss": "takes inputs of any number of dimensions without reshaping them",
    "nn.functional.cross_entropy": "the same, and numbers that PyTorch multiplies by inside are "
    "operands here",
    "nn.functional.kl_div": "made of products and logarithms, where PyTorch has xlogy",
    "nn.functional.pairwise_distance": "made of linalg.vector_norm, not of the older norm",
    "nn.functional.scaled_dot_product_attention": "one softmax serves masked rows too",
    "nn.functional.pad": "index_select, where PyTorch has a node for every mode and number of "
    "dimensions",
    "linalg.solve": "vectors on the right side are matrices of one column",
    "linalg.solve_ex": "the same",
    "linalg.tensorsolve": "the same",
    "linalg.lstsq": "the same",
    "triangular_solve": "made of linalg.solve_triangular, as linalg's other functions are",
    "cholesky_solve": "the same",
    "cholesky_inverse": "the same",
    "linalg.cond": "chooses infinity for singular matrices, where PyTorch replaces NaN",
    "linalg.cross": "made of products, where PyTorch has a node for it",
    "cross": "made of products, where PyTorch has a node for it",
    "fill": "the number is an operand, so the node is that of a tensor",
    "frobenius_norm": "made of linalg.vector_norm",
    "norm_except_dim": "one norm over all other dimensions, where PyTorch reshapes",
    **dict.fromkeys(
        ["linalg.householder_product", "orgqr", "ormqr"],
        "made of products with the vectors of reflections, where PyTorch has a node",
    ),
    "linalg.lu": "factors are packed in one matrix first, and unpacked",
    "linalg.lu_solve": "made of linalg.solve_triangular",
    **dict.fromkeys(["histogram", "histogramdd"], "one operator for all forms"),
    "stft": "continues the signal by index_select, where PyTorch has a node for it",
    **dict.fromkeys(
        [
            "alias_copy", "as_strided_copy", "expand_copy", "narrow_copy", "permute_copy",
            "select_copy", "slice_copy", "split_copy", "split_with_sizes_copy", "squeeze_copy",
            "t_copy", "transpose_copy", "unbind_copy", "unfold_copy", "unsafe_chunk",
            "unsafe_split", "unsafe_split_with_sizes", "unsqueeze_copy", "view_as_real_copy",
            "view_copy",
        ],
        "a view and a copy of it, where PyTorch has one node",
    ),
    "nn.functional.batch_norm": "made of products and sums where statistics are given",
    "nn.functional.group_norm": "layer normalisation of groups, then products and sums",
    **dict.fromkeys(
        [f"nn.functional.adaptive_max_pool{n}d" for n in (1, 2, 3)],
        "selects the elements of all parts, and takes the largest along a dimension",
    ),
    **dict.fromkeys(
        [f"nn.functional.{name}" for name in ("pixel_shuffle", "pixel_unshuffle",
                                              "channel_shuffle")],
        "made of views and a copy, where PyTorch has a node for it",
    ),
    "nn.functional.grid_sample": "made of gathered elements and their weights",
    "nn.functional.affine_grid": "a product of matrices",
    "nn.functional.embedding_bag": "made of embedding and index_add",
    "nn.functional.bilinear": "einsum, without reshaping what needs it not",
    "vander": "joined from two parts, where PyTorch writes into one tensor",
}  # fmt: skip
#: Results that are views in one of the libraries alone.
VIEWS = {
    **dict.fromkeys(["conj", "adjoint", "Tensor.H", "Tensor.mH"], "a conjugate is a copy"),
    **{name: NODES[name] for name in ("einsum", "Tensor.sum_to_size")},
    **dict.fromkeys(
        ["fft.ifft", "fft.ihfft", "fft.ihfft2", "fft.ihfftn"], "a conjugate is a copy"
    ),
    "norm_except_dim": "PyTorch reshapes what it has reduced",
    "nn.functional.linear": "rows of a batch are multiplied as one matrix in every layout",
    "nn.functional.max_pool1d": "a row of pictures, in PyTorch only where it is differentiated",
}
#: Expressions whose graph is another than PyTorch's; 2 stands for any number.
EXPRESSIONS = {
    "2 / x": "a division, where PyTorch multiplies by the reciprocal",
    "2 % x": "has a derivative; PyTorch has none",
}
