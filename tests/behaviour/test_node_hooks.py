"""Hooks on nodes, and hooks that are called after accumulation."""

import pytest

ignore_cycle_warning = pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")


def accumulator(lib, leaf):
    return lib.autograd.graph.get_gradient_edge(leaf).node


# Node hooks


def test_node_hook_receives_both_sides(lib):
    x, y = lib.tensor(2.0, requires_grad=True), lib.tensor(3.0, requires_grad=True)
    z = x * y
    seen = []
    z.grad_fn.register_hook(
        lambda gi, go: seen.append(([g.item() for g in gi], [g.item() for g in go]))
    )
    (z * 10).backward()
    assert seen == [([30.0, 20.0], [10.0])]


def test_node_hook_receives_tuples(lib):
    x = lib.ones((), requires_grad=True)
    y = x.exp()
    kinds = []
    y.grad_fn.register_hook(lambda gi, go: kinds.append((type(gi), type(go))))
    y.backward()
    assert kinds == [(tuple, tuple)]


def test_node_hook_gets_none_for_unneeded_gradients(lib):
    x, constant = lib.ones((), requires_grad=True), lib.ones(())
    y = x * constant
    seen = []
    y.grad_fn.register_hook(lambda gi, go: seen.append(gi[1]))
    y.backward()
    assert seen == [None]


def test_node_hook_replaces_gradients(lib):
    x, y = lib.tensor(2.0, requires_grad=True), lib.tensor(3.0, requires_grad=True)
    z = x * y
    z.grad_fn.register_hook(lambda gi, go: (gi[0] * 100, gi[1]))
    z.backward()
    assert (x.grad.item(), y.grad.item()) == (300.0, 2.0)


def test_node_hook_may_drop_a_gradient(lib):
    x, y = lib.tensor(2.0, requires_grad=True), lib.tensor(3.0, requires_grad=True)
    z = x * y
    z.grad_fn.register_hook(lambda gi, go: (gi[0], None))
    z.backward()
    assert x.grad.item() == 3.0
    assert y.grad is None


def test_node_hook_may_not_fill_a_missing_gradient(lib):
    x, constant = lib.ones((), requires_grad=True), lib.ones(())
    y = x * constant
    y.grad_fn.register_hook(lambda gi, go: (gi[0], lib.ones(())))
    with pytest.raises(RuntimeError, match="can't replace a None gradient"):
        y.backward()


def test_node_hook_with_wrong_count_is_refused(lib):
    x, y = (lib.ones((), requires_grad=True) for _ in range(2))
    z = x * y
    z.grad_fn.register_hook(lambda gi, go: (gi[0],))
    with pytest.raises(RuntimeError, match="incorrect number of values"):
        z.backward()


@pytest.mark.parametrize("convert", [list, lambda gi: gi[0], lambda gi: 3])
def test_node_hook_returning_no_tuple_is_refused(lib, convert):
    x, y = (lib.ones((), requires_grad=True) for _ in range(2))
    z = x * y
    z.grad_fn.register_hook(lambda gi, go: convert(gi))
    with pytest.raises(TypeError, match="expected tuple"):
        z.backward()


def test_node_hook_with_no_tensor_inside_is_refused(lib):
    x, y = (lib.ones((), requires_grad=True) for _ in range(2))
    z = x * y
    z.grad_fn.register_hook(lambda gi, go: (3, gi[1]))
    with pytest.raises(TypeError, match="hook returned"):
        z.backward()


def test_node_hook_that_changes_the_shape_is_refused(lib):
    x = lib.ones(2, requires_grad=True)
    y = x.exp()
    y.grad_fn.register_hook(lambda gi, go: (lib.ones(3),))
    with pytest.raises(RuntimeError, match="changed the size of value"):
        y.sum().backward()


def test_node_prehook_receives_a_tuple(lib):
    x = lib.ones((), requires_grad=True)
    y = x * 2
    seen = []
    y.grad_fn.register_prehook(seen.append)
    (y * 5).backward()
    assert type(seen[0]) is tuple
    assert [g.item() for g in seen[0]] == [5.0]


def test_node_prehook_replaces_the_gradient(lib):
    x = lib.ones((), requires_grad=True)
    y = x * 2
    y.grad_fn.register_prehook(lambda go: (go[0] * 10,))
    y.backward()
    assert x.grad.item() == 20.0


def test_node_prehook_returning_no_tuple_is_refused(lib):
    x = lib.ones((), requires_grad=True)
    y = x * 2
    y.grad_fn.register_prehook(lambda go: go[0])
    with pytest.raises(TypeError, match="expected tuple"):
        y.backward()


def test_node_prehook_with_wrong_count_is_refused(lib):
    x = lib.ones((), requires_grad=True)
    y = x * 2
    y.grad_fn.register_prehook(lambda go: (go[0], go[0]))
    with pytest.raises(RuntimeError, match="incorrect number of values"):
        y.backward()


def test_node_prehook_that_changes_the_shape_is_refused(lib):
    x = lib.ones(2, requires_grad=True)
    y = x * 2
    y.grad_fn.register_prehook(lambda go: (lib.ones(3),))
    with pytest.raises(RuntimeError, match="changed the size of value"):
        y.sum().backward()


def test_node_prehook_of_several_outputs_gets_none_for_the_unused(lib):
    x = lib.ones(2, requires_grad=True)
    first, _ = (x * 1).unbind()
    seen = []
    first.grad_fn.register_prehook(lambda go: seen.append([g is None for g in go]))
    first.backward()
    assert seen == [[False, True]]


@pytest.mark.parametrize(
    ("count", "make"),
    [
        (1, lambda lib, x: x.sort()[0]),
        (1, lambda lib, x: x.topk(2)[0]),
        (1, lambda lib, x: x.kthvalue(2)[0]),
        (1, lambda lib, x: x.max(1)[0]),
        (1, lambda lib, x: x.min(0)[0]),
        (1, lambda lib, x: x.median(1)[0]),
        (1, lambda lib, x: x.nanmedian(1)[0]),
        (1, lambda lib, x: x.mode(1)[0]),
        (1, lambda lib, x: x.cummax(1)[0]),
        (1, lambda lib, x: x.cummin(1)[0]),
        (1, lambda lib, x: lib.native_layer_norm(x, (3,), None, None, 1e-5)[0]),
        (1, lambda lib, x: lib.nn.functional.layer_norm(x, (3,))),
        (2, lambda lib, x: lib.var_mean(x)[0]),
        (2, lambda lib, x: lib.aminmax(x)[0]),
        (2, lambda lib, x: x.unbind(0)[0]),
        (3, lambda lib, x: x.split(1, 1)[0]),
    ],
)
def test_node_hooks_see_differentiable_outputs_only(lib, count, make):
    """Indices have no gradient, so no place is kept for one."""
    y = make(lib, lib.tensor([[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]], requires_grad=True))
    seen = []
    y.grad_fn.register_prehook(lambda grads: seen.append(len(grads)))
    y.grad_fn.register_hook(lambda inputs, grads: seen.append((len(inputs), len(grads))))
    inputs = len(y.grad_fn.next_functions)
    y.sum().backward()
    assert seen == [count, (inputs, count)]


def test_node_hooks_survive_the_tensor(lib):
    x = lib.ones((), requires_grad=True)
    y = x * 2
    seen = []
    y.grad_fn.register_hook(lambda gi, go: seen.append(1))
    z = y * 3
    del y
    z.backward()
    assert seen == [1]


def test_accumulator_prehook_runs_before_accumulation(lib):
    x = lib.ones((), requires_grad=True)
    node = accumulator(lib, x)
    seen = []
    node.register_prehook(lambda go: seen.append((go[0].item(), x.grad)))
    (x * 2).backward()
    assert seen == [(2.0, None)]


def test_accumulator_prehook_replaces_the_gradient(lib):
    x = lib.ones((), requires_grad=True)
    node = accumulator(lib, x)
    node.register_prehook(lambda go: (go[0] * 10,))
    (x * 2).backward()
    assert x.grad.item() == 20.0


def test_accumulator_hook_runs_after_accumulation(lib):
    x = lib.ones((), requires_grad=True)
    node = accumulator(lib, x)
    seen = []
    node.register_hook(lambda gi, go: seen.append((gi, go[0].item(), x.grad.item())))
    (x * 2).backward()
    assert seen == [((), 2.0, 2.0)]


# Post-accumulate hooks


def test_post_accumulate_hook_receives_the_leaf(lib):
    x = lib.ones((), requires_grad=True)
    seen = []
    x.register_post_accumulate_grad_hook(lambda p: seen.append((p is x, p.grad.item())))
    (x * 2).backward()
    (x * 3).backward()
    assert seen == [(True, 2.0), (True, 5.0)]


def test_post_accumulate_hook_may_clear_the_gradient(lib):
    x = lib.ones((), requires_grad=True)

    def clear(p):
        p.grad = None

    x.register_post_accumulate_grad_hook(clear)
    (x * 2).backward()
    assert x.grad is None


def test_post_accumulate_hook_may_step_the_leaf(lib):
    x = lib.tensor(4.0, requires_grad=True)

    def step(p):
        p.sub_(0.5 * p.grad)
        p.grad = None

    x.register_post_accumulate_grad_hook(step)
    (x * x).backward()
    assert x.item() == 0.0
    assert x.grad is None


def test_post_accumulate_hook_runs_with_recording_off(lib):
    x = lib.ones((), requires_grad=True)
    seen = []
    x.register_post_accumulate_grad_hook(lambda p: seen.append(lib.is_grad_enabled()))
    (x * x).backward()
    assert seen == [False]


@ignore_cycle_warning
def test_post_accumulate_hook_runs_with_recording_on_under_create_graph(lib):
    x = lib.ones((), requires_grad=True)
    seen = []
    x.register_post_accumulate_grad_hook(lambda p: seen.append(lib.is_grad_enabled()))
    (x * x).backward(create_graph=True)
    assert seen == [True]
    x.grad = None


def test_post_accumulate_hook_on_nonleaf_is_refused(lib):
    y = lib.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="cannot be registered on non-leaf"):
        y.register_post_accumulate_grad_hook(lambda p: None)


def test_post_accumulate_hook_on_constant_is_refused(lib):
    with pytest.raises(RuntimeError, match="doesn't require grad"):
        lib.ones(2).register_post_accumulate_grad_hook(lambda p: None)


def test_post_accumulate_hook_returning_a_value_is_refused(lib):
    x = lib.ones((), requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda p: p.grad)
    with pytest.raises(RuntimeError, match="should return None"):
        (x * 2).backward()


def test_post_accumulate_hook_does_not_run_for_grad(lib):
    x = lib.ones((), requires_grad=True)
    seen = []
    x.register_post_accumulate_grad_hook(seen.append)
    lib.autograd.grad(x * 2, x)
    assert seen == []


def test_post_accumulate_hook_runs_once_per_backward(lib):
    x = lib.ones((), requires_grad=True)
    seen = []
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.item()))
    (x * 2 + x * 3 + x).backward()
    assert seen == [6.0]


class TestGradientsThatNobodyAsksFor:
    """A hook of a node sees None for them, as other nodes on the way would get nothing."""

    def seen_by_hook(self, t):
        seen = []
        t.grad_fn.register_hook(lambda inputs, outputs: seen.append(inputs))
        return seen

    def test_of_a_list(self, lib):
        x = lib.ones(1, requires_grad=True)
        y = lib.stack([x, x])
        seen = self.seen_by_hook(y)
        lib.cat([y]).sum().backward(inputs=[y])
        assert seen == [(None, None)]

    def test_of_a_constant_base(self, lib):
        x = lib.ones(1, requires_grad=True)
        y = lib.zeros(2, 1)
        y[0] = x
        seen = self.seen_by_hook(y)
        y.sum().backward()
        ((base, part),) = seen
        assert base is None and part.tolist() == [1.0]

    def test_of_a_base_that_is_asked_for_itself(self, lib):
        x = lib.ones(1, requires_grad=True)
        y = x * 2
        y[None] = 0.5
        seen = self.seen_by_hook(y)
        y.sum().backward(inputs=[y])
        assert seen == [(None, None)]


@pytest.mark.parametrize("shape", [(0,), (1,), (), (1, 2)])
def test_a_block_that_requires_no_gradient_has_one_of_its_shape(lib, shape):
    seen = []
    y = lib.block_diag(lib.ones(shape), lib.ones(2, requires_grad=True))
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append(tuple(inputs[0].shape)))
    y.sum().backward()
    assert seen == [shape]


def test_a_changed_view_gives_only_the_gradients_that_are_asked_for(lib):
    class Changed(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2, g * 3

    x, y = (lib.ones(3, requires_grad=True) for _ in range(2))
    base = x * 1
    Changed.apply(base.view(3), y)
    seen = []
    base.grad_fn.register_hook(lambda inputs, outputs: seen.append([g is None for g in inputs]))
    (found,) = lib.autograd.grad(base.sum(), x, retain_graph=True)
    lib.autograd.grad(base.sum(), [x, y], retain_graph=True)
    assert found.tolist() == [2, 2, 2]
    assert seen == [[False, True], [False, False]]
