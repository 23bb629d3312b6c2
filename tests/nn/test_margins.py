"""Losses of counts, distances, margins and alignments, and functions that draw, against PyTorch."""

import copy
import inspect
import itertools
import math
import pickle

import pytest

import wengert
from nn.test_layers import numbers

torch = pytest.importorskip("torch")


def wave(lib, *shape, factor=5.0, low=-1.0, high=1.0):
    """Repeatable numbers between two ends."""
    values = lib.linspace(-3, 3.1, max(math.prod(shape), 1), dtype=lib.float64).mul(factor).sin()
    return (values * ((high - low) / 2) + (high + low) / 2).reshape(shape)


def signs(lib, *shape):
    return (wave(lib, *shape, factor=17.0) > 0).double() * 2 - 1


#: Inputs of losses by name, the first `count` of which are differentiated, and options to try.
LOSSES = {
    "PoissonNLLLoss": (1, lambda lib: (wave(lib, 5, 3, low=0.1), wave(lib, 5, 3, low=0, high=4)),
                       [{}, {"log_input": False}, {"full": True}]),
    "GaussianNLLLoss": (3, lambda lib: (wave(lib, 5, 3), wave(lib, 5, 3, factor=9),
                                        wave(lib, 5, 3, low=0.1, high=2)), [{}, {"full": True}]),
    "HingeEmbeddingLoss": (1, lambda lib: (wave(lib, 5, 3, low=0, high=2), signs(lib, 5, 3)),
                           [{}, {"margin": 0.5}]),
    "SoftMarginLoss": (1, lambda lib: (wave(lib, 5, 3), signs(lib, 5, 3)), [{}]),
    "CosineEmbeddingLoss": (2, lambda lib: (wave(lib, 5, 3), wave(lib, 5, 3, factor=9),
                                            signs(lib, 5)), [{}, {"margin": 0.3}]),
    "MarginRankingLoss": (2, lambda lib: (wave(lib, 5), wave(lib, 5, factor=9), signs(lib, 5)),
                          [{}, {"margin": 0.3}]),
    "TripletMarginLoss": (3, lambda lib: (wave(lib, 5, 3), wave(lib, 5, 3, factor=9),
                                          wave(lib, 5, 3, factor=7)),
                          [{}, {"swap": True, "p": 3.0, "margin": 0.5}]),
    "TripletMarginWithDistanceLoss": (3, lambda lib: (wave(lib, 5, 3), wave(lib, 5, 3, factor=9),
                                                      wave(lib, 5, 3, factor=7)),
                                      [{}, {"swap": True, "margin": 0.5}]),
    "MultiMarginLoss": (1, lambda lib: (wave(lib, 4, 3), lib.tensor([0, 2, 1, 2])),
                        [{}, {"p": 2, "margin": 0.5}]),
    "MultiLabelMarginLoss": (1, lambda lib: (wave(lib, 2, 4),
                                             lib.tensor([[3, 0, -1, 1], [-1, 2, 2, 2]])), [{}]),
    "MultiLabelSoftMarginLoss": (1, lambda lib: (wave(lib, 4, 3), signs(lib, 4, 3) / 2 + 0.5),
                                 [{}]),
}  # fmt: skip
CASES = [
    (name, options, reduction)
    for name, (_, _, choices) in LOSSES.items()
    for options, reduction in itertools.product(choices, ("mean", "sum", "none"))
]


@pytest.mark.parametrize("name, options, reduction", CASES)
def test_loss(name, options, reduction):
    count, build, _ = LOSSES[name]
    results = []
    for lib in (wengert, torch):
        layer = getattr(lib.nn, name)(**options, reduction=reduction)
        given = build(lib)
        leaves = [t.requires_grad_() for t in given[:count]]
        out = layer(*given)
        grads = lib.autograd.grad((out**2).sum(), leaves, create_graph=True)
        again = (None,)
        if name not in ("MultiMarginLoss", "MultiLabelMarginLoss"):  # PyTorch cannot
            again = lib.autograd.grad(sum((g * g).sum() for g in grads), leaves, allow_unused=True)
        results.append([out, *grads, *again])
        if lib is wengert:
            assert repr(layer) == repr(getattr(torch.nn, name)(**options, reduction=reduction))
            twin = pickle.loads(pickle.dumps(copy.deepcopy(layer)))
            assert twin(*given).tolist() == out.tolist()
    for one, other in zip(*results, strict=True):
        if one is None or other is None:
            assert one is None or not one.any() or other is None and not one.any()
        else:
            torch.testing.assert_close(numbers(one), numbers(other), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "name",
    [*LOSSES, "CTCLoss", "RReLU", "AlphaDropout", "FeatureAlphaDropout"],
)
def test_signature(name):
    found, expected = (
        [(p.name, p.default, p.kind) for p in inspect.signature(kind).parameters.values()]
        for kind in (getattr(wengert.nn, name), getattr(torch.nn, name))
    )
    assert found == expected


def test_weights_of_classes():
    results = []
    for lib in (wengert, torch):
        weight = lib.tensor([1.0, 2.0, 0.5], dtype=lib.float64)
        x = wave(lib, 4, 3)
        one = lib.nn.MultiMarginLoss(weight=weight)(x, lib.tensor([0, 2, 1, 2]))
        two = lib.nn.MultiLabelSoftMarginLoss(weight)(x, signs(lib, 4, 3))
        three = lib.nn.functional.multi_margin_loss(x[0], lib.tensor(1), reduction="none")
        four = lib.nn.functional.multilabel_margin_loss(
            x[0], lib.tensor([1, -1, 0]), reduction="none"
        )
        five = lib.nn.functional.gaussian_nll_loss(x, x * 2, 0.5)
        six = lib.nn.functional.gaussian_nll_loss(x, x * 2, x[:, 0].abs())
        results.append([one, two, three, four, five, six])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(numbers(one), numbers(other))


def _as_function(name):
    """A loss as a function of its first input, and that input."""
    _, build, _ = LOSSES[name]
    first, *rest = build(wengert)
    layer = getattr(wengert.nn, name)(reduction="sum")
    return lambda x: layer(x, *rest), first


@pytest.mark.parametrize("name", LOSSES)
def test_forward_mode_and_compilation(name):
    function, x = _as_function(name)
    direction = wave(wengert, *x.shape, factor=11)
    _, pushed = wengert.func.jvp(function, (x,), (direction,))
    slope = wengert.func.grad(function)(x)
    assert pushed.item() == pytest.approx((slope * direction).sum().item())
    if name != "GaussianNLLLoss":  # reads its variances
        compiled = wengert.compile(function)
        assert compiled(x).item() == pytest.approx(function(x).item())


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "GaussianNLLLoss"])
def test_mapped_over_examples(name):
    function, x = _as_function(name)
    many = wengert.stack([x, x * 0.5, x * x])
    mapped = wengert.func.vmap(wengert.func.grad(function))(many)
    for one, each in zip(mapped, many, strict=True):
        torch.testing.assert_close(numbers(one), numbers(wengert.func.grad(function)(each)))


# Alignments --------------------------------------------------------------------------------------


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("joined", [True, False])
def test_ctc_loss(reduction, joined):
    results = []
    for lib in (wengert, torch):
        scores = wave(lib, 6, 3, 4).requires_grad_()
        labels = lib.tensor([[1, 2, 2], [3, 1, 1], [2, 2, 2]])
        sizes = [3, 1, 0]
        if joined:
            labels = lib.tensor([1, 2, 2, 3])
        lengths = lib.tensor([6, 4, 5])
        logs = scores.log_softmax(2)
        logs.retain_grad()
        loss = lib.nn.CTCLoss(reduction=reduction)(logs, labels, lengths, lib.tensor(sizes))
        (loss**2).sum().backward()
        results.append([loss, logs.grad, scores.grad])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(numbers(one), numbers(other))


def test_ctc_loss_of_one_sequence_and_other_blanks():
    results = []
    for lib in (wengert, torch):
        scores = wave(lib, 5, 4).requires_grad_()
        loss = lib.nn.functional.ctc_loss(
            scores.log_softmax(1), lib.tensor([0, 0]), lib.tensor(5), lib.tensor(2), blank=3
        )
        loss.backward()
        results.append([loss, scores.grad])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(numbers(one), numbers(other))


def test_sequences_that_do_not_fit(lib):
    logs = wave(lib, 2, 1, 3).log_softmax(2).requires_grad_()
    arguments = (logs, lib.tensor([[1, 1]]), lib.tensor([2]), lib.tensor([2]))
    assert lib.nn.functional.ctc_loss(*arguments).item() == math.inf
    loss = lib.nn.functional.ctc_loss(*arguments, zero_infinity=True)
    loss.backward()
    assert loss.item() == 0 and not logs.grad.any()


def test_second_derivative_of_alignments():
    x = wave(wengert, 4, 2, 3).requires_grad_()

    def loss(x):
        labels = wengert.tensor([[1, 2], [2, 1]])
        return wengert.nn.functional.ctc_loss(x.log_softmax(2), labels, [4, 3], [2, 1])

    assert wengert.autograd.gradcheck(loss, x)
    assert wengert.autograd.gradgradcheck(loss, x)


@pytest.mark.parametrize(
    "text, kind, phrase",
    [
        ("ctc_loss(lib.ones(2, 1, 3), lib.tensor([[1]]), [2], [1], 5)", RuntimeError,
         "blank must be in label range"),
        ("ctc_loss(lib.ones(2, 1, 3), lib.tensor([[1]]), [5], [1])", RuntimeError,
         "Expected input_lengths to have value at most 2, but got value 5"),
        ("ctc_loss(lib.ones(2, 1, 3), lib.tensor([[1]]), [2, 2], [1])", RuntimeError,
         "input_lengths must be of size batch_size"),
        ("alpha_dropout(lib.ones(3), 1.5)", ValueError, "has to be between 0 and 1"),
        ("multi_margin_loss(lib.ones(1, 2), lib.tensor([0]), p=3)", ValueError, "only p == 1"),
        ("margin_ranking_loss(lib.ones(2), lib.ones(2, 2), lib.ones(2))", RuntimeError,
         "should have same dimension"),
        ("cosine_embedding_loss(lib.ones(2), lib.ones(2), lib.ones(2))", RuntimeError,
         "1D target tensor expects 2D input tensors"),
        ("triplet_margin_loss(lib.ones(2), lib.ones(2), lib.ones(2), margin=0)", ValueError,
         "margin must be greater than 0"),
        ("gaussian_nll_loss(lib.ones(2), lib.ones(2), -lib.ones(2))", ValueError, "negative"),
        ("gaussian_nll_loss(lib.ones(2, 3), lib.ones(2, 3), lib.ones(4))", ValueError,
         "var is of incorrect size"),
        ("multilabel_margin_loss(lib.ones(2, 3), lib.ones(2, 2).long())", RuntimeError,
         "inconsistent target size"),
        ("poisson_nll_loss(lib.ones(2), lib.ones(2), reduction='some')", ValueError, "not a valid"),
    ],
)  # fmt: skip
def test_errors(lib, text, kind, phrase):
    with pytest.raises(kind, match=phrase):
        eval(f"lib.nn.functional.{text}", {"lib": lib})


def test_cross_entropy_of_a_linear_layer():
    results = []
    for lib in (wengert, torch):
        x, weight = wave(lib, 4, 3).requires_grad_(), wave(lib, 5, 3, factor=9)
        bias, target = wave(lib, 5), lib.tensor([0, 4, 2, 1])
        function = lib.nn.functional.linear_cross_entropy
        one = function(x, weight, target, linear_bias=bias, ignore_index=2)
        many = function(x, wave(lib, 5, 2, 3), target.reshape(4, 1).expand(4, 2))
        (slope,) = lib.autograd.grad(one + many, x)
        results.append([one, many, slope])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(numbers(one), numbers(other))


# What draws --------------------------------------------------------------------------------------


def test_alpha_dropout(lib):
    x = lib.ones(40, 50, dtype=lib.float64) * 0.5
    layer = lib.nn.AlphaDropout(0.3)
    values = layer(x).unique()
    a = 1 / math.sqrt((1.7580993408473766**2 * 0.3 + 1) * 0.7)
    low = -1.7580993408473766 * a * 0.7
    assert values.tolist() == pytest.approx([low, 0.5 * a + 1.7580993408473766 * a * 0.3])
    assert 0.2 < (layer(x) < 0).double().mean().item() < 0.4
    assert layer.eval()(x) is x
    channels = lib.nn.FeatureAlphaDropout()(lib.ones(10, 20, 3, 3)).flatten(2)
    assert (channels == channels[..., :1]).all().item() and len(channels.unique()) == 2
    y = lib.ones(3)
    assert lib.nn.functional.alpha_dropout(y, 1.0, True, inplace=True) is y and not y.any()


def test_random_slopes(lib):
    x = -lib.ones(1000, dtype=lib.float64).requires_grad_()
    out = lib.nn.RReLU(0.2, 0.4)(x)
    assert (out >= -0.4).all() and (out <= -0.2).all() and out.std() > 0.03
    out.sum().backward()
    layer = lib.nn.RReLU(0.2, 0.4).eval()
    assert layer(lib.tensor([-1.0, 2.0])).tolist() == pytest.approx([-0.3, 2.0])
    assert repr(layer) == "RReLU(lower=0.2, upper=0.4)"
    y = lib.tensor([-1.0, 2.0])
    assert lib.nn.functional.rrelu_(y) is y and y[1] == 2 and -0.34 < y[0].item() < -0.12


def test_gumbel_softmax(lib):
    scores = lib.tensor([[0.0, 1.0, 2.0]] * 2000, dtype=lib.float64, requires_grad=True)
    soft = lib.nn.functional.gumbel_softmax(scores, tau=0.5)
    assert lib.allclose(soft.sum(1), lib.ones(2000, dtype=lib.float64))
    hard = lib.nn.functional.gumbel_softmax(scores, hard=True)
    assert lib.allclose(hard.max(1)[0], lib.ones(2000, dtype=lib.float64))
    shares = hard.mean(0).tolist()
    assert shares == pytest.approx([0.09, 0.245, 0.665], abs=0.05)
    hard[:, 0].sum().backward()
    assert scores.grad.abs().sum() > 0


def test_activations_in_place(lib):
    F = lib.nn.functional
    for name, options, expected in [
        ("relu_", (), [0.0, 2.0]), ("elu_", (2.0,), [2 * math.expm1(-1), 2.0]),
        ("celu_", (2.0,), [2 * math.expm1(-0.5), 2.0]), ("leaky_relu_", (0.1,), [-0.1, 2.0]),
        ("hardtanh_", (-0.5, 1.0), [-0.5, 1.0]), ("threshold_", (1.0, 7.0), [7.0, 2.0]),
        ("selu_", (), [1.7580993408473766 * math.expm1(-1), 2 * 1.0507009873554805]),
    ]:  # fmt: skip
        x = lib.tensor([-1.0, 2.0], dtype=lib.float64)
        assert getattr(F, name)(x, *options) is x
        assert x.tolist() == pytest.approx(expected)


# Losses with layers of their own ------------------------------------------------------------------


def test_adaptive_softmax():
    results = []
    theirs = torch.nn.AdaptiveLogSoftmaxWithLoss(8, 10, [2, 5], 2.0, True).double()
    state = {name: wengert.tensor(t.tolist()).double() for name, t in theirs.state_dict().items()}
    ours = wengert.nn.AdaptiveLogSoftmaxWithLoss(8, 10, [2, 5], 2.0, True).double()
    ours.load_state_dict(state)
    assert repr(ours) == repr(theirs)
    for lib, layer in ((wengert, ours), (torch, theirs)):
        x = wave(lib, 6, 8).requires_grad_()
        out = layer(x, lib.tensor([0, 9, 4, 1, 2, 7]))
        (slope,) = lib.autograd.grad(out.loss + (out.output**2).sum(), x)
        single = layer(x[0], lib.tensor(3))
        results.append([*out, slope, *single, layer.log_prob(x), layer.predict(x)])
        with pytest.raises(RuntimeError, match="Target values should be in"):
            layer(x, lib.tensor([0, 9, 4, 1, 2, 10]))
        with pytest.raises(RuntimeError, match="same size in the batch dimension"):
            layer(x, lib.tensor([0]))
        with pytest.raises(ValueError, match="cutoffs should be a sequence of unique"):
            lib.nn.AdaptiveLogSoftmaxWithLoss(8, 10, [5, 2])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(numbers(one), numbers(other))


def test_linear_cross_entropy_loss():
    for options in ({}, {"bias": True, "out_features": (2,), "label_smoothing": 0.1}):
        theirs = torch.nn.LinearCrossEntropyLoss(3, 4, **options).double()
        ours = wengert.nn.LinearCrossEntropyLoss(3, 4, **options).double()
        state = {k: wengert.tensor(t.tolist()).double() for k, t in theirs.state_dict().items()}
        ours.load_state_dict(state)
        assert repr(ours) == repr(theirs)
        found = []
        for lib, layer in ((wengert, ours), (torch, theirs)):
            target = lib.tensor([0, 3, 1, 2, 2]).reshape((5, *(1,) * ("bias" in options)))
            target = target.expand(5, *options.get("out_features", ()))
            found.append(layer(wave(lib, 5, 3), target).item())
        assert found[0] == pytest.approx(found[1])


def test_older_name_of_a_loss(lib):
    with pytest.warns(FutureWarning, match="NLLLoss2d"):
        layer = lib.nn.NLLLoss2d()
    assert isinstance(layer, lib.nn.NLLLoss)
    assert layer(lib.zeros(1, 2, 2, 2), lib.zeros(1, 2, 2).long()).item() == 0
