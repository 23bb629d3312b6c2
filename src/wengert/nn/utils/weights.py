"""Weights by norm and direction, or with spectral norm one, set by hooks before each call.

These are the older forms of what `parametrizations` does.
"""

from __future__ import annotations

from typing import Any

from ...autograd.grad_mode import no_grad
from ...core.errors import warn_user
from ...core.tensor import Tensor
from ...operators.linalg_functions import multi_dot
from ...operators.linalg_names import pinverse
from ...operators.matmul import dot, mv
from ...operators.older_names import norm_except_dim
from .. import functional as F
from ..parameter import Parameter, UninitializedParameter


def normalized_weight(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """The direction `v` with the norms `g`."""
    return v * (g / norm_except_dim(v, 2, dim))


def output_dim(module: Any) -> int:
    """The dimension of a weight that belongs to the outputs: that of transposed convolutions is 1.

    They are recognised by name, so that nothing of them is imported.
    """
    names = {kind.__name__ for kind in type(module).__mro__}
    return int(not names.isdisjoint(f"ConvTranspose{n}d" for n in (1, 2, 3)))


def _check_first(module: Any, kind: Any, name: str, called: str) -> None:
    for hook in module._forward_pre_hooks.values():
        if isinstance(hook, kind) and hook.name == name:
            raise RuntimeError(
                f"Cannot register two {called} hooks on the same parameter {name}"
            )


def _check_initialised(weight: Any, kind: str, called: str) -> None:
    if isinstance(weight, UninitializedParameter):
        raise ValueError(
            f"The module passed to `{kind}` can't have uninitialized parameters. Make sure to run "
            f"the dummy forward before applying {called} normalization"
        )


def _take_hook(module: Any, kind: Any, name: str, called: str) -> Any:
    """Remove a hook of a kind from a module and return it."""
    for number, hook in module._forward_pre_hooks.items():
        if isinstance(hook, kind) and hook.name == name:
            del module._forward_pre_hooks[number]
            return hook
    raise ValueError(f"{called} of '{name}' not found in {module}")


class WeightNorm:
    """The hook that computes a weight from its norms and its direction."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Any) -> Tensor:
        """The weight."""
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        return normalized_weight(v, g, self.dim)

    @staticmethod
    def apply(module: Any, name: str, dim: int | None) -> WeightNorm:
        """Replace a weight by its norms and its direction."""
        warn_user(
            "`torch.nn.utils.weight_norm` is deprecated in favor of "
            "`torch.nn.utils.parametrizations.weight_norm`.",
            FutureWarning,
        )
        _check_first(module, WeightNorm, name, "weight_norm")
        hook = WeightNorm(name, dim)
        weight = getattr(module, name)
        _check_initialised(weight, "WeightNorm", "weight")
        del module._parameters[name]
        norms = norm_except_dim(weight.detach(), 2, hook.dim)
        module.register_parameter(name + "_g", Parameter(norms))
        module.register_parameter(name + "_v", Parameter(weight.data))
        setattr(module, name, hook.compute_weight(module))
        module.register_forward_pre_hook(hook)
        return hook

    def remove(self, module: Any) -> None:
        """Make the weight a parameter again."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[self.name + "_g"], module._parameters[self.name + "_v"]
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Split a weight into its norms along all dimensions but `dim` and its direction."""
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Undo `weight_norm`; returns the module."""
    _take_hook(module, WeightNorm, name, "weight_norm").remove(module)
    return module


class SpectralNorm:
    """The hook that divides a weight by its largest singular value, found by power iteration."""

    _version = 1

    def __init__(
        self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got n_power_iterations="
                f"{n_power_iterations}"
            )
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        """The weight with a row for each output."""
        moved = weight.movedim(self.dim, 0)
        return moved.reshape(moved.size(0), -1)

    def compute_weight(self, module: Any, do_power_iteration: bool) -> Tensor:
        """The weight; both vectors are turned, in place, towards the singular ones if asked."""
        weight, u, v = [getattr(module, self.name + end) for end in ("_orig", "_u", "_v")]
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(mv(matrix.t(), u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(mv(matrix, v), dim=0, eps=self.eps))
                # Copies, so that a further call does not spoil the graph of this one.
                u, v = u.clone(), v.clone()
        return weight / dot(u, mv(matrix, v))

    @staticmethod
    def apply(
        module: Any, name: str, n_power_iterations: int, dim: int, eps: float
    ) -> SpectralNorm:
        """Replace a weight by an original and two vectors."""
        _check_first(module, SpectralNorm, name, "spectral_norm")
        hook = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        _check_initialised(weight, "SpectralNorm", "spectral")
        with no_grad():
            shape = hook.reshape_weight_to_matrix(weight).shape
            starts = [weight.new_empty(size).normal_(0, 1) for size in shape]
            vectors = [F.normalize(each, dim=0, eps=eps) for each in starts]
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        setattr(module, name, weight.data)
        for end, vector in zip(("_u", "_v"), vectors, strict=True):
            module.register_buffer(name + end, vector)
        module.register_forward_pre_hook(hook)
        module._register_state_dict_hook(SpectralNormStateDictHook(hook))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(hook))
        return hook

    def remove(self, module: Any) -> None:
        """Make the weight a parameter again."""
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        for end in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + end)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, module.training))

    def _solve_v_and_rescale(self, matrix: Tensor, u: Tensor, sigma: Tensor) -> Tensor:
        """The second vector, which states of the first version lack."""
        square = pinverse(matrix.t().mm(matrix))
        v = multi_dot([square, matrix.t(), u.unsqueeze(1)]).squeeze(1)
        return v * (sigma / dot(u, mv(matrix, v)))


class SpectralNormLoadStateDictPreHook:
    """Completes states that the first version has saved."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        *rest: Any,
    ) -> None:
        version = local_metadata.get("spectral_norm", {}).get(self.fn.name + ".version")
        if version is not None and version >= 1:
            return
        key = prefix + self.fn.name
        is_complete = all(key + end in state_dict for end in ("_orig", "_u", "_v"))
        if version is None and is_complete and key not in state_dict:
            return
        missing = [key + end for end in ("_orig", "", "_u") if key + end not in state_dict]
        if missing:
            missing_keys.extend(missing if strict else [])
            return
        with no_grad():
            original, weight = state_dict[key + "_orig"], state_dict.pop(key)
            sigma = (original / weight).mean()
            matrix = self.fn.reshape_weight_to_matrix(original)
            u = state_dict[key + "_u"]
            state_dict[key + "_v"] = self.fn._solve_v_and_rescale(matrix, u, sigma)


class SpectralNormStateDictHook:
    """Notes the version in a state."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(
        self, module: Any, state_dict: Any, prefix: str, local_metadata: dict[str, Any]
    ) -> None:
        versions = local_metadata.setdefault("spectral_norm", {})
        key = self.fn.name + ".version"
        if key in versions:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        versions[key] = self.fn._version


def spectral_norm(
    module: Any,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Any:
    """Divide a weight by its largest singular value before each call; returns the module."""
    dim = output_dim(module) if dim is None else dim
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Undo `spectral_norm`; returns the module."""
    _take_hook(module, SpectralNorm, name, "spectral_norm").remove(module)
    kinds = (SpectralNormStateDictHook, SpectralNormLoadStateDictPreHook)
    for hooks in (module._state_dict_hooks, module._load_state_dict_pre_hooks):
        for number, hook in list(hooks.items()):
            if isinstance(hook, kinds) and hook.fn.name == name:
                del hooks[number]
    return module
