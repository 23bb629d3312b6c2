"""Compiled functions where it matters how tensors lie in memory, and what they share there."""

import warnings

import pytest

import wengert
from wengert import compiler


def test_where_an_argument_begins_in_memory():
    base = wengert.arange(8.0)

    def function(x):
        return x.as_strided((2,), (1,), 2) * 1 + x.storage_offset()

    compiled = wengert.compile(function)
    for x in (base[2:5], base[1:5], base[2:5], base[:5]):
        assert wengert.equal(compiled(x), function(x))
    assert len(compiled.compilations) == 3
    inside = wengert.compile(wengert.func.grad(lambda y: (y * y.storage_offset()).sum()))
    assert inside(base[3:5]).tolist() == [3.0, 3.0]
    assert inside(base[4:6]).tolist() == [4.0, 4.0]


def test_where_an_argument_begins_is_not_asked_for_in_vain():
    base = wengert.arange(8.0)
    compiled = wengert.compile(lambda x: x.as_strided((2,), (1,)) * 2)
    for start in range(4):
        assert compiled(base[start : start + 3]).tolist() == [2.0 * start, 2.0 * start + 2]
    assert len(compiled.compilations) == 1


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.as_strided((), (), 1),
        lambda x: x.as_strided((3,), (1,), 1) * 2,
        lambda x: (x * 2)[1:].as_strided((2,), (1,), 0) * 1,
    ],
)
def test_views_by_strides_that_leave_their_tensor(function):
    x = wengert.tensor([[0.2, 1.0], [2.0, 1.044]], requires_grad=True)
    mine, its = wengert.compile(function)(x[1]), function(x[1])
    assert wengert.equal(mine, its)
    pairs = [wengert.autograd.grad(y.sum(), x) for y in (mine, its)]
    assert wengert.equal(*[g for (g,) in pairs])


@pytest.mark.parametrize("change", ["index", "part of a detached"])
def test_changes_of_expanded_tensors(change):
    def function(x):
        y = wengert.tensor([1.0]).expand(3)
        if change == "index":
            y[[0]] = 0.5
        else:
            y.detach()[:1] -= 0.5
        return y * x

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of writing to an expanded tensor
        assert wengert.compile(function)(wengert.ones(3)).tolist() == [0.5, 0.5, 0.5]


@pytest.mark.parametrize("mode", ["no_grad", "inference_mode", "enable_grad"])
@pytest.mark.parametrize(
    "parts",
    [
        lambda x: x.as_strided((2, 3), (2, 2)),
        lambda x: x.as_strided((2, 3), (0, 2)),
        lambda x: x[:3].expand(2, 3),
        lambda x: x.unfold(0, 3, 1)[:2],
    ],
    ids=["strides", "one row", "expand", "unfold"],
)
def test_changes_of_one_of_overlapping_views(mode, parts):
    def function(x):
        with getattr(wengert, mode)():
            first, second = [parts(x).select(0, i) for i in range(2)]
            first += first
        return second * 1

    x, its = wengert.arange(8.0), wengert.arange(8.0)
    assert wengert.equal(wengert.compile(function)(x), function(its))
    assert wengert.equal(x, its)


@pytest.mark.parametrize("order", [1, 2])
def test_views_by_strides_of_a_view_with_gaps(order):
    """A change of the base shows in what lies in the gaps, and so does its gradient."""

    def function(x):
        y = x * 1
        parts = y[::2].as_strided((2,), (1,), 1)
        y *= x
        return parts.sin()

    results = []
    for f in (function, wengert.compile(function)):
        x = wengert.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
        found = f(x)
        for _ in range(order):
            (found,) = wengert.autograd.grad(found.sum(), x, create_graph=True)
        results.append(found)
    assert wengert.allclose(*results)
    assert results[0][1] != 0


def test_a_reshaped_result_is_no_view():
    x = wengert.rand(1, 2, 3, requires_grad=True)
    y = wengert.compile(lambda x: x.exp().transpose(2, 0).reshape(-1))(x)
    assert not y._is_view()
    with wengert.no_grad():
        y[0].mul_(1.5)
    assert wengert.allclose(y[0].clone(), x[0, 0, 0].exp() * 1.5)


def test_branches_on_small_floats_have_one_dtype():
    def function(x):
        return compiler.cond(x.sum() > 0, lambda a: a * 2, lambda a: a.sin(), (x,))

    x = wengert.ones((), dtype=wengert.float16)
    got = wengert.compile(function)(x)
    assert got.item() == 2.0 and got.dtype == wengert.float16


def test_repeats_known_only_when_the_graph_runs():
    function = lambda x: x.repeat_interleave(wengert.tensor([1, 2]))
    with pytest.raises(compiler.TraceError, match=r"^repeat_interleave\(\): the values decide"):
        wengert.compile(function, fullgraph=True)(wengert.ones(2))


def test_losses_of_expanded_operands():
    def function(x):
        return wengert.nn.functional.smooth_l1_loss(x.expand(2, 3), x.expand(2, 3) * 2, beta=0.5)

    x = wengert.tensor([[0.4]])
    assert wengert.allclose(wengert.compile(function)(x), function(x))


def test_constants_written_in_inference_mode():
    def function(x):
        y, t = x * x, wengert.zeros(1)
        with wengert.inference_mode():
            t[...] = 0.5
        return y

    x = wengert.ones(2, requires_grad=True)
    wengert.compile(function)(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


WEIGHT = wengert.ones(2, requires_grad=True)


def _captured(x):
    with wengert.inference_mode():
        z = WEIGHT * 2
    return x * WEIGHT, WEIGHT.is_inference(), z.is_inference()


def _changed(x):
    with wengert.inference_mode():
        data, same, part = x.data, x.detach(), x[:1]
    data.mul_(2)
    return same * 1, data.is_inference(), same.is_inference(), part.is_inference()


@pytest.mark.parametrize("function", [_captured, _changed])
def test_what_is_met_in_inference_mode_is_what_it_was(function):
    runs = []
    for run in (function, wengert.compile(function)):
        x = wengert.ones(2, requires_grad=function is _captured)
        result, *facts = run(x)
        runs.append((result.tolist(), result.requires_grad, facts))
    assert runs[0] == runs[1]


@pytest.mark.parametrize("name", ["logical_or_", "logical_and_", "logical_xor_", "eq_", "lt_"])
@pytest.mark.parametrize("part", [slice(None), slice(1)])
def test_changes_by_operators_without_derivatives(name, part):
    """Some leave the history of what they change as it was, in graphs as in eager mode."""

    def function(x):
        y = x * 3
        getattr(y[part], name)(x[part].detach())
        return y * y

    x = wengert.tensor([1.0, 2.0], requires_grad=True)
    results = [wengert.autograd.grad(f(x).sum(), x) for f in (function, wengert.compile(function))]
    assert wengert.equal(results[0][0], results[1][0])


@pytest.mark.parametrize("backend", ["native", "interpreter"])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 2,
        lambda x: x.transpose(0, 2) + 1,
        lambda x: x.permute(1, 2, 0).sin().sum(1),
        lambda x: (x.transpose(0, 1) * 2).contiguous(),
        lambda x: wengert.nn.functional.softmax(x.transpose(1, 2), -1),
    ],
)
def test_results_lie_in_memory_as_those_of_the_function(function, backend):
    x = wengert.arange(24.0, dtype=wengert.float64).reshape(2, 3, 4)
    for t in (x, x.transpose(0, 1), x.permute(2, 0, 1), x[:, ::2], x.requires_grad_()):
        mine, its = wengert.compile(function, backend=backend)(t), function(t)
        assert wengert.allclose(mine, its) and mine.stride() == its.stride()
        if t.requires_grad:
            mine.sum().backward()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.sin().t() * 1,
        lambda x: x.sin().reshape(-1) + 0,
        lambda x: (x.sin()[1] * 1, x.sin().t() * 1),
        lambda x: compiler.cond(x.sum() > 0, lambda x: (x, x), lambda x: (x, x), (x,))[0][1] * 1,
        # A view that goes into a block or comes out of it.
        lambda x: compiler.cond(x.sum() > 0, lambda y: y * 1, wengert.sin, (x.neg().t(),)),
        lambda x: compiler.cond(x.sum() > 0, lambda y: y.t(), wengert.sin, (x.neg(),)) * 1,
        lambda x: compiler.cond(x.sum() > 0, lambda y: y.t() * 1, wengert.sin, (x.neg(),)) * 1,
    ],
)
@pytest.mark.parametrize("backend", ["native", "interpreter"])
def test_a_result_that_is_no_view_is_none_when_its_neutral_factor_is_left_out(function, backend):
    x = wengert.ones(2, 2, requires_grad=True)
    compiled = wengert.compile(function, backend=backend)
    results, expected = compiled(x), function(x)
    if isinstance(results, wengert.Tensor):
        results, expected = (results,), (expected,)
    for found, wanted in zip(results, expected, strict=True):
        assert not found._is_view()
        assert wengert.equal(found.mul_(2), wanted.mul_(2))


def written_as_integers(x):
    x.view(wengert.int32).add_(1)
    return x * 1


def written_below(x):
    whole = x.view(wengert.int32)
    x.mul_(2)
    return whole * 1


def part_written_as_integers(x):
    x.view(wengert.int32)[0].zero_()
    return x + x[1].view(wengert.float32)


def halves_written(x):
    y = x * 1
    y.view(wengert.int16)[:, :1] = 0
    return y


def shared_as_integers(x):
    return x.view(wengert.int32)


@pytest.mark.parametrize("backend", ["interpreter", "native"])
@pytest.mark.parametrize(
    "function",
    [written_as_integers, written_below, part_written_as_integers, halves_written,
     shared_as_integers],
)  # fmt: skip
def test_memory_seen_as_another_dtype(function, backend):
    x, y = (wengert.tensor([[1.0, 2.0], [3.0, 4.0]]) for _ in range(2))
    expected = function(x)
    found = wengert.compile(function, backend=backend)(y)
    for mine, other in ((found, expected), (y, x)):
        assert wengert.equal(mine.view(wengert.int32), other.view(wengert.int32))
    expected.zero_()
    found.zero_()
    assert wengert.equal(y, x)


def multiplied(x):
    y = x * 2
    z = y.detach()
    z *= y
    return z


def multiplied_with_others(x):
    y = x * 2
    z = y.detach()
    z *= y
    y[0] = 0.5
    return z, y


def only_detached(x):
    y = x * 2
    z = y.detach()
    y += 1
    return z


@pytest.mark.parametrize("function", [multiplied, multiplied_with_others, only_detached])
def test_what_is_detached_and_changed_has_a_history_of_its_own(function):
    x = wengert.tensor([1.0, 0.4], requires_grad=True)
    mine, its = (results_of(f(x)) for f in (wengert.compile(function), function))
    for a, b in zip(mine, its, strict=True):
        assert wengert.equal(a, b) and a.requires_grad == b.requires_grad
        if a.requires_grad:
            first, second = (wengert.autograd.grad(t.sum(), x, retain_graph=True) for t in (a, b))
            assert wengert.equal(first[0], second[0])


def results_of(out):
    return out if isinstance(out, tuple) else (out,)
