"""Messages of errors that several modules raise."""

from __future__ import annotations

from typing import Any

import numpy as np


def shape_text(shape: tuple[int, ...]) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"


def broadcast_error(name: str, args: tuple, cause: ValueError) -> Exception:
    """For operands whose shapes do not broadcast; any other ValueError is passed through."""
    shapes = [a.shape for a in args if isinstance(a, np.ndarray)]
    for i, left in enumerate(shapes):
        for right in shapes[i + 1 :]:
            for offset, (a, b) in enumerate(zip(reversed(left), reversed(right), strict=False)):
                if a != b and a != 1 and b != 1:
                    dim = max(len(left), len(right)) - 1 - offset
                    return RuntimeError(
                        f"The size of tensor a ({a}) must match the size of tensor b ({b}) at "
                        f"non-singleton dimension {dim}: {name}() got shapes "
                        + " and ".join(shape_text(s) for s in shapes)
                    )
    return cause


def wrong_argument(
    called: Any, args: tuple, kwargs: dict, error: AttributeError
) -> Exception | None:
    """For a public function that asked one of its arguments for what only tensors have."""
    code = getattr(called.function, "__code__", None)
    if code is None or error.name is None:
        return None
    named = code.co_varnames[: code.co_argcount]
    skipped = called.__qualname__.startswith("Tensor.")
    for i, value in enumerate(args):
        if value is error.obj and not hasattr(value, "requires_grad"):
            name = f"'{named[i]}' " if i < len(named) else ""
            return _not_a_tensor(called.__name__, f"{name}(position {i + 1 - skipped})", value)
    for name, value in kwargs.items():
        if value is error.obj and not hasattr(value, "requires_grad"):
            return _not_a_tensor(called.__name__, f"'{name}'", value)
    return None


def _not_a_tensor(function: str, argument: str, value: Any) -> TypeError:
    return TypeError(
        f"{function}(): argument {argument} must be Tensor, not {type(value).__name__}"
    )


def dimension_error(dim: int, ndim: int) -> IndexError:
    low, high = -max(ndim, 1), max(ndim, 1) - 1
    return IndexError(
        f"Dimension out of range (expected to be in range of [{low}, {high}], but got {dim})"
    )


def inference_update_error() -> RuntimeError:
    """For an in-place change, outside inference mode, of a tensor that was made in it."""
    return RuntimeError(
        "Inplace update to inference tensor outside InferenceMode is not allowed: its version is "
        "not counted. Change a clone()"
    )


def inplace_view_error(t: Any, indirect: bool) -> RuntimeError:
    """For an in-place change through (or, `indirect`, behind) a view that forbids it."""
    from .tensor import VIEW_INFERENCE, VIEW_MULTI_OUTPUT, VIEW_NO_GRAD

    creation = t.view_meta.creation
    change = (
        "its base or another view of its base has been modified inplace"
        if indirect
        else "is being modified inplace"
    )
    if t.node is None or creation in (VIEW_NO_GRAD, VIEW_INFERENCE):
        mode = "inference mode" if creation == VIEW_INFERENCE else "no_grad mode"
        what = f"A view was created in {mode} and {change} with grad mode enabled."
    else:
        what = f"Output {t.output_index} of {t.node.name()} is a view and {change}."
    if creation == VIEW_MULTI_OUTPUT:
        return RuntimeError(
            f"{what} It is the output of a function that returns multiple views, none of which may "
            "be changed: autograd could not tell what becomes of the others. Use the out-of-place "
            "form, or select the part by indexing."
        )
    if creation in (VIEW_NO_GRAD, VIEW_INFERENCE):
        return RuntimeError(
            f"{what} It is unclear whether the change is meant to be recorded: make the view and "
            "the change in the same mode."
        )
    return RuntimeError(
        f"{what} It was created inside a custom Function, whose backward the change would bypass: "
        "return a clone() from the Function."
    )
