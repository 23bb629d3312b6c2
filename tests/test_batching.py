"""Batch rules where samples do not reach: promotion, indices, wrong calls, what they call."""

import itertools

import numpy as np
import pytest

import wengert
from operators.support import assert_same
from wengert.operators.declare import nondifferentiable
from wengert.transforms.batching.rules import one_by_one
from wengert.utils._python_dispatch import TorchDispatchMode


def _tensor(*shape, dtype=wengert.float32, high=None, seed=0):
    random = np.random.default_rng(seed)
    if high is not None:
        return wengert.tensor(random.integers(0, high, shape))
    return wengert.tensor(random.uniform(-2, 2, shape)).to(dtype)


def _check(function, args, dims):
    """vmap equals the loop, in values, shape and dtype."""
    size = next(a.shape[d] for a, d in zip(args, dims) if d is not None)
    rows = [[a if d is None else a.select(d, i) for a, d in zip(args, dims)] for i in range(size)]
    want = wengert.stack([function(*row) for row in rows])
    assert_same(wengert.vmap(function, tuple(dims))(*args), want)


# Promotion ----------------------------------------------------------------------------------------

DTYPES = ("bool", "uint8", "int32", "int64", "float16", "float32", "float64", "complex64")


@pytest.mark.parametrize("one", DTYPES)
@pytest.mark.parametrize("other", DTYPES)
def test_a_batched_number_counts_as_a_number_in_promotion(one, other):
    for shape, other_shape in itertools.product([(2,), (2, 3)], [(), (3,), (2,), (2, 3)]):
        x = _tensor(*shape, dtype=getattr(wengert, one))
        y = _tensor(*other_shape, dtype=getattr(wengert, other), seed=1)
        dims = (0, 0 if other_shape[:1] == (2,) else None)
        for function in (wengert.mul, wengert.div, wengert.eq, wengert.logical_and):
            _check(function, (x, y), dims)
        condition = _tensor(2, 3) > 0
        _check(wengert.where, (condition, x, y), (0, *dims))
        _check(wengert.where, (condition[0, 0], x, y), (None, *dims))


def test_numbers_stay_weak():
    for dtype in (wengert.int32, wengert.float32, wengert.bool):
        for number in (2, 2.5, True):
            _check(lambda x, n=number: x * n, (_tensor(3, dtype=dtype),), (0,))


def test_an_in_place_operation_keeps_the_dtype():
    x, y = _tensor(2, 3), _tensor(2, dtype=wengert.float64)
    _check(lambda x, y: x.clone().mul_(y), (x, y), (0, 0))
    with pytest.raises(RuntimeError, match="can't be cast"):
        wengert.vmap(lambda x, y: x.clone().mul_(y))(_tensor(2, 3, dtype=wengert.int32), y)
    with pytest.raises(RuntimeError, match="can't be cast"):
        wengert.vmap(lambda x: x.addr_(x[0] * 1j, x[0] * 1j))(_tensor(2, 3, 3))


# Indices ------------------------------------------------------------------------------------------

PLACES = [
    lambda i, j: (i,),
    lambda i, j: (slice(None), i),
    lambda i, j: (..., i),
    lambda i, j: (i, j),
    lambda i, j: (slice(None), i, j),
    lambda i, j: (i, slice(None), j),
    lambda i, j: (None, i, ..., j),
    lambda i, j: (1, i),
    lambda i, j: (i, slice(1, 3)),
]
CHOICES = [c for c in itertools.product((0, None), repeat=3) if any(d == 0 for d in c)]


def _indexed(dims, first, second):
    """A tensor and two tensors of indices, batched as `dims` say."""
    sizes = [(2,) if d == 0 else () for d in dims]
    return (
        _tensor(*sizes[0], 3, 4, 5),
        _tensor(*sizes[1], *first, high=3, seed=1),
        _tensor(*sizes[2], *second, high=3, seed=2),
    )


@pytest.mark.parametrize("dims", CHOICES)
@pytest.mark.parametrize("place", range(len(PLACES)))
def test_batched_and_shared_indices(place, dims):
    for first, second in (((4,), (4,)), ((2, 1), (4,)), ((), (4,)), ((4,), ()), ((), ())):
        args = _indexed(dims, first, second)
        _check(lambda x, i, j: x[PLACES[place](i, j)], args, dims)


@pytest.mark.parametrize("dims", [c for c in CHOICES if c[0] == 0])
@pytest.mark.parametrize("place", range(len(PLACES)))
def test_assignment_by_batched_and_shared_indices(place, dims):
    def assigned(x, i, j, value):
        x = x.clone()
        x[PLACES[place](i, j)] = value
        return x

    for first, second in (((4,), (4,)), ((), (4,)), ((4,), ()), ((), ())):
        args = _indexed(dims, first, second)
        row = [a[0] if d == 0 else a for a, d in zip(args, dims)]
        part = row[0][PLACES[place](*row[1:])]
        # Equal values, since which of several writes to one place stays is not defined; but for
        # the dimensions that no index is for.
        value = wengert.zeros((2, *part.shape))
        value += wengert.tensor([1.0, 2.0]).reshape(2, *[1] * part.ndim)
        _check(assigned, (*args, value), (*dims, 0))
        _check(assigned, (*args, value[0]), (*dims, None))
        _check(assigned, (*args, wengert.tensor([3.0, 4.0])), (*dims, 0))


def test_assigned_values_go_where_they_belong():
    x, i, v = wengert.zeros(2, 3, 4, 5), wengert.tensor([[2, 0], [1, 2]]), _tensor(2, 3, 2, 5)

    def assigned(x, i, v):
        x = x.clone()
        x[:, i] = v
        return x

    for dims in ((0, 0, 0), (0, None, 0), (0, 0, None), (0, None, None)):
        args = [a if d == 0 else a[0] for a, d in zip((x, i, v), dims)]
        _check(assigned, args, dims)


def test_one_value_by_a_mask_of_each_example():
    x = _tensor(2, 3, 4)

    def assigned(x, mask, value):
        x = x.clone()
        x[mask] = value
        return x

    _check(lambda x: assigned(x, x > 0, 7), (x,), (0,))
    _check(lambda x, v: assigned(x, x > 0, v), (x, _tensor(2)), (0, 0))
    _check(lambda x, v: assigned(x, x[:, 0] > 0, v), (x, _tensor(2, 4)), (0, 0))
    _check(lambda x, v: assigned(x, x[:, 0] > 0, v), (x, _tensor(4)), (0, None))
    _check(lambda x, v: x.index_put((x > 0,), v, True), (x, _tensor(2)), (0, 0))
    with pytest.raises(RuntimeError, match="dynamic shape"):
        wengert.vmap(lambda x: assigned(x, x[:, 0] > 0, x[:2]))(x)


def test_a_wrong_index_of_one_example_is_found():
    x, table, i = _tensor(2, 3), _tensor(2, 3, 4), wengert.tensor([[0], [3]])
    for call in (
        lambda x, table, i: x[i], lambda x, table, i: x.gather(0, i),
        lambda x, table, i: x.index_select(0, i), lambda x, table, i: x.take(i),
        lambda x, table, i: wengert.embedding(table, i),
        lambda x, table, i: wengert.embedding(table, i - 1),
    ):  # fmt: skip
        with pytest.raises((IndexError, RuntimeError), match="out of (range|bounds)"):
            wengert.vmap(call)(x, table, i)


# Wrong calls --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x[0].select(0, 0),
        lambda x: x[0].unbind(),
        lambda x: x[0][:1],
        lambda x: x[None, None].t(),
        lambda x: x.softmax(1),
        lambda x: x.sum((0, 0)),
        lambda x: x.permute(0, 1),
        lambda x: x.view(2, 2),
        lambda x: x.expand(-1, 3, 3),
        lambda x: x.expand(3, 1)[0].expand(()),
        lambda x: x.repeat(()),
        lambda x: x.tril(),
        lambda x: x.diagonal(),
        lambda x: x[0].diag_embed(),
        lambda x: x.trace(),
        lambda x: x.rot90(),
        lambda x: x.roll((1, 1), (0,)),
        lambda x: x[0].roll(1, 0),
        lambda x: x.unfold(1, 1, 1),
        lambda x: x.gather(1, x.long()),
        lambda x: x.mm(x),
        lambda x: x.mv(x),
        lambda x: x.bmm(x),
        lambda x: x.dot(x[:2]),
        lambda x: x.addmm(x, x),
        lambda x: x.index_select(0, x.long()[None]),
        lambda x: x.add_(x.new_ones(2, 3)),
        lambda x: x.copy_(x.new_ones(2, 3)),
        lambda x: x.masked_fill_(x.new_ones(2, 3) > 0, 1),
        lambda x: x[0].view(wengert.int16),
        lambda x: wengert.view_as_complex(x[0]),
        lambda x: wengert.nn.functional.pad(x, (1, 1, 1, 1)),
        lambda x: wengert.nn.functional.layer_norm(x, (2,), x[:2], x[:2]),
    ],
)
def test_a_batch_dimension_is_not_counted(call):
    """What is wrong for one example is wrong for a batch of them."""
    x = _tensor(2, 3)
    with pytest.raises((RuntimeError, IndexError)):
        call(x[0].clone())
    with pytest.raises((RuntimeError, IndexError)):
        wengert.vmap(call)(x.clone())


def test_examples_of_no_elements_and_no_examples():
    weight = _tensor(4, 3)
    for shape in ((0, 4), (2, 0, 4), (0, 0, 4)):
        x = wengert.zeros(shape)
        flat = (shape[0], int(np.prod(shape[1:])))
        vmap = wengert.vmap
        assert vmap(lambda x: x @ weight)(x).shape == (*shape[:-1], 3)
        assert vmap(lambda x: x.sum())(x).shape == shape[:1]
        assert vmap(lambda x: x.reshape(-1))(x).shape == flat
        assert vmap(lambda x: x.sort().values)(x).shape == shape
        assert vmap(lambda x: x[..., wengert.tensor([0, 1])])(x).shape == (*shape[:-1], 2)
        assert vmap(lambda x: wengert.nn.functional.layer_norm(x, (4,)))(x).shape == shape


# What a rule calls --------------------------------------------------------------------------------


class _Calls(TorchDispatchMode):
    """The names of all operators called."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func._schema.name.removeprefix("aten::"))
        return func(*args, **(kwargs or {}))


def _calls(function, *args, dim=0):
    with _Calls() as calls:
        wengert.vmap(function, dim, dim)(*args)
    return calls.names


def test_many_small_products_are_one_large_product():
    x, w = _tensor(5, 2, 3), _tensor(3, 4)
    assert _calls(lambda x: x @ w, x) == ["view", "mm", "_unsafe_view"]
    assert _calls(lambda x: wengert.nn.functional.linear(x, w.t(), w[0]), x).count("_affine") == 1
    assert "bmm" not in _calls(lambda x: w @ x, _tensor(4, 2, 5), dim=2)
    assert "expand" not in _calls(lambda x: wengert.addmm(w[0], x, w), x)


def test_an_elementwise_operator_is_called_once():
    x, y = _tensor(3, 2), _tensor(3, 2)
    assert _calls(lambda x, y: x * y, x, y) == ["mul"]
    assert _calls(lambda x, y: x * y, x, y, dim=1) == ["mul"]
    assert _calls(lambda x: x.exp(), x, dim=1) == ["exp"]
    assert _calls(lambda x, y: x.mul_(y), x, y) == ["mul_"]


def test_indices_are_written_in_place():
    x, i = _tensor(3, 4), wengert.tensor([0, 2])
    assert "copy_" not in _calls(lambda x: x.index_fill_(0, i, 1), x)
    assert "copy_" not in _calls(lambda x: x.__setitem__(i, 1) or x, x)
    assert "copy_" not in _calls(lambda x: x.scatter_(0, i, x.exp()), x)


# Operators that have no rule of their own ---------------------------------------------------------


def test_a_loop_warns_once_unless_it_gives_a_reason():
    def declare(name, **options):
        return nondifferentiable(
            f"{name}(Tensor self, Tensor other) -> (Tensor, Tensor)",
            lambda xp, x, y: (x + y, x - y),
            **options,
        )

    silent = declare("_test_silent", batch=one_by_one("a test"))
    loud = declare("_test_loud", batch=None)
    x, y = _tensor(3, 2), _tensor(2)
    try:
        with pytest.warns(UserWarning, match="performance drop because _test_loud"):
            got = wengert.vmap(loud, (1, 0))(x, y)
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert_same(wengert.vmap(loud, (1, 0))(x, y), got)
            assert_same(wengert.vmap(silent, (1, 0))(x, y), got)
        assert_same(got, ((x + y).t(), (x - y).t()))
        with pytest.raises(RuntimeError, match="batch of size 0"):
            wengert.vmap(silent, (0, None))(x[:0], y)
    finally:
        from wengert.core.registry import operators

        del operators()["_test_silent"], operators()["_test_loud"]


def test_a_custom_operator_writes_each_example_into_its_own_target():
    @wengert.library.custom_op("test_batching::add_into", mutates_args=("target",))
    def add_into(target: wengert.Tensor, x: wengert.Tensor) -> None:
        target.add_(x)

    def function(x, target=None):
        target = x.clone() if target is None else target
        add_into(target, x)
        return target

    x = _tensor(2, 3)
    with pytest.warns(UserWarning, match="performance drop"):
        assert_same(wengert.vmap(function)(x), x * 2)
    with pytest.raises(RuntimeError, match="inplace arithmetic"):
        wengert.vmap(lambda x: function(x, wengert.zeros(3)))(x)
