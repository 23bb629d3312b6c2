"""Phrases of errors and warnings that programs match on, each raised by both libraries."""

import re
import warnings

import pytest

import wengert


def second_backward(lib):
    y = lib.ones(2, requires_grad=True).exp().sum()
    y.backward()
    y.backward()


def second_backward_of_a_function(lib):
    class Square(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * g * x

    y = Square.apply(lib.ones(2, requires_grad=True)).sum()
    y.backward()
    y.backward()


def saved_tensor_after_backward(lib):
    y = lib.ones(2, requires_grad=True).exp()
    y.sum().backward()
    return y.grad_fn._saved_result


def hooks_on_a_freed_tensor(lib):
    y = lib.ones(2, requires_grad=True).exp()
    y.sum().backward()
    y.grad_fn._raw_saved_result.register_hooks(lambda x: x, lambda x: x)


def unused_input(lib):
    x, z = lib.ones(2, requires_grad=True), lib.ones(2, requires_grad=True)
    lib.autograd.grad(x.sum(), z)


def identity(lib):
    """A Function whose result is a view of its input."""

    class Identity(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, g):
            return g

    return Identity


def view_of_a_function_changed(lib):
    identity(lib).apply(lib.ones(2, requires_grad=True).clone()).add_(1)


def base_of_such_a_view_changed(lib):
    base = lib.ones(2, requires_grad=True).clone()
    view = identity(lib).apply(base)
    base.add_(1)
    return view.grad_fn


def one_of_several_views_changed(lib):
    lib.ones(2, requires_grad=True).clone().unbind()[0].add_(1)


def base_of_several_views_changed(lib):
    base = lib.ones(2, requires_grad=True).clone()
    view = base.split(1)[0]
    base.add_(1)
    return view.grad_fn


def view_of_no_grad_mode_changed(lib):
    base = lib.ones(2, requires_grad=True).clone()
    with lib.no_grad():
        view = base[:1]
    view.add_(1)


def view_of_inference_mode_changed(lib):
    base = lib.ones(2, requires_grad=True).clone()
    with lib.inference_mode():
        view = base[:1]
    view.add_(1)


def base_of_a_view_of_inference_mode_changed(lib):
    base = lib.ones(2, requires_grad=True).clone()
    with lib.inference_mode():
        view = base[:1]
    base.add_(1)
    return view.grad_fn


def vjp_of_no_output(lib):
    lib.func.vjp(lambda x: (), lib.ones(2))


def vjp_of_none(lib):
    lib.func.vjp(lambda x: None, lib.ones(2))


def jvp_of_no_output(lib):
    lib.func.jvp(lambda x: [], (lib.ones(2),), (lib.ones(2),))


def jvp_of_none(lib):
    lib.func.jvp(lambda x: None, (lib.ones(2),), (lib.ones(2),))


def jacrev_of_no_output(lib):
    lib.func.jacrev(lambda x: ())(lib.ones(2))


def jacfwd_of_none(lib):
    lib.func.jacfwd(lambda x: None)(lib.ones(2))


def functional_inside_vmap(lib):
    lib.vmap(lambda x: lib.autograd.functional.jacobian(lib.exp, x))(lib.ones(2, 2))


def functional_inside_grad(lib):
    lib.func.grad(lambda x: lib.autograd.functional.vjp(lib.sum, x)[1].sum())(lib.ones(2))


def strict_and_vectorized(lib):
    lib.autograd.functional.jacobian(lib.exp, lib.ones(2), strict=True, vectorize=True)


def strict_forward_mode(lib):
    lib.autograd.functional.jacobian(lib.exp, lib.ones(2), strict=True, strategy="forward-mode")


def narrowed(lib, tangent):
    """A Function that returns a view, and a jvp that returns what `tangent` makes."""

    class Narrowed(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.narrow(0, 0, 2)

        @staticmethod
        def backward(ctx, g):
            return lib.cat([g, lib.zeros_like(g)])

        @staticmethod
        def jvp(ctx, t):
            return tangent(t)

    return Narrowed


def jvp_with_a_view_of_something_else(lib):
    forward_ad = lib.autograd.forward_ad
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(lib.ones(4), lib.ones(4))
        narrowed(lib, lambda t: (t + 1).narrow(0, 0, 2)).apply(dual)


def jvp_of_a_sliced_tangent(lib):
    forward_ad = lib.autograd.forward_ad
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(lib.ones(4), lib.ones(6)[:4])
        narrowed(lib, lambda t: (t + 1).narrow(0, 0, 2)).apply(dual)


def fast_gradcheck_of_such_a_jvp(lib):
    lib.autograd.gradcheck(
        narrowed(lib, lambda t: (t + 1).narrow(0, 0, 2)).apply,
        lib.ones(4, dtype=lib.float64, requires_grad=True),
        check_forward_ad=True,
        fast_mode=True,
    )


def saved_tensors_hooks_of_numbers(lib):
    with lib.autograd.graph.saved_tensors_hooks(1, 2):
        pass


def register_hooks_of_a_number(lib):
    x = lib.ones(2, requires_grad=True)
    (x * x).grad_fn._raw_saved_self.register_hooks(lambda x: x, 1)


def register_one_hook(lib):
    x = lib.ones(2, requires_grad=True)
    (x * x).grad_fn._raw_saved_self.register_hooks(lambda x: x)


def register_three_hooks(lib):
    x = lib.ones(2, requires_grad=True)
    (x * x).grad_fn._raw_saved_self.register_hooks(lambda x: x, lambda x: x, lambda x: x)


def hooks_disabled_by_a_number(lib):
    with lib.autograd.graph.disable_saved_tensors_hooks(1):
        pass


def noisy(lib, draw):
    """The identity as a Function whose backward draws random numbers."""

    class Noisy(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return draw(g)

    return Noisy


def draw_in_a_batched_gradient(lib):
    x = lib.ones(2, requires_grad=True)
    y = noisy(lib, lambda g: g * lib.rand(2)).apply(x)
    lib.autograd.grad(y, x, lib.eye(2), is_grads_batched=True)


def draw_in_place_in_a_batched_gradient(lib):
    x = lib.ones(2, requires_grad=True)
    y = noisy(lib, lambda g: g.clone().bernoulli_()).apply(x)
    lib.autograd.grad(y, x, lib.eye(2), is_grads_batched=True)


def draw_like_a_batched_gradient(lib):
    x = lib.ones(2, requires_grad=True)
    y = noisy(lib, lib.rand_like).apply(x)
    lib.autograd.grad(y, x, lib.eye(2), is_grads_batched=True)


def draw_in_a_vectorized_jacobian(lib):
    lib.autograd.functional.jacobian(
        noisy(lib, lambda g: g * lib.rand(2)).apply, lib.ones(2), vectorize=True
    )


def draw_in_a_forward_jacobian(lib):
    lib.autograd.functional.jacobian(
        lambda x: x * lib.rand(2), lib.ones(2), vectorize=True, strategy="forward-mode"
    )


FREED = "(or directly access saved tensors after they have already been freed)"
NO_OUTPUT = "Expected f to be a function that has non-empty output (got output = "
IN_A_FUNCTION = "This view was created inside a custom Function (or because an input was returned"
SEVERAL = "This view is the output of a function that returns multiple views."
AMBIGUOUS = "Given that this use case is ambiguous and error-prone, it is forbidden"
OTHER_VIEW = "jvp is not returning a view of the given grad input"
NO_DRAWS = "vmap: We do not yet support calling random operations inside of vmap"
PHRASES = [
    (second_backward, FREED),
    (second_backward, "Specify retain_graph=True"),
    (second_backward_of_a_function, FREED),
    (saved_tensor_after_backward, FREED),
    (hooks_on_a_freed_tensor, "Specify retain_graph=True"),
    (unused_input, "appears to not have been used in the graph. Set allow_unused=True"),
    (view_of_a_function_changed, IN_A_FUNCTION),
    (base_of_such_a_view_changed, IN_A_FUNCTION),
    (one_of_several_views_changed, SEVERAL),
    (base_of_several_views_changed, SEVERAL),
    (view_of_no_grad_mode_changed, AMBIGUOUS),
    (view_of_inference_mode_changed, "is being modified inplace in normal mode. " + AMBIGUOUS),
    (base_of_a_view_of_inference_mode_changed, "modified inplace in normal mode. " + AMBIGUOUS),
    (vjp_of_no_output, NO_OUTPUT + "[])"),
    (vjp_of_none, NO_OUTPUT + "[None])"),
    (jvp_of_no_output, NO_OUTPUT + "[])"),
    (jvp_of_none, NO_OUTPUT + "[None])"),
    (jacrev_of_no_output, NO_OUTPUT),
    (jacfwd_of_none, NO_OUTPUT),
    (functional_inside_vmap, "(or perhaps using {lib}.autograd.functional.* APIs) inside of"),
    (functional_inside_grad, "(or perhaps using {lib}.autograd.functional.* APIs) inside of"),
    (strict_and_vectorized, "{lib}.autograd.functional.jacobian: `strict=True` and `vectorized"),
    (strict_forward_mode, "{lib}.autograd.functional.jacobian: `strict=True` and `strategy"),
    (jvp_with_a_view_of_something_else, OTHER_VIEW),
    (jvp_of_a_sliced_tangent, OTHER_VIEW),
    (fast_gradcheck_of_such_a_jvp, OTHER_VIEW),
    (saved_tensors_hooks_of_numbers, "(): incompatible function arguments. "),
    (register_hooks_of_a_number, "register_hooks(): incompatible function arguments. "),
    (register_one_hook, "register_hooks(): incompatible function arguments. "),
    (register_three_hooks, "register_hooks(): incompatible function arguments. "),
    (hooks_disabled_by_a_number, "(): incompatible function arguments. "),
    (draw_in_a_batched_gradient, NO_DRAWS),
    (draw_in_place_in_a_batched_gradient, NO_DRAWS),
    (draw_like_a_batched_gradient, NO_DRAWS),
    (draw_in_a_vectorized_jacobian, NO_DRAWS),
    (draw_in_a_forward_jacobian, NO_DRAWS),
]
NO_RUNTIME_ERRORS = {
    saved_tensors_hooks_of_numbers: TypeError,
    register_hooks_of_a_number: TypeError,
    register_one_hook: TypeError,
    register_three_hooks: TypeError,
    hooks_disabled_by_a_number: TypeError,
}


@pytest.mark.parametrize(
    "program, phrase",
    PHRASES,
    ids=[f"{program.__name__}-{phrase[:30].strip()}" for program, phrase in PHRASES],
)
def test_phrase(lib, program, phrase):
    expected = NO_RUNTIME_ERRORS.get(program, RuntimeError)
    with pytest.raises(expected, match=re.escape(phrase.format(lib=lib.__name__))) as raised:
        program(lib)
    assert type(raised.value) is expected


@pytest.mark.parametrize(
    "answer, error",
    [
        ("ones", "Expected all input grads to be undefined or zero"),
        ("raise", "Expected backward function to handle undefined output grads"),
    ],
)
def test_gradcheck_warns_before_it_fails_on_absent_gradients(lib, answer, error):
    class Identity(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 1

        @staticmethod
        def backward(ctx, g):
            if g is None and answer == "raise":
                raise RuntimeError("no gradient")
            return lib.ones(2, dtype=lib.float64) if g is None else g

    x = lib.ones(2, dtype=lib.float64, requires_grad=True)
    with pytest.warns(UserWarning, match="New undefined gradient support checking feature"):
        with pytest.raises(RuntimeError, match=error):
            lib.autograd.gradcheck(Identity.apply, x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert lib.autograd.gradcheck(Identity.apply, x, check_undefined_grad=False)


def test_a_tangent_does_not_change_with_its_neighbours(lib):
    forward_ad = lib.autograd.forward_ad
    memory = lib.ones(4)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(lib.ones(2), memory[:2])
        memory.zero_()
        assert forward_ad.unpack_dual(dual).tangent.tolist() == [1.0, 1.0]


def test_dtypes_of_a_product_that_differ_are_both_named():
    layer, x = wengert.nn.Linear(3, 2), wengert.ones(2, 3, dtype=wengert.float64)
    with pytest.raises(RuntimeError, match="mat1 and mat2 .* got Double and Float"):
        layer(x)
