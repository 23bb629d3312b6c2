"""Single operators at several sizes, forward and with gradients, as ratios to PyTorch eager.

Both libraries run in turns in one process; a row is the quotient of their fastest turns. The last
table has the geometric mean of each family at each size.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Sequence
from time import perf_counter_ns
from typing import Any, NamedTuple

from harness import arguments, describe, finish, load, print_table, settings, settle

SIZES = (100, 10_000, 1_000_000)
LARGE = 10_000_000
#: The geometric mean of a family that is asked for at a size.
TARGETS = {100: 0.5, 10_000: 0.8, 1_000_000: 1.0, LARGE: 1.0}


class Row(NamedTuple):
    """An operator: its family, the arrays that it takes for a size, and the call itself.

    `inputs(numpy, rng, n)` makes arrays; those of floats require gradients if `gradients`.
    """

    family: str
    name: str
    inputs: Callable[[Any, Any, int], Sequence[Any]]
    call: Callable[..., Any]
    gradients: bool = True
    large: bool = False


def _normal(count: int = 1, positive: bool = False) -> Callable[[Any, Any, int], list]:
    """So many vectors of n normal numbers."""

    def inputs(np: Any, rng: Any, n: int) -> list:
        made = [rng.standard_normal(n).astype(np.float32) for _ in range(count)]
        return [abs(a) + np.float32(0.1) for a in made] if positive else made

    return inputs


def _sides(n: int) -> tuple[int, int]:
    """Rows and columns of a matrix of n elements, of which at most 1,000 lie in a row."""
    columns = min(1000, 10 ** math.ceil(math.log10(n) / 2))
    return n // columns, columns


def _matrix(np: Any, rng: Any, n: int) -> list:
    return [rng.standard_normal(_sides(n)).astype(np.float32)]


def _with_rows(*more: str) -> Callable[[Any, Any, int], list]:
    """A matrix, and what else goes with it: a `row` of floats, a `column`, `classes` of rows."""

    def inputs(np: Any, rng: Any, n: int) -> list:
        rows, columns = _sides(n)
        made = {
            "row": lambda: rng.standard_normal(columns).astype(np.float32),
            "column": lambda: rng.standard_normal((rows, 1)).astype(np.float32),
            "classes": lambda: rng.integers(0, columns, rows),
            "places": lambda: rng.integers(0, columns, (rows, columns)),
            "matrix": lambda: rng.standard_normal((rows, columns)).astype(np.float32),
            "picked": lambda: rng.integers(0, rows, rows),
            "mask": lambda: rng.random((rows, columns)) < 0.5,
        }
        return [*_matrix(np, rng, n), *[made[name]() for name in more]]

    return inputs


def _square(np: Any, rng: Any, n: int) -> list:
    side = max(10, round(n ** (1 / 2) / (4 if n > 100_000 else 1)))
    return [rng.standard_normal((side, side)).astype(np.float32) for _ in range(2)]


def _batches(np: Any, rng: Any, n: int) -> list:
    side = 32 if n > 1000 else 5
    count = max(1, n // side**2)
    return [rng.standard_normal((count, side, side)).astype(np.float32) for _ in range(2)]


def _method(name: str, *args: Any, **named: Any) -> Callable[..., Any]:
    return lambda lib, x: getattr(x, name)(*args, **named)


def _nn(name: str, *args: Any, **named: Any) -> Callable[..., Any]:
    return lambda lib, x, *more: getattr(lib.nn.functional, name)(x, *more, *args, **named)


def _elementwise() -> list[Row]:
    one, two = _normal(), _normal(2)
    rows = [
        Row("elementwise", name, one, _method(name), large=name in ("exp", "tanh", "sin"))
        for name in (
            "exp", "tanh", "sigmoid", "sin", "cos", "expm1", "erf", "abs", "neg", "relu", "square",
        )
    ]  # fmt: skip
    rows += [
        Row("elementwise", name, _normal(positive=True), _method(name))
        for name in ("log", "log1p", "sqrt", "rsqrt", "log2", "reciprocal")
    ]
    rows += [
        Row("elementwise", name, one, _nn(name), large=name == "gelu")
        for name in (
            "gelu", "silu", "softplus", "leaky_relu", "elu", "hardswish", "mish", "logsigmoid",
        )
    ]  # fmt: skip
    rows += [
        Row("elementwise", f"x ** {power}", one, lambda lib, x, power=power: x**power)
        for power in (2, 3, -1)
    ]
    rows += [
        Row("elementwise", "x + y", two, lambda lib, x, y: x + y, large=True),
        Row("elementwise", "x * y", two, lambda lib, x, y: x * y, large=True),
        Row("elementwise", "x / y", two, lambda lib, x, y: x / y),
        Row("elementwise", "x * 3", one, lambda lib, x: x * 3.0),
        Row("elementwise", "maximum", two, lambda lib, x, y: lib.maximum(x, y)),
        Row("elementwise", "clamp", one, lambda lib, x: x.clamp(-0.5, 0.5)),
        Row("elementwise", "x + row", _with_rows("row"), lambda lib, x, y: x + y, large=True),
        Row("elementwise", "x * column", _with_rows("column"), lambda lib, x, y: x * y),
        Row("elementwise", "where", _with_rows("matrix", "mask"),
            lambda lib, x, y, mask: lib.where(mask, x, y)),
        Row("elementwise", "x > y", two, lambda lib, x, y: x > y, gradients=False),
        Row("elementwise", "addcmul", _normal(3), lambda lib, x, y, z: lib.addcmul(x, y, z)),
        Row("elementwise", "lerp", two, lambda lib, x, y: lib.lerp(x, y, 0.3)),
        Row("elementwise", "add_", two, lambda lib, x, y: x.add_(y), gradients=False),
        Row("elementwise", "transposed + x", _with_rows("matrix"),
            lambda lib, x, y: x.t() + y.t()),
    ]  # fmt: skip
    return rows


def _reductions() -> list[Row]:
    rows = [
        Row("reductions", f"{name}()", _matrix, _method(name), large=name in ("sum", "amax"))
        for name in ("sum", "mean", "amax", "var", "norm", "prod")
    ]
    for name in ("sum", "mean", "amax", "var", "logsumexp", "cumsum"):
        for dim in (0, 1):
            rows.append(
                Row("reductions", f"{name}({dim})", _matrix, _method(name, dim),
                    large=name in ("sum", "logsumexp"))
            )  # fmt: skip
    rows += [
        Row("reductions", "argmax(1)", _matrix, _method("argmax", 1), gradients=False),
        Row("reductions", "max(1)", _matrix, lambda lib, x: x.max(1).values),
        Row("reductions", "any", _matrix, lambda lib, x: (x > 3).any(), gradients=False),
    ]
    return rows


def _networks() -> list[Row]:
    family = "networks"
    return [
        Row(family, "softmax", _matrix, _method("softmax", 1), large=True),
        Row(family, "softmax(0)", _matrix, _method("softmax", 0)),
        Row(family, "log_softmax", _matrix, _method("log_softmax", 1), large=True),
        Row(family, "layer_norm", _with_rows("row", "row"),
            lambda lib, x, w, b: lib.nn.functional.layer_norm(x, (x.shape[1],), w, b), large=True),
        Row(family, "batch_norm", _with_rows("row", "row"),
            lambda lib, x, w, b: lib.nn.functional.batch_norm(
                x, None, None, w, b, training=True)),
        Row(family, "group_norm", _matrix,
            lambda lib, x: lib.nn.functional.group_norm(x, x.shape[1] // 5)),
        Row(family, "cross_entropy", _with_rows("classes"), _nn("cross_entropy"), large=True),
        Row(family, "nll_loss", _with_rows("classes"), _nn("nll_loss")),
        Row(family, "mse_loss", _normal(2), _nn("mse_loss")),
        Row(family, "l1_loss", _normal(2), _nn("l1_loss")),
        Row(family, "smooth_l1_loss", _normal(2), _nn("smooth_l1_loss")),
        Row(family, "bce_with_logits", _with_rows("matrix"),
            lambda lib, x, y: lib.nn.functional.binary_cross_entropy_with_logits(
                x, y.detach().sigmoid())),
        Row(family, "dropout", _matrix, _nn("dropout", 0.5)),
        Row(family, "normalize", _matrix, _nn("normalize", dim=1)),
    ]  # fmt: skip


def _indexing() -> list[Row]:
    family = "indexing"
    return [
        Row(family, "x[rows]", _with_rows("picked"), lambda lib, x, i: x[i], large=True),
        Row(family, "index_select", _with_rows("picked"),
            lambda lib, x, i: x.index_select(0, i)),
        Row(family, "embedding", _with_rows("picked"),
            lambda lib, x, i: lib.nn.functional.embedding(i, x), large=True),
        Row(family, "gather", _with_rows("places"), lambda lib, x, i: x.gather(1, i)),
        Row(family, "scatter_add", _with_rows("places", "matrix"),
            lambda lib, x, i, y: x.scatter_add(1, i, y)),
        Row(family, "index_add", _with_rows("picked", "matrix"),
            lambda lib, x, i, y: x.index_add(0, i, y)),
        Row(family, "x[mask]", _with_rows("mask"), lambda lib, x, m: x[m]),
        Row(family, "masked_fill", _with_rows("mask"), lambda lib, x, m: x.masked_fill(m, 0.0)),
        Row(family, "x[:, ::2]", _matrix, lambda lib, x: x[:, ::2] * 2.0),
        Row(family, "sort", _matrix, lambda lib, x: x.sort(1).values),
        Row(family, "topk", _matrix, lambda lib, x: x.topk(min(5, x.shape[1]), 1).values),
    ]  # fmt: skip


def _joining() -> list[Row]:
    family = "joining"
    two = _with_rows("matrix")
    return [
        Row(family, "cat(0)", two, lambda lib, x, y: lib.cat([x, y], 0), large=True),
        Row(family, "cat(1)", two, lambda lib, x, y: lib.cat([x, y], 1)),
        Row(family, "stack", two, lambda lib, x, y: lib.stack([x, y])),
        Row(family, "chunk + cat", _matrix, lambda lib, x: lib.cat(x.chunk(2, 1), 0)),
        Row(family, "t().contiguous()", _matrix, lambda lib, x: x.t().contiguous(), large=True),
        Row(family, "repeat", _matrix, lambda lib, x: x.repeat(2, 1)),
        Row(family, "pad", _matrix, _nn("pad", (1, 1))),
        Row(family, "flip", _matrix, lambda lib, x: x.flip(1)),
        Row(family, "roll", _matrix, lambda lib, x: x.roll(1, 1)),
        Row(family, "clone", _matrix, lambda lib, x: x.clone()),
        Row(family, "tril", _matrix, lambda lib, x: x.tril()),
    ]


def _products() -> list[Row]:
    family = "products"
    return [
        Row(family, "x @ y", _square, lambda lib, x, y: x @ y, large=True),
        Row(family, "x @ y.t()", _square, lambda lib, x, y: x @ y.t()),
        Row(family, "bmm", _batches, lambda lib, x, y: x @ y, large=True),
        Row(family, "einsum", _batches, lambda lib, x, y: lib.einsum("bij,bkj->bik", x, y)),
        Row(family, "matrix @ row", _with_rows("row"), lambda lib, x, y: x @ y),
        Row(family, "dot", _normal(2), lambda lib, x, y: x @ y),
        Row(family, "linear", _square,
            lambda lib, x, w: lib.nn.functional.linear(x, w, w[0])),
    ]  # fmt: skip


def rows() -> list[Row]:
    """All operators that are measured."""
    return [*_elementwise(), *_reductions(), *_networks(), *_indexing(), *_joining(), *_products()]


def _work(lib: Any, row: Row, arrays: Sequence[Any], backward: bool) -> Callable[[], Any]:
    """One call under a library, with the gradients of all floats if `backward`."""
    tensors = [lib.tensor(a) for a in arrays]
    if not backward:

        def forward() -> Any:
            with lib.no_grad():
                return row.call(lib, *tensors)

        return forward
    leaves = [t.requires_grad_() for t in tensors if t.is_floating_point()]
    seed = lib.ones_like(row.call(lib, *tensors))

    def both() -> Any:
        row.call(lib, *tensors).backward(seed)
        for leaf in leaves:
            leaf.grad = None

    return both


def _turn(run: Callable[[], Any], calls: int, threads: int) -> float:
    if threads > 1:
        settle(run)
    start = perf_counter_ns()
    for _ in range(calls):
        run()
    return (perf_counter_ns() - start) / calls


def ratio(works: Sequence[Callable[[], Any]], seconds: float, threads: int) -> tuple[float, float]:
    """Nanoseconds of two works, the least of turns that alternate."""
    for work in works:
        work()
    slowest = max(_turn(work, 2, threads) for work in works)
    calls = max(1, round(0.003 * threads * 1e9 / slowest))
    rounds = max(5, min(200, round(seconds * 1e9 / (2 * calls * slowest))))
    best = [math.inf, math.inf]
    for _ in range(rounds):
        for i, work in enumerate(works):
            best[i] = min(best[i], _turn(work, calls, threads))
    return best[0], best[1]


def _mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--only", action="append", help="rows whose family or name contains it")
    parser.add_argument("--sizes", type=float, nargs="*", default=[*SIZES, LARGE])
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=0.2, help="time spent on each figure")
    options = parser.parse_args()
    subject, reference = load("wengert"), load("torch")
    if subject is None or reference is None:
        print("both wengert and torch are needed")
        return 2
    import numpy as np

    print(f"{describe(subject)} against {describe(reference)}; least of alternating turns")
    chosen = [
        row for row in rows()
        if not options.only or any(o in f"{row.family} {row.name}" for o in options.only)
    ]  # fmt: skip
    found: dict[tuple, dict[str, float]] = {}
    gc.disable()
    for threads in options.threads:
        for library in (subject, reference):
            library.set_num_threads(threads)
        for row in chosen:
            for n in map(int, options.sizes):
                if n == LARGE and not row.large:
                    continue
                for backward in (False, True) if row.gradients else (False,):
                    arrays = row.inputs(np, np.random.default_rng(1), n)
                    works = [_work(lib, row, arrays, backward) for lib in (subject, reference)]
                    ours, theirs = ratio(works, options.seconds, threads)
                    key = (row.family, n, backward, threads)
                    found.setdefault(key, {})[row.name] = ours / theirs
                    print(
                        f"{row.family:12} {row.name:18} {n:>9} "
                        f"{'both' if backward else 'forward':8}{threads} "
                        f"{ours / 1e3:12.2f} {theirs / 1e3:12.2f} {ours / theirs:7.2f}"
                        + (" !" if ours > 2 * theirs else ""),
                        flush=True,
                    )
                    gc.collect()
    lines, verdicts = [], []
    for (family, n, backward, threads), ratios in sorted(found.items()):
        mean, worst = _mean(list(ratios.values())), max(ratios, key=lambda name: ratios[name])
        verdicts.append(mean <= TARGETS.get(n, 1.0))
        lines.append([
            family, f"{n:.0e}", "both" if backward else "forward", str(threads), f"{mean:.2f}",
            f"{TARGETS.get(n, 1.0):.1f}", worst, f"{ratios[worst]:.2f}",
        ])  # fmt: skip
    print_table(("family", "size", "what", "threads", "mean", "target", "worst", "ratio"), lines)
    report = {
        **settings(), "results": [[*key, name, value] for key, ratios in found.items()
                                  for name, value in ratios.items()],
    }  # fmt: skip
    return finish(options, report, verdicts)


if __name__ == "__main__":
    raise SystemExit(main())
