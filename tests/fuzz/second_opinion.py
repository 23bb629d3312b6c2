"""Libraries with some functions in another form, which tells why a program differs.

PyTorch's rules for forward mode and for batches are written apart from those for gradients. Where
the two contradict each other, one of them is a mistake: transforms by reverse mode and loops alone
are its second opinion. Functions that jump at zero differ where zeros have no determined sign, or
belong to the other side in PyTorch's rules: away from zero, both libraries must agree. Tangents of
dual tensors are what two runs with numbers moved along them give.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any


class SecondOpinion:
    """A library whose transforms know reverse mode only, and take one row or example at a time."""

    def __init__(self, lib: Any) -> None:
        self._lib = lib
        own = lib.func

        def jacrev(f: Callable, argnums: Any = 0, *, chunk_size: int | None = None) -> Callable:
            def compute(*args: Any) -> Any:
                try:
                    return own.jacrev(f, argnums, chunk_size=1)(*args)
                except AssertionError:  # a result without elements has no row
                    return own.jacrev(f, argnums)(*args)

            return compute

        def hessian(f: Callable, argnums: Any = 0) -> Callable:
            return jacrev(jacrev(f, argnums), argnums)

        def jvp(f: Callable, primals: tuple, tangents: tuple) -> tuple:
            value, pull = own.vjp(f, *primals)
            nothing = _each(lib.zeros_like, value)
            _, pull_again = own.vjp(pull, nothing)
            return value, pull_again(tuple(tangents))[0]

        self.func = SimpleNamespace(
            grad=own.grad, grad_and_value=own.grad_and_value, vjp=own.vjp, jvp=jvp, jacrev=jacrev,
            jacfwd=jacrev, hessian=hessian, vmap=own.vmap, linearize=own.linearize,
        )  # fmt: skip

        def plainly(function: Callable) -> Callable:
            def differentiate(f: Callable, inputs: Any, **options: Any) -> Any:
                for name in ("vectorize", "strategy", "outer_jacobian_strategy"):
                    options.pop(name, None)
                return function(f, inputs, **options)

            return differentiate

        self.autograd = Replaced(
            lib.autograd,
            lambda name, value: plainly(value) if name in ("jacobian", "hessian") else value,
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lib, name)


class Forward:
    """A library whose `autograd.functional.jvp` takes the tangent in forward mode."""

    def __init__(self, lib: Any) -> None:
        self._lib = lib

        def jvp(f: Callable, inputs: Any, v: Any = None, **options: Any) -> tuple:
            primals = inputs if isinstance(inputs, tuple) else (inputs,)
            given = v if isinstance(v, tuple) or v is None else (v,)
            tangents = tuple(map(lib.ones_like, primals)) if given is None else given
            return lib.func.jvp(f, tuple(map(lib.Tensor.detach, primals)), tangents)

        self.autograd = Replaced(
            lib.autograd, lambda name, value: jvp if name == "jvp" else value
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lib, name)


class Moved:
    """A library whose dual tensors are moved along their tangents by a small step.

    The tangent of a tensor is a copy of it, so that two runs tell how it changes.
    """

    def __init__(self, lib: Any, step: float) -> None:
        self._lib = lib
        forward_ad = SimpleNamespace(
            enter_dual_level=lambda: 0,
            exit_dual_level=lambda: None,
            make_dual=lambda x, tangent: x + step * tangent,
            unpack_dual=lambda x: SimpleNamespace(primal=x, tangent=x.detach().clone()),
        )
        self.autograd = Replaced(
            lib.autograd, lambda name, value: forward_ad if name == "forward_ad" else value
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lib, name)


class Copying:
    """A library with a function that computes with copies, unless it makes a view."""

    def __init__(self, lib: Any) -> None:
        self._lib = lib

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lib, name)

    def copied(self, compute: Callable, on_copies: Callable, operands: tuple) -> Any:
        """What `compute` returns if that lies in operands, else a copy of the other's result."""
        made = compute()
        if not all(isinstance(part, self._lib.Tensor) for part in _flat(made)):
            return made
        return made if self._lies_in(made, operands) else _each(self._lib.clone, on_copies())

    def _lies_in(self, made: Any, operands: tuple) -> bool:
        """Whether a part of a result is one of the operands, or a view of their memory."""
        given = {id(self._memory(tensor)) for tensor in _flat(operands)}
        return any(id(self._memory(part)) in given for part in _flat(made))

    def _memory(self, value: Any) -> Any:
        """The tensor that a tensor is a view of, or itself."""
        is_view = isinstance(value, self._lib.Tensor) and value._is_view()
        return value._base if is_view else value


class InRows(Copying):
    """A library with a function that makes results lie in row-major order, unless they are views.

    In which order they lie otherwise, a view by strides tells.
    """

    def in_rows(self, made: Any, operands: tuple) -> Any:
        return made if self._lies_in(made, operands) else _each(self._contiguous, made)

    def _contiguous(self, part: Any) -> Any:
        return part.contiguous() if isinstance(part, self._lib.Tensor) else part


#: Names that programs give to tensors.
NAMES = re.compile(r"\b[dgrtx]\d+\b")
#: A line that names what it computes, shares no memory secretly and changes nothing.
COMPUTED = re.compile(
    r"^( *(?:t\d+, )*t\d+ = )"
    r"(?!.*(?:[a-z0-9]_\(|out=|checkpoint|\.data\b|\.detach\(|requires_grad=))(.*)$",
    re.MULTILINE,
)


def with_copies(source: str) -> str:
    """The source of a step for a library that is `Copying`."""

    def copied(line: re.Match) -> str:
        operands = "".join(f"{name}, " for name in sorted(set(NAMES.findall(line[2]))))
        return f"{line[1]}torch.copied(lambda: {line[2]}, lambda: {cloned(line[2])}, ({operands}))"

    return COMPUTED.sub(copied, source)


#: A line that names what it computes or differentiates.
RESULTS = re.compile(COMPUTED.pattern.replace(r"t\d+", r"[gt]\d+"), re.MULTILINE)


def with_rows(source: str) -> str:
    """The source of a step for a library with results `InRows`."""

    def in_rows(line: re.Match) -> str:
        operands = "".join(f"{name}, " for name in sorted(set(NAMES.findall(line[2]))))
        return f"{line[1]}torch.in_rows({line[2]}, ({operands}))"

    return RESULTS.sub(in_rows, source)


def cloned(source: str) -> str:
    """An expression with copies of the tensors that it names, which may also be tuples of them."""
    copy = r"(\g<0>.clone() if isinstance(\g<0>, torch.Tensor) else \g<0>)"
    return NAMES.sub(copy, source)


#: A line that changes the tensor of a name, and what it is changed by.
CHANGED = re.compile(
    r"^( *([a-z]\d+)(?:\.\w+_\(|\[.*?\] = | [-+*/%]{1,2}= ))(.*)$", re.MULTILINE
)


def by_own_dtype(source: str) -> str:
    """The source of a step that changes tensors of real floats by others of the same dtype."""

    def change(line: re.Match) -> str:
        other = r"isinstance(\g<0>, torch.Tensor) and \g<0>.is_floating_point()"
        own = f"{line[2]}.is_floating_point()"
        cast = rf"(\g<0>.to({line[2]}.dtype) if {other} and {own} else \g<0>)"
        return line[1] + NAMES.sub(cast, line[3])

    return CHANGED.sub(change, source)


class Replaced:
    """A library, or a module of it, some of whose functions have a wrapper around them."""

    def __init__(self, module: Any, wrap: Callable[[str, Any], Any]) -> None:
        self._module = module
        self._wrap = wrap

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        if name in ("fft", "nn", "functional", "linalg") and not callable(value):
            return Replaced(value, self._wrap)
        return self._wrap(name, value)


#: Sums of products: one product alone may be a zero of either sign.
PRODUCTS = "matmul|b?mm|mv|add(?:mm|mv|r|bmm)|baddbmm|outer|ger|inner|linear|einsum|tensordot"


def without_zeros_of_no_sign(lib: Any) -> Any:
    """The library with transforms, products, factors, inverses whose small parts are zero, of no
    sign."""

    def wrap(name: str, function: Any) -> Any:
        computes = rf"i?[rh]?fft\w?|i?stft|cholesky(_inverse)?|inv|solve|{PRODUCTS}"
        if not re.fullmatch(computes, name):
            return function

        def transform(*args: Any, **options: Any) -> Any:
            y = function(*args, **options)
            parts = y.detach()
            parts = lib.view_as_real(parts) if parts.is_complex() else parts
            small = lib.where(parts.abs() < 1e-5, 0.0 * parts, parts) + 0.0
            exact = lib.view_as_complex(small) if y.is_complex() else small
            if "out" in options:
                y.detach().copy_(exact)
                return y
            return y + (exact - y).detach()

        return transform

    return Replaced(lib, wrap)


def conjugated_at_once(lib: Any) -> Any:
    """The library with functions that return no lazily conjugated tensors."""

    def wrap(name: str, function: Any) -> Any:
        if not re.fullmatch(r"conj|adjoint|ihfft\w?|H|mH", name):
            return function
        return lambda *args, **options: function(*args, **options).resolve_conj()

    return Replaced(lib, wrap)


def of_rows(lib: Any) -> Any:
    """The library with losses of operands in row-major order, which their derivatives are in too.

    PyTorch has all derivatives then.
    """

    def wrap(name: str, function: Any) -> Any:
        if name not in ("cross_entropy", "nll_loss"):
            return function
        return lambda x, *args, **options: function(x.flatten().view(x.shape), *args, **options)

    return Replaced(lib, wrap)


def away_from_zero(lib: Any) -> Any:
    """The library with a `prelu` that takes each zero for a small number."""

    def wrap(name: str, function: Any) -> Any:
        if name != "prelu":
            return function
        return lambda x, weight: function(x + (x.detach() == 0) * 1e-3, weight)

    return Replaced(lib, wrap)


def _each(function: Callable, value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(_each(function, item) for item in value)
    return function(value)


def _flat(value: Any) -> list:
    """The parts of nested tuples and lists."""
    if isinstance(value, (tuple, list)):
        return [part for item in value for part in _flat(item)]
    return [value]
