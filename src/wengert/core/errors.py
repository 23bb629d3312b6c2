"""Messages of errors that several modules raise, and warnings that name the user's line."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from . import PACKAGE_FOLDER
from .tensor import VIEW_INFERENCE, VIEW_MULTI_OUTPUT, VIEW_NO_GRAD, Tensor


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn about the innermost line outside this package; compiled modules have no frames."""
    level, frame = 1, sys._getframe(0)
    while frame.f_code.co_filename.startswith(PACKAGE_FOLDER) and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


_C_NAMES = {
    "uint8": "unsigned char", "int8": "signed char", "int16": "short int", "int64": "long int",
    "int32": "int", "uint16": "unsigned short", "uint32": "unsigned int",
    "uint64": "unsigned long", "float16": "c10::Half", "bfloat16": "c10::BFloat16",
    "float32": "float", "float64": "double", "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}  # fmt: skip


def c_name(dtype: Any) -> str:
    """The name of a dtype's elements in C++, by which programs match some messages."""
    return _C_NAMES.get(dtype.name, dtype.name)


def shape_text(shape: tuple[int, ...]) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"


def broadcast_error(name: str, args: tuple, cause: Exception) -> Exception:
    """For operands whose shapes do not broadcast; if they do, `cause` is passed through."""
    shapes = [a.shape for a in args if hasattr(a, "strides")]
    for i, left in enumerate(shapes):
        for right in shapes[i + 1 :]:
            for offset, (a, b) in enumerate(zip(reversed(left), reversed(right), strict=False)):
                if a != b and a != 1 and b != 1:
                    dim = max(len(left), len(right)) - 1 - offset
                    return RuntimeError(
                        f"The size of tensor a ({a}) must match the size of tensor b ({b}) at "
                        f"non-singleton dimension {dim}: {name.lstrip('_')}() got shapes "
                        + " and ".join(shape_text(s) for s in shapes)
                    )
    return cause


def argument_error(
    cause: AttributeError | DimensionError,
    name: str,
    parameters: tuple,
    args: tuple,
    kwargs: dict[str, Any],
) -> Exception:
    """For an argument that should have been a tensor; any other AttributeError is passed through.

    It failed where a function read an attribute that tensors have. A dimension that there is not
    gets the name of the function and the shape of its tensor.
    """
    if isinstance(cause, DimensionError):
        return cause.of_call(name, args)
    given = cause.obj
    if isinstance(given, Tensor) or not hasattr(Tensor, cause.name or ""):
        return cause
    places = [(i, parameters[i] if i < len(parameters) else "") for i in range(len(args))]
    places += [(parameters.index(key) if key in parameters else -1, key) for key in kwargs]
    for (i, parameter), value in zip(places, (*args, *kwargs.values()), strict=True):
        if value is given or type(value) is type(given) is list:  # operators copy lists
            return TypeError(
                f"{name}(): argument '{parameter}' (position {i + 1}) must be Tensor, not "
                + type(given).__name__
            )
        for element, item in enumerate(value) if isinstance(value, (list, tuple)) else ():
            if item is given:
                return TypeError(
                    f"{name}(): expected Tensor as element {element} in argument {i}, but got "
                    + type(given).__name__
                )
    return cause


def name_and_parameters(function: Any) -> tuple[str, tuple]:
    """What a Python function is called, and its parameters that may be given by position."""
    code = getattr(function, "__code__", None)
    return function.__name__, () if code is None else code.co_varnames[: code.co_argcount]


class DimensionError(IndexError):
    """A dimension that a tensor does not have; the public call that meets it adds what it knows."""

    def of_call(self, name: str, args: tuple) -> IndexError:
        """The error with the name of the function and the shape of its first tensor."""
        first = next((a for a in args if isinstance(a, Tensor)), None)
        if first is None and args and isinstance(args[0], (tuple, list)):
            first = next((a for a in args[0] if isinstance(a, Tensor)), None)
        if first is None:
            return IndexError(str(self))
        name = name.partition(".")[0].lstrip("_")
        return IndexError(f"{self}: {name}() got a tensor of shape {shape_text(first.array.shape)}")


def dimension_error(dim: int, ndim: int) -> DimensionError:
    low, high = -max(ndim, 1), max(ndim, 1) - 1
    return DimensionError(
        f"Dimension out of range (expected to be in range of [{low}, {high}], but got {dim})"
    )


def refuse_inference_update(t: Any) -> None:
    """Refuse to change, outside inference mode, a tensor that was made in it.

    What detach() returned outside of it counts its own versions and may be changed.
    """
    if t.cold is None or not t.cold.counts_versions:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed: its version "
            "is not counted. Change a clone()"
        )


def inplace_view_error(t: Any, indirect: bool) -> RuntimeError:
    """For an in-place change through (or, `indirect`, behind) a view that forbids it."""
    creation = t.view_meta.creation
    change = (
        "its base or another view of its base has been modified inplace"
        if indirect
        else "is being modified inplace"
    )
    if creation == VIEW_INFERENCE:
        what = f"A view was created in inference mode and {change} in normal mode."
    elif t.node is None or creation == VIEW_NO_GRAD:
        what = f"A view was created in no_grad mode and {change} with grad mode enabled."
    else:
        what = f"Output {t.output_index} of {t.node.name()} is a view and {change}."
    if creation == VIEW_MULTI_OUTPUT:
        return RuntimeError(
            f"{what} This view is the output of a function that returns multiple views. None of "
            "them may be changed: autograd could not tell what becomes of the others. Use the "
            "out-of-place form, or select the part by indexing."
        )
    if creation in (VIEW_NO_GRAD, VIEW_INFERENCE):
        return RuntimeError(
            f"{what} Given that this use case is ambiguous and error-prone, it is forbidden: make "
            "the view and the change in the same mode, which says whether to record the change."
        )
    return RuntimeError(
        f"{what} This view was created inside a custom Function (or because an input was returned "
        "as-is), whose backward the change would bypass: return a clone() from the Function."
    )
