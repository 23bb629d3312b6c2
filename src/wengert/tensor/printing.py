"""The text of a tensor, in the layout PyTorch users know."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..backends.placement import of_array, transfer
from ..core import dtypes
from ..core.arrays import LevelArray, WrapperArray
from ..core.devices import CPU
from ..core.state import thread_state
from ..core.tensor import Tensor
from ..tape.tangents import tangent_of


class PrintOptions:
    """What `set_printoptions` sets; `sci_mode` None lets the values decide."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


options = PrintOptions()

_PROFILES: dict[str, tuple[int, float, int, int]] = {
    "default": (4, 1000, 3, 80),
    "short": (2, 1000, 2, 80),
    "full": (4, math.inf, 3, 80),
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed: a profile ("default", "short", "full") and then single options.

    `sci_mode` is always set; None lets the values decide.
    """
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(f"unknown profile {profile!r}; choose from {sorted(_PROFILES)}")
        chosen = _PROFILES[profile]
        options.precision, options.threshold, options.edgeitems, options.linewidth = chosen
    if precision is not None:
        options.precision = precision
    if threshold is not None:
        options.threshold = threshold
    if edgeitems is not None:
        options.edgeitems = edgeitems
    if linewidth is not None:
        options.linewidth = linewidth
    options.sci_mode = sci_mode


def tensor_repr(tensor: Tensor, contents: str | None = None) -> str:
    """The tensor's values, and of its type, device and history what is not the default.

    A class that knows better what its instances stand for gives `contents` in place of values.
    """
    if type(tensor.array) is LevelArray:
        return _level_text(tensor.array)
    name = type(tensor).__name__
    prefix = "tensor(" if name in ("Tensor", "Parameter") else f"{name}("
    heading = "Parameter containing:\n" if name == "Parameter" else ""
    values, notes = _values_and_notes(tensor, len(prefix), contents)
    notes += _history(tensor) + _tangent(tensor)
    return heading + _with_notes(prefix + values, notes, len(prefix)) + ")"


def _level_text(array: LevelArray) -> str:
    """A tensor inside a transform: the level and, indented, the value."""
    lines = [line and "    " + line for line in tensor_repr(array.value).split("\n")]
    return "\n".join([array.level.heading(array), *lines, ")"])


def _values_and_notes(
    tensor: Tensor, indent: int, contents: str | None = None
) -> tuple[str, list[str]]:
    array = tensor.array
    kind = dtypes.from_numpy(array.dtype)
    default = dtypes.get_default_dtype()
    place = of_array(array)
    notes = [] if place.type == "cpu" else [f"device='{place}'"]
    size_note, type_note = f"size={array.shape}", f"dtype={kind!r}"
    hidden = place.type == "meta" or (type(array) is WrapperArray and contents is None)
    if hidden or array.size == 0:
        if hidden or array.ndim != 1:
            notes.append(size_note)
        if kind is not default:
            notes.append(type_note)
        return contents or ("..." if hidden else "[]"), notes
    if options.edgeitems == 0:
        notes.append(size_note)
    if kind not in (default, default.to_complex(), dtypes.int64, dtypes.bool):
        notes.append(type_note)
    if contents is not None:
        return contents, notes
    return _values_text(transfer(array, CPU), kind, indent), notes


def _history(tensor: Tensor) -> list[str]:
    try:
        node: Any = tensor.grad_fn
    except RuntimeError:
        # A view that an in-place change has made unusable still must be printable.
        return ["grad_fn=<Invalid>"]
    if node is not None:
        return [f"grad_fn=<{node.name()}>"]
    return ["requires_grad=True"] if tensor.requires_grad else []


def _tangent(tensor: Tensor) -> list[str]:
    if thread_state().dual_level < 0:
        return []
    tangent = tangent_of(tensor)
    return [] if tangent is None else [f"tangent={tensor_repr(tangent)}"]


def _with_notes(text: str, notes: list[str], indent: int) -> str:
    """Append notes, on a new line each time the current one is full."""
    used = len(text) - text.rfind("\n") + 1
    for note in notes:
        if used + len(note) + 2 > options.linewidth:
            text += ",\n" + " " * indent + note
            used = indent + len(note)
        else:
            text += ", " + note
            used += len(note) + 2
    return text


# The values.


class _NumberFormat:
    """One width and one notation for all the real numbers shown of a tensor."""

    def __init__(self, shown: Any, kind: dtypes.dtype) -> None:
        self.floating = kind.category >= dtypes.FLOATING
        self.whole = True
        self.scientific = False
        self.width = 1
        if not self.floating:
            self.width = max([len(str(value)) for value in shown.ravel().tolist()], default=1)
            return
        values = shown.astype(np.float64).ravel()
        values = values[np.isfinite(values) & (values != 0)]
        if values.size == 0:
            return
        smallest, largest = np.abs(values).min(), np.abs(values).max()
        self.whole = bool(np.all(values == np.ceil(values)))
        self.scientific = bool(
            largest / smallest > 1000.0 or largest > 1.0e8 or (not self.whole and smallest < 1.0e-4)
        )
        if options.sci_mode is not None:
            self.scientific = options.sci_mode
        self.width = max(self.width, max(len(self._number(value)) for value in values.tolist()))

    def _number(self, value: Any) -> str:
        if not self.floating:
            return str(value)
        if self.scientific:
            return f"{value:.{options.precision}e}"
        if not self.whole:
            return f"{value:.{options.precision}f}"
        return f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}"

    def __call__(self, value: Any) -> str:
        return self._number(value).rjust(self.width)


class _ComplexFormat:
    """Real and imaginary parts, each with a format of its own."""

    def __init__(self, shown: Any, kind: dtypes.dtype) -> None:
        self.real = _NumberFormat(shown.real, kind)
        self.imag = _NumberFormat(shown.imag, kind)
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, value: complex) -> str:
        imag = self.imag(value.imag).lstrip()
        sign = "" if imag.startswith("-") else "+"
        return f"{self.real(value.real)}{sign}{imag}j"


def _values_text(array: Any, kind: dtypes.dtype, indent: int) -> str:
    if kind is dtypes.bfloat16:
        array = array.astype(np.float32)
    summarize = array.size > options.threshold
    shown = _edges(array) if summarize else array
    number: Any = (_ComplexFormat if kind.is_complex else _NumberFormat)(shown, kind)
    if array.ndim == 0:
        return str(number(array.item()))
    return _block(array, number, indent, summarize)


def _edges(array: Any) -> Any:
    """The values that a summary shows."""
    edge = options.edgeitems
    for dim, extent in enumerate(array.shape):
        if extent > 2 * edge:
            kept = [*range(edge), *range(extent - edge, extent)]
            array = array.take(kept, dim)
    return array


def _block(array: Any, number: Any, indent: int, summarize: bool) -> str:
    """Nested brackets: the last dimension in lines, the others one below the other."""
    edge = options.edgeitems
    gap = summarize and len(array) > 2 * edge
    head, tail = (array[:edge], array[len(array) - edge :]) if gap else (array, array[:0])
    if array.ndim == 1:
        items = [number(value) for value in head.tolist()]
        if gap:
            items += [" ..."] * bool(edge) or ["..."]
            items += [number(value) for value in tail.tolist()]
        per_line = max(1, (options.linewidth - indent) // (number.width + 2))
        lines = [", ".join(items[i : i + per_line]) for i in range(0, len(items), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
    blocks = [_block(each, number, indent + 1, summarize) for each in head]
    if gap:
        blocks += ["..."] + [_block(each, number, indent + 1, summarize) for each in tail]
    between: str = "," + "\n" * (array.ndim - 1) + " " * (indent + 1)
    return "[" + between.join(blocks) + "]"
