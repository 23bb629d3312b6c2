"""Pruning: parameters of which masks, that hooks apply before each call, make some elements zero.

A pruned parameter ``weight`` is kept as ``weight_orig`` beside the buffer ``weight_mask``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from numbers import Integral, Real
from typing import Any

from ...core.tensor import Tensor
from ...creation.factories import ones_like, zeros_like
from ...creation.random import rand, rand_like
from ...operators.norms import norm
from ...operators.sorting import topk
from .convert_parameters import parameters_to_vector


class BasePruningMethod(ABC):
    """A way to choose what is pruned; its instances are the hooks that apply the mask."""

    #: Whether single elements (``unstructured``), whole slices (``structured``) or all (``global``)
    #: are looked at; those that earlier pruning has removed are left out.
    PRUNING_TYPE: str
    _tensor_name: str = ""

    def __call__(self, module: Any, inputs: Any) -> None:
        """Set the pruned tensor before a call of the module."""
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """A mask in the shape of `t`, on top of what `default_mask` removes."""

    def apply_mask(self, module: Any) -> Tensor:
        """The original tensor times the mask."""
        if not self._tensor_name:
            raise AssertionError(f"Module {module} has to be pruned")
        mask = getattr(module, self._tensor_name + "_mask")
        original = getattr(module, self._tensor_name + "_orig")
        return mask.to(original.dtype) * original

    @classmethod
    def apply(
        cls,
        module: Any,
        name: str,
        *args: Any,
        importance_scores: Tensor | None = None,
        **kwargs: Any,
    ) -> Any:
        """Prune a parameter, or what earlier pruning has left of it; returns the hook."""
        method = cls._combined(module, name, cls(*args, **kwargs))
        original = getattr(module, name)
        if importance_scores is None:
            importance_scores = original
        elif importance_scores.shape != original.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}, "
                f"got {importance_scores.shape} vs {original.shape}"
            )
        is_first = not isinstance(method, PruningContainer)
        if is_first:
            module.register_parameter(name + "_orig", original)
            del module._parameters[name]
            before = ones_like(original)
        else:
            before = getattr(module, name + "_mask").detach().clone()
        try:
            module.register_buffer(name + "_mask", method.compute_mask(importance_scores, before))
            setattr(module, name, method.apply_mask(module))
            module.register_forward_pre_hook(method)
        except Exception:
            if is_first:
                module.register_parameter(name, module._parameters.pop(name + "_orig"))
            raise
        return method

    @staticmethod
    def _combined(module: Any, name: str, method: BasePruningMethod) -> BasePruningMethod:
        """A method, together with those that have pruned the parameter before."""
        method._tensor_name = name
        hooks = module._forward_pre_hooks
        earlier = [number for number, hook in hooks.items() if _prunes(hook, name)]
        if len(earlier) > 1:
            raise AssertionError(
                f"Avoid adding multiple pruning hooks to the same tensor {name} of module "
                f"{module}. Use a PruningContainer."
            )
        if not earlier:
            return method
        known = hooks.pop(earlier[0])
        container = known if isinstance(known, PruningContainer) else PruningContainer(known)
        container.add_pruning_method(method)
        return container

    def prune(
        self,
        t: Tensor,
        default_mask: Tensor | None = None,
        importance_scores: Tensor | None = None,
    ) -> Tensor:
        """A tensor without what this method removes."""
        if importance_scores is None:
            importance_scores = t
        elif importance_scores.shape != t.shape:
            raise AssertionError(
                "importance_scores should have the same shape as tensor t, got "
                f"{importance_scores.shape} vs {t.shape}"
            )
        before = ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(importance_scores, before)

    def remove(self, module: Any) -> None:
        """Make the pruned tensor the parameter again."""
        if not self._tensor_name:
            raise AssertionError(
                f"Module {module} has to be pruned before pruning can be removed"
            )
        name = self._tensor_name
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters.pop(name + "_orig")
        del module._buffers[name + "_mask"]
        original.data = weight.data
        setattr(module, name, original)


def _prunes(hook: Any, name: str | None = None) -> bool:
    return isinstance(hook, BasePruningMethod) and name in (None, hook._tensor_name)


class PruningContainer(BasePruningMethod):
    """Several methods that have pruned one parameter, one after the other."""

    def __init__(self, *methods: BasePruningMethod) -> None:
        self._pruning_methods: tuple[Any, ...] = ()
        if len(methods) == 1:
            self._tensor_name = methods[0]._tensor_name
        for method in methods:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Add a method for the same parameter."""
        if method is not None:
            if not isinstance(method, BasePruningMethod):
                raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
            if self._tensor_name != method._tensor_name:
                raise ValueError(
                    "Can only add pruning methods acting on the parameter named "
                    f"'{self._tensor_name}' to PruningContainer {self}. Found "
                    f"'{method._tensor_name}'"
                )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._pruning_methods)

    def __getitem__(self, index: Any) -> Any:
        return self._pruning_methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask so far, less what the last method removes of the rest."""
        method = self._pruning_methods[-1]
        mask = default_mask.to(t.dtype)
        left: Any
        if method.PRUNING_TYPE == "unstructured":
            left = default_mask == 1
        elif method.PRUNING_TYPE == "structured":
            if not hasattr(method, "dim"):
                raise AttributeError(
                    'Pruning methods of PRUNING_TYPE "structured" need to have the attribute '
                    "`dim` defined."
                )
            left = _slices(t, method.dim, _sums(default_mask, method.dim) != 0)
        elif method.PRUNING_TYPE == "global":
            left = (slice(None),) * t.dim()
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        mask[left] = method.compute_mask(t[left], default_mask=default_mask[left]).to(mask.dtype)
        return mask


def _slices(t: Tensor, dim: int, chosen: Tensor) -> tuple[Any, ...]:
    """An index that chooses along one dimension."""
    index: list[Any] = [slice(None)] * t.dim()
    if not -t.dim() <= dim < t.dim():
        raise IndexError(f"Index is out of bounds for tensor with dimensions {t.dim()}")
    index[dim] = chosen
    return tuple(index)


def _others(t: Tensor, dim: int) -> list[int]:
    return [d for d in range(t.dim()) if d != dim % t.dim()]


def _sums(mask: Tensor, dim: int) -> Tensor:
    return mask.sum(_others(mask, dim))


class _ByAmount(BasePruningMethod):
    """A method that removes a number or a share of elements or slices."""

    def __init__(self, amount: Any) -> None:
        if not isinstance(amount, Real):
            raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
        if float(amount) < 0 or (not isinstance(amount, Integral) and float(amount) > 1):
            raise ValueError(
                f"amount={amount} should either be a float in the range [0, 1] or a non-negative "
                "integer"
            )
        self.amount: Any = amount

    def _count(self, size: int) -> int:
        if not isinstance(self.amount, Integral):
            return round(self.amount * size)
        if int(self.amount) > size:
            raise ValueError(
                f"amount={self.amount} should be smaller than the number of parameters to "
                f"prune={size}"
            )
        return int(self.amount)


class Identity(BasePruningMethod):
    """Removes nothing, and makes the parameter a pruned one."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask as it is."""
        return default_mask


class _Unstructured(_ByAmount):
    """Removes single elements, those with the lowest scores."""

    PRUNING_TYPE = "unstructured"

    def _scores(self, t: Tensor) -> Tensor:
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask without the lowest elements."""
        count = self._count(t.numel())
        flat = default_mask.clone().reshape(-1)
        if count:
            flat[topk(self._scores(t).reshape(-1), count, largest=False)[1]] = 0
        return flat.reshape(default_mask.shape)


class RandomUnstructured(_Unstructured):
    """Removes elements at random."""

    def _scores(self, t: Tensor) -> Tensor:
        return -rand_like(t)


class L1Unstructured(_Unstructured):
    """Removes the elements with the smallest absolute values."""

    def _scores(self, t: Tensor) -> Tensor:
        return t.abs()


class _Structured(_ByAmount):
    """Removes whole slices along a dimension, those with the lowest scores."""

    PRUNING_TYPE = "structured"
    dim: int

    def _scores(self, t: Tensor) -> Tensor:
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask without the lowest slices."""
        if t.dim() <= 1:
            raise ValueError(
                "Structured pruning can only be applied to multidimensional tensors. Found tensor "
                f"of shape {t.shape} with {t.dim()} dims"
            )
        if self.dim >= t.dim():
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        size = t.shape[self.dim]
        count = self._count(size)
        if not count:
            return default_mask
        kept = topk(self._scores(t), size - count)[1]
        mask = zeros_like(t)
        mask[_slices(t, self.dim, kept)] = 1
        return mask * default_mask.to(mask.dtype)


class RandomStructured(_Structured):
    """Removes slices at random."""

    def __init__(self, amount: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def _scores(self, t: Tensor) -> Tensor:
        return rand(t.shape[self.dim])


class LnStructured(_Structured):
    """Removes the slices with the smallest norms of order `n`."""

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.n = n
        self.dim = dim

    def _scores(self, t: Tensor) -> Tensor:
        return norm(t, self.n, _others(t, self.dim))


class CustomFromMask(BasePruningMethod):
    """Removes what a given mask does."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Both masks together."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape "
                f"{self.mask.shape}"
            )
        return default_mask * self.mask.to(default_mask.dtype)


def identity(module: Any, name: str) -> Any:
    """Make a parameter a pruned one without removing anything; returns the module."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: Any) -> Any:
    """Remove elements of a parameter at random; returns the module."""
    RandomUnstructured.apply(module, name, amount=amount)
    return module


def l1_unstructured(
    module: Any, name: str, amount: Any, importance_scores: Tensor | None = None
) -> Any:
    """Remove the elements with the smallest absolute values or scores; returns the module."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: Any, dim: int) -> Any:
    """Remove slices along a dimension at random; returns the module."""
    RandomStructured.apply(module, name, amount=amount, dim=dim)
    return module


def ln_structured(
    module: Any,
    name: str,
    amount: Any,
    n: Any,
    dim: int,
    importance_scores: Tensor | None = None,
) -> Any:
    """Remove the slices with the smallest norms; returns the module."""
    LnStructured.apply(
        module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores
    )
    return module


def global_unstructured(
    parameters: Any, pruning_method: Any, importance_scores: Any = None, **kwargs: Any
) -> None:
    """Prune parameters, given as pairs of module and name, as if they were one vector."""
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    pairs = list(parameters)
    values = [getattr(module, name) for module, name in pairs]
    masks = [
        getattr(module, name + "_mask", ones_like(value))
        for (module, name), value in zip(pairs, values, strict=True)
    ]
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    container = PruningContainer(method)
    chosen = [scores.get(pair, value) for pair, value in zip(pairs, values, strict=True)]
    whole = container.compute_mask(parameters_to_vector(chosen), parameters_to_vector(masks))
    parts = whole.split([value.numel() for value in values])
    for (module, name), value, part in zip(pairs, values, parts, strict=True):
        custom_from_mask(module, name, part.reshape(value.shape))


def custom_from_mask(module: Any, name: str, mask: Tensor) -> Any:
    """Remove what a mask does; returns the module."""
    CustomFromMask.apply(module, name, mask=mask)
    return module


def remove(module: Any, name: str) -> Any:
    """Make a pruned tensor a parameter again, with its zeros; returns the module."""
    for number, hook in module._forward_pre_hooks.items():
        if _prunes(hook, name):
            hook.remove(module)
            del module._forward_pre_hooks[number]
            return module
    raise ValueError(
        f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
    )


def is_pruned(module: Any) -> bool:
    """Whether a parameter of a module, or of one in it, is pruned."""
    return any(
        _prunes(hook) for each in module.modules() for hook in each._forward_pre_hooks.values()
    )
