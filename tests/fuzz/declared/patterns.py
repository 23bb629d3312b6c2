"""Operators that share a property which explains differences."""

from __future__ import annotations

import re

#: Functions with a place where a factor of their derivative is infinite or not a number.
HAS_EDGES = re.compile(
    r"\.(abs|sgn|l1_loss|log\w*|rsqrt|sqrt|r?pow|float_power|norm|\w*_norm|normalize|\w*distance|cdist|dist|std|var|"
    r"std_mean|var_mean|atan2|asin|acos|acosh|atanh|arc\w+|erfinv|xlogy|polar|angle|hypot|prod|"
    r"cumprod|reciprocal|div|\w*eigh?|\w*svd|linalg\.\w+|\w*softmax|\w*entropy\w*|kl_div|\w*nll_loss|logit|cosine_similarity)_?"
    r"\(|\*\*|/|sampled\("
)


#: Operators that save an operand in PyTorch, for its shape alone, or a result that no rule reads.
SAVES_MORE = re.compile(
    r"\.(gather|take|take_along_dim|put|complex|pad|median|nanmedian|masked_select|cummax|cummin|"
    r"logcumsumexp|index_add|index_copy|combinations|cross|cdist|pdist|dist|grid_sample|"
    r"log_ndtr|ldexp|pow|float_power|\w+_norm|solve_triangular|triangular_solve|jvp|jacfwd|hessian|linearize|"
    r"i?r?h?fft\w?)_?\(|linearized\(|\*\*|\bconv\w*\(|\w*pool\dd\(|\bdet\(|cholesky_inverse|"
    r"rounding_mode|cholesky_solve|linalg\.(lstsq|cond)|lu_solve|linalg\.lu'|orgqr|ormqr|householder_product"
)


#: Operators that read an operand where PyTorch reads a result, or the other way.
READS_OTHERS = re.compile(
    r"(\.|sampled\('(\w+\.)*)(prod|cumprod|logcumsumexp|polar|linear|einsum|scatter_reduce|"
    r"logsigmoid|cosine_similarity|solve|solve_ex|det|slogdet|logdet|lstsq|cond|cross|vander|ndtr|"
    r"log_ndtr|cdist|pdist|dist|renorm|index_reduce|lu|lu_solve|householder_product|orgqr|ormqr|"
    r"norm_except_dim|native_\w+_norm|batch_norm|group_norm|bilinear)_?\b"
)


#: Functions of matrices and transforms, whose results LAPACK or a plan lays out in PyTorch.
MATRICES = re.compile(
    r"linalg\.|fft\.|sampled\(|\.(fill|cholesky\w*|triangular_solve|orgqr|ormqr|geqrf|lu_\w+|inverse|"
    r"matrix_exp|matrix_power|pinverse|svd|qr|slogdet|logdet|det|stft|istft|nuclear_norm)\("
)


#: What copies the memory of an operand as it is, gaps included, or hands out parts of it.
COPIES = re.compile(r"\.(\w+_scatter|unsafe_\w+|\w+_copy)\(")
#: What returns a view in PyTorch that is conjugated when it is read.
CONJUGATES = re.compile(r"conj|adjoint|\.m?H\b|fft\.")
#: What makes a tensor with gaps or overlaps in memory.
GAPS = re.compile(r"as_strided|expand|unfold|broadcast|::2")
