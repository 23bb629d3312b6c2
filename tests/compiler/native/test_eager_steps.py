"""Every operator: whether a graph of it is machine code, or which operator is called and why.

The lists are complete: an operator that is not on them is machine code for the samples it has, and
one that no longer needs to be called has to be taken off.
"""

import pytest

import wengert
from operators.samples import OPERATIONS
from operators.support import build, call, dtype_name, each_sample, map_tensors, results
from wengert.compiler import trace
from wengert.compiler.interpret.program import Program
from wengert.compiler.native.lower import Signature, lower
from wengert.compiler.native.program import NativeProgram, _typed

from .support import assert_alike

#: Reasons, as the beginnings of what `explain` says, and the operators that are called for them.
EAGER = {
    "numpy.linalg has no form": {
        "_geqrf", "_linalg_cholesky", "_linalg_inv", "_linalg_lstsq", "_linalg_solve",
        "_linalg_svd", "linalg_det", "linalg_eig", "linalg_eigh", "linalg_pinv", "linalg_qr",
        "linalg_slogdet", "linalg_solve_triangular",
    },
    "scipy.linalg": {
        "_linalg_ldl_factor", "_linalg_ldl_solve", "_linalg_lu_factor", "linalg_matrix_exp",
    },
    "scipy.fft": {"_fft_r2c"},
    "there is no machine code for complex": {
        "_to_copy", "complex", "polar", "sum", "sum.dim_IntList",
    },
    "a view that copies or changes the type": {"view_as_complex"},
    "a view copies or changes the type": {"_bag_numbers"},
    "numpy.argsort": {
        "argsort", "kthvalue", "median", "median.dim", "mode", "nanmedian", "nanmedian.dim",
        "sort", "topk",
    },
    "numpy.searchsorted": {"_histogramdd", "searchsorted"},
    "numpy.logaddexp.accumulate": {"logcumsumexp"},
    "numpy.frexp": {"_frexp"},
    "numpy.isin": {"_isin"},
    "numpy.argwhere": {"_nonzero_static"},
    "numpy.take": {"_resample"},
    "numpy.unravel_index": {"put"},
    "numpy.rot90": {"rot90"},
    "numpy.trace": {"trace"},
    "numpy.broadcast_arrays": {
        f"special_{shifted}chebyshev_polynomial_{kind}" for shifted in ("", "shifted_")
        for kind in "tuvw"
    } | {
        "special_hermite_polynomial_h", "special_hermite_polynomial_he",
        "special_laguerre_polynomial_l", "special_legendre_polynomial_p",
    },
    "scipy.special": {
        "_polygamma", "digamma", "erfinv", "i0", "igamma", "igammac", "special_airy_ai",
        "special_bessel_j0", "special_bessel_j1", "special_bessel_y0", "special_bessel_y1",
        "special_erfcx", "special_i0e", "special_i1", "special_i1e", "special_log_ndtr",
        "special_modified_bessel_i0", "special_modified_bessel_i1", "special_modified_bessel_k0",
        "special_modified_bessel_k1", "special_ndtri", "special_scaled_modified_bessel_k0",
        "special_scaled_modified_bessel_k1", "special_zeta",
    },
    "TypeError: operand 'SymbolicArray' does not support ufuncs": {"_polygamma"},
    "AttributeError: 'function' object has no attribute 'outer'": {"addr"},
    "AttributeError: 'function' object has no attribute 'at'": {"scatter_reduce"},
    "a decision by the value of an element": {"_lu_unpack", "histc", "masked_scatter"},
    "its own machine code is faster": {"_convolution", "_max_pool"},
    "indices of several kinds": {"histc"},
    "a view by strides": {
        "_as_strided_scatter", "_im2col", "diag_embed", "diagonal_copy", "diagonal_scatter",
    },
}  # fmt: skip
#: What follows something that is called, and is not known before.
FOLLOWS = "an operand is not known before the graph runs"


def as_function(operation, sample):
    """A call as a function of its tensors, and these."""
    tensors = []
    map_tensors(wengert, sample, tensors.append)

    def function(*given):
        supply = iter(given)
        made = call(operation, wengert, map_tensors(wengert, sample, lambda t: next(supply)))
        return [out for out in results(made) if isinstance(out, wengert.Tensor)]

    return function, tensors


def test_the_lists_are_complete():
    found = {}
    for operation in OPERATIONS:
        if operation.needs_data or not operation.real:
            continue
        for sample in operation.draw("real")[:2]:
            function, tensors = as_function(operation, build(wengert, sample))
            arrays = [t.array for t in tensors]
            signatures = [Signature(a.dtype, a.shape, a.strides) for a in arrays]
            graph = _typed(trace(function, *tensors).graph, signatures)
            for kind, reason in lower(graph, signatures).reasons.items():
                if reason != FOLLOWS:
                    known = next((text for text in EAGER if reason.startswith(text)), reason)
                    found.setdefault(known, set()).add(kind.removeprefix("wengert::"))
    assert found == EAGER


# The same in other types and other places in memory -----------------------------------------------

TOLERANCES = {"float32": 2e-5, "float16": 2e-2, "bfloat16": 1.5e-1}


def spread(t):
    """A tensor of the same elements with gaps between them and its dimensions the other way."""
    if t.dim() == 0:
        return t
    shape = [2 * size for size in reversed(t.shape)]
    wide = wengert.zeros(shape, dtype=t.dtype)
    part = wide[tuple([slice(None, None, 2)] * t.dim())].permute(*range(t.dim() - 1, -1, -1))
    part.copy_(t)
    return part


def check(operation, sample, tolerance):
    function, tensors = as_function(operation, sample)
    try:
        its = function(*tensors)
    except (RuntimeError, TypeError, ValueError):
        return  # there is nothing to compare with
    graph = trace(function, *tensors).graph
    # A trace asks for singular values with their vectors, which LAPACK rounds otherwise.
    svd = any("svd" in node.kind for node in graph.nodes())
    assert_alike(Program(graph)(*tensors), its, 1e-13 if svd else 0.0)
    tolerance = max([tolerance, *[TOLERANCES.get(dtype_name(t), 0.0) for t in its]])
    native = NativeProgram(graph)
    assert_alike(native(*tensors), its, tolerance)


def is_function(operation):
    return not operation.needs_data and operation.name != "nn.functional.dropout"


@pytest.mark.full
@each_sample(is_function, kinds=("real",))
def test_elements_with_gaps(operation, sample):
    check(operation, map_tensors(wengert, build(wengert, sample), spread), 1e-9)


@pytest.mark.full
@each_sample(is_function, kinds=("real",))
def test_other_types(operation, sample):
    for dtype in ("float32", "float16", "bfloat16", "int64", "bool"):
        try:
            built = build(wengert, sample, dtype)
        except (RuntimeError, TypeError):
            continue
        check(operation, built, TOLERANCES.get(dtype, 1e-9))
