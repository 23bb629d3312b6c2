"""Custom operators under forward mode, dispatch modes, anomaly and inference mode."""

import pytest

import wengert
import wengert.autograd.forward_ad as fwAD
from library.support import make
from wengert.utils._python_dispatch import TorchDispatchMode


@pytest.fixture
def mul():
    """A product with a reverse and a forward rule."""

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * y, grad * x

    def jvp(ctx, x_tangent, y_tangent):
        x, y = ctx.saved_tensors
        return x_tangent * y + x * y_tangent

    operator = make("(Tensor x, Tensor y) -> Tensor", lambda x, y: x * y)
    operator.register_autograd(backward, setup_context=setup_context)
    operator.register_jvp(jvp)
    return operator


def test_forward_mode(mul):
    x, y = wengert.tensor([2.0]), wengert.tensor([3.0])
    with fwAD.dual_level():
        dual = fwAD.make_dual(x, wengert.tensor([1.0]))
        out = fwAD.unpack_dual(mul(dual, y))
        assert (out.primal.item(), out.tangent.item()) == (6.0, 3.0)
        both = fwAD.unpack_dual(mul(dual, dual))
        assert both.tangent.item() == 4.0
        assert fwAD.unpack_dual(mul(x, y)).tangent is None


def test_forward_over_reverse(mul):
    x = wengert.tensor([2.0], requires_grad=True)
    with fwAD.dual_level():
        dual = fwAD.make_dual(x, wengert.tensor([1.0]))
        out = mul(mul(dual, dual), dual)
        (tangent,) = wengert.autograd.grad(fwAD.unpack_dual(out).tangent, x)
    assert tangent.item() == pytest.approx(12.0)


def test_forward_mode_numerically(mul):
    inputs = [
        wengert.tensor(values, dtype=wengert.float64, requires_grad=True)
        for values in ([1.0, 2.0], [3.0, 4.0])
    ]
    assert wengert.autograd.gradcheck(mul, inputs, check_forward_ad=True)


def test_forward_mode_without_rule():
    operator = make("(Tensor x) -> Tensor", lambda x: x * 2)
    with fwAD.dual_level():
        dual = fwAD.make_dual(wengert.ones(1), wengert.ones(1))
        with pytest.raises(RuntimeError, match="Trying to use forward AD with .* not support it"):
            operator(dual)
        assert operator(wengert.ones(1)).item() == 2.0


def test_forward_rule_of_lists():
    operator = make(
        "(Tensor[] xs, int k) -> (Tensor[], Tensor, int)",
        lambda xs, k: ([x * k for x in xs], sum(xs), k),
    )

    def setup_context(ctx, inputs, output):
        ctx.k = inputs[1]
        ctx.save_for_forward(*inputs[0])

    def jvp(ctx, tangents, k_tangent):
        assert k_tangent is None
        assert len(ctx.saved_tensors) == 2
        return [t * ctx.k for t in tangents], sum(tangents), None

    operator.register_autograd(lambda ctx, *grads: None, setup_context=setup_context)
    operator.register_jvp(jvp)
    x, y = wengert.tensor([1.0]), wengert.tensor([2.0])
    with fwAD.dual_level():
        dual = fwAD.make_dual(x, wengert.tensor([5.0]))
        (first, second), total, _ = operator([dual, y], 3)
        tangents = [fwAD.unpack_dual(t).tangent.item() for t in (first, second, total)]
    assert tangents == [15.0, 0.0, 5.0]


@pytest.mark.parametrize(
    ("jvp", "message"),
    [
        (lambda ctx, t: (t, t), "returned 2 tangents for 1 results"),
        (lambda ctx, t: wengert.ones(3), r"a tangent of shape \[3\] for a result of shape \[1\]"),
        (lambda ctx, t: 3.0, "returned a float as the tangent of a Tensor"),
    ],
)
def test_wrong_tangents(jvp, message):
    operator = make("(Tensor x) -> Tensor", lambda x: x * 2)
    operator.register_jvp(jvp)
    with fwAD.dual_level():
        dual = fwAD.make_dual(wengert.ones(1), wengert.ones(1))
        with pytest.raises(RuntimeError, match=message):
            operator(dual)


class Log(TorchDispatchMode):
    """Notes what passes."""

    def __init__(self):
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append((func._schema.name, len(args), dict(kwargs or {})))
        return func(*args, **(kwargs or {}))


def test_dispatch_modes_see_the_operator(mul):
    x = wengert.tensor([2.0], requires_grad=True)
    with Log() as log:
        out = mul(x, x)
    assert log.seen == [(mul._qualname, 2, {})]
    out.backward()
    assert x.grad.item() == 4.0


def test_dispatch_modes_see_keywords_and_decide():
    class Replace(Log):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return super().__torch_dispatch__(func, types, args, kwargs) + 100

    operator = make("(Tensor x, int k=2, *, float f=1.5) -> Tensor", lambda x, k, *, f: x * k * f)
    x = wengert.ones(1)
    with Replace() as mode:
        y = operator(x, f=3.0)
    assert y.item() == 106.0
    assert mode.seen == [(operator._qualname, 1, {"f": 3.0})]


def test_anomaly_detection_names_the_call(mul):
    x = wengert.tensor([2.0], requires_grad=True)

    def failing(ctx, grad):
        raise ValueError("mine")

    mul.register_autograd(failing)
    with pytest.warns(UserWarning), wengert.autograd.detect_anomaly():
        out = mul(x, x)
        with pytest.raises(ValueError, match="mine"):
            out.backward()


def test_the_profiler_names_the_operator(mul):
    with wengert.autograd.profiler.profile() as profile:
        mul(wengert.ones(1), wengert.ones(1))
    assert {mul._qualname, "aten::mul"} <= {event.key for event in profile.key_averages()}


def test_results_follow_inference_mode(mul):
    with wengert.inference_mode():
        out = mul(wengert.ones(1), wengert.ones(1))
    assert out.is_inference()
