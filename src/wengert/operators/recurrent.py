"""Cells of recurrent networks that pay as operators: what follows the products of a step.

The kernels compute a whole cell in few passes. When nothing is recorded, so do the gradients; what
is differentiated further is made of elementwise operators.
"""

from __future__ import annotations

from typing import Any

from ..backends import meta
from ..core.state import thread_state
from ..core.tensor import Tensor
from ..transforms.batching.rules import leading
from .along import widened
from .declare import nondifferentiable, primitive
from .joining import cat
from .pointwise import sigmoid, tanh

__all__ = []


def _is_recorded() -> bool:
    """Whether the operators of a rule are recorded, transformed or traced."""
    state = thread_state()
    return bool(state.grad_enabled or state.layers)


def _parts(x: Any, count: int) -> list[Any]:
    """Equal parts along the last dimension."""
    n = x.shape[-1] // count
    return [x[..., i * n : (i + 1) * n] for i in range(count)]


def _sigmoid_into(xp: Any, x: Any, out: Any) -> None:
    xp.negative(x, out=out)
    xp.exp(out, out=out)
    out += 1
    xp.reciprocal(out, out=out)


def _slope_into(xp: Any, gate: Any, out: Any) -> Any:
    """The slope of the sigmoid, from its value."""
    xp.multiply(gate, gate, out=out)
    return xp.subtract(gate, out, out=out)


def _tanh_slope_into(xp: Any, value: Any, out: Any) -> Any:
    """The slope of tanh, from its value."""
    xp.multiply(value, value, out=out)
    return xp.subtract(1, out, out=out)


def _in_own_dtype(arrays: list[Any], goal: Any) -> tuple:
    return tuple([a.astype(goal, copy=False) for a in arrays])


# Long short-term memory ---------------------------------------------------------------------------
# Gates are, along the last dimension: input, forget, candidate and output.


def _lstm_cell(xp: Any, gates: Any, memory: Any) -> tuple:
    goal, gates, memory = gates.dtype, widened(gates), widened(memory)
    n = memory.shape[-1]
    values = xp.empty((*gates.shape[:-1], 5 * n), gates.dtype)
    _sigmoid_into(xp, gates[..., : 2 * n], values[..., : 2 * n])
    xp.tanh(gates[..., 2 * n : 3 * n], out=values[..., 2 * n : 3 * n])
    _sigmoid_into(xp, gates[..., 3 * n :], values[..., 3 * n : 4 * n])
    entry, keep, candidate, exit, reading = _parts(values, 5)
    new = keep * memory
    new += entry * candidate
    xp.tanh(new, out=reading)
    return _in_own_dtype([exit * reading, new, values], goal)


def _memory_gradient(xp: Any, g_hidden: Any, g_memory: Any, values: Any) -> Any:
    """The gradient of the new memory, by itself and through the output."""
    _, _, _, exit, reading = _parts(values, 5)
    through = _tanh_slope_into(xp, reading, xp.empty(reading.shape, reading.dtype))
    through *= exit
    through *= g_hidden
    through += g_memory
    return through


def _lstm_gates_gradient(
    xp: Any, g_hidden: Any, g_memory: Any, memory: Any, values: Any
) -> Any:
    goal, values = values.dtype, widened(values)
    g = _memory_gradient(xp, widened(g_hidden), widened(g_memory), values)
    entry, keep, candidate, exit, reading = _parts(values, 5)
    out = xp.empty((*memory.shape[:-1], 4 * memory.shape[-1]), values.dtype)
    parts = _parts(out, 4)
    both = slice(None, 2 * memory.shape[-1])
    _slope_into(xp, values[..., both], out[..., both])
    parts[0] *= candidate
    parts[0] *= g
    parts[1] *= widened(memory)
    parts[1] *= g
    _tanh_slope_into(xp, candidate, parts[2])
    parts[2] *= entry
    parts[2] *= g
    _slope_into(xp, exit, parts[3])
    parts[3] *= reading
    parts[3] *= g_hidden
    return out.astype(goal, copy=False)


def _lstm_memory_gradient(xp: Any, g_hidden: Any, g_memory: Any, values: Any) -> Any:
    goal, values = values.dtype, widened(values)
    g = _memory_gradient(xp, widened(g_hidden), widened(g_memory), values)
    g *= _parts(values, 5)[1]
    return g.astype(goal, copy=False)


lstm_gates_gradient = nondifferentiable(
    "_lstm_gates_gradient(Tensor hidden_gradient, Tensor memory_gradient, Tensor memory, "
    "Tensor values) -> Tensor",
    _lstm_gates_gradient,
    shape=lambda hidden, new, memory, values: (*memory.shape[:-1], 4 * memory.shape[-1]),
    batch=leading,
    doc="The gradient of the gates of an LSTM cell, where nothing is recorded.",
)
lstm_memory_gradient = nondifferentiable(
    "_lstm_memory_gradient(Tensor hidden_gradient, Tensor memory_gradient, Tensor values) "
    "-> Tensor",
    _lstm_memory_gradient,
    shape=lambda hidden, new, values: new.shape,
    batch=leading,
    doc="The gradient of the memory of an LSTM cell, where nothing is recorded.",
)


def _lstm_gates(gates: Tensor) -> tuple[Tensor, ...]:
    entry, keep, candidate, exit = gates.chunk(4, -1)
    return sigmoid(entry), sigmoid(keep), tanh(candidate), sigmoid(exit)


def _gates_rule(g: list, gates: Tensor, memory: Tensor, new: Tensor, values: Tensor) -> Tensor:
    g_hidden, g_memory = g[0], g[1]
    if not _is_recorded():
        return lstm_gates_gradient.call((g_hidden, g_memory, memory, values))
    entry, keep, candidate, exit = _lstm_gates(gates)
    reading = tanh(new)
    through = g_memory + g_hidden * exit * (1 - reading * reading)
    return cat(
        [
            through * candidate * entry * (1 - entry),
            through * memory * keep * (1 - keep),
            through * entry * (1 - candidate * candidate),
            g_hidden * reading * exit * (1 - exit),
        ],
        -1,
    )


def _memory_rule(g: list, gates: Tensor, new: Tensor, values: Tensor) -> Tensor:
    g_hidden, g_memory = g[0], g[1]
    if not _is_recorded():
        return lstm_memory_gradient.call((g_hidden, g_memory, values))
    _, keep, _, exit = _lstm_gates(gates)
    reading = tanh(new)
    return (g_memory + g_hidden * exit * (1 - reading * reading)) * keep


def _lstm_tangent(tangents: dict, gates: Tensor, memory: Tensor, new: Tensor) -> tuple:
    entry, keep, candidate, exit = _lstm_gates(gates)
    reading = tanh(new)
    change: Any = 0
    exit_change: Any = 0
    if "memory" in tangents:
        change = tangents["memory"] * keep
    if "gates" in tangents:
        t_entry, t_keep, t_candidate, t_exit = tangents["gates"].chunk(4, -1)
        change = (
            change
            + t_entry * candidate * entry * (1 - entry)
            + t_keep * memory * keep * (1 - keep)
            + t_candidate * entry * (1 - candidate * candidate)
        )
        exit_change = t_exit * reading * exit * (1 - exit)
    return exit_change + change * exit * (1 - reading * reading), change, None


lstm_cell = primitive(
    "_lstm_cell(Tensor gates, Tensor memory) -> (Tensor, Tensor, Tensor)",
    _lstm_cell,
    {
        "gates": lambda g, gates, memory, out1, out2: _gates_rule(g, gates, memory, out1, out2),
        "memory": lambda g, gates, out1, out2: _memory_rule(g, gates, out1, out2),
    },
    lambda tangents, gates, memory, out1: _lstm_tangent(tangents, gates, memory, out1),
    nondifferentiable_outputs=(2,),
    widens=False,
    meta=lambda gates, memory: (
        meta.empty(memory.shape, gates.dtype),
        meta.empty(memory.shape, gates.dtype),
        meta.empty((*gates.shape[:-1], 5 * memory.shape[-1]), gates.dtype),
    ),
    batch=lambda operator, args, dims: (leading(operator, args, dims)[0], (0, 0, 0)),
    doc="Output and memory of an LSTM cell, and the values of its gates.",
)


# Gated recurrent units ----------------------------------------------------------------------------
# Gates are, along the last dimension: reset, update and candidate.


def _gru_cell(xp: Any, gates: Any, hidden_gates: Any, hidden: Any) -> tuple:
    goal = gates.dtype
    gates, hidden_gates, hidden = widened(gates), widened(hidden_gates), widened(hidden)
    n = hidden.shape[-1]
    values = xp.empty(gates.shape, gates.dtype)
    both = values[..., : 2 * n]
    xp.add(gates[..., : 2 * n], hidden_gates[..., : 2 * n], out=both)
    _sigmoid_into(xp, both, both)
    reset, update, candidate = _parts(values, 3)
    xp.multiply(reset, hidden_gates[..., 2 * n :], out=candidate)
    candidate += gates[..., 2 * n :]
    xp.tanh(candidate, out=candidate)
    new = hidden - candidate
    new *= update
    new += candidate
    return _in_own_dtype([new, values], goal)


def _gru_gates_gradient(xp: Any, g: Any, hidden_gates: Any, hidden: Any, values: Any) -> Any:
    goal, g, values = values.dtype, widened(g), widened(values)
    reset, update, candidate = _parts(values, 3)
    out = xp.empty(values.shape, values.dtype)
    parts = _parts(out, 3)
    both = slice(None, 2 * hidden.shape[-1])
    _slope_into(xp, values[..., both], out[..., both])
    _tanh_slope_into(xp, candidate, parts[2])
    parts[2] *= 1 - update
    parts[2] *= g
    parts[0] *= widened(_parts(hidden_gates, 3)[2])
    parts[0] *= parts[2]
    parts[1] *= widened(hidden) - candidate
    parts[1] *= g
    return out.astype(goal, copy=False)


gru_gates_gradient = nondifferentiable(
    "_gru_gates_gradient(Tensor gradient, Tensor hidden_gates, Tensor hidden, Tensor values) "
    "-> Tensor",
    _gru_gates_gradient,
    shape=lambda g, hidden_gates, hidden, values: values.shape,
    batch=leading,
    doc="The gradient of the gates of a GRU cell, where nothing is recorded.",
)


def _gru_gates(gates: Tensor, hidden_gates: Tensor) -> tuple[Tensor, ...]:
    """Reset, update, candidate, and what the reset gate multiplies."""
    x_reset, x_update, x_candidate = gates.chunk(3, -1)
    h_reset, h_update, h_candidate = hidden_gates.chunk(3, -1)
    reset = sigmoid(x_reset + h_reset)
    candidate = tanh(x_candidate + reset * h_candidate)
    return reset, sigmoid(x_update + h_update), candidate, h_candidate


def _gru_rule(
    g: Tensor, gates: Tensor, hidden_gates: Tensor, hidden: Tensor, values: Tensor, through: bool
) -> Tensor:
    """The gradient of the gates of the input, or of those `through` the reset gate."""
    if not _is_recorded():
        result = gru_gates_gradient.call((g, hidden_gates, hidden, values))
        if through:
            n = hidden.array.shape[-1]
            result[..., 2 * n :] *= values[..., :n]
        return result
    reset, update, candidate, factor = _gru_gates(gates, hidden_gates)
    inside = g * (1 - update) * (1 - candidate * candidate)
    return cat(
        [
            inside * factor * reset * (1 - reset),
            g * (hidden - candidate) * update * (1 - update),
            inside * reset if through else inside,
        ],
        -1,
    )


def _gru_hidden_rule(g: Tensor, gates: Tensor, hidden_gates: Tensor, values: Tensor) -> Tensor:
    if not _is_recorded():
        return g * values.chunk(3, -1)[1]
    return g * _gru_gates(gates, hidden_gates)[1]


def _gru_tangent(tangents: dict, gates: Tensor, hidden_gates: Tensor, hidden: Tensor) -> tuple:
    reset, update, candidate, factor = _gru_gates(gates, hidden_gates)
    t_reset: Any = 0
    t_update: Any = 0
    t_candidate: Any = 0
    for name, weight in (("gates", 1), ("hidden_gates", reset)):
        if name in tangents:
            parts = tangents[name].chunk(3, -1)
            t_reset, t_update = t_reset + parts[0], t_update + parts[1]
            t_candidate = t_candidate + parts[2] * weight
    t_candidate = t_candidate + t_reset * reset * (1 - reset) * factor
    change = t_candidate * (1 - candidate * candidate) * (1 - update)
    change = change + t_update * update * (1 - update) * (hidden - candidate)
    if "hidden" in tangents:
        change = change + tangents["hidden"] * update
    return change, None


gru_cell = primitive(
    "_gru_cell(Tensor gates, Tensor hidden_gates, Tensor hidden) -> (Tensor, Tensor)",
    _gru_cell,
    {
        "gates": lambda g, gates, hidden_gates, hidden, out1: _gru_rule(
            g[0], gates, hidden_gates, hidden, out1, False
        ),
        "hidden_gates": lambda g, gates, hidden_gates, hidden, out1: _gru_rule(
            g[0], gates, hidden_gates, hidden, out1, True
        ),
        "hidden": lambda g, gates, hidden_gates, out1: _gru_hidden_rule(
            g[0], gates, hidden_gates, out1
        ),
    },
    lambda tangents, gates, hidden_gates, hidden: _gru_tangent(
        tangents, gates, hidden_gates, hidden
    ),
    nondifferentiable_outputs=(1,),
    widens=False,
    meta=lambda gates, hidden_gates, hidden: (
        meta.empty(hidden.shape, gates.dtype),
        meta.empty(gates.shape, gates.dtype),
    ),
    batch=lambda operator, args, dims: (leading(operator, args, dims)[0], (0, 0)),
    doc="The output of a GRU cell, and the values of its gates.",
)
