"""Programs that differ for a declared reason: each shows one that was met, in a few steps."""

import pytest

from fuzz.checking import against_pytorch
from fuzz.program import Program, Step

#: What differs, or rounds otherwise, by the steps that show it.
REASONS = {
    "nothing saved": [
        "t1 = torch.ones(2, requires_grad=True)",
        "t2 = t1.clone()",
        "t2.acosh_()",
        "t2.backward(t2, inputs=[t2])",
        "t2.backward(t2, inputs=[t2])",
    ],
    "a coefficient without a node": [
        "t1 = torch.ones(2, 1, requires_grad=True)",
        "t2 = torch.triangular_solve(t1, torch.ones(2, 2))[1]",
        "k3 = t2.grad_fn.register_hook(lambda *args: None)",
        "k4 = torch.autograd.graph.register_multi_grad_hook([t2], lambda *args: None, mode='all')",
    ],
    "a view under no_grad": [
        "with torch.no_grad():\n    t1 = torch.tensor([[1.0]], requires_grad=True)\n"
        "    t2 = torch.fft.ifft(t1)",
        "t2[[]] = torch.tensor([], requires_grad=True)",
    ],
    "a division that stops": [
        "t1 = torch.tensor([9, 0, 5], dtype=torch.uint8)",
        "t1.div_(t1, rounding_mode='floor')",
        "t2 = t1.__rsub__(torch.tensor([0.5, 1.0, 1.0]))",
    ],
    "two that raise": [
        "t1 = torch.tensor([1.0, 0.3, 0.3], requires_grad=True)",
        "t2 = t1 * t1",
        "t2.backward(t2)",
        "t3, t4 = t1.split(2)",
        "class F5(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x, y):\n"
        "        ctx.save_for_backward(x, y)\n        return x.mul_(y)\n"
        "    @staticmethod\n    def backward(ctx, g):\n        x, y = ctx.saved_tensors\n"
        "        return g, g",
        "t6 = F5.apply(t4, t4)",
        "torch.autograd.backward([t6, t2], [t6, t2])",
    ],
    "batches of nothing": [
        "log = []",
        "t1 = torch.zeros((2, 0), requires_grad=True)",
        "t2 = t1 * t1",
        "t3 = t2.diagonal()",
        "t3.div_(t3)",
        "def h1(grads):\n    log.append([g.tolist() for g in grads if g is not None])",
        "k4 = t2.grad_fn.register_prehook(h1)",
        "g5 = torch.autograd.grad(t3, [t1], torch.stack([t3]), is_grads_batched=True)",
    ],
    "two errors": [
        "t1 = torch.tensor([], requires_grad=True)",
        "with torch.inference_mode():\n    t2 = t1 @ t1",
        "t3 = t1.clone()",
        "t3.addcdiv_(torch.tensor([[]], dtype=torch.float64), t2, value=2)",
    ],
    "no derivative": [
        "t1 = torch.ones(3, 2)",
        "t2 = t1.movedim(1, 0)",
        "t3 = torch.ones(1, 3, requires_grad=True)",
        "t2.heaviside_(t3)",
        "t1.backward(t1, inputs=[t3])",
    ],
    "resized": [
        "t1 = torch.ones(4, dtype=torch.bool)",
        "t2, t3 = torch.ones(2, 2, 3, dtype=torch.bool), torch.ones(2, 3, 4, dtype=torch.bool)",
        "t1.addbmm_(t2, t3, beta=0)",
    ],
    "a nameless view": [
        "t1 = torch.ones(1, requires_grad=True)",
        "t2 = torch.fft.ifft(t1)",
        "k3 = t2.register_hook(lambda g: 1 / 0)",
        "t2 += 2",
        "t2.backward(t2)",
    ],
    "a view of a view": [
        "t1 = torch.tensor([[[0.1, 0.4]]])",
        "t2 = torch.nn.functional.max_pool1d(t1, 2)",
        "t2.requires_grad_()",
        "with torch.no_grad():\n    t3 = t2.diagonal()",
    ],
    "rounding behind a refusal": [
        "t1 = torch.tensor(0.2, requires_grad=True)",
        "t2 = torch.tensor([[1.0, 0.7, 0.8], [2.367, 0.707, 0.846], [0.477, 3.764, 0.006], "
        "[-0.855, -0.438, 5.204]], requires_grad=True)",
        "t3 = torch.linalg.det(t2[1:])",
        "t4 = t3.as_strided((3,), (0,))",
        "t4[:1] += 2",
        "t3 += t1",
        "d5 = derivatives(t4, [t1, t2], 3)",
    ],
    "a part without a derivative": [
        "t1 = torch.ones(2, 3).t()",
        "t2 = torch.ones(3, 1, requires_grad=True)",
        "t1.heaviside_(t2)",
        "g3 = torch.autograd.grad(t1, [t2], torch.ones(3, 2), allow_unused=True)",
    ],
    "a product of nothing": [
        "def f1():\n    t2 = torch.tensor(1, dtype=torch.bool)\n    t2.cumprod_(0)",
        "y3 = f1()",
    ],
    "a refused change of shape": [
        "with torch.inference_mode():\n    t1 = torch.ones(1, 3)",
        "t1.transpose_(0, 1)",
        "t2 = torch.ones(2, requires_grad=True)",
        "t3 = t1 * t2",
    ],
    "shapes that do not fit": [
        "with torch.inference_mode():\n    t1 = torch.ones(2)",
        "t2 = t1 % torch.zeros((0,), requires_grad=True)",
    ],
    "an overlap": [
        "t1 = torch.tensor([0.3, 1.0, 0.1, 0.5], requires_grad=True)",
        "t2 = t1 * 1",
        "t2.as_strided_((2, 3), (1, 1))",
        "log = []",
        "k3 = t2.register_hook(lambda g: log.append(g.tolist()))",
        "t4 = t2.diagonal()",
        "t4.atan2_(torch.tensor(0.6))",
        "d5 = derivatives(t2, [t1], 1)",
    ],
    "a mode of equals": [
        "t1 = torch.tensor([float('nan'), 1.0])",
        "t2, t3 = torch.mode(t1)",
    ],
    "no indices": [
        "t1 = torch.tensor([])",
        "t1.scatter_(0, torch.tensor([]), t1.detach())",
    ],
    "a detached view": [
        "with torch.no_grad():\n    t1 = torch.tensor([[0.7]], requires_grad=True)\n"
        "    t2 = torch.nn.functional.max_pool1d(t1, 3, ceil_mode=True)",
        "t2.detach_()",
    ],
    "a slope at NaN": [
        "t1 = torch.zeros((0,), requires_grad=True).mean()",
        "g2 = torch.autograd.grad(torch.nn.functional.hardtanh(t1), t1)[0]",
    ],
    "another dtype": [
        "t1 = torch.tensor(0)",
        "t2 = torch.ones(2, 2, 3, dtype=torch.bool)",
        "t1.addbmm_(t2, torch.ones(2, 3, 4, dtype=torch.bool), alpha=1)",
    ],
    "a variance of equals": [
        "t1 = torch.tensor([[1.0, 0.9, 0.3]], dtype=torch.float64)",
        "t1[:1] = 0.5",
        "t2 = (t1 * t1).tanh().var()",
        "t3 = t2 > torch.tensor([[0]], dtype=torch.int16)",
    ],
    "a turned tensor of numbers": [
        "t1 = torch.tensor([[0.4, 0.9], [1.0, 0.5]], requires_grad=True)",
        "t2 = t1.to(torch.complex128)",
        "t3 = torch.view_as_real(t2)",
        "t2.t_()",
        "d4 = derivatives(t3, [t1], 1)",
    ],
    "zeros of no sign": [
        "t1 = torch.tensor([2, 0, 2, 2], dtype=torch.int16)",
        "t2 = torch.fft.fft(t1)",
        "torch.fft.fft(t1, out=t2)",
        "t3 = (t2 * t2).log()",
    ],
    "another shape of a nameless view": [
        "t1 = torch.ones(1, 2, requires_grad=True)",
        "t2 = torch.fft.ifft(t1, norm='forward')",
        "t2.t_()",
        "t2 /= 2",
        "e3 = torch.autograd.graph.get_gradient_edge(t2)",
        "g4 = torch.autograd.grad(e3, t1, torch.full_like(t2, 0.5))",
    ],
    "parts of a changed number": [
        "t1 = torch.tensor(0.8, dtype=torch.complex128)",
        "def f2(x):\n    y = torch.view_as_real(x)\n    with torch.no_grad():\n"
        "        x.mul_(x)\n    return y",
        "def f3(x):\n    return torch.func.vjp(f2, x)[0]",
        "def f4(x):\n    return (lambda y, pull: pull(y)[0])(*torch.func.vjp(f3, x))",
        "r5 = torch.func.vjp(f4, t1)[0]",
    ],
    "no rows": [
        "t1 = torch.zeros((0, 3))",
        "def f2(x):\n    y = torch.ones(1, 3)\n    z = torch.atan2(x, y)\n    y.add_(1)\n"
        "    return z",
        "r3 = (lambda y, pull: pull(y))(*torch.func.vjp(torch.func.jacfwd(f2), t1))",
    ],
    "a hook that raises": [
        "t1 = torch.tensor([], dtype=torch.float16, requires_grad=True)",
        "t2 = torch.special.i1e(t1)",
        "def h3(g):\n    raise ValueError('first call')",
        "k4 = t1.register_hook(h3)",
        "t2.sum().backward()",
    ],
}


@pytest.mark.parametrize("reason", REASONS)
def test_programs_that_have_their_reason(reason):
    pytest.importorskip("torch")
    assert against_pytorch(Program([Step(step) for step in REASONS[reason]])) is None
