"""Types of values from those of the inputs."""

import pytest

import wengert
from compiler.support import graph, typed
from operators.support import build, call, each_sample
from wengert.compiler import Graph, TensorType
from wengert.compiler.ir.types import type_of
from wengert.compiler.passes import propagate_shapes, shapes
from wengert.dispatch.operator import Operator
from wengert.utils._python_dispatch import TorchDispatchMode


def types(text):
    """The types of the outputs of a graph, as text."""
    return [str(value.type) for value in typed(text).outputs]


def test_shapes_and_dtypes():
    assert types("""
        graph(%x : float32[4, 5], %w : float32[5, 3], %n : int64[3]):
          %0 = wengert::mm(%x, %w)
          %1 = wengert::add(%0, %n)
          %2 = wengert::sum.dim_IntList(%1, [1], True)
          %3, %4 = wengert::max.dim(%1, 0)
          %5 = wengert::lt(%1, 0)
          %6, %7, %8 = wengert::unbind(%w, 1)
          %9 = wengert::_to_copy(%n, complex64)
          return (%0, %1, %2, %3, %4, %5, %6, %9)
    """) == [
        "float32[4, 3]", "float32[4, 3]", "float32[4, 1]", "float32[3]", "int64[3]", "bool[4, 3]",
        "float32[5]", "complex64[3]",
    ]  # fmt: skip


def test_whether_grad_is_required_stays():
    given = typed("""
        graph(%x : float32[4; grad]):
          %0 : float32[...; grad] = wengert::neg(%x)
          %1 = wengert::neg(%x)
          return (%0, %1)
    """)
    assert [str(v.type) for v in given.outputs] == ["float32[4; grad]", "float32[4]"]


def test_unknown_lengths():
    assert types("""
        graph(%x : float32[*, 5], %w : float32[5, 3], %y : float32, %z : float64[], %u : Tensor):
          %0 = wengert::mm(%x, %w)
          %1 = wengert::sum(%x)
          %2 = wengert::sum.dim_IntList(%x, [0])
          %3 = wengert::mul(%x, %z)
          %4 = wengert::tanh(%y)
          %5 = wengert::sum(%y)
          %6 = wengert::t(%x)
          %7 = wengert::neg(%u)
          %8 = wengert::mul(%x, %y)
          return (%0, %1, %2, %3, %4, %5, %6, %7, %8)
    """) == [
        "float32[*, 3]", "float32[]", "float32[5]", "float32[*, 5]", "float32", "float32[]",
        "float32[5, *]", "Tensor", "float32",
    ]  # fmt: skip


def test_unknown_and_known_lengths_broadcast():
    assert types("""
        graph(%x : float32[*, 1], %y : float32[1, 5], %z : float32[4, *]):
          %0 = wengert::add(%x, %y)
          %1 = wengert::add(%x, %z)
          return (%0, %1)
    """) == ["float32[*, 5]", "float32[4, *]"]


def test_data_dependent_shapes_stay_unknown():
    assert types("""
        graph(%x : float32[4], %m : bool[4]):
          %0 = wengert::masked_select(%x, %m)
          %1 = wengert::exp(%0)
          return (%0, %1)
    """) == ["Tensor", "Tensor"]


def test_what_a_program_says_itself_is_kept():
    assert types("""
        graph(%x : float32[4], %m : bool[4]):
          %0 : float32[*] = wengert::masked_select(%x, %m)
          %1 = wengert::exp(%0)
          return (%1)
    """) == ["float32[*]"]


def test_impossible_shapes_are_errors():
    with pytest.raises(RuntimeError, match=r"size of tensor a \(2\) must match .* b \(3\)"):
        typed("graph(%x : float32[2], %y : float32[3]):\n  %0 = wengert::mul(%x, %y)\n  return ()")


def test_primitives():
    assert types("""
        graph(%x : float32[4, 5], %g : float32[2, 4, 5], %u : float32):
          %0 = prim::full([2, 3], 1, int64)
          %1 : List(int) = prim::size(%x)
          %2 = prim::_grad_sum_to_size(%g, [4, 5])
          %3 = prim::_grad_sum_to_size(%g, %1)
          %4 = prim::AutogradZero()
          %5 = prim::AutogradAdd(%4, %x)
          %6 = prim::GradOrZero(%u, [3], float32)
          %7 : Any = prim::ListConstruct(%x, %g)
          %8, %9 = prim::ListUnpack(%7)
          %10 : Any = prim::TupleConstruct(%x, %g)
          %11, %12 = prim::TupleUnpack(%10)
          %13 = prim::profile(%x)
          %14 : Any = prim::Constant[value=[1, 2]]()
          return (%0, %1, %2, %3, %5, %6, %7, %9, %10, %12, %13, %14)
    """) == [
        "int64[2, 3]", "List(int)", "float32[4, 5]", "float32", "float32[4, 5]", "float32[3]",
        "List(float32)", "float32", "Tuple(float32[4, 5], float32[2, 4, 5])", "float32[2, 4, 5]",
        "float32[4, 5]", "List(int)",
    ]  # fmt: skip


def test_control_flow():
    assert types("""
        graph(%p : bool[], %x : float32[3, 4], %h : float32[4], %s : int64[]):
          %0 = prim::cond(%p, %x)
            block(%a):
              %1 = wengert::sum.dim_IntList(%a, [0])
              return (%1)
            block(%b):
              %2 = wengert::sum.dim_IntList(%b, [1])
              return (%2)
          %3, %4 = prim::scan[carried=1, mapped=1, reverse=False](%h, %x)
            block(%c, %d):
              %5 = wengert::add(%c, %d)
              %6 = wengert::sum(%5)
              return (%5, %6)
          %7 = prim::map[mapped=1](%x, %s)
            block(%e, %f):
              %8 = wengert::mul(%e, %f)
              return (%8)
          %9, %10 = prim::while(%s, %h)
            block(%i, %j):
              %11 = wengert::lt(%i, 3)
              return (%11)
            block(%k, %l):
              %12 = wengert::add(%k, 1.5)
              %13 = wengert::stack([%l, %l], 0)
              return (%12, %13)
          return (%0, %3, %4, %7, %9, %10)
    """) == [
        "float32[*]", "float32[4]", "float32[3]", "float32[3, 4]", "Tensor[]", "float32",
    ]  # fmt: skip


class Calls(TorchDispatchMode):
    """Checks, for each operator call of a program, that a graph of that call has its types."""

    def __init__(self):
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if func._schema.is_mutable or not isinstance(func.op, Operator):
            return out
        graph = Graph()

        def value(item):
            if isinstance(item, wengert.Tensor):
                return graph.add_input(TensorType(item.dtype, item.shape))
            return [value(part) for part in item] if isinstance(item, list) else item

        expected = list(out) if isinstance(out, (tuple, list)) else [out]
        graph.insert(
            f"wengert::{func.op.name}", *map(value, args), outputs=len(expected),
            **{name: value(item) for name, item in (kwargs or {}).items()},
        )  # fmt: skip
        propagate_shapes(graph)
        (node,) = graph.nodes()
        for got, want in zip(node.outputs, expected, strict=True):
            assert got.type == type_of(want).with_requires_grad(None), func
        self.count += 1
        return out


@each_sample(lambda o: not o.needs_data, ("real", "complex", "integer"))
def test_every_operator_has_the_types_of_its_results(operation, sample):
    built = build(wengert, sample)
    with Calls():
        call(operation, wengert, built)


def test_the_check_above_sees_the_calls():
    with Calls() as calls:
        wengert.ones(3).exp() + 1
    assert calls.count == 2


def test_results_are_remembered():
    text = "graph(%x : float32[12, 34]):\n  %0 = wengert::exp(%x)\n  return (%0)"
    propagate_shapes(graph(text))
    before = len(shapes._known)
    propagate_shapes(graph(text))
    assert len(shapes._known) == before
