"""`gradcheck` and `gradgradcheck`: what passes, what fails, and what the failure says."""

import importlib
import inspect
import sys
import warnings

import numpy as np
import pytest


@pytest.fixture
def module(lib):
    importlib.import_module(f"{lib.__name__}.autograd.gradcheck")
    return sys.modules[f"{lib.__name__}.autograd.gradcheck"]


@pytest.fixture(params=[False, True], ids=["slow", "fast"])
def check(module, request):
    """`gradcheck` in slow and in fast mode."""
    return lambda func, inputs, **options: module.gradcheck(
        func, inputs, fast_mode=request.param, **options
    )


@pytest.fixture(params=[False, True], ids=["slow", "fast"])
def check_twice(module, request):
    """`gradgradcheck` in slow and in fast mode."""
    return lambda func, *args, **options: module.gradgradcheck(
        func, *args, fast_mode=request.param, **options
    )


@pytest.fixture
def leaf(lib):
    """Makes float64 tensors that require grad."""
    return lambda values: lib.tensor(values, dtype=lib.float64, requires_grad=True)


@pytest.fixture
def complex_leaf(lib):
    return lambda values: lib.tensor(values, dtype=lib.complex128, requires_grad=True)


def with_hook(x, hook):
    """The values of `x`, with a gradient that `hook` replaces on its way back, if there is one."""
    y = x * 1
    y.register_hook(lambda g: None if g is None else hook(g))
    return y


def wrong(x):
    """Twice the true gradient."""
    return with_hook(x, lambda g: g * 2)


class TestPasses:
    def test_one_input(self, check, leaf):
        assert check(lambda x: x.sin(), leaf([0.3, -1.0, 2.0])) is True

    def test_many_inputs_and_outputs_and_plain_arguments(self, check, leaf, lib):
        constant = lib.tensor([1.0, 2.0], dtype=lib.float64)

        def func(x, y, factor, c):
            return [x.exp() * factor, (x * y).sum(), y * c]

        assert check(func, [leaf([1.0, 2.0]), leaf([0.5, -0.5]), 3.0, constant])

    @pytest.mark.parametrize("shape", [(), (0, 3), (2, 1, 2)])
    def test_shapes(self, check, lib, shape):
        x = lib.ones(shape, dtype=lib.float64, requires_grad=True)
        assert check(lambda x: x * x, x)

    def test_transposed_input(self, check, leaf):
        x = leaf([[1.0, 2.0], [3.0, 4.0]]).detach().t().requires_grad_()
        assert check(lambda x: x * x, x)

    def test_non_leaf_input(self, check, leaf):
        assert check(lambda x: x * x, leaf([[1.0, 2.0], [3.0, 4.0]]).t())

    @pytest.mark.parametrize(
        "func", [lambda x: x, lambda x: x.t(), lambda x: x[0], lambda x: (x, x * 2)]
    )
    def test_outputs_that_alias_inputs(self, check, leaf, func):
        assert check(func, leaf([[1.0, 2.0], [3.0, 4.0]]))

    def test_unused_input(self, check, leaf):
        assert check(lambda x, y: x * 2, (leaf([1.0]), leaf([2.0])))

    def test_inputs_are_restored(self, check, leaf):
        x = leaf([1.0, 2.0])
        version = x._version
        check(lambda x: x.sin(), x)
        assert x.tolist() == [1.0, 2.0]
        assert x.grad is None and x._version == version

    def test_non_differentiable_outputs_are_passed_over(self, check, leaf):
        assert check(lambda x: (x * 2, x.detach().round()), leaf([1.2, 2.7]))

    def test_constant_function(self, check, leaf):
        assert check(lambda x: x.detach() * 0, leaf([1.0, 2.0]))
        assert check(lambda x: x.argmax(), leaf([1.0, 2.0]))

    def test_default_generator_is_not_touched(self, check, leaf, lib):
        lib.manual_seed(5)
        expected = lib.rand(3).tolist()
        lib.manual_seed(5)
        check(lambda x: x.sin(), leaf([1.0, 2.0]))
        assert lib.rand(3).tolist() == expected


class TestComplex:
    @pytest.mark.parametrize(
        "func",
        [
            lambda z: z * z,
            lambda z: z.conj() * z,
            lambda z: z.abs(),
            lambda z: z.real * 2j + z.imag,
            lambda z: (z.exp(), z.real.sum()),
        ],
    )
    def test_functions_of_a_complex_input(self, check, complex_leaf, func):
        assert check(func, complex_leaf([1 + 2j, -0.5 + 0.3j]))

    def test_complex_output_of_a_real_input(self, check, leaf):
        assert check(lambda x: x * (1 + 2j), leaf([1.0, 2.0]))

    def test_mixed(self, check, leaf, complex_leaf):
        inputs = (complex_leaf([1 + 2j]), leaf([3.0, 4.0]))
        assert check(lambda z, x: (z * x, x.exp(), z.real), inputs)

    def test_failure_names_the_part(self, check, complex_leaf, module):
        def conjugated(z):
            return with_hook(z, lambda g: g.conj())

        z = complex_leaf([1 + 2j])
        with pytest.raises(module.GradcheckError, match="imaginary part of complex outputs only,"):
            check(lambda z: conjugated(z) * z.detach(), z)

    def test_second_order(self, check_twice, complex_leaf):
        assert check_twice(lambda z: z * z.conj() * z, complex_leaf([1 + 2j, -0.5j]))


class TestFailures:
    def test_message_shows_both_jacobians(self, module, leaf):
        with pytest.raises(module.GradcheckError) as failure:
            module.gradcheck(wrong, leaf([1.0, 2.0]))
        text = str(failure.value)
        assert "Jacobian mismatch for output 0 with respect to input 0,\nnumerical:tensor(" in text
        assert "analytical:tensor([[2., 0.],\n        [0., 2.]]" in text

    def test_fast_message_falls_back_to_jacobians(self, module, leaf):
        with pytest.raises(module.GradcheckError) as failure:
            module.gradcheck(wrong, leaf([1.0, 2.0]), fast_mode=True)
        text = str(failure.value)
        assert "Jacobian mismatch for output 0 with respect to input 0,\nnumerical:" in text
        assert "tensor([[2., 0.],\n        [0., 2.]]" in text
        assert "The max per-element difference (slow mode) is: " in text

    def test_error_is_a_runtime_error(self, module):
        assert issubclass(module.GradcheckError, RuntimeError)

    def test_output_and_input_are_named(self, check, leaf, module):
        def func(x, y):
            return x * 2, wrong(y) * x

        expected = "mismatch for output 1 with respect to input 1"
        with pytest.raises(module.GradcheckError, match=expected):
            check(func, (leaf([1.0]), leaf([2.0])))

    def test_false_instead_of_an_exception(self, check, leaf):
        assert check(wrong, leaf([1.0, 2.0]), raise_exception=False) is False

    def test_tolerances(self, check, leaf, module):
        def slightly_wrong(x):
            return with_hook(x, lambda g: g * 1.001)

        x = leaf([1.0, 2.0])
        assert check(slightly_wrong, x, rtol=1e-2)
        assert check(slightly_wrong, x, atol=1e-2, rtol=0.0)
        with pytest.raises(module.GradcheckError, match="mismatch"):
            check(slightly_wrong, x, rtol=1e-4)

    def test_missing_part_of_the_gradient(self, check, leaf, module):
        with pytest.raises(module.GradcheckError, match="mismatch"):
            check(lambda x: x * x.detach(), leaf([1.0, 2.0]))

    def test_gradient_of_nan(self, check, leaf, module):
        with pytest.raises(module.GradcheckError, match="mismatch"):
            check(lambda x: with_hook(x, lambda g: g * float("nan")), leaf([1.0]))

    def test_detached_function_that_is_not_constant(self, check, leaf, module):
        with pytest.raises(module.GradcheckError, match="Numerical gradient for function expected"):
            check(lambda x: x.detach() * 2, leaf([1.0]))

    def test_gradient_not_multiplied(self, check, leaf, lib, module):
        def func(x):
            return with_hook(x, lambda g: lib.ones_like(g)).sum()

        with pytest.raises(module.GradcheckError, match="backward not multiplied by grad_output"):
            check(func, leaf([1.0, 2.0]))

    def test_gradient_that_varies(self, check, leaf, module):
        calls = []

        def alternating(g):
            calls.append(None)
            return g * (1 + 1e-7 * (len(calls) % 2))

        x = leaf([1.0])
        with pytest.raises(module.GradcheckError, match="Backward is not reentrant, i.e., running"):
            check(lambda x: with_hook(x, alternating), x)
        assert check(lambda x: with_hook(x, alternating), x, nondet_tol=1e-5)

    def test_outputs_that_change_shape_or_dtype(self, check, leaf, lib):
        calls = []

        def growing(x):
            calls.append(None)
            return lib.cat([x] * len(calls))

        def narrowing(x):
            calls.append(None)
            return x * 2 if len(calls) % 2 else (x * 2).to(lib.float32)

        with pytest.raises(
            AssertionError, match="outputs with the same shape when inputs are pert"
        ):
            check(growing, leaf([1.0, 2.0]))
        with pytest.raises(
            AssertionError, match="outputs with the same dtype when inputs are pert"
        ):
            check(narrowing, leaf([1.0, 2.0]))


class TestUndefinedGradients:
    def test_refused_where_not_handled(self, check, leaf, module):
        def refuse(grads):
            if grads[0] is None:
                raise RuntimeError("no gradient")

        def needy(x):
            y = x * 2
            y.grad_fn.register_prehook(refuse)
            return y

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(module.GradcheckError, match="handle undefined output grads"):
                check(needy, leaf([1.0, 2.0]))
        assert check(needy, leaf([1.0, 2.0]), check_undefined_grad=False)

    def test_refused_where_not_zero(self, check, leaf, module):
        def inventive(x):
            absent = []
            first, second = x * 2, x * 3
            first.register_hook(lambda g: g + 1 if absent and g is not None else None)
            second.register_hook(lambda g: absent.append(True) if g is None else None)
            return first, second

        expected = "Expected all input grads to be undefined or zero when all output grads"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(module.GradcheckError, match=expected):
                check(inventive, leaf([1.0, 2.0]))

    def test_several_outputs(self, check, leaf):
        assert check(lambda x: (x * 2, x.exp(), x[0]), leaf([1.0, 2.0]))


class TestForwardMode:
    def test_passes(self, check, leaf):
        def func(x, y):
            return x.sin() * y.sum(), y.exp()

        inputs = (leaf([1.0, 2.0]), leaf([[0.5], [-0.5]]))
        assert check(func, inputs, check_forward_ad=True)
        assert check(func, inputs, check_forward_ad=True, check_backward_ad=False)

    def test_complex(self, check, leaf, complex_leaf):
        def func(z, x):
            return z * z.conj() * 2j + z.exp() * x, x * 2

        inputs = (complex_leaf([1 + 2j, 0.5]), leaf([3.0, -1.0]))
        assert check(func, inputs, check_forward_ad=True, check_backward_ad=False)

    def test_wrong_tangent(self, check, leaf, module):
        expected = "Jacobian computed with forward mode mismatch for output 0 with respect to inp"
        with pytest.raises(module.GradcheckError, match=expected):
            check(
                lambda x: x * x.detach(),
                leaf([1.0, 2.0]),
                check_forward_ad=True,
                check_backward_ad=False,
            )

    def test_wrong_tangent_of_a_complex_input(self, check, complex_leaf, module):
        with pytest.raises(module.GradcheckError, match="part of complex inputs only, Jacobian"):
            check(
                lambda z: z * z.detach(),
                complex_leaf([1 + 2j]),
                check_forward_ad=True,
                check_backward_ad=False,
            )


class TestArguments:
    def test_an_input_must_require_grad(self, check, leaf):
        with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
            check(lambda x: x, leaf([1.0]).detach(), raise_exception=False)

    def test_overlapping_input(self, check, leaf):
        x = leaf([1.0]).detach().expand(3).requires_grad_()
        with pytest.raises(RuntimeError, match="0th input has a dimension with stride 0"):
            check(lambda x: x * 2, x)

    def test_low_precision_warns(self, check, lib):
        x = lib.tensor([1.0, 2.0], requires_grad=True)
        with pytest.warns(UserWarning, match="is not a double precision floating point or complex"):
            assert check(lambda x: x * 2, x, eps=1e-2, atol=1e-2, rtol=1e-2)

    def test_masked_is_accepted(self, check, leaf):
        assert check(lambda x: x * 2, leaf([1.0]), masked=True)

    def test_some_mode_is_needed(self, check, leaf):
        x = leaf([1.0])
        with pytest.raises(AssertionError, match="at least one of check_forward_ad or check_backw"):
            check(lambda x: x, x, check_backward_ad=False)
        with pytest.raises(AssertionError, match="check_batched_grad=True requires check_backward"):
            check(
                lambda x: x,
                x,
                check_backward_ad=False,
                check_forward_ad=True,
                check_batched_grad=True,
            )
        with pytest.raises(AssertionError, match="check_batched_forward_grad=True requires check_"):
            check(lambda x: x, x, check_batched_forward_grad=True)

    @pytest.mark.parametrize(
        "options",
        [
            {"check_batched_grad": True},
            {"check_forward_ad": True, "check_batched_forward_grad": True},
        ],
    )
    def test_batched(self, check, leaf, lib, options):
        def func(x, y):
            return x.sin() * y, x.sum()

        inputs = (leaf([1.0, 2.0]), leaf([0.5, -0.5]))
        assert check(func, inputs, **options)

    def test_outputs_must_be_tensors(self, leaf, lib, module):
        expected = TypeError if lib.__name__ == "wengert" else AttributeError
        with pytest.raises(expected):
            module.gradcheck(lambda x: (x, 3), leaf([1.0]))


class TestSecondOrder:
    def test_passes(self, check_twice, leaf):
        assert check_twice(lambda x: x.sin(), leaf([1.0, 2.0]))
        assert check_twice(lambda x: x * 2, leaf([1.0, 2.0]))
        assert check_twice(lambda x, y: (x * y, (x**3).sum()), (leaf([1.0, 2.0]), leaf([3.0])))

    def test_given_output_gradients(self, check_twice, leaf):
        x, g = leaf([1.0, 2.0]), leaf([0.5, -1.0])
        assert check_twice(lambda x: x.exp(), x, g)
        assert check_twice(lambda x: x.exp(), x, [g.detach()])

    def test_non_contiguous_output_gradients(self, check_twice, leaf):
        seen = []

        def func(x):
            y = x * x
            if y.requires_grad:
                y.register_hook(lambda g: seen.append(g.is_contiguous()))
            return y

        x = leaf([[1.0, 2.0], [3.0, 4.0]])
        assert check_twice(func, x, gen_non_contig_grad_outputs=True)
        assert not all(seen)

    def test_wrong_second_derivative(self, check_twice, leaf, module):
        def func(x):
            # The gradient is right, but says nothing of its own dependence on x.
            value = 3 * x.detach() ** 2
            return with_hook(x, lambda g: g * value) - x.detach() + x.detach() ** 3

        x = leaf([1.0, 2.0])
        assert module.gradcheck(func, x)
        with pytest.raises(
            module.GradcheckError, match="mismatch for output 0 with respect to inp"
        ):
            check_twice(func, x)
        assert check_twice(func, x, raise_exception=False) is False

    def test_forward_over_reverse(self, check_twice, leaf, lib):
        constant = lib.tensor([2.0, 3.0], dtype=lib.float64)
        inputs = (leaf([1.0, 2.0]), constant)
        assert check_twice(lambda x, c: x.sin() * c, inputs, check_fwd_over_rev=True)
        assert check_twice(
            lambda x, c: x.sin() * c,
            inputs,
            check_fwd_over_rev=True,
            check_rev_over_rev=False,
            check_undefined_grad=False,
        )

    def test_some_mode_is_needed(self, check_twice, leaf):
        x = leaf([1.0])
        with pytest.raises(AssertionError, match="at least one of check_fwd_over_rev or check_rev"):
            check_twice(lambda x: x, x, check_rev_over_rev=False)
        with pytest.raises(AssertionError, match="check_undefined_grad=True requires check_rev_ov"):
            check_twice(lambda x: x, x, check_rev_over_rev=False, check_fwd_over_rev=True)
        with pytest.raises(AssertionError, match="check_batched_grad=True requires check_rev_over"):
            check_twice(
                lambda x: x,
                x,
                check_rev_over_rev=False,
                check_fwd_over_rev=True,
                check_undefined_grad=False,
                check_batched_grad=True,
            )


@pytest.mark.filterwarnings("ignore::FutureWarning")
class TestDeprecatedHelpers:
    def test_they_warn(self, module, leaf):
        x = leaf([1.0])
        with pytest.warns(FutureWarning, match="get_numerical_jacobian"):
            module.get_numerical_jacobian(lambda inputs: inputs[0] * 2, (x,))
        with pytest.warns(FutureWarning, match="get_analytical_jacobian"):
            module.get_analytical_jacobian((x,), x * 2)

    def test_numerical(self, module, leaf):
        x, y = leaf([1.0, 2.0]), leaf([3.0])

        def fn(inputs):
            return inputs[0] * inputs[1]

        in_x, in_y = module.get_numerical_jacobian(fn, (x, y), eps=1e-6)
        np.testing.assert_allclose(in_x.detach().numpy(), [[3, 0], [0, 3]], atol=1e-8)
        np.testing.assert_allclose(in_y.detach().numpy(), [[1, 2]], atol=1e-8)
        (only,) = module.get_numerical_jacobian(fn, (x, y), target=y, eps=1e-6)
        np.testing.assert_allclose(only.detach().numpy(), [[1, 2]], atol=1e-8)

    def test_analytical(self, module, leaf):
        x, y = leaf([1.0, 2.0]), leaf([3.0])
        jacobians, reentrant, right_size, right_dtype = module.get_analytical_jacobian(
            (x, y), x * y
        )
        assert (reentrant, right_size, right_dtype) == (True, True, True)
        assert [matrix.tolist() for matrix in jacobians] == [[[3, 0], [0, 3]], [[1, 2]]]

    def test_of_one_input(self, module, leaf):
        x, y = leaf([1.0, 2.0]), leaf([3.0])
        (matrix,) = module.get_numerical_jacobian_wrt_specific_input(
            lambda x, y: x * y, 1, (x, y), (x * y,), 1e-6
        )
        np.testing.assert_allclose(matrix.detach().numpy(), [[1, 2]], atol=1e-8)
        with pytest.raises(AssertionError, match="Expected input to have requires_grad=True"):
            module.get_numerical_jacobian_wrt_specific_input(
                lambda x: x, 0, (x.detach(),), (x,), 1e-6
            )

    def test_refusals(self, module, leaf, complex_leaf):
        x, z = leaf([1.0]), complex_leaf([1j])
        with pytest.raises(ValueError, match="Expected grad_out to be 1.0"):
            module.get_numerical_jacobian(lambda inputs: inputs[0], (x,), grad_out=2.0)
        with pytest.raises(ValueError, match="Expected grad_out to be 1.0"):
            module.get_analytical_jacobian((x,), x * 2, grad_out=2.0)
        with pytest.raises(ValueError, match="Expected output to be non-complex"):
            module.get_numerical_jacobian(lambda inputs: inputs[0], (z,))
        with pytest.raises(ValueError, match="Expected output to be non-complex"):
            module.get_analytical_jacobian((z,), z * 2)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_inputs_are_restored_after_an_error(fast_mode):
    import wengert

    x = wengert.tensor([1.0, 2.0], dtype=wengert.float64, requires_grad=True)
    calls = []

    def fragile(x):
        calls.append(None)
        if len(calls) == 2:
            raise KeyError("second call")
        return x * 2

    with pytest.raises(KeyError):
        wengert.autograd.gradcheck(fragile, x, fast_mode=fast_mode)
    assert x.tolist() == [1.0, 2.0]


def test_public_names_and_signatures_are_those_of_pytorch():
    pytest.importorskip("torch")
    theirs = sys.modules["torch.autograd.gradcheck"]
    importlib.import_module("wengert.autograd.gradcheck")
    ours = sys.modules["wengert.autograd.gradcheck"]
    assert set(ours.__all__) == set(theirs.__all__)
    for name in set(theirs.__all__) - {"GradcheckError"}:
        expected, got = (
            [(p.name, p.default, p.kind) for p in inspect.signature(f).parameters.values()]
            for f in (getattr(theirs, name), getattr(ours, name))
        )
        assert got == expected, name
