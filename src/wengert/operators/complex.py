"""Complex numbers: conjugates, real and imaginary parts, polar form.

NumPy cannot mark an array as conjugated, so `conj` copies where PyTorch makes a lazy view.
"""

from __future__ import annotations

from typing import Any

from ..backends.geometry import broadcast_shape, offset_of, strided
from ..backends.layout import copied, empty_for
from ..core import dtypes
from ..core.tensor import Tensor
from ..dispatch.out import copy_to_out
from ..transforms.batching import views as batched
from ..transforms.batching.rules import elementwise
from . import shapes
from .along import packed
from .copying import pack
from .declare import composite, linear, primitive
from .pointwise import abs as absolute
from .pointwise import cos, sin, where, zeros_like
from .views import select

__all__ = [
    "angle", "complex", "conj", "conj_physical", "imag", "is_conj", "is_neg", "polar", "real",
    "resolve_conj", "resolve_neg", "view_as_complex", "view_as_real",
]  # fmt: skip

_COMPLEX_OF = {
    dtypes.float32.numpy: dtypes.complex64.numpy,
    dtypes.float64.numpy: dtypes.complex128.numpy,
}
_REAL_OF = {c: r for r, c in _COMPLEX_OF.items()}

# Conjugates --------------------------------------------------------------------------------------

_conjugate = linear(
    "_conj(Tensor self) -> Tensor",
    lambda xp, x: xp.conj(x),
    lambda g: g.conj(),
    name="ConjBackward0",
    shape=shapes.as_first,
    batch=elementwise,
    involution=True,
    doc="The complex conjugate.",
)
_conjugate_physical = linear(
    "conj_physical(Tensor self) -> Tensor",
    lambda xp, x: xp.conj(x) if x.dtype.kind == "c" else x,  # NumPy makes integers of bools
    lambda g: conj_physical(g),
    inplace="ConjPhysicalBackward1",
    shape=shapes.as_first,
    batch=elementwise,
    involution=True,
    doc="The complex conjugate.",
)


def _is_complex(input: Tensor) -> bool:
    return input.array.dtype.kind == "c"


@composite(numpy="conjugate")
def conj(input: Tensor) -> Tensor:
    """The complex conjugate; a real tensor is its own."""
    return _conjugate.call1(input) if _is_complex(input) else input


def conj_physical(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The complex conjugate as a copy; a real tensor is its own."""
    result = _conjugate_physical.call1(input) if _is_complex(input) else input
    return result if out is None else copy_to_out("conj_physical", result, out, (), True)


def resolve_conj(input: Tensor) -> Tensor:
    """The tensor itself: conjugation is never left for later."""
    return input


def resolve_neg(input: Tensor) -> Tensor:
    """The tensor itself: negation is never left for later."""
    return input


def is_conj(input: Tensor) -> bool:
    """False: conjugation is never left for later."""
    return False


def is_neg(input: Tensor) -> bool:
    """False: negation is never left for later."""
    return False


# Parts -------------------------------------------------------------------------------------------


def _view_as_real(xp: Any, x: Any) -> Any:
    if x.dtype.kind != "c":
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return x[..., None].view(_REAL_OF[x.dtype])


def _view_as_complex(xp: Any, x: Any) -> Any:
    kind = _COMPLEX_OF.get(x.dtype)
    if kind is None:
        raise RuntimeError(
            "view_as_complex is only supported for float and double tensors, but got a tensor of "
            f"scalar type: {dtypes.from_numpy(x.dtype).scalar_name}"
        )
    if not x.ndim:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if x.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if x.size:
        _check_pairs(x)
    pairs = x.view(kind)[..., 0]
    if any(step % pairs.itemsize for step in pairs.strides):  # of a dimension with one element
        whole = tuple([step - step % pairs.itemsize for step in pairs.strides])
        return strided(pairs, pairs.shape, whole)
    return pairs


def _check_pairs(x: Any) -> None:
    """Refuse memory in which the pairs of numbers do not lie like complex ones."""
    item = x.dtype.itemsize
    if x.strides[-1] != item:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(step % (2 * item) for step, n in zip(x.strides[:-1], x.shape[:-1]) if n > 1):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    if offset_of(x) % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")


def _as_complex(g: Tensor) -> Tensor:
    """A gradient of (real, imaginary) pairs as complex numbers."""
    if not g.array.flags.c_contiguous:
        g = pack.call1(g)
    return view_as_complex.call((g,))


view_as_real = linear(
    "view_as_real(Tensor(a) self) -> Tensor(a)",
    _view_as_real,
    lambda g: _as_complex(g),
    view=True,
    batch=batched.in_place,
    doc="A complex tensor as a real one with a last dimension for real and imaginary part.",
    public="function",
)
view_as_complex = linear(
    "view_as_complex(Tensor(a) self) -> Tensor(a)",
    _view_as_complex,
    lambda g: view_as_real.call((g,)),
    view=True,
    batch=batched.reinterpreted,
    doc="A real tensor with a last dimension of size two as a complex one.",
    public="function",
)


@composite(public="function")
def real(input: Tensor) -> Tensor:
    """The real part as a view; a real tensor is its own."""
    if not _is_complex(input):
        return input
    return select.call((view_as_real.call((input,)), -1, 0))


@composite(public="function")
def imag(input: Tensor) -> Tensor:
    """The imaginary part as a view."""
    if not _is_complex(input):
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return select.call((view_as_real.call((input,)), -1, 1))


# From two real tensors ---------------------------------------------------------------------------


def _pair(xp: Any, name: str, first: Any, second: Any) -> Any:
    """An empty complex array for two real ones."""
    if first.dtype not in _COMPLEX_OF or second.dtype not in _COMPLEX_OF:
        raise RuntimeError(
            f"{name}(): Expected both inputs to be Half, Float or Double tensors but got "
            f"{dtypes.from_numpy(first.dtype).scalar_name} and "
            f"{dtypes.from_numpy(second.dtype).scalar_name}"
        )
    if first.dtype != second.dtype:
        raise RuntimeError(
            f"{name}(): Expected object of scalar type "
            f"{dtypes.from_numpy(first.dtype).scalar_name} but got scalar type "
            f"{dtypes.from_numpy(second.dtype).scalar_name} for second argument"
        )
    kind = _COMPLEX_OF[first.dtype]
    shape = broadcast_shape(name, [first, second])
    return empty_for(shape, (first, second), kind)


def _complex(xp: Any, real: Any, imag: Any) -> Any:
    out = _pair(xp, "complex", real, imag)
    out.real = real
    out.imag = imag
    return out


def _complex_tangent(tangents: dict[str, Tensor], real: Tensor, imag: Tensor) -> Tensor:
    return complex(
        tangents["real"] if "real" in tangents else zeros_like(real),
        tangents["imag"] if "imag" in tangents else zeros_like(imag),
    )


complex = primitive(
    "complex(Tensor real, Tensor imag) -> Tensor",
    _complex,
    {"real": lambda g: real(g), "imag": lambda g: imag(g)},
    _complex_tangent,
    widens=False,
    shape=shapes.broadcast,
    batch=elementwise,
    doc="The complex tensor with the given real and imaginary part.",
    public="function",
)


def _polar(xp: Any, size: Any, angle: Any) -> Any:
    out = _pair(xp, "polar", size, angle)
    out.real = size * xp.cos(angle)
    out.imag = size * xp.sin(angle)
    return out


def _polar_tangent(tangents: dict[str, Tensor], abs: Tensor, angle: Tensor, out: Tensor) -> Tensor:
    total = zeros_like(out)
    if "abs" in tangents:
        total = total + tangents["abs"] * complex(cos(angle), sin(angle))
    if "angle" in tangents:
        total = total + tangents["angle"] * (out * 1j)
    return total


polar = primitive(
    "polar(Tensor abs, Tensor angle) -> Tensor",
    _polar,
    {
        "abs": lambda g, angle: real(conj(g) * complex(cos(angle), sin(angle))),
        "angle": lambda g, out: real(conj(g) * (out * 1j)),
    },
    _polar_tangent,
    widens=False,
    shape=shapes.broadcast,
    batch=elementwise,
    doc="The complex tensor with the given absolute value and angle.",
    public="function",
)


def _angle(xp: Any, x: Any) -> Any:
    if x.dtype.kind == "c":
        return packed(xp.angle(x))
    if dtypes.category_of(x.dtype) < dtypes.FLOATING:
        x = copied(x, dtypes.get_default_dtype().numpy)
    return xp.where(x < 0, xp.asarray(xp.pi, x.dtype), xp.where(x != x, x, xp.zeros_like(x)))


def _by_square(direction: Tensor, x: Tensor) -> Tensor:
    """`direction` divided by the squared absolute value of `x`, zero where that is zero."""
    size = absolute(x)
    zero = size == 0
    return where(zero, 0, direction / where(zero, 1, size * size))


def _angle_gradient(g: Tensor, x: Tensor) -> Tensor:
    return g * _by_square(x * 1j, x) if x.array.dtype.kind == "c" else zeros_like(g)


def _angle_tangent(t: Tensor, x: Tensor) -> Tensor:
    return imag(t * _by_square(conj(x), x)) if x.array.dtype.kind == "c" else zeros_like(t)


angle = primitive(
    "angle(Tensor self) -> Tensor",
    _angle,
    lambda g, self: _angle_gradient(g, self),
    lambda tangents, self: _angle_tangent(tangents["self"], self),
    shape=shapes.as_first,
    batch=elementwise,
    doc="The angle of complex numbers; of real ones zero or, for negative ones, pi.",
    out="casts",
)
