"""What functions made of other operators refuse because of values."""

import pytest


def negative_weights(lib, kind):
    weights = lib.tensor([1, 1, -1, 2]) if kind == "fweights" else lib.tensor([0.5, 1, -1, 2])
    return lambda x: lib.cov(x, **{kind: weights})


REFUSED = {
    "fweights": lambda lib: negative_weights(lib, "fweights"),
    "aweights": lambda lib: negative_weights(lib, "aweights"),
    "weights that are no number": lambda lib: lambda x: lib.cov(
        x, aweights=lib.tensor([0.5, 1, float("nan"), 2])
    ),
    "levels of quantiles": lambda lib: lambda x: lib.quantile(x, lib.tensor([0.5, 1.5])),
}
SURROUNDED = {
    "plain": lambda lib, f, x: f(x),
    "grad": lambda lib, f, x: lib.func.grad(lambda x: f(x).sum())(x),
    "jvp": lambda lib, f, x: lib.func.jvp(f, (x,), (x,)),
    "vmap": lambda lib, f, x: lib.vmap(f)(lib.stack([x, x])),
}


@pytest.mark.parametrize("around", SURROUNDED)
@pytest.mark.parametrize("name", REFUSED)
def test_values_are_refused_inside_transforms_too(lib, name, around):
    if lib.__name__ == "torch" and name == "levels of quantiles" and around in ("grad", "jvp"):
        return  # PyTorch looks at plain tensors alone
    x = lib.linspace(-1, 1, 8).reshape(2, 4)
    with pytest.raises(RuntimeError, match=r"cannot be negative|range \[0, 1\]|vmap"):
        SURROUNDED[around](lib, REFUSED[name](lib), x)


@pytest.mark.parametrize("name", REFUSED)
def test_values_are_refused_by_compiled_functions(name):
    import wengert

    x, refused = wengert.linspace(-1, 1, 8).reshape(2, 4), REFUSED[name](wengert)

    def function(x):
        refused(x)  # of which nobody uses the result
        return x * 2

    with pytest.raises(RuntimeError, match=r"cannot be negative|range \[0, 1\]"):
        wengert.compile(function, fullgraph=True)(x)
