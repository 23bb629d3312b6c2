"""Forward mode: the primals that `unpack_dual` returns, and parts of duals that are assigned to."""

import pytest


@pytest.fixture
def forward_ad(lib):
    with lib.autograd.forward_ad.dual_level():
        yield lib.autograd.forward_ad


@pytest.fixture
def dual(lib, forward_ad):
    """A computed tensor [4, 9] with the tangent [8, 6]."""
    x = forward_ad.make_dual(lib.tensor([2.0, 3.0]), lib.tensor([2.0, 1.0]))
    return x * x


@pytest.fixture
def tangent(forward_ad):
    def tangent(t):
        found = forward_ad.unpack_dual(t).tangent
        return None if found is None else found.tolist()

    return tangent


# Primals ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "use",
    [
        lambda p: p,
        lambda p: p * 3,
        lambda p: p[:1],
        lambda p: p.view_as(p),
        lambda p: p.split(1)[1],
        lambda p: p.view(2, 1)[0].clone(),
    ],
)
@pytest.mark.parametrize("part", [lambda y: y, lambda y: y[:], lambda y: y.view(1, 2).unbind(0)[0]])
def test_primal_of_a_computed_tensor_has_no_tangent(forward_ad, dual, tangent, use, part):
    primal = forward_ad.unpack_dual(part(dual)).primal
    assert tangent(use(primal)) is None
    assert tangent(primal * dual) == [32.0, 54.0]


def test_primal_is_a_view_of_the_dual(lib, forward_ad, dual):
    primal = forward_ad.unpack_dual(dual).primal
    assert primal._base is dual
    plain = lib.ones(2)
    assert forward_ad.unpack_dual(plain).primal._base is plain


def test_primal_can_be_made_dual_again(lib, forward_ad, dual, tangent):
    again = forward_ad.make_dual(forward_ad.unpack_dual(dual).primal, lib.tensor([5.0, 7.0]))
    assert tangent(again * 2) == [10.0, 14.0]
    assert tangent(again[1:] * again[1:]) == [126.0]
    assert tangent(dual) == [8.0, 6.0]


def test_change_of_a_primal_leaves_the_tangent_of_the_dual(forward_ad, dual, tangent):
    primal = forward_ad.unpack_dual(dual).primal
    primal.mul_(2)
    assert dual.tolist() == [8.0, 18.0]
    assert tangent(dual) == [8.0, 6.0]
    assert tangent(primal) is None


def test_tangents_written_to_a_primal_are_its_own(lib, forward_ad, dual, tangent):
    primal = forward_ad.unpack_dual(dual).primal
    view = primal[1:]
    whole, first = primal.view(2, 1), primal.split(1)[0]
    view.mul_(forward_ad.make_dual(lib.tensor([1.0]), lib.tensor([3.0])))
    assert tangent(primal) == [0.0, 27.0]
    assert tangent(view) == [27.0]
    assert tangent(whole) == [[0.0], [27.0]]
    assert tangent(first) == [0.0]
    assert tangent(dual) == [8.0, 6.0]
    primal.add_(dual)
    assert tangent(primal) == [8.0, 33.0]
    assert tangent(view) == [33.0]
    assert tangent(dual) == [8.0, 6.0]


def test_view_of_a_primal_that_was_transposed_since(lib, forward_ad, tangent):
    x = forward_ad.make_dual(lib.arange(6.0).reshape(2, 3), lib.ones(2, 3))
    y = (x * 1).unsqueeze(0)
    primal = forward_ad.unpack_dual(y).primal
    row = primal[0, 1]
    primal.transpose_(1, 2)
    weight = lib.arange(6.0).reshape(1, 3, 2)
    primal.mul_(forward_ad.make_dual(lib.ones(1, 3, 2), weight))
    assert tangent(primal) == (primal * weight).tolist()
    assert tangent(y) == [[[1.0] * 3] * 2]
    assert row.tolist() == [3.0, 4.0, 5.0]


def test_tangent_of_a_view_of_a_dual_whose_primal_gets_one(lib, forward_ad, tangent):
    primal = lib.ones(2)
    dual = forward_ad.make_dual(primal, lib.tensor([1.0, 2.0]))
    primal.mul_(forward_ad.make_dual(lib.ones(2), lib.tensor([10.0, 20.0])))
    view = dual[1:]
    primal.mul_(forward_ad.make_dual(lib.ones(2), lib.tensor([10.0, 20.0])))
    assert tangent(view) == [2.0]
    assert tangent(primal) == [20.0, 40.0]


@pytest.mark.parametrize("kind", ["grad", "backward"])
def test_gradient_through_a_primal(lib, forward_ad, kind):
    x = lib.tensor([2.0], requires_grad=True)
    y = forward_ad.make_dual(x, lib.ones(1)) ** 2
    product = forward_ad.unpack_dual(y).primal * y
    if kind == "grad":
        (gradient,) = lib.autograd.grad(product.sum(), x)
    else:
        product.sum().backward()
        gradient = x.grad
    assert gradient.tolist() == [32.0]
    assert forward_ad.unpack_dual(product).tangent.tolist() == [16.0]


# Assignments to parts -----------------------------------------------------------------------------


def test_part_of_a_dual_is_scaled(dual, tangent):
    dual[:1] *= 3
    assert dual.tolist() == [12.0, 9.0]
    assert tangent(dual) == [24.0, 6.0]


def test_part_of_a_plain_tensor_is_scaled_by_a_dual(lib, dual, tangent):
    y = lib.ones(2)
    y[1:] *= dual[1:]
    assert y.tolist() == [1.0, 9.0]
    assert tangent(y) == [0.0, 6.0]


def test_part_is_assigned_to_itself(dual, tangent):
    dual[...] = dual
    dual[1:] = dual[1:]
    assert tangent(dual) == [8.0, 6.0]


def test_part_is_scaled_inside_jvp(lib):
    def func(x):
        y = x * x
        y[:1] *= 3
        return y

    x = lib.tensor([2.0, 3.0])
    value, tangent = lib.func.jvp(func, (x,), (lib.tensor([2.0, 1.0]),))
    assert value.tolist() == [12.0, 9.0]
    assert tangent.tolist() == [24.0, 6.0]
    jacobian = lib.func.jacfwd(func)(x)
    assert jacobian.tolist() == [[12.0, 0.0], [0.0, 6.0]]


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (lambda lib, z: z.imag, [8j, 6j]),
        (lambda lib, z: z.real, [8, 6]),
        (lambda lib, z: lib.view_as_real(z)[:, 1], [8j, 6j]),
    ],
)
def test_a_part_of_complex_numbers_gives_them_a_complex_tangent(
    lib, dual, tangent, part, expected
):
    z = lib.zeros(2, dtype=lib.complex64)
    part(lib, z).copy_(dual)
    assert tangent(z) == expected
    assert tangent(part(lib, z)) == [8.0, 6.0]
    part(lib, z).mul_(dual)
    assert tangent(part(lib, z)) == [64.0, 108.0]


def test_complex_numbers_give_a_real_tensor_a_real_tangent(lib, dual, tangent):
    x = lib.zeros(2, 2)
    lib.view_as_complex(x).copy_(dual * 1j)
    assert tangent(x) == [[0.0, 8.0], [0.0, 6.0]]


def test_a_part_of_complex_numbers_inside_transforms(lib):
    def f(x):
        z = lib.zeros(2, dtype=lib.complex64)
        z.imag.copy_(x)
        z.imag.mul_(x)
        return z

    x = lib.tensor([2.0, 3.0])
    found = lib.func.jvp(f, (x,), (lib.ones(2),))[1]
    assert found.tolist() == [4j, 6j]


@pytest.mark.parametrize("dtype", ["bool", "int64", "uint8"])
@pytest.mark.parametrize(
    "write",
    [
        lambda lib, x, dual: x.copy_(dual),
        lambda lib, x, dual: x.__setitem__(slice(0, 1), dual[:1]),
        lambda lib, x, dual: x.__setitem__(..., dual),
        lambda lib, x, dual: x.__setitem__(0, dual[0]),
        lambda lib, x, dual: x.__setitem__(lib.tensor([0]), dual[:1].to(x.dtype)),
        lambda lib, x, dual: x.copy_(dual).t_(),
    ],
)
def test_whole_numbers_get_no_tangent(lib, dual, tangent, write, dtype):
    x = lib.zeros(2, dtype=getattr(lib, dtype))
    write(lib, x, dual)
    assert tangent(x) is None
    assert tangent(x * dual) == (x * lib.tensor([8.0, 6.0])).tolist()


@pytest.mark.parametrize(
    ("part", "around"),
    [
        (lambda base: base[2:4], [0, 0, 1, 1, 0, 0]),
        (lambda base: base[::3], [1, 0, 0, 1, 0, 0]),
        (lambda base: base.as_strided((2, 2), (1, 2), 1), [0, 1, 1, 1, 1, 0]),
        (lambda base: base.reshape(2, 3).t()[1:], [0, 1, 1, 0, 1, 1]),
    ],
)
def test_the_tangent_of_a_part_lies_where_the_part_does(lib, part, around):
    """A view beyond the part finds zeros beside its tangent."""
    forward_ad = lib.autograd.forward_ad
    x = part(lib.arange(6.0))
    weights = lib.ones_like(x).requires_grad_()
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, weights)
        whole = dual.as_strided((6,), (1,), 0)
        assert forward_ad.unpack_dual(whole).tangent.tolist() == around
        tangent = forward_ad.unpack_dual(dual * dual).tangent
        (gradient,) = lib.autograd.grad(tangent.sum(), weights)
        assert gradient.tolist() == (2 * x).tolist()
        dual.mul_(3)
        assert forward_ad.unpack_dual(dual).tangent.tolist() == (3 * weights).tolist()


@pytest.mark.parametrize(
    ("change", "around"),
    [
        (lambda part, whole, dual: whole.mul_(dual), [0, 1, 2, 3, 4, 5]),
        (lambda part, whole, dual: part.mul_(dual[:2]), [0, 1, 0, 0, 0, 0]),
        (lambda part, whole, dual: whole.mul_(dual).mul_(dual), [0, 2, 4, 6, 8, 10]),
        (lambda part, whole, dual: (whole.mul_(dual), part.mul_(dual[:2])), [0, 2, 2, 3, 4, 5]),
    ],
    ids=["around", "part", "twice", "both"],
)
def test_a_part_that_gets_a_tangent_leaves_room_around_it(lib, tangent, forward_ad, change, around):
    """A detached part is no part of what it was detached from, but lies in its memory."""
    part = lib.arange(6.0)[:2].detach()
    whole = part.as_strided((6,), (1,))
    change(part, whole, forward_ad.make_dual(lib.ones(6), lib.ones(6)))
    assert (tangent(part), tangent(whole)) == (around[:2], around)
    assert tangent(part.as_strided((6,), (1,))) == around
