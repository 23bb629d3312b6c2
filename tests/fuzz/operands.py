"""Tensors to begin with: literals in many dtypes and memory layouts, and what is there already."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fuzz.writing import Writer

SHAPES = [(), (3,), (2, 3), (3, 2), (2, 1), (1, 3), (2, 2, 2), (4,), (3, 3), (0,), (2, 0)]
FLOATS = ["float64"] * 6 + ["float32"] * 2 + ["bfloat16", "float16"]
COMPLEX = ["complex128"] * 3 + ["complex64"]
INTEGERS = ["int64"] * 3 + ["int32", "int16", "int8", "uint8", "bool"]
OF_KIND = {"real": FLOATS, "complex": COMPLEX, "integer": INTEGERS}


def number(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (complex, np.complexfloating)):
        return repr(complex(round(value.real, 3), round(value.imag, 3)))
    value = float(value)
    if not math.isfinite(value):
        return f"float('{value}')"
    return repr(round(value, 3))


def nested(array: np.ndarray) -> str:
    if array.ndim == 0:
        return number(array[()])
    return "[" + ", ".join(nested(part) for part in array) + "]"


def literal(array: np.ndarray, dtype: str, grad: bool = False) -> str:
    """The source of a tensor."""
    if dtype == "uint8":
        array = np.abs(array)
    end = f"dtype=torch.{dtype}" + (", requires_grad=True" if grad else "")
    if array.size == 0:
        return f"torch.zeros({tuple(array.shape)}, {end})"
    if dtype == "int64" and array.dtype.kind == "i" and not grad:
        return f"torch.tensor({nested(array)})"
    if dtype == "bool" and array.dtype.kind == "b":
        return f"torch.tensor({nested(array)})"
    return f"torch.tensor({nested(array)}, {end})"


def entries(w: Writer, shape: tuple, dtype: str) -> np.ndarray:
    """Numbers of moderate size, with a zero or a special value now and then."""
    count = math.prod(shape)
    if dtype == "bool":
        return np.array([w.chance(0.5) for _ in range(count)], bool).reshape(shape)
    if not dtype.startswith(("float", "bfloat", "complex")):
        return np.array([w.rng.randrange(-3, 4) for _ in range(count)], np.int64).reshape(shape)
    values = np.array([w.rng.uniform(-1.6, 1.6) for _ in range(count)])
    if dtype.startswith("complex"):
        values = values + 1j * np.array([w.rng.uniform(-1.6, 1.6) for _ in range(count)])
    if count and w.chance(0.05):
        values[w.rng.randrange(count)] = w.choice([0.0, 1.0, -1.0])
    return values.reshape(shape)


def differentiable(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat", "complex"))


def leaf(w: Writer, dtype: str | None = None, shape: tuple | None = None) -> str | None:
    """A new leaf that most often requires grad."""
    dtype = dtype or w.choice(FLOATS if w.chance(0.85) else COMPLEX + INTEGERS)
    shape = w.choice(SHAPES) if shape is None else shape
    grad = differentiable(dtype) and w.chance(0.85)
    return w.make(literal(entries(w, shape, dtype), dtype, grad))


def laid_out(
    w: Writer, array: np.ndarray, dtype: str, grad: bool, exact: bool = False
) -> str | None:
    """A tensor with these entries in some memory layout: itself, or a view of a leaf.

    Unless it must be exact, some of the entries may be those of others.
    """
    shape = array.shape
    layout = w.rng.randrange(8)
    if exact and layout in (3, 4):
        layout = 5
    if layout == 0 and array.ndim > 1:
        moved = np.moveaxis(array, 0, -1)
        base = w.make(literal(moved, dtype, grad))
        return base and w.make(f"{base}.movedim(-1, 0)")
    if layout == 1 and array.ndim and array.size:
        base = w.make(literal(np.repeat(array, 2, -1), dtype, grad))
        return base and w.make(f"{base}[..., ::2]")
    if layout == 2 and array.ndim and array.size:
        base = w.make(literal(np.concatenate([array[:1], array]), dtype, grad))
        return base and w.make(f"{base}[1:]")
    if layout == 3 and array.ndim and array.size:
        dim = w.rng.randrange(array.ndim)
        base = w.make(literal(np.take(array, [0], dim), dtype, grad))
        return base and w.make(f"{base}.expand{tuple(shape)!r}")
    if layout == 4 and array.ndim and array.size:
        strides = [w.choice([1, 1, 2]) for _ in shape]
        length = 1 + sum((n - 1) * s for n, s in zip(shape, strides))
        base = w.make(literal(np.resize(array, length), dtype, grad))
        return base and w.make(f"{base}.as_strided({tuple(shape)!r}, {tuple(strides)!r})")
    return w.make(literal(array, dtype, grad))


def operand(w: Writer, array: np.ndarray, dtype: str, exact: bool = False) -> str | None:
    """A tensor in the place of an array: one that is there and has its shape, or a new one."""
    if not exact and w.chance(0.6):
        there = w.pick(lambda t: tuple(t.shape) == array.shape and dtype_of(t) == dtype)
        if there is not None:
            return there
    grad = differentiable(dtype) and not w.facts.get("inside") and w.chance(0.8)
    return laid_out(w, array, dtype, grad, exact)


def dtype_of(t: Any) -> str:
    return str(t.dtype).rpartition(".")[2]


def floating(t: Any) -> bool:
    return t.is_floating_point() or t.is_complex()


def recorded(t: Any) -> bool:
    """Whether a tensor can be differentiated and looked at.

    A view made under no_grad of what requires grad has no edge; a hook on it crashes PyTorch.
    """
    if not t.requires_grad:
        return False
    try:
        return not (t._is_view() and t.grad_fn is None)
    except RuntimeError:
        return False


def broadcasts(x: Any, y: Any) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(reversed(x.shape), reversed(y.shape)))


def fits_into(x: Any, y: Any) -> bool:
    return y.dim() <= x.dim() and all(
        n in (1, m) for m, n in zip(reversed(x.shape), reversed(y.shape))
    )


def overlaps_itself(x: Any, expanded: bool = True) -> bool:
    """Whether elements may share their memory; what writing to them does is undefined then.

    Unless `expanded`, those that expand() repeats do not count.
    """
    steps = sorted((s, n) for n, s in zip(x.shape, x.stride()) if n > 1 and (s or expanded))
    reach = 0
    for step, size in steps:
        if step <= reach:
            return True
        reach += step * (size - 1)
    return False


def apart(x: Any, y: Any) -> bool:
    """Whether two tensors are the same, or of different memory."""
    same = x.data_ptr() == y.data_ptr() and x.shape == y.shape and x.stride() == y.stride()
    return same or memory(x) != memory(y)


def memory(x: Any) -> int:
    """Where the memory that a tensor lies in begins."""
    return x.data_ptr() - x.storage_offset() * x.element_size()
