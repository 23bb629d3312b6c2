"""Layers of signals, pictures and volumes against PyTorch."""

import copy
import inspect
import pickle
from functools import partial

import numpy as np
import pytest

import wengert
from nn.test_layers import compare, inputs, made, numbers

torch = pytest.importorskip("torch")

CONVOLUTIONS = {
    **{
        f"{kind}{n}d({arguments})": [(2, 4, *(5, 4, 3)[:n])]
        for n in (1, 2, 3)
        for kind, arguments in (
            ("Conv", "4, 2, 2"),
            ("Conv", "4, 6, 3, 2, 1, groups=2, bias=False"),
            ("ConvTranspose", "4, 2, 2"),
            ("ConvTranspose", "4, 6, 3, 2, 1, 1, 2, False"),
        )
    },
    "Conv2d(4, 2, (3, 2), padding='same', padding_mode='reflect', dilation=(1, 2))": [(2, 4, 5, 4)],
    "Conv2d(4, 2, 3, padding=(2, 1), padding_mode='circular')": [(4, 5, 4)],
    "Conv1d(4, 2, 3, padding='same')": [(4, 5)],
    "Conv2d(4, 2, 3, padding='valid')": [(2, 4, 5, 4)],
    "Conv1d(4, 2, 2, padding=1, padding_mode='replicate')": [(2, 4, 5)],
    "ConvTranspose2d(4, 2, (2, 3), dilation=2)": [(4, 5, 4)],
}
NORMS = {
    **{
        f"{kind}{n}d(3{options})": [(2, 3, *(4, 3, 2)[:n])]
        for n in (1, 2, 3)
        for kind, options in (("BatchNorm", ""), ("InstanceNorm", ", affine=True"))
    },
    "BatchNorm1d(3)": [(4, 3)],
    "BatchNorm1d(3).eval()": [(4, 3)],
    "BatchNorm2d(3, affine=False, track_running_stats=False).eval()": [(2, 3, 2, 2)],
    "BatchNorm2d(3, momentum=None, bias=False)": [(2, 3, 2, 2)],
    "InstanceNorm1d(3, track_running_stats=True)": [(2, 3, 4)],
    "InstanceNorm1d(3, 1e-3, track_running_stats=True).eval()": [(2, 3, 4)],
    "InstanceNorm2d(3)": [(3, 4, 2)],
    "GroupNorm(2, 4)": [(2, 4, 3)],
    "GroupNorm(1, 4, bias=False)": [(2, 4)],
    "GroupNorm(4, 4, 1e-3, False)": [(2, 4, 3, 2)],
    "LocalResponseNorm(2)": [(2, 4, 3)],
    "LocalResponseNorm(3, 1.0, 0.5, 2.0)": [(2, 4, 3, 2)],
}
POOLS = {
    **{
        f"{kind}{n}d({arguments})": [(2, 3, *(6, 5, 4)[:n])]
        for n in (1, 2, 3)
        for kind, arguments in (
            ("MaxPool", "2"),
            ("MaxPool", "3, 2, 1, ceil_mode=True"),
            ("MaxPool", "2, stride=1, dilation=2"),
            ("AvgPool", "2"),
            ("AvgPool", "3, 2, 1, True, False"),
            ("AvgPool", "3, 2, 1, True"),
            ("LPPool", "2, 2"),
            ("AdaptiveAvgPool", "3"),
            ("AdaptiveAvgPool", "1"),
            ("AdaptiveMaxPool", "3"),
        )
    },
    "AvgPool2d(2, divisor_override=3)": [(3, 4, 4)],
    "MaxPool2d((2, 3), (1, 2), (1, 0))": [(3, 4, 4)],
    "LPPool1d(4.0, 2, 1, ceil_mode=True)": [(3, 5)],
    "LPPool1d(float('inf'), 2)": [(3, 5)],
    "AdaptiveAvgPool2d((2, None))": [(3, 5, 3)],
    "AdaptiveMaxPool2d((None, 4))": [(3, 5, 3)],
}
REARRANGED = {
    "Upsample(7)": [(2, 3, 4)],
    "Upsample(scale_factor=2)": [(2, 3, 4, 3)],
    "Upsample(scale_factor=(1.5, 0.7), mode='nearest-exact')": [(2, 3, 4, 5)],
    "Upsample((3, 7, 2))": [(1, 2, 4, 3, 4)],
    "Upsample(scale_factor=2.5, mode='linear')": [(2, 3, 4)],
    "Upsample([7], mode='linear', align_corners=True)": [(2, 3, 4)],
    "Upsample(scale_factor=1.7, mode='bilinear')": [(2, 3, 4, 5)],
    "Upsample((3, 9), mode='bilinear', align_corners=True)": [(2, 3, 4, 5)],
    "Upsample(scale_factor=1.7, mode='bilinear', recompute_scale_factor=True)": [(2, 3, 4, 5)],
    "Upsample(scale_factor=1.7, mode='bicubic')": [(2, 3, 4, 5)],
    "Upsample((1, 9), mode='bicubic', align_corners=True)": [(2, 3, 4, 5)],
    "Upsample((3, 5, 2), mode='trilinear')": [(1, 2, 4, 3, 4)],
    "Upsample(scale_factor=0.6, mode='area')": [(2, 3, 4, 5)],
    "UpsamplingNearest2d(5)": [(2, 3, 4, 4)],
    "UpsamplingBilinear2d(scale_factor=2)": [(2, 3, 4, 4)],
    "PixelShuffle(2)": [(2, 8, 2, 3)],
    "PixelUnshuffle(2)": [(2, 4, 6)],
    "ChannelShuffle(2)": [(2, 4, 2, 3)],
    "Unfold((2, 3), padding=1, stride=2)": [(2, 3, 4, 5)],
    "Unfold(2, 2)": [(3, 4, 5)],
    "Fold((4, 5), 2)": [(2, 12, 12)],
    "Fold((4, 5), (2, 3), 1, 1, 2)": [(12, 9)],
    "Bilinear(3, 2, 4)": [(5, 3), (5, 2)],
    "EmbeddingBag(3, 4)": [[2, 5]],
    "EmbeddingBag(3, 4, mode='sum', padding_idx=-1)": [[2, 5]],
    "EmbeddingBag(3, 4, mode='max')": [[2, 5]],
    "EmbeddingBag(3, 4, max_norm=0.5)": [[2, 5]],
}
LAYERS = {**CONVOLUTIONS, **NORMS, **POOLS, **REARRANGED}


@pytest.mark.parametrize("text", LAYERS)
def test_layer(text):
    compare(text, LAYERS[text])


@pytest.mark.parametrize("options", ["1", "2", "4, 0.1", "5, 0.5, 0.3, 2", "30, 1.0"])
def test_cross_map_normalisation(options):
    """Values as PyTorch's, and their own derivatives: PyTorch's are those of other values."""
    x = wengert.randn(2, 9, 2, 1, dtype=wengert.float64, requires_grad=True)
    layer, other = (
        eval(f"lib.nn.CrossMapLRN2d({options})", {"lib": lib}) for lib in (wengert, torch)
    )
    expected = other(torch.tensor(x.detach().numpy()))
    np.testing.assert_allclose(layer(x).detach().numpy(), expected.numpy(), rtol=1e-12)
    assert repr(layer) == repr(other) and vars(layer).keys() >= {"size", "alpha", "beta", "k"}
    assert wengert.autograd.gradcheck(layer, x) and wengert.autograd.gradgradcheck(layer, x)
    copied = copy.deepcopy(layer)
    np.testing.assert_allclose(copied(x).detach().numpy(), expected.numpy(), rtol=1e-12)
    alone = wengert.func.vmap(lambda each: layer(each.unsqueeze(0)).squeeze(0))(x)
    assert wengert.allclose(alone, layer(x))


NAMES = sorted({text.partition("(")[0] for text in LAYERS})
NAMES += [
    "CrossMapLRN2d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
]


@pytest.mark.parametrize("name", NAMES)
def test_signature(name):
    found, expected = (
        [(p.name, p.default, p.kind) for p in inspect.signature(kind).parameters.values()]
        for kind in (getattr(wengert.nn, name), getattr(torch.nn, name))
    )
    assert found == expected


def one_of_each():
    """The first text of every layer."""
    return list({text.partition("(")[0]: text for text in reversed(LAYERS)}.values())


@pytest.mark.parametrize("text", one_of_each())
def test_copies(text):
    layer = made(wengert, text)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert type(other) is type(layer) and repr(other) == repr(layer)
        for (name, one), (same, two) in zip(
            layer.state_dict().items(), other.state_dict().items(), strict=True
        ):
            assert name == same and one is not two and one.tolist() == two.tolist()


@pytest.mark.parametrize("text", [text for text in one_of_each() if "Embedding" not in text])
def test_compiled_and_mapped(text):
    """Compiled, a layer gives the same; mapped over a batch, the gradients of a loop."""
    layer = made(wengert, text).eval()
    given = inputs(wengert, LAYERS[text])
    compiled = wengert.compile(layer)
    torch.testing.assert_close(numbers(compiled(*given)), numbers(layer(*given)))

    def loss(x):
        return (layer(x, *[t.detach() for t in given[1:]]) ** 3).sum()

    x = given[0].detach()
    many = wengert.stack([x, x * x])
    mapped = wengert.func.vmap(wengert.func.grad(loss))(many)
    for one, each in zip(mapped, many, strict=True):
        torch.testing.assert_close(numbers(one), numbers(wengert.func.grad(loss)(each)))
    direction = x.cos()
    _, pushed = wengert.func.jvp(loss, (x,), (direction,))
    torch.testing.assert_close(
        numbers(pushed), numbers((wengert.func.grad(loss)(x) * direction).sum())
    )


def test_initial_values(lib):
    lib.manual_seed(0)
    for layer, fan_in in (
        (lib.nn.Conv2d(16, 50, 5), 400),
        (lib.nn.Conv1d(32, 64, 10, groups=2), 160),
        (lib.nn.ConvTranspose2d(32, 16, 5), 400),
    ):
        bound = fan_in**-0.5
        weight = layer.weight
        assert -bound <= weight.min().item() < -0.9 * bound < 0.9 * bound
        assert 0.9 * bound < weight.max().item() <= bound
        assert layer.bias.abs().max().item() <= bound
    norm = lib.nn.BatchNorm2d(3)
    assert norm.weight.tolist() == norm.running_var.tolist() == [1, 1, 1]
    assert norm.bias.tolist() == norm.running_mean.tolist() == [0, 0, 0]
    assert list(norm.state_dict()) == [
        "weight", "bias", "running_mean", "running_var", "num_batches_tracked",
    ]  # fmt: skip
    bag = lib.nn.EmbeddingBag(300, 20, padding_idx=1)
    assert abs(bag.weight.std().item() - 1) < 0.05 and not bag.weight[1].any()


def test_output_size():
    shapes = []
    for lib in (wengert, torch):
        layer = lib.nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1)
        x = lib.ones(1, 2, 4, 4)
        sizes = (None, [8, 7], lib.Size([1, 3, 7, 8]))
        shapes.append([tuple(layer(x, output_size=size).shape) for size in sizes])
    assert shapes[0] == shapes[1]


def test_channels_innermost_in_memory():
    for lib in (wengert, torch):
        x = lib.ones(2, 5, 4, 3).permute(0, 3, 1, 2)
        out = lib.nn.functional.conv2d(x, lib.ones(2, 3, 2, 2))
        assert out.stride() == (24, 1, 6, 2)


def test_one_operator_for_all_derivatives():
    """Per-sample gradients of a small network equal those of a loop."""
    layer = made(wengert, "Conv2d(3, 4, 2, groups=1)")
    state = dict(layer.named_parameters())
    x = wengert.arange(5 * 3 * 4 * 4.0, dtype=wengert.float64).reshape(5, 3, 4, 4).sin()

    def loss(state, x):
        return (wengert.func.functional_call(layer, state, (x,)) ** 3).sum()

    mapped = wengert.func.vmap(wengert.func.grad(loss), (None, 0))(state, x)
    for i in range(5):
        single = wengert.func.grad(loss)(state, x[i])
        for name in state:
            torch.testing.assert_close(numbers(mapped[name][i]), numbers(single[name]))


def test_compiled_convolution():
    layer = made(wengert, "Conv1d(2, 3, 2, padding='same')")

    def step(x):
        (slope,) = wengert.autograd.grad((layer(x) ** 2).sum(), x, create_graph=True)
        return (slope**2).sum()

    x = wengert.arange(12.0, dtype=wengert.float64).reshape(1, 2, 6).cos().requires_grad_()
    assert wengert.compile(step)(x).item() == pytest.approx(step(x).item())


@pytest.mark.parametrize("name", ["conv2d", "conv_transpose2d"])
def test_complex_convolutions(name):
    """Gradients of complex numbers; PyTorch makes these of real convolutions."""
    results = []
    for lib in (wengert, torch):
        x, weight = (
            lib.linspace(-1, 1, 2 * n, dtype=lib.float64).cos().reshape(shape + (2,))
            for n, shape in ((2 * 2 * 9, (2, 2, 3, 3)), (2 * 2 * 4, (2, 2, 2, 2)))
        )
        leaves = [lib.view_as_complex(t.contiguous()).requires_grad_() for t in (x, weight)]
        out = getattr(lib.nn.functional, name)(*leaves, stride=2, padding=1)
        grads = lib.autograd.grad((out * out.conj() * out).real.sum(), leaves, create_graph=True)
        again = lib.autograd.grad(sum((g * g.conj()).real.sum() for g in grads), leaves)
        results.append([lib.view_as_real(t).tolist() for t in (out, *grads, *again)])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(torch.tensor(one), torch.tensor(other))


@pytest.mark.parametrize("momentum", [0.3, None])
@pytest.mark.parametrize("kind", ["BatchNorm1d", "InstanceNorm1d"])
def test_running_statistics(kind, momentum):
    if kind == "InstanceNorm1d" and momentum is None:
        momentum = 1.0
    states = []
    for lib in (wengert, torch):
        layer = getattr(lib.nn, kind)(3, momentum=momentum, affine=True, track_running_stats=True)
        x = lib.linspace(-1, 2, 24, dtype=lib.float64).sin().reshape(2, 3, 4)
        layer.double()
        for i in range(3):
            layer(x * i + i)
        layer.eval()
        out = layer(x)
        states.append([out, *layer.state_dict().values()])
        layer.reset_running_stats()
        assert layer.running_var.tolist() == [1, 1, 1] and not layer.num_batches_tracked.item()
    for one, other in zip(*states, strict=True):
        torch.testing.assert_close(numbers(one), numbers(other))


def test_state_of_a_time_before_batches_were_counted(lib):
    layer = lib.nn.BatchNorm1d(2)
    state = layer.state_dict()
    del state["num_batches_tracked"]
    state._metadata[""]["version"] = 1
    layer.load_state_dict(state)
    assert layer.num_batches_tracked.item() == 0


def test_synchronised_batches_of_one_process(lib):
    plain = lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.BatchNorm1d(2, affine=False)).eval()
    made = lib.nn.SyncBatchNorm.convert_sync_batchnorm(plain)
    assert made is plain and type(made[1]) is lib.nn.SyncBatchNorm and not made[1].training
    norm = lib.nn.BatchNorm1d(3)
    converted = lib.nn.SyncBatchNorm.convert_sync_batchnorm(norm)
    assert converted.weight is norm.weight and converted.running_mean is norm.running_mean
    x = lib.arange(12.0).view(4, 3)
    assert converted(x).tolist() == norm(x).tolist()
    with pytest.raises(ValueError, match="expected at least 2D input .got 1D input"):
        converted(lib.ones(3))


def test_norms_of_half_precision():
    for text in ("BatchNorm1d(3)", "GroupNorm(3, 3)", "InstanceNorm1d(3)"):
        results = []
        for lib in (wengert, torch):
            x = lib.linspace(-1, 2, 24).reshape(2, 3, 4).bfloat16().requires_grad_()
            layer = eval(f"lib.nn.{text}", {"lib": lib}).bfloat16()
            out = layer(x)
            (out * out * out).sum().backward()
            assert out.dtype == x.grad.dtype == lib.bfloat16
            results.append((out, x.grad))
        for one, other in zip(*results, strict=True):
            torch.testing.assert_close(numbers(one), numbers(other), rtol=5e-2, atol=5e-2)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_indices_of_pools_and_the_way_back(n):
    results = []
    for lib in (wengert, torch):
        x = lib.linspace(-3, 3, 2 * 6**n, dtype=lib.float64).mul(7).sin().reshape(2, *(6,) * n)
        x.requires_grad_()
        pool = getattr(lib.nn, f"MaxPool{n}d")(2, return_indices=True)
        values, indices = pool(x)
        back = getattr(lib.nn, f"MaxUnpool{n}d")(2)(values, indices)
        larger = getattr(lib.nn.functional, f"max_unpool{n}d")(
            values, indices, 2, output_size=(7,) * n
        )
        (slope,) = lib.autograd.grad((back**3).sum() + (larger**2).sum(), x)
        adaptive, where = getattr(lib.nn, f"AdaptiveMaxPool{n}d")(4, True)(x)
        results.append([values, indices, back, larger, slope, adaptive, where])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(numbers(one), numbers(other))


@pytest.mark.parametrize("n", [2, 3])
def test_fractional_pools(n):
    results = []
    for lib in (wengert, torch):
        x = lib.linspace(-3, 3, 6 * 6**n, dtype=lib.float64).mul(7).sin().reshape(2, 3, *(6,) * n)
        x.requires_grad_()
        samples = lib.linspace(0.05, 0.95, 6 * n, dtype=lib.float64).reshape(2, 3, n)
        layer = getattr(lib.nn, f"FractionalMaxPool{n}d")(
            2, output_size=4, return_indices=True, _random_samples=samples
        )
        values, indices = layer(x)
        (slope,) = lib.autograd.grad((values**3).sum(), x)
        ratio = getattr(lib.nn, f"FractionalMaxPool{n}d")(3, output_ratio=0.5)
        assert ratio(x).shape == (2, 3, *(3,) * n)
        results.append([values, indices, slope])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(numbers(one), numbers(other))


def test_random_places_of_one_picture_are_the_first_of_those_given(lib):
    x = lib.arange(36.0).sin().reshape(1, 6, 6)
    samples = lib.tensor([[[0.1, 0.7]], [[0.9, 0.2]]])
    pool = partial(lib.nn.functional.fractional_max_pool2d, x, 2, (3, 3))
    found = pool(_random_samples=samples)
    assert found.equal(pool(_random_samples=samples[:1]))
    wrong = {
        "same dtype as input": samples.double(),
        "have 3 dimensions, got 2": samples[0],
        "no less then input batch size": samples[:0],
        "equals to input channel size": samples.repeat(1, 2, 1),
        "equals to 2; got 1": samples[..., :1],
    }
    for phrase, samples in wrong.items():
        with pytest.raises(RuntimeError, match=phrase):
            pool(_random_samples=samples)


def test_pools_of_special_values(lib):
    infinity, nan = float("inf"), float("nan")
    x = lib.tensor([[[-infinity, -infinity, 1.0, nan, 2.0, infinity]]])
    values, indices = lib.nn.functional.max_pool1d(x, 2, 1, 1, return_indices=True)
    assert str(values[0, 0].tolist()) == "[-inf, -inf, 1.0, nan, nan, inf, inf]"
    assert indices[0, 0].tolist() == [0, 0, 2, 3, 3, 5, 5]
    means = lib.nn.functional.adaptive_avg_pool1d(x[..., 2:], 3)
    assert str(means[0, 0].tolist()) == "[nan, nan, inf]"


def test_window_that_lies_in_the_border():
    """Its index is one of the input, where PyTorch's is not, so that there is a gradient."""
    x = wengert.ones(1, 2, 1, 2, requires_grad=True)
    values, indices = wengert.nn.functional.max_pool3d(x, 2, 1, 1, (1, 2, 2), return_indices=True)
    assert values.max().item() == -float("inf") and indices.min() >= 0 and indices.max() < 4
    values.sum().backward()
    assert x.grad.sum().item() == values.numel()


def test_pools_of_whole_numbers(lib):
    x = lib.tensor([[[-7, 2, 3, 9]] * 2])
    assert lib.nn.functional.avg_pool2d(x, 2).tolist() == [[[-2, 6]]]
    values, indices = lib.nn.functional.max_pool2d(x, 2, return_indices=True)
    assert values.tolist() == [[[2, 9]]] and indices.tolist() == [[[1, 3]]]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_pools_of_no_pictures_have_gradients(lib, n):
    functional = lib.nn.functional
    x = lib.ones(0, 2, *[4] * n, requires_grad=True)
    pool, unpool = (getattr(functional, f"max_{kind}{n}d") for kind in ("pool", "unpool"))
    values, indices = pool(x, 2, return_indices=True)
    again = unpool(values, indices, 2)
    assert indices.shape == (0, 2, *[2] * n) and again.shape == x.shape
    (gradient,) = lib.autograd.grad(again.sum() + values.sum(), x)
    assert gradient.shape == x.shape


def test_adaptive_pools_of_no_parts(lib):
    x = lib.ones(3, 4, 5)
    values, indices = lib.nn.functional.adaptive_max_pool2d(x, (2, 0), return_indices=True)
    assert values.shape == indices.shape == (3, 2, 0)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [True, False])
@pytest.mark.parametrize("n", [2, 3])
def test_grid_sample(mode, padding, align, n):
    if mode == "bicubic" and n == 3:
        return  # refused
    results = []
    for lib in (wengert, torch):
        x = lib.linspace(-3, 3, 8 * 12, dtype=lib.float64).mul(5).sin()
        x = x.reshape((2, 4, 3, 4) if n == 2 else (2, 2, 2, 3, 4)).requires_grad_()
        grid = lib.linspace(-9, 9, 2 * 5 * 3 * n, dtype=lib.float64).mul(3).sin().mul(1.7)
        grid = grid.reshape(2, 5, *(3, 1)[: n - 1], n).requires_grad_()
        out = lib.nn.functional.grid_sample(x, grid, mode, padding, align)
        slopes = lib.autograd.grad((out**3).sum(), (x, grid))
        results.append([out, *slopes])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(numbers(one), numbers(other), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("size", [(2, 1, 3, 4), (2, 1, 2, 3, 1)])
@pytest.mark.parametrize("align", [True, False])
def test_affine_grid(size, align):
    results = []
    n = len(size) - 2
    for lib in (wengert, torch):
        theta = lib.linspace(-1, 1, 2 * n * (n + 1), dtype=lib.float64).reshape(2, n, n + 1)
        theta.requires_grad_()
        out = lib.nn.functional.affine_grid(theta, size, align)
        (slope,) = lib.autograd.grad((out**3).sum(), theta)
        results.append([out, slope])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(numbers(one), numbers(other))


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "lanczos"])
@pytest.mark.parametrize("size", [(3, 4), (9, 13)])
def test_smoothed_interpolation(mode, size):
    results = []
    for lib in (wengert, torch):
        x = lib.linspace(-3, 3, 2 * 7 * 10, dtype=lib.float64).mul(5).sin().reshape(1, 2, 7, 10)
        x.requires_grad_()
        out = lib.nn.functional.interpolate(x, size, mode=mode, antialias=True)
        (slope,) = lib.autograd.grad((out**3).sum(), x)
        results.append([out, slope])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(numbers(one), numbers(other))


def test_nearest_elements_of_many_sizes():
    for length in (1, 3, 7, 10, 31):
        x = torch.arange(float(length)).reshape(1, 1, -1)
        for size in range(1, 40):
            for mode in ("nearest", "nearest-exact"):
                want = torch.nn.functional.interpolate(x, size, mode=mode)
                ours = wengert.tensor(x.tolist())
                got = wengert.nn.functional.interpolate(ours, size, mode=mode)
                assert got.tolist() == want.tolist()
                factor = size / 7
                if int(length * factor):
                    want = torch.nn.functional.interpolate(x, scale_factor=factor, mode=mode)
                    got = wengert.nn.functional.interpolate(ours, scale_factor=factor, mode=mode)
                    assert got.tolist() == want.tolist()


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("options", [{}, {"padding_idx": 1}, {"include_last_offset": True}])
def test_bags_of_embeddings(mode, options):
    results = []
    for lib in (wengert, torch):
        table = lib.linspace(-2, 3, 10, dtype=lib.float64).mul(4).sin().reshape(5, 2)
        table.requires_grad_()
        indices, offsets = lib.tensor([1, 4, 4, 0, 1, 1, 2]), lib.tensor([0, 2, 2, 5, 7])
        weights = lib.linspace(1, 2, 7, dtype=lib.float64).requires_grad_()
        given = {"per_sample_weights": weights} if mode == "sum" else {}
        out = lib.nn.functional.embedding_bag(
            indices, table, offsets, mode=mode, **options, **given
        )
        leaves = (table, weights) if mode == "sum" else (table,)
        slopes = lib.autograd.grad((out**3).sum(), leaves)
        results.append([out, *slopes])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(numbers(one), numbers(other))


def test_pretrained_bags(lib):
    table = lib.arange(6.0).reshape(3, 2)
    layer = lib.nn.EmbeddingBag.from_pretrained(table, mode="sum")
    assert not layer.weight.requires_grad
    assert layer(lib.tensor([2, 0]), lib.tensor([0])).tolist() == [[4.0, 6.0]]


def test_older_names_of_interpolation(lib):
    x = lib.arange(4.0).reshape(1, 1, 2, 2)
    with pytest.warns(UserWarning, match="deprecated"):
        assert lib.nn.functional.upsample(x, 4).shape == (1, 1, 4, 4)
    with pytest.warns(UserWarning, match="deprecated"):
        assert lib.nn.functional.upsample_nearest(x, 3)[0, 0, 0].tolist() == [0, 0, 1]
    with pytest.warns(UserWarning, match="deprecated"):
        assert lib.nn.functional.upsample_bilinear(x, 3)[0, 0, 0].tolist() == [0, 0.5, 1]


def test_gradients_of_bags_scaled_by_frequency():
    """By how often a row is used; PyTorch divides all rows by how often the first one is."""
    table = wengert.arange(6.0).reshape(3, 2).requires_grad_()
    indices = wengert.tensor([[0, 0, 1], [0, 2, 2]])
    out = wengert.nn.functional.embedding_bag(indices, table, mode="sum", scale_grad_by_freq=True)
    out.sum().backward()
    assert table.grad.tolist() == [[1, 1], [1, 1], [1, 1]]
