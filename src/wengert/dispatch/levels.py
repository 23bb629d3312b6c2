"""Transform levels: tensors whose array stands for a tensor one level further down.

`grad`, `jvp` and `vmap` nest. Each active transform is a `Level`; inside it, a tensor of that level
carries a `LevelArray`: shape and dtype as the function sees them, and the tensor of the level below
that holds the value, with the position of the batch dimension if the level is a `vmap`. To the
autograd and forward-mode layers a LevelArray is an array like any other. Where the kernel would
run, the operator is called again on the values (`lower`), under the modes of the level below. That
is all there is to nesting: no transform knows of another one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.arrays import LevelArray, alive, placeholder
from ..core.state import ThreadState, thread_state
from ..core.tensor import Tensor, wrap

HOOKS_REFUSED = (
    "wengert.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks: what a "
    "transform saves belongs to its level and cannot be packed. Use the hooks with "
    "autograd.grad or backward(), or leave the `with` block before the transform"
)


class Level:
    """One transform: its number while it is active, and the modes that hold outside it."""

    __slots__ = (
        "kind", "number", "batch_size", "randomness", "of_derivatives", "differentiating",
        "outer_levels", "grad_enabled", "inference", "forward_grad_enabled", "dual_level", "duals",
        "tangents_aside",
    )  # fmt: skip
    # What held outside, noted when the level is entered.
    outer_levels: list
    grad_enabled: bool
    inference: bool
    forward_grad_enabled: bool
    dual_level: int
    duals: list
    tangents_aside: bool

    def __init__(
        self, kind: str, batch_size: int = 0, randomness: str = "error"
    ) -> None:
        self.kind = kind
        self.number = 0
        self.batch_size = batch_size
        self.randomness = randomness
        self.of_derivatives = False  # a batch that autograd made: nobody could choose randomness
        self.differentiating = False

    def entered(self) -> Entered:
        """Make this the innermost level; a level that was left may be entered again."""
        return Entered(self)

    def lift(self, t: Tensor) -> Tensor:
        """A tensor of an outer level as one of this level, without a batch dimension."""
        return lifted(t, self)

    def made(self, t: Tensor) -> Tensor:
        """The same for a tensor that was created inside."""
        return self.lift(t)

    def seen(self, t: Any) -> Any:
        """What stands inside for a tensor from outside that is differentiated or asked for."""
        return t

    def call(self, operator: Any, args: tuple) -> Any:
        """What the kernel of an operator would compute from tensors of this level."""
        return lower(operator, args, self)

    def offset_of(self, array: LevelArray, begin: int) -> int:
        """Where a tensor of this level begins in memory, `begin` as far as its array tells."""
        below = array.value.array
        if type(below) is LevelArray and array.dim is None:
            return below.level.offset_of(below, begin)
        return begin

    def below(self) -> Below:
        """The modes of the level below, for calling operators on values."""
        return Below(self)


class Entered:
    """Context manager in whose block a level is the innermost one."""

    __slots__ = ("level", "state", "refusal")

    def __init__(self, level: Level) -> None:
        self.level = level

    def __enter__(self) -> Level:
        level, state = self.level, thread_state()
        if level.number:
            raise RuntimeError(f"the {level.kind} transform is entered while it is active")
        if level.kind == "grad" and state.saved_hooks:
            raise RuntimeError(HOOKS_REFUSED)
        self.state = state
        self.refusal = state.saved_hooks_disabled
        level.outer_levels = state.levels
        level.grad_enabled = state.grad_enabled
        level.inference = state.inference
        level.forward_grad_enabled = state.forward_grad_enabled
        level.dual_level = state.dual_level
        level.duals = state.duals
        level.tangents_aside = state.tangents_aside
        level.number = len(state.levels) + 1
        state.layers += not state.levels
        state.levels = [*state.levels, level]
        if level.kind == "grad":
            state.grad_enabled = True
            state.inference = False
            state.saved_hooks_disabled = HOOKS_REFUSED
        elif level.kind == "jvp":
            state.forward_grad_enabled = True
            set_duals(state, 0, [], False)
        return level

    def __exit__(self, *exception: object) -> None:
        level, state = self.level, self.state
        level.number = 0
        state.levels = level.outer_levels
        state.layers -= not state.levels
        if level.kind in ("grad", "trace"):
            state.grad_enabled = level.grad_enabled
            state.inference = level.inference
            state.saved_hooks_disabled = self.refusal
        elif level.kind == "jvp":
            state.forward_grad_enabled = level.forward_grad_enabled
            set_duals(state, level.dual_level, level.duals, level.tangents_aside)


class Below:
    """Context manager in whose block the modes of the level below hold."""

    __slots__ = ("level", "state", "saved")

    def __init__(self, level: Level) -> None:
        self.level = level

    def __enter__(self) -> ThreadState:
        check_alive(self.level)
        self.state = thread_state()
        self.saved = descend(self.state, self.level.number - 1)
        return self.state

    def __exit__(self, *exception: object) -> None:
        ascend(self.state, self.saved)


class OutsideAllLevels:
    """Context manager for operators that no level is to see and that are not recorded."""

    __slots__ = ("state", "saved")

    def __enter__(self) -> None:
        self.state = thread_state()
        self.saved = descend(self.state, 0)
        self.state.grad_enabled = False

    def __exit__(self, *exception: object) -> None:
        ascend(self.state, self.saved)


def set_duals(state: ThreadState, level: int, duals: list, aside: bool) -> None:
    """Switch to another forward-mode level; one that is not put aside counts as a layer."""
    counts = level >= 0 and not aside
    state.layers += counts - (state.dual_level >= 0 and not state.tangents_aside)
    state.dual_level = level
    state.duals = duals
    state.tangents_aside = aside


def descend(state: ThreadState, number: int) -> tuple:
    """Take on the modes that hold at level `number`, leaving those further in; for `ascend`.

    A mode switched off inside a transform is off for the levels below it too, as these see the
    same operations; what an enclosing level has switched off, the transform has switched on for
    itself only. While a transform differentiates, recording is off at its own level alone.
    """
    levels = state.levels
    saved = (
        levels, state.grad_enabled, state.inference, state.forward_grad_enabled, state.dual_level,
        state.duals, state.tangents_aside,
    )  # fmt: skip
    for level in reversed(levels[number:]):
        if level.kind == "grad":
            state.grad_enabled = level.grad_enabled and (
                state.grad_enabled or level.differentiating
            )
            state.inference = level.inference or state.inference
        elif level.kind == "jvp":
            state.forward_grad_enabled = level.forward_grad_enabled and state.forward_grad_enabled
            set_duals(state, level.dual_level, level.duals, level.tangents_aside)
    state.levels = levels[:number]
    state.layers -= bool(levels) and not number
    return saved


def ascend(state: ThreadState, saved: tuple) -> None:
    """Undo `descend`."""
    state.layers += bool(saved[0]) and not state.levels
    state.levels, state.grad_enabled, state.inference, state.forward_grad_enabled = saved[:4]
    set_duals(state, saved[4], saved[5], saved[6])


def level_array(value: Tensor, level: Level, dim: int | None = None) -> LevelArray:
    """The array of `value` as seen from `level`, without its batch dimension `dim`."""
    array = value.array
    if dim is not None:
        shape, strides = array.shape, array.strides
        if shape[dim] and isinstance(array, np.ndarray):
            array = np.ndarray.__getitem__(array, (slice(None),) * dim + (0, Ellipsis))
        else:
            array = placeholder(
                shape[:dim] + shape[dim + 1 :], strides[:dim] + strides[dim + 1 :], array.dtype
            )
    elif not isinstance(array, np.ndarray):
        array = placeholder(array.shape, array.strides, array.dtype)
    seen = np.ndarray.view(array, LevelArray)
    seen.value = value
    seen.level = level
    seen.dim = dim
    return seen


def lifted(value: Tensor, level: Level, dim: int | None = None) -> Tensor:
    """`value` as a tensor of `level`."""
    return wrap(level_array(value, level, dim))


def unwrapped(t: Tensor, level: Level) -> tuple[Tensor, int | None]:
    """The value of `t` one level below `level` and its batch dimension; itself if it is lower."""
    t = alive(t)
    array = t.array
    if type(array) is LevelArray:
        if array.level is level:
            return array.value, array.dim
        check_alive(array.level)
    return t, None


def check_alive(level: Level) -> None:
    """Refuse a tensor whose transform has ended; see `alive`."""
    if not level.number:
        raise RuntimeError(
            "your tensor may have escaped from inside a function being "
            f"{'vmapped' if level.kind == 'vmap' else 'transformed'}: a tensor made inside a "
            f"{level.kind} transform is used after the transform has ended; return it from the "
            "function instead of keeping it by a side effect"
        )


def check_active(level: Level, state: ThreadState) -> None:
    """Refuse a tensor of a transform that another thread runs."""
    number = level.number
    if number > len(state.levels) or state.levels[number - 1] is not level:
        raise RuntimeError(
            f"a tensor made inside a {level.kind} transform is used in a thread that does not run "
            "the transform"
        )


def innermost(args: tuple) -> Level | None:
    """The innermost level that any of the tensors among `args` belongs to."""
    found: Level | None = None
    for value in args:
        if isinstance(value, Tensor):
            found = _inner(found, value)
        elif type(value) is list or type(value) is tuple:
            for item in value:
                if isinstance(item, Tensor):
                    found = _inner(found, item)
    return found


def _inner(found: Level | None, t: Tensor) -> Level | None:
    array = t.array
    if type(array) is not LevelArray:
        return found
    level = array.level
    check_alive(level)
    return level if found is None or level.number > found.number else found


def level_of_call(args: tuple) -> Level | None:
    """The level at which a call with these arguments takes place.

    That is the innermost of its tensors, except that a trace sees all calls made inside it.
    """
    found = innermost(args)
    for level in reversed(thread_state().levels):
        if level is found:
            break
        if level.kind == "trace":
            return level
    return found


# Operators ---------------------------------------------------------------------------------------


def at_level(operator: Any, args: tuple, level: Level) -> tuple:
    """The arguments with every tensor of an outer level lifted to `level`."""
    if operator.mutates and _is_outer(args[0], level) and level.kind != "trace":
        raise captured_mutation(operator.name, level)
    return tuple([_at_level(value, level) for value in args])


def _is_outer(value: Any, level: Level) -> bool:
    return not (type(value.array) is LevelArray and value.array.level is level)


def _at_level(value: Any, level: Level) -> Any:
    if isinstance(value, Tensor):
        return level.lift(value) if _is_outer(value, level) else value
    if type(value) is list:
        return [_at_level(item, level) for item in value]
    return value


def check_not_captured(name: str, levels: list) -> None:
    """Refuse to change a tensor that is outside `levels` while these are active."""
    for level in reversed(levels):
        if level.kind != "vmap":
            raise captured_mutation(name, level)


def captured_mutation(name: str, level: Level) -> RuntimeError:
    """The refusal of changing a tensor that a transformed function has captured."""
    if level.kind == "vmap":
        return unbatched_target(name)
    return RuntimeError(
        f"During a {level.kind} transform, the function called the in-place operation {name}, "
        "that would mutate a captured Tensor. Pass the tensor as an argument of the function, or "
        "work on a clone() of it"
    )


def unbatched_target(name: str) -> RuntimeError:
    """The refusal of writing batched values into a tensor that has no batch dimension."""
    return RuntimeError(
        f"vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a "
        f"Tensor `other` in extra_args that has more elements than `self`: {name}() would have to "
        "write one value per example into a tensor that all examples share. Make the tensor inside "
        "the function from a batched one (new_zeros, zeros_like, clone), or use the out-of-place "
        "form."
    )


def lower(operator: Any, args: tuple, level: Level) -> Any:
    """Call an operator on the values below `level`; LevelArrays in its place above.

    All tensors among `args` are of that level (see `at_level`). For an in-place operator the result
    is None: the first argument's value has been changed.
    """
    values, dims, batched = _split(args)
    state = thread_state()
    saved = descend(state, level.number - 1)
    try:
        if not batched:
            out = operator.call(values)
            return None if operator.mutates else _raised(out, None, level)
        if operator.mutates:
            _write_batched(operator, values, dims)
            return None
        out, out_dims = _call_batched(operator, values, dims)
        return _raised(out, out_dims, level)
    finally:
        ascend(state, saved)


_call_batched: Any = None
_write_batched: Any = None


def bind_batching(call: Any, write: Any) -> None:
    """Give the levels the two ways to call an operator on batched values."""
    global _call_batched, _write_batched
    _call_batched, _write_batched = call, write


def _split(args: tuple) -> tuple[tuple, tuple, bool]:
    """The values below a level, their batch dimensions, and whether there are any."""
    values: list = []
    dims: list = []
    batched = False
    for value in args:
        dim: Any = None
        if isinstance(value, Tensor):
            array = value.array
            value, dim = array.value, array.dim
            if dim is not None:
                batched = True
        elif type(value) is list:
            arrays = [v.array if isinstance(v, Tensor) else None for v in value]
            if any(a is not None for a in arrays):
                value = [v if a is None else a.value for v, a in zip(value, arrays, strict=True)]
                dim = [None if a is None else a.dim for a in arrays]
                batched = batched or dim.count(None) < len(dim)
        values.append(value)
        dims.append(dim)
    return tuple(values), tuple(dims), batched


def _raised(out: Any, dims: Any, level: Level) -> Any:
    """Results as arrays of `level`; one batch dimension for all, or one each."""
    if out is None:
        return None
    if isinstance(out, Tensor):
        return level_array(out, level, dims)
    each = dims if isinstance(dims, (tuple, list)) else [dims] * len(out)
    arrays = [level_array(t, level, d) for t, d in zip(out, each, strict=True)]
    return arrays if type(out) is list else tuple(arrays)


def seen_inside(values: tuple) -> tuple:
    """Outputs or inputs of a differentiation as the active transforms know them."""
    for level in thread_state().levels:
        values = tuple([level.seen(value) for value in values])
    return values
