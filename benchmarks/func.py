"""Function transforms: per-sample gradients, Jacobians and Hessians, against PyTorch and loops."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

from harness import (
    Program,
    Work,
    add_program_options,
    arguments,
    finish,
    load,
    measure,
    number,
    print_table,
    run_programs,
    select,
    settings,
    verdict,
)

BATCH = 128
WIDTHS = (20, 64, 64, 10)
SIZE = 50


def normal(lib: Any, source: random.Random, *shape: int, scale: float = 1.0) -> Any:
    """A float32 tensor of normally distributed numbers."""
    count = 1
    for n in shape:
        count *= n
    return lib.tensor([source.gauss(0.0, scale) for _ in range(count)]).reshape(shape)


def layers(lib: Any, source: random.Random, *widths: int) -> list[tuple[Any, Any]]:
    """Weights and biases of a network."""
    return [
        (normal(lib, source, m, n, scale=n**-0.5), normal(lib, source, m, scale=0.1))
        for n, m in zip(widths[:-1], widths[1:], strict=True)
    ]


def network(parameters: list, x: Any) -> Any:
    """A network of one example, tanh between the layers."""
    for weight, bias in parameters[:-1]:
        x = (weight @ x + bias).tanh()
    weight, bias = parameters[-1]
    return weight @ x + bias


def per_sample_gradients(lib: Any) -> Work:
    """The gradient of the loss of each example of a batch, in all parameters."""
    source = random.Random(1)
    parameters = layers(lib, source, *WIDTHS)
    x, y = normal(lib, source, BATCH, WIDTHS[0]), normal(lib, source, BATCH, WIDTHS[-1])

    def loss(parameters: list, x: Any, y: Any) -> Any:
        return ((network(parameters, x) - y) ** 2).sum()

    gradients = lib.vmap(lib.func.grad(loss), in_dims=(None, 0, 0))
    return Work(lambda: [g for layer in gradients(parameters, x, y) for g in layer])


def jacobian(transform: str) -> Callable[[Any], Work]:
    """The Jacobian of a network with as many outputs as inputs."""

    def build(lib: Any) -> Work:
        source = random.Random(2)
        parameters = layers(lib, source, SIZE, 64, SIZE)
        x = normal(lib, source, SIZE)
        compute = getattr(lib.func, transform)(lambda x: network(parameters, x))
        return Work(lambda: compute(x))

    return build


def hessian(lib: Any) -> Work:
    """The Hessian of a network's squared norm."""
    source = random.Random(3)
    parameters = layers(lib, source, SIZE, 32, 8)
    x = normal(lib, source, SIZE)
    compute = lib.func.hessian(lambda x: (network(parameters, x) ** 2).sum())
    return Work(lambda: compute(x))


def hessian_vector(lib: Any) -> Work:
    """A product with that Hessian: forward mode over reverse mode."""
    source = random.Random(3)
    parameters = layers(lib, source, SIZE, 32, 8)
    x, v = normal(lib, source, SIZE), normal(lib, source, SIZE)
    gradient = lib.func.grad(lambda x: (network(parameters, x) ** 2).sum())
    return Work(lambda: lib.func.jvp(gradient, (x,), (v,))[1])


def ensemble(lib: Any) -> Work:
    """The outputs of 16 networks for one batch."""
    source = random.Random(4)
    models = [layers(lib, source, *WIDTHS) for _ in range(16)]
    stacked = [
        tuple(lib.stack(list(parts)) for parts in zip(*same, strict=True))
        for same in zip(*models, strict=True)
    ]
    x = normal(lib, source, BATCH, WIDTHS[0])
    predict = lib.vmap(lib.vmap(network, in_dims=(None, 0)), in_dims=(0, None))
    return Work(lambda: predict(stacked, x))


PROGRAMS = [
    Program("jacrev_mlp", jacobian("jacrev"), target=1.0),
    Program("jacfwd_mlp", jacobian("jacfwd"), target=1.0),
    Program("hessian", hessian, target=1.0),
    Program("hessian_vector", hessian_vector),
    Program("per_sample_gradients", per_sample_gradients),
    Program("ensemble", ensemble),
]
AGAINST_LOOPS = [
    Program("per_sample_gradients", per_sample_gradients, target=0.15),
    Program("ensemble", ensemble),
]


class Looped:
    """A library whose `vmap` calls the function once for each example and stacks the results."""

    def __init__(self, lib: Any) -> None:
        self.lib = lib

    def __getattr__(self, name: str) -> Any:
        return getattr(self.lib, name)

    def vmap(self, f: Callable, in_dims: tuple) -> Callable:
        def mapped(*args: Any) -> Any:
            count = next(len(leaf) for a, d in zip(args, in_dims, strict=True) if d is not None
                         for leaf in leaves(a))  # fmt: skip
            rows = [
                f(*[a if d is None else example(a, i) for a, d in zip(args, in_dims, strict=True)])
                for i in range(count)
            ]
            return stacked(self.lib, rows)

        return mapped


def leaves(tree: Any) -> list:
    """The tensors in nested lists and tuples."""
    if isinstance(tree, (list, tuple)):
        return [leaf for part in tree for leaf in leaves(part)]
    return [tree]


def example(tree: Any, index: int) -> Any:
    """One example of a tree of batches."""
    if isinstance(tree, (list, tuple)):
        return type(tree)([example(part, index) for part in tree])
    return tree[index]


def stacked(lib: Any, rows: list) -> Any:
    """Trees of results, one for each example, as one tree of batches."""
    if isinstance(rows[0], (list, tuple)):
        return type(rows[0])([stacked(lib, list(parts)) for parts in zip(*rows, strict=True)])
    return lib.stack(rows)


def against_loops(options: Any) -> int:
    """Measure vmap against loops within one library, print the table, return the status."""
    programs = select(AGAINST_LOOPS, options.only)
    subject = load(options.subject)
    if not programs or subject is None:
        return 0
    collect = options.gc == "on"
    rows = [
        measure(
            program, subject, Looped(subject), target=program.target, seconds=options.seconds,
            collect=collect,
        )
        for program in programs
    ]  # fmt: skip
    print(f"\n{options.subject}: vmap against a loop over the examples, microseconds per call")
    print_table(
        ("name", "vmap us", "loop us", "ratio", "best", "target", "ok?"),
        [
            (
                row.name,
                number(row.subject_us, 1),
                number(row.reference_us, 1),
                number(row.ratio, 3),
                number(row.ratio_best, 3),
                number(row.target, 2),
                verdict(row.ok) + (f"  {row.error}" if row.error else ""),
            )
            for row in rows
        ],
    )
    options.json = options.json and options.json + ".loops"
    report = {**settings(collect), "results": [row._asdict() for row in rows]}
    return finish(options, report, [row.ok for row in rows])


def main() -> int:
    """Run both tables; the worse status counts."""
    parser = arguments(__doc__)
    add_program_options(parser)
    options = parser.parse_args()
    programs = select(PROGRAMS, options.only)
    status = run_programs(programs, options) if programs else 0
    return max(status, against_loops(options), key=lambda code: (code == 1, code))


if __name__ == "__main__":
    sys.exit(main())
