"""Forward mode: levels, dual tensors, views and in-place changes, together with reverse mode."""

import pytest

FORWARD = "Trying to use forward AD with"


def vector(lib, *values, **options):
    return lib.tensor(values, dtype=lib.float64, **options)


def forward_ad(lib):
    return lib.autograd.forward_ad


def make(lib, values, tangents, **options):
    return forward_ad(lib).make_dual(vector(lib, *values, **options), vector(lib, *tangents))


def tangent(lib, tensor):
    found = forward_ad(lib).unpack_dual(tensor).tangent
    return None if found is None else found.tolist()


@pytest.fixture
def level(lib):
    with forward_ad(lib).dual_level():
        yield


# Levels -------------------------------------------------------------------------------------------


def test_level_has_a_number(lib):
    module = forward_ad(lib)
    assert module.enter_dual_level() == 0
    module.exit_dual_level()
    with module.dual_level() as number:
        assert number == 0


def test_exit_names_its_level(lib):
    module = forward_ad(lib)
    number = module.enter_dual_level()
    with pytest.raises(RuntimeError, match="not the last one that was created"):
        module.exit_dual_level(level=number + 1)
    module.exit_dual_level(level=number)


def test_exit_without_level_is_refused(lib):
    with pytest.raises(RuntimeError):
        forward_ad(lib).exit_dual_level()


def test_levels_do_not_nest(lib, level):
    with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported"):
        with forward_ad(lib).dual_level():
            pass
    assert tangent(lib, make(lib, [1.0], [2.0])) == [2.0]


def test_level_ends_after_an_exception(lib):
    with pytest.raises(KeyError):
        with forward_ad(lib).dual_level():
            raise KeyError
    with forward_ad(lib).dual_level():
        pass


def test_tangents_end_with_their_level(lib):
    with forward_ad(lib).dual_level():
        x = make(lib, [1.0], [2.0])
        y = x * 3
    with forward_ad(lib).dual_level():
        assert tangent(lib, x) is None
        assert tangent(lib, y) is None


def test_level_as_decorator(lib):
    @forward_ad(lib).dual_level()
    def derivative():
        x = make(lib, [2.0], [1.0])
        return tangent(lib, x * x)

    assert derivative() == derivative() == [4.0]


# Duals --------------------------------------------------------------------------------------------


def test_unpacked_dual(lib, level):
    x = make(lib, [1.0], [2.0])
    unpacked = forward_ad(lib).unpack_dual(x)
    assert isinstance(unpacked, forward_ad(lib).UnpackedDualTensor)
    assert unpacked._fields == ("primal", "tangent")
    primal, found = unpacked
    assert (primal.tolist(), found.tolist()) == ([1.0], [2.0])


def test_primal_has_no_tangent(lib, level):
    primal = forward_ad(lib).unpack_dual(make(lib, [1.0], [2.0])).primal
    assert tangent(lib, primal) is None


def test_unpack_of_a_plain_tensor(lib, level):
    x = vector(lib, 1.0)
    unpacked = forward_ad(lib).unpack_dual(x)
    assert unpacked.tangent is None
    assert unpacked.primal.tolist() == [1.0]


def test_unpack_without_level(lib):
    x = vector(lib, 1.0)
    primal, found = forward_ad(lib).unpack_dual(x)
    assert primal is x
    assert found is None


def test_dual_is_a_view_of_the_primal(lib, level):
    primal = vector(lib, 1.0)
    x = forward_ad(lib).make_dual(primal, vector(lib, 2.0))
    assert x is not primal
    assert x._base is primal
    assert tangent(lib, primal) is None
    primal.mul_(5)
    assert x.tolist() == [5.0]


def test_dual_uses_the_memory_of_the_tangent(lib, level):
    given = vector(lib, 2.0)
    x = forward_ad(lib).make_dual(vector(lib, 1.0), given)
    given.mul_(5)
    assert tangent(lib, x) == [10.0]


def test_tangent_of_another_layout_is_copied(lib, level):
    primal = lib.ones(2, 3, dtype=lib.float64)
    given = lib.arange(6, dtype=lib.float64).reshape(3, 2).t()
    x = forward_ad(lib).make_dual(primal, given)
    assert forward_ad(lib).unpack_dual(x).tangent.stride() == (3, 1)
    assert tangent(lib, x.view(-1)) == [0.0, 2.0, 4.0, 1.0, 3.0, 5.0]


def test_given_level(lib, level):
    module = forward_ad(lib)
    x = module.make_dual(vector(lib, 1.0), vector(lib, 2.0), level=0)
    assert module.unpack_dual(x, level=0).tangent.tolist() == [2.0]
    with pytest.raises(RuntimeError, match="Invalid level"):
        module.make_dual(vector(lib, 1.0), vector(lib, 2.0), level=1)


def test_dual_without_level_is_refused(lib):
    with pytest.raises(RuntimeError, match="no level exists"):
        make(lib, [1.0], [1.0])


@pytest.mark.parametrize("sizes", [(1, 2), (2, 1), (3, 2)])
def test_tangent_of_another_size_is_refused(lib, level, sizes):
    with pytest.raises(RuntimeError, match="has a different size than that of the original"):
        forward_ad(lib).make_dual(lib.ones(sizes[0]), lib.ones(sizes[1]))


@pytest.mark.parametrize("which", ["primal", "tangent"])
def test_integers_are_refused(lib, level, which):
    floats, integers = lib.ones(2), lib.ones(2, dtype=lib.int64)
    pair = (integers, floats) if which == "primal" else (floats, integers)
    with pytest.raises(ValueError, match=f"Expected {which} to be floating point or complex"):
        forward_ad(lib).make_dual(*pair)


@pytest.mark.parametrize("wrong", [3, None, [1.0]])
def test_what_is_no_tensor_is_refused(lib, level, wrong):
    with pytest.raises((TypeError, AttributeError)):
        forward_ad(lib).make_dual(wrong, lib.ones(1))
    with pytest.raises((TypeError, AttributeError)):
        forward_ad(lib).make_dual(lib.ones(1), wrong)
    with pytest.raises(TypeError):
        forward_ad(lib).unpack_dual(wrong)


def test_dual_of_a_dual_is_refused(lib, level):
    x = make(lib, [1.0], [2.0])
    with pytest.raises(RuntimeError, match="already has a forward gradient"):
        forward_ad(lib).make_dual(x, vector(lib, 1.0))
    with pytest.raises(RuntimeError, match="itself has a forward gradient"):
        forward_ad(lib).make_dual(vector(lib, 1.0), x)


def test_text_shows_the_tangent(lib, level):
    x = forward_ad(lib).make_dual(lib.tensor([1.0]), lib.tensor([2.0]))
    assert repr(x) == "tensor([1.], tangent=tensor([2.]))"


def test_values_of_a_dual(lib, level):
    x = make(lib, [1.5], [2.0])
    assert (x.item(), x.tolist(), float(x)) == (1.5, [1.5], 1.5)


# Operations ---------------------------------------------------------------------------------------

UNARY = {
    "exp": lambda x: x.exp(),
    "sin": lambda x: x.sin(),
    "tanh": lambda x: x.tanh(),
    "power": lambda x: x**3,
    "base": lambda x: 2**x,
    "reciprocal": lambda x: 1 / x,
    "softmax": lambda x: x.softmax(0),
    "log_softmax": lambda x: x.log_softmax(0),
    "sort": lambda x: x.sort(descending=True)[0],
    "max": lambda x: x.max(0)[0].reshape(1),
    "cumsum": lambda x: x.cumsum(0),
    "cumprod": lambda x: x.cumprod(0),
    "prod": lambda x: x.prod().reshape(1),
    "norm": lambda x: x.norm().reshape(1),
    "mean": lambda x: x.mean(dim=0, keepdim=True),
    "var": lambda x: x.var().reshape(1),
    "logsumexp": lambda x: x.logsumexp(0).reshape(1),
    "outer": lambda x: x.outer(x).reshape(-1),
    "matmul": lambda x: (x.reshape(2, 1) @ x.reshape(1, 2)).reshape(-1),
    "clamp": lambda x: x.clamp(min=0.5),
    "flip": lambda x: x.flip(0),
    "where": lambda x: x.where(x > 0.5, x * x),
    "index": lambda x: x[[1, 0, 1]],
}


@pytest.mark.parametrize("case", UNARY)
def test_tangent_against_differences(lib, level, case):
    function, at, direction, step = UNARY[case], vector(lib, 0.4, 0.9), vector(lib, 1.0, -2.0), 1e-6
    x = forward_ad(lib).make_dual(at, direction)
    found = tangent(lib, function(x))
    difference = function(at + step * direction) - function(at - step * direction)
    assert found == pytest.approx((difference / (2 * step)).tolist(), rel=1e-6, abs=1e-7)


def test_constants_have_no_tangent(lib, level):
    assert tangent(lib, vector(lib, 1.0) * 2) is None
    x = make(lib, [1.0], [2.0])
    assert tangent(lib, lib.zeros_like(x)) is None
    assert tangent(lib, x.new_ones(2)) is None


def test_integers_have_no_tangent(lib, level):
    x = make(lib, [1.0, 3.0], [2.0, 2.0])
    for result in (x > 1, x.argmax(), x.long(), x.max(0)[1]):
        assert tangent(lib, result) is None


def test_operands_without_tangent(lib, level):
    x, c = make(lib, [1.0, 2.0], [3.0, 4.0]), vector(lib, 5.0, 6.0)
    assert tangent(lib, x * c) == tangent(lib, c * x) == [15.0, 24.0]
    assert tangent(lib, lib.cat([x, c])) == [3.0, 4.0, 0.0, 0.0]
    assert tangent(lib, lib.stack([c, x])) == [[0.0, 0.0], [3.0, 4.0]]


def test_broadcast_tangent(lib, level):
    x = make(lib, [2.0], [3.0])
    y = x * vector(lib, 1.0, 10.0)
    assert tangent(lib, y) == [3.0, 30.0]
    z = x + lib.zeros(2, 2, dtype=lib.float64)
    assert tangent(lib, z) == [[3.0, 3.0], [3.0, 3.0]]
    z.mul_(vector(lib, 1.0, 2.0))
    assert tangent(lib, z) == [[3.0, 6.0], [3.0, 6.0]]


def test_tangent_has_the_dtype_of_the_result(lib, level):
    x = make(lib, [1.0], [2.0])
    assert forward_ad(lib).unpack_dual(x.float()).tangent.dtype is lib.float32
    assert forward_ad(lib).unpack_dual(x.float() * x).tangent.dtype is lib.float64


def test_complex_tangents(lib, level):
    z = forward_ad(lib).make_dual(
        lib.tensor([3 + 4j], dtype=lib.complex128), lib.tensor([1 - 2j], dtype=lib.complex128)
    )
    assert tangent(lib, z * z) == [2 * (3 + 4j) * (1 - 2j)]
    assert tangent(lib, z.conj()) == [1 + 2j]
    assert tangent(lib, z.real) == [1.0]
    assert tangent(lib, z.imag) == [-2.0]
    assert tangent(lib, z.abs()) == pytest.approx([-1.0])


def test_no_grad_does_not_matter(lib, level):
    x = make(lib, [1.0], [2.0])
    with lib.no_grad():
        assert tangent(lib, x * 3) == [6.0]


def test_forward_mode_can_be_switched_off(lib, level):
    module, x = forward_ad(lib), make(lib, [1.0], [2.0])
    assert module._is_fwd_grad_enabled()
    with module._set_fwd_grad_enabled(False):
        assert not module._is_fwd_grad_enabled()
        y = x * 3
    assert tangent(lib, y) is None
    assert tangent(lib, x * 3) == [6.0]


def test_out_is_refused(lib, level):
    x, out = make(lib, [1.0], [2.0]), vector(lib, 0.0)
    with pytest.raises(NotImplementedError, match=f"{FORWARD} mul_out .* out= function"):
        lib.mul(x, x, out=out)
    with pytest.raises(NotImplementedError, match=FORWARD):
        lib.mul(vector(lib, 2.0), 2, out=x)
    lib.mul(vector(lib, 2.0), 2, out=out)
    assert out.tolist() == [4.0]


def test_operation_without_rule_is_refused(lib, level):
    with pytest.raises(NotImplementedError, match=FORWARD):
        make(lib, [1.0, 2.0], [2.0, 3.0]).unique()


# Views --------------------------------------------------------------------------------------------


def test_view_takes_its_part(lib, level):
    x = make(lib, [1.0, 2.0, 3.0], [4.0, 5.0, 6.0])
    assert tangent(lib, x[1:]) == [5.0, 6.0]
    assert tangent(lib, x.view(3, 1).t()) == [[4.0, 5.0, 6.0]]
    assert [tangent(lib, part) for part in x.unbind(0)] == [4.0, 5.0, 6.0]
    assert tangent(lib, x.expand(2, 3)) == [[4.0, 5.0, 6.0]] * 2


def test_tangent_of_a_view_is_a_view_of_the_tangent(lib, level):
    x = make(lib, [1.0, 2.0], [4.0, 5.0])
    forward_ad(lib).unpack_dual(x[1:]).tangent.mul_(10)
    assert tangent(lib, x) == [4.0, 50.0]


def test_view_made_before_the_dual_has_none(lib, level):
    primal = vector(lib, 1.0, 2.0)
    view = primal[1:]
    forward_ad(lib).make_dual(primal, vector(lib, 3.0, 4.0))
    assert tangent(lib, view) is None


@pytest.mark.parametrize("alias", ["detach", "data"])
def test_alias_outside_the_graph(lib, level, alias):
    x = make(lib, [1.0, 2.0], [4.0, 5.0])
    assert tangent(lib, x.detach() if alias == "detach" else x.data) is None


def test_detaching_in_place_drops_the_tangent(lib, level):
    x = make(lib, [1.0], [2.0]) * 1
    x.detach_()
    assert tangent(lib, x) is None


def test_clone_is_apart(lib, level):
    x = make(lib, [1.0], [2.0])
    copy = x.clone()
    x.mul_(10)
    assert tangent(lib, copy) == [2.0]


def test_reshaped_in_place(lib, level):
    x = make(lib, [1.0, 2.0], [3.0, 4.0])
    x.unsqueeze_(0)
    assert tangent(lib, x * 2) == [[6.0, 8.0]]


# In-place changes ---------------------------------------------------------------------------------


def test_change_of_a_dual(lib, level):
    x = make(lib, [1.0, 2.0], [3.0, 4.0])
    x.mul_(x.clone())
    assert x.tolist() == [1.0, 4.0]
    assert tangent(lib, x) == [6.0, 16.0]


def test_change_of_a_dual_is_seen_by_its_views(lib, level):
    x = make(lib, [1.0, 2.0], [3.0, 4.0])
    view = x[1:]
    x.mul_(10)
    assert tangent(lib, view) == [40.0]


def test_change_of_a_view_is_seen_by_its_base(lib, level):
    x = make(lib, [1.0, 2.0], [3.0, 4.0])
    x[1:].mul_(10)
    assert tangent(lib, x) == [3.0, 40.0]


def test_change_by_a_constant(lib, level):
    x = make(lib, [1.0, 2.0], [3.0, 4.0])
    x.add_(vector(lib, 1.0, 1.0))
    assert tangent(lib, x) == [3.0, 4.0]
    x[0].zero_()
    assert tangent(lib, x) == [0.0, 4.0]
    x.fill_(7.0)
    assert tangent(lib, x) == [0.0, 0.0]


def test_plain_tensor_changed_by_a_dual(lib, level):
    x, y = make(lib, [1.0, 2.0], [3.0, 4.0]), vector(lib, 5.0, 6.0)
    y.mul_(x)
    assert tangent(lib, y) == [15.0, 24.0]


def test_view_of_a_plain_tensor_changed_by_a_dual(lib, level):
    base, x = vector(lib, 5.0, 6.0, 7.0), make(lib, [1.0, 2.0], [3.0, 4.0])
    view, other = base[1:], base[:2]
    view.mul_(x)
    assert tangent(lib, base) == [0.0, 18.0, 28.0]
    assert tangent(lib, view) == [18.0, 28.0]
    assert tangent(lib, other) == [0.0, 18.0]


def test_base_changed_by_a_dual(lib, level):
    base = vector(lib, 5.0, 6.0)
    view = base[1:]
    base.mul_(make(lib, [1.0, 2.0], [3.0, 4.0]))
    assert tangent(lib, view) == [24.0]


def test_assignment(lib, level):
    x, y = make(lib, [1.0, 2.0], [3.0, 4.0]), vector(lib, 0.0, 0.0, 0.0)
    y[1] = x[0] * 2
    y[2:] = x[1:]
    assert tangent(lib, y) == [0.0, 6.0, 4.0]
    x[0] = 9.0
    assert tangent(lib, x) == [0.0, 4.0]


def test_change_writes_into_the_given_tangent(lib, level):
    given = vector(lib, 3.0)
    x = forward_ad(lib).make_dual(vector(lib, 1.0), given)
    x.mul_(10)
    assert given.tolist() == [30.0]


def test_change_of_a_result_does_not_reach_the_operand(lib, level):
    x = make(lib, [1.0, 2.0], [3.0, 4.0])
    for y in (x + 1, 1 + x, x.clone(), x.reshape(2, 1).contiguous().flatten() * 1):
        y[1:].mul_(10)
    assert tangent(lib, x) == [3.0, 4.0]


def test_one_of_several_views_of_a_base_changed_by_a_dual(lib, level):
    base = vector(lib, 5.0, 6.0, 7.0)
    first, second = base.split(2)
    base.mul_(make(lib, [1.0, 2.0, 3.0], [10.0, 20.0, 30.0]))
    assert tangent(lib, first) == [50.0, 120.0]
    assert tangent(lib, second) == [210.0]


def test_dual_keeps_its_tangent_when_its_primal_gets_one(lib, level):
    primal = vector(lib, 5.0)
    x = forward_ad(lib).make_dual(primal, vector(lib, 3.0))
    primal.mul_(make(lib, [2.0], [1.0]))
    assert (x.tolist(), tangent(lib, x)) == ([10.0], [3.0])
    assert tangent(lib, primal) == [5.0]


def test_expanded_dual_is_filled(lib, level):
    x = make(lib, [1.0], [2.0])
    y = x.expand(3)
    y.zero_()
    assert tangent(lib, y) == [0.0, 0.0, 0.0]
    assert tangent(lib, x) == [0.0]


# With reverse mode --------------------------------------------------------------------------------

SECOND = {
    "power": lambda x: x**3,
    "product": lambda x: x * x * x * x,
    "exp": lambda x: (x * x).exp(),
    "tanh": lambda x: x.tanh() * x,
    "sigmoid": lambda x: x.sigmoid() * x,
    "softmax": lambda x: x.softmax(0) * x,
    "log_softmax": lambda x: x.log_softmax(0) * x,
    "cumsum": lambda x: x.cumsum(0) * x * x,
    "matmul": lambda x: x.reshape(2, 1) @ (x * x).reshape(1, 2),
    "norm": lambda x: x.norm() * x,
    "views": lambda x: x[1:] * x[:1] * x * x.unbind(0)[1],
    "sum": lambda x: x.sum() * x.mean() * x,
}


@pytest.mark.parametrize("case", SECOND)
def test_hessian_product_by_forward_over_reverse(lib, case):
    at, direction = vector(lib, 0.4, 0.9), vector(lib, 1.0, -2.0)
    expected = hessian_product(lib, SECOND[case], at, direction)
    with forward_ad(lib).dual_level():
        x = forward_ad(lib).make_dual(at.clone().requires_grad_(), direction)
        (gradient,) = lib.autograd.grad(SECOND[case](x).sum(), x)
        assert tangent(lib, gradient) == pytest.approx(expected, rel=1e-9)


# PyTorch cannot differentiate the forward rule of softmax
@pytest.mark.parametrize("case", [case for case in SECOND if "softmax" not in case])
def test_hessian_product_by_reverse_over_forward(lib, case):
    at, direction = vector(lib, 0.4, 0.9), vector(lib, 1.0, -2.0)
    expected = hessian_product(lib, SECOND[case], at, direction)
    with forward_ad(lib).dual_level():
        leaf = at.clone().requires_grad_()
        x = forward_ad(lib).make_dual(leaf, direction)
        slope = forward_ad(lib).unpack_dual(SECOND[case](x).sum()).tangent
        (found,) = lib.autograd.grad(slope, leaf)
    assert found.tolist() == pytest.approx(expected, rel=1e-9)


def hessian_product(lib, function, at, direction):
    leaf = at.clone().requires_grad_()
    (gradient,) = lib.autograd.grad(function(leaf).sum(), leaf, create_graph=True)
    (product,) = lib.autograd.grad((gradient * direction).sum(), leaf)
    return product.tolist()


def test_gradient_in_the_tangent(lib, level):
    primal, direction = vector(lib, 2.0, requires_grad=True), vector(lib, 5.0, requires_grad=True)
    x = forward_ad(lib).make_dual(primal, direction)
    slope = forward_ad(lib).unpack_dual(x**3).tangent
    first, second = lib.autograd.grad(slope.sum(), [primal, direction])
    assert first.tolist() == [60.0]
    assert second.tolist() == [12.0]


def test_gradient_of_a_root_with_tangent(lib, level):
    x = vector(lib, 2.0, requires_grad=True)
    weight = make(lib, [1.0], [5.0])
    (gradient,) = lib.autograd.grad(x * x, x, weight)
    assert (gradient.tolist(), tangent(lib, gradient)) == ([4.0], [20.0])


def test_gradient_without_tangents(lib, level):
    x = vector(lib, 2.0, requires_grad=True)
    (gradient,) = lib.autograd.grad((x * 2).sum(), x)
    assert tangent(lib, gradient) is None


def test_flags_of_a_dual(lib, level):
    direction = vector(lib, 2.0, requires_grad=True)
    x = forward_ad(lib).make_dual(vector(lib, 1.0), direction)
    unpacked = forward_ad(lib).unpack_dual(x)
    assert (x.requires_grad, unpacked.primal.requires_grad) == (False, False)
    assert unpacked.tangent.requires_grad
    assert not (x * 2).requires_grad
    assert forward_ad(lib).unpack_dual(x * 2).tangent.requires_grad


def test_in_place_changes_between(lib):
    at, direction = vector(lib, 0.4, 0.9, 0.2), vector(lib, 1.0, -2.0, 3.0)

    def function(x):
        y = x * 1
        y[1:].sin_()
        y[:2].mul_(x[1:])
        return y * y

    expected = hessian_product(lib, function, at, direction)
    with forward_ad(lib).dual_level():
        x = forward_ad(lib).make_dual(at.clone().requires_grad_(), direction)
        (gradient,) = lib.autograd.grad(function(x).sum(), x)
        assert tangent(lib, gradient) == pytest.approx(expected, rel=1e-9)


def test_result_saved_by_a_change_of_a_view(lib):
    at, direction = vector(lib, 0.4, 0.9, 0.2), vector(lib, 1.0, -2.0, 3.0)

    def function(x):
        y = x * x
        y[1:].tanh_()
        return y * x

    expected = hessian_product(lib, function, at, direction)
    with forward_ad(lib).dual_level():
        x = forward_ad(lib).make_dual(at.clone().requires_grad_(), direction)
        (gradient,) = lib.autograd.grad(function(x).sum(), x)
        assert tangent(lib, gradient) == pytest.approx(expected, rel=1e-9)


def test_tangents_pass_saved_tensor_hooks(lib):
    def function(x):
        def pack(t):
            return t.detach().clone()

        with lib.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            return (x * x * x).exp()

    at, direction = vector(lib, 0.4, 0.9), vector(lib, 1.0, -2.0)
    expected = hessian_product(lib, function, at, direction)
    with forward_ad(lib).dual_level():
        x = forward_ad(lib).make_dual(at.clone().requires_grad_(), direction)
        (gradient,) = lib.autograd.grad(function(x).sum(), x)
        assert tangent(lib, gradient) == pytest.approx(expected, rel=1e-9)


def test_retained_gradient_has_a_tangent(lib, level):
    x = make(lib, [2.0], [1.0], requires_grad=True)
    y = x * x
    y.retain_grad()
    (y * y * y).sum().backward()
    assert y.grad.tolist() == [48.0]
    assert tangent(lib, y.grad) == [96.0]


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")
def test_recorded_gradient_of_a_leaf_has_a_tangent(lib, level):
    leaf = vector(lib, 2.0, requires_grad=True)
    x = forward_ad(lib).make_dual(leaf, vector(lib, 1.0))
    (x**3).sum().backward(create_graph=True)
    assert tangent(lib, leaf.grad) == [12.0]
    leaf.grad = None


def test_hook_sees_the_tangent(lib, level):
    x, seen = make(lib, [2.0], [1.0], requires_grad=True), []
    y = x * x
    y.register_hook(lambda g: seen.append(tangent(lib, g)))
    lib.autograd.grad((y * y).sum(), x)
    assert seen == [[8.0]]


def test_tangent_of_a_view_that_is_first_read_without_recording(lib):
    forward_ad = lib.autograd.forward_ad
    with forward_ad.dual_level():
        x = lib.ones((), requires_grad=True)
        y = forward_ad.make_dual(x, lib.ones(())) * x
        view = y.view(1)
        y.mul_(2)
        with lib.no_grad():
            view * view
        view.mul_(3)
        tangent = forward_ad.unpack_dual(view).tangent
        assert tangent.tolist() == [6.0]
        assert lib.autograd.grad(tangent, x)[0].item() == 6.0
