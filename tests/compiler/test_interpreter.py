"""The interpreter: values, gradients through it, control flow, layouts, freeing, errors."""

import gc
import weakref

import numpy as np
import pytest

import wengert
from wengert.compiler import Program, parse, run
from wengert.compiler.ir import primitives


def tensor(*values, **options):
    return wengert.tensor(list(values), **options)


def execute(text, *inputs):
    return run(parse(text), *inputs)


def test_a_chain():
    text = """
    graph(%x : float32[2], %y : float32[2]):
      %0 = wengert::mul(%x, %y)
      %1 = wengert::add(%0, 1.5, alpha=2)
      %2 = wengert::sum.dim_IntList(%1, [0], True)
      return (%2, %x, %x)
    """
    x, y = tensor(1.0, 2.0), tensor(3.0, 4.0)
    total, *rest = execute(text, x, y)
    assert total.tolist() == [17.0]
    assert all(value is x for value in rest)


def test_lists_several_outputs_and_constants():
    text = """
    graph(%x : float32[2, 3], %i : int64[2]):
      %0, %1 = wengert::unbind(%x, 0)
      %2 = wengert::stack([%1, %0, %1], 0)
      %3, %4 = wengert::max.dim(%2, 1)
      %5 = wengert::index(%x, [None, %i])
      %c = prim::Constant[value=tensor(float32[2], [10.0, 20.0])]()
      %6 = wengert::mul(%5, %c)
      %7 : List(float32) = prim::ListConstruct(%3, %6)
      %8, %9 = prim::ListUnpack(%7)
      %10 : Tuple(Tensor, int64) = prim::TupleConstruct(%4, %i)
      return (%8, %9, %10)
    """
    x = wengert.arange(6.0).reshape(2, 3)
    values, picked, pair = execute(text, x, tensor(2, 0))
    assert values.tolist() == [5.0, 2.0, 5.0]
    assert picked.tolist() == [[20.0, 0.0], [50.0, 60.0]]
    assert pair[0].tolist() == [2, 2, 2]


def test_numbers_are_weak():
    text = "graph(%x : float32[1]):\n  %0 = wengert::mul(%x, 2.0)\n  return (%0)"
    assert execute(text, tensor(1.0))[0].dtype is wengert.float32
    assert execute(text, tensor(1))[0].dtype is wengert.float32
    assert execute(text, tensor(1.0, dtype=wengert.float16))[0].dtype is wengert.float16


def test_running_is_recorded_by_eager_autograd():
    text = """
    graph(%x : float32[3]):
      %0 = wengert::mul(%x, %x)
      %1 = wengert::tanh(%0)
      return (%1)
    """
    x = tensor(0.1, 0.2, 0.3, requires_grad=True)
    (out,) = execute(text, x)
    assert out.grad_fn.name() == "TanhBackward0"
    (got,) = wengert.autograd.grad(out.sum(), x)
    (want,) = wengert.autograd.grad((x * x).tanh().sum(), x)
    assert got.tolist() == want.tolist()
    with wengert.no_grad():
        assert not execute(text, x)[0].requires_grad


@pytest.mark.parametrize("kind", ["view", "_reshape_alias", "_unsafe_view"])
def test_shapes_change_in_any_layout(kind):
    text = f"graph(%x : float32):\n  %0 = wengert::{kind}(%x, [6])\n  return (%0)"
    x = wengert.arange(6.0).reshape(2, 3)
    assert execute(text, x.t())[0].tolist() == x.t().reshape(6).tolist()
    assert execute(text, wengert.ones(1).expand(6))[0].tolist() == [1.0] * 6
    assert execute(text, x)[0].data_ptr() == x.data_ptr()


def test_other_views_of_any_layout():
    pairs = wengert.arange(8.0).reshape(2, 4).t()
    text = "graph(%x : float32):\n  %0 = wengert::view_as_complex(%x)\n  return (%0)"
    assert execute(text, pairs)[0].tolist() == [0 + 4j, 1 + 5j, 2 + 6j, 3 + 7j]
    text = "graph(%x : float32):\n  %0 = wengert::view.dtype(%x, float64)\n  return (%0)"
    assert execute(text, pairs)[0].shape == (4, 1)


def test_undefined_gradients():
    text = """
    graph(%g : float32[2], %h : float32[2], %x : float32[2]):
      %z = prim::AutogradZero()
      %0 = prim::AutogradAdd(%g, %z)
      %1 = prim::AutogradAdd(%0, %h)
      %2 = prim::GradOf[name="wengert::mul"](%1)
        block():
          %3 = wengert::mul(%1, %x)
          return (%3)
      %4 : float32[2] = prim::GradOrZero(%g, [2], float32)
      return (%z, %1, %2, %4)
    """
    g, h, x = tensor(1.0, 2.0), tensor(10.0, 20.0), tensor(3.0, 3.0)
    zero, total, product, filled = execute(text, g, h, x)
    assert zero is None
    assert total.tolist() == [11.0, 22.0] and product.tolist() == [33.0, 66.0]
    assert filled is g
    _, total, product, filled = execute(text, None, h, x)
    assert total is h and product.tolist() == [30.0, 60.0]
    assert filled.tolist() == [0.0, 0.0] and filled.dtype is wengert.float32
    _, total, product, _ = execute(text, None, None, x)
    assert total is None and product is None


def test_sizes():
    text = """
    graph(%x : float32, %y : float32, %g : float32):
      %0 : List(int) = prim::size(%x)
      %1 : List(int) = prim::size(%y)
      %2 : Optional(List(int)) = prim::_size_if_not_equal(%0, %1)
      %3 = prim::_grad_sum_to_size(%g, %2)
      %4 = wengert::expand(%3, %1)
      return (%2, %3, %4)
    """
    ones = wengert.ones(2, 3)
    size, summed, back = execute(text, wengert.ones(3), ones, ones)
    assert size == (3,) and summed.tolist() == [2.0] * 3 and back.shape == (2, 3)
    size, summed, _ = execute(text, ones, ones, ones)
    assert size is None and summed is ones


def test_creation():
    text = "graph():\n  %0 = prim::full([2, 3], 7, int64)\n  return (%0)"
    (out,) = execute(text)
    assert out.tolist() == [[7] * 3] * 2 and out.dtype is wengert.int64


COND = """
graph(%p : bool[], %x : float32[2], %y : float32[2]):
  %0 = prim::cond(%p, %x, %y)
    block(%a, %b):
      %1 = wengert::mul(%a, %b)
      return (%1)
    block(%c, %d):
      %2 = wengert::sub(%c, %d)
      return (%2)
  return (%0)
"""


def test_cond():
    x, y = tensor(1.0, 2.0), tensor(3.0, 4.0)
    graph = parse(COND)
    for truth in (wengert.tensor(True), True):
        assert run(graph, truth, x, y)[0].tolist() == [3.0, 8.0]
    for truth in (wengert.tensor(False), False):
        assert run(graph, truth, x, y)[0].tolist() == [-2.0, -2.0]


def test_while():
    text = """
    graph(%x : float32[], %limit : float32[]):
      %n : int64[] = prim::Constant[value=tensor(int64[], [0])]()
      %0, %1 = prim::while(%x, %n, %limit)
        block(%a, %b, %c):
          %2 = wengert::lt(%a, %c)
          return (%2)
        block(%d, %e, %f):
          %3 = wengert::mul(%d, 2)
          %4 = wengert::add(%e, 1)
          return (%3, %4)
      return (%0, %1)
    """
    value, count = execute(text, wengert.tensor(3.0), wengert.tensor(40.0))
    assert (value.item(), count.item()) == (48.0, 4)
    value, count = execute(text, wengert.tensor(3.0), wengert.tensor(1.0))
    assert (value.item(), count.item()) == (3.0, 0)


SCAN = """
graph(%h : float32[2], %xs : float32[3, 2], %w : float32[2]):
  %0, %1 = prim::scan[carried=1, mapped=1, reverse={reverse}](%h, %xs, %w)
    block(%a, %b, %c):
      %2 = wengert::mul(%a, %c)
      %3 = wengert::add(%2, %b)
      return (%3, %2)
  return (%0, %1)
"""


@pytest.mark.parametrize("reverse", [False, True])
def test_scan(reverse):
    h, xs, w = tensor(1.0, 1.0), wengert.arange(6.0).reshape(3, 2), tensor(2.0, 3.0)
    last, seen = execute(SCAN.format(reverse=reverse), h, xs, w)
    expected = []
    for x in reversed(xs) if reverse else xs:
        expected.append((h * w).tolist())
        h = h * w + x
    assert last.tolist() == h.tolist()
    assert seen.tolist() == (expected[::-1] if reverse else expected)


MAP = """
graph(%xs : float32, %ys : float32, %w : float32[2]):
  %0 = prim::map[mapped=2](%xs, %ys, %w)
    block(%a, %b, %c):
      %1 = wengert::mul(%a, %b)
      %2 : float32[2] = wengert::mul(%1, %c)
      return (%2)
  return (%0)
"""


def test_map():
    xs, w = wengert.arange(6.0).reshape(3, 2), tensor(2.0, 3.0)
    (out,) = execute(MAP, xs, xs, w)
    assert out.tolist() == (xs * xs * w).tolist()
    (empty,) = execute(MAP, xs[:0], xs[:0], w)
    assert empty.shape == (0, 2) and empty.dtype is wengert.float32
    with pytest.raises(RuntimeError, match=r"differ in length: \[3, 2\]"):
        execute(MAP, xs, xs[:2], w)
    with pytest.raises(RuntimeError, match="no known shape"):
        execute(MAP.replace("%2 : float32[2]", "%2 : Tensor"), xs[:0], xs[:0], w)


def test_gradients_through_control_flow():
    xs = wengert.arange(6.0).reshape(3, 2).requires_grad_()
    h, w = tensor(1.0, 1.0, requires_grad=True), tensor(2.0, 3.0, requires_grad=True)
    last, _ = execute(SCAN.format(reverse=False), h, xs, w)
    got = wengert.autograd.grad(last.sum(), (h, xs, w))
    a = h
    for i in range(3):
        a = a * w + xs[i]
    want = wengert.autograd.grad(a.sum(), (h, xs, w))
    assert [g.tolist() for g in got] == [g.tolist() for g in want]


def test_profiling_notes_types():
    text = """
    graph(%x : Tensor):
      %0 = prim::profile(%x)
      %1 = wengert::neg(%0)
      return (%1)
    """
    graph = parse(text)
    run(graph, wengert.ones(2, 3))
    assert str(graph.value("0").node.attributes["profiled_type"]) == "float32[2, 3; no_grad]"
    run(graph, wengert.ones(4, 3, requires_grad=True))
    assert str(graph.value("0").node.attributes["profiled_type"]) == "float32[*, 3]"


@pytest.fixture
def watched():
    """Declares a primitive that notes, at each call, which of some tensors are still there."""
    tensors: list[weakref.ref] = []
    notes: list[list[bool]] = []

    def watch(*args):
        gc.collect()
        notes.append([ref() is not None for ref in tensors])
        out = wengert.ones(3)
        tensors.append(weakref.ref(out))
        return out

    primitives.register_primitive(primitives.Primitive("prim::watch", evaluate=watch))
    yield tensors, notes
    del primitives.PRIMITIVES["prim::watch"]


def test_values_are_dropped_after_their_last_use(watched):
    text = """
    graph(%x : Tensor):
      %0 = prim::watch(%x)
      %1 = prim::watch(%0)
      %2 = prim::watch(%0)
      %3 = prim::GradOf[name="f"](%2)
        block():
          %4 = prim::watch(%1)
          %5 = prim::watch(%4)
          return (%5)
      %6 = prim::watch(%3)
      return (%6)
    """
    execute(text, wengert.ones(1))
    assert watched[1] == [
        [],
        [True],
        [True, True],
        [False, True, True],  # %0 is not needed any more
        [False, True, True, True],  # %1 belongs to the outer block and lives until GradOf ends
        [False, False, False, False, True],
    ]


def test_inputs_are_dropped_too(watched):
    text = """
    graph(%x : Tensor, %unused : Tensor):
      %0 = wengert::neg(%x)
      %1 = prim::watch(%0)
      return (%1)
    """
    tensors, notes = watched
    inputs = [wengert.ones(2), wengert.ones(3)]
    tensors.extend(weakref.ref(x) for x in inputs)
    Program(parse(text)).run(inputs)
    assert notes == [[False, False]] and inputs == []


def test_a_program_runs_again_and_again():
    text = "graph(%x : float32[2]):\n  %0 = wengert::mul(%x, %x)\n  return (%0)"
    program = Program(parse(text))
    for i in range(3):
        assert program(tensor(1.0, i * 1.0))[0].tolist() == [1.0, float(i * i)]


def test_errors_say_where():
    text = """
    graph(%x : float32[2], %y : float32[3]):
      %0 : float32[2] = wengert::neg(%x)
      %1 : float32[2] = wengert::mul(%0, %y)  # model.py:12
      return (%1)
    """
    with pytest.raises(RuntimeError) as caught:
        execute(text, wengert.ones(2), wengert.ones(3))
    assert caught.value.__notes__ == [
        "while running %1 : float32[2] = wengert::mul(%0, %y)  # model.py:12"
    ]
    with pytest.raises(TypeError, match="takes 2 inputs, 1 were given"):
        execute(text, wengert.ones(2))
    wrong = "graph(%x : float32):\n  %0, %1 = wengert::unbind(%x, 0)\n  return (%0)"
    with pytest.raises(RuntimeError, match="2 outputs but 3 results"):
        execute(wrong, wengert.ones(3))


def test_long_graphs_do_not_recurse():
    lines = ["graph(%v : float32[1]):", "  %0 = wengert::neg(%v)"]
    lines += [f"  %{i} = wengert::neg(%{i - 1})" for i in range(1, 3000)]
    text = "\n".join([*lines, "  return (%2999)"])
    assert execute(text, tensor(2.0))[0].tolist() == [2.0]
    np.testing.assert_equal(len(list(parse(text).nodes())), 3000)
