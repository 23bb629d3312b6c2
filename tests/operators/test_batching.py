"""vmap of every operation equals a Python loop, in values and derivatives; what it refuses."""

from functools import partial

import numpy as np
import pytest

import wengert
from operators.support import (
    assert_close,
    assert_same,
    build,
    call,
    differentiable,
    each_sample,
    map_tensors,
    results,
    weights_like,
)
from wengert import func

KINDS = ("real", "complex", "integer")
SIZE = 2
#: Operations that read values: what each of them would return has no common shape, or is no tensor.
READERS = {
    "allclose", "argwhere", "bincount", "equal", "nonzero", "unique", "unique_consecutive",
    "where of one",
}  # fmt: skip
#: Operations in which a mask decides the shape of the result.
MASKED = {"Tensor.__getitem__", "masked_select"}
#: Operations that write into a copy of their first tensor, which therefore must be batched.
WRITERS = {"Tensor.__setitem__", "Tensor.copy", "Tensor.fill by a tensor"}
REFUSED = "dynamic shape|data-dependent control flow|inplace arithmetic"


def _tensors(sample):
    found = []
    map_tensors(wengert, sample, lambda t: found.append(t) or t)
    return found


def _with(sample, tensors):
    """The built sample with other tensors."""
    given = iter(tensors)
    return map_tensors(wengert, sample, lambda t: next(given))


def _variant(tensor, number):
    """A tensor like the given one for another example: reversed, and slightly smaller."""
    array = tensor.detach().numpy()
    if number % 2:
        array = np.flip(array).copy()
    if array.dtype.kind in "fc":
        array = array * (1 - 0.05 * number)
    return wengert.tensor(array)


def _batch(tensor, numbers, dim, packed=True):
    """Variants of a tensor along a new dimension, which `packed` is in that place in memory too."""
    batch = wengert.stack([_variant(tensor, number) for number in numbers], 0)
    return batch.movedim(0, dim).contiguous() if packed else batch.movedim(0, dim)


def _choices(count):
    """Which of several tensors to batch: each alone, and all."""
    alone = [tuple(i == k for i in range(count)) for k in range(count)]
    return alone if count < 2 else [*alone, (True,) * count]


def _is_refused(operation, tensors, chosen):
    """Whether an operation cannot be mapped over the chosen tensors."""
    if operation.name in READERS:
        return True
    if operation.name in MASKED and any(
        c and t.array.dtype.kind == "b" for t, c in zip(tensors, chosen)
    ):
        return True
    if operation.name in WRITERS and not chosen[0]:
        return True
    if operation.name in ("Tensor.__setitem__", "index_put"):
        masks = [t for t, c in zip(tensors, chosen) if c and t.array.dtype.kind == "b"]
        values = tensors[-1].ndim if tensors[-1].array.dtype.kind != "b" else 0
        return any(values > tensors[0].ndim - mask.ndim for mask in masks)
    return False


def _vmap(operation, built, in_dims, out_dims=0):
    """The operation mapped over the tensors of a sample."""

    def function(*tensors):
        return tuple(results(call(operation, wengert, _with(built, tensors))))

    return wengert.vmap(function, in_dims, out_dims, randomness="same")


def _loop(operation, built, rows, dim=0):
    """The results for all examples, each on its own, joined."""
    each = [results(call(operation, wengert, _with(built, row))) for row in rows]
    return [wengert.stack(list(parts), dim) for parts in zip(*each, strict=True)]


without_fallback = pytest.mark.filterwarnings("error:There is a performance drop")

# Values -------------------------------------------------------------------------------------------


@without_fallback
@each_sample(kinds=KINDS)
def test_vmap_is_a_loop(operation, sample):
    built = build(wengert, sample)
    tensors = _tensors(built)
    for chosen in _choices(len(tensors)):
        rows = [
            [_variant(t, i) if c else t for t, c in zip(tensors, chosen)] for i in range(SIZE)
        ]
        for dim in (0, -1):
            batch = partial(_batch, numbers=range(SIZE), dim=dim, packed=operation.any_layout)
            given = [batch(t) if c else t for t, c in zip(tensors, chosen)]
            mapped = _vmap(operation, built, tuple([dim if c else None for c in chosen]), dim)
            if _is_refused(operation, tensors, chosen):
                with pytest.raises(RuntimeError, match=REFUSED):
                    mapped(*given)
            else:
                assert_same(mapped(*given), _loop(operation, built, rows, dim))


@without_fallback
@each_sample(lambda o: o.name not in READERS, KINDS)
def test_nested_vmap_is_a_loop(operation, sample):
    built = build(wengert, sample)
    tensors = _tensors(built)
    choices = _choices(len(tensors))
    for outer in choices:
        inner = choices[-1] if outer is not choices[-1] else choices[0]
        both = tuple([a or b for a, b in zip(outer, inner)])
        if any(_is_refused(operation, tensors, c) for c in (outer, inner, both)):
            continue
        rows = [
            [_variant(t, a * i + 2 * b * k) for t, a, b in zip(tensors, outer, inner)]
            for i in range(SIZE)
            for k in range(SIZE)
        ]
        given, outer_dims, inner_dims = [], [], []
        for tensor, a, b in zip(tensors, outer, inner):
            numbers = [a * i + 2 * b * k for i in range(SIZE if a else 1) for k in range(1 + b)]
            batch = _batch(tensor, numbers, 0)
            if a and b:
                batch = batch.unflatten(0, (SIZE, SIZE))
                if operation.any_layout:
                    batch = batch.movedim(1, -1).contiguous()
            given.append(batch if a or b else tensor)
            outer_dims.append(0 if a else None)
            inner_dims.append((-1 if a and operation.any_layout else 0) if b else None)
        mapped = _vmap(operation, built, tuple(inner_dims))
        mapped = wengert.vmap(mapped, tuple(outer_dims), randomness="same")
        want = _loop(operation, built, rows)
        assert_same(mapped(*given), [w.unflatten(0, (SIZE, SIZE)) for w in want])


OTHER_DTYPES = {"f": ("float16", "bfloat16"), "i": ("int32", "uint8")}


def _turned(tensor, number):
    return tensor.flip(tuple(range(tensor.ndim))) if number else tensor.clone()


@without_fallback
@each_sample(lambda o: o.half and o.name not in READERS, ("real", "integer"))
def test_vmap_is_a_loop_in_other_types(operation, sample):
    for dtype in OTHER_DTYPES[sample.arrays()[0].dtype.kind] if sample.arrays() else ():
        built = build(wengert, sample, dtype)
        tensors = _tensors(built)
        if _is_refused(operation, tensors, (True,) * len(tensors)):
            continue
        rows = [[_turned(t, i) for t in tensors] for i in range(SIZE)]
        given = [wengert.stack(list(parts)) for parts in zip(*rows, strict=True)]
        mapped = _vmap(operation, built, (0,) * len(tensors))
        try:
            want = _loop(operation, built, rows)
        except (RuntimeError, TypeError) as refusal:
            with pytest.raises(type(refusal)):
                mapped(*given)
            continue
        assert_same(mapped(*given), want, 4)


# Derivatives --------------------------------------------------------------------------------------


def _is_mappable(operation):
    return operation.differentiable and operation.name not in READERS


def _data(built):
    """For each tensor of a sample whether it is data, which derivatives are taken by."""
    return [t.requires_grad for t in _tensors(built)]


def _weights(outputs):
    return [wengert.tensor(w) for w in weights_like(outputs)]


def _floating(value):
    return [t for t in results(value) if t.is_floating_point() or t.is_complex()]


def _derivative_choices(operation, tensors, data):
    """Which tensors to batch: the data, and everything if there is more."""
    every = [True] * len(data)
    return [c for c in ([data] if data == every else [data, every])
            if any(data) and not _is_refused(operation, tensors, c)]


@without_fallback
@each_sample(_is_mappable)
def test_gradient_of_vmap_is_that_of_the_loop(operation, sample):
    built = build(wengert, sample, requires_grad=True)
    tensors, data = _tensors(built), _data(built)
    for chosen in _derivative_choices(operation, tensors, data):
        batch = partial(_batch, numbers=range(SIZE), packed=operation.any_layout)
        given = [batch(t, dim=-1) if c else t for t, c in zip(tensors, chosen)]
        leaves = [t.requires_grad_() for t, d in zip(given, data) if d]
        rows = [[t.select(-1, i) if c else t for t, c in zip(given, chosen)] for i in range(SIZE)]
        if not operation.any_layout:
            rows = [[t.clone() for t in row] for row in rows]
        mapped = _vmap(operation, built, tuple([-1 if c else None for c in chosen]))
        found = []
        for outputs in (mapped(*given), _loop(operation, built, rows)):
            outputs = differentiable(outputs)
            if not outputs:
                return
            weights = [w.to(o.dtype) for w, o in zip(_weights(outputs), outputs)]
            found.append(wengert.autograd.grad(outputs, leaves, weights, allow_unused=True))
        for leaf, got, want in zip(leaves, *found, strict=True):
            nothing = wengert.zeros_like(leaf)
            assert_close(nothing if got is None else got, nothing if want is None else want)


def _function(operation, built, tensors, data):
    """The floating-point results as a function of the data alone; and the data."""

    def function(*leaves):
        given = iter(leaves)
        row = [next(given) if d else t for t, d in zip(tensors, data)]
        return tuple(_floating(call(operation, wengert, _with(built, row))))

    return function, [t for t, d in zip(tensors, data) if d]


def _pulled_back(operation, built, tensors, data):
    """Gradients by the data of a weighted sum of the results."""
    function, leaves = _function(operation, built, tensors, data)
    outputs, pull = func.vjp(function, *leaves)
    own = 1 + leaves[0].detach().abs().sum()
    return pull(tuple([(w * own).to(o.dtype) for w, o in zip(_weights(outputs), outputs)]))


def _pushed_forward(operation, built, tensors, data):
    """Tangents of the results for tangents that depend on the data."""
    function, leaves = _function(operation, built, tensors, data)
    tangents = [u.to(t.dtype) * (t + 1) for u, t in zip(_weights(leaves), leaves)]
    return func.jvp(function, tuple(leaves), tuple(tangents))[1]


def _check_derivative(derivative, operation, sample):
    built = build(wengert, sample, requires_grad=True)
    data = _data(built)
    tensors = [t.detach() for t in _tensors(built)]
    for chosen in _derivative_choices(operation, tensors, data):
        rows = [[_variant(t, i) if c else t for t, c in zip(tensors, chosen)] for i in range(SIZE)]
        if not _floating(call(operation, wengert, _with(built, rows[0]))):
            continue
        given = [_batch(t, range(SIZE), 0) if c else t for t, c in zip(tensors, chosen)]
        in_dims = tuple([0 if c else None for c in chosen])
        mapped = wengert.vmap(
            lambda *row: derivative(operation, built, row, data), in_dims, randomness="same"
        )
        want = [derivative(operation, built, row, data) for row in rows]
        for got, *parts in zip(mapped(*given), *want, strict=True):
            assert_close(got, wengert.stack(parts))


@without_fallback
@each_sample(_is_mappable)
def test_vmap_of_gradients_is_a_loop(operation, sample):
    _check_derivative(_pulled_back, operation, sample)


@without_fallback
@each_sample(_is_mappable)
def test_vmap_of_tangents_is_a_loop(operation, sample):
    _check_derivative(_pushed_forward, operation, sample)


# In place -----------------------------------------------------------------------------------------


def _has_inplace(operation):
    path = operation.path or operation.name
    return isinstance(path, str) and path.isidentifier() and hasattr(wengert.Tensor, path + "_")


def _change_whole(method, x, *args, **kwargs):
    target = x.clone()
    assert getattr(target, method)(*args, **kwargs) is target
    return target


def _change_part(method, x, *args, **kwargs):
    """Change one of two equal parts; the other must stay."""
    base = wengert.stack([x, x], -1)
    getattr(base.select(-1, 1), method)(*args, **kwargs)
    return base


@without_fallback
@each_sample(_has_inplace, KINDS)
def test_in_place_is_a_loop(operation, sample):
    built = build(wengert, sample)
    tensors = _tensors(built)
    if not tensors or built.args[0] is not tensors[0]:
        return
    for change in (_change_whole, _change_part):

        def changed(*row, change=change):
            made = _with(built, row)
            return change(operation.name + "_", *made.args, **made.kwargs)

        for chosen in _choices(len(tensors)):
            dims = tuple([0 if c else None for c in chosen])
            given = [_batch(t, range(SIZE), 0) if c else t for t, c in zip(tensors, chosen)]
            rows = [
                [_variant(t, i) if c else t for t, c in zip(tensors, chosen)] for i in range(SIZE)
            ]
            try:
                want = wengert.stack([changed(*row) for row in rows])
            except (RuntimeError, IndexError):
                want = None
            if want is None or not chosen[0]:
                with pytest.raises((RuntimeError, IndexError)):
                    wengert.vmap(changed, dims)(*given)
            else:
                assert_same(wengert.vmap(changed, dims)(*given), want)


@without_fallback
@each_sample(lambda o: _is_mappable(o) and _has_inplace(o))
def test_gradient_of_vmap_in_place_is_that_of_the_loop(operation, sample):
    built = build(wengert, sample, requires_grad=True)
    data = _data(built)
    tensors = [t.detach() for t in _tensors(built)]
    if not data or not data[0] or built.args[0] is not _tensors(built)[0]:
        return
    given = [_batch(t, range(SIZE), 0) if d else t for t, d in zip(tensors, data)]
    leaves = [t.requires_grad_() for t, d in zip(given, data) if d]

    def changed(*row):
        made = _with(built, row)
        return _change_part(operation.name + "_", *made.args, **made.kwargs)

    rows = [[t[i] if d else t for t, d in zip(given, data)] for i in range(SIZE)]
    try:
        want = wengert.stack([changed(*row) for row in rows])
    except (RuntimeError, IndexError):
        return
    got = wengert.vmap(changed, tuple([0 if d else None for d in data]))(*given)
    (weights,) = _weights([want])
    for mine, other in zip(
        wengert.autograd.grad(got, leaves, weights), wengert.autograd.grad(want, leaves, weights)
    ):
        assert_close(mine, other)
