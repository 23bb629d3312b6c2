"""Running parts of a program in another precision: which functions do, and the mode that casts.

Products of matrices and convolutions are computed in the lower precision, functions that need range
or accuracy in float32; all others take what they are given.
"""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable
from typing import Any

from ..core import dtypes
from ..core.tensor import Tensor
from ..core.trees.pytree import tree_map
from ..overrides import TorchFunctionMode

_IN_LOWER_PRECISION = """
    __matmul__ __rmatmul__ addbmm addmm baddbmm bmm chain_matmul conv1d conv2d conv3d
    conv_transpose1d conv_transpose2d conv_transpose3d convolution einsum linear matmul mm
    multi_dot multi_head_attention_forward scaled_dot_product_attention tensordot vecdot
"""
_IN_FLOAT32 = """
    adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d binary_cross_entropy
    binary_cross_entropy_with_logits cdist cholesky cholesky_inverse cholesky_solve cond
    cosine_embedding_loss cross_entropy ctc_loss eig eigh eigvals eigvalsh fft fft2 fftn
    fractional_max_pool2d fractional_max_pool3d geqrf grid_sample hfft hinge_embedding_loss
    huber_loss ifft ifft2 ifftn ihfft inv inv_ex inverse irfft irfft2 irfftn kl_div l1_loss lstsq
    lu_solve margin_ranking_loss matrix_rank max_pool3d max_unpool2d max_unpool3d mse_loss
    multi_margin_loss multilabel_margin_loss nanquantile nll_loss orgqr ormqr pinverse
    poisson_nll_loss polar prod qr quantile rfft rfft2 rfftn smooth_l1_loss soft_margin_loss solve
    stft svd svdvals tensorinv tensorsolve trace triangular_solve triplet_margin_loss
    view_as_complex
"""
_LOWER, _FLOAT32 = frozenset(_IN_LOWER_PRECISION.split()), frozenset(_IN_FLOAT32.split())
_WIDEST = frozenset(("cat", "concat", "concatenate", "stack", "index_copy"))
_SUPPORTED = (dtypes.bfloat16, dtypes.float16)


class _Thread(threading.local):
    """The innermost `autocast` of this thread."""

    innermost: autocast | None = None


_thread = _Thread()


class autocast(TorchFunctionMode):
    """Choose the precision of operators in a `with` block, or in a function that it decorates.

    On the CPU matrix products and convolutions run in `dtype`, bfloat16 by default. There are no
    CUDA devices, so that for these it warns and changes nothing.
    """

    def __init__(
        self,
        device_type: str,
        dtype: dtypes.dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(device_type, str):
            raise ValueError(
                f"Expected `device_type` of type `str`, got: `{type(device_type).__name__}`"
            )
        if device_type not in ("cpu", "cuda"):
            raise RuntimeError(
                f"User specified an unsupported autocast device_type '{device_type}': not a "
                "device type of cpu, cuda"
            )
        self.device = device_type
        self.fast_dtype = dtype or (dtypes.bfloat16 if device_type == "cpu" else dtypes.float16)
        if enabled and device_type == "cuda":
            warnings.warn(
                "User provided device_type of 'cuda', but CUDA is not available. Disabling",
                stacklevel=2,
            )
            enabled = False
        if enabled and self.fast_dtype not in _SUPPORTED:
            warnings.warn(
                "In CPU autocast, but the target dtype is not supported. Disabling autocast. CPU "
                "Autocast only supports dtype of bfloat16, float16 currently.",
                stacklevel=2,
            )
            enabled = False
        self._enabled = enabled
        self._before: list[autocast | None] = []

    def __enter__(self) -> autocast:
        self._before.append(_thread.innermost)
        if self.device == "cpu":
            _thread.innermost = self
        super().__enter__()
        return self

    def __exit__(self, *problem: Any) -> None:
        super().__exit__(*problem)
        _thread.innermost = self._before.pop()

    def __call__(self, function: Callable) -> Callable:
        """A function that runs in this precision."""

        @functools.wraps(function)
        def decorated(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return decorated

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        # Only the innermost decides: those around it have been replaced by it.
        if not self._enabled or _thread.innermost is not self or "out" in kwargs:
            return func(*args, **kwargs)
        if name in _LOWER:
            target = self.fast_dtype
        elif name in _FLOAT32:
            target = dtypes.float32
        elif name in _WIDEST:
            target = _widest(args, kwargs)
        else:
            return func(*args, **kwargs)
        args, kwargs = tree_map(functools.partial(_cast, target), (args, kwargs))
        return func(*args, **kwargs)


def _is_cast(value: Any) -> bool:
    """Whether `value` is a tensor whose type autocast chooses: not float64."""
    return (
        isinstance(value, Tensor)
        and value.dtype.is_floating_point
        and value.dtype is not dtypes.float64
    )


def _cast(target: dtypes.dtype, value: Any) -> Any:
    return value.to(target) if _is_cast(value) and value.dtype is not target else value


def _widest(args: tuple, kwargs: dict[str, Any]) -> dtypes.dtype:
    """The type that holds all floats among the arguments."""
    found: list[dtypes.dtype] = []
    tree_map(lambda each: found.append(each.dtype) if _is_cast(each) else None, (args, kwargs))
    return functools.reduce(dtypes.promote_types, found) if found else dtypes.float32


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether operators on such devices are cast now."""
    current = _thread.innermost
    return device_type == "cpu" and current is not None and current._enabled


def get_autocast_dtype(device_type: str) -> dtypes.dtype:
    """The lower precision for such devices."""
    if device_type == "cpu":
        return dtypes.bfloat16 if _thread.innermost is None else _thread.innermost.fast_dtype
    return dtypes.float16


def is_autocast_available(device_type: str) -> bool:
    """Whether there is a precision to choose for such devices."""
    return device_type == "cpu"


def custom_fwd(
    fwd: Callable | None = None, *, device_type: str, cast_inputs: dtypes.dtype | None = None
) -> Callable:
    """Decorates the forward of a Function: it gets inputs of one type, and is not cast inside."""
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        args[0]._dtype = get_autocast_dtype(device_type)
        enabled = is_autocast_enabled(device_type)
        args[0]._fwd_used_autocast = enabled and cast_inputs is None
        if cast_inputs is None or not enabled:
            return fwd(*args, **kwargs)
        args, kwargs = tree_map(functools.partial(_cast, cast_inputs), (args, kwargs))
        with autocast(device_type, enabled=False):
            return fwd(*args, **kwargs)

    return decorated


def custom_bwd(bwd: Callable | None = None, *, device_type: str) -> Callable:
    """Decorates the backward of a Function: it runs in the precision of its forward."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorated(ctx: Any, *gradients: Any) -> Any:
        with autocast(device_type, ctx._dtype, enabled=ctx._fwd_used_autocast):
            return bwd(ctx, *gradients)

    return decorated
