"""`opcheck`: whether an operator does what its registrations say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..autograd.grad_mode import no_grad
from ..core.dtypes import float64, is_differentiable
from ..core.tensor import Tensor
from ..core.trees.pytree import tree_leaves, tree_map_only, tree_structure
from .custom_ops import CustomOpDef
from .operator import CustomOperator, memory_owner
from .overloads import OpOverload, OpOverloadPacket
from .schema import Argument


class OpCheckError(Exception):
    """An operator failed a test of `opcheck`."""


def opcheck(
    op: OpOverload | OpOverloadPacket | CustomOpDef,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] | None = None,
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, Any]:
    """Test an operator with sample arguments; returns ``SUCCESS`` or the error for each test.

    - ``test_schema``: it changes only arguments that the schema declares as mutable, counts their
      versions, and its results share memory only as declared.
    - ``test_autograd_registration``: results that require grad come from a derivative of the
      operator itself, not from what its kernel calls.
    - ``test_faketensor``: results on meta tensors have the shapes, dtypes and strides of the real
      ones.
    - ``test_gradcheck``: derivatives agree with finite differences, in double precision, if an
      argument requires grad. `atol` and `rtol` are those of `gradcheck`.
    """
    overload = _overload(op)
    names = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils or _TESTS)
    if not set(names) <= set(_TESTS):
        raise ValueError(
            f"opcheck(op, ..., test_utils={names}), expected test_utils to be subset of "
            f"{tuple(_TESTS)} but it was not"
        )
    tolerances = {name: v for name, v in (("atol", atol), ("rtol", rtol)) if v is not None}
    results: dict[str, Any] = {}
    for name in names:
        options = tolerances if name == "test_gradcheck" else {}
        try:
            _TESTS[name](overload, tuple(args), dict(kwargs or {}), **options)
            results[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(f"opcheck(op, ...): {name} failed with {error}") from error
            results[name] = error
    return results


def _overload(op: Any) -> OpOverload:
    if isinstance(op, CustomOpDef):
        return op._opoverload
    if isinstance(op, OpOverloadPacket) and len(op.overloads()) == 1:
        return getattr(op, op.overloads()[0])
    if not isinstance(op, OpOverload):
        raise ValueError(
            "opcheck(op, ...): op must be an OpOverload, e.g. wengert.ops.aten.sin.default, a "
            f"packet with one overload or a custom operator, got {op!r}"
        )
    return op


def _copies(args: tuple, kwargs: dict[str, Any], **options: Any) -> tuple[tuple, dict[str, Any]]:
    """The arguments with a leaf of its own for every tensor."""
    return tree_map_only(Tensor, lambda t: _copy(t, **options), (args, kwargs))


def _copy(t: Tensor, double: bool = False) -> Tensor:
    copy = t.detach().clone()
    if double and copy.is_floating_point():
        copy = copy.to(float64)
    return copy.requires_grad_(t.requires_grad)


# The tests ---------------------------------------------------------------------------------------


def _test_schema(op: OpOverload, args: tuple, kwargs: dict[str, Any]) -> None:
    args, kwargs = _copies(args, kwargs)
    values = _by_argument(op, args, kwargs)
    before = [[(t.array.copy(), t._version) for t in _tensors_in(v)] for _, v in values]
    with no_grad():
        out = op(*args, **kwargs)
    for (argument, value), old in zip(values, before, strict=True):
        for t, (array, version) in zip(_tensors_in(value), old, strict=True):
            _check_mutation(op, argument, t, array, version)
    results = _results(op, out)
    for i, (returned, result) in enumerate(results):
        for argument, value in values:
            _check_shared(argument, value, returned, result)
        for other, earlier in results[:i]:
            _check_shared(other, earlier, returned, result)


def _by_argument(
    op: OpOverload, args: tuple, kwargs: dict[str, Any]
) -> list[tuple[Argument, Any]]:
    arguments = op._schema.arguments
    pairs = list(zip(arguments, args, strict=False))
    return pairs + [(a, kwargs[a.name]) for a in arguments if a.name in kwargs]


def _tensors_in(value: Any) -> list[Tensor]:
    """The tensors in a value."""
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, Tensor)]


def _check_mutation(
    op: OpOverload, argument: Argument, t: Tensor, before: np.ndarray, version: int
) -> None:
    changed = t.array.shape != before.shape or not np.array_equal(
        t.array, before, equal_nan=before.dtype.kind in "fc"
    )
    if changed and not argument.is_write:
        raise AssertionError(
            f"Argument {argument.name} is not defined as mutable but was mutated"
        )
    if argument.is_write and t._version == version:
        raise AssertionError(
            f"Argument {argument.name} is defined as mutable, but its version was not counted"
        )


def _results(op: OpOverload, out: Any) -> list[tuple[Argument, Any]]:
    returns = op._schema.returns
    return list(zip(returns, out if isinstance(out, tuple) else (out,), strict=False))


def _check_shared(first: Argument, value: Any, second: Argument, other: Any) -> None:
    if not _share_memory(_tensors_in(value), _tensors_in(other)):
        return
    names = first.alias_info.names() if first.alias_info is not None else set()
    others = second.alias_info.names() if second.alias_info is not None else set()
    if not names & others and "*" not in names | others:
        raise AssertionError(
            f"Argument {first.name or 'output'} is not defined to alias output but was aliasing"
        )


def _share_memory(first: list[Tensor], second: list[Tensor]) -> bool:
    owners = [memory_owner(t) for t in first]
    return any(o is not None and any(o is p for p in owners) for o in map(memory_owner, second))


def _test_autograd_registration(op: OpOverload, args: tuple, kwargs: dict[str, Any]) -> None:
    operator = op.op
    if not isinstance(operator, CustomOperator):
        return
    if operator.records or operator.autograd_kernel is not None or not operator.kernels:
        return
    args, kwargs = _copies(args, kwargs)
    if any(t.requires_grad for t in _tensors_in(op(*args, **kwargs))):
        raise AssertionError(
            f"{op.name()}: at least one output of this operator has requires_grad=True but the "
            "operator does not have an autograd kernel defined at an autograd key: what its kernel "
            "calls is recorded in its place. Use register_autograd, or register the kernel as "
            "CompositeImplicitAutograd if that is meant"
        )


def _test_faketensor(op: OpOverload, args: tuple, kwargs: dict[str, Any]) -> None:
    args, kwargs = _copies(args, kwargs)
    fake_args, fake_kwargs = tree_map_only(
        Tensor, lambda t: t.detach().to("meta"), (args, kwargs)
    )
    with no_grad():
        real, fake = op(*args, **kwargs), op(*fake_args, **fake_kwargs)
    if tree_structure(real) != tree_structure(fake):
        raise AssertionError(
            f"{op.name()} on meta tensors returns {tree_structure(fake)}, on real ones "
            f"{tree_structure(real)}"
        )
    for a, b in zip(tree_leaves(real), tree_leaves(fake), strict=True):
        if isinstance(a, Tensor) != isinstance(b, Tensor):
            raise AssertionError(f"{op.name()} on meta tensors returns {b!r} in place of {a!r}")
        if isinstance(a, Tensor):
            _compare(op, a, b)


def _compare(op: OpOverload, real: Tensor, fake: Tensor) -> None:
    found = None
    if real.shape != fake.shape:
        found = f"Shapes {real.shape} and {fake.shape}"
    elif real.dtype != fake.dtype:
        found = f"Dtypes {real.dtype} and {fake.dtype}"
    elif fake.device.type != "meta":
        found = f"Devices meta and {fake.device}"
    elif _strides(real) != _strides(fake):
        found = f"Strides {real.stride()} and {fake.stride()}"
    if found is not None:
        raise AssertionError(
            f"When comparing the output of {op} on meta and concrete Tensors, found mismatched "
            f"tensor metadata: {found} are not equal!"
        )


def _strides(t: Tensor) -> list[int]:
    """The strides that matter: those of dimensions with more than one element."""
    if t.array.size == 0:
        return []
    return [s for s, n in zip(t.stride(), t.shape, strict=True) if n > 1]


def _test_gradcheck(
    op: OpOverload, args: tuple, kwargs: dict[str, Any], **tolerances: float
) -> None:
    from ..autograd.gradcheck import gradcheck

    args, kwargs = _copies(args, kwargs, double=True)
    inputs = [t for t in _tensors_in((args, kwargs)) if t.requires_grad]
    if not inputs:
        return

    def function(*values: Tensor) -> tuple[Tensor, ...]:
        supply = iter(values)
        new_args, new_kwargs = tree_map_only(
            Tensor, lambda t: next(supply) if t.requires_grad else t, (args, kwargs)
        )
        out = op(*new_args, **new_kwargs)
        return tuple(
            t for t in _tensors_in(out) if is_differentiable(t.array.dtype) and t.requires_grad
        )

    gradcheck(function, inputs, **tolerances)  # type: ignore[arg-type]


_TESTS: dict[str, Callable[..., None]] = {
    "test_schema": _test_schema,
    "test_autograd_registration": _test_autograd_registration,
    "test_faketensor": _test_faketensor,
    "test_gradcheck": _test_gradcheck,
}
