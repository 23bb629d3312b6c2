"""Writing where elements share memory: refused as in PyTorch, or well defined."""

import warnings

import pytest

ONE_PLACE = "more than one element of the written-to tensor refers to a single memory location"
SOME_SHARED = "some elements of the input tensor and the written-to tensor refer to a single memory"


def expanded(lib):
    return lib.zeros(1, 3).expand(2, 3)


def grid(lib):
    return lib.arange(6.0).view(2, 3)


# A target whose elements are one in memory


@pytest.mark.parametrize(
    "write",
    [
        lambda lib, x: x.mul_(2),
        lambda lib, x: x.exp_(),
        lambda lib, x: x.clamp_(0, 1),
        lambda lib, x: x.copy_(lib.ones(2, 3)),
        lambda lib, x: x.fill_(lib.tensor(2.0)),
        lambda lib, x: x.__setitem__(slice(None), 0.5),
        lambda lib, x: x.__setitem__(Ellipsis, 0.5),
        lambda lib, x: x.__setitem__(None, 0.5),
        lambda lib, x: x.__setitem__((slice(None), 1), 0.5),
        lambda lib, x: x.__setitem__((slice(None), 1), lib.tensor(0.5)),
        lambda lib, x: x.__setitem__((slice(None), 1), lib.ones(2)),
        lambda lib, x: x.scatter_(0, lib.zeros(1, 3, dtype=lib.int64), lib.ones(1, 3)),
        lambda lib, x: x.scatter_add_(0, lib.zeros(1, 3, dtype=lib.int64), lib.ones(1, 3)),
        lambda lib, x: x.index_add_(0, lib.tensor([0]), lib.ones(1, 3)),
        lambda lib, x: x.index_copy_(0, lib.tensor([0]), lib.ones(1, 3)),
        lambda lib, x: x.masked_scatter_(lib.ones(2, 3) > 0, lib.ones(6)),
        lambda lib, x: x.put_(lib.tensor([0]), lib.ones(1)),
        lambda lib, x: x.uniform_(),
        lambda lib, x: x.normal_(),
        lambda lib, x: x.bernoulli_(),
        lambda lib, x: x.exponential_(),
        lambda lib, x: x.random_(),
        lambda lib, x: lib.add(lib.ones(2, 3), 1, out=x),
    ],
)
@pytest.mark.parametrize("recording", [True, False])
def test_writing_to_an_expanded_tensor_is_refused(lib, write, recording):
    x = expanded(lib)
    with lib.set_grad_enabled(recording), pytest.raises(RuntimeError, match=ONE_PLACE):
        write(lib, x)
    assert x.tolist() == [[0.0] * 3] * 2
    assert x._version == 0


@pytest.mark.parametrize(
    ("write", "values"),
    [
        (lambda lib, x: x.fill_(2), [2.0, 2.0, 2.0]),
        (lambda lib, x: x.zero_(), [0.0, 0.0, 0.0]),
        (lambda lib, x: x.copy_(x), [0.0, 0.0, 0.0]),
        (lambda lib, x: x.__setitem__(0, 0.5), [0.5, 0.5, 0.5]),
        (lambda lib, x: x.__setitem__(0, lib.ones(3)), [1.0, 1.0, 1.0]),
        (lambda lib, x: x.__setitem__((0, 1), 0.5), [0.0, 0.5, 0.0]),
    ],
)
def test_writing_one_value_per_place_is_allowed(lib, write, values):
    x = expanded(lib)
    write(lib, x)
    assert x.tolist() == [values, values]
    assert x._version == 1


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("index_put_", lambda lib, x: x.__setitem__(lib.tensor([0, 1]), 0.5)),
        ("index_put_", lambda lib, x: x.__setitem__(lib.ones(2, 3) > 0, 0.5)),
        ("masked_fill_", lambda lib, x: x.masked_fill_(lib.ones(2, 3) > 0, 0.5)),
        ("index_fill_", lambda lib, x: x.index_fill_(0, lib.tensor([0]), 0.5)),
    ],
)
def test_writing_through_indices_warns(lib, name, write):
    x = expanded(lib)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        write(lib, x)
    assert f"Use of {name} on expanded tensors is deprecated" in str(caught[0].message)
    assert x.tolist() == [[0.5] * 3] * 2


# Operands that share memory with the target


@pytest.mark.parametrize(
    "write",
    [
        lambda lib, x: x[0].add_(x.view(-1)[1:4]),
        lambda lib, x: x.add_(x[0]),
        lambda lib, x: x.mul_(x[:1]),
        lambda lib, x: x.div_(x[0, 0]),
        lambda lib, x: x.view(-1)[1:].copy_(x.view(-1)[:-1]),
        lambda lib, x: x.copy_(x[0]),
        lambda lib, x: x.view(-1).__setitem__(slice(1, None), x.view(-1)[:-1]),
        lambda lib, x: x.view(3, 2).mul_(x.t()),
        lambda lib, x: x.addcmul_(x[:1], lib.ones(2, 3)),
        lambda lib, x: x.clamp_(x[0], x[0] + 1),
        lambda lib, x: x.__setitem__(lib.tensor([0]), x[1:]),
        lambda lib, x: x.index_add_(0, lib.tensor([0]), x[1:]),
        lambda lib, x: x.scatter_(0, lib.zeros(1, 3, dtype=lib.int64), x[1:]),
        lambda lib, x: lib.add(x.view(-1)[:-1], 1, out=x.view(-1)[1:]),
        lambda lib, x: lib.where(x[:1] > 0, x[:1], x[1:], out=x.view(-1)[1:4].view(1, 3)),
        lambda lib, x: lib.cat([x[1], x[0]], out=x.view(-1)),
    ],
)
@pytest.mark.parametrize("recording", [True, False])
def test_reading_another_part_of_what_is_written_is_refused(lib, write, recording):
    x = grid(lib)
    with lib.set_grad_enabled(recording), pytest.raises(RuntimeError, match=SOME_SHARED):
        write(lib, x)
    assert x.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


@pytest.mark.parametrize(
    ("write", "values"),
    [
        (lambda lib, x: x.add_(x), [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]),
        (lambda lib, x: x.add_(x.view(2, 3)), [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]),
        (lambda lib, x: x[0].add_(x[1]), [[3.0, 5.0, 7.0], [3.0, 4.0, 5.0]]),
        (lambda lib, x: x.mul_(x.detach()), [[0.0, 1.0, 4.0], [9.0, 16.0, 25.0]]),
        (lambda lib, x: x.copy_(x.view(2, 3)), [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]),
        (lambda lib, x: x[:, 0].add_(x[:, 1]), [[1.0, 1.0, 2.0], [7.0, 4.0, 5.0]]),
        (lambda lib, x: x[:, :2].add_(x[:, 1:]), [[1.0, 3.0, 2.0], [7.0, 9.0, 5.0]]),
        (lambda lib, x: x.fill_(x[0, 1]), [[1.0] * 3] * 2),
        (lambda lib, x: x.__setitem__(slice(None), x[1]), [[3.0, 4.0, 5.0]] * 2),
        (lambda lib, x: x.__setitem__(slice(None), x[1:]), [[3.0, 4.0, 5.0]] * 2),
        (lambda lib, x: x.__setitem__(slice(None), x[0, 1]), [[1.0] * 3] * 2),
        (lambda lib, x: x.__setitem__(x > 2, x[0, 1]), [[0.0, 1.0, 2.0], [1.0, 1.0, 1.0]]),
        (lambda lib, x: x.masked_fill_(x > 2, x[0, 1]), [[0.0, 1.0, 2.0], [1.0, 1.0, 1.0]]),
        (lambda lib, x: lib.add(x, 1, out=x), [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
    ],
)
def test_reading_the_same_or_other_elements_is_allowed(lib, write, values):
    x = grid(lib)
    write(lib, x)
    assert x.tolist() == values


def test_copy_of_a_tensor_to_itself_is_recorded_like_any_other(lib):
    leaf = lib.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        leaf.copy_(leaf)
    x = leaf * 2
    assert x.copy_(x) is x
    assert x._version == 1
    assert x.grad_fn.name().endswith("CopyBackwards")
    x.sum().backward()
    assert leaf.grad.tolist() == [2.0, 2.0]


# out= of another shape


@pytest.mark.parametrize(
    "compute",
    [
        lambda lib, out: lib.add(lib.ones(2, 3), 1, out=out),
        lambda lib, out: lib.sum(lib.ones(4, 2, 3), 0, out=out),
        lambda lib, out: lib.mm(lib.ones(2, 3), lib.ones(3, 3), out=out),
        lambda lib, out: lib.cat([lib.ones(1, 3), lib.ones(1, 3)], out=out),
        lambda lib, out: lib.sort(lib.ones(2, 3), out=(out, lib.empty(0, dtype=lib.int64)))[0],
    ],
)
def test_out_of_another_shape_is_resized_with_a_warning(lib, compute):
    out = lib.zeros(4)
    with pytest.warns(UserWarning, match="An output with one or more elements was resized"):
        assert compute(lib, out) is out
    assert out.shape == (2, 3)
    empty = lib.empty(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compute(lib, empty)
    assert empty.tolist() == out.tolist()


def test_out_must_be_a_tensor(lib):
    with pytest.raises(TypeError):
        lib.add(lib.ones(2), 1, out="a")
    with pytest.raises(TypeError):
        lib.sort(lib.ones(2), out=lib.ones(2))


def test_out_made_in_inference_mode_is_refused_outside(lib):
    with lib.inference_mode():
        out = lib.zeros(2)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside"):
        lib.add(lib.ones(2), 1, out=out)


@pytest.mark.parametrize(
    "change",
    [
        lambda lib, t, i: t.scatter_(0, i, t),
        lambda lib, t, i: t.scatter_add_(0, i, t),
        lambda lib, t, i: t.index_add_(0, i, t),
        lambda lib, t, i: t.index_copy_(0, i, t),
        lambda lib, t, i: t.put_(i, t),
    ],
)
def test_a_single_number_is_not_read_from_where_it_is_written(lib, change):
    with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to"):
        change(lib, lib.tensor(1.0), lib.tensor(0))


def test_a_value_to_fill_with_may_be_an_element(lib):
    t = lib.tensor([1.0, 2.0])
    assert t.index_fill_(0, lib.tensor([1]), t[0]).tolist() == [1.0, 1.0]
    t = lib.tensor(3.0)
    assert t.masked_fill_(lib.tensor(True), t).item() == 3.0
