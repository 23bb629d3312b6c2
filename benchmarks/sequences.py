"""Training steps of small networks on sequences, as a ratio to PyTorch."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from harness import Program, Work, run_benchmark

SYMBOLS, BATCH, LENGTH, HIDDEN = 64, 32, 64, 128


def _text(lib: Any) -> tuple[Any, Any]:
    """Symbols, and those that follow them."""
    drawn = np.random.default_rng(0).integers(0, SYMBOLS, (LENGTH + 1, BATCH))
    return lib.tensor(drawn[:-1].tolist()), lib.tensor(drawn[1:].reshape(-1).tolist())


def _step(lib: Any, parts: list[Any], call: Any) -> Work:
    """Loss, gradients and a step of the optimizer."""
    random = np.random.default_rng(1)
    parameters = [each for part in parts for each in part.parameters()]
    for each in parameters:  # the same in both libraries
        values = random.uniform(-0.1, 0.1, tuple(each.shape))
        each.data = lib.tensor(values.tolist(), dtype=each.dtype)
    x, target = _text(lib)
    optimizer = lib.optim.SGD(parameters, lr=0.1)

    def run() -> Any:
        optimizer.zero_grad()
        loss = lib.nn.functional.cross_entropy(call(x), target)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Work(run)


def _recurrent(kind: str) -> Any:
    def program(lib: Any) -> Work:
        table = lib.nn.Embedding(SYMBOLS, 64)
        network = getattr(lib.nn, kind)(64, HIDDEN)
        last = lib.nn.Linear(HIDDEN, SYMBOLS)
        return _step(
            lib,
            [table, network, last],
            lambda x: last(network(table(x))[0].reshape(-1, HIDDEN)),
        )

    program.__doc__ = f"A step of a character model with nn.{kind}."
    return program


def transformer(lib: Any) -> Work:
    """A step of a character model with one encoder layer and a causal mask."""
    table = lib.nn.Embedding(SYMBOLS, HIDDEN)
    layer = lib.nn.TransformerEncoderLayer(HIDDEN, 4, 256, dropout=0.0)
    last = lib.nn.Linear(HIDDEN, SYMBOLS)
    mask = lib.nn.Transformer.generate_square_subsequent_mask(LENGTH)
    return _step(
        lib,
        [table, layer, last],
        lambda x: last(layer(table(x), mask, is_causal=True).reshape(-1, HIDDEN)),
    )


PROGRAMS = [
    Program("char_lstm", _recurrent("LSTM"), 2.5),
    Program("char_gru", _recurrent("GRU"), 2.0),
    Program("char_rnn", _recurrent("RNN"), 1.5),
    Program("char_transformer", transformer, 2.0),
]


if __name__ == "__main__":
    sys.exit(run_benchmark(__doc__, PROGRAMS))
