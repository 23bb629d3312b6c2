"""One custom operator under everything else that there is, compared with the closed form.

The kernel is NumPy's, so that nothing can look into it: what works, works by what is registered.
"""

import importlib

import pytest

import wengert
from library.support import make

FACTOR = 3


def register(lib, operator):
    """A formula, a batch rule and a fake kernel for ``factor * x ** 2 * y``."""

    def setup_context(ctx, inputs, keyword_only_inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.factor = keyword_only_inputs["factor"]

    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * ctx.factor * 2 * x * y, grad * ctx.factor * x * x

    def vmap(info, in_dims, x, y, *, factor=FACTOR):
        x = x if in_dims[0] is None else x.movedim(in_dims[0], 0)
        y = y if in_dims[1] is None else y.movedim(in_dims[1], 0)
        return operator(x, y, factor=factor), 0

    operator.register_autograd(backward, setup_context=setup_context)
    operator.register_vmap(vmap)
    operator.register_fake(lambda x, y, *, factor=FACTOR: lib.empty_like(x))
    return operator


def jvp(ctx, x_tangent, y_tangent):
    x, y = ctx.saved_tensors
    return ctx.factor * (2 * x * y * x_tangent + x * x * y_tangent)


SCHEMA = f"(Tensor x, Tensor y, *, int factor={FACTOR}) -> Tensor"


@pytest.fixture
def cubic(lib, define):
    def kernel(x, y, *, factor=FACTOR):
        return lib.from_numpy(factor * x.numpy(force=True) ** 2 * y.numpy(force=True))

    return register(lib, define(SCHEMA, kernel))


@pytest.fixture
def forward_cubic():
    """The same with a forward rule, which PyTorch does not have."""
    operator = make(SCHEMA, numpy_kernel)
    operator.register_jvp(jvp)
    return register(wengert, operator)


def numpy_kernel(x, y, *, factor):
    return wengert.from_numpy(factor * x.numpy() ** 2 * y.numpy())


def closed(x, y):
    return FACTOR * x * x * y


def points(lib, requires_grad=True):
    return [
        lib.tensor(values, dtype=lib.float64, requires_grad=requires_grad)
        for values in ([1.0, 2.0, -0.5], [0.5, -1.0, 3.0])
    ]


def gradients(lib, f, *inputs, order=1):
    """The gradients of all orders up to one, of sums."""
    out = f(*inputs).sum()
    found = []
    for _ in range(order):
        grads = lib.autograd.grad(out, inputs, create_graph=True)
        found.append([g.detach().tolist() for g in grads])
        out = sum(g.sum() for g in grads)
    return found


# Reverse mode


@pytest.mark.parametrize("order", [1, 2, 3])
def test_reverse_mode_of_any_order(lib, cubic, order):
    inputs = points(lib)
    assert gradients(lib, cubic, *inputs, order=order) == gradients(
        lib, closed, *inputs, order=order
    )


def test_numerically(lib, cubic):
    inputs = points(lib)
    assert lib.autograd.gradcheck(cubic, inputs, check_batched_grad=True)
    assert lib.autograd.gradgradcheck(cubic, inputs)


def test_accumulated_gradients(lib, cubic):
    x, y = points(lib)
    for _ in range(2):
        cubic(x, y, factor=5).sum().backward()
    assert x.grad.tolist() == (2 * 10 * x * y).tolist()
    assert y.grad.tolist() == (2 * 5 * x * x).tolist()


def test_hooks(lib, cubic):
    x, y = points(lib)
    out = cubic(x, y)
    seen = []
    out.register_hook(lambda g: g * 2)
    out.grad_fn.register_hook(lambda inputs, outputs: seen.append(len(inputs)))
    out.sum().backward()
    assert x.grad.tolist() == (2 * 6 * x * y).tolist()
    assert seen == [2]


def test_saved_tensor_hooks(lib, cubic):
    packed, unpacked = [], []

    def pack(t):
        packed.append(t.tolist())
        return len(packed) - 1

    def unpack(i):
        unpacked.append(i)
        return lib.tensor(packed[i], dtype=lib.float64)

    x, y = points(lib)
    with lib.autograd.graph.saved_tensors_hooks(pack, unpack):
        out = cubic(x, y)
    out.sum().backward()
    assert packed == [x.tolist(), y.tolist()]
    assert sorted(unpacked) == [0, 1]
    assert x.grad.tolist() == (6 * x * y).tolist()


def test_saved_tensors_are_guarded(lib, cubic):
    x, y = points(lib)
    scaled = x * 1
    out = cubic(scaled, y)
    scaled.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()
    with lib.autograd.graph.allow_mutation_on_saved_tensors():
        scaled = x * 1
        out = cubic(scaled, y)
        with lib.no_grad():
            scaled.mul_(2)
        out.sum().backward()
    assert x.grad.tolist() == (6 * x * y).tolist()


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoint(lib, cubic, reentrant):
    checkpoint = importlib.import_module(lib.__name__ + ".utils.checkpoint").checkpoint
    x, y = points(lib)

    def region(x, y):
        return cubic(x.sin(), y).exp()

    checkpoint(region, x, y, use_reentrant=reentrant).sum().backward()
    got = x.grad.tolist(), y.grad.tolist()
    want = lib.autograd.grad(closed(x.sin(), y).exp().sum(), (x, y))
    assert got == (pytest.approx(want[0].tolist()), pytest.approx(want[1].tolist()))


def test_selective_checkpoint(lib, cubic):
    module = importlib.import_module(lib.__name__ + ".utils.checkpoint")
    x, y = points(lib)
    calls = []

    def region(x, y):
        calls.append("region")
        return cubic(x.sin(), y).exp()

    def contexts():
        return module.create_selective_checkpoint_contexts([cubic._opoverload])

    out = module.checkpoint(region, x, y, use_reentrant=False, context_fn=contexts)
    out.sum().backward()
    want = lib.autograd.grad(closed(x.sin(), y).exp().sum(), (x, y))
    assert x.grad.tolist() == pytest.approx(want[0].tolist())
    assert calls == ["region", "region"]


# Forward mode


def test_forward_mode(forward_cubic):
    forward_ad = wengert.autograd.forward_ad
    x, y = points(wengert, False)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, wengert.ones_like(x))
        tangent = forward_ad.unpack_dual(forward_cubic(dual, y)).tangent
    assert tangent.tolist() == (6 * x * y).tolist()
    inputs = points(wengert)
    assert wengert.autograd.gradcheck(forward_cubic, inputs, check_forward_ad=True)
    assert wengert.autograd.gradgradcheck(forward_cubic, inputs, check_fwd_over_rev=True)


# Transforms


def test_vmap(lib, cubic):
    x, y = points(lib, False)
    batch = lib.stack([x, y, x + y])
    assert lib.vmap(cubic, (0, None))(batch, y).tolist() == closed(batch, y).tolist()
    assert lib.vmap(cubic, (1, 1), 1)(batch, batch).tolist() == closed(batch, batch).tolist()


def test_transforms_nest(forward_cubic):
    x, y = points(wengert, False)
    batch = wengert.stack([x, y])
    func = wengert.func

    def of(f):
        def total(x):
            return f(x, y).sum()

        value, pullback = func.vjp(f, x, y)
        primal, tangent = func.jvp(f, (x, y), (y, x))
        return [
            wengert.vmap(func.grad(total))(batch),
            func.grad(lambda x: func.grad(total)(x).sum())(x), func.jacrev(f)(x, y),
            func.jacfwd(f)(x, y), func.hessian(total)(x), value, primal, tangent, *pullback(y),
        ]  # fmt: skip

    assert [t.tolist() for t in of(forward_cubic)] == [t.tolist() for t in of(closed)]


def test_functionalize(lib, cubic):
    x, y = points(lib, False)

    def program(x, y):
        z = x.clone()
        z[:2].mul_(2)
        return cubic(z, y)

    got = lib.func.functionalize(program)(x, y)
    assert got.tolist() == program(x, y).tolist()


# Graphs


def test_tracing():
    operator = register(wengert, make(SCHEMA, numpy_kernel))
    x, y = points(wengert)

    def program(x, y):
        return operator(x.sin(), y, factor=2).sum()

    traced = wengert.compiler.trace(program, x, y)
    assert operator._qualname in [node.kind for node in traced.graph.nodes()]
    assert traced(x, y).item() == program(x, y).item()
    compiled = wengert.compile(program)
    for order in (1, 2):
        got = gradients(wengert, compiled, x, y, order=order)
        want = gradients(wengert, program, x, y, order=order)
        for mine, other in zip(got[-1], want[-1]):
            assert mine == pytest.approx(other)


def test_meta_tensors(lib, cubic):
    x = lib.ones(3, device="meta", dtype=lib.float64, requires_grad=True)
    out = cubic(x, x)
    assert out.device.type == "meta"
    assert out.shape == (3,)


# Modes and subclasses


def test_dispatch_modes(lib, cubic):
    modes = importlib.import_module(lib.__name__ + ".utils._python_dispatch")
    seen = []

    class Mode(modes.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    x, y = points(lib)
    with Mode():
        out = cubic(x, y)
    assert seen[0] is cubic._opoverload
    out.sum().backward()
    assert x.grad.tolist() == (6 * x * y).tolist()


def test_function_modes(lib, cubic):
    overrides = importlib.import_module(lib.__name__ + ".overrides")
    seen = []

    class Mode(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    x, y = points(lib)
    with Mode():
        cubic(x, y)
    assert cubic._opoverload in seen


def test_subclasses(lib, cubic):
    class Plain(lib.Tensor):
        pass

    class Wrapper(lib.Tensor):
        @staticmethod
        def __new__(cls, inner):
            return lib.Tensor._make_wrapper_subclass(
                cls, inner.size(), dtype=inner.dtype, requires_grad=inner.requires_grad
            )

        def __init__(self, inner):
            self.inner = inner.detach()

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            inner = [a.inner if isinstance(a, cls) else a for a in args]
            out = func(*inner, **(kwargs or {}))
            return cls(out) if isinstance(out, lib.Tensor) else out

    x, y = points(lib)
    want = cubic(x, y).tolist()
    plain = cubic(x.as_subclass(Plain), y)
    assert type(plain) is Plain
    assert plain.tolist() == want
    wrapped = Wrapper(x)
    out = cubic(wrapped, y)
    assert type(out) is Wrapper
    assert out.inner.tolist() == want
    out.sum().backward()
    assert wrapped.grad.inner.tolist() == (6 * x * y).tolist()


# Other modes


def test_gradient_modes(lib, cubic):
    x, y = points(lib)
    with lib.no_grad():
        assert not cubic(x, y).requires_grad
    with lib.inference_mode():
        assert cubic(x, y).is_inference()
    assert cubic(x, y.detach()).requires_grad


def test_the_profiler_names_the_operator(lib, cubic):
    x, y = points(lib)
    with lib.autograd.profiler.profile() as profile:
        cubic(x, y).sum().backward()
    assert cubic._qualname in {event.key for event in profile.key_averages()}


def test_anomaly_detection(lib, cubic):
    x, y = points(lib)
    with pytest.warns(UserWarning), lib.autograd.detect_anomaly():
        out = cubic(x, y)
        with pytest.raises(RuntimeError, match="returned nan values"):
            (out * float("nan")).sum().backward()
