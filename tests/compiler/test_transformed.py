"""Compiled functions inside transforms: graphs of graphs, equal to what transforms make of the
plain function."""

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

import wengert
from wengert import compiler
from wengert.autograd import forward_ad
from wengert.compiler.run.transformed import GraphOperator
from wengert.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap

X = wengert.linspace(-1, 1, 6, dtype=wengert.float64).reshape(2, 3)
W = wengert.linspace(0.2, 0.8, 9, dtype=wengert.float64).reshape(3, 3)
BATCH = wengert.stack([X, X + 1, X * 2])


def net(x, w):
    return ((x @ w).tanh() * x).sum(1)


def loss(x, w):
    return net(x, w).square().mean()


def same(mine, its):
    if isinstance(its, (tuple, list)):
        assert len(mine) == len(its)
        for a, b in zip(mine, its, strict=True):
            same(a, b)
    else:
        assert mine.shape == its.shape and mine.dtype == its.dtype
        wengert.testing.assert_close(mine, its)


@pytest.fixture
def calls(monkeypatch):
    """How often graphs were called as operators at a level."""
    made = []
    call = GraphOperator.__call__

    def noted(self, *inputs):
        made.append(self)
        return call(self, *inputs)

    monkeypatch.setattr(GraphOperator, "__call__", noted)
    return made


TRANSFORMED = {
    "grad": lambda f: grad(f, (0, 1))(X, W),
    "grad of grad": lambda f: grad(lambda x: grad(f)(x, W).sin().sum())(X),
    "three times": lambda f: grad(lambda x: grad(lambda x: grad(f)(x, W).sin().sum())(x).sum())(X),
    "vjp": lambda f: vjp(f, X, W)[1](wengert.ones((), dtype=wengert.float64)),
    "jvp": lambda f: jvp(f, (X, W), (X.cos(), W.sin())),
    "jvp of one": lambda f: jvp(lambda w: f(X, w), (W,), (W.sin(),)),
    "jvp of jvp": lambda f: jvp(lambda x: jvp(f, (x, W), (X, W))[1], (X,), (X.cos(),)),
    "jvp of grad": lambda f: jvp(lambda x: grad(f)(x, W), (X,), (X.cos(),)),
    "grad of jvp": lambda f: grad(lambda x: jvp(f, (x, W), (X, W))[1])(X),
    "linearize": lambda f: linearize(lambda x: f(x, W), X)[1](X.cos()),
    "vmap": lambda f: vmap(f, (0, None))(BATCH, W),
    "vmap of the second": lambda f: vmap(f, (None, 2))(X, wengert.stack([W, W + 1], 2)),
    "vmap of vmap": lambda f: vmap(vmap(f, (0, None)), (None, 0))(BATCH, wengert.stack([W, W.t()])),
    "vmap of grad": lambda f: vmap(grad(f, (0, 1)), (0, None))(BATCH, W),
    "grad of vmap": lambda f: grad(lambda w: vmap(f, (0, None))(BATCH, w).prod())(W),
    "jvp of vmap": lambda f: jvp(lambda w: vmap(f, (0, None))(BATCH, w), (W,), (W.sin(),)),
    "vmap of jvp": lambda f: vmap(lambda x, t: jvp(f, (x, W), (t, W)))(BATCH, BATCH.sin()),
    "hessian": lambda f: hessian(f)(X, W),
    "jacfwd of jacrev": lambda f: jacfwd(jacrev(f, 1), 1)(X, W),
    "jacrev of jacfwd": lambda f: jacrev(jacfwd(f))(X, W),
    "vmap of hessian": lambda f: vmap(hessian(f), (0, None))(BATCH, W),
}


@pytest.mark.parametrize("backend", ["native", "interpreter"])
@pytest.mark.parametrize("name", TRANSFORMED)
def test_transforms_of_a_compiled_function(name, backend, calls):
    transformed = TRANSFORMED[name]
    compiled = wengert.compile(loss, backend=backend, fullgraph=True)
    expected = transformed(loss)
    same(transformed(compiled), expected)
    made = len(compiled.compilations)
    assert calls and made == 1
    same(transformed(compiled), expected)
    assert len(compiled.compilations) == made


ROWS = wengert.linspace(-1, 1, 600, dtype=wengert.float64).reshape(200, 3)


def recurrent(x, w):
    h = wengert.zeros(3, dtype=wengert.float64)
    for row in range(len(x)):
        h = (h @ w + x[row]).tanh()
    return h.square().sum()


def scanned(x, w):
    def step(h, row):
        h = (h @ w + row).tanh()
        return h, h.sin()

    h, rows = compiler.scan(step, wengert.zeros(3, dtype=wengert.float64), x)
    return h.square().sum() + rows.mean()


def mapped(x, w):
    return compiler.map(lambda row: (row @ w).tanh(), x).square().sum()


OVER_LOOPS = {
    "jvp": lambda f: jvp(f, (ROWS, W), (ROWS.cos(), W.sin())),
    "vmap": lambda f: vmap(f, (0, None))(wengert.stack([ROWS, ROWS * 2]), W),
    "grad": lambda f: grad(f, (0, 1))(ROWS, W),
    "vmap of grad": lambda f: vmap(grad(f, 1), (0, None))(wengert.stack([ROWS, ROWS * 2]), W),
    "jvp of grad": lambda f: jvp(lambda w: grad(f, 1)(ROWS, w), (W,), (W.cos(),))[1],
}


@pytest.mark.parametrize("transform", OVER_LOOPS)
@pytest.mark.parametrize("loop", [recurrent, scanned, mapped])
def test_loops_stay_loops(loop, transform):
    """What transforms make of a loop has fewer nodes than the loop has rounds."""
    compiled = wengert.compile(loop, fullgraph=True)
    same(OVER_LOOPS[transform](compiled), OVER_LOOPS[transform](loop))
    (made,) = compiled.compilations
    operators, seen = [made.operator], set()
    while operators:
        each = operators.pop()
        if id(each) not in seen:
            seen.add(id(each))
            assert len(list(each.executable.graph.nodes())) < 200
            operators += filter(None, [*each._differentiable.values(), *each._reverse.values()])
            operators += [derived.operator for derived in each._pushed.values() if derived]
    assert len(seen) > (transform != "vmap")


def repeated(x, w):
    n, h = compiler.while_loop(
        lambda n, h: (n < 9) & (h.abs().sum() < 50),
        lambda n, h: (n + 1, (h @ w).sin() + x),
        (wengert.tensor(0), x),
    )
    return h.square().sum() + n * h.sum()


@pytest.mark.parametrize("transform", ["grad", "jvp", "vmap", "vmap of grad", "hessian"])
def test_loops_of_unknown_length_are_seen_by_transforms(transform):
    transformed = TRANSFORMED[transform]
    same(transformed(wengert.compile(repeated)), transformed(repeated))


def test_derivatives_of_graphs_are_made_once(calls):
    """A second call of a transform finds all graphs that the first one has made."""
    compiled = wengert.compile(loss)
    transformed = jacfwd(jacrev(compiled))
    transformed(X, W)
    first = {id(each) for each in calls}
    calls.clear()
    transformed(X + 1, W - 1)
    assert {id(each) for each in calls} <= first


@pytest.mark.parametrize("transform", ["grad", "jvp of grad", "hessian", "vmap of grad"])
def test_calls_leave_nothing(transform):
    compiled, transformed = wengert.compile(loss), TRANSFORMED[transform]
    transformed(compiled)
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(50):
        transformed(compiled)
    gc.collect()
    assert len(gc.get_objects()) - before < 50


def test_graphs_of_functions_that_are_gone_are_freed():
    """A function that is compiled anew in each step of an outer loop."""

    def step():
        compiled = wengert.compile(lambda x: loss(x, W), backend="interpreter")
        hessian(compiled)(X)
        return weakref.ref(compiled.compilations[0].operator)

    gone = [step() for _ in range(3)]
    gc.collect()
    assert all(each() is None for each in gone)


def test_threads_share_the_graphs_of_transforms():
    compiled, expected = wengert.compile(loss), hessian(loss)(X, W)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: hessian(compiled)(X, W), range(16)):
            same(found, expected)
    assert len(compiled.compilations) == 1


def test_outer_gradients_go_through():
    """What a transform returns leads on to leaves outside of all transforms."""
    found = []
    for f in (loss, wengert.compile(loss)):
        x, w = X.clone().requires_grad_(), W.clone().requires_grad_()
        (grad(f)(x, w).square().sum() + vmap(f, (0, None))(BATCH * x, w).sum()).backward()
        found.append((x.grad, w.grad))
    same(*found)
    w = W.clone().requires_grad_()
    out = vmap(wengert.compile(loss), (0, None))(BATCH, w)
    (first,) = wengert.autograd.grad(out.sum(), w, create_graph=True)
    (second,) = wengert.autograd.grad(first.sum(), w)
    plain = vmap(loss, (0, None))(BATCH, w)
    (expected,) = wengert.autograd.grad(plain.sum(), w, create_graph=True)
    same(second, wengert.autograd.grad(expected.sum(), w)[0])


def test_one_compilation_serves_values_and_another_transforms():
    compiled = wengert.compile(loss)
    compiled(X, W)
    grad(compiled)(X, W)
    grad(compiled)(X, W)
    compiled(X, W)
    assert len(compiled.compilations) == 2


def test_modules_with_parameters_that_are_batched():
    """An ensemble: parameters of a compiled module are replaced by a batch of them."""
    nn = wengert.nn
    module = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).double()
    compiled = wengert.compile(module)
    parameters = {
        name: wengert.stack([p.detach(), p.detach() * 2, p.detach() - 1])
        for name, p in module.named_parameters()
    }
    its = vmap(lambda p: functional_call(module, p, (X,)))(parameters)
    prefixed = {f"_orig_mod.{name}": p for name, p in parameters.items()}
    same(vmap(lambda p: functional_call(compiled, p, (X,)))(prefixed), its)


def structures(x):
    return {"mask": x > 0, "kept": (x, x.detach() * 2), "none": None, "sum": x.sum(-1)}


def without_none(results):
    assert results.pop("none") is None
    return results


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: vmap(lambda x: without_none(f(x)))(BATCH),
        lambda f: vmap(lambda x: without_none(f(x)))(BATCH.transpose(0, 2)),
        lambda f: jvp(lambda x: f(x)["kept"] + (f(x)["sum"],), (X,), (X.cos(),)),
        lambda f: vjp(lambda x: f(x)["kept"][0] * f(x)["sum"].sum(), X)[1](X.sin()),
    ],
)
def test_results_that_are_inputs_masks_and_none(transform):
    compiled = wengert.compile(structures)
    mine, its = transform(compiled), transform(structures)
    if isinstance(its, dict):
        assert list(mine) == list(its)
        same([mine["mask"], *mine["kept"], mine["sum"]], [its["mask"], *its["kept"], its["sum"]])
    else:
        same(mine, its)


def test_gradients_that_are_undefined():
    """Graphs of gradients may have results that are None."""

    def function(x):
        q, r = wengert.linalg.qr(x)
        return q.sum() * x.detach().sum(), (x > 0).sum()

    compiled = wengert.compile(function)
    for x in (X[:, :2], X[:0, :0]):
        expected = jacrev(lambda x: linearize(lambda x: function(x)[0], x)[1](x.cos()))(x)
        same(jacrev(lambda x: linearize(lambda x: compiled(x)[0], x)[1](x.cos()))(x), expected)
        same(vmap(grad(lambda x: compiled(x)[0]))(wengert.stack([x, x])),
             vmap(grad(lambda x: function(x)[0]))(wengert.stack([x, x])))  # fmt: skip


def test_layouts_are_those_of_the_function():
    def turned(x):
        return (x * 2).t(), x.t().exp()

    compiled = wengert.compile(turned)
    for mine, its in zip(vmap(compiled)(BATCH), vmap(turned)(BATCH), strict=True):
        same(mine, its)
        assert mine.stride() == its.stride()
    for mine, its in zip(
        jvp(compiled, (X,), (X,))[0], jvp(turned, (X,), (X,))[0], strict=True
    ):
        assert mine.stride() == its.stride()


def test_strides_of_examples_that_do_not_lie_in_rows():
    """A graph of a batch knows shapes alone of the copies that strides ask for."""

    def squared(x):
        part = x.as_strided((2, 2), (1, 1))
        return part @ part

    compiled = wengert.compile(squared)
    rows = X[:1]
    batch = wengert.stack([rows, rows * 2], -1)
    for transform in (lambda f: f, jacrev, hessian):
        its = vmap(transform(squared), in_dims=-1)(batch)
        same(vmap(transform(compiled), in_dims=-1)(batch), its)


def doubled_in_place(x):
    x.mul_(2)
    return x.sum()


def drawn(x):
    return x + wengert.rand(3)


class Cubed(wengert.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        return g * 3 * ctx.saved_tensors[0] ** 2


def test_what_must_be_seen_by_transforms_runs_as_it_is(calls):
    """Changes of arguments, draws, and Functions, which are theirs to handle."""
    row = X[0]
    x = row.clone()
    assert grad(wengert.compile(lambda x: doubled_in_place(x.clone())))(row).tolist() == [2] * 3
    vmap(wengert.compile(doubled_in_place))(BATCH.clone())
    with pytest.raises(RuntimeError, match="randomness"):
        vmap(wengert.compile(drawn))(BATCH)
    different = vmap(wengert.compile(drawn), randomness="different")(wengert.zeros(2, 3))
    assert not wengert.equal(*different)
    same(grad(wengert.compile(lambda x: Cubed.apply(x).sum()))(x), 3 * row**2)
    same(vmap(wengert.compile(Cubed.apply))(BATCH), BATCH**3)


def test_branches_on_values_raise_or_run_as_they_are():
    def halved(x):
        return x / 2 if x.sum() > 0 else x

    with pytest.warns(UserWarning, match="runs uncompiled"):
        found = grad(lambda x: wengert.compile(halved)(x).sum())(X + 2)
    assert found.eq(0.5).all()
    with pytest.raises(RuntimeError, match="vmap"):
        vmap(wengert.compile(halved))(BATCH)


def test_captured_tensors_of_a_transform():
    """A tensor of an enclosing transform that a compiled function has from outside."""

    def of_grad(compile):
        return grad(lambda w: compile(lambda x: loss(x, w))(X))(W)

    def of_vmap(compile):
        return vmap(lambda x: grad(compile(lambda w: loss(x, w)))(W))(BATCH)

    for outer in (of_grad, of_vmap):
        same(outer(wengert.compile), outer(lambda f: f))


def test_no_grad_inside():
    def function(x):
        with wengert.no_grad():
            factor = x.sum()
        return (x * factor).sum()

    same(grad(wengert.compile(function))(X), grad(function)(X))
    same(jvp(wengert.compile(function), (X + 1,), (X,)), jvp(function, (X + 1,), (X,)))
    same(hessian(wengert.compile(function))(X), hessian(function)(X))
    same(
        linearize(wengert.compile(function), X + 1)[1](X), linearize(function, X + 1)[1](X)
    )
    with wengert.no_grad():
        same(grad(wengert.compile(loss))(X, W), grad(loss)(X, W))
        same(jvp(wengert.compile(loss), (X, W), (X, W)), jvp(loss, (X, W), (X, W)))


def total(x):
    return (x.sin() * x).sum()


def detached(x):
    return (x * x.detach() + x.data).sum()


@pytest.mark.parametrize("transform", [grad, jacfwd, hessian, lambda f: jacfwd(grad(f))])
def test_what_gets_no_gradient(transform):
    same(transform(wengert.compile(detached))(X), transform(detached)(X))


def pushed(f):
    def function(x):
        with forward_ad.dual_level():
            return forward_ad.unpack_dual(f(forward_ad.make_dual(x, x.cos()))).tangent

    return function


def test_dual_tensors_around_and_inside():
    for transform in (grad, jacrev, vmap):
        same(transform(pushed(wengert.compile(total)))(X), transform(pushed(total))(X))
    for transform in (grad, hessian, vmap):
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(X, X.cos())
            mine, its = (transform(f)(dual) for f in (wengert.compile(total), total))
            same(tuple(forward_ad.unpack_dual(mine)), tuple(forward_ad.unpack_dual(its)))


def test_compiled_inside_of_traced_transforms():
    """`compile(hessian(compiled))` is one graph."""
    inner = wengert.compile(loss)
    outer = wengert.compile(lambda x: hessian(inner)(x, W), fullgraph=True)
    same(outer(X), hessian(loss)(X, W))


def test_empty_batches_and_scalars():
    compiled = wengert.compile(lambda x: x.sin() * x)
    assert vmap(compiled)(wengert.ones(0, 3)).shape == (0, 3)
    same(grad(compiled)(X[0, 0]), grad(lambda x: x.sin() * x)(X[0, 0]))
    same(hessian(compiled)(X[0, 0]), hessian(lambda x: x.sin() * x)(X[0, 0]))


def test_integers_beside_floats():
    def picked(x, index):
        return x[index].square().sum() + index.sum()

    index = wengert.tensor([1, 0, 1])
    compiled = wengert.compile(picked)
    same(grad(compiled)(X, index), grad(picked)(X, index))
    rows = wengert.stack([index, 1 - index])
    same(vmap(compiled, (None, 0))(X, rows), vmap(picked, (None, 0))(X, rows))
    same(vmap(grad(compiled), (None, 0))(X, rows), vmap(grad(picked), (None, 0))(X, rows))


def test_rules_that_are_first_asked_for_inside_a_batch_serve_others():
    """What is known of an operator's gradient is known for all graphs."""

    def written(x):
        y = x.square().sum(-1, keepdim=True)
        y[wengert.tensor([0])] = 0.5
        return (y * 0.8125).sin().sum()

    two = BATCH[0, 0, :2]
    compiled = wengert.compile(written, backend="interpreter")
    its = vmap(lambda a: grad(lambda y: written(X * a * y))(X.cos()))(two)
    same(vmap(lambda a: grad(lambda y: compiled(X * a * y))(X.cos()))(two), its)

    def changed(x):
        x.index_put_((wengert.tensor([0]),), x[1] * 0.5)
        return (x * x).sum()

    found = []
    for f in (changed, wengert.compile(changed, fullgraph=True)):
        x = wengert.tensor([[1.0], [2.0]], dtype=wengert.float64, requires_grad=True)
        (first,) = wengert.autograd.grad(f(x * 1), x, create_graph=True)
        found.append(wengert.autograd.grad(first.sin().sum(), x, create_graph=True)[0])
    same(*found)
