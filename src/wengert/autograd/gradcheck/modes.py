"""Reverse and forward mode, each as a source of derivative pairs to compare.

Complex values are compared through real functions. In reverse mode a complex output becomes two
outputs, its parts; in forward mode a complex input becomes two inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import wengert
from wengert.autograd.gradcheck.errors import (
    DTYPE_MISMATCH,
    FORWARD_DTYPE_MISMATCH,
    INCORRECT_SIZE,
    NOT_REENTRANT,
    GradcheckError,
)
from wengert.autograd.gradcheck.jacobians import (
    Evaluate,
    as_tuple,
    differentiated,
    evaluator,
    forward_derivative,
    numerical_derivative,
    numerical_jacobian,
    one_hot,
    reverse_derivative,
    reverse_jacobian,
    wants_grad,
)


class Tolerances(NamedTuple):
    """How far the function moves, and how far two derivatives may lie apart."""

    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    check_grad_dtypes: bool


class Label(NamedTuple):
    """Which input or output a real tensor stands for: its position and, if split, which part."""

    position: int
    part: str = ""


class Pair(NamedTuple):
    """One derivative found in two ways: a Jacobian, or in fast mode a product with it."""

    output: int
    x: int
    analytical: wengert.Tensor
    numerical: wengert.Tensor
    atol: float


_PARTS = (("imaginary", "imag"), ("real", "real"))


class Mode:
    """A real function at a point, the inputs to vary and the outputs to follow.

    Each input that requires grad has a label, and so has each output with a graph, by its place in
    `outputs`; other outputs are not checked.
    """

    evaluate: Evaluate
    xs: list[wengert.Tensor]
    x_labels: list[Label]
    outputs: Sequence[wengert.Tensor]
    output_labels: dict[int, Label]
    tolerances: Tolerances

    def numerical_derivatives(self, fast: bool) -> Iterator[wengert.Tensor]:
        """Of every output in every input: Jacobians, or derivatives along a random direction."""
        draw = RandomVectors()
        for x in range(len(self.xs)):
            yield from (
                self._numerical_along(x, draw.directions(self.xs[x]))
                if fast
                else self._numerical_jacobians(x)
            )

    def _numerical_jacobians(self, x: int) -> list[wengert.Tensor]:
        return numerical_jacobian(self.evaluate, self.xs[x], self.outputs, self.tolerances.eps)

    def _numerical_along(self, x: int, u: Sequence[wengert.Tensor]) -> list[wengert.Tensor]:
        tensor = self.xs[x]
        steps = [direction.view(tensor.shape) for direction in u]
        return numerical_derivative(self.evaluate, tensor.data, steps, self.tolerances.eps)


class ReverseMode(Mode):
    """The gradients of `results`, made by `func(*inputs)`, against central differences."""

    title = ""
    split = "outputs"

    def __init__(
        self,
        func: Callable[..., Any],
        inputs: Sequence[Any],
        results: Sequence[wengert.Tensor],
        tolerances: Tolerances,
    ) -> None:
        self.tolerances = tolerances
        self.xs = differentiated(inputs)
        self.x_labels = [Label(i) for i in range(len(self.xs))]
        self.outputs = _split_outputs(results)
        self.output_labels = _output_labels(results, split=True)
        self.evaluate = evaluator(lambda *args: _split_outputs(as_tuple(func(*args))), inputs)

    def jacobians(self, output: int, x: int) -> tuple[wengert.Tensor, wengert.Tensor]:
        """The analytical and the numerical Jacobian of one output in one input."""
        analytical, _, _ = reverse_jacobian(self.outputs[output], self.xs)
        return analytical[x], self._numerical_jacobians(x)[output]

    def slow_pairs(self) -> Iterator[Pair]:
        numerical = [self._numerical_jacobians(x) for x in range(len(self.xs))]
        for output in self.output_labels:
            analytical, right_size, right_dtype = reverse_jacobian(self.outputs[output], self.xs)
            again, _, _ = reverse_jacobian(self.outputs[output], self.xs)
            self._verify(analytical, again, right_size, right_dtype)
            for x, matrix in enumerate(analytical):
                yield Pair(output, x, matrix, numerical[x][output], self.tolerances.atol)

    def fast_pairs(self) -> Iterator[Pair]:
        draw = RandomVectors()
        us = [draw.directions(x) for x in self.xs]
        numerical = [self._numerical_along(x, u) for x, u in enumerate(us)]
        for output in self.output_labels:
            v = draw.vector(self.outputs[output])
            for x, (grad, u) in enumerate(zip(self._gradients(output, v), us, strict=True)):
                yield Pair(
                    output,
                    x,
                    _along(grad, u),
                    _dot(numerical[x][output], v),
                    _scaled(self.tolerances.atol, u, v),
                )

    def _gradients(self, output: int, v: wengert.Tensor) -> list[wengert.Tensor]:
        out = self.outputs[output]
        first, second = (
            [
                wengert.zeros_like(x) if grad is None else grad.detach()
                for grad, x in zip(
                    reverse_derivative(out, self.xs, v.clone().view(out.shape)),
                    self.xs,
                    strict=True,
                )
            ]
            for _ in range(2)
        )
        right_size = all(grad.shape == x.shape for grad, x in zip(first, self.xs, strict=True))
        right_dtype = all(grad.dtype == x.dtype for grad, x in zip(first, self.xs, strict=True))
        self._verify(first, second, right_size, right_dtype)
        return first

    def _verify(
        self,
        first: Sequence[wengert.Tensor],
        second: Sequence[wengert.Tensor],
        right_size: bool,
        right_dtype: bool,
    ) -> None:
        if self.tolerances.check_grad_dtypes and not right_dtype:
            raise GradcheckError(DTYPE_MISMATCH)
        if not right_size:
            raise GradcheckError(INCORRECT_SIZE)
        if not reentrant(first, second, self.tolerances.nondet_tol):
            raise GradcheckError(NOT_REENTRANT.format(self.tolerances.nondet_tol))


class ForwardMode(Mode):
    """The tangents of `func(*inputs)`, first made as `results`, against central differences."""

    title = "computed with forward mode "
    split = "inputs"

    def __init__(
        self,
        func: Callable[..., Any],
        inputs: Sequence[Any],
        results: Sequence[wengert.Tensor],
        tolerances: Tolerances,
    ) -> None:
        self.tolerances = tolerances
        self.func, self.inputs, self.x_labels = split_inputs(func, inputs)
        self.xs = differentiated(self.inputs)
        self.outputs = results
        self.output_labels = _output_labels(results, split=False)
        self.evaluate = evaluator(self.func, self.inputs)

    def jacobians(self, output: int, x: int) -> tuple[wengert.Tensor, wengert.Tensor]:
        """The analytical and the numerical Jacobian of one output in one input."""
        analytical, numerical = self._all_jacobians(x)
        return analytical[output], numerical[output]

    def slow_pairs(self) -> Iterator[Pair]:
        for x in range(len(self.xs)):
            analytical, numerical = self._all_jacobians(x)
            for output in self.output_labels:
                yield Pair(output, x, analytical[output], numerical[output], self.tolerances.atol)

    def fast_pairs(self) -> Iterator[Pair]:
        draw = RandomVectors()
        for x, tensor in enumerate(self.xs):
            u = draw.vector(tensor)
            # not a view: the jvp of a Function may have to return views of its tangents
            analytical = self._tangents(x, u.view(tensor.shape).clone())
            numerical = self._numerical_along(x, (u,))
            atol = _scaled(self.tolerances.atol, (u,))
            for output in self.output_labels:
                yield Pair(output, x, analytical[output], numerical[output], atol)

    def _all_jacobians(self, x: int) -> tuple[list[wengert.Tensor], list[wengert.Tensor]]:
        tensor = self.xs[x]
        numerical = self._numerical_jacobians(x)
        rows = [self._tangents(x, one_hot(tensor, element)) for element in range(tensor.numel())]
        if not rows:
            return numerical, numerical
        analytical = [
            wengert.stack([tangent.reshape(-1) for tangent in tangents])
            for tangents in zip(*rows, strict=True)
        ]
        return analytical, numerical

    def _tangents(self, x: int, tangent: wengert.Tensor) -> list[wengert.Tensor]:
        """Every output's tangent when input `x` has the given one and the others have zeros."""
        given = iter(
            tangent if other == x else wengert.zeros_like(tensor)
            for other, tensor in enumerate(self.xs)
        )
        tangents = [next(given) if wants_grad(value) else None for value in self.inputs]
        pairs = forward_derivative(self.func, self.inputs, tangents)
        if self.tolerances.check_grad_dtypes and any(
            out is not None and out.dtype != primal.dtype for primal, out in pairs
        ):
            raise GradcheckError(FORWARD_DTYPE_MISMATCH)
        return [
            wengert.zeros_like(primal) if out is None else out.detach() for primal, out in pairs
        ]


class RandomVectors:
    """Repeatable random values, drawn without touching the default generator."""

    def __init__(self) -> None:
        self.generator = wengert.Generator()
        self.generator.manual_seed(2147483647)

    def uniform(self, shape: Sequence[int], like: wengert.Tensor) -> wengert.Tensor:
        """Uniform values in [0, 1) of the real dtype that belongs to `like`."""
        dtype = like.detach().real.dtype if like.is_complex() else like.dtype
        values = wengert.rand(tuple(shape), generator=self.generator, dtype=dtype)
        return values.to(like.device)

    def uniform_like(self, like: wengert.Tensor) -> wengert.Tensor:
        """Uniform values of the shape and dtype of `like`, in both parts if that is complex."""
        real = self.uniform(like.shape, like)
        return real + 1j * self.uniform(like.shape, like) if like.is_complex() else real

    def vector(self, like: wengert.Tensor) -> wengert.Tensor:
        """A vector of unit length and positive entries, as many as `like` has elements."""
        values = self.uniform((like.numel(),), like)
        return values / (values * values).sum().sqrt()

    def directions(self, like: wengert.Tensor) -> tuple[wengert.Tensor, ...]:
        """One vector for a real tensor; one for each part of a complex tensor."""
        return tuple(self.vector(like) for _ in range(2 if like.is_complex() else 1))


def split_inputs(
    func: Callable[..., Any], inputs: Sequence[Any]
) -> tuple[Callable[..., Any], tuple[Any, ...], list[Label]]:
    """`func` of real inputs only: complex ones that require grad are split into their parts.

    Also labels the inputs that require grad, in the order of the new inputs.
    """
    new_inputs: list[Any] = []
    labels: list[Label] = []
    is_split: list[bool] = []
    position = 0
    for x in inputs:
        wanted = wants_grad(x)
        is_split.append(wanted and x.is_complex())
        if is_split[-1]:
            for part, attribute in _PARTS:
                new_inputs.append(getattr(x.detach(), attribute).clone().requires_grad_(True))
                labels.append(Label(position, part))
        else:
            new_inputs.append(x)
            if wanted:
                labels.append(Label(position))
        position += wanted

    def func_of_parts(*args: Any) -> Any:
        parts = iter(args)
        joined = []
        for split in is_split:
            first = next(parts)
            joined.append(1j * first + next(parts) if split else first)
        return func(*joined)

    return func_of_parts, tuple(new_inputs), labels


def reentrant(
    first: Sequence[wengert.Tensor], second: Sequence[wengert.Tensor], nondet_tol: float
) -> bool:
    """Whether two runs of the same backward agree within `nondet_tol`."""
    return not any(
        bool(((a - b).abs() > nondet_tol).any()) for a, b in zip(first, second, strict=True)
    )


def _split_outputs(outputs: Sequence[wengert.Tensor]) -> tuple[wengert.Tensor, ...]:
    parts: list[wengert.Tensor] = []
    for out in outputs:
        parts += [getattr(out, name) for _, name in _PARTS] if out.is_complex() else [out]
    return tuple(parts)


def _output_labels(results: Sequence[wengert.Tensor], split: bool) -> dict[int, Label]:
    labels: dict[int, Label] = {}
    place = position = 0
    for out in results:
        for part in [part for part, _ in _PARTS] if split and out.is_complex() else [""]:
            if out.requires_grad:
                labels[place] = Label(position, part)
            place += 1
        position += out.requires_grad
    return labels


def _dot(a: wengert.Tensor, b: wengert.Tensor) -> wengert.Tensor:
    return (a.reshape(-1) * b).sum()


def _along(grad: wengert.Tensor, u: Sequence[wengert.Tensor]) -> wengert.Tensor:
    """The part of a gradient along a direction, kept apart for the two axes if complex."""
    if len(u) == 1:
        return _dot(grad, u[0])
    return _dot(grad.real, u[0]) + 1j * _dot(grad.imag, u[1])


def _scaled(atol: float, u: Sequence[wengert.Tensor], v: wengert.Tensor | None = None) -> float:
    """The tolerance that elementwise errors of `atol` add up to along `u` and `v`."""
    weight = max(float(vector.sum()) for vector in u)
    return atol * weight * (1.0 if v is None else float(v.sum()))
