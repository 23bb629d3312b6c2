"""`vmap`: where the batch dimensions are, trees, chunks, nesting, and what is refused."""

import functools
import re

import numpy as np
import pytest

import wengert


def test_one_argument(lib):
    x = lib.arange(6.0).reshape(2, 3)
    assert lib.vmap(lambda row: row.sum())(x).tolist() == [3.0, 12.0]


def test_the_two_names_are_one_function(lib):
    x = lib.ones(2)
    assert lib.func.vmap(lib.sin)(x).tolist() == lib.vmap(lib.sin)(x).tolist()


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -3])
def test_in_dims(lib, dim):
    x = lib.arange(24.0).reshape(2, 3, 4)
    found = lib.vmap(lambda part: part.sum(), in_dims=dim)(x)
    assert found.tolist() == [part.sum().item() for part in x.unbind(dim)]


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_out_dims(lib, dim):
    x = lib.arange(24.0).reshape(2, 3, 4)
    found = lib.vmap(lambda part: part * 2, out_dims=dim)(x)
    assert found.tolist() == lib.stack([part * 2 for part in x], dim).tolist()


def test_none_shares_an_argument(lib):
    x, y = lib.arange(6.0).reshape(2, 3), lib.tensor([1.0, 10.0, 100.0])
    found = lib.vmap(lib.dot, in_dims=(0, None))(x, y)
    assert found.tolist() == [210.0, 543.0]
    found = lib.vmap(lambda x, k: x * k, in_dims=(0, None))(x, 2)
    assert found.tolist() == (x * 2).tolist()


def test_trees_of_arguments(lib):
    x = {"a": lib.arange(6.0).reshape(3, 2), "b": [lib.arange(3.0), lib.tensor(10.0)]}
    in_dims = ({"a": 0, "b": [0, None]},)
    found = lib.vmap(lambda x: x["a"].sum() + x["b"][0] * x["b"][1], in_dims=in_dims)(x)
    assert found.tolist() == [1.0, 15.0, 29.0]


def test_an_entry_of_in_dims_serves_a_whole_subtree(lib):
    x = {"a": lib.arange(3.0), "b": (lib.arange(3.0), lib.arange(3.0))}
    found = lib.vmap(lambda x, y: x["a"] + x["b"][0] * x["b"][1] + y, in_dims=(0, None))(x, 1.0)
    assert found.tolist() == [1.0, 3.0, 7.0]


def test_trees_of_results(lib):
    x = lib.arange(3.0)
    found = lib.vmap(
        lambda x: {"a": x * lib.ones(2), "b": (x, x * 2)}, out_dims={"a": 1, "b": (0, 0)}
    )(x)
    assert tuple(found["a"].shape) == (2, 3)
    assert found["b"][1].tolist() == [0.0, 2.0, 4.0]
    found = lib.vmap(lambda x: (x * lib.ones(2), x * lib.ones(2)), out_dims=(0, 1))(x)
    assert [tuple(t.shape) for t in found] == [(3, 2), (2, 3)]


def test_results_without_a_batch_are_repeated(lib):
    constant = lib.ones(2)
    assert tuple(lib.vmap(lambda x: constant)(lib.ones(3)).shape) == (3, 2)


def test_out_dims_none(lib):
    constant = lib.ones(2)
    found = lib.vmap(lambda x: (x, constant), out_dims=(0, None))(lib.ones(3))
    assert [tuple(t.shape) for t in found] == [(3,), (2,)]
    with pytest.raises(ValueError, match="can not return a BatchedTensor when out_dim is None"):
        lib.vmap(lambda x: x, out_dims=None)(lib.ones(3))


def test_keyword_arguments_are_shared(lib):
    found = lib.vmap(lambda x, *, y: x + y)(lib.ones(2), y=lib.ones(3))
    assert tuple(found.shape) == (2, 3)


def test_captured_tensors_are_shared(lib):
    matrix = lib.arange(6.0).reshape(2, 3)
    found = lib.vmap(lambda x: matrix @ x)(lib.eye(3))
    assert found.tolist() == matrix.T.tolist()


def test_nested(lib):
    x, y = lib.arange(3.0), lib.arange(4.0)
    outer = lib.vmap(lib.vmap(lib.mul, in_dims=(None, 0)), in_dims=(0, None))
    assert outer(x, y).tolist() == (x[:, None] * y).tolist()
    cube = lib.arange(24.0).reshape(2, 3, 4)
    three = lib.vmap(lib.vmap(lib.vmap(lambda x: x * 2), in_dims=1, out_dims=1), in_dims=2)
    assert three(cube).tolist() == (cube * 2).permute(2, 0, 1).tolist()


def test_zero_examples(lib):
    found = lib.vmap(lambda x: x * 2)(lib.ones(0, 3))
    assert tuple(found.shape) == (0, 3)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 10])
def test_chunks_change_nothing(lib, size):
    x = lib.arange(10.0).reshape(5, 2)
    shared = lib.tensor([1.0, 2.0])

    def f(x, shared):
        return {"a": x * shared, "b": x.sum()}

    options = {"in_dims": (0, None), "out_dims": {"a": 1, "b": 0}}
    whole = lib.vmap(f, **options)(x, shared)
    chunked = lib.vmap(f, **options, chunk_size=size)(x, shared)
    assert chunked["a"].tolist() == whole["a"].tolist()
    assert chunked["b"].tolist() == whole["b"].tolist()


def test_chunks_with_results_that_examples_share():
    constant = wengert.ones(2)
    found = wengert.vmap(lambda x: (x, constant), out_dims=(0, None), chunk_size=2)(wengert.ones(5))
    assert [tuple(t.shape) for t in found] == [(5,), (2,)]


def test_chunks_limit_the_batch(lib):
    seen = []

    def f(x):
        seen.append(1)
        return x

    lib.vmap(f, chunk_size=2)(lib.ones(5))
    assert len(seen) == 3


@pytest.mark.parametrize("size", [0, -1])
def test_chunk_size_is_checked(lib, size):
    with pytest.raises(ValueError, match="chunk_size should be None or greater than 0"):
        lib.vmap(lib.sin, chunk_size=size)


@pytest.mark.parametrize(
    ("in_dims", "arguments", "message"),
    [
        (None, 1, "expected `in_dims` to be int or a"),
        ("a", 1, "expected `in_dims` to be int or a"),
        ([0], 1, "expected `in_dims` to be int or a"),
        ((0, 0), 1, "in_dims is not compatible with the structure of `inputs`"),
        (((0,),), 1, "in_dims is not compatible with the structure of `inputs`"),
        (("a",), 1, "in_dim must be either an integer dimension or None"),
        (3, 1, "Got in_dim=3 for some input, but that input is a Tensor of dimensionality 2"),
        (-3, 1, "Got in_dim=-3 for some input, but that input is a Tensor of dimensionality 2"),
        ((None,), 1, "Expected at least one Tensor to vmap over"),
        (0, 0, "got no inputs"),
        ((0, 1), 2, "same size in the mapped dimension"),
    ],
)
def test_in_dims_are_checked(lib, in_dims, arguments, message):
    with pytest.raises(ValueError, match=message):
        lib.vmap(lambda *args: args[0], in_dims=in_dims)(*[lib.ones(2, 3)] * arguments)


def test_only_tensors_are_mapped(lib):
    with pytest.raises(ValueError, match="Got in_dim=0 for an input but the input is of type"):
        lib.vmap(lambda x, y: x)(lib.ones(2), 3.0)
    with pytest.raises(ValueError, match=re.escape("must only return Tensors, got type")):
        lib.vmap(lambda x: 3.0)(lib.ones(2))


@pytest.mark.parametrize(
    ("out_dims", "message"),
    [
        ((0,), "out_dims is not compatible with the structure of `outputs`"),
        ((0, 0, 0), "out_dims is not compatible with the structure of `outputs`"),
        (("a", 0), "`out_dims` must be an int, None or a python collection of"),
    ],
)
def test_out_dims_are_checked(lib, out_dims, message):
    with pytest.raises(ValueError, match=message):
        lib.vmap(lambda x: (x, x), out_dims=out_dims)(lib.ones(2))


def test_out_dims_must_exist(lib):
    with pytest.raises(IndexError, match="Dimension out of range"):
        lib.vmap(lambda x: x, out_dims=4)(lib.ones(2))


def test_randomness_is_checked(lib):
    with pytest.raises(RuntimeError, match="Only allowed values for randomness are"):
        lib.vmap(lib.sin, randomness="some")(lib.ones(2))


def test_errors_name_the_function(lib):
    def compute(x):
        return 3.0

    with pytest.raises(ValueError, match="vmap\\(compute, ...\\)"):
        lib.vmap(compute)(lib.ones(2))
    with pytest.raises(ValueError, match="functools.partial\\(compute, ...\\)"):
        lib.vmap(functools.partial(compute))(lib.ones(2))
    assert lib.vmap(compute).__name__ == "compute"


def test_sizes_inside_are_those_of_one_example(lib):
    def f(x):
        assert tuple(x.shape) == (3, 4) and x.dim() == 2 and x.numel() == 12 and len(x) == 3
        assert x.size(-1) == 4 and x.ndim == 2
        return x

    lib.vmap(f)(lib.ones(2, 3, 4))
    lib.vmap(f, in_dims=1)(lib.ones(3, 2, 4))


def test_promotion_is_that_of_one_example(lib):
    """A batch of numbers does not decide the type of the result as a vector would."""
    x = lib.ones(2, 3, dtype=lib.float16)
    scale = lib.ones(2, dtype=lib.float64)
    assert lib.vmap(lambda x, s: x * s)(x, scale).dtype == lib.float16
    vectors = lib.ones(2, 3, dtype=lib.float64)
    assert lib.vmap(lambda x, s: x * s)(x, vectors).dtype == lib.float64


def test_shape_errors_are_raised(lib):
    with pytest.raises(RuntimeError, match="must match the size of tensor b"):
        lib.vmap(lambda x: x + lib.ones(4))(lib.ones(2, 3))


def test_gradients_flow_through(lib):
    x = lib.arange(6.0).reshape(2, 3).requires_grad_()
    w = lib.tensor([1.0, 2.0, 3.0], requires_grad=True)
    lib.vmap(lambda row: (row * w).sum() ** 2)(x).sum().backward()
    rows = (x.detach() * w.detach()).sum(1, keepdim=True)
    assert x.grad.tolist() == (2 * rows * w.detach()).tolist()
    assert w.grad.tolist() == (2 * rows * x.detach()).sum(0).tolist()


def test_results_require_grad_as_in_a_loop(lib):
    w = lib.tensor(2.0, requires_grad=True)

    def quiet(x):
        with lib.no_grad():
            return x * w

    assert lib.vmap(lambda x: x * w)(lib.ones(3)).requires_grad
    assert not lib.vmap(quiet)(lib.ones(3)).requires_grad
    with lib.no_grad():
        assert not lib.vmap(lambda x: x * w)(lib.ones(3)).requires_grad


def test_integers_and_booleans(lib):
    x = lib.arange(6).reshape(2, 3)
    assert lib.vmap(lambda row: (row > 2).sum())(x).tolist() == [0, 3]
    assert lib.vmap(lambda row, i: row[i])(x, lib.tensor([2, 0])).tolist() == [2, 3]


def test_many_operators_at_once(lib):
    lib.manual_seed(0)
    x = lib.randn(4, 5, 3, dtype=lib.float64)
    w = lib.randn(3, 3, dtype=lib.float64)

    def f(x):
        y = (x @ w).softmax(-1)
        z = lib.cat([y, x.flip(0)], 1).sort(1).values
        return z.mean(0), lib.einsum("ij,kj->ik", y, x).tril().logsumexp(0), y.argmax(1)

    batched = lib.vmap(f)(x)
    looped = [lib.stack(parts) for parts in zip(*[f(row) for row in x], strict=True)]
    for a, b in zip(batched, looped, strict=True):
        np.testing.assert_allclose(a.tolist(), b.tolist(), rtol=1e-12)


def test_a_callable_object_is_mapped():
    class Scale:
        factor = 3.0

        def __call__(self, x):
            return x * self.factor

    mapped = wengert.vmap(Scale())
    assert mapped(wengert.ones(2)).tolist() == [3.0, 3.0]
    assert not hasattr(mapped, "factor")


def test_no_example_of_a_tensor_with_a_strided_part_replaced():
    """PyTorch has no batching rule for it."""
    import wengert

    def write(x):
        return wengert.as_strided_scatter(x, wengert.ones(3), (3,), (2,))

    x = wengert.zeros(0, 6, requires_grad=True)
    y = wengert.vmap(write)(x)
    y.sum().backward()
    assert y.shape == (0, 6) and x.grad.shape == (0, 6)
