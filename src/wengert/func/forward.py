"""Forward mode: `jvp` and `linearize`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from ..autograd.forward_ad import check_tangent
from ..core.registry import operator_named
from ..core.scopes import HOOKS_IGNORED
from ..core.state import thread_state
from ..core.tensor import Tensor, set_fields
from ..core.trees.pytree import tree_flatten, tree_unflatten
from ..creation.factories import zeros_like
from ..dispatch.levels import Level, lifted
from ..tape.tangents import laid_out, set_tangent, tangent_of
from ..transforms.levels import GradLevel, JvpLevel
from .arguments import Argnums, at, outside, replaced, split_aux
from .differentiation import backward_at, check_outputs, filled, require_grad, values_of

_JVP = "jvp(f, primals, tangents)"


def jvp(
    func: Callable[..., Any],
    primals: Any,
    tangents: Any,
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> tuple[Any, ...]:
    """`func(*primals)` and the product of its Jacobian there with `tangents`.

    Both have the structure of the outputs; `tangents` has that of `primals`. An output that does
    not depend on the primals has a tangent of zeros, or is an error with `strict`. With `has_aux`,
    `func` returns a pair (outputs, tree of tensors), and the second comes back last.

    >>> import wengert
    >>> wengert.func.jvp(wengert.sin, (wengert.zeros(2),), (wengert.ones(2),))
    (tensor([0., 0.]), tensor([1., 1.]))
    """
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"{_JVP}: Expected primals to be a tuple, one entry for each argument of f, but got "
            f"{type(primals).__name__}"
        )
    flat, spec = _checked_primals(primals)
    flat_tangents, tangents_spec = tree_flatten(tangents)
    if spec != tangents_spec:
        raise RuntimeError(
            f"{_JVP}: Expected primals and tangents to have the same python structure, but got "
            f"{spec} and {tangents_spec}"
        )
    _require_tensors(flat_tangents, "tangents")
    output, tangent, aux = jvp_in(func, None, primals, flat, flat_tangents, spec, strict, has_aux)
    return (output, tangent, aux) if has_aux else (output, tangent)


def jvp_in(
    func: Callable[..., Any],
    argnums: Argnums | None,
    args: tuple,
    primals: list,
    tangents: list,
    spec: Any,
    strict: bool,
    has_aux: bool,
) -> tuple[Any, Any, Any]:
    """Outputs, their tangents and aux of ``func(*args)``; the chosen arguments are given flat."""
    tangents = [_fitted(*pair) for pair in zip(primals, tangents, strict=True)]
    level = JvpLevel()
    with level.entered():
        duals = tree_unflatten(
            [
                _dual(level, primal, tangent)
                for primal, tangent in zip(primals, tangents, strict=True)
            ],
            spec,
        )
        args = duals if argnums is None else replaced(at(level, args), argnums, duals)
        output, aux = split_aux(_JVP, func(*args), has_aux)
        outputs, output_spec = tree_flatten(output)
        check_outputs(outputs, _JVP)
        tangents = [tangent_of(out) for out in outputs]
        if strict and any(tangent is None for tangent in tangents):
            raise RuntimeError(
                f"{_JVP}: an output of f is independent of the inputs, which strict=True refuses"
            )
        values, products = values_of(level, outputs), values_of(level, tangents)
        aux = outside(level, aux)
    values = [_primal(value) for value in values]
    products = [
        zeros_like(value) if product is None else product
        for value, product in zip(values, products, strict=True)
    ]
    return tree_unflatten(values, output_spec), tree_unflatten(products, output_spec), aux


def _primal(value: Tensor) -> Tensor:
    """An output, or a view of it that can be differentiated where it has no history itself."""
    if value.view_meta is None or value.node is not None or not value.requires():
        return value
    return operator_named("_primal").call((value,))


def _fitted(primal: Tensor, tangent: Tensor) -> Tensor:
    """The tangent where its primal lies in memory, so that a function may look beyond both."""
    check_tangent(primal, tangent)
    return laid_out(primal, tangent)


def _dual(level: Level, primal: Tensor, tangent: Tensor) -> Tensor:
    """A primal at its level, with its tangent."""
    dual = lifted(primal, level)
    set_tangent(dual, lifted(tangent, level))
    return dual


def _checked_primals(primals: Any) -> tuple[list, Any]:
    flat, spec = tree_flatten(primals)
    _require_tensors(flat, "primals")
    return flat, spec


def _require_tensors(leaves: list, what: str) -> None:
    if not leaves:
        raise RuntimeError(f"{_JVP}: Expected {what} to contain at least one Tensor.")
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{_JVP}: Expected {what} to only contain Tensors, got {type(leaf)}"
            )


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """`func(*primals)` and the function that multiplies its Jacobian there with tangents.

    The second is what `jvp` computes, without evaluating `func` again: the vector-Jacobian product
    is linear in its vector, is recorded once, and is transposed for every tangent.

    >>> import wengert
    >>> value, push_forward = wengert.func.linearize(wengert.sin, wengert.zeros(2))
    >>> push_forward(wengert.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    flat, spec = tree_flatten(primals)
    _require_tensors(flat, "primals")
    level = GradLevel()
    with _entered_without_hooks(level):
        leaves = [lifted(primal, level) for primal in flat]
        for leaf in leaves:
            require_grad(leaf)
        level.pushes_forward = True
        output = func(*tree_unflatten([_changeable(leaf) for leaf in leaves], spec))
        level.pushes_forward = False
        outputs, output_spec = tree_flatten(output)
        check_outputs(outputs, "linearize(f, *primals)")
        cotangents = [zeros_like(out) for out in outputs]
        for cotangent in cotangents:
            require_grad(cotangent)
        products = backward_at(
            level, outputs, leaves, cotangents, keep_graph=True, create_graph=True
        )
        output = outside(level, output)
    lock = Lock()

    def push_forward(*tangents: Any) -> Any:
        given, given_spec = tree_flatten(tangents)
        if given_spec != spec:
            raise RuntimeError(
                f"Expected the tangents {given_spec} to have the same argspec as the primals, "
                f"{spec}"
            )
        for index, (tangent, primal) in enumerate(zip(given, flat, strict=True)):
            _check_alike(index, tangent, primal)
        with lock, _entered_without_hooks(level):
            lifts = [lifted(tangent, level) for tangent in given]
            found = values_of(
                level, backward_at(level, products, cotangents, lifts, keep_graph=True)
            )
        return tree_unflatten(filled(found, cotangents), output_spec)

    return output, push_forward


def _changeable(leaf: Tensor) -> Tensor:
    """An argument with the value of a leaf that, unlike the leaf, can be changed in place."""
    argument = leaf.clone()
    set_fields(argument, array=leaf.array)
    return argument


@contextmanager
def _entered_without_hooks(level: Level) -> Iterator[None]:
    """Enter a level whose graph stands for forward mode, which knows no hooks of saved tensors."""
    state = thread_state()
    hooks, state.saved_hooks = state.saved_hooks, []
    try:
        with level.entered():
            state.saved_hooks_disabled = HOOKS_IGNORED
            yield
    finally:
        state.saved_hooks = hooks


def _check_alike(index: int, tangent: Any, primal: Tensor) -> None:
    for what in ("shape", "device", "dtype"):
        given, expected = getattr(tangent, what), getattr(primal, what)
        if given != expected:
            raise RuntimeError(
                f"tangent:{index} with {what} {given} in flattened pytree doesn't match the {what} "
                f"of its primal, {expected}"
            )
