"""Custom Functions: second derivatives, once_differentiable, gradcheck, forward mode."""

import warnings

import pytest

from custom_functions import double, doubled_in_place, exponential, make, product


def leaf(lib, *values):
    return lib.tensor(values or (1.0, 2.0, 3.0), dtype=lib.float64, requires_grad=True)


def gradient(lib, y, x, **options):
    return lib.autograd.grad(y.sum(), x, **options)[0]


# Second derivatives


def test_double_backward_through_saved_inputs(lib):
    x = leaf(lib)
    y = product(lib).apply(x, x * x)
    first = gradient(lib, y, x, create_graph=True)
    assert first.tolist() == [3.0, 12.0, 27.0]
    assert gradient(lib, first, x).tolist() == [6.0, 12.0, 18.0]


def test_double_backward_through_a_saved_output(lib):
    x = leaf(lib)
    y = exponential(lib).apply(x)
    first = gradient(lib, y, x, create_graph=True)
    second = gradient(lib, first, x, create_graph=True)
    third = gradient(lib, second, x)
    assert (third - x.detach().exp()).abs().max().item() < 1e-12


def test_double_backward_through_an_attribute(lib):
    def forward(ctx, x):
        ctx.x = x
        return x * x

    x = leaf(lib)
    y = make(lib, forward, lambda ctx, g: 2 * ctx.x * g).apply(x)
    first = gradient(lib, y, x, create_graph=True)
    assert gradient(lib, first, x).tolist() == [2.0] * 3


def test_double_backward_stops_at_a_saved_intermediate(lib):
    def forward(ctx, x):
        ctx.save_for_backward(x * 2)
        return x * x

    x = leaf(lib)
    y = make(lib, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x)
    first = gradient(lib, y, x, create_graph=True)
    with pytest.raises(RuntimeError, match="does not require grad"):
        first.sum().backward()


def test_double_backward_through_a_returned_intermediate(lib):
    def forward(ctx, x):
        cube = x * x * x
        square = x * x
        ctx.save_for_backward(square)
        return cube, square

    def backward(ctx, g, h):
        (square,) = ctx.saved_tensors
        return 3 * g * square + 2 * h * square.sqrt()

    x = leaf(lib)
    cube, _ = make(lib, forward, backward).apply(x)
    first = gradient(lib, cube, x, create_graph=True)
    assert (gradient(lib, first, x) - 6 * x.detach()).abs().max().item() < 1e-12


def test_backward_made_of_a_function(lib):
    inner = product(lib)

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx, g):
        return inner.apply(2 * g, ctx.saved_tensors[0])

    x = leaf(lib)
    first = gradient(lib, make(lib, forward, backward).apply(x), x, create_graph=True)
    assert first.grad_fn.name() == "ProductBackward"
    assert gradient(lib, first, x).tolist() == [2.0] * 3


def test_double_backward_of_a_linear_function(lib):
    x = leaf(lib)
    v = lib.ones(3, dtype=lib.float64, requires_grad=True)
    y = double(lib).apply(x)
    (first,) = lib.autograd.grad(y, x, v, create_graph=True)
    assert gradient(lib, first, v).tolist() == [2.0] * 3


def test_double_backward_with_other_arguments(lib):
    def forward(ctx, x, power):
        ctx.save_for_backward(x)
        ctx.power = power
        return x**power

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ctx.power * x ** (ctx.power - 1), None

    x = leaf(lib)
    first = gradient(lib, make(lib, forward, backward).apply(x, 3), x, create_graph=True)
    assert gradient(lib, first, x).tolist() == [6.0, 12.0, 18.0]


def test_double_backward_through_a_changed_input(lib):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x.exp_()

    x = leaf(lib)
    z = x * 1
    make(lib, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(z)
    first = gradient(lib, z, x, create_graph=True)
    assert (gradient(lib, first, x) - x.detach().exp()).abs().max().item() < 1e-12


def test_gradcheck(lib):
    x = leaf(lib, 0.3, -0.5, 0.7)
    y = leaf(lib, 0.2, 0.4, -0.6)
    for function, inputs in ((product(lib), (x, y)), (exponential(lib), (x,))):
        assert lib.autograd.gradcheck(function.apply, inputs)
        assert lib.autograd.gradgradcheck(function.apply, inputs)


def test_gradcheck_finds_a_wrong_gradient(lib):
    wrong = make(lib, lambda ctx, x: x * 2, lambda ctx, g: g * 3)
    with pytest.raises(RuntimeError):
        lib.autograd.gradcheck(wrong.apply, (leaf(lib),))


def test_complex_numbers(lib):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    square = make(lib, forward, lambda ctx, g: 2 * g * ctx.saved_tensors[0].conj())
    x = lib.tensor([1 + 2j, 0.5 - 1j], dtype=lib.complex128, requires_grad=True)
    assert lib.autograd.gradcheck(square.apply, (x,))


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")
def test_backward_with_create_graph(lib):
    x = leaf(lib)
    exponential(lib).apply(x).sum().backward(create_graph=True)
    assert x.grad.requires_grad
    (second,) = lib.autograd.grad(x.grad.sum(), x)
    assert (second - x.detach().exp()).abs().max().item() < 1e-12
    x.grad = None


# once_differentiable


def once(lib, backward):
    return make(
        lib, lambda ctx, x: x * 2, lib.autograd.function.once_differentiable(backward), "Once"
    )


def test_once_differentiable_runs_without_recording(lib):
    modes = []

    def backward(ctx, g):
        modes.append(lib.is_grad_enabled())
        return g * 2

    x = leaf(lib)
    gradient(lib, once(lib, backward).apply(x), x, create_graph=True)
    assert modes == [False]


def test_once_differentiable_in_the_first_derivative(lib):
    x = leaf(lib)
    once(lib, lambda ctx, g: g * 2).apply(x).sum().backward()
    assert x.grad.tolist() == [2.0] * 3


def test_once_differentiable_without_anything_to_differentiate(lib):
    x = leaf(lib)
    first = gradient(lib, once(lib, lambda ctx, g: g * 2).apply(x), x, create_graph=True)
    assert not first.requires_grad


def weighted(lib, function, x):
    """A first derivative that depends on a weight."""
    weight = lib.ones((), dtype=lib.float64, requires_grad=True)
    first = gradient(lib, function.apply(x) * weight, x, create_graph=True)
    return first, weight


def test_once_differentiable_in_the_second_derivative(lib):
    first, _ = weighted(lib, once(lib, lambda ctx, g: g * 2), leaf(lib))
    assert first.requires_grad
    assert first.grad_fn.name().endswith("Error")
    with pytest.raises(RuntimeError, match="differentiate twice a function that was marked with"):
        first.sum().backward()


def test_node_of_once_differentiable(lib):
    function = make(
        lib,
        lambda ctx, x, k, y: x * y,
        lib.autograd.function.once_differentiable(lambda ctx, g: (g, None, g * 2)),
    )
    x, y = leaf(lib), leaf(lib)
    weight = lib.ones((), dtype=lib.float64, requires_grad=True)
    total = (function.apply(x, 3, y) * weight).sum()
    first, second = lib.autograd.grad(total, (x, y), create_graph=True)
    node = first.grad_fn
    assert node is second.grad_fn
    assert (first.output_nr, second.output_nr) == (0, 2)
    assert type(node).__name__ == "Error"
    assert repr(node).startswith("<Error object at ")
    (one, _), nothing, (other, _) = node.next_functions
    assert nothing == (None, 0)
    assert one.name().endswith("AccumulateGrad") and other.name().endswith("AccumulateGrad")
    assert one.variable.tolist() == [1.0] * 3 and other.variable.tolist() == [2.0] * 3
    for _ in range(2):  # nothing is freed by the failure
        with pytest.raises(RuntimeError, match="differentiate twice a function that was marked"):
            (first + second).sum().backward(retain_graph=True)
    assert x.grad is None and one.variable.grad is None
    with pytest.raises(TypeError, match="expected 3 arguments, got 1"):
        node(lib.ones(3))


def test_once_differentiable_hides_its_dependencies(lib):
    first, weight = weighted(lib, once(lib, lambda ctx, g: g * 2), leaf(lib))
    with pytest.raises(RuntimeError, match="appears to not have been used"):
        lib.autograd.grad(first.sum(), weight)


def test_once_differentiable_with_several_gradients(lib):
    f = make(
        lib,
        lambda ctx, x, k, y: x * y,
        lib.autograd.function.once_differentiable(lambda ctx, g: (g, None, g * 2)),
    )
    x, y = leaf(lib), leaf(lib)
    weight = lib.ones((), dtype=lib.float64, requires_grad=True)
    total = (f.apply(x, 3, y) * weight).sum()
    first, second = lib.autograd.grad(total, (x, y), create_graph=True)
    assert first.tolist() == [1.0] * 3
    assert second.tolist() == [2.0] * 3
    assert first.requires_grad and second.requires_grad
    with pytest.raises(RuntimeError, match="differentiate twice"):
        second.sum().backward()


def test_once_differentiable_keeps_the_name(lib):
    def backward(ctx, g):
        """Of the original."""
        return g

    wrapped = lib.autograd.function.once_differentiable(backward)
    assert wrapped.__name__ == "backward"
    assert wrapped.__doc__ == "Of the original."


def test_gradgradcheck_of_once_differentiable(lib):
    with pytest.raises(RuntimeError):
        lib.autograd.gradgradcheck(once(lib, lambda ctx, g: g * 2).apply, (leaf(lib),))


# Forward mode


def with_tangent(lib, function, *others, prepare=lambda x: x):
    """The tangents of the results for the primal (1, 2, 3) and the tangent (1, 10, 100)."""
    forward_ad = lib.autograd.forward_ad
    with warnings.catch_warnings(), forward_ad.dual_level():
        warnings.simplefilter("ignore")
        x = prepare(forward_ad.make_dual(lib.tensor([1.0, 2.0, 3.0]), tangent(lib)))
        out = function.apply(x, *others)
        parts = [forward_ad.unpack_dual(t).tangent for t in (out if type(out) is tuple else (out,))]
        return [None if part is None else part.tolist() for part in parts]


def tangent(lib):
    return lib.tensor([1.0, 10.0, 100.0])


def with_jvp(lib, forward, jvp, **attributes):
    return make(lib, forward, lambda ctx, *g: g[0], jvp=jvp, **attributes)


def test_jvp(lib):
    f = with_jvp(lib, lambda ctx, x: x * 2, lambda ctx, t: t * 3)
    assert with_tangent(lib, f) == [[3.0, 30.0, 300.0]]


def test_no_jvp(lib):
    with pytest.raises(NotImplementedError, match="must implement the jvp function"):
        with_tangent(lib, double(lib))


def test_jvp_is_not_called_without_tangents(lib):
    f = with_jvp(lib, lambda ctx, x: x * 2, lambda ctx, t: 1 / 0)
    f.apply(lib.ones(3))
    with lib.autograd.forward_ad.dual_level():
        assert f.apply(lib.ones(3)).tolist() == [2.0] * 3


def test_jvp_of_several_results(lib):
    f = with_jvp(lib, lambda ctx, x: (x * 2, x * 3), lambda ctx, t: (t * 2, t * 3))
    assert with_tangent(lib, f) == [[2.0, 20.0, 200.0], [3.0, 30.0, 300.0]]


def test_jvp_gets_none_for_other_arguments(lib):
    seen = []

    def jvp(ctx, *tangents):
        seen.append(tangents[1:])
        return tangents[0] * 3

    with_tangent(lib, with_jvp(lib, lambda ctx, x, k: x * k, jvp), 3)
    assert seen == [(None,)]


def test_jvp_gets_zeros_for_missing_tangents(lib):
    seen = []

    def jvp(ctx, t, u):
        seen.append(None if u is None else u.tolist())
        return t

    f = with_jvp(lib, lambda ctx, x, y: x * y, jvp)
    with_tangent(lib, f, lib.ones(3))
    with_tangent(lib, f, lib.ones(3, dtype=lib.int64))
    assert seen == [[0.0] * 3, None]


def test_jvp_gets_none_for_missing_tangents_if_asked_for(lib):
    seen = []

    def forward(ctx, x, y):
        ctx.set_materialize_grads(False)
        return x * y

    def jvp(ctx, t, u):
        seen.append(u)
        return t

    with_tangent(lib, with_jvp(lib, forward, jvp), lib.ones(3))
    assert seen == [None]


def test_save_for_forward(lib):
    def forward(ctx, x, y):
        ctx.save_for_forward(x, y, None)
        return x * y

    def jvp(ctx, t, u):
        x, y, nothing = ctx.saved_tensors
        assert nothing is None
        return t * y + x * u

    f = with_jvp(lib, forward, jvp)
    assert with_tangent(lib, f, lib.full((3,), 5.0)) == [[5.0, 50.0, 500.0]]


def test_save_for_forward_does_not_outlive_the_call(lib):
    contexts = []

    def forward(ctx, x):
        contexts.append(ctx)
        ctx.save_for_forward(x)
        return x * 2

    make(lib, forward).apply(leaf(lib))
    make(lib, forward).apply(lib.ones(3))
    assert [ctx.saved_for_forward for ctx in contexts] == [None, None]
    assert [ctx.saved_tensors for ctx in contexts] == [(), ()]


def test_save_for_backward_is_not_for_jvp(lib):
    seen = []

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    def jvp(ctx, t):
        seen.append(ctx.saved_tensors)
        return t

    with_tangent(lib, with_jvp(lib, forward, jvp))
    assert seen == [()]


def test_forward_mode_is_off_in_forward_and_jvp(lib):
    forward_ad = lib.autograd.forward_ad
    seen = []

    def forward(ctx, x):
        seen.append(forward_ad.unpack_dual(x * 2).tangent)
        return x * 2

    def jvp(ctx, t):
        seen.append(forward_ad.unpack_dual(t * 2).tangent)
        return t

    with_tangent(lib, with_jvp(lib, forward, jvp))
    assert seen == [None, None]


def test_jvp_with_setup_context(lib):
    f = with_jvp(
        lib,
        lambda x: x * x,
        lambda ctx, t: 2 * t * ctx.saved_tensors[0],
        setup_context=lambda ctx, inputs, out: ctx.save_for_forward(*inputs),
    )
    assert with_tangent(lib, f) == [[2.0, 40.0, 600.0]]


@pytest.mark.parametrize("count", [0, 2])
def test_jvp_with_wrong_number_of_tangents(lib, count):
    f = with_jvp(lib, lambda ctx, x: x * 2, lambda ctx, t: (t,) * count)
    with pytest.raises(RuntimeError, match="invalid number of forward gradients .expected 1 but"):
        with_tangent(lib, f)


def test_jvp_with_wrong_shape(lib):
    f = with_jvp(lib, lambda ctx, x: x * 2, lambda ctx, t: lib.ones(4))
    with pytest.raises(RuntimeError, match="different size than that of the original Tensor"):
        with_tangent(lib, f)


def test_jvp_with_wrong_type(lib):
    f = with_jvp(lib, lambda ctx, x: x * 2, lambda ctx, t: 3)
    with pytest.raises(RuntimeError, match="expected Variable or None .got int. for grad output 0"):
        with_tangent(lib, f)


def test_jvp_of_a_result_without_gradient(lib):
    def forward(ctx, x):
        other = x * 5
        ctx.mark_non_differentiable(other)
        return x * 2, other, x.argmax()

    assert with_tangent(lib, with_jvp(lib, forward, lambda ctx, t: (t, None, None))) == [
        [1.0, 10.0, 100.0],
        None,
        None,
    ]
    with pytest.raises(RuntimeError, match="returned a gradient at position 1, but"):
        with_tangent(lib, with_jvp(lib, forward, lambda ctx, t: (t, t, None)))


def test_jvp_of_a_view(lib):
    f = with_jvp(lib, lambda ctx, x: x[:2], lambda ctx, t: t[:2])
    assert with_tangent(lib, f) == [[1.0, 10.0]]
    assert with_tangent(lib, f, prepare=lambda x: x.view(3)) == [[1.0, 10.0]]


def test_jvp_of_a_returned_input(lib):
    f = with_jvp(lib, lambda ctx, x: x, lambda ctx, t: t.view_as(t))
    assert with_tangent(lib, f) == [[1.0, 10.0, 100.0]]


@pytest.mark.parametrize("jvp", [lambda ctx, t: t, lambda ctx, t: t * 1])
def test_jvp_of_a_view_that_is_no_view(lib, jvp):
    with pytest.raises(RuntimeError, match="but the jvp is not returning a view"):
        with_tangent(lib, with_jvp(lib, lambda ctx, x: x, jvp))


def test_jvp_of_a_view_that_is_another_view(lib):
    f = with_jvp(lib, lambda ctx, x: x[:2], lambda ctx, t: (t * 1)[:2])
    with pytest.raises(RuntimeError, match="the jvp is not returning a view of the given grad"):
        with_tangent(lib, f)
    with pytest.raises(RuntimeError, match="the jvp is not returning a view of the same base"):
        with_tangent(lib, f, prepare=lambda x: x.view(3))


def test_jvp_of_a_view_of_an_input_without_tangent(lib):
    forward_ad = lib.autograd.forward_ad
    f = with_jvp(lib, lambda ctx, x, y: x[:2], lambda ctx, t, u: u[:2] * 2)
    with forward_ad.dual_level():
        x = lib.ones(3)
        y = f.apply(x, forward_ad.make_dual(lib.ones(3), tangent(lib)))
        assert forward_ad.unpack_dual(y).tangent.tolist() == [2.0, 20.0]
        assert forward_ad.unpack_dual(x).tangent.tolist() == [2.0, 20.0, 0.0]


def changed(ctx, x, *others):
    ctx.mark_dirty(x)
    return x.mul_(2)


def test_jvp_of_a_changed_input(lib):
    f = with_jvp(lib, changed, lambda ctx, t: t.mul_(2))
    assert with_tangent(lib, f) == [[2.0, 20.0, 200.0]]


@pytest.mark.parametrize("jvp", [lambda ctx, t: t, lambda ctx, t: t * 2])
def test_jvp_of_a_changed_input_that_changes_nothing(lib, jvp):
    with pytest.raises(RuntimeError, match="not modifying the forward mode gradients inplace"):
        with_tangent(lib, with_jvp(lib, changed, jvp))


def test_jvp_of_a_changed_input_without_tangent(lib):
    forward_ad = lib.autograd.forward_ad
    f = with_jvp(lib, changed, lambda ctx, t, u: u * 2)
    with forward_ad.dual_level():
        x = lib.ones(3)
        assert f.apply(x, forward_ad.make_dual(lib.ones(3), tangent(lib))) is x
        assert forward_ad.unpack_dual(x).tangent.tolist() == [2.0, 20.0, 200.0]


def test_jvp_of_a_changed_view_without_tangent(lib):
    forward_ad = lib.autograd.forward_ad
    f = with_jvp(lib, changed, lambda ctx, t, u: u * 2)
    with forward_ad.dual_level():
        base = lib.ones(4)
        f.apply(base[:3], forward_ad.make_dual(lib.ones(3), tangent(lib)))
        assert forward_ad.unpack_dual(base).tangent.tolist() == [2.0, 20.0, 200.0, 0.0]


def square(lib):
    def forward(ctx, x):
        ctx.save_for_forward(x)
        ctx.save_for_backward(x)
        return x * x

    return make(
        lib,
        forward,
        lambda ctx, g: 2 * g * ctx.saved_tensors[0],
        jvp=lambda ctx, t: 2 * t * ctx.saved_tensors[0],
    )


def test_reverse_over_forward(lib):
    forward_ad = lib.autograd.forward_ad
    x, t = leaf(lib), leaf(lib, 1.0, 10.0, 100.0)
    with forward_ad.dual_level():
        y = square(lib).apply(forward_ad.make_dual(x, t))
        primal, pushed = forward_ad.unpack_dual(y)
        of_x, of_t = lib.autograd.grad(pushed.sum(), (x, t), retain_graph=True)
        assert of_x.tolist() == [2.0, 20.0, 200.0]
        assert of_t.tolist() == [2.0, 4.0, 6.0]
        assert gradient(lib, primal, x).tolist() == [2.0, 4.0, 6.0]


def test_forward_over_reverse(lib):
    forward_ad = lib.autograd.forward_ad
    x = leaf(lib)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, lib.tensor([1.0, 10.0, 100.0], dtype=lib.float64))
        pulled = gradient(lib, square(lib).apply(dual), dual)
        assert forward_ad.unpack_dual(pulled).tangent.tolist() == [2.0, 20.0, 200.0]


def test_forward_over_reverse_through_a_saved_output(lib):
    forward_ad = lib.autograd.forward_ad

    def forward(ctx, x):
        out = x.exp()
        ctx.save_for_forward(out)
        ctx.save_for_backward(out)
        return out

    f = make(
        lib,
        forward,
        lambda ctx, g: g * ctx.saved_tensors[0],
        jvp=lambda ctx, t: t * ctx.saved_tensors[0],
    )
    x = leaf(lib)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, lib.ones(3, dtype=lib.float64))
        pulled = gradient(lib, f.apply(dual), dual)
        second = forward_ad.unpack_dual(pulled).tangent
    assert (second - x.detach().exp()).abs().max().item() < 1e-12


def test_gradcheck_of_forward_mode(lib):
    assert lib.autograd.gradcheck(
        square(lib).apply, (leaf(lib),), check_forward_ad=True, check_backward_ad=True
    )


def test_changed_input_in_a_longer_chain(lib):
    x = leaf(lib)
    z = x * 1
    doubled_in_place(lib).apply(z)
    assert gradient(lib, product(lib).apply(z, z), x).tolist() == [8.0, 16.0, 24.0]
