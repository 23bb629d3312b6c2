"""Random programs do what they do on PyTorch, or where there is none, what they plainly mean."""

import itertools
import math
from functools import partial
from pathlib import Path

import pytest

import wengert
from fuzz.by_hand import BY_HAND
from fuzz.checking import against_itself, against_pytorch, check, rounding_decides
from fuzz.comparison import differences
from fuzz.declared import TABLE
from fuzz.declared.tangents import in_forward_mode, tells_the_slope
from fuzz.flavours import write
from fuzz.program import Program, Step
from fuzz.report import Report
from fuzz.runner import execute
from fuzz.seed import of_commit
from fuzz.subjects import transforms
from fuzz.supervision import supervise

ONLY_PYTORCH = "(2 if torch.__name__ == 'torch' else 3)"
SECONDS = 60 if wengert.__compiled__ else 20


def test_programs_of_the_commit(monkeypatch):
    """A difference comes with a seed and a number, which `python -m fuzz` can run again; it also
    makes machine code of graphs, which takes too long here."""
    monkeypatch.setenv("WENGERT_BACKEND", "interpreter")
    seed = of_commit()
    report = Report(seed, printing=False)
    supervise(report, SECONDS)
    again = f"PYTHONPATH=tests python -P -m fuzz --seed {seed} --program NUMBER runs one again"
    assert not report.found, "\n".join([*report.found.values(), report.summary(), again])
    assert sum(report.ran.values()) > SECONDS  # some dozens a second where nothing else runs


def test_a_number_is_a_program():
    first, again = (check(1, 7)[0].program.text for _ in range(2))
    assert first == again


def test_chunks_are_not_nested(monkeypatch):
    """Hundreds of chunks, each of which goes through dozens of chunks, take minutes."""
    chosen = {name: transforms.TRANSFORMS[name] for name in ("chunked", "vjp")}
    monkeypatch.setattr(transforms, "TRANSFORMS", chosen)
    counts = {
        write(1, number, wengert, "transformed")[0].text.count("chunk_size") for number in range(20)
    }
    assert counts == {0, 1}


@pytest.mark.parametrize(
    ("source", "decides"),
    [("(t1 * 1e16).sin()", True), ("t1.floor() * 3", False), ("t1 * 1.5", False)],
)
def test_rounding_decides_where_numbers_that_hardly_differ_do(source, decides):
    steps = ["t1 = torch.tensor([2.0], dtype=torch.float64)", f"t2 = {source}"]
    program = Program([Step(step) for step in steps])
    seen = execute(program, wengert)
    other = execute(Program([Step(steps[0]), Step(f"t2 = {source} + 1")]), wengert)
    found = next(differences(program, seen, other))
    assert found.field == "values"
    assert rounding_decides(program, found, wengert, seen) is decides


@pytest.mark.parametrize(("added", "agrees"), [("1", True), (ONLY_PYTORCH, False)])
def test_a_product_of_one_term_is_a_zero_of_either_sign(added, agrees):
    pytest.importorskip("torch")
    steps = [
        "t1 = torch.tensor([[1.0], [1.0]], requires_grad=True)",
        "t2 = torch.tensor([[0.6, -1.0]])",
        "t1.data.zero_()",
        "t3 = t1 @ t2",
        f"t4 = torch.atan2(t1, t3) + {added}",
    ]
    assert (against_pytorch(Program([Step(step) for step in steps])) is None) is agrees


@pytest.mark.parametrize(
    ("made", "result", "decides"),
    [
        ("[2], dtype=torch.int64", "(t1.sqrt() * 1e16).sin()", True),
        ("[2], dtype=torch.int64", "(t1.double() * 1e16).sin()", False),
        ("[2], dtype=torch.int64", "t1.sqrt() * 3", False),
        ("[-2], dtype=torch.int64", "(-2.0) ** torch.fft.hfftn(t1, (1,))", True),
        ("[-2], dtype=torch.int64", "(-2.0) ** t1.double()", False),
        ("[-2], dtype=torch.int64", "torch.fft.hfftn(t1, (1,)) * 3", False),
        ("[0.01], dtype=torch.bfloat16", "(t1 * 1e4).sin()", True),
        ("[0.01], dtype=torch.bfloat16", "(t1 * 3).sin()", False),
    ],
)
def test_numbers_made_of_integers_and_very_short_ones_are_nudged_too(made, result, decides):
    steps = [f"t1 = torch.tensor({made})", f"t2 = {result}"]
    program = Program([Step(step) for step in steps])
    seen = execute(program, wengert)
    other = execute(Program([Step(steps[0]), Step(f"t2 = {result} + 1")]), wengert)
    found = next(differences(program, seen, other))
    assert found.field == "values"
    assert rounding_decides(program, found, wengert, seen) is decides


@pytest.mark.parametrize(("factor", "agrees"), [("1", True), (ONLY_PYTORCH, False)])
@pytest.mark.parametrize("made", ["dtype=torch.float16", "dtype=torch.float32).half("])
def test_a_narrow_dtype_may_be_too_coarse_for_pytorch(made, factor, agrees):
    """Where a second derivative of atan2 overflows there, ours must agree in double precision."""
    pytest.importorskip("torch")
    steps = [
        f"t1 = torch.tensor([[0.8, -0.041]], {made})",
        "def f2(x):\n    return weigh(torch.atan2(x, x))",
        f"r3 = torch.autograd.functional.hessian(f2, t1) + ({factor} - 1)",
    ]
    assert (against_pytorch(Program([Step(step) for step in steps])) is None) is agrees


@pytest.mark.parametrize(("factor", "expected"), [("1", True), ("3", False)])
def test_a_second_opinion_decides_where_pytorch_contradicts_itself(factor, expected):
    """The gradient of select_scatter inside vmap is twice too large in PyTorch."""
    torch = pytest.importorskip("torch")
    row = f"x * ({factor} if torch.__name__ == 'wengert' else 1)"
    steps = [
        "t1 = torch.ones(1, 1)",
        f"def f2(x):\n    return torch.zeros(2, 1).select_scatter({row}, 0, 1)",
        "r3 = torch.func.grad(lambda x: vmap(f2)(x).sum())(t1)",
    ]
    program = Program([Step(step) for step in steps])
    assert next(differences(program, execute(program, wengert), execute(program, torch)), None)
    assert (against_pytorch(program) is None) is expected


@pytest.mark.parametrize(
    ("made", "result", "decides"),
    [
        ("torch.fft.fft(t1.detach() * 0 - 1)", "t2**0.5", True),
        ("torch.fft.fft(t1)", "t2 * (2 if torch.__name__ == 'torch' else 3)", False),
        ("torch.linalg.cholesky(torch.ones(1, 1, dtype=torch.cdouble)) - 4", "t2**0.5", True),
        ("t1[:, None].mm(t1[None])", "t2 * (2 if torch.__name__ == 'torch' else 3)", False),
        ("torch.prelu(t1, t1[:1])", "derivatives(t2, [t1], 2)", True),
        ("t1.prelu(t1[:1])", "derivatives(t2, [t1], 2)", True),
        ("t1.prelu(t1[:1])", "t2 * (2 if torch.__name__ == 'torch' else 3)", False),
    ],
)
def test_zeros_of_no_sign_decide_where_functions_jump(made, result, decides):
    pytest.importorskip("torch")
    steps = [
        "t1 = torch.tensor([-3.0, 0.0, -0.0, 0.0], dtype=torch.float64, requires_grad=True)",
        f"t2 = {made}",
        f"d3 = {result}",
    ]
    program = Program([Step(step) for step in steps])
    assert (against_pytorch(program) is None) is decides


@pytest.mark.parametrize(
    ("made", "factor", "agrees"),
    [
        ("t1.conj()", "1", True), ("torch.conj(t1)", "1", True), ("t1.mH", "1", True),
        ("t1.conj()", "(2 if torch.__name__ == 'torch' else 3)", False),
    ],
)  # fmt: skip
def test_what_is_conjugated_late_may_change(made, factor, agrees):
    """A change of a conjugated tensor shows in the view that PyTorch has of it."""
    pytest.importorskip("torch")
    steps = ["t1 = torch.tensor([[1 + 2j]])", f"t2 = {made} * 1", f"t3 = {made}", "t1.mul_(2)"]
    steps.append(f"t4 = t3 * {factor} + t2")
    assert (against_pytorch(Program([Step(step) for step in steps])) is None) is agrees


@pytest.mark.parametrize(
    ("result", "agrees"),
    [
        ("t2.gather(0, torch.tensor([0]))", True),
        ("t2 * (2 if torch.__name__ == 'torch' else 3)", False),
    ],
)
def test_a_tensor_that_is_saved_in_vain_may_be_changed(result, agrees):
    """PyTorch saves what it gathers from, and refuses a change; copies of it give our gradient."""
    pytest.importorskip("torch")
    steps = [
        "t1 = torch.ones(2, requires_grad=True)",
        "t2 = t1 * 1",
        f"t3 = t2.take(torch.tensor([0])) + {result}",
        "t4 = t2.add_(1)",
        "g5 = torch.autograd.grad(t3.sum(), t1)[0]",
    ]
    assert (against_pytorch(Program([Step(step) for step in steps])) is None) is agrees


@pytest.mark.parametrize(("factor", "agrees"), [("1", True), (ONLY_PYTORCH, False)])
@pytest.mark.parametrize(
    ("body", "call"),
    [
        ("t4 = x3.real\n    t4.mul_(x3)", "torch.func.jvp(f2, (t1,), (tangent(t1),))[1]"),
        ("t4 = x3.logcumsumexp(0)\n    x3 = t4 * 1\n    t4.sub_(1)", "torch.func.grad(f3)(t1)"),
        (
            "t4 = x3 * 1\n    t5 = torch.nn.functional.adaptive_avg_pool1d(t4, (1,))\n"
            "    t4.sub_(1)\n    x3 = t5",
            "torch.func.grad(f3)(t1)",
        ),
        ("x3 = torch.linalg.det(x3)", "torch.func.hessian(f4)(t1)"),
        ("t4 = x3.frac()\n    x3.mul_(x3)\n    x3 = t4", "torch.func.jacfwd(f2)(t1.clone())"),
        (
            "t4 = torch.linalg.det(x3)\n    x3 = t4.frac()\n    t4.mul_(t4)",
            "torch.func.jacfwd(f4)(t1)",
        ),
        (
            "t4 = torch.fft.fft(x3)\n    t5 = x3.detach().view(4)\n    t5.mul_(2)\n"
            "    x3 = t4.real",
            "torch.func.grad(f3)(t1)",
        ),
        (
            "t4 = x3 * 1\n    t4.sigmoid_()\n    t4 += t4 + 1\n    x3 = t4",
            "torch.func.grad(lambda x: torch.func.jacfwd(f2)(x).sin().sum())(t1)",
        ),
        (
            "x3 = torch.nn.functional.kl_div(x3.exp(), x3, reduction='none')",
            "torch.autograd.functional.jvp(f2, t1, tangent(t1))[1]",
        ),
    ],
    ids=["changed by itself", "saved in vain", "saved for a view", "by definition",
         "shared tangents", "two reasons", "shared by detach", "saved by a change",
         "a product from its transpose"],
)
def test_variants_of_a_program_tell_why_it_differs(body, call, factor, agrees):
    """A variant explains a difference only if PyTorch then computes what we do."""
    pytest.importorskip("torch")
    steps = [
        "t1 = torch.tensor([[1.5, -0.7], [0.3, 2.0]], dtype=torch.float64)",
        f"def f2(x3):\n    {body}\n    return x3 * {factor}",
        "def f3(x):\n    return f2(x).sin().sum()",
        "def f4(x):\n    return torch.func.jvp(f2, (x,), (x.sin(),))[1]",
        f"r5 = {call}",
    ]
    assert (against_pytorch(Program([Step(step) for step in steps])) is None) is agrees


@pytest.mark.parametrize(
    ("seen", "agrees"),
    [("g", True), (f"g * {ONLY_PYTORCH}", False), ("g / (torch.__name__ == 'torch')", False)],
)
def test_a_hook_may_see_that_pytorch_drops_what_is_not_a_number(seen, agrees):
    """Its rule of logcumsumexp takes a gradient that is none for zero."""
    pytest.importorskip("torch")
    steps = [
        "t1 = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64, requires_grad=True)",
        "t2 = t1 * 1",
        f"def h3(g):\n    log.append(({seen}).tolist())",
        "k4 = t2.register_hook(h3)",
        "t5 = t2.logcumsumexp(0)",
        "t5.backward(torch.tensor([1.0, float('nan'), 1.0], dtype=torch.float64))",
    ]
    assert (against_pytorch(Program([Step(step) for step in steps])) is None) is agrees


@pytest.mark.parametrize(("seen", "agrees"), [("g", True), (f"g * {ONLY_PYTORCH}", False)])
def test_a_change_leads_past_a_hook_of_a_nameless_view(seen, agrees):
    """The sum is a view in PyTorch, of what has no name and gets the change."""
    pytest.importorskip("torch")
    steps = [
        "t1 = torch.tensor([[0.5, 0.8]], requires_grad=True)",
        "t2 = t1.sum_to_size(2)",
        f"def h3(g):\n    log.append(({seen}).tolist())",
        "k4 = t2.register_hook(h3)",
        "t2 /= 2",
        "t2.sum().backward()",
    ]
    assert (against_pytorch(Program([Step(step) for step in steps])) is None) is agrees


@pytest.mark.parametrize(("factor", "agrees"), [("1", True), (ONLY_PYTORCH, False)])
@pytest.mark.parametrize(
    "steps",
    [
        [
            "t4, t5 = t3.unbind(0)",
            "t6 = torch.zeros(1, 2, dtype=torch.float64)",
            "t6.copy_(t3)",
            "t6.mul_(t4)",
            "t7 = t5 * t6",
        ],
        [
            "t4 = torch.tensor([0.5, 0.25], dtype=torch.float16, requires_grad=True)",
            "t5 = t4[:, None] * t4 @ t4[:, None]",
            "t5.fmod_(t3[:, None])",
            "t7 = torch.autograd.grad(t5.sin().sum(), t4)[0]",
        ],
        [
            "t7 = torch.tensor([0.0, 1.0], dtype=torch.float32)",
            "t7.fmod_(t3)",
            "t7[[0]] = 0.5",
        ],
    ],
    ids=["shared by copy_", "of another dtype", "written in another dtype"],
)
def test_variants_tell_why_dual_tensors_are_refused(steps, factor, agrees):
    torch = pytest.importorskip("torch")
    steps = [
        "forward_ad = torch.autograd.forward_ad",
        "level = forward_ad.enter_dual_level()",
        "t1 = torch.tensor([1.5, 2.0], dtype=torch.float64, requires_grad=True)",
        "t3 = forward_ad.make_dual(t1, tangent(t1))",
        *steps,
        f"t8 = t7.detach() * {factor}",
    ]
    program = Program([Step(step) for step in steps])
    assert any(seen.error for seen in execute(program, torch))
    assert not any(seen.error for seen in execute(program, wengert))
    assert (against_pytorch(program) is None) is agrees


def test_a_view_that_a_function_read_is_freed():
    """PyTorch refuses to read it, and refuses again; here it is read, and another node refuses."""
    pytest.importorskip("torch")
    steps = [
        "t1 = torch.tensor(0.5, requires_grad=True)",
        "t2 = t1.exp()",
        "class Whole(torch.autograd.Function):\n"
        "    forward = staticmethod(lambda ctx, x: x.view_as(x))\n"
        "    backward = staticmethod(lambda ctx, g: g)",
        "t3 = Whole.apply(t2)",
        "class Changed(torch.autograd.Function):\n"
        "    @staticmethod\n"
        "    def forward(ctx, x, y):\n"
        "        ctx.save_for_backward(y)\n"
        "        ctx.mark_dirty(x)\n"
        "        return x.mul_(2)\n"
        "    @staticmethod\n"
        "    def backward(ctx, g):\n"
        "        return g * ctx.saved_tensors[0], None",
        "t4 = Changed.apply(t2, t3)",
        "t4.backward()",
        "t4.backward()",
    ]
    program = Program([Step(step) for step in steps])
    mine = execute(program, wengert)
    assert "modified by an inplace" in mine[6].error.message
    assert "a second time" in mine[7].error.message
    assert against_pytorch(program) is None


ONLY_PLAIN = "(2 if 'jacfwd' in jacobian.__code__.co_names else 3)"


@pytest.mark.parametrize(("factor", "agrees"), [("1", True), (ONLY_PLAIN, False)])
def test_strides_of_a_view_tell_why_forward_mode_sees_more(factor, agrees):
    steps = [
        "t1 = torch.ones(4)",
        "def f2(x3):\n    t4 = x3[:2]\n    t5 = t4.as_strided((2,), (1,), 1)\n    return t5",
        f"r6 = jacobian(f2)(t1) * {factor}",
    ]
    program = Program([Step(step) for step in steps], ours=True)
    assert (against_itself(program) is None) is agrees


@pytest.mark.parametrize(("factor", "agrees"), [("1", True), (ONLY_PYTORCH, False)])
def test_reverse_mode_tells_what_batched_tangents_hide(factor, agrees):
    """PyTorch's lie as their value does, here in columns, so a view by strides sees others."""
    pytest.importorskip("torch")
    steps = [
        "t1 = torch.ones(3, 2)",
        "t2 = t1.T",
        "def f2(x3):\n    t4 = x3[:1]\n    t5 = t4.as_strided((2,), (1,))\n    return t5",
        "r6 = torch.autograd.functional.jacobian(f2, t2, vectorize=True, strategy='forward-mode')"
        f" * {factor}",
    ]
    assert (against_pytorch(Program([Step(step) for step in steps])) is None) is agrees


@pytest.mark.parametrize(("factor", "agrees"), [("1", True), (ONLY_PYTORCH, False)])
def test_a_chunk_may_be_read_after_another_view_was_changed_by_it(factor, agrees):
    """PyTorch reads it again for the tangent, and refuses."""
    pytest.importorskip("torch")
    steps = [
        "t1 = torch.ones(2, requires_grad=True)",
        "forward_ad = torch.autograd.forward_ad",
        "level = forward_ad.enter_dual_level()",
        "t2 = forward_ad.make_dual(t1, t1) * 1",
        "t3 = t2[1:]",
        "t4, t5 = t2.chunk(2)",
        "t3.addcmul_(t5, t5)",
        f"t6 = t3 * {factor}",
    ]
    assert (against_pytorch(Program([Step(step) for step in steps])) is None) is agrees


@pytest.mark.parametrize(("name", "agrees"), [("g2", True), ("t2", False)])
def test_the_primal_of_a_gradient_is_a_view_of_it(name, agrees):
    """The base of that shows only where the gradient is none itself."""
    pytest.importorskip("torch")
    steps = [
        "t1 = torch.ones(1)",
        f"with torch.no_grad():\n    {name} = torch.zeros(1)\n"
        f"    {name} = {name} if torch.__name__ == 'torch' else {name}[:]",
        "forward_ad = torch.autograd.forward_ad",
        "level = forward_ad.enter_dual_level()",
        f"t3 = forward_ad.unpack_dual({name}).primal",
    ]
    assert (against_pytorch(Program([Step(step) for step in steps])) is None) is agrees


@pytest.mark.parametrize(("change", "agrees"), [("0", True), ("torch.__name__ == 'torch'", False)])
def test_the_gradient_of_nothing_is_not_the_operand(change, agrees):
    pytest.importorskip("torch")
    steps = [
        "t1 = torch.zeros(0, requires_grad=True)",
        "t2 = t1.movedim(-1, 0)",
        "t3 = t2.cummax(0)[0]",
        "t3.backward(t3)",
        "t2.backward(t2)",
        f"if {change}:\n    t1.detach().add_(1)",
    ]
    assert (against_pytorch(Program([Step(step) for step in steps])) is None) is agrees


@pytest.mark.parametrize("number", ["1", ONLY_PYTORCH])
@pytest.mark.parametrize(
    "steps",
    [
        [
            "forward_ad = torch.autograd.forward_ad",
            "level = forward_ad.enter_dual_level()",
            "t2 = forward_ad.make_dual(t1.detach(), t1.detach())",
            "t3 = torch.maximum(t2, torch.full_like(t2, torch.nan))",
            "d4 = forward_ad.unpack_dual(t3).tangent",
        ],
        [
            "t2 = torch.tensor([0.7], dtype=torch.float64, requires_grad=True)",
            "t3 = torch.linalg.householder_product(t1, t2)",
            "k4 = t1.register_hook(lambda: None)",
            "t3.sum().backward()",
        ],
        ["t2 = torch.triangular_solve(t1, t1.detach())[1]"],
        ["t2 = torch.nn.functional.celu(-t1, alpha=0.7)", "d3 = derivatives(t2 - t1, [t1], 2)"],
        [
            "t2 = torch.nn.functional.celu(-t1, alpha=0.7)",
            "d3 = derivatives(t2 - t1, [t1], 2)",
            "t4 = torch.ones(1, 1).long()",
            "torch.scatter_reduce(t4, 0, torch.tensor([]), t4, 'amin', include_self=False)",
        ],
        [
            "t2 = torch.ones(2, 2, dtype=torch.uint8)",
            "t3 = torch.polar(-t1, t1)",
            "t2.atan2_(t3)",
            "d4 = derivatives(t3 - t2, [t1], 1)",
        ],
        [
            "t2 = (t1 * torch.ones(3, 1, 1)).movedim(1, 0)",
            "t3 = torch.nn.functional.cross_entropy(t2, torch.tensor([[0, 0], [0, 0]]))",
            "d4 = derivatives(t3, [t1], 3)",
        ],
        [
            "forward_ad = torch.autograd.forward_ad",
            "level = forward_ad.enter_dual_level()",
            "t2 = forward_ad.make_dual(t1.detach(), t1.detach())",
            "t3 = t1.to(torch.complex128)",
            "t3.copy_(t2)",
            "t4 = torch.view_as_real(t3)",
        ],
    ],
    ids=["both have a tangent", "a hook that fails", "the coefficient", "a rounded constant",
         "a call with nothing to do",
         "a refused change", "a loss of a view", "a real tangent"],
)
def test_definitions_tell_why_functions_differ(steps, number):
    pytest.importorskip("torch")
    made = "torch.tensor([[0.4, 0.3], [0.1, 0.3]], dtype=torch.float64, requires_grad=True)"
    steps = [f"t1 = {made}", *steps, f"t9 = torch.tensor({number})"]
    assert (against_pytorch(Program([Step(step) for step in steps])) is None) is (number == "1")


EXTREMES = [1.0, 2.0, 0.0, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin"])
def test_definitions_of_extrema_have_the_gradients_of_the_functions(name):
    torch = pytest.importorskip("torch")
    for pair in itertools.product(EXTREMES, repeat=2):
        x, y = (torch.tensor(number, requires_grad=True) for number in pair)
        values = getattr(torch, name)(x, y), BY_HAND[name](torch, x, y)
        found = [[value, *torch.autograd.grad(value, [x, y])] for value in values]
        assert torch.equal(*(torch.stack(row).nan_to_num(7.0) for row in found)), pair


@pytest.mark.parametrize("dim", [None, -1])
def test_the_definition_of_cross_is_that_of_the_function(dim):
    torch = pytest.importorskip("torch")
    x, y = torch.randn(3, 2, 3, requires_grad=True), torch.randn(3)
    y = y.reshape((3, 1, 1) if dim is None else (1, 1, 3))
    found = [function(x, y, dim) for function in (torch.cross, partial(BY_HAND["cross"], torch))]
    slopes = [torch.autograd.grad(each.sin().sum(), x)[0] for each in found]
    assert torch.allclose(*found) and torch.allclose(*slopes)


@pytest.mark.parametrize(("factor", "agrees"), [("1", True), (ONLY_PYTORCH, False)])
def test_results_in_rows_tell_that_strides_decide(factor, agrees):
    pytest.importorskip("torch")
    steps = [
        "t1 = torch.tensor([[1.0, 2.0], [3.0, 4.0]])",
        "t2 = t1 * 1 if torch.__name__ == 'torch' else t1.T.contiguous().T",
        f"t3 = t2.as_strided((3,), (1,)) * {factor}",
    ]
    assert (against_pytorch(Program([Step(step) for step in steps])) is None) is agrees


def test_differences_of_values_tell_which_tangent_is_right():
    steps = [
        "level = torch.autograd.forward_ad.enter_dual_level()",
        "t1 = torch.ones(1, dtype=torch.float64)",
        "t2 = torch.autograd.forward_ad.make_dual(t1, t1)",
        "d3 = torch.autograd.forward_ad.unpack_dual(t2 * t2).tangent",
    ]
    program = Program([Step(step) for step in steps])
    right = execute(program, wengert)
    wrong = execute(Program([*program.steps[:3], Step(steps[3] + " * 2")]), wengert)
    assert tells_the_slope(next(differences(program, right, wrong)))
    assert not tells_the_slope(next(differences(program, wrong, right)))
    missing = execute(Program([*program.steps[:3], Step("d3 = None")]), wengert)
    assert in_forward_mode(next(differences(program, right, missing)))
    assert not in_forward_mode(next(differences(program, missing, right)))


@pytest.mark.parametrize(
    ("made", "agrees"),
    [
        ("{0} = torch.autograd.grad(torch.trace(t1), t1)[0]", True),
        (
            "with torch.no_grad():\n"
            "    {0} = torch.zeros(2, 2)\n"
            "    {0} = {0}[:] if torch.__name__ == 'torch' else {0}",
            False,
        ),
    ],
)
def test_a_dual_tensor_made_of_a_gradient_may_be_a_view(made, agrees):
    """That of a trace is a view in PyTorch, which refuses to change it; others must agree."""
    pytest.importorskip("torch")
    name = "g2" if agrees else "t2"
    steps = [
        "t1 = torch.ones(2, 2, requires_grad=True)",
        made.format(name),
        "forward_ad = torch.autograd.forward_ad",
        "level = forward_ad.enter_dual_level()",
        f"t3 = forward_ad.make_dual({name}, torch.ones(2, 2))",
        "t4 = t3.as_strided((2,), (1,), 0)",
        "t4.mul_(t1[0])",
    ]
    assert (against_pytorch(Program([Step(step) for step in steps])) is None) is agrees


@pytest.mark.parametrize(("factor", "agrees"), [("1", True), (ONLY_PYTORCH, False)])
def test_graphs_of_gradients_save_what_our_rules_read(factor, agrees):
    """The rule of atan2 reads both operands, of which PyTorch's second derivative needs one."""
    pytest.importorskip("torch")
    steps = [
        "t1 = torch.tensor(1.0, requires_grad=True)",
        "t2 = torch.tensor(2.0, requires_grad=True) * 1",
        "t3 = torch.atan2(t1, t2)",
        "g4 = torch.autograd.grad(t3, t1, create_graph=True)[0]",
        "t2.add_(1)",
        f"g5 = torch.autograd.grad(g4, t1)[0] * {factor}",
    ]
    assert (against_pytorch(Program([Step(step) for step in steps])) is None) is agrees


@pytest.mark.parametrize(("tangent", "agrees"), [("x.sin()", True), ("x * 1", False)])
def test_a_filled_tensor_may_be_saved_for_its_tangent(tangent, agrees):
    """PyTorch refuses that a tangent is not recorded any more; other refusals have no reason."""
    pytest.importorskip("torch")
    words = "one of the variables needed for gradient computation has been modified by an inplace"
    steps = [
        "t1 = torch.ones(2)",
        "def f2(x):\n    x.zero_()\n"
        f"    if torch.__name__ == 'torch' and {not agrees}:\n"
        f"        raise RuntimeError('{words} operation')\n"
        "    return x",
        f"def f3(x):\n    x = x * 2\n    return torch.func.jvp(f2, (x,), ({tangent},))",
        "r4 = torch.func.vjp(f3, t1)[1]((t1, t1))",
    ]
    assert (against_pytorch(Program([Step(step) for step in steps])) is None) is agrees


@pytest.mark.parametrize(("loss", "agrees"), [("", True), ("_with_logits", False)])
def test_a_loss_has_the_slope_of_its_limit(loss, agrees):
    pytest.importorskip("torch")
    infinite = "" if agrees else "\nif torch.__name__ == 'torch':\n    t2.grad.div_(0)"
    steps = [
        "t1 = torch.ones(1)",
        "t2 = torch.ones(1, requires_grad=True)",
        f"t3 = torch.nn.functional.binary_cross_entropy{loss}(t1, t2)",
        f"t3.backward(){infinite}",
    ]
    assert (against_pytorch(Program([Step(step) for step in steps])) is None) is agrees


@pytest.mark.parametrize(("name", "agrees"), [("g3", True), ("t2", False)])
def test_one_of_two_reasons_to_refuse_a_second_derivative(name, agrees):
    pytest.importorskip("torch")
    words = ["through the graph a second time", "modified by an inplace operation"]
    steps = [
        "t1 = torch.ones(1, requires_grad=True)",
        "t2 = t1.exp()",
        "g3 = torch.autograd.grad(t2, t1, create_graph=True)[0]",
        "t2.sum().backward()",
        f"def f4(x):\n    raise RuntimeError({words}[torch.__name__ == 'torch'])",
        f"f4(derivatives({name}, [t1], 0))",
    ]
    assert (against_pytorch(Program([Step(step) for step in steps])) is None) is agrees


@pytest.mark.parametrize(("mode", "agrees"), [("no_grad", True), ("enable_grad", False)])
@pytest.mark.parametrize("change", ["clone().zero_()", "clone().fill_(2.0)", "nanmean()"])
def test_a_tangent_requires_grad_only_where_something_leads_to_it(change, mode, agrees):
    """PyTorch asks for the gradient of one where a view was made without recording."""
    pytest.importorskip("torch")
    words = "element 1 of tensors does not require grad and does not have a grad_fn"
    steps = [
        "t1 = torch.ones(2, 2)",
        f"def f2(x):\n    x = x.{change}\n"
        f"    if torch.__name__ == 'torch' and {not agrees}:\n"
        f"        raise RuntimeError('{words}')\n"
        f"    with torch.{mode}():\n        return x.t()",
        "r3 = torch.func.jacrev(lambda x: torch.func.jvp(f2, (x,), (torch.ones(2, 2),)))(t1)",
    ]
    assert (against_pytorch(Program([Step(step) for step in steps])) is None) is agrees


@pytest.mark.parametrize(("hook", "agrees"), [("-g", True), ("1 / 0", False)])
def test_a_hook_may_get_no_gradient_where_pytorch_has_raised(hook, agrees):
    pytest.importorskip("torch")
    steps = [
        "t1 = torch.ones(2, 2, requires_grad=True)",
        "t2, t3 = t1",
        "t4 = t3.detach()",
        f"k5 = t2.register_hook(lambda g: {hook})",
        "class F6(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, x, y):\n"
        "        ctx.save_for_backward(x, y)\n        ctx.mark_dirty(x)\n        return x\n"
        "    @staticmethod\n    def backward(ctx, g):\n"
        "        x, y = ctx.saved_tensors\n        return g, g",
        "t7 = F6.apply(t4, t3)",
        "t4.backward(t4)",
    ]
    assert (against_pytorch(Program([Step(step) for step in steps])) is None) is agrees


@pytest.mark.parametrize(("factor", "agrees"), [("1", True), (ONLY_PYTORCH, False)])
@pytest.mark.parametrize(
    "steps",
    [
        [
            "forward_ad = torch.autograd.forward_ad",
            "level = forward_ad.enter_dual_level()",
            "t2 = forward_ad.make_dual(t1.detach(), t1.detach())",
            "t3 = torch.ones(2, 2)",
            "t3[...] = t2",
            "t3[[]] = 0.5",
        ],
        [
            "t2 = t1.triangular_solve(torch.ones(2, 1, dtype=torch.float64))[1]",
            "t2.masked_fill_(t2 > 0.2, 0.5)",
        ],
    ],
    ids=["a part of another dtype", "a changed coefficient"],
)
def test_what_follows_declared_differences(steps, factor, agrees):
    pytest.importorskip("torch")
    made = "torch.tensor([[0.4, 0.3], [0.1, 0.3]], dtype=torch.float64, requires_grad=True)"
    steps = [f"t1 = {made}", *steps, f"t9 = torch.tensor({factor})"]
    assert (against_pytorch(Program([Step(step) for step in steps])) is None) is agrees


@pytest.mark.parametrize(
    "steps",
    [
        [
            "def f1(x):\n    parts = x.unbind()\n    x[...] = 0.5\n    return parts",
            "r2 = linearized(f1, torch.ones(1, 0))",
        ],
        [
            "def f1(x):\n    return weigh(x[1].as_strided((3,), (0,), 4))",
            "def f2(x):\n    return torch.func.jvp(torch.func.grad(f1), (x,), (tangent(x),))",
            "r3 = vmap(f2, in_dims=-1, out_dims=1)(torch.ones(2, 2, 4))",
        ],
        [
            "def f1(x):\n    with torch.no_grad():\n        x.lerp_(x, 0.2)\n"
            "        return x.as_strided((1, 2), (1, 1))",
            "def f2(x):\n    return linearized(lambda x: torch.func.jvp(f1, (x,), (x.sin(),)), x)",
            "r3 = (lambda y, pull: pull(y))(*torch.func.vjp(f2, torch.ones(1, 1, 2)))",
        ],
    ],
    ids=["a linear function of a view uses it", "places in memory of batches", "two errors"],
)
def test_transforms_that_have_their_reason(steps):
    assert against_itself(Program([Step(step) for step in steps], ours=True)) is None


@pytest.mark.parametrize("reason", sorted({entry.reason for entry in TABLE}))
def test_declared_differences_are_documented(reason):
    page = Path(__file__).parents[2] / "docs" / "differences.md"
    text = " ".join(page.read_text(encoding="utf-8").replace("`", "").replace("*", "").split())
    assert reason.rstrip(".") in text
