"""Reverse mode: `grad`, `grad_and_value` and `vjp`.

A transform opens a level, lifts its inputs to it as leaves that require grad, calls the function
and runs an ordinary backward there. Everything that happens at the level happens to the values one
level below as well, so the results can be differentiated, batched or pushed forward again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from threading import Lock
from typing import Any

from ..autograd import gradients_of
from ..core.arrays import LevelArray
from ..core.dtypes import is_differentiable
from ..core.tensor import Tensor, set_fields
from ..core.trees.pytree import tree_flatten, tree_unflatten
from ..creation.factories import zeros_like
from ..dispatch.levels import Level, lifted, unwrapped
from ..transforms.levels import GradLevel
from .arguments import (
    Argnums,
    at,
    chosen_argnums,
    outside,
    selected,
    split_aux,
)


def grad(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The function that computes the gradient of `func`, which returns one number.

    `argnums` chooses the arguments to differentiate in. With `has_aux`, `func` returns a pair
    (number, tree of tensors) and so does the result.

    >>> import wengert
    >>> wengert.func.grad(lambda x: x ** 3)(wengert.tensor(2.0))
    tensor(12.)
    """
    with_value = grad_and_value(func, argnums, has_aux)

    @wraps(func, updated=())
    def gradient(*args: Any, **kwargs: Any) -> Any:
        found, value = with_value(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


def grad_and_value(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The function that computes the gradient of `func` and its value: ``(gradient, value)``.

    With `has_aux` the result is ``(gradient, (value, aux))``.
    """

    @wraps(func, updated=())
    def gradient_and_value(*args: Any, **kwargs: Any) -> Any:
        chosen = chosen_argnums(argnums, len(args))
        level = GradLevel()
        with level.entered():
            args, kwargs = at(level, args), at(level, kwargs)
            leaves, spec = tree_flatten(selected(args, chosen))
            for leaf in leaves:
                require_grad(leaf)
            output, aux = split_aux("grad_and_value(f)(*args)", func(*args, **kwargs), has_aux)
            _check_scalar(output)
            gradients = values_of(level, backward_at(level, [output], leaves, None))
            output, aux = unwrapped(output, level)[0], outside(level, aux) if has_aux else None
        gradients = spec.unflatten(filled(gradients, leaves))
        return gradients, (output, aux) if has_aux else output

    return gradient_and_value


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """`func(*primals)` and the function that multiplies cotangents with the Jacobian there.

    The function takes one cotangent for each output, in the structure of the outputs, and returns
    a tuple of one product for each of `primals`. It may be called many times, unless it is called
    with `retain_graph` false. With `has_aux`, `func` returns a pair (outputs, tree of tensors), and
    the second comes back last.

    >>> import wengert
    >>> value, pull_back = wengert.func.vjp(wengert.sin, wengert.zeros(3))
    >>> pull_back(wengert.ones(3))
    (tensor([1., 1., 1.]),)
    """
    pulled = PullBack(func, primals, {}, None, has_aux)

    def pull_back(
        cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None
    ) -> Any:
        given, spec = tree_flatten(cotangents)
        if spec != pulled.output_spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as that of the outputs of "
                f"the function: {spec} against {pulled.output_spec}"
            )
        products = pulled.products(given, retain_graph, bool(create_graph))
        return tree_unflatten(products, pulled.input_spec)

    output = tree_unflatten(pulled.values, pulled.output_spec)
    return (output, pull_back, pulled.aux) if has_aux else (output, pull_back)


class PullBack:
    """A call of a function, kept at its level for products with its Jacobian; all trees are flat.

    `values` are the outputs of the call one level below.
    """

    def __init__(
        self,
        func: Callable[..., Any],
        args: tuple,
        kwargs: dict,
        argnums: Argnums | None,
        has_aux: bool,
    ) -> None:
        self.level = level = GradLevel()
        self.lock = Lock()
        with level.entered():
            args, kwargs = at(level, args), at(level, kwargs)
            chosen = args if argnums is None else selected(args, argnums)
            self.inputs, self.input_spec = tree_flatten(chosen)
            for leaf in self.inputs:
                require_grad(leaf)
            output, aux = split_aux("vjp(f, *primals)", func(*args, **kwargs), has_aux)
            self.outputs, self.output_spec = tree_flatten(output)
            check_outputs(self.outputs, "vjp(f, *primals)")
            _check_differentiable(self.outputs)
            self.values = values_of(level, self.outputs)
            self.aux = outside(level, aux) if has_aux else None

    def products(
        self, cotangents: Iterable[Tensor], keep_graph: bool = True, create_graph: bool = False
    ) -> list[Tensor]:
        """One product for each input from one cotangent for each output."""
        level = self.level
        with self.lock, level.entered():
            given = [lifted(g, level) for g in cotangents]
            gradients = backward_at(
                level, self.outputs, self.inputs, given,
                keep_graph=keep_graph, create_graph=create_graph,
            )  # fmt: skip
            found = values_of(level, gradients)
        return filled(found, self.inputs)


def check_outputs(outputs: list, api: str) -> None:
    """Refuse a function that returns nothing, or something other than tensors."""
    if not outputs or (len(outputs) == 1 and outputs[0] is None):
        raise RuntimeError(
            f"{api}: Expected f to be a function that has non-empty output (got output = "
            f"{outputs}): there is nothing to differentiate"
        )
    for out in outputs:
        if not isinstance(out, Tensor):
            raise RuntimeError(
                f"{api}: expected f(*primals) to return only tensors, got unsupported type "
                f"{type(out)}"
            )


def _check_differentiable(outputs: list) -> None:
    """Refuse outputs of whole numbers, which have no cotangents."""
    for index, out in enumerate(outputs):
        if not is_differentiable(out.array.dtype):
            raise RuntimeError(
                "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got "
                f"Tensor with dtype {out.dtype} as number {index} of them. With has_aux=True, f "
                "can return it beside its outputs"
            )


def _check_scalar(output: Any) -> None:
    api = "grad_and_value(f)(*args)"
    if not isinstance(output, Tensor):
        raise RuntimeError(
            f"{api}: Expected f(*args) to return a Tensor, got {type(output)}"
        )
    if output.array.ndim:
        raise RuntimeError(
            f"{api}: Expected f(*args) to return a scalar Tensor, got tensor with "
            f"{output.array.ndim} dims; vjp and jacrev take functions of any outputs"
        )


def require_grad(t: Any) -> None:
    """Make an input a leaf that requires grad at its level."""
    if not isinstance(t, Tensor):
        raise ValueError(f"Thing passed to transform API must be Tensor, got {type(t)}")
    if not is_differentiable(t.array.dtype):
        raise RuntimeError(
            "only Tensors of floating point and complex dtype can require gradients, and so be "
            f"differentiated in; got {t.dtype}"
        )
    set_fields(t, needs_grad=True)


def backward_at(
    level: GradLevel,
    outputs: list,
    inputs: list,
    cotangents: list | None,
    *,
    keep_graph: bool = False,
    create_graph: bool = False,
) -> list:
    """Gradients by a walk through the graph of `level`, which is active; None where none is."""
    roots = [i for i, out in enumerate(outputs) if out is not None and out.requires()]
    if not roots or not inputs:
        return [None] * len(inputs)
    level.differentiating = True
    try:
        found = gradients_of(
            tuple([outputs[i] for i in roots]),
            tuple(inputs),
            None if cotangents is None else tuple([cotangents[i] for i in roots]),
            keep_graph,
            create_graph,
        )
    finally:
        level.differentiating = False
    return list(found)


def values_of(level: Level, tensors: list) -> list:
    """The values of tensors below `level`; None stays."""
    return [None if t is None else unwrapped(t, level)[0] for t in tensors]


def filled(gradients: list, leaves: list) -> list:
    """Zeros like the inputs' values where the function does not depend on them."""
    return [
        zeros_like(leaf.array.value) if g is None else g
        for g, leaf in zip(gradients, leaves, strict=True)
    ]


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """The tensor that a transform's tensor stands for, for looking at its value; breaks nesting.

    With `recurse` the plain tensor below all transforms, else the one of the next level.
    """
    if type(tensor.array) is not LevelArray:
        return tensor
    value = tensor.array.value
    return debug_unwrap(value) if recurse else value
