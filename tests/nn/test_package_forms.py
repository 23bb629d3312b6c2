"""Functions of the package with other arguments than those of nn.functional."""

import pytest

import wengert
from nn.test_layers import numbers
from nn.test_margins import signs, wave

torch = pytest.importorskip("torch")

CALLS = {
    "batch_norm": lambda lib: (wave(lib, 4, 3), wave(lib, 3), None, None, None, True, 0.1, 1e-5,
                               False),
    "instance_norm": lambda lib: (wave(lib, 2, 3, 4), wave(lib, 3), None, None, None, True, 0.1,
                                  1e-5, False),
    "group_norm": lambda lib: (wave(lib, 2, 4, 3), 2, wave(lib, 4)),
    "layer_norm": lambda lib: (wave(lib, 2, 4), [4], wave(lib, 4)),
    "rms_norm": lambda lib: (wave(lib, 2, 4), [4]),
    "adaptive_max_pool1d": lambda lib: (wave(lib, 2, 3, 7), 3),
    "adaptive_avg_pool1d": lambda lib: (wave(lib, 2, 3, 7), 3),
    "max_pool1d_with_indices": lambda lib: (wave(lib, 2, 3, 7), 3, 2, 1),
    "max_pool1d": lambda lib: (wave(lib, 2, 3, 7), 3),
    "max_pool2d": lambda lib: (wave(lib, 2, 5, 7), 3),
    "max_pool3d": lambda lib: (wave(lib, 2, 3, 3, 7), 2),
    "avg_pool1d": lambda lib: (wave(lib, 2, 3, 7), 3),
    "bilinear": lambda lib: (wave(lib, 2, 3), wave(lib, 2, 4), wave(lib, 5, 3, 4)),
    "channel_shuffle": lambda lib: (wave(lib, 2, 4, 2), 2),
    "pixel_shuffle": lambda lib: (wave(lib, 2, 4, 2, 3), 2),
    "pixel_unshuffle": lambda lib: (wave(lib, 2, 1, 4, 6), 2),
    "conv2d": lambda lib: (wave(lib, 1, 2, 4, 4), wave(lib, 3, 2, 2, 2)),
    "kl_div": lambda lib: (wave(lib, 2, 3), wave(lib, 2, 3, low=0.1)),
    "ctc_loss": lambda lib: (wave(lib, 4, 1, 3).log_softmax(2), lib.tensor([[1, 2]]), [4], [2]),
    "poisson_nll_loss": lambda lib: (wave(lib, 3), wave(lib, 3), True, False, 1e-8, 2),
    "triplet_margin_loss": lambda lib: (wave(lib, 3, 2), wave(lib, 3, 2, factor=9),
                                        wave(lib, 3, 2, factor=7), 0.5),
    "cosine_embedding_loss": lambda lib: (wave(lib, 3, 2), wave(lib, 3, 2, factor=9),
                                          signs(lib, 3), 0.1, 0),
    "hinge_embedding_loss": lambda lib: (wave(lib, 3), signs(lib, 3), 0.5, 2),
    "margin_ranking_loss": lambda lib: (wave(lib, 3), wave(lib, 3, factor=9), signs(lib, 3)),
    "binary_cross_entropy_with_logits": lambda lib: (wave(lib, 3), wave(lib, 3, low=0), None, None,
                                                     0),
    "embedding_bag": lambda lib: (wave(lib, 5, 2), lib.tensor([1, 4, 4, 0]), lib.tensor([0, 2]),
                                  False, 2),
    "rrelu": lambda lib: (wave(lib, 5),),
    "alpha_dropout": lambda lib: (wave(lib, 5), 0.5, False),
    "dropout": lambda lib: (wave(lib, 5), 1.0, True),
    "feature_dropout": lambda lib: (wave(lib, 5, 2), 1.0, True),
    "feature_alpha_dropout": lambda lib: (wave(lib, 5, 2), 0.5, False),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_form(name):
    results = []
    for lib in (wengert, torch):
        out = getattr(lib, name)(*CALLS[name](lib))
        results.append(out if isinstance(out, tuple) else (out,))
    for i, (one, other) in enumerate(zip(*results, strict=True)):
        if name == "embedding_bag" and i in (1, 2):
            continue  # what PyTorch tells there depends on the mode
        torch.testing.assert_close(numbers(one), numbers(other))


def test_bags_tell_what_is_in_them():
    table = wave(wengert, 5, 2)
    out, bag, sizes, rows = wengert.embedding_bag(
        table, wengert.tensor([1, 4, 4, 0]), wengert.tensor([0, 3]), mode=2
    )
    assert bag.tolist() == [0, 0, 0, 1] and sizes.tolist() == [3, 1]
    assert out.tolist() == table.gather(0, rows).tolist()


def test_in_place_forms(lib):
    for name, arguments in [
        ("dropout_", (1.0, True)), ("feature_dropout_", (1.0, True)),
        ("alpha_dropout_", (1.0, True)), ("feature_alpha_dropout_", (1.0, True)), ("rrelu_", ()),
        ("celu_", ()), ("selu_", ()),
        ("threshold_", (2.0, 0.0)),
    ]:  # fmt: skip
        x = lib.full((2, 2), -1.0)
        assert getattr(lib, name)(x, *arguments) is x and x[0, 0] > -1.2 and x[0, 0] != -1


def test_feature_dropout(lib):
    out = lib.feature_dropout(lib.ones(10, 20, 3), 0.5, True)
    assert (out == out[..., :1]).all().item() and out.unique().tolist() == [0, 2]
    with pytest.raises(RuntimeError, match="at least 2 dimensions"):
        lib.feature_dropout(lib.ones(3), 0.5, True)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_pools_that_always_tell_indices(n):
    results = []
    for lib in (wengert, torch):
        F = lib.nn.functional
        x = wave(lib, 2, 2, *(6,) * n)
        found = [*getattr(F, f"max_pool{n}d_with_indices")(x, 2)]
        found += getattr(F, f"adaptive_max_pool{n}d_with_indices")(x, 4)
        if n > 1:
            samples = wave(lib, 2, 2, n, low=0.1, high=0.9)
            function = getattr(F, f"fractional_max_pool{n}d_with_indices")
            found += function(x, 2, (3,) * n, _random_samples=samples)
        results.append(found)
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(numbers(one), numbers(other))
