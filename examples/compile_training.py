"""Whole training steps as one graph each: loss, gradients and the AdamW update.

A multilayer perceptron, an unrolled LSTM and a small GPT are functions of a dictionary of
parameters. `training_step` adds gradients and update, written as tensor operations, and
`wengert.compile` makes one graph of everything. The forward passes alone are differentiated by
`differentiate`, with a look at what has to be kept for the reverse. The graph of the perceptron's
step is printed, with `--graphs` those of all models, before and after the passes.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import NamedTuple

import wengert as torch
from wengert import Tensor
from wengert.compiler import Graph, TensorType, differentiate, trace
from wengert.compiler.passes import Policy
from wengert.compiler.passes.barriers import drop_barriers
from wengert.compiler.run.executable import DEFAULT_PASSES, optimized
from wengert.nn import functional as F

Parameters = dict[str, Tensor]
Loss = Callable[..., Tensor]


def normal(*shape: int, scale: float | None = None) -> Tensor:
    """Random weights, by default scaled by the number of inputs."""
    return torch.randn(*shape) * (1 / math.sqrt(shape[0]) if scale is None else scale)


# The models ---------------------------------------------------------------------------------------


def mlp_parameters() -> Parameters:
    sizes = (8, 32, 32, 1)
    parameters = {}
    for i, (n, m) in enumerate(zip(sizes, sizes[1:], strict=False)):
        parameters[f"w{i}"] = normal(n, m)
        parameters[f"b{i}"] = torch.zeros(m)
    return parameters


def mlp_loss(p: Parameters, x: Tensor, y: Tensor) -> Tensor:
    h = torch.tanh(x @ p["w0"] + p["b0"])
    h = torch.tanh(h @ p["w1"] + p["b1"])
    return F.mse_loss(h @ p["w2"] + p["b2"], y)


def mlp_batch() -> tuple[Tensor, Tensor]:
    x = torch.randn(64, 8)
    return x, (x[:, :1] * x[:, 1:2]).sin()


HIDDEN = 24


def lstm_parameters() -> Parameters:
    return {
        "wx": normal(4, 4 * HIDDEN),
        "wh": normal(HIDDEN, 4 * HIDDEN),
        "b": torch.zeros(4 * HIDDEN),
        "out": normal(HIDDEN, 1),
    }


def lstm_loss(p: Parameters, xs: Tensor, y: Tensor) -> Tensor:
    h = c = xs.new_zeros(xs.shape[1], HIDDEN)
    for x in xs.unbind(0):
        i, f, g, o = (x @ p["wx"] + h @ p["wh"] + p["b"]).chunk(4, 1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
    return F.mse_loss(h @ p["out"], y)


def lstm_batch() -> tuple[Tensor, Tensor]:
    xs = torch.randn(12, 16, 4)
    return xs, xs[:, :, :1].mean(0)


TOKENS, LENGTH, WIDTH, HEADS, LAYERS = 32, 16, 32, 4, 2


def gpt_parameters() -> Parameters:
    parameters = {
        "tokens": normal(TOKENS, WIDTH, scale=0.1),
        "places": normal(LENGTH, WIDTH, scale=0.1),
        "last.g": torch.ones(WIDTH),
        "last.b": torch.zeros(WIDTH),
    }
    for layer in range(LAYERS):
        for norm in ("1", "2"):
            parameters[f"{layer}.g{norm}"] = torch.ones(WIDTH)
            parameters[f"{layer}.b{norm}"] = torch.zeros(WIDTH)
        parameters[f"{layer}.qkv"] = normal(WIDTH, 3 * WIDTH)
        parameters[f"{layer}.proj"] = normal(WIDTH, WIDTH)
        parameters[f"{layer}.up"] = normal(WIDTH, 4 * WIDTH)
        parameters[f"{layer}.down"] = normal(4 * WIDTH, WIDTH)
    return parameters


def attention(x: Tensor, qkv: Tensor, proj: Tensor) -> Tensor:
    """Causal self-attention of several heads."""
    batch, length, width = x.shape
    q, k, v = (
        part.reshape(batch, length, HEADS, width // HEADS).transpose(1, 2)
        for part in (x @ qkv).chunk(3, 2)
    )
    scores = q @ k.transpose(2, 3) / math.sqrt(width // HEADS)
    future = torch.ones(length, length, dtype=torch.bool).triu(1)
    mixed = scores.masked_fill(future, -math.inf).softmax(3) @ v
    return mixed.transpose(1, 2).reshape(batch, length, width) @ proj


def gpt_loss(p: Parameters, tokens: Tensor, following: Tensor) -> Tensor:
    x = F.embedding(tokens, p["tokens"]) + p["places"]
    for i in range(LAYERS):
        normed = F.layer_norm(x, (WIDTH,), p[f"{i}.g1"], p[f"{i}.b1"])
        x = x + attention(normed, p[f"{i}.qkv"], p[f"{i}.proj"])
        normed = F.layer_norm(x, (WIDTH,), p[f"{i}.g2"], p[f"{i}.b2"])
        x = x + F.gelu(normed @ p[f"{i}.up"]) @ p[f"{i}.down"]
    x = F.layer_norm(x, (WIDTH,), p["last.g"], p["last.b"])
    logits = x @ p["tokens"].t()
    return F.cross_entropy(logits.reshape(-1, TOKENS), following.reshape(-1))


def gpt_batch() -> tuple[Tensor, Tensor]:
    start, step = torch.randint(0, TOKENS, (8, 1)), torch.randint(1, 4, (8, 1))
    tokens = (start + step * torch.arange(LENGTH + 1)) % TOKENS
    return tokens[:, :-1], tokens[:, 1:]


class Model(NamedTuple):
    """A model to train: its parameters, its loss and its data."""

    name: str
    parameters: Callable[[], Parameters]
    loss: Loss
    batch: Callable[[], tuple[Tensor, Tensor]]


MODELS = (
    Model("MLP", mlp_parameters, mlp_loss, mlp_batch),
    Model("LSTM", lstm_parameters, lstm_loss, lstm_batch),
    Model("GPT", gpt_parameters, gpt_loss, gpt_batch),
)


# The training step --------------------------------------------------------------------------------


class State(NamedTuple):
    """What a step reads and changes: parameters, both moments, and how many steps there were."""

    parameters: Parameters
    first: Parameters
    second: Parameters
    steps: Tensor


def initial_state(model: Model) -> State:
    torch.manual_seed(0)
    parameters = {name: p.requires_grad_() for name, p in model.parameters().items()}
    first, second = ({n: torch.zeros_like(p) for n, p in parameters.items()} for _ in range(2))
    return State(parameters, first, second, torch.zeros(()))


def training_step(loss: Loss) -> Callable[..., Tensor]:
    """One step of AdamW on a loss; it changes the state and returns the loss."""

    def step(state: State, x: Tensor, y: Tensor) -> Tensor:
        names = list(state.parameters)
        value = loss(state.parameters, x, y)
        grads = torch.autograd.grad(value, [state.parameters[name] for name in names])
        with torch.no_grad():
            state.steps.add_(1)
            for name, g in zip(names, grads, strict=True):
                adamw(state, name, g)
        return value.detach()

    return step


def adamw(
    state: State,
    name: str,
    g: Tensor,
    rate: float = 1e-2,
    betas: tuple[float, float] = (0.9, 0.95),
    decay: float = 0.01,
    eps: float = 1e-8,
) -> None:
    """The update of one parameter."""
    p, first, second = state.parameters[name], state.first[name], state.second[name]
    first.mul_(betas[0]).add_(g, alpha=1 - betas[0])
    second.mul_(betas[1]).addcmul_(g, g, value=1 - betas[1])
    size = (second / (1 - betas[1] ** state.steps)).sqrt() + eps
    p.mul_(1 - rate * decay)
    p.sub_(rate * (first / (1 - betas[0] ** state.steps)) / size)


def train(model: Model, step: Callable[..., Tensor], steps: int) -> tuple[list[float], State]:
    """The losses of a few steps and the state after them."""
    state = initial_state(model)
    losses = []
    for _ in range(steps):
        losses.append(float(step(state, *model.batch())))
    return losses, state


# Looking at the graphs ----------------------------------------------------------------------------


def count(graph: Graph) -> int:
    return sum(1 for _ in graph.all_nodes())


def step_graphs(model: Model) -> tuple[Graph, Graph]:
    """The graph of a whole step as it was traced, and after the passes."""
    traced = trace(training_step(model.loss), initial_state(model), *model.batch()).graph
    return traced, optimized(drop_barriers(traced.copy()), DEFAULT_PASSES)


class Kept(NamedTuple):
    """Bytes: of all forward values, of those that plain differentiation keeps, and of those that
    are kept if cheap ones are computed again; and the matrix products of both reverses."""

    every: int
    plain: int
    chosen: int
    products: int
    products_again: int


def forward_graph(model: Model) -> Graph:
    """The graph of the loss alone."""
    state = initial_state(model)
    return trace(lambda p, x, y: model.loss(p, x, y), state.parameters, *model.batch()).graph


def kept_bytes(model: Model) -> Kept:
    """What the reverse of the forward pass needs."""
    graph = forward_graph(model)
    every = 0
    for node in graph.nodes():
        for value in node.outputs:
            if isinstance(value.type, TensorType) and not node.is_view:
                every += value.type.nbytes or 0
    plain = differentiate(graph.copy())
    chosen = differentiate(graph, recompute=Policy())
    return Kept(
        every, plain.saved_bytes, chosen.saved_bytes, products(plain.df), products(chosen.df)
    )


def products(graph: Graph) -> int:
    """How many matrix products a graph computes."""
    return sum("mm" in node.kind for node in graph.all_nodes())


def main() -> None:
    print("model   nodes traced  after passes   loss first -> last    compiled = eager")
    for model in MODELS:
        traced, after = step_graphs(model)
        step = training_step(model.loss)
        eager, state = train(model, step, 20)
        compiled, its_state = train(model, torch.compile(step), 20)
        same = all(
            torch.allclose(p, its_state.parameters[name], rtol=1e-4, atol=1e-5)
            for name, p in state.parameters.items()
        )
        print(
            f"{model.name:6} {count(traced):>13} {count(after):>13}"
            f"   {eager[0]:.4f} -> {compiled[-1]:.4f}      {same}"
        )
    print("\nbytes   all forward values   kept by the reverse   with recomputation   share")
    for model in MODELS:
        kept = kept_bytes(model)
        print(
            f"{model.name:6} {kept.every:>19} {kept.plain:>21} {kept.chosen:>20}"
            f"   {kept.chosen / kept.every:.0%}"
        )
    for model in MODELS if "--graphs" in sys.argv else MODELS[:1]:
        traced, after = step_graphs(model)
        if "--graphs" in sys.argv:
            print(f"\nThe training step of the {model.name}, as it was traced\n{traced}")
        print(f"\nThe training step of the {model.name}, after the passes\n{after}")


if __name__ == "__main__":
    main()
