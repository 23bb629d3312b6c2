"""Recurrent networks as functions: of whole sequences, packed or not, and of single steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.tensor import Tensor
from ...dispatch.overridable import Overridable as _Overridable
from ...operators.affine import affine, linear
from ...operators.joining import cat, stack
from ...operators.matmul import mm_right
from ...operators.pointwise import relu, tanh
from ...operators.recurrent import gru_cell as _gru_gates
from ...operators.recurrent import lstm_cell as _lstm_gates
from .layers import dropout as drop

#: The tensors that a network hands from step to step: the output, and for LSTM the memory.
State = tuple[Tensor, ...]


def _product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """`x @ weight.T`, plus a bias or a whole matrix."""
    return mm_right.call2(x, weight) if bias is None else affine.call((bias, x, weight))


def _total(one: Tensor | None, other: Tensor | None) -> Tensor | None:
    return other if one is None else one if other is None else one + other


class _Weights:
    """The parameters of one layer in one direction, in the order in which they are given."""

    def __init__(self, given: Sequence[Tensor], has_biases: bool) -> None:
        self.input, self.hidden = given[:2]
        self.input_bias: Tensor | None = given[2] if has_biases else None
        self.hidden_bias: Tensor | None = given[3] if has_biases else None
        rest = given[4:] if has_biases else given[2:]
        self.projection = rest[0] if rest else None


class _Cell:
    """A kind of network: how it treats inputs beforehand, and what one step does."""

    states = 1

    def prepared(self, x: Tensor, weights: _Weights) -> Tensor:
        """What the step adds to the product of the hidden state, for all inputs at once."""
        return linear(x, weights.input, _total(weights.input_bias, weights.hidden_bias))

    def step(self, x: Tensor, state: State, weights: _Weights) -> State:
        """The state after one step, of inputs that are `prepared`."""
        raise NotImplementedError


class _Simple(_Cell):
    """The product through an activation."""

    def __init__(self, activation: Callable[[Tensor], Tensor]) -> None:
        self.activation = activation

    def step(self, x: Tensor, state: State, weights: _Weights) -> State:
        """The activation of both products."""
        return (self.activation(_product(state[0], weights.hidden, x)),)


class _LSTM(_Cell):
    """Long short-term memory, with a projection of the output where there is a weight for it."""

    states = 2

    def step(self, x: Tensor, state: State, weights: _Weights) -> State:
        """The output and the memory."""
        gates = _product(state[0], weights.hidden, x)
        output, memory, _ = _lstm_gates.call((gates, state[1]))
        if weights.projection is not None:
            output = mm_right.call2(output, weights.projection)
        return output, memory


class _GRU(_Cell):
    """The gated recurrent unit, whose reset gate needs both products apart."""

    def prepared(self, x: Tensor, weights: _Weights) -> Tensor:
        """The product of the input alone."""
        return linear(x, weights.input, weights.input_bias)

    def step(self, x: Tensor, state: State, weights: _Weights) -> State:
        """The output."""
        hidden_gates = _product(state[0], weights.hidden, weights.hidden_bias)
        return (_gru_gates.call((x, hidden_gates, state[0]))[0],)


_LSTM_CELL, _GRU_CELL, _TANH_CELL, _RELU_CELL = _LSTM(), _GRU(), _Simple(tanh), _Simple(relu)


# Sequences ----------------------------------------------------------------------------------------


def _run(
    cell: _Cell, x: Tensor, sizes: list[int], state: State, weights: _Weights, backwards: bool
) -> tuple[Tensor, State]:
    """One layer in one direction over rows of `x`, of which each step takes as many as `sizes` say.

    Sizes do not grow. Returns the outputs of all rows, and for each sequence its last state.
    """
    steps = cell.prepared(x, weights).split(sizes)
    outputs: list[Tensor] = []
    if backwards:
        whole, state = state, tuple([each[: sizes[-1]] for each in state])
        before = sizes[-1]
        for part, size in zip(reversed(steps), reversed(sizes), strict=True):
            if size > before:  # sequences that end here begin
                state = tuple(
                    [cat([s, w[before:size]]) for s, w in zip(state, whole, strict=True)]
                )
                before = size
            state = cell.step(part, state, weights)
            outputs.append(state[0])
        return cat(outputs[::-1]), state
    ended: list[State] = []
    before = sizes[0]
    for part, size in zip(steps, sizes, strict=True):
        if size < before:
            ended.append(tuple([each[size:] for each in state]))
            state = tuple([each[:size] for each in state])
            before = size
        state = cell.step(part, state, weights)
        outputs.append(state[0])
    if ended:
        parts = zip(state, *reversed(ended), strict=True)
        state = tuple([cat(list(each)) for each in parts])
    return cat(outputs), state


def _network(
    cell: _Cell,
    x: Tensor,
    sizes: list[int],
    hidden: State,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> tuple[Tensor, ...]:
    """All layers over rows; returns the outputs of the last one and the last states of all."""
    directions = 2 if bidirectional else 1
    each = len(params) // (num_layers * directions)
    least = 4 if has_biases else 2
    most = least + (cell.states == 2)
    if each * num_layers * directions != len(params) or not least <= each <= most:
        raise RuntimeError("got an incorrect number of RNN parameters")
    states = list(zip(*[h.unbind(0) for h in hidden], strict=True))
    finals: list[State] = []
    for layer in range(num_layers):
        results = []
        for direction in range(directions):
            number = layer * directions + direction
            weights = _Weights(params[number * each : (number + 1) * each], has_biases)
            result, final = _run(cell, x, sizes, states[number], weights, direction == 1)
            results.append(result)
            finals.append(final)
        x = results[0] if directions == 1 else cat(results, -1)
        if dropout and train and layer < num_layers - 1:
            x = drop(x, dropout, True)
    return (x, *[stack(list(each)) for each in zip(*finals, strict=True)])


_PLAIN = (
    "input", "hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional",
    "batch_first",
)  # fmt: skip
_PACKED = ("data", "batch_sizes", *_PLAIN[1:-1])


def _called(name: str, cell: _Cell, args: tuple, kwargs: dict[str, Any]) -> tuple[Tensor, ...]:
    """Call a network with the arguments of either form: sequences of one length, or packed ones."""
    is_packed = "batch_sizes" in kwargs or (len(args) > 3 and not isinstance(args[3], (bool, int)))
    names = _PACKED if is_packed else _PLAIN
    given = dict(zip(names, args, strict=False))
    if len(args) > len(names) or given.keys() & kwargs.keys():
        raise TypeError(f"{name}() received an invalid combination of arguments")
    given |= kwargs
    if given.keys() != set(names):
        raise TypeError(f"{name}() expects the arguments {', '.join(names)}")
    hx = given["hx"]
    hidden = (hx,) if cell.states == 1 else tuple(hx)
    if len(hidden) != cell.states:
        raise RuntimeError("lstm expects two hidden states")
    options = [given[each] for each in names[names.index("params") : len(_PACKED)]][:6]
    if is_packed:
        sizes = given["batch_sizes"].tolist()
        return _network(cell, given["data"], sizes, hidden, *options)
    x = given["input"].transpose(0, 1) if given["batch_first"] else given["input"]
    length, batch = x.array.shape[:2]
    if not length:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    rows = x.reshape(length * batch, x.array.shape[2])
    output, *final = _network(cell, rows, [batch] * length, hidden, *options)
    output = output.reshape(length, batch, output.array.shape[-1])
    return (output.transpose(0, 1) if given["batch_first"] else output, *final)


def lstm(*args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
    """Long short-term memory over sequences; returns outputs, last outputs and last memories.

    ``lstm(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)``
    or, for packed sequences, ``lstm(data, batch_sizes, hx, params, ..., bidirectional)``.
    """
    return _called("lstm", _LSTM_CELL, args, kwargs)


def gru(*args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
    """A gated recurrent network over sequences; returns outputs and last outputs.

    The arguments are those of `lstm`, with one tensor as `hx`.
    """
    return _called("gru", _GRU_CELL, args, kwargs)


def rnn_tanh(*args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
    """A recurrent network with tanh over sequences; returns outputs and last outputs.

    The arguments are those of `lstm`, with one tensor as `hx`.
    """
    return _called("rnn_tanh", _TANH_CELL, args, kwargs)


def rnn_relu(*args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
    """A recurrent network with relu over sequences; returns outputs and last outputs.

    The arguments are those of `lstm`, with one tensor as `hx`.
    """
    return _called("rnn_relu", _RELU_CELL, args, kwargs)


# Single steps -------------------------------------------------------------------------------------


def _one_step(
    cell: _Cell,
    x: Tensor,
    hx: State,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None,
    b_hh: Tensor | None,
) -> State:
    if x.size(-1) != w_ih.size(1):
        raise RuntimeError(
            f"input has inconsistent input_size: got {x.size(-1)} expected {w_ih.size(1)}"
        )
    for i, h in enumerate(hx):
        if x.size(0) != h.size(0):
            raise RuntimeError(
                f"Input batch size {x.size(0)} doesn't match hidden{i} batch size {h.size(0)}"
            )
        if h.size(-1) != w_hh.size(1):
            raise RuntimeError(
                f"hidden{i} has inconsistent hidden_size: got {h.size(-1)}, expected "
                f"{w_hh.size(1)}"
            )
    weights = _Weights([w_ih, w_hh], False)
    weights.input_bias, weights.hidden_bias = b_ih, b_hh
    return cell.step(cell.prepared(x, weights), hx, weights)


def lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, ...]:
    """One step of long short-term memory; returns output and memory."""
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    return _one_step(_LSTM_CELL, input, tuple(hx), w_ih, w_hh, b_ih, b_hh)


def gru_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """One step of a gated recurrent network."""
    return _one_step(_GRU_CELL, input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


def rnn_tanh_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """One step of a recurrent network with tanh."""
    return _one_step(_TANH_CELL, input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


def rnn_relu_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """One step of a recurrent network with relu."""
    return _one_step(_RELU_CELL, input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


def _make_overridable() -> None:
    """Let classes and modes override the functions, which are public in the package itself."""
    for name in (
        "gru", "gru_cell", "lstm", "lstm_cell", "rnn_relu", "rnn_relu_cell", "rnn_tanh",
        "rnn_tanh_cell",
    ):  # fmt: skip
        globals()[name] = _Overridable(globals()[name], module="wengert", name=name)


_make_overridable()
