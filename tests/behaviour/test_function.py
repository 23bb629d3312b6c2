"""Custom Functions: the call, its context, and what backward may return."""

import warnings

import pytest

from custom_functions import double, make, product


def leaf(lib, *values):
    return lib.tensor(values or (1.0, 2.0, 3.0), requires_grad=True)


# The call


def test_value_and_gradient(lib):
    x = leaf(lib)
    y = double(lib).apply(x)
    assert y.tolist() == [2.0, 4.0, 6.0]
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_backward_is_used_whatever_forward_computes(lib):
    x = leaf(lib)
    make(lib, lambda ctx, x: x * 2, lambda ctx, g: g * 100).apply(x).sum().backward()
    assert x.grad.tolist() == [100.0] * 3


def test_two_inputs_share_one_node(lib):
    x, y = leaf(lib), leaf(lib, 4.0, 5.0, 6.0)
    out = product(lib).apply(x, y)
    out.sum().backward()
    assert x.grad.tolist() == [4.0, 5.0, 6.0]
    assert y.grad.tolist() == [1.0, 2.0, 3.0]


def test_the_same_input_twice(lib):
    x = leaf(lib)
    product(lib).apply(x, x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0]


def test_chain_of_functions_and_operators(lib):
    x = leaf(lib)
    f = double(lib)
    f.apply((f.apply(x) * 3).sin()).sum().backward()
    expected = 2 * (6 * x.detach()).cos() * 6
    assert (x.grad - expected).abs().max().item() < 1e-5


def test_forward_runs_without_recording(lib):
    modes = []

    def forward(ctx, x):
        modes.append((lib.is_grad_enabled(), (x * 2).requires_grad, x.requires_grad))
        return x * 2

    make(lib, forward).apply(leaf(lib))
    assert modes == [(False, False, True)]
    assert lib.is_grad_enabled()


def test_mode_set_in_forward_ends_with_it(lib):
    def forward(ctx, x):
        lib.set_grad_enabled(True)
        return x * 2

    with lib.no_grad():
        make(lib, forward).apply(leaf(lib))
        assert not lib.is_grad_enabled()


def test_mode_is_restored_after_an_exception(lib):
    def forward(ctx, x):
        raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"):
        make(lib, forward).apply(leaf(lib))
    assert lib.is_grad_enabled()


def test_backward_runs_without_recording(lib):
    modes = []

    def backward(ctx, g):
        modes.append(lib.is_grad_enabled())
        return g

    f = make(lib, lambda ctx, x: x * 2, backward)
    f.apply(leaf(lib)).sum().backward()
    x = leaf(lib)
    lib.autograd.grad(f.apply(x).sum(), x, create_graph=True)
    assert modes == [False, True]


def test_exception_in_backward_reaches_the_caller(lib):
    def backward(ctx, g):
        raise KeyError("in backward")

    y = make(lib, lambda ctx, x: x * 2, backward).apply(leaf(lib))
    with pytest.raises(KeyError, match="in backward"):
        y.sum().backward()


def test_backward_works_after_a_failure(lib):
    failures = [KeyError("once")]

    def backward(ctx, g):
        if failures:
            raise failures.pop()
        return g * 2

    x = leaf(lib)
    y = make(lib, lambda ctx, x: x * 2, backward).apply(x).sum()
    with pytest.raises(KeyError):
        y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [2.0] * 3


def test_operators_recorded_inside_forward_do_not_count(lib):
    def forward(ctx, x):
        with lib.enable_grad():
            return x * 2

    x = leaf(lib)
    y = make(lib, forward, lambda ctx, g: g * 7).apply(x)
    assert y.grad_fn.name() == "CustomBackward"
    y.sum().backward()
    assert x.grad.tolist() == [7.0] * 3


def test_nested_functions(lib):
    inner = double(lib)

    def forward(ctx, x):
        with lib.enable_grad():
            ctx.x = x.detach().requires_grad_()
            ctx.y = inner.apply(ctx.x)
        return ctx.y.detach() * 1

    def backward(ctx, g):
        with lib.enable_grad():
            return lib.autograd.grad(ctx.y, ctx.x, g)[0]

    x = leaf(lib)
    make(lib, forward, backward).apply(x).sum().backward()
    assert x.grad.tolist() == [2.0] * 3


def test_backward_may_call_backward(lib):
    w = leaf(lib)

    def backward(ctx, g):
        with lib.enable_grad():
            (w * 3).sum().backward()
        return g

    x = leaf(lib)
    make(lib, lambda ctx, x: x * 2, backward).apply(x).sum().backward()
    assert w.grad.tolist() == [3.0] * 3
    assert x.grad.tolist() == [1.0] * 3


def test_apply_through_an_alias_and_through_an_instance(lib):
    apply = double(lib).apply
    assert apply(leaf(lib)).tolist() == [2.0, 4.0, 6.0]
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        instance = double(lib)()
    assert instance.apply(leaf(lib)).tolist() == [2.0, 4.0, 6.0]


def test_subclass_of_a_function(lib):
    base = double(lib)
    derived = type(base)("Derived", (base,), {"backward": staticmethod(lambda ctx, g: g * 5)})
    x = leaf(lib)
    y = derived.apply(x)
    assert y.grad_fn.name() == "DerivedBackward"
    y.sum().backward()
    assert x.grad.tolist() == [5.0] * 3


def test_methods_can_be_replaced_later(lib):
    f = double(lib)
    f.apply(leaf(lib))
    f.backward = staticmethod(lambda ctx, g: g * 11)
    x = leaf(lib)
    f.apply(x).sum().backward()
    assert x.grad.tolist() == [11.0] * 3


def test_vjp_is_another_name_of_backward(lib):
    x = leaf(lib)
    make(lib, lambda ctx, x: x * 2, vjp=lambda ctx, g: g * 3).apply(x).sum().backward()
    assert x.grad.tolist() == [3.0] * 3


def test_backward_and_vjp_together_are_refused(lib):
    f = make(lib, lambda ctx, x: x * 2, lambda ctx, g: g, vjp=lambda ctx, g: g)
    y = f.apply(leaf(lib))
    with pytest.raises(RuntimeError, match="Implementing both 'backward' and 'vjp'"):
        y.sum().backward()


def test_no_forward(lib):
    f = type(lib.autograd.Function)("Empty", (lib.autograd.Function,), {})
    with pytest.raises(NotImplementedError, match="must implement the forward"):
        f.apply(leaf(lib))


def test_no_backward(lib):
    y = make(lib, lambda ctx, x: x * 2).apply(leaf(lib))
    with pytest.raises(NotImplementedError, match="either the backward or vjp"):
        y.sum().backward()


def test_function_without_arguments(lib):
    y = make(lib, lambda ctx: lib.ones(2)).apply()
    assert y.tolist() == [1.0, 1.0]
    assert not y.requires_grad


# Arguments that are no tensors


def test_other_arguments_get_none(lib):
    seen = []

    def forward(ctx, x, factor, label, options):
        seen.append((factor, label, options))
        ctx.factor = factor
        return x * factor

    def backward(ctx, g):
        return g * ctx.factor, None, None, None

    x = leaf(lib)
    make(lib, forward, backward).apply(x, 3, "label", [x]).sum().backward()
    assert seen[0][:2] == (3, "label")
    assert seen[0][2][0] is x
    assert x.grad.tolist() == [3.0] * 3


def test_needs_input_grad(lib):
    seen = []

    def forward(ctx, *args):
        seen.append(ctx.needs_input_grad)
        return args[0] * 2

    f = make(lib, forward)
    f.apply(leaf(lib), 3, lib.ones(3), leaf(lib) * 2, None)
    f.apply(lib.ones(3))
    with lib.no_grad():
        f.apply(leaf(lib), lib.ones(3))
    assert seen == [(True, False, False, True, False), (False,), (True, False)]


def test_needs_input_grad_does_not_depend_on_what_is_asked(lib):
    seen = []

    def backward(ctx, g):
        seen.append(ctx.needs_input_grad)
        return g, g

    x, y = leaf(lib), leaf(lib)
    out = make(lib, lambda ctx, x, y: x * y, backward).apply(x, y)
    lib.autograd.grad(out.sum(), x)
    assert seen == [(True, True)]


def test_gradient_of_an_input_that_needs_none_is_dropped(lib):
    x, c = leaf(lib), lib.ones(3)
    make(lib, lambda ctx, x, c: x * c, lambda ctx, g: (g, lib.ones(5))).apply(x, c).sum().backward()
    assert x.grad.tolist() == [1.0] * 3
    assert c.grad is None


def test_tensors_in_lists_are_not_seen(lib):
    y = make(lib, lambda ctx, xs: xs[0] * 2).apply([leaf(lib)])
    assert not y.requires_grad


# Keywords and defaults


def test_keywords_name_parameters_of_forward(lib):
    f = make(lib, lambda ctx, x, factor=2.0: x * factor, lambda ctx, g: (g * 3, None))
    x = leaf(lib)
    y = f.apply(x, factor=3.0)
    assert y.tolist() == [3.0, 6.0, 9.0]
    y.sum().backward()
    assert x.grad.tolist() == [3.0] * 3
    assert f.apply(factor=1.0, x=x).tolist() == [1.0, 2.0, 3.0]


def test_default_values_are_no_inputs_of_a_combined_forward(lib):
    seen = []

    def forward(ctx, x, factor=2.0):
        seen.append(ctx.needs_input_grad)
        return x * factor

    make(lib, forward).apply(leaf(lib))
    assert seen == [(True,)]


@pytest.mark.parametrize("keywords", [{"z": 1}, {"x": 1}, {"ctx": 1}, {"c": 1}])
def test_keywords_that_do_not_fit(lib, keywords):
    f = make(lib, lambda ctx, x, b=1, c=2, *, k=0: x * b)
    with pytest.raises(TypeError):
        f.apply(leaf(lib), **keywords)


def test_keyword_only_parameters_are_no_inputs(lib):
    f = make(lib, lambda ctx, x, *, k=0: x * 2)
    with pytest.raises(TypeError, match="unexpected keyword argument 'k'"):
        f.apply(leaf(lib), k=3)


# setup_context


def separate(lib, forward=lambda x, y=2.0: x * y, seen=None, backward=None):
    def setup_context(ctx, inputs, output):
        if seen is not None:
            seen.append((inputs, output, ctx.needs_input_grad))
        ctx.save_for_backward(inputs[0])
        ctx.factor = inputs[1]

    return make(
        lib,
        forward,
        backward or (lambda ctx, g: (g * ctx.factor, None)),
        "Separate",
        setup_context=setup_context,
    )


def test_setup_context(lib):
    seen = []
    x = leaf(lib)
    y = separate(lib, seen=seen).apply(x, 3.0)
    y.sum().backward()
    assert x.grad.tolist() == [3.0] * 3
    ((inputs, output, needs),) = seen
    assert inputs[0] is x and inputs[1] == 3.0
    assert output is y
    assert needs == (True, False)


def test_setup_context_gets_defaults(lib):
    seen = []
    x = leaf(lib)
    separate(lib, seen=seen).apply(x).sum().backward()
    assert seen[0][0][1] == 2.0
    assert x.grad.tolist() == [2.0] * 3


def test_setup_context_with_keywords(lib):
    seen = []
    x = leaf(lib)
    y = separate(lib, seen=seen).apply(y=5.0, x=x)
    assert y.tolist() == [5.0, 10.0, 15.0]
    assert seen[0][0][0] is x and seen[0][0][1] == 5.0


def test_setup_context_with_any_number_of_arguments(lib):
    f = separate(
        lib, lambda *args: args[0] * args[1], backward=lambda ctx, g: (g, None, None, None)
    )
    x = leaf(lib)
    f.apply(x, 3.0, 4.0, 5.0).sum().backward()
    assert x.grad.tolist() == [1.0] * 3


def test_setup_context_runs_without_recording(lib):
    modes = []
    f = make(
        lib, lambda x: x * 2, setup_context=lambda ctx, i, o: modes.append(lib.is_grad_enabled())
    )
    f.apply(leaf(lib))
    assert modes == [False]


@pytest.mark.parametrize("call", [lambda f: f.apply(), lambda f: f.apply(1, 2, 3)])
def test_setup_context_with_wrong_number_of_arguments(lib, call):
    with pytest.raises(TypeError):
        call(separate(lib))


def test_setup_context_is_not_there_by_default(lib):
    with pytest.raises(NotImplementedError, match="setup_context is not implemented"):
        lib.autograd.Function.setup_context(None, (), None)


# What backward returns


def backward_with(lib, backward, *inputs):
    make(lib, lambda ctx, *args: args[0] * 2, backward).apply(*inputs).sum().backward()


def test_too_few_gradients(lib):
    with pytest.raises(RuntimeError, match="incorrect number of gradients .expected 2, got 1"):
        backward_with(lib, lambda ctx, g: g, leaf(lib), leaf(lib))


def test_too_few_gradients_for_other_arguments(lib):
    with pytest.raises(RuntimeError, match="incorrect number of gradients .expected 2, got 1"):
        backward_with(lib, lambda ctx, g: g, leaf(lib), 3)


def test_too_many_gradients(lib):
    with pytest.raises(RuntimeError, match="incorrect number of gradients .expected 1, got 2"):
        backward_with(lib, lambda ctx, g: (g, g), leaf(lib))


def test_superfluous_nones_are_ignored(lib):
    x = leaf(lib)
    backward_with(lib, lambda ctx, g: (g, None, None), x)
    assert x.grad.tolist() == [1.0] * 3


def test_gradient_for_an_argument_that_is_no_tensor(lib):
    with pytest.raises(RuntimeError, match="different than None at position 2"):
        backward_with(lib, lambda ctx, g: (g, g), leaf(lib), 3)


@pytest.mark.parametrize("value", [2.0, "gradient", [None], {}])
def test_gradient_of_a_wrong_type(lib, value):
    with pytest.raises(RuntimeError, match="expected Variable or None"):
        backward_with(lib, lambda ctx, g: value, leaf(lib))


def test_gradient_of_a_wrong_shape(lib):
    with pytest.raises(
        RuntimeError,
        match=r"CustomBackward returned an invalid gradient at index 1 - got \[4\] but expected "
        r"shape compatible with \[3\]",
    ):
        backward_with(lib, lambda ctx, g: (g, lib.ones(4)), leaf(lib), leaf(lib))


def test_gradient_that_was_broadcast_is_summed(lib):
    x = leaf(lib)
    backward_with(lib, lambda ctx, g: lib.ones(2, 3), x)
    assert x.grad.tolist() == [2.0] * 3


@pytest.mark.parametrize("dtype", ["float64", "float16", "int64", "bool"])
def test_gradient_is_cast(lib, dtype):
    x = leaf(lib)
    backward_with(lib, lambda ctx, g: lib.ones(3).to(getattr(lib, dtype)), x)
    assert x.grad.dtype == lib.float32
    assert x.grad.tolist() == [1.0] * 3


def test_complex_gradient_of_a_real_input(lib):
    with pytest.raises(RuntimeError):
        backward_with(lib, lambda ctx, g: g * 1j, leaf(lib))


def test_real_gradient_of_a_complex_input(lib):
    x = lib.ones(3, dtype=lib.complex64, requires_grad=True)
    f = make(lib, lambda ctx, x: x * 2, lambda ctx, g: g.real)
    f.apply(x).abs().sum().backward()
    assert x.grad.dtype == lib.complex64


def test_integer_gradient_of_a_complex_input(lib):
    x = lib.ones(3, dtype=lib.complex64, requires_grad=True)
    f = make(lib, lambda ctx, x: x * 2, lambda ctx, g: lib.ones(3, dtype=lib.int64))
    with pytest.raises(RuntimeError):
        f.apply(x).abs().sum().backward()


def test_gradient_on_another_device(lib):
    with pytest.raises(RuntimeError, match="expected device cpu but got meta"):
        backward_with(lib, lambda ctx, g: lib.ones(3, device="meta"), leaf(lib))


def test_no_gradient_at_all(lib):
    x = leaf(lib)
    backward_with(lib, lambda ctx, g: None, x)
    assert x.grad is None


def test_none_is_a_missing_gradient(lib):
    x = leaf(lib)
    y = make(lib, lambda ctx, x: x * 2, lambda ctx, g: None).apply(x)
    with pytest.raises(RuntimeError, match="appears to not have been used"):
        lib.autograd.grad(y.sum(), x)
    y = make(lib, lambda ctx, x: x * 2, lambda ctx, g: None).apply(x)
    assert lib.autograd.grad(y.sum(), x, allow_unused=True) == (None,)


def test_gradient_is_not_shared_between_leaves(lib):
    x, y = leaf(lib), leaf(lib)
    backward_with(lib, lambda ctx, g: (g, g), x, y)
    x.grad.mul_(5)
    assert y.grad.tolist() == [1.0] * 3


def test_gradient_kept_by_the_user_is_not_taken_over(lib):
    kept = lib.ones(3)
    x = leaf(lib)
    backward_with(lib, lambda ctx, g: kept, x)
    x.grad.mul_(5)
    assert kept.tolist() == [1.0] * 3


def test_gradients_accumulate(lib):
    x = leaf(lib)
    f = double(lib)
    (f.apply(x) + f.apply(x)).sum().backward()
    f.apply(x).sum().backward()
    assert x.grad.tolist() == [6.0] * 3


def test_boxed_gradients_come_in_a_list(lib):
    seen = []

    def backward(ctx, grads):
        seen.append((type(grads), len(grads)))
        first = grads.pop(0)
        return first + grads.pop()

    x = leaf(lib)
    f = make(lib, lambda ctx, x: (x * 2, x * 3), backward, boxed_grads_call=True)
    sum(f.apply(x)).sum().backward()
    assert seen == [(list, 2)]
    assert x.grad.tolist() == [2.0] * 3


@pytest.mark.parametrize("name", ["boxed_grads_call", "clear_saved_tensors_on_access"])
def test_switches_are_bools(lib, name):
    with pytest.raises(RuntimeError, match=f"{name} must be a bool, got int"):
        double(lib, **{name: 1}).apply(leaf(lib))


# Old classes


def quietly(make_one):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return make_one()


def test_instances_are_of_no_use(lib):
    instance = quietly(lambda: lib.autograd.Function())
    with pytest.raises(RuntimeError, match="Legacy autograd function"):
        instance(leaf(lib))


def test_instances_look_like_nodes(lib):
    instance = quietly(lambda: double(lib)())
    assert instance.saved_tensors == ()
    assert instance.next_functions == ()
    assert instance.needs_input_grad is None
    instance.save_for_backward(lib.ones(1))
    assert len(instance.to_save) == 1


def test_inplace_function(lib):
    cls = lib.autograd.function.InplaceFunction
    assert issubclass(cls, lib.autograd.Function)
    assert quietly(cls).inplace is False
    assert quietly(lambda: cls(inplace=True)).inplace is True


def test_nested_io_function_flattens(lib):
    x, y = leaf(lib), leaf(lib)
    f = quietly(lib.autograd.function.NestedIOFunction)
    assert issubclass(type(f), lib.autograd.Function)
    f.save_for_backward(x, [y, (x, None)])
    assert [id(t) for t in f.to_save] == [id(x), id(y), id(x)]
    f.mark_dirty(x, extra=[y])
    assert [id(t) for t in f.dirty_tensors] == [id(x), id(y)]
    f.mark_non_differentiable({"a": x})
    assert [id(t) for t in f.non_differentiable] == [id(x)]
    with pytest.raises(ValueError, match="Auto nesting doesn't know how to process"):
        f.mark_dirty(3)


def test_nested_io_function_forward_and_backward(lib):
    class Nested(lib.autograd.function.NestedIOFunction):
        def forward_extended(self, inputs):
            return [inputs[0] * 2, (inputs[1] * 3, None)]

        def backward_extended(self, first, second):
            return [first, [second[0], None]]

    f = quietly(Nested)
    x = leaf(lib)
    f._nested_input = ([x, x],)
    flat = f.forward()
    assert [t.tolist() for t in flat] == [[2.0, 4.0, 6.0], [3.0, 6.0, 9.0]]
    assert not flat[0].requires_grad
    g = lib.ones(3)
    result = f.backward(g, g * 2)
    assert [None if t is None else t.tolist() for t in result] == [[1.0] * 3, [2.0] * 3, None]


def test_nested_io_function_has_nothing_by_itself(lib):
    f = quietly(lib.autograd.function.NestedIOFunction)
    with pytest.raises(NotImplementedError):
        f.forward_extended()
    with pytest.raises(NotImplementedError):
        f.backward_extended()


def test_mark_shared_storage(lib):
    with pytest.warns(FutureWarning, match="mark_shared_storage"):
        lib.autograd.function.FunctionCtx().mark_shared_storage()


def test_context_by_itself(lib):
    ctx = lib.autograd.function.FunctionCtx()
    x = lib.ones(2)
    ctx.save_for_backward(x, None)
    ctx.save_for_forward(x)
    ctx.mark_dirty(x)
    ctx.mark_non_differentiable(x)
    ctx.set_materialize_grads(False)
    assert ctx.to_save == (x, None)
    assert ctx.saved_for_forward == (x,)
    assert ctx.dirty_tensors == ctx.non_differentiable == (x,)
    assert ctx.materialize_grads is False


def test_names_in_autograd(lib):
    assert lib.autograd.Function is lib.autograd.function.Function
    assert lib.autograd.NestedIOFunction is lib.autograd.function.NestedIOFunction
    for name in lib.autograd.function.__all__:
        assert hasattr(lib.autograd.function, name)


def test_vmap_is_not_there_by_default(lib):
    function = lib.autograd.Function
    assert function.generate_vmap_rule is False
    with pytest.raises(NotImplementedError, match="override the vmap staticmethod or"):
        function.vmap(None, None)


def test_a_call_without_recording_asks_no_view_for_its_history(lib):
    class Doubled(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    base = lib.ones(3, requires_grad=True) * 1
    with lib.no_grad():
        view = base[:2]
    base.mul_(2)  # the view's history is not known any more
    with lib.no_grad():
        assert Doubled.apply(view).tolist() == [4.0, 4.0]
    with pytest.raises(RuntimeError, match="created in no_grad mode"):
        Doubled.apply(view)
