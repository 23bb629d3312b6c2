"""Graphs: the time to differentiate and to compile long ones, and what compiled calls cost."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from functools import partial
from time import perf_counter, process_time
from typing import Any

from harness import arguments, describe, finish, load, number, print_table, settings, verdict

SIZES = (1_000, 10_000, 100_000)
JUDGED = 10_000
SECONDS_TARGET = 2.0
GROWTH_TARGET = 1.6
REPEATS = 5
#: Nodes of graphs to compile that do not repeat, and those to compile with their gradients.
LENGTHS = (10_000, 20_000, 50_000, 100_000)
LENGTHS_WITH_GRADIENTS = (5_000, 10_000, 20_000)


def chain(lib: Any, nodes: int) -> Any:
    """A graph of products, sums and elementary functions, each node one step."""
    from wengert.compiler import Graph, TensorType
    from wengert.compiler.passes import propagate_shapes

    graph = Graph()
    x, c = (graph.add_input(TensorType(lib.float32, (4, 4), True)) for _ in range(2))
    functions = ("tanh", "sin", "sigmoid", "exp")
    y = x
    for i in range(nodes):
        if i % 3 == 0:
            y = graph.insert("wengert::mul", y, c)
        elif i % 3 == 1:
            y = graph.insert(f"wengert::{functions[i % 4]}", y)
        else:
            y = graph.insert("wengert::add", y, x)
    graph.register_output(y)
    return propagate_shapes(graph)


def seconds(lib: Any, nodes: int, recompute: bool) -> float:
    """Processor time: the fastest of some differentiations of a fresh graph."""
    from wengert.compiler import differentiate
    from wengert.compiler.passes import Policy

    best = float("inf")
    for _ in range(REPEATS if nodes <= JUDGED else 1):
        graph = chain(lib, nodes)
        gc.collect()
        start = process_time()
        differentiate(graph, recompute=Policy() if recompute else None)
        best = min(best, process_time() - start)
    return best


def differentiation(lib: Any) -> tuple[list[dict], list[bool]]:
    """The table of differentiations, and whether the targets are met."""
    rows = []
    for recompute in (False, True):
        for nodes in SIZES[: 2 if recompute else 3]:
            taken = seconds(lib, nodes, recompute)
            rows.append({"nodes": nodes, "recompute": recompute, "seconds": taken})
    for row in rows:
        first = next(r for r in rows if r["recompute"] == row["recompute"])
        row["growth"] = (row["seconds"] / row["nodes"]) / (first["seconds"] / first["nodes"])
    judged = [row for row in rows if row["nodes"] == JUDGED]
    for row in judged:
        row["ok"] = row["seconds"] <= SECONDS_TARGET and row["growth"] <= GROWTH_TARGET
    print_table(
        ("differentiate", "nodes", "seconds", "us per node", "growth", "ok"),
        [
            (
                "with recomputation" if row["recompute"] else "plain",
                str(row["nodes"]),
                number(row["seconds"], 3),
                number(row["seconds"] / row["nodes"] * 1e6, 1),
                number(row["growth"], 2),
                verdict(row.get("ok")),
            )
            for row in rows
        ],
    )
    return rows, [row["ok"] for row in judged]


def irregular(lib: Any, nodes: int) -> Callable[[Any], Any]:
    """A function whose graph does not repeat: each node is one of some kinds, in no order."""
    names = ("tanh", "sin", "sigmoid", "cos", "atan", "relu", "neg", "square")

    def function(x: Any) -> Any:
        state, recent, y = 1, [x] * 8, x
        for i in range(nodes):
            state = state * 1103515245 % 2147483647
            kind, other = state // 7 % 16, recent[state // 131 % 8]
            if kind < 8:
                y = getattr(lib, names[kind])(y)
            elif kind < 11:
                y = y + other
            elif kind < 13:
                y = y - other
            else:
                y = y * (other if kind < 15 else state % 97 / 97)
            recent[i % 8] = y
        return y.sum()

    return function


def compilation(lib: Any) -> tuple[list[dict], list[bool]]:
    """The table of first calls, and whether their time grows in proportion to the nodes."""
    lib.compile(irregular(lib, 100))(lib.linspace(0.1, 0.3, 16))
    rows: list[dict] = []
    for gradients, lengths in ((False, LENGTHS), (True, LENGTHS_WITH_GRADIENTS)):
        for nodes in lengths:
            x = lib.linspace(0.1, 0.3, 16, requires_grad=gradients)
            compiled = lib.compile(irregular(lib, nodes), fullgraph=True)
            gc.collect()
            start = process_time()
            out = compiled(x)
            if gradients:
                out.backward()
            taken = process_time() - start
            rows.append({"nodes": nodes, "gradients": gradients, "seconds": taken})
    for row in rows:
        first = next(r for r in rows if r["gradients"] == row["gradients"])
        row["growth"] = (row["seconds"] / row["nodes"]) / (first["seconds"] / first["nodes"])
    print()
    print_table(
        ("compile", "nodes", "seconds", "us per node", "growth"),
        [
            (
                "with gradients" if row["gradients"] else "forward",
                str(row["nodes"]),
                number(row["seconds"], 2),
                number(row["seconds"] / row["nodes"] * 1e6, 0),
                number(row["growth"], 2),
            )
            for row in rows
        ],
    )
    return rows, [row["growth"] <= GROWTH_TARGET for row in rows]


#: Lengths of sequences: two that kernels are made for, then others.
SEQUENCES = (40, 50, 45, 61, 57)


def sizes(lib: Any) -> list[dict]:
    """The table of first calls with further sizes, for a layer of a transformer."""
    layer = lib.nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
    compiled = lib.compile(layer)
    rows = []
    for length in SEQUENCES:
        x = lib.randn(8, length, 32)
        start = process_time()
        out = compiled(x)
        middle = process_time()
        out.sum().backward()
        rows.append(
            {"length": length, "call": middle - start, "backward": process_time() - middle}
        )
    print()
    print_table(
        ("a layer, of length", "first call ms", "backward ms"),
        [
            (str(row["length"]), *[number(row[name] * 1e3, 1) for name in ("call", "backward")])
            for row in rows
        ],
    )
    return rows


def small(lib: Any) -> tuple[Callable, tuple]:
    """A layer so small that all of its time is overhead."""
    x, w = lib.ones(2, 3), lib.ones(3, 3, requires_grad=True)
    return lambda x, w: ((x @ w).tanh() * x).sum(), (x, w)


def layers(lib: Any) -> tuple[Callable, tuple]:
    """Twenty layers."""
    x, w = lib.ones(8, 16), lib.full((16, 16), 0.05).requires_grad_()

    def function(x: Any, w: Any) -> Any:
        for _ in range(20):
            x = (x @ w).tanh() + x
        return x.sum()

    return function, (x, w)


def recurrent(lib: Any) -> tuple[Callable, tuple]:
    """A gated cell, 100 steps in a loop of Python: what it keeps decides what its reverse takes."""
    x, w = lib.linspace(-1, 1, 100 * 16 * 32).reshape(100, 16, 32), lib.linspace(-1, 1, 32 * 64)

    def function(x: Any, w: Any) -> Any:
        h = x[0] * 0
        for t in range(100):
            gates = (x[t] + h) @ w
            h = gates[:, :32].sigmoid() * h + gates[:, 32:].tanh()
        return h.square().mean()

    return function, (x, (w.reshape(32, 64) * 0.1).requires_grad_())


def ten(lib: Any) -> tuple[Callable, tuple]:
    """Ten tensors of four elements, none of which requires grad."""
    return lambda *given: sum(given[1:], given[0]).sum(), tuple(lib.ones(4) for _ in range(10))


def ten_recorded(lib: Any) -> tuple[Callable, tuple]:
    """Ten tensors that require grad."""
    function, args = ten(lib)
    return function, tuple(t.requires_grad_() for t in args)


def calls(lib: Any) -> list[dict]:
    """The table of calls: eager and compiled, forward and with backward, in turns."""
    rows = []
    for build in (small, ten, ten_recorded, layers, recurrent):
        function, args = build(lib)
        compiled = lib.compile(function)
        for backward in (False, True) if args[1].requires_grad else (False,):
            title = build.__name__.replace("_", ", ")
            name = f"{title} {'and backward' if backward else 'forward'}"
            ways = (_call(function, args, backward), _call(compiled, args, backward))
            rows.append(in_turns(name, *ways))
    print_turns("call", rows)
    return rows


def transforms(lib: Any) -> list[dict]:
    """The table of transforms of a function, and of the same function compiled."""
    from wengert.func import grad, hessian, jacrev, jvp, vmap

    x, batch = lib.linspace(-1, 1, 8), lib.linspace(-1, 1, 512).reshape(64, 8)
    w, v = lib.linspace(-1, 1, 256).reshape(8, 32), lib.linspace(-1, 1, 32)

    def network(x: Any) -> Any:
        return (x @ w).tanh().mul(v).sum().square()

    long = lib.linspace(-1, 1, 1000)

    def rosenbrock(x: Any) -> Any:
        return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()

    cases: dict[str, tuple[Callable, Callable]] = {
        "grad": (network, lambda f: grad(f)(x)),
        "vmap": (network, lambda f: vmap(f)(batch)),
        "vmap(grad)": (network, lambda f: vmap(grad(f))(batch)),
        "jvp": (network, lambda f: jvp(f, (x,), (x,))),
        "jvp(grad)": (network, lambda f: jvp(grad(f), (x,), (x,))),
        "jacrev(grad)": (network, lambda f: jacrev(grad(f))(x)),
        "hessian": (network, lambda f: hessian(f)(x)),
        "vmap(hessian)": (network, lambda f: vmap(hessian(f))(batch)),
        "Rosenbrock 1000, jvp(grad)": (rosenbrock, lambda f: jvp(grad(f), (long,), (long,))),
        "Rosenbrock 50, hessian": (rosenbrock, lambda f: hessian(f)(long[:50])),
    }
    rows = []
    for name, (function, transform) in cases.items():
        ways = [partial(transform, f) for f in (function, lib.compile(function))]
        rows.append(in_turns(name, *ways))
    print_turns("transform", rows)
    return rows


def in_turns(name: str, eager: Callable[[], Any], compiled: Callable[[], Any]) -> dict:
    """A row of the least times of two ways."""
    best = [float("inf")] * 2
    for _ in range(300):
        for i, way in enumerate((eager, compiled)):
            start = perf_counter()
            way()
            best[i] = min(best[i], perf_counter() - start)
    return {"name": name, "eager_us": best[0] * 1e6, "compiled_us": best[1] * 1e6}


def print_turns(what: str, rows: list[dict]) -> None:
    print()
    print_table(
        (what, "eager us", "compiled us", "ratio"),
        [
            (
                row["name"],
                number(row["eager_us"], 1),
                number(row["compiled_us"], 1),
                number(row["compiled_us"] / row["eager_us"], 2),
            )
            for row in rows
        ],
    )


def _call(function: Callable, args: tuple, backward: bool) -> Callable[[], Any]:
    def run() -> None:
        out = function(*args)
        if backward:
            args[1].grad = None
            out.backward()

    return run


def main() -> int:
    options = arguments(__doc__).parse_args()
    lib = load("wengert")
    if lib is None:
        print("wengert is not installed", file=sys.stderr)
        return 2
    print(describe(lib))
    rows, verdicts = differentiation(lib)
    compiled, in_proportion = compilation(lib)
    report = {
        "settings": settings(),
        "differentiate": rows,
        "compile": compiled,
        "sizes": sizes(lib),
        "calls": calls(lib),
        "transforms": transforms(lib),
    }
    return finish(options, report, verdicts + in_proportion)


if __name__ == "__main__":
    sys.exit(main())
