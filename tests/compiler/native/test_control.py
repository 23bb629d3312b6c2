"""Control flow as machine code: loops and branches without a return to Python."""

import pytest

import wengert
from compiler.native.support import assert_alike, assert_native, programs_of, randn, reasons
from wengert.compiler import cond, explain, scan, while_loop
from wengert.compiler import map as map_slices


def cell(w):
    def turn(h, x):
        h = (x @ w + h).tanh()
        return h, h * 2

    return turn


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [1, 2, 5])
def test_scan(reverse, length):
    def run(w, h, x):
        return scan(cell(w), h, x, reverse=reverse)

    assert_native(run, randn(4, 4), randn(3, 4, seed=1), randn(length, 3, 4, seed=2))


def test_scan_along_another_dimension():
    def run(w, h, x):
        return scan(cell(w), h, x, dim=1)

    assert_native(run, randn(4, 4), randn(3, 4, seed=1), randn(3, 5, 4, seed=2))


@pytest.mark.compiled_only
def test_what_a_loop_copies_each_time_is_copied_before():
    def run(w, h, x):
        return scan(cell(w[1:].t()), h, x)

    program = assert_native(
        run, randn(33, 32), randn(16, 32, seed=1), randn(6, 16, 32, seed=2), tolerance=1e-10
    )
    (variant,) = program.variants.values()
    (call,) = [step for step in variant.layout.steps if getattr(step, "name", "") == "scan"]
    (body,) = call.arguments["bodies"]
    assert len(body.copies) <= 1


def test_carried_values_change_places():
    def run(a, b, x):
        return scan(lambda c, x: ((c[1], c[0] + x), c[0]), (a, b), x)

    assert_native(run, randn(3), randn(3, seed=1), randn(4, 3, seed=2))


def test_one_number_everywhere_is_carried():
    def run(x):
        return scan(lambda c, x: (c + x, c), wengert.zeros(3, dtype=wengert.float64), x)

    assert_native(run, randn(4, 3))


def test_loops_within_loops():
    def turn(h, row):
        h, ys = scan(lambda c, e: (c * 0.5 + e, c), h, row)
        return h, ys.sum()

    assert_native(lambda h, x: scan(turn, h, x), randn(3), randn(4, 5, 3, seed=1))


def test_map():
    assert_native(lambda x, y: map_slices(lambda a, b: a * b.sum(), x, y), randn(5, 3), randn(3))


@pytest.mark.parametrize("sign", [1, -1])
def test_cond(sign):
    def run(x, y):
        return cond(x.sum() > 0, lambda x, y: (x.sin(), y + 1), lambda x, y: (x * 2, y), (x, y))

    assert_native(run, randn(5, 3).abs() * sign, randn(2))


@pytest.mark.parametrize("rounds", [0, 1, 2, 5])
def test_while_loop(rounds):
    def run(x):
        start = (wengert.tensor(0), x)
        return while_loop(lambda i, y: i < rounds, lambda i, y: (i + 1, y.sin() + 1), start)

    assert_native(run, randn(5, 3))


@pytest.mark.parametrize("rounds", [0, 1, 2, 5, 40])
def test_reverse_of_a_while_loop(rounds):
    def loss(x, w):
        start = (wengert.tensor(0), x, x[0] * 2)

        def turn(i, y, z):
            return i + 1, (y @ w).sin() + z * 0.1, z * 0.3 * w.sum().tanh() + y[1]

        _, y, z = while_loop(lambda i, y, z: i < rounds, turn, start)
        return (y.square().sum() + z.sin().sum()) * x.sum()

    def run(x, w):
        return wengert.func.grad(loss, (0, 1))(x, w)

    x, w = randn(5, 3), randn(3, 3, seed=1) / 3
    native = assert_native(run, x, w)
    for size in (2, -1, 1):  # memory of rounds stays from call to call
        assert_alike(native(x * size, w), run(x * size, w), 1e-12)


def test_reverse_of_a_while_loop_whose_rounds_depend_on_values():
    def halved(x):
        return while_loop(lambda y: y.abs().max() > 0.1, lambda y: (y * 0.5,), (x,))[0].sum()

    compiled = wengert.compile(halved, backend="native")
    for start in (0.01, 1.0, 1e6, 3.0):
        x = wengert.full((3,), start, requires_grad=True)
        compiled(x).backward()
        its = wengert.full((3,), start, requires_grad=True)
        halved(its).backward()
        assert wengert.equal(x.grad, its.grad)
    assert "prim::rounds" not in explain(compiled, details=True)


def test_an_index_out_of_range_within_a_loop():
    def run(table, places):
        zero = wengert.zeros(1, 2, dtype=wengert.float64)
        return scan(lambda c, i: (c + table.index_select(0, i), c), zero, places)

    table, places = randn(3, 2), wengert.tensor([[0], [2], [1]])
    native, interpreted = programs_of(run, table, places)
    assert_alike(native(table, places), interpreted(table, places), 1e-12)
    with pytest.raises(IndexError):
        native(table, places + 1)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int64", "bool"])
def test_dtypes(dtype):
    x = (randn(4, 3) * 3).to(getattr(wengert, dtype))

    def turn(c, x):
        return (c | x, c & x) if dtype == "bool" else (c + x, c * x)

    native, interpreted = programs_of(lambda c, x: scan(turn, c, x), x[0], x)
    assert_alike(native(x[0], x), interpreted(x[0], x), 1e-2)


def test_derivatives_of_loops_are_native():
    def run(w, h, x):
        last, ys = scan(cell(w), h, x)
        return (last * last).sum() + ys.sin().sum()

    def derivatives(function):
        tensors = [randn(*s, seed=i).requires_grad_() for i, s in enumerate(shapes)]
        value = function(*tensors)
        first = wengert.autograd.grad(value, tensors, create_graph=True)
        return [value, *first, *wengert.autograd.grad(sum((g * g).sum() for g in first), tensors)]

    shapes = ((4, 4), (3, 4), (5, 3, 4))
    compiled = wengert.compile(run, backend="native", fullgraph=True)
    assert_alike(derivatives(compiled), derivatives(run), 1e-10)
    assert "calls" not in explain(compiled, details=True).split("\n", 2)[2]


def test_what_has_no_machine_code_inside_runs_as_it_is():
    def run(x):
        return scan(lambda c, x: (c + x.sort()[0], c), x[0], x)

    x = randn(4, 3)
    native, interpreted = programs_of(run, x)
    assert_alike(native(x), interpreted(x), 1e-12)
    assert "sort" in reasons(native)["prim::scan"]
