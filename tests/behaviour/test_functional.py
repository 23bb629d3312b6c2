"""`autograd.functional`: values against closed forms, nesting, graphs, strict mode, errors."""

import importlib
import inspect

import numpy as np
import pytest

STRICT = "not allowed in strict mode"
PRODUCTS = ["vjp", "jvp", "vhp", "hvp"]
HESSIAN_PRODUCTS = ["vhp", "hvp"]


@pytest.fixture
def functional(lib):
    return importlib.import_module(f"{lib.__name__}.autograd.functional")


@pytest.fixture
def double(lib):
    """Makes float64 tensors."""
    return lambda values, **options: lib.tensor(values, dtype=lib.float64, **options)


def equal(tensor, expected):
    np.testing.assert_allclose(tensor.detach().numpy(), np.asarray(expected), atol=1e-12)
    return True


A = np.array([[1.0, 2.0, 3.0], [-1.0, 0.5, 2.0]])


class TestVjp:
    def test_linear_map(self, functional, double):
        matrix = double(A)
        out, product = functional.vjp(lambda x: matrix @ x, double([1.0, 0, 2]), double([3.0, -1]))
        assert equal(out, A @ [1, 0, 2])
        assert equal(product, [3, -1] @ A)
        assert not out.requires_grad and not product.requires_grad

    def test_nesting_follows_inputs_and_outputs(self, functional, double):
        x, y = double([1.0, 2.0]), double([3.0, 4.0])
        v = (double([1.0, 1.0]), double(2.0))
        outs, products = functional.vjp(lambda x, y: (x * y, x.sum()), (x, y), v)
        assert isinstance(outs, tuple) and isinstance(products, tuple)
        assert equal(products[0], [3 + 2, 4 + 2])
        assert equal(products[1], [1, 2])

    def test_one_tuple_stays_a_tuple(self, functional, double):
        outs, products = functional.vjp(lambda x: (x * x,), (double([2.0]),), (double([1.0]),))
        assert isinstance(outs, tuple) and isinstance(products, tuple)

    def test_vector_may_be_left_out_for_one_element(self, functional, double):
        _, product = functional.vjp(lambda x: (x**3).sum(), double([1.0, 2.0]))
        assert equal(product, [3, 12])

    def test_vector_needed_for_more(self, functional, double):
        with pytest.raises(
            RuntimeError, match="The vector v can only be None if the user-provided"
        ):
            functional.vjp(lambda x: x * 2, double([1.0, 2.0]))
        with pytest.raises(
            RuntimeError, match="The vector v can only be None if the user-provided"
        ):
            functional.vjp(lambda x: (x.sum(), x.sum()), double([1.0, 2.0]))

    def test_unused_input_gives_zeros(self, functional, double):
        _, (a, b) = functional.vjp(lambda x, y: x * 2, (double([1.0]), double([5.0, 6.0])))
        assert equal(a, [2]) and equal(b, [0, 0])

    def test_constant_output_gives_zeros(self, functional, double):
        _, product = functional.vjp(lambda x: x.detach().sum(), double([1.0, 2.0]))
        assert equal(product, [0, 0])

    def test_complex(self, lib, functional):
        z = lib.tensor([1 + 2j, -1j], dtype=lib.complex128)
        v = lib.tensor([1 - 1j, 2 + 0j], dtype=lib.complex128)
        _, product = functional.vjp(lambda z: z * z, z, v)
        assert equal(product, v.numpy() * (2 * z.numpy()).conj())


class TestJvp:
    def test_linear_map(self, functional, double):
        matrix = double(A)
        v = [1.0, -2.0, 0.5]
        out, product = functional.jvp(lambda x: matrix @ x, double([1.0, 0, 2]), double(v))
        assert equal(out, A @ [1, 0, 2])
        assert equal(product, A @ v)

    def test_several_inputs_and_outputs(self, functional, double):
        x, y, dx, dy = double([1.0, 2.0]), double([3.0, 4.0]), double([0.5, 1.0]), double([2.0, 0])
        outs, products = functional.jvp(lambda x, y: (x * y, (x * x).sum()), (x, y), (dx, dy))
        assert isinstance(outs, tuple) and isinstance(products, tuple)
        assert equal(products[0], [0.5 * 3 + 2 * 1, 4])
        assert equal(products[1], 2 * (0.5 + 2))

    def test_vector_may_be_left_out_for_one_element(self, functional, double):
        _, product = functional.jvp(lambda x: x * double([1.0, 2.0]), double(3.0))
        assert equal(product, [1, 2])

    def test_constant_output_gives_zeros(self, functional, double):
        _, (first, second) = functional.jvp(
            lambda x: (x.detach(), x * 2), double([1.0]), double([1.0])
        )
        assert equal(first, [0]) and equal(second, [2])

    def test_complex(self, lib, functional):
        z = lib.tensor([1 + 2j, -1j], dtype=lib.complex128)
        v = lib.tensor([1 - 1j, 2 + 0j], dtype=lib.complex128)
        vjp_of_v = functional.jvp(lambda z: z * z, z, v)[1]
        assert equal(vjp_of_v, 2 * z.numpy() * v.numpy())


class TestHessianProducts:
    @pytest.mark.parametrize("name", HESSIAN_PRODUCTS)
    def test_quadratic_form(self, functional, double, name):
        matrix = double([[1.0, 2.0], [0.0, 3.0]])
        out, product = getattr(functional, name)(
            lambda x: x @ matrix @ x, double([1.0, -1.0]), double([2.0, 5.0])
        )
        assert equal(out, 2.0)
        assert equal(product, np.array([[2.0, 2.0], [2.0, 6.0]]) @ [2, 5])
        assert not product.requires_grad

    @pytest.mark.parametrize("name", HESSIAN_PRODUCTS)
    def test_several_inputs(self, functional, double, name):
        x, y = double([1.0, 2.0]), double(3.0)
        out, products = getattr(functional, name)(
            lambda x, y: (x**3).sum() * y, (x, y), (double([1.0, 0]), double(2.0))
        )
        assert equal(out, 27)
        assert equal(products[0], [6 * 1 * 3 * 1 + 3 * 1 * 2, 3 * 4 * 2])
        assert equal(products[1], 3)

    @pytest.mark.parametrize("name", HESSIAN_PRODUCTS)
    def test_linear_function_gives_zeros(self, functional, double, name):
        v = double([1.0, 1.0])
        assert equal(getattr(functional, name)(lambda x: x.sum(), double([1.0, 2.0]), v)[1], [0, 0])

    @pytest.mark.parametrize("name", HESSIAN_PRODUCTS)
    def test_vector_may_be_left_out_for_one_element(self, functional, double, name):
        assert equal(getattr(functional, name)(lambda x: x**3, double(2.0))[1], 12)

    @pytest.mark.parametrize("name", [*HESSIAN_PRODUCTS, "hessian"])
    def test_function_must_return_one_element(self, functional, double, name):
        x = double([1.0, 2.0])
        extra = () if name == "hessian" else (x,)
        with pytest.raises(RuntimeError, match=f"given to {name} should return a single Tensor"):
            getattr(functional, name)(lambda x: (x.sum(), x.sum()), x, *extra)
        with pytest.raises(RuntimeError, match=f"given to {name} should contain a single element"):
            getattr(functional, name)(lambda x: x, x, *extra)


class TestVectors:
    @pytest.mark.parametrize("name", ["jvp", *HESSIAN_PRODUCTS])
    def test_vector_needed(self, functional, double, name):
        with pytest.raises(RuntimeError, match="v can only be None if the input to the user-prov"):
            getattr(functional, name)(lambda x: x.sum(), double([1.0, 2.0]))

    @pytest.mark.parametrize("name", PRODUCTS)
    def test_wrong_shape(self, functional, double, name):
        v = double([1.0, 2.0, 3.0])
        with pytest.raises(RuntimeError, match="v has invalid size: should be"):
            getattr(functional, name)(lambda x: x.sum(), double([1.0, 2.0]), v)
        x = double([1.0, 2.0])
        with pytest.raises(RuntimeError, match="Entry 1 in v has invalid size: should be"):
            functional.vjp(lambda x: (x, x), x, (x, v))

    def test_wrong_length(self, functional, double):
        x = double([1.0, 2.0])
        with pytest.raises(RuntimeError, match="v is a tuple of invalid length: should be 2 but"):
            functional.vjp(lambda x: (x, x), x, (x,))
        with pytest.raises(RuntimeError, match="The given v should contain a single Tensor"):
            functional.vjp(lambda x: x, x, (x, x))

    @pytest.mark.parametrize("name", PRODUCTS)
    def test_wrong_types(self, functional, double, name):
        x, function = double([1.0, 2.0]), getattr(functional, name)
        with pytest.raises(TypeError, match=f"The inputs given to {name} must be either a Tensor"):
            function(lambda x: x.sum(), [x], x)
        with pytest.raises(TypeError, match="value at index 1 has type <class 'int'>"):
            function(lambda x, y: x.sum(), (x, 3), x)
        with pytest.raises(TypeError, match=f"The v given to {name} must be either a Tensor"):
            function(lambda x: x.sum(), x, [x])
        with pytest.raises(TypeError, match="The outputs of the user-provided function given to"):
            function(lambda x: 3.0, x, x)


class TestJacobian:
    def test_elementwise_is_diagonal(self, functional, double):
        result = functional.jacobian(lambda x: x**2, double([[1.0, 2.0], [3.0, 4.0]]))
        assert result.shape == (2, 2, 2, 2)
        assert equal(result.reshape(4, 4), np.diag([2.0, 4.0, 6.0, 8.0]))
        assert not result.requires_grad

    def test_nesting(self, functional, double):
        x, y = double([1.0, 2.0]), double(3.0)
        blocks = functional.jacobian(lambda x, y: (x * y, x.sum()), (x, y))
        assert [[tuple(b.shape) for b in row] for row in blocks] == [[(2, 2), (2,)], [(2,), ()]]
        assert equal(blocks[0][0], [[3, 0], [0, 3]])
        assert equal(blocks[0][1], [1, 2])
        assert equal(blocks[1][0], [1, 1])
        assert equal(blocks[1][1], 0)

    def test_one_level_for_one_side(self, functional, double):
        x, y = double([1.0, 2.0]), double(3.0)
        by_output = functional.jacobian(lambda x: (x * 2, x.sum()), x)
        assert [tuple(b.shape) for b in by_output] == [(2, 2), (2,)]
        by_input = functional.jacobian(lambda x, y: x * y, (x, y))
        assert [tuple(b.shape) for b in by_input] == [(2, 2), (2,)]

    def test_no_output(self, functional, double):
        x = double([1.0])
        with pytest.raises(IndexError, match="out of range"):
            functional.jacobian(lambda x: (), x)
        with pytest.raises(AssertionError, match="at least one tensor"):
            functional.jacobian(lambda x: (), x, vectorize=True)
        with pytest.raises(IndexError, match="out of range"):
            functional.jvp(lambda x: (), x, x)

    def test_scalar_to_scalar(self, functional, double):
        result = functional.jacobian(lambda x: x.sin(), double(0.0))
        assert result.shape == () and equal(result, 1)

    def test_works_without_grad_mode(self, lib, functional, double):
        with lib.no_grad():
            assert equal(functional.jacobian(lambda x: x**2, double([3.0])), [[6]])

    def test_empty_input(self, functional, double):
        ones = double([1.0, 1.0])
        assert functional.jacobian(lambda x: x.sum() * ones, double([])).shape == (2, 0)

    def test_complex_output_refused(self, lib, functional):
        z = lib.tensor([1 + 2j], dtype=lib.complex128)
        with pytest.raises(RuntimeError, match="only for real scalar outputs"):
            functional.jacobian(lambda z: z * z, z)

    def test_complex_input_real_output(self, lib, functional):
        z = lib.tensor([3 + 4j], dtype=lib.complex128)
        assert equal(functional.jacobian(lambda z: z.abs(), z), [[0.6 + 0.8j]])

    def test_strategies(self, functional, double):
        x = double([1.0])
        with pytest.raises(AssertionError, match="Expected strategy to be either"):
            functional.jacobian(lambda x: x, x, strategy="sideways")
        with pytest.raises(NotImplementedError, match="only implemented for `vectorize=True`"):
            functional.jacobian(lambda x: x, x, strategy="forward-mode")
        with pytest.raises(NotImplementedError, match="create_graph=True` and `strategy="):
            functional.jacobian(lambda x: x, x, strategy="forward-mode", create_graph=True)
        with pytest.raises(RuntimeError, match="strict=True` and `strategy="):
            functional.jacobian(lambda x: x, x, strategy="forward-mode", strict=True)
        with pytest.raises(RuntimeError, match="strict=True` and `vectorized=True"):
            functional.jacobian(lambda x: x, x, vectorize=True, strict=True)

    @pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
    def test_vectorized_equals_loop(self, lib, functional, double, strategy):
        def func(x, y):
            return (x * y).sin(), x.sum() * double([1.0, 2.0, 3.0]), x.detach()

        inputs = (double([[1.0, 2.0], [3.0, 4.0]]), double([0.5, -1.0]))
        batched = functional.jacobian(func, inputs, vectorize=True, strategy=strategy)
        for got, expected in zip(batched, functional.jacobian(func, inputs), strict=True):
            for a, b in zip(got, expected, strict=True):
                assert a.shape == b.shape and equal(a, b.numpy())

    @pytest.mark.parametrize(
        "func",
        [
            lambda lib, x: lib.quantile(x, 0.3),
            lambda lib, x: lib.quantile(x, 0.3, dim=1, keepdim=True),
            lambda lib, x: lib.nanquantile(x, 0.3, dim=0),
            lambda lib, x: (x * x).unsqueeze_(1),
            lambda lib, x: (x * x).unsqueeze(1).clone().squeeze_(),
            lambda lib, x: (x * x).squeeze_(0) * x,
        ],
    )
    def test_reshaping_in_place_with_batched_tangents(self, lib, functional, double, func):
        x = double([[1.0, 5.0, 2.0], [4.0, 3.0, 6.0]])
        batched = functional.jacobian(
            lambda x: func(lib, x), x, vectorize=True, strategy="forward-mode"
        )
        looped = functional.jacobian(lambda x: func(lib, x), x)
        assert batched.shape == looped.shape and equal(batched, looped.numpy())


class TestHessian:
    def test_quadratic_form(self, functional, double):
        matrix = double([[1.0, 2.0], [0.0, 3.0]])
        result = functional.hessian(lambda x: x @ matrix @ x, double([1.0, -1.0]))
        assert equal(result, [[2, 2], [2, 6]])

    def test_blocks(self, functional, double):
        x, y = double([1.0, 2.0]), double(3.0)
        blocks = functional.hessian(lambda x, y: (x**2).sum() * y**2, (x, y))
        assert equal(blocks[0][0], np.diag([18.0, 18.0]))
        assert equal(blocks[0][1], [12, 24])
        assert equal(blocks[1][0], [12, 24])
        assert equal(blocks[1][1], 10)

    @pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
    def test_shape_of_the_one_element_does_not_matter(self, functional, double, shape):
        result = functional.hessian(lambda x: (x**3).sum().reshape(shape), double([1.0, 2.0]))
        assert equal(result, np.diag([6.0, 12.0]))

    def test_linear_function_gives_zeros(self, functional, double):
        assert equal(functional.hessian(lambda x: x.sum(), double([1.0, 2.0])), np.zeros((2, 2)))

    def test_unknown_strategy(self, functional, double):
        with pytest.raises(AssertionError, match="Expected strategy to be either"):
            functional.hessian(lambda x: x, double(1.0), outer_jacobian_strategy="sideways")

    @pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
    def test_vectorized_equals_loop(self, lib, functional, double, strategy):
        x = double([1.0, 2.0])
        options = {"vectorize": True, "outer_jacobian_strategy": strategy}
        assert equal(functional.hessian(lambda x: (x**3).sum(), x, **options), np.diag([6.0, 12.0]))


class TestCreateGraph:
    @pytest.mark.parametrize("name", PRODUCTS)
    def test_products_can_be_differentiated_again(self, lib, functional, double, name):
        x = double([1.0, 2.0], requires_grad=True)
        v = double([1.0, 1.0]) if name != "vjp" else None
        out, product = getattr(functional, name)(lambda x: (x**4).sum(), x, v, create_graph=True)
        assert out.requires_grad and product.requires_grad
        (grad,) = lib.autograd.grad(product.sum(), x)
        assert equal(grad, [12.0, 48.0] if name in ("vjp", "jvp") else [24.0, 48.0])

    def test_jacobian(self, lib, functional, double):
        x = double([1.0, 2.0], requires_grad=True)
        result = functional.jacobian(lambda x: x**3, x, create_graph=True)
        (grad,) = lib.autograd.grad(result.sum(), x)
        assert equal(grad, [6, 12])

    def test_hessian(self, lib, functional, double):
        x = double([1.0, 2.0], requires_grad=True)
        result = functional.hessian(lambda x: (x**3).sum(), x, create_graph=True)
        (grad,) = lib.autograd.grad(result.sum(), x)
        assert equal(grad, [6, 6])

    @pytest.mark.parametrize("name", ["vjp", "jvp"])
    def test_differentiable_in_the_vector(self, lib, functional, double, name):
        x, v = double([1.0, 2.0]), double([1.0, 1.0], requires_grad=True)
        _, product = getattr(functional, name)(lambda x: x**2, x, v, create_graph=True)
        (grad,) = lib.autograd.grad(product.sum(), v)
        assert equal(grad, [2, 4])

    @pytest.mark.parametrize("name", PRODUCTS)
    def test_inputs_are_left_alone(self, functional, double, name):
        x = double([1.0, 2.0], requires_grad=True)
        v = double([1.0, 1.0]) if name != "vjp" else None
        out, product = getattr(functional, name)(lambda x: (x**2).sum(), x, v)
        assert not out.requires_grad and not product.requires_grad
        assert x.grad is None and x.is_leaf


class TestStrict:
    @pytest.mark.parametrize("name", [*PRODUCTS, "jacobian", "hessian"])
    def test_output_without_graph(self, functional, double, name):
        x = double([1.0, 2.0])
        extra = (x,) if name in ("jvp", "vhp", "hvp") else ()
        with pytest.raises(RuntimeError, match="Output 0 of the user-provided function does not"):
            getattr(functional, name)(lambda x: x.detach().sum(), x, *extra, strict=True)

    @pytest.mark.parametrize("name", [*PRODUCTS, "jacobian"])
    def test_unused_input(self, functional, double, name):
        inputs = (double([1.0, 2.0]), double([3.0]))
        extra = (inputs,) if name in ("jvp", "vhp", "hvp") else ()
        with pytest.raises(RuntimeError, match=f"independent of input 1. .*{STRICT}"):
            getattr(functional, name)(lambda x, y: (x**2).sum(), inputs, *extra, strict=True)

    @pytest.mark.parametrize("name", [*HESSIAN_PRODUCTS, "hessian"])
    def test_linear_function_has_no_hessian(self, functional, double, name):
        x = double([1.0, 2.0])
        extra = () if name == "hessian" else (x,)
        with pytest.raises(RuntimeError, match="While computing the hessian, found that the jacob"):
            getattr(functional, name)(lambda x: x.sum(), x, *extra, strict=True)

    @pytest.mark.parametrize("name", ["vjp", "jvp", "jacobian"])
    def test_constant_jacobian_with_graph(self, functional, double, name):
        x = double([1.0, 2.0])
        extra = () if name == "jacobian" else (x,)
        with pytest.raises(RuntimeError, match="jacobian .* is independent of input 0.*create_gra"):
            getattr(functional, name)(lambda x: x * 2, x, *extra, create_graph=True, strict=True)

    def test_jvp_output_from_elsewhere(self, functional, double):
        x, other = double([1.0]), double([1.0], requires_grad=True)
        with pytest.raises(RuntimeError, match="independent of entry 1 in the grad_outputs"):
            functional.jvp(lambda x: (x * 2, other * 2), x, x, strict=True)

    @pytest.mark.parametrize("name", [*PRODUCTS, "jacobian", "hessian"])
    def test_differentiable_function_passes(self, functional, double, name):
        x = double([1.0, 2.0])
        extra = (x,) if name in ("jvp", "vhp", "hvp") else ()
        getattr(functional, name)(lambda x: (x**3).sum(), x, *extra, strict=True)


def test_signatures_are_those_of_pytorch():
    theirs = pytest.importorskip("torch.autograd.functional")
    ours = importlib.import_module("wengert.autograd.functional")
    assert set(ours.__all__) == set(theirs.__all__)
    for name in theirs.__all__:
        expected, got = (
            [(p.name, p.default, p.kind) for p in inspect.signature(f).parameters.values()]
            for f in (getattr(theirs, name), getattr(ours, name))
        )
        assert got == expected, name
