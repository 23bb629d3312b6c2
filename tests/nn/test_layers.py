"""Every layer against PyTorch: text, state, forward and backward with copied weights, copies."""

import copy
import inspect
import pickle

import pytest

import wengert

torch = pytest.importorskip("torch")

PLAIN = [
    "CELU", "ELU", "GELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh",
    "LeakyReLU", "LogSigmoid", "Mish", "ReLU", "ReLU6", "SELU", "SiLU",
    "Sigmoid", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink",
]  # fmt: skip

# The text of a constructor call, and the shapes of the inputs: a list is a tensor of classes.
ROWS, PICTURES = [(5, 3)], [(2, 3, 4, 4)]
LAYERS = {
    "Identity(1, a=2)": ROWS,
    "Linear(3, 4)": ROWS,
    "Linear(3, 4, bias=False)": [(2, 5, 3)],
    "Bilinear(3, 2, 4)": [(5, 3), (5, 2)],
    "Bilinear(3, 2, 4, bias=False)": [(6, 5, 3), (6, 5, 2)],
    "Flatten()": PICTURES,
    "Flatten(2, 3)": PICTURES,
    "Flatten(0)": PICTURES,
    "Unflatten(1, (3, 1))": ROWS,
    "Unflatten(-1, [1, -1])": ROWS,
    "Dropout().eval()": ROWS,
    "Dropout(0.0)": ROWS,
    "Dropout(1.0)": ROWS,
    "Dropout(0.3, inplace=True).eval()": ROWS,
    "Dropout1d().eval()": [(2, 3, 4)],
    "Dropout2d(0.2, True).eval()": PICTURES,
    "Dropout3d().eval()": [(2, 3, 4, 4, 2)],
    "LayerNorm(3)": ROWS,
    "LayerNorm((5, 3), eps=1e-3)": ROWS,
    "LayerNorm([3], bias=False)": ROWS,
    "LayerNorm(3, elementwise_affine=False)": ROWS,
    "RMSNorm(3)": ROWS,
    "RMSNorm((5, 3), eps=1e-3, elementwise_affine=False)": ROWS,
    "CosineSimilarity()": [(5, 3), (5, 3)],
    "CosineSimilarity(dim=0, eps=1e-3)": [(5, 3), (5, 3)],
    "PairwiseDistance()": [(5, 3), (5, 3)],
    "PairwiseDistance(1.0, 1e-3, True)": [(5, 3), (5, 3)],
    "Softmax2d()": PICTURES,
    "PReLU()": ROWS,
    "PReLU(3, init=0.1)": ROWS,
    "Threshold(0.1, 0.5)": ROWS,
    "Threshold(0.1, 0.5, True)": ROWS,
    "GELU('tanh')": ROWS,
    "GLU(0)": [(6, 3)],
    "GLU()": [(3, 6)],
    "Softmax(1)": ROWS,
    "Softmin(dim=0)": ROWS,
    "LogSoftmax(-1)": ROWS,
    "Softplus(2.0, 1.0)": ROWS,
    "Hardshrink(0.2)": ROWS,
    "Softshrink(0.2)": ROWS,
    "Hardtanh(-0.2, 0.5, True)": ROWS,
    "LeakyReLU(0.1, True)": ROWS,
    "ELU(0.5, inplace=True)": ROWS,
    "CELU(0.5, inplace=True)": ROWS,
    **{
        f"{name}()": ROWS
        for name in PLAIN
    },
    **{
        f"{name}(inplace=True)": ROWS
        for name in ["ReLU", "ReLU6", "SELU", "SiLU", "Mish", "Hardsigmoid", "Hardswish"]
    },
    **{
        f"{name}Loss(reduction={reduction!r})": [(5, 3), (5, 3)]
        for name in ("L1", "MSE", "SmoothL1", "Huber", "KLDiv", "BCEWithLogits")
        for reduction in ("mean", "sum", "none")
    },
    "SmoothL1Loss(beta=0.2)": [(5, 3), (5, 3)],
    "HuberLoss(delta=0.2)": [(5, 3), (5, 3)],
    "KLDivLoss(reduction='batchmean', log_target=True)": [(5, 3), (5, 3)],
    "BCEWithLogitsLoss(lib.tensor([1., 2., 3.]), pos_weight=lib.tensor([2., 1., 1.]))": [
        (5, 3), (5, 3),
    ],
    "CrossEntropyLoss()": [(5, 3), [5]],
    "CrossEntropyLoss(lib.tensor([1., 2., 3.]), ignore_index=1, label_smoothing=0.1)": [
        (5, 3), [5],
    ],
    "CrossEntropyLoss(reduction='none')": [(2, 3, 4), [2, 4]],
    "NLLLoss(reduction='sum')": [(5, 3), [5]],
    "NLLLoss(lib.tensor([1., 2., 3.]), ignore_index=2)": [(5, 3), [5]],
    **{
        f"{kind}Pad{n}d({padding!r}{', 0.5' * (kind == 'Constant')})": [(2, 3, *(4,) * n)]
        for kind in ("Constant", "Zero", "Reflection", "Replication", "Circular")
        for n in (1, 2, 3)
        for padding in (1, (2, 1) * n)
    },
    "Embedding(3, 4)": [[5]],
    "Embedding(3, 4, padding_idx=-1)": [[2, 5]],
    "Embedding(3, 4, max_norm=0.5, norm_type=1.0, scale_grad_by_freq=True)": [[5]],
}  # fmt: skip


def made(lib, text):
    """A layer in float64, except that its text may ask for `eval`."""
    text, dot, method = text.partition(".eval")
    layer = eval(f"lib.nn.{text}", {"lib": lib}).double()
    return layer.eval() if dot else layer


def inputs(lib, shapes):
    generator = torch.Generator().manual_seed(1)
    found = []
    for shape in shapes:
        if isinstance(shape, list):
            found.append(lib.tensor(torch.randint(3, shape, generator=generator).tolist()))
        else:
            values = torch.randn(shape, generator=generator, dtype=torch.float64)
            found.append(lib.tensor(values.tolist(), dtype=lib.float64, requires_grad=True))
    return found


def pair(text):
    """The same layer in both libraries, with PyTorch's weights."""
    ours, theirs = made(wengert, text), made(torch, text)
    state = {name: wengert.tensor(t.tolist()).double() for name, t in theirs.state_dict().items()}
    ours.load_state_dict(state)
    return ours, theirs


def numbers(t):
    return torch.tensor(t.detach().tolist(), dtype=torch.float64)


@pytest.mark.parametrize("text", LAYERS)
def test_layer(text):
    compare(text, LAYERS[text])


def compare(text, shapes_given):
    """Text, state, fields, results and derivatives of a layer in both libraries."""
    ours, theirs = pair(text)
    assert repr(ours) == repr(theirs)
    shapes = [{name: tuple(t.shape) for name, t in m.state_dict().items()} for m in (ours, theirs)]
    assert shapes[0] == shapes[1]
    public = [{k: v for k, v in vars(m).items() if not k.startswith("_")} for m in (ours, theirs)]
    assert public[0] == public[1]
    results = []
    for lib, layer in ((wengert, ours), (torch, theirs)):
        leaves = inputs(lib, shapes_given)
        given = [t * 1 if t.is_floating_point() else t for t in leaves]  # some change theirs
        if "KLDiv" in text and "log_target" not in text:
            given[1] = leaves[1].softmax(1)
        if "BCE" in text:
            given[1] = leaves[1].sigmoid().detach()
        result = layer(*given)
        twice = leaves[0].is_floating_point() and "Hardsigmoid" not in text  # PyTorch cannot
        if twice:  # so that second derivatives take part
            (slope,) = lib.autograd.grad((result**3).sum(), leaves[0], create_graph=True)
            result = result.sum() + (slope * slope).sum()
        (result * result).sum().backward()
        gradients = [t.grad for t in (*leaves, *layer.parameters())]
        results.append([result, *[g for g in gradients if g is not None]])
    assert len(results[0]) == len(results[1])
    tolerance = 1e-7 if "Hardsigmoid" in text else 1e-9  # PyTorch's slope is a sixth in float32
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(numbers(one), numbers(other), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("text", LAYERS)
def test_copies(text):
    layer = made(wengert, text)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert type(other) is type(layer) and repr(other) == repr(layer)
        assert other.training == layer.training
        for (name, one), (same, two) in zip(
            layer.state_dict().items(), other.state_dict().items(), strict=True
        ):
            assert name == same and one is not two and one.tolist() == two.tolist()


@pytest.mark.parametrize("name", sorted({text.partition("(")[0] for text in LAYERS}))
def test_signature(name):
    ours, theirs = (inspect.signature(getattr(lib.nn, name)) for lib in (wengert, torch))
    found, expected = (
        [(p.name, p.default) for p in signature.parameters.values()] for signature in (ours, theirs)
    )
    takes_none = [name for name, _ in expected] == ["args", "kwargs"] and name != "Identity"
    assert found == ([] if takes_none else expected)
    assert getattr(wengert.nn, name).__doc__


def test_bce_loss(lib):
    x = lib.tensor([0.2, 0.7], dtype=lib.float64, requires_grad=True)
    loss = lib.nn.BCELoss(lib.tensor([1.0, 2.0], dtype=lib.float64), reduction="sum")
    loss(x, lib.tensor([0.0, 1.0], dtype=lib.float64)).backward()
    assert [round(g, 6) for g in x.grad.tolist()] == [1.25, -2.857143]
    assert list(loss.state_dict()) == ["weight"]


@pytest.mark.parametrize(
    "text, kind, phrase",
    [
        ("Linear(3)", TypeError, "missing 1 required positional argument: 'out_features'"),
        ("Linear(3, 4, biased=True)", TypeError, "unexpected keyword argument 'biased'"),
        ("Tanh(1)", TypeError, "takes 1 positional argument but 2 were given"),
        ("Dropout(1.5)", ValueError, "probability has to be between 0 and 1, but got 1.5"),
        ("Embedding(3, 4, padding_idx=3)", AssertionError, "must be within num_embeddings"),
        ("Hardtanh(1.0, -1.0)", AssertionError, "must be greater than min_val .1.0"),
        ("Bilinear(0, 2, 3)", ValueError, "in1_features must be > 0"),
        ("Unflatten(1, 3)", TypeError, "unflattened_size must be a tuple of ints"),
        ("Unflatten(1, (1, 'a'))", TypeError, "found element of type str at pos 1"),
        ("Embedding.from_pretrained(lib.ones(3))", AssertionError, "to be 2-dimensional"),
        ("Embedding(3, 4, _weight=lib.ones(2, 2))", AssertionError, "Shape of weight does not"),
        ("Softmax2d()(lib.ones(2, 2))", ValueError, "expected input to be 3D or 4D, got 2D"),
        ("Bilinear(3, 2, 4)(lib.ones(2, 3), lib.ones(2, 3))", RuntimeError, "does not match"),
        ("Bilinear(3, 2, 4)(lib.ones(2, 3), lib.ones(1, 2))", RuntimeError, "do not match"),
        ("CircularPad1d(1)(lib.ones(3))", ValueError, "expected 2D or 3D input .got 1D input"),
        ("MSELoss(reduction='some')(lib.ones(2), lib.ones(2))", ValueError, "not a valid value"),
    ],
)
def test_errors(lib, text, kind, phrase):
    with pytest.raises(kind, match=phrase):
        eval(f"lib.nn.{text}", {"lib": lib})


@pytest.mark.parametrize(
    ("norm", "shape"),
    [
        ("BatchNorm1d", (0, 3)), ("BatchNorm1d", (0, 3, 2)), ("BatchNorm1d", (5, 3, 0)),
        ("InstanceNorm1d", (5, 3, 0)),
    ],
    ids=str,
)  # fmt: skip
def test_a_batch_of_nothing_leaves_the_statistics(lib, norm, shape):
    layer = getattr(lib.nn, norm)(3, track_running_stats=True)
    layer(lib.ones(shape, requires_grad=True)).sum().backward()
    assert layer.running_mean.tolist() == [0, 0, 0]
    assert layer.running_var.tolist() == [1, 1, 1]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "text",
    [
        "mse_loss(x, x.detach())",
        "smooth_l1_loss(x, x.detach())",
        "huber_loss(x, x.detach())",
        "binary_cross_entropy(x, x.detach())",
        "binary_cross_entropy_with_logits(x, x.detach())",
        "layer_norm(x, (0,))",
        "group_norm(x, 3)",
    ],
)
def test_what_is_computed_of_nothing_warns_of_nothing(lib, text):
    x = lib.ones(2, 3, 0, requires_grad=True)
    y = eval(f"lib.nn.functional.{text}", {"lib": lib, "x": x})
    y.sum().backward()
    assert y.ndim or str(y.item()) == "nan"
    assert x.grad.shape == (2, 3, 0)


def test_older_arguments(lib):
    for name in ("L1Loss", "MSELoss", "SmoothL1Loss", "KLDivLoss", "NLLLoss", "CrossEntropyLoss"):
        kind = getattr(lib.nn, name)
        for options, expected in [
            ({"size_average": False}, "sum"),
            ({"size_average": True}, "mean"),
            ({"reduce": False}, "none"),
        ]:
            with pytest.warns(UserWarning, match=f"please use reduction='{expected}'"):
                assert kind(**options).reduction == expected
    with pytest.warns(FutureWarning, match="min_value"):
        assert lib.nn.Hardtanh(min_value=-3.0).min_val == -3.0


def test_from_pretrained(lib):
    table = lib.arange(6.0).reshape(3, 2)
    layer = lib.nn.Embedding.from_pretrained(table, padding_idx=1)
    assert not layer.weight.requires_grad and layer.padding_idx == 1
    assert layer(lib.tensor([2, 0])).tolist() == [[4.0, 5.0], [0.0, 1.0]]
    table[0, 0] = 9
    assert layer.weight[0, 0].item() == 9
    assert lib.nn.Embedding.from_pretrained(table, freeze=False).weight.requires_grad
    assert isinstance(layer.weight, lib.nn.Parameter)


def test_initial_values(lib):
    lib.manual_seed(0)
    layer = lib.nn.Linear(400, 300)
    bound = 1 / 20
    for t in (layer.weight, layer.bias):
        assert -bound <= t.min().item() < -0.9 * bound and 0.9 * bound < t.max().item() <= bound
    embedding = lib.nn.Embedding(300, 200, padding_idx=0)
    assert abs(embedding.weight.std().item() - 1) < 0.02
    assert embedding.weight[0].abs().sum().item() == 0
    norm = lib.nn.LayerNorm(3)
    norm.weight.data.fill_(5)
    norm.reset_parameters()
    assert norm.weight.tolist() == [1, 1, 1] and norm.bias.tolist() == [0, 0, 0]
    assert lib.nn.PReLU(2).weight.tolist() == [0.25, 0.25]
    before = layer.weight.tolist()
    layer.reset_parameters()
    assert layer.weight.tolist() != before
    assert lib.nn.Linear(2, 2, dtype=lib.float64).bias.dtype == lib.float64


def test_dropout_while_training(lib):
    layer = lib.nn.Dropout(0.25)
    result = layer(lib.ones(2000))
    assert result.unique().tolist() == [0.0, pytest.approx(4 / 3)]
    assert 0.15 < (result == 0).float().mean().item() < 0.35
    channels = lib.nn.Dropout2d()(lib.ones(1, 100, 2, 2)).flatten(2)
    assert (channels == channels[..., :1]).all().item()


def test_subclass_of_a_layer(lib):
    class Doubled(lib.nn.Linear):
        fields = "not a declaration here"
        shown = prepare = 3

        def __init__(self, size):
            super().__init__(size, size, bias=False)
            self.factor = 2

        @lib.no_grad()
        def forward(self, input):
            return super().forward(input) * self.factor

        def extra_repr(self):
            return super().extra_repr() + f", factor={self.factor}"

    layer = Doubled(2)
    assert repr(layer) == "Doubled(in_features=2, out_features=2, bias=False, factor=2)"
    lib.nn.init.eye_(layer.weight)
    assert layer(lib.ones(1, 2)).tolist() == [[2.0, 2.0]]
    assert isinstance(lib.nn.ReLU6(), lib.nn.Hardtanh)


def test_bias_removed_afterwards(lib):
    layer = lib.nn.Linear(2, 2)
    layer.bias = None
    assert repr(layer) == "Linear(in_features=2, out_features=2, bias=False)"
    assert layer(lib.ones(1, 2)).shape == (1, 2)
