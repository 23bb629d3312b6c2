"""Random numbers inside transforms: refused, the same for all examples, or different."""

import pytest

DRAWS = {
    "rand": lambda lib, x: lib.rand(4),
    "randn": lambda lib, x: lib.randn(4),
    "randint": lambda lib, x: lib.randint(0, 10**6, (4,)),
    "randperm": lambda lib, x: lib.randperm(20),
    "normal of numbers": lambda lib, x: lib.normal(0.0, 1.0, (4,)),
    "bernoulli of shared": lambda lib, x: lib.bernoulli(lib.full((64,), 0.5)),
    "multinomial of shared": lambda lib, x: lib.multinomial(lib.ones(1000), 4),
    "rand_like": lambda lib, x: lib.rand_like(x),
    "randn_like": lambda lib, x: lib.randn_like(x),
    "randint_like": lambda lib, x: lib.randint_like(x, 10**6),
    "rand_like of shared": lambda lib, x: lib.rand_like(lib.ones(4)),
    "dropout": lambda lib, x: lib.nn.functional.dropout(x.expand(64, 4) + 1),
    "dropout of shared": lambda lib, x: lib.nn.functional.dropout(lib.ones(64)),
    "uniform_": lambda lib, x: x.clone().uniform_(),
    "normal_": lambda lib, x: x.clone().normal_(),
    "exponential_": lambda lib, x: x.clone().exponential_(),
    "random_": lambda lib, x: x.clone().random_(),
    "bernoulli_": lambda lib, x: x.expand(64, 4).clone().bernoulli_(0.5),
    "own generator": lambda lib, x: lib.rand(4, generator=lib.Generator().manual_seed(3)),
}
BY_EXAMPLE = {
    "normal": lambda lib, x: lib.normal(x, 1.0),
    "bernoulli": lambda lib, x: lib.bernoulli(x.expand(64, 4) * 0 + 0.5),
    "multinomial": lambda lib, x: lib.multinomial(lib.ones(1000) + x.sum() * 0, 4),
}
SHARED_TARGETS = ("uniform_", "normal_", "exponential_", "random_")


def rows(lib, draw, randomness, seed=5):
    lib.manual_seed(seed)
    return lib.vmap(lambda x: draw(lib, x), randomness=randomness)(lib.zeros(3, 4)).tolist()


@pytest.mark.parametrize("name", DRAWS | BY_EXAMPLE)
def test_refused(lib, name):
    with pytest.raises(RuntimeError, match="called random operation while in randomness error"):
        rows(lib, (DRAWS | BY_EXAMPLE)[name], "error")


@pytest.mark.parametrize("name", DRAWS)
def test_same(lib, name):
    found = rows(lib, DRAWS[name], "same")
    assert len(found) == 3 and found[0] == found[1] == found[2]


@pytest.mark.parametrize("name", DRAWS | BY_EXAMPLE)
def test_different(lib, name):
    found = rows(lib, (DRAWS | BY_EXAMPLE)[name], "different")
    assert len(found) == 3
    assert found[0] != found[1] and found[1] != found[2] and found[0] != found[2]


@pytest.mark.parametrize("name", DRAWS | BY_EXAMPLE)
def test_seeds_are_respected(lib, name):
    draw = (DRAWS | BY_EXAMPLE)[name]
    assert rows(lib, draw, "different") == rows(lib, draw, "different")


@pytest.mark.parametrize("name", ["rand", "randn", "normal of numbers", "rand_like"])
def test_same_is_one_draw(lib, name):
    """The examples share what the function would draw outside."""
    found = rows(lib, DRAWS[name], "same")
    lib.manual_seed(5)
    assert found[0] == DRAWS[name](lib, lib.zeros(4)).tolist()


@pytest.mark.parametrize("name", SHARED_TARGETS)
def test_shared_targets_cannot_differ(lib, name):
    with pytest.raises(RuntimeError, match="Cannot ask for different inplace randomness on an unb"):
        lib.vmap(lambda x: getattr(lib.ones(4), name)(), randomness="different")(lib.ones(3))
    found = lib.vmap(lambda x: getattr(lib.ones(4), name)(), randomness="same")(lib.ones(3))
    assert found[0].tolist() == found[1].tolist()


def test_out_is_refused(lib):
    with pytest.raises(RuntimeError, match="out variants of random operations inside of vmap"):
        lib.vmap(lambda x: lib.rand(2, out=lib.empty(2)), randomness="same")(lib.ones(3))


PARAMETERS = {
    "multinomial": lambda lib, x: lib.multinomial(x + 1, 2),
    "mean": lambda lib, x: lib.normal(x, 1.0),
    "deviation": lambda lib, x: lib.normal(0.0, x),
    "both": lambda lib, x: lib.normal(lib.zeros(4), x),
    "probability": lambda lib, x: lib.bernoulli(x),
    "number beside a tensor": lambda lib, x: lib.bernoulli(x, p=0.5),
    "method": lambda lib, x: x.bernoulli(),
    "in place": lambda lib, x: x.clone().bernoulli_(x),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_that_differ_have_no_same_draw(lib, name):
    with pytest.raises(RuntimeError, match="same randomness with a batched tensor input"):
        rows(lib, PARAMETERS[name], "same")
    with pytest.raises(RuntimeError, match="called random operation while in randomness error"):
        rows(lib, PARAMETERS[name], "error")


SHARED_PARAMETERS = {
    "mean": lambda lib, x: lib.normal(lib.zeros(4), 1.0),
    "both": lambda lib, x: lib.normal(lib.zeros(4), lib.ones(4)),
    "probability": lambda lib, x: lib.bernoulli(lib.full((64,), 0.5)),
    "in place": lambda lib, x: x.expand(64, 4).clone().bernoulli_(lib.full((64, 4), 0.5)),
}


@pytest.mark.parametrize("name", SHARED_PARAMETERS)
def test_parameters_that_are_shared_have_one(lib, name):
    found = rows(lib, SHARED_PARAMETERS[name], "same")
    assert found[0] == found[1] == found[2]


def test_parameters_of_another_vmap_than_the_one_that_shares(lib):
    def draw(x):
        return lib.vmap(lambda y: lib.normal(x, 1.0), randomness="same")(lib.zeros(2))

    found = lib.vmap(draw, randomness="different")(lib.tensor([0.0, 64.0]))
    assert found[0][0] == found[0][1] and found[1][0] == found[1][1]
    assert (found[1] - found[0]).abs().min() > 32


@pytest.mark.parametrize(
    ("outer", "inner", "equal_rows", "equal_columns"),
    [
        ("different", "same", False, True),
        ("same", "different", True, False),
        ("same", "same", True, True),
        ("different", "different", False, False),
    ],
)
def test_nested(lib, outer, inner, equal_rows, equal_columns):
    def draw(x):
        return lib.rand(())

    found = lib.vmap(lib.vmap(draw, randomness=inner), randomness=outer)(lib.ones(2, 3)).tolist()
    assert (found[0] == found[1]) == equal_rows
    assert (len(set(found[0])) == 1) == equal_columns
    assert len(set(found[0] + found[1])) == (1 if equal_rows else 2) * (1 if equal_columns else 3)


@pytest.mark.parametrize(("outer", "inner"), [("error", "same"), ("different", "error")])
def test_any_level_can_refuse(lib, outer, inner):
    with pytest.raises(RuntimeError, match="randomness error mode"):
        lib.vmap(lib.vmap(lambda x: lib.rand(()), randomness=inner), randomness=outer)(
            lib.ones(2, 3)
        )


def test_derivatives_may_draw(lib):
    lib.manual_seed(0)
    expected = lib.rand(3)
    lib.manual_seed(0)
    assert lib.func.grad(lambda x: (x * lib.rand(3)).sum())(lib.ones(3)).tolist() == (
        expected.tolist()
    )
    lib.manual_seed(0)
    _, pushed = lib.func.jvp(lambda x: x * lib.rand(3), (lib.ones(3),), (lib.ones(3),))
    assert pushed.tolist() == expected.tolist()


def test_derivatives_of_draws_inside_vmap(lib):
    def f(x):
        return (x * lib.rand(3)).sum()

    with pytest.raises(RuntimeError, match="randomness error mode"):
        lib.vmap(lib.func.grad(f))(lib.ones(2, 3))
    same = lib.vmap(lib.func.grad(f), randomness="same")(lib.ones(2, 3))
    assert same[0].tolist() == same[1].tolist()
    different = lib.vmap(lib.func.grad(f), randomness="different")(lib.ones(2, 3))
    assert different[0].tolist() != different[1].tolist()


def test_draws_are_constants_of_the_derivative(lib):
    found = lib.func.grad(lambda x: (lib.normal(x, 1.0) + lib.bernoulli(x) + x).sum())(
        lib.full((3,), 0.5)
    )
    assert found.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("name", SHARED_TARGETS)
def test_draws_in_place_are_constants_too(lib, name):
    x = lib.ones(3, requires_grad=True)
    y = x * 2
    getattr(y, name)()
    assert lib.autograd.grad((y * x).sum(), x)[0].tolist() == y.tolist()

    def f(x):
        y = x * 2
        z = y[1:]
        getattr(z, name)()
        return y.sum()

    assert lib.func.grad(f)(lib.ones(3)).tolist() == [2.0, 0.0, 0.0]
    assert lib.func.jvp(f, (lib.ones(3),), (lib.ones(3),))[1].item() == 2.0
    slope = lib.func.grad(lambda x: f(x) * x.sum())
    assert lib.func.grad(lambda x: slope(x).sum())(lib.ones(3)).tolist() == [8.0, 2.0, 2.0]


def test_dropout_is_differentiable(lib):
    lib.manual_seed(0)
    x = lib.ones(2, 50)
    slopes = lib.vmap(
        lib.func.grad(lambda x: lib.nn.functional.dropout(x, 0.5).sum()), randomness="different"
    )(x)
    assert set(slopes.reshape(-1).tolist()) == {0.0, 2.0}
    kept = lib.vmap(lambda x: lib.nn.functional.dropout(x, training=False))(x)
    assert kept.tolist() == x.tolist()


def test_channels_are_dropped_example_by_example(lib):
    lib.manual_seed(1)
    x = lib.ones(8, 16, 5)
    found = lib.vmap(lib.nn.functional.dropout1d, randomness="different")(x)
    flat = found.reshape(-1, 5)
    assert all(len(set(row)) == 1 for row in flat.tolist())
    assert found[0].tolist() != found[1].tolist()


@pytest.mark.parametrize("name", ["dropout", "dropout1d"])
def test_dropping_everything_draws_nothing(lib, name):
    found = lib.vmap(lambda x: getattr(lib.nn.functional, name)(x, 1.0))(lib.ones(3, 2, 4))
    assert found.tolist() == lib.zeros(3, 2, 4).tolist()


@pytest.mark.parametrize("chunk_size", [1, 2])
def test_chunks_share_the_same_randomness(lib, chunk_size):
    def draw(randomness):
        mapped = lib.vmap(lambda x: lib.rand(3), randomness=randomness, chunk_size=chunk_size)
        return mapped(lib.ones(5)).tolist()

    same, different = draw("same"), draw("different")
    assert all(row == same[0] for row in same)
    assert all(different.count(row) == 1 for row in different)
