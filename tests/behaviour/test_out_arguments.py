"""Results that go into a tensor given as ``out=``: which memory they fill, which type it has."""

import pytest

# Factories ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda lib, out: lib.arange(4, out=out), [0, 1, 2, 3]),
        (lambda lib, out: lib.arange(4.0, out=out), [0, 1, 2, 3]),
        (lambda lib, out: lib.linspace(0, 6, 4, out=out), [0, 2, 4, 6]),
        (lambda lib, out: lib.logspace(0, 3, 4, out=out), [1, 10, 100, 1000]),
    ],
)
def test_a_range_fills_what_has_room_for_it(lib, make, expected):
    x = lib.zeros(2, 4)
    part = x.narrow(1, 1, 2)
    returned = make(lib, part)
    assert returned is part
    assert part.shape == (2, 2)
    assert part.reshape(-1).tolist() == expected
    assert x[:, 1:3].reshape(-1).tolist() == expected
    assert x[:, 0].tolist() == x[:, 3].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda lib, out: lib.arange(3.0, out=out), [0, 1, 2]),
        (lambda lib, out: lib.linspace(1, 3, 3, out=out), [1, 2, 3]),
        (lambda lib, out: lib.zeros(3, out=out), [0, 0, 0]),
        (lambda lib, out: lib.ones(3, out=out), [1, 1, 1]),
        (lambda lib, out: lib.full((3,), 7.0, out=out), [7, 7, 7]),
        (lambda lib, out: lib.add(lib.ones(3), 1, out=out), [2, 2, 2]),
        (lambda lib, out: lib.cumsum(lib.ones(3), 0, out=out), [1, 2, 3]),
    ],
)
@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_another_shape_goes_into_the_memory_that_is_there(lib, make, expected):
    x = lib.full((6,), 9.0)
    part = x[2:3]
    make(lib, part)
    assert part.tolist() == expected
    assert x.tolist() == [9, 9, *expected, 9]
    empty = x[1:1]
    make(lib, empty)
    assert x.tolist() == [9, *expected, expected[2], 9]


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_a_larger_shape_gets_memory_of_its_own(lib):
    out = lib.zeros(2)
    assert lib.arange(5.0, out=out).tolist() == [0, 1, 2, 3, 4]
    assert lib.add(lib.ones(9), 1, out=out).tolist() == [2] * 9


@pytest.mark.parametrize(
    ("start", "end", "steps", "expected"),
    [
        (0, 1.2, 4, [1, 2, 4, 10]),
        (0.5, 3.7, 3, [1, 31, 1000]),
        (0.5, 3, 1, [3]),
        (0, 2, 5, [1, 3, 10, 31, 100]),
    ],
)
def test_whole_powers_have_whole_exponents_at_the_ends(lib, start, end, steps, expected):
    assert lib.logspace(start, end, steps, dtype=lib.int64).tolist() == expected


# Types --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["all", "any"])
def test_truth_values_go_into_truth_values(lib, name):
    function, flags = getattr(lib, name), lib.tensor([True, False])
    for dim in ((), (0,)):
        with pytest.raises(RuntimeError, match=f"{name} only supports bool tensor for result"):
            function(flags, *dim, out=lib.zeros(()))
        expected = name == "any"
        assert function(flags, *dim, out=lib.empty((), dtype=lib.bool)).item() is expected
        assert function(flags, *dim, out=lib.empty((), dtype=lib.uint8)).item() == expected


def test_places_are_long(lib):
    with pytest.raises(RuntimeError, match="Expected out tensor to have"):
        lib.nonzero(lib.ones(2), out=lib.zeros(2, 1))
    places = lib.empty(0, dtype=lib.int64)
    assert lib.nonzero(lib.ones(2), out=places).tolist() == [[0], [1]]


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "cumsum", "cumprod"])
def test_a_type_that_is_asked_for_is_that_of_out(lib, name):
    function, x = getattr(lib, name), lib.ones(2)
    words = "Expected out tensor to have dtype double, but got float instead"
    with pytest.raises(RuntimeError, match=words):
        function(x, 0, dtype=lib.float64, out=lib.empty(0))
    out = lib.empty(0, dtype=lib.float64)
    assert function(x, 0, dtype=lib.float64, out=out).dtype == lib.float64


@pytest.mark.parametrize("name", ["sum", "cumsum"])
def test_sums_are_computed_in_the_type_of_out(lib, name):
    x = lib.tensor([1.0, 2.0**-30])
    wide = getattr(lib, name)(x, 0, out=lib.empty(0, dtype=lib.float64)).reshape(-1)
    assert wide[-1].item() == 1 + 2.0**-30
    whole = getattr(lib, name)(lib.tensor([2.0, 3.0]), 0, out=lib.empty(0, dtype=lib.int64))
    assert whole.reshape(-1)[-1].item() == 5


@pytest.mark.parametrize(
    "compute",
    [
        lambda lib, x, out: lib.mm(x, x, out=out),
        lambda lib, x, out: lib.tril(x, out=out),
        lambda lib, x, out: lib.gather(x, 0, lib.tensor([[0]]), out=out),
        lambda lib, x, out: lib.softmax(x, 0, out=out),
        lambda lib, x, out: lib.sort(x, out=(out, lib.empty(0, dtype=lib.int64))),
        lambda lib, x, out: lib.max(x, 0, out=(out, lib.empty(0, dtype=lib.int64))),
        lambda lib, x, out: lib.argmax(x, 0, out=out),
        lambda lib, x, out: lib.take_along_dim(x, lib.tensor([[0]]), 0, out=out),
        lambda lib, x, out: lib.scatter(x, 0, lib.tensor([[0]]), x, out=out),
    ],
)
def test_most_operators_do_not_convert_into_out(lib, compute):
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype .*, but got double"):
        compute(lib, lib.ones(2, 2), lib.empty(0, dtype=lib.float64))


@pytest.mark.parametrize(
    "compute",
    [
        lambda lib, x, out: lib.add(x, x, out=out),
        lambda lib, x, out: lib.exp(x, out=out),
        lambda lib, x, out: lib.lt(x, x, out=out),
        lambda lib, x, out: lib.cat([x, x], out=out),
        lambda lib, x, out: lib.stack([x, x], out=out),
        lambda lib, x, out: lib.var(x, 0, out=out),
        lambda lib, x, out: lib.mean(x, 0, out=out),
        lambda lib, x, out: lib.logsumexp(x, 0, out=out),
    ],
)
def test_arithmetic_converts_into_out(lib, compute):
    out = lib.empty(0, dtype=lib.float64)
    assert compute(lib, lib.ones(2, 2), out) is out
    assert out.numel()
    assert out.dtype == lib.float64


OF_THEIR_OWN_TYPE = {
    "frac": lambda lib, x, **out: lib.frac(x, **out),
    "heaviside": lambda lib, x, **out: lib.heaviside(x, x, **out),
    "conj_physical": lambda lib, x, **out: lib.conj_physical(x, **out),
    "inner": lambda lib, x, **out: lib.inner(x, x, **out),
    "renorm": lambda lib, x, **out: lib.renorm(x, 2, 0, 1.0, **out),
    "isin": lambda lib, x, **out: lib.isin(x, x, **out),
    "norm": lambda lib, x, **out: lib.norm(x, **out),
    "vector_norm": lambda lib, x, **out: lib.linalg.vector_norm(x, **out),
    "matrix_norm": lambda lib, x, **out: lib.linalg.matrix_norm(x, **out),
    "vecdot": lambda lib, x, **out: lib.linalg.vecdot(x, x, **out),
    "inv": lambda lib, x, **out: lib.linalg.inv(x, **out),
    "svdvals": lambda lib, x, **out: lib.linalg.svdvals(x, **out),
    "matrix_power": lambda lib, x, **out: lib.linalg.matrix_power(x, 2, **out),
    "view_copy": lambda lib, x, **out: lib.view_copy(x, (4,), **out),
}


@pytest.mark.parametrize("name", OF_THEIR_OWN_TYPE)
def test_a_target_of_another_type_is_refused(lib, name):
    x = lib.tensor([[2.0, 0.5], [0.25, 1.5]])
    with pytest.raises(RuntimeError):
        OF_THEIR_OWN_TYPE[name](lib, x, out=lib.empty(0, dtype=lib.float64))


def test_joining_into_integers_is_an_error_of_types(lib):
    with pytest.raises(TypeError, match="input types can't be cast to the desired output type"):
        lib.cat([lib.ones(2)], out=lib.empty(2, dtype=lib.int64))


# Memory that is read and written ------------------------------------------------------------------

PAIRS = {
    "max": lambda lib, x, out: lib.max(x, 0, out=out),
    "min, by keywords": lambda lib, x, out: lib.min(input=x, dim=0, out=out),
    "mode, by keywords": lambda lib, x, out: lib.mode(input=x, dim=0, out=out),
    "median": lambda lib, x, out: lib.median(x, 0, out=out),
    "nanmedian, by a keyword": lambda lib, x, out: lib.nanmedian(x, dim=0, out=out),
    "kthvalue": lambda lib, x, out: lib.kthvalue(x, 1, 0, out=out),
}


@pytest.mark.parametrize("name", PAIRS)
def test_values_chosen_along_a_dimension_do_not_go_where_they_come_from(lib, name):
    x, first, second = lib.tensor([3.0, 1.0, 2.0]), *lib.zeros(2, dtype=lib.int64)
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        PAIRS[name](lib, x, (x[0], first))
    assert x.tolist() == [3, 1, 2]
    assert PAIRS[name](lib, x, (lib.zeros(()), second))[0].item() in (1, 2, 3)


@pytest.mark.parametrize(("name", "expected"), [("max", 3), ("min", 1)])
def test_one_of_all_values_may_go_where_it_comes_from(lib, name, expected):
    x = lib.tensor([2.0, 1.0, 3.0])
    getattr(lib, name)(x, out=x[0])
    assert x.tolist() == [expected, 1, 3]


def test_out_argument_under_no_grad(lib):
    x = lib.ones(2, requires_grad=True)
    result = lib.empty(2)
    with lib.no_grad():
        lib.add(x, x, out=result)
    assert result.tolist() == [2.0, 2.0]
    assert not result.requires_grad


def test_out_argument_under_no_grad_of_what_is_returned_as_it_is(lib):
    x = lib.ones(2, requires_grad=True)
    result = lib.empty(2)
    with lib.no_grad():
        lib.conj_physical(x, out=result)
    assert result.tolist() == [1.0, 1.0]
    assert not result.requires_grad
