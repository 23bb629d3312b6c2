"""Transform levels: tensors whose array stands for a tensor one level further down.

`grad`, `jvp`, `vmap` and traces nest. Each active transform is a `Level`; inside it, a tensor of
that level carries a `LevelArray`: shape and dtype as the function sees them, and the tensor of the
level below that holds the value, with the position of the batch dimension if the level is a `vmap`.
To the autograd and forward-mode layers a LevelArray is an array like any other. Where the kernel
would run, the operator is called again on the values (`Level.call`), under the modes of the level
below. That is all there is to nesting: no transform knows of another one.

What a transform does to an operator, to what a function makes, draws, reads and changes, is a
method of its level. `Level` has what `grad` and `jvp` share; `transforms/levels.py` has these and
`vmap`, `compiler/trace/level.py` has the trace.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.arrays import LevelArray, alive, placeholder
from ..core.state import ThreadState, thread_state
from ..core.tensor import Tensor, wrap, wrap_as


class Level:
    """One transform: its number while it is active, and the modes that hold outside it.

    Used with `with`, it is the innermost level in the block; a level that was left may be entered
    again.
    """

    __slots__ = (
        "number", "outer_levels", "grad_enabled", "inference", "forward_grad_enabled",
        "dual_level", "duals", "tangents_aside", "hooks_refusal",
    )  # fmt: skip
    #: What messages call the transform, and a function inside it.
    kind, participle = "transform", "transformed"
    #: Whether this is a trace, which notes all calls inside it.
    traces = False
    #: Whether this is a differentiation; its tensors stand for their values once it has ended.
    differentiates = False
    #: Whether gradient mode and saved-tensor hooks are afterwards as they were before.
    restores_grad_mode = False
    #: Whether a graph of its own is recorded inside, though recording may be off outside.
    records = False
    #: Whether the graph of the level stands for forward mode, which no_grad leaves on.
    pushes_forward = False
    #: Whether recording is off for the moment: at this level alone, or for the levels below alone.
    differentiating = False
    records_alone = False
    #: Whether a program inside cannot read a tensor from outside: what it read would stay for ever.
    fixes_what_is_read = False
    # What held outside, noted when the level is entered.
    outer_levels: list
    grad_enabled: bool
    inference: bool
    forward_grad_enabled: bool
    dual_level: int
    duals: list
    tangents_aside: bool
    hooks_refusal: str | None

    def __init__(self) -> None:
        self.number = 0

    # Entering and leaving --------------------------------------------------------------------

    def entered(self) -> Level:
        """This level, for a `with` block in which it is the innermost one."""
        return self

    def __enter__(self) -> Level:
        state = thread_state()
        if self.number:
            raise RuntimeError(f"the {self.kind} transform is entered while it is active")
        self.check_entry(state)
        self.outer_levels = state.levels
        self.grad_enabled = state.grad_enabled
        self.inference = state.inference
        self.forward_grad_enabled = state.forward_grad_enabled
        self.dual_level = state.dual_level
        self.duals = state.duals
        self.tangents_aside = state.tangents_aside
        self.hooks_refusal = state.saved_hooks_disabled
        self.number = len(state.levels) + 1
        state.levels = [*state.levels, self]
        if self.number == 1:  # all levels together are one layer
            state.layers += 1
        self.switch_on(state)
        return self

    def __exit__(self, *exception: object) -> None:
        state = thread_state()
        self.number = 0
        state.levels = self.outer_levels
        if not state.levels:
            state.layers -= 1
        if self.restores_grad_mode:
            state.grad_enabled = self.grad_enabled
            state.inference = self.inference
            state.saved_hooks_disabled = self.hooks_refusal
        self.switch_off(state)

    def check_entry(self, state: ThreadState) -> None:
        """Refuse to be entered under the modes that are active."""

    def switch_on(self, state: ThreadState) -> None:
        """Set the modes that a function inside starts with."""

    def switch_off(self, state: ThreadState) -> None:
        """Set those modes again as they were outside."""

    def set_modes_below(self, state: ThreadState) -> None:
        """Turn the modes of this level into those of the level below.

        A mode switched off inside a transform is off for the levels below it too, as these see the
        same operations; what an enclosing level has switched off, the transform has switched on for
        itself only.
        """
        if self.records:
            recorded = state.grad_enabled or self.differentiating
            state.grad_enabled = self.grad_enabled and not self.records_alone and recorded
            state.inference = self.inference or state.inference

    def below(self) -> Below:
        """The modes of the level below, for calling operators on values."""
        return Below(self)

    # Operators -------------------------------------------------------------------------------

    def lift(self, t: Tensor) -> Tensor:
        """A tensor of an outer level as one of this level, without a batch dimension."""
        return lifted(t, self)

    def call(self, state: ThreadState, operator: Any, args: tuple) -> Any:
        """What the kernel of an operator would compute from its arguments: arrays of this level.

        All tensors among `args` are of this level. The operator is called on their values, by its
        batch rule if any of them has a batch dimension. For an in-place operator the result is
        None: the first argument's value has been changed.
        """
        values, dims = _split(args)
        saved = descend(state, self.number - 1)
        try:
            if dims is None:
                out = operator.call(values)
            elif operator.mutates or not callable(operator.batch):
                out, dims = self.call_batched(operator, values, dims)
            else:
                out, dims = operator.batch(operator, values, dims)
        finally:
            ascend(state, saved)
        return None if operator.mutates else self.raised(out, dims)

    def call_batched(self, operator: Any, values: tuple, dims: tuple) -> tuple[Any, Any]:
        """Call an operator that mutates, or whose batch rule is not at hand, on batched values.

        Returns what a batch rule returns: the results and their batch dimensions.
        """
        raise NotImplementedError

    def raised(self, out: Any, dims: Any = None) -> Any:
        """Results as arrays of this level; one batch dimension for all, or one each."""
        if out is None:
            return None
        if isinstance(out, Tensor):
            return level_array(out, self, dims)
        each = dims if isinstance(dims, (tuple, list)) else [dims] * len(out)
        arrays = [level_array(t, self, d) for t, d in zip(out, each, strict=True)]
        return arrays if type(out) is list else tuple(arrays)

    def check_captured_target(self, name: str) -> None:
        """Refuse to change a tensor from outside in place by tensors of this level."""
        raise captured_mutation(name, self)

    def check_outer_change(self, name: str) -> None:
        """Refuse to change a tensor from outside in place by others from outside."""
        raise captured_mutation(name, self)

    # What a function makes, draws and reads --------------------------------------------------

    def seen(self, t: Any) -> Any:
        """What stands inside for a tensor from outside that is differentiated or asked for."""
        return t

    def made(self, t: Tensor) -> Tensor:
        """A tensor that was created inside, as one that can be changed in place there."""
        return self.lift(t)

    def made_like(
        self, make: Callable[..., Tensor], like: Tensor, shape: tuple[int, ...] | None = None
    ) -> Tensor:
        """What `make` makes, one level below, like the value of a tensor.

        `shape` is given to `make` where one is asked for.
        """
        value = unwrapped(like, self)[0]
        with self.below():
            out = make(value) if shape is None else make(value, shape)
        return lifted(out, self)

    def draw(self, name: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """What becomes of the call of a function that draws: NotImplemented if it is called."""
        return NotImplemented

    def check_drawing_into(self) -> None:
        """Refuse to draw into an `out` tensor that is the function's own."""

    def sizes_drawn(self) -> tuple[int, ...]:
        """The lengths that a draw has at this level, in front of the shape the function sees."""
        return ()

    def drawn(self, t: Tensor) -> Tensor:
        """Numbers drawn with the sizes of the levels in front, as this level sees them."""
        return self.made(t)

    def drawn_like(self, draw: Callable[..., Tensor], like: Tensor) -> Tensor:
        """What `draw` draws, one level below, like the value of a tensor."""
        value = unwrapped(like, self)[0]
        with self.below():
            return lifted(draw(value), self)

    def drawn_by_rows(self, draw: Callable[..., Tensor], weights: Tensor) -> Tensor:
        """What `draw` draws, one level below, for each row of the value of a matrix."""
        return self.drawn_like(draw, weights)

    def check_parameters(self, t: Tensor) -> None:
        """Refuse a tensor of this level as the parameters of a draw that examples share."""

    def fill(self, value: Tensor, dim: int | None, fill: Callable[[Tensor], None]) -> None:
        """Fill the value of one of this level's tensors, one level below."""
        with self.below():
            fill(value)

    def check_captured_draw(self, name: str) -> None:
        """Refuse to fill a tensor from outside with random numbers."""
        raise captured_mutation(name, self)

    def value_to_read(self, array: LevelArray, action: str) -> Tensor:
        """The tensor of the level below that a program may read; refused where there is none."""
        return array.value

    def check_hook(self, action: str) -> None:
        """Refuse a hook on a tensor of this level where it could not run."""

    def untracked(self, t: Tensor) -> Tensor:
        """The `.data` of a tensor of this level."""
        return wrap(t.array)

    def offset_of(self, array: LevelArray, begin: int) -> int:
        """Where a tensor of this level begins in memory, `begin` as far as its array tells."""
        below = array.value.array
        if type(below) is LevelArray and array.dim is None:
            return below.level.offset_of(below, begin)
        return begin

    def heading(self, array: LevelArray) -> str:
        """How the text of a tensor of this level begins."""
        return f"GradTrackingTensor(lvl={self.number or -2}, value="


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


class RecordedAlone:
    """Context manager in whose block a level records though recording is switched off.

    It concerns a level that pushes forward, as long as forward mode is on; a view has a part of
    its base's tangent even where forward mode is off, in inference mode too.
    """

    __slots__ = ("level", "state", "view", "applies", "inference")

    def __init__(self, level: Any, state: ThreadState, view: bool = False) -> None:
        self.level = level
        self.state = state
        self.view = view

    def __enter__(self) -> None:
        level, state = self.level, self.state
        self.applies = (
            level.pushes_forward
            and (state.forward_grad_enabled or self.view)
            and not state.grad_enabled
            and not level.records_alone
        )
        self.inference = state.inference
        if self.applies:
            level.records_alone = state.grad_enabled = True
            state.inference = state.inference and not self.view

    def __exit__(self, *exception: object) -> None:
        if self.applies:
            state = self.state
            self.level.records_alone = state.grad_enabled = False
            state.inference = self.inference


class OutsideAllLevels:
    """Context manager for operators that no level is to see and that are not recorded."""

    __slots__ = ("state", "saved")

    def __enter__(self) -> None:
        self.state = thread_state()
        self.saved = descend(self.state, 0)
        self.state.grad_enabled = False

    def __exit__(self, *exception: object) -> None:
        ascend(self.state, self.saved)


def descend(state: ThreadState, number: int) -> tuple:
    """Take on the modes that hold at level `number`, leaving those further in; for `ascend`."""
    levels = state.levels
    saved = (
        levels, state.grad_enabled, state.inference, state.forward_grad_enabled, state.dual_level,
        state.duals, state.tangents_aside, state.layers,
    )  # fmt: skip
    for level in reversed(levels[number:]):
        level.set_modes_below(state)
    state.levels = levels[:number]
    if levels and not number:
        state.layers -= 1
    return saved


def ascend(state: ThreadState, saved: tuple) -> None:
    """Undo `descend`."""
    (
        state.levels, state.grad_enabled, state.inference, state.forward_grad_enabled,
        state.dual_level, state.duals, state.tangents_aside, state.layers,
    ) = saved  # fmt: skip


# Tensors of a level ------------------------------------------------------------------------------


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
    return wrap_as(level_array(value, level, dim), thread_state().inference)


def unwrapped(t: Tensor, level: Level) -> tuple[Tensor, int | None]:
    """The value of `t` one level below `level` and its batch dimension; itself if it is lower."""
    array = t.array
    if type(array) is LevelArray and array.level is not level:
        t = alive(t)
        array = t.array
    if type(array) is LevelArray:
        if array.level is level:
            return array.value, array.dim
        check_alive(array.level)
    return t, None


def _split(args: tuple) -> tuple[tuple, tuple | None]:
    """What stands one level below for arguments whose tensors are all of one level.

    The second result is their batch dimensions, None if there are none.
    """
    values: list = []
    dims: list = []
    batched = False
    for value in args:
        dim: Any = None
        if isinstance(value, Tensor):
            t = value
            array = t.array
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
    return tuple(values), tuple(dims) if batched else None


def check_alive(level: Level) -> None:
    """Refuse a tensor whose transform has ended; see `alive`."""
    if not level.number:
        raise RuntimeError(
            "your tensor may have escaped from inside a function being "
            f"{level.participle}: a tensor made inside a {level.kind} transform is used after the "
            "transform has ended; return it from the function instead of keeping it by a side "
            "effect"
        )


def captured_mutation(name: str, level: Level) -> RuntimeError:
    """The refusal of changing a tensor that a transformed function has captured."""
    return RuntimeError(
        f"During a {level.kind} transform, the function called the in-place operation {name}, "
        "that would mutate a captured Tensor. Pass the tensor as an argument of the function, or "
        "work on a clone() of it"
    )


# What programs do inside transforms --------------------------------------------------------------


def seen_inside(values: tuple) -> tuple:
    """Outputs or inputs of a differentiation as the active transforms know them."""
    for level in thread_state().levels:
        values = tuple([level.seen(value) for value in values])
    return values


def innermost_trace() -> Any:
    """The trace that the running function is directly in; None if it is in none, or further in."""
    levels = thread_state().levels
    return levels[-1] if levels and levels[-1].traces else None


def trace_around(t: Tensor) -> Any:
    """The trace that a tensor belongs to, or would be an input of: None if there is none.

    What shares memory with a tensor from outside must be made from the input that stands for it,
    since the tensor may have other memory when the graph runs.
    """
    levels = thread_state().levels
    array = t.array
    if type(array) is LevelArray and not levels[-1].traces:
        return array.level if array.level.traces else None
    return next((level for level in reversed(levels) if level.traces), None)


def in_transform() -> bool:
    """Whether a function transform is active; tracing, which runs a program as it is, is none."""
    return any(not level.traces for level in thread_state().levels)


def check_outside(call: str) -> None:
    """Refuse `call`, which marks leaves, where transforms decide what is differentiated."""
    if in_transform():
        raise RuntimeError(
            f"You are attempting to call {call} inside of a function being transformed by a "
            "functorch transform. The transforms of wengert.func decide themselves what is "
            "differentiated: nest them, or make the call outside"
        )


def check_hookable(t: Tensor, action: str) -> None:
    """Refuse a hook on a tensor inside a transform that would not run it."""
    if type(t.array) is LevelArray:
        t.array.level.check_hook(action)


def check_same_parameters(*parameters: Any) -> None:
    """Refuse parameters that differ from example to example where all examples share a draw."""
    for t in parameters:
        while isinstance(t, Tensor) and type(t.array) is LevelArray:
            t.array.level.check_parameters(t)
            t = t.array.value
