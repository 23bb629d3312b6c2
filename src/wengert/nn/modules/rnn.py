"""Recurrent networks as modules: of whole sequences, and of single steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...core.errors import warn_user
from ...core.tensor import Tensor
from ...creation.factories import empty, zeros
from .. import init
from ..functional import recurrent as networks
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from .layer import Layer, parameter

#: How many gates each kind of network has.
_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}
_FUNCTIONS = {
    "LSTM": networks.lstm,
    "GRU": networks.gru,
    "RNN_TANH": networks.rnn_tanh,
    "RNN_RELU": networks.rnn_relu,
}


def _draw(layer: Any, t: Tensor) -> None:
    """Uniform within one over the root of the hidden size."""
    bound = 1.0 / math.sqrt(layer.hidden_size) if layer.hidden_size > 0 else 0
    init.uniform_(t, -bound, bound)


def _check_options(values: dict[str, Any]) -> None:
    dropout = values["dropout"]
    if isinstance(dropout, bool) or not isinstance(dropout, (int, float)) or not 0 <= dropout <= 1:
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an element "
            "being zeroed"
        )
    if dropout > 0 and values["num_layers"] == 1:
        warn_user(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout "
            f"expects num_layers greater than 1, but got dropout={dropout} and num_layers="
            f"{values['num_layers']}"
        )
    for name, kind in (("bias", bool), ("batch_first", bool), ("input_size", int),
                       ("hidden_size", int)):  # fmt: skip
        if not isinstance(values[name], kind):
            raise TypeError(
                f"{name} should be of type {kind.__name__}, got: {type(values[name]).__name__}"
            )
    for name in ("input_size", "hidden_size", "num_layers"):
        if values[name] <= 0:
            raise ValueError(f"{name} must be greater than zero")
    if values["proj_size"] < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if values["proj_size"] >= values["hidden_size"]:
        raise ValueError("proj_size has to be smaller than hidden_size")


class RNNBase(
    Layer,
    fields=(
        "mode, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, "
        "bidirectional=False, proj_size=0"
    ),
    shown=(
        "*input_size, *hidden_size, proj_size?, num_layers?, bias?, batch_first?, dropout?, "
        "bidirectional?"
    ),
):
    """A recurrent network of several layers, in one or both directions.

    Parameters are called ``weight_ih_l0``, ``weight_hh_l0``, ``bias_ih_l0``, ``bias_hh_l0`` and,
    with projections, ``weight_hr_l0``; those of the other direction end in ``_reverse``.
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        values = {
            "mode": mode, "input_size": input_size, "hidden_size": hidden_size,
            "num_layers": num_layers, "bias": bias, "batch_first": batch_first,
            "dropout": dropout, "bidirectional": bidirectional, "proj_size": proj_size,
        }  # fmt: skip
        _check_options(values)
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        self._construct({**values, "dropout": float(dropout)}, device, dtype)

    def _construct(self, values: dict[str, Any], device: Any = None, dtype: Any = None) -> None:
        super()._construct(values)
        self._all_weights: list[list[str]] = []
        output = self.proj_size or self.hidden_size
        gates = _GATES[self.mode] * self.hidden_size
        for layer in range(self.num_layers):
            size = output * self._directions if layer else self.input_size
            for suffix in ("", "_reverse")[: self._directions]:
                shapes: dict[str, tuple[int, ...]] = {
                    "weight_ih": (gates, size),
                    "weight_hh": (gates, output),
                }
                if self.bias:
                    shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
                if self.proj_size:
                    shapes["weight_hr"] = (self.proj_size, self.hidden_size)
                names = {f"{name}_l{layer}{suffix}": shape for name, shape in shapes.items()}
                for name, shape in names.items():
                    made = Parameter(empty(shape, device=device, dtype=dtype))
                    self.register_parameter(name, made)
                self._all_weights.append(list(names))
        self.reset_parameters()

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Tensor]:
        return [weight for weights in self.all_weights for weight in weights]

    def flatten_parameters(self) -> None:
        """Does nothing: parameters need not lie side by side in memory."""

    def reset_parameters(self) -> None:
        """Give all parameters their initial values anew."""
        for each in self.parameters():
            _draw(self, each)

    # Checks ----------------------------------------------------------------------------------

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Raise if the input is of another type, rank or size than the network takes."""
        dtype = self._flat_weights[0].dtype
        if input.dtype != dtype:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({dtype}). Convert "
                f"input: input.to({dtype}), or convert model: model.to({input.dtype})"
            )
        rank = 3 if batch_sizes is None else 2
        if input.dim() != rank:
            raise RuntimeError(f"input must have {rank} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                "input.size(-1) must be equal to input_size. Expected "
                f"{self.input_size}, got {input.size(-1)}"
            )

    def get_expected_hidden_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """The shape of the hidden state for an input."""
        size = self.proj_size or self.hidden_size
        return self.num_layers * self._directions, self._batch(input, batch_sizes), size

    def _batch(self, input: Tensor, batch_sizes: Tensor | None) -> int:
        if batch_sizes is not None:
            return int(batch_sizes[0])
        return input.size(0 if self.batch_first else 1)

    def check_hidden_size(
        self,
        hx: Tensor,
        expected_hidden_size: tuple[int, int, int],
        msg: str = "Expected hidden size {}, got {}",
    ) -> None:
        """Raise if a hidden state has another shape than expected."""
        if hx.shape != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.shape)))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raise if input or hidden state do not fit."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The hidden state with its sequences in another order."""
        return hx if permutation is None else hx.index_select(1, permutation)

    # The network -----------------------------------------------------------------------------

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """The outputs of the last layer at all steps, and the hidden state after the last step."""
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        name = type(self).__name__ if self.mode != "RNN_TANH" and self.mode != "RNN_RELU" else "RNN"
        if input.dim() not in (2, 3):
            kind = "D tensor" if name == "RNN" else "D"
            raise ValueError(
                f"{name}: Expected input to be 2D or 3D, got {input.dim()}{kind} instead"
            )
        is_batched = input.dim() == 3
        if hx is not None:
            self._check_ranks(hx, 3 if is_batched else 2)
        if not is_batched:
            input = input.unsqueeze(0 if self.batch_first else 1)
            hx = None if hx is None else self._each(hx, lambda h: h.unsqueeze(1))
        if hx is None:
            hx = self._initial(input, None)
        self.check_forward_args(input, hx, None)
        output, final = self._called(input, hx, (self.batch_first,))
        if not is_batched:
            output = output.squeeze(0 if self.batch_first else 1)
            final = self._each(final, lambda h: h.squeeze(1))
        return output, final

    def _forward_packed(self, packed: PackedSequence, hx: Any) -> tuple[PackedSequence, Any]:
        data, sizes, sorted_indices, unsorted_indices = packed
        if hx is None:
            hx = self._initial(data, sizes)
        else:
            hx = self.permute_hidden(hx, sorted_indices)
        self.check_forward_args(data, hx, sizes)
        output, final = self._called(data, hx, (), sizes)
        return (
            PackedSequence(output, sizes, sorted_indices, unsorted_indices),
            self.permute_hidden(final, unsorted_indices),
        )

    def _called(
        self, x: Tensor, hx: Any, last: tuple, sizes: Tensor | None = None
    ) -> tuple[Tensor, Any]:
        first = (x,) if sizes is None else (x, sizes)
        output, *final = _FUNCTIONS[self.mode](
            *first, hx, self._flat_weights, self.bias, self.num_layers, self.dropout,
            self.training, self.bidirectional, *last,
        )  # fmt: skip
        return output, final[0] if len(final) == 1 else tuple(final)

    def _initial(self, x: Tensor, sizes: Tensor | None) -> Any:
        return zeros(self.get_expected_hidden_size(x, sizes), dtype=x.dtype, device=x.device)

    def _each(self, hx: Any, change: Any) -> Any:
        return change(hx)

    def _check_ranks(self, hx: Any, rank: int) -> None:
        if hx.dim() != rank:
            kind = "batched" if rank == 3 else "unbatched"
            raise RuntimeError(
                f"For {kind} {rank}-D input, hx should also be {rank}-D but got {hx.dim()}-D tensor"
            )


def _refuse_projections(options: dict[str, Any]) -> None:
    if "proj_size" in options:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


class RNN(RNNBase):
    """A recurrent network of Elman's kind, with tanh or relu."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        *args: Any,
        **kwargs: Any,
    ) -> None:
        _refuse_projections(kwargs)
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        mode = f"RNN_{nonlinearity.upper()}"
        super().__init__(mode, input_size, hidden_size, num_layers, *args, **kwargs)
        self.nonlinearity = nonlinearity


class GRU(RNNBase):
    """A network of gated recurrent units."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse_projections(kwargs)
        super().__init__("GRU", *args, **kwargs)


class LSTM(RNNBase):
    """A network of long short-term memory, whose hidden state is a pair of output and memory."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """The shape of the memory for an input."""
        count, batch, _ = self.get_expected_hidden_size(input, batch_sizes)
        return count, batch, self.hidden_size

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raise if input, output or memory do not fit."""
        self.check_input(input, batch_sizes)
        shapes = (
            self.get_expected_hidden_size(input, batch_sizes),
            self.get_expected_cell_size(input, batch_sizes),
        )
        for i, shape in enumerate(shapes):
            message = "Expected hidden[" + str(i) + "] size {}, got {}"
            self.check_hidden_size(hidden[i], shape, message)

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """Output and memory with their sequences in another order."""
        return tuple([super(LSTM, self).permute_hidden(each, permutation) for each in hx])

    def _initial(self, x: Tensor, sizes: Tensor | None) -> tuple[Tensor, ...]:
        shapes = self.get_expected_hidden_size(x, sizes), self.get_expected_cell_size(x, sizes)
        return tuple([zeros(shape, dtype=x.dtype, device=x.device) for shape in shapes])

    def _each(self, hx: Any, change: Any) -> Any:
        return tuple([change(each) for each in hx])

    def _check_ranks(self, hx: Any, rank: int) -> None:
        if hx[0].dim() != rank or hx[1].dim() != rank:
            kind = "batched" if rank == 3 else "unbatched"
            raise RuntimeError(
                f"For {kind} {rank}-D input, hx and cx should also be {rank}-D but got "
                f"({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
            )


# Single steps -------------------------------------------------------------------------------------


class RNNCellBase(
    Layer,
    fields="input_size, hidden_size, bias, num_chunks",
    passing="num_chunks",
    shown="*input_size, *hidden_size",
):
    """One step of a recurrent network, with as many gates as `num_chunks`."""

    weight_ih = parameter("_gates", "input_size", init=_draw)
    weight_hh = parameter("_gates", "hidden_size", init=_draw)
    bias_ih = parameter("_gates", init=_draw, when="bias")
    bias_hh = parameter("_gates", init=_draw, when="bias")

    def _prepare(self, values: dict[str, Any]) -> None:
        """Count the rows of the weights."""
        self._gates = values["num_chunks"] * self.hidden_size

    def extra_repr(self) -> str:
        """The sizes, and what is not the default."""
        text = super().extra_repr() + ("" if self.bias else ", bias=False")
        kind = getattr(self, "nonlinearity", "tanh")
        return text + ("" if kind == "tanh" else f", nonlinearity={kind}")

    def _weights(self) -> tuple[Tensor, ...]:
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def _step(self, function: Any, input: Tensor, hx: Any, states: int) -> Any:
        """Call the function of one step, with a batch of one where there is none."""
        name = type(self).__name__
        if input.dim() not in (1, 2):
            raise ValueError(
                f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead"
            )
        given: Sequence[Tensor] | None = hx if hx is None or states == 2 else (hx,)
        if given is not None:
            for i, each in enumerate(given):
                if each.dim() not in (1, 2):
                    which = f"hx[{i}]" if states == 2 else "hidden"
                    raise ValueError(
                        f"{name}: Expected {which} to be 1D or 2D, got {each.dim()}D instead"
                    )
        is_batched = input.dim() == 2
        input = input if is_batched else input.unsqueeze(0)
        if given is None:
            shape = (input.size(0), self.hidden_size)
            given = (zeros(shape, dtype=input.dtype, device=input.device),) * states
        elif not is_batched:
            given = [each.unsqueeze(0) for each in given]
        result = function(input, given if states == 2 else given[0], *self._weights())
        if is_batched:
            return result
        return tuple([t.squeeze(0) for t in result]) if states == 2 else result.squeeze(0)


class RNNCell(RNNCellBase):
    """One step of a recurrent network with tanh or relu."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The hidden state after the step."""
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        function = networks.rnn_tanh_cell if self.nonlinearity == "tanh" else networks.rnn_relu_cell
        return self._step(function, input, hx, 1)


class LSTMCell(RNNCellBase):
    """One step of long short-term memory."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Output and memory after the step."""
        return self._step(networks.lstm_cell, input, hx, 2)


class GRUCell(RNNCellBase):
    """One step of a gated recurrent unit."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The hidden state after the step."""
        return self._step(networks.gru_cell, input, hx, 1)
