"""`grad` and `grad_and_value`: which arguments, what comes back, what is refused."""

import math
import re

import pytest


def test_gradient_of_a_scalar_function(lib):
    x = lib.tensor(0.5)
    assert lib.func.grad(lib.sin)(x).item() == pytest.approx(math.cos(0.5))


def test_result_has_the_shape_of_the_argument(lib):
    x = lib.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert lib.func.grad(lambda x: (x**2).sum())(x).tolist() == [[2.0, 4.0], [6.0, 8.0]]


def test_argnums_choose_one_or_several(lib):
    x, y = lib.tensor(2.0), lib.tensor(3.0)

    def f(x, y):
        return x * x * y

    assert lib.func.grad(f)(x, y).item() == 12.0
    assert lib.func.grad(f, argnums=1)(x, y).item() == 4.0
    assert lib.func.grad(f, argnums=-1)(x, y).item() == 4.0
    both = lib.func.grad(f, argnums=(1, 0))(x, y)
    assert type(both) is tuple
    assert [g.item() for g in both] == [4.0, 12.0]


@pytest.mark.parametrize(
    ("argnums", "message"),
    [
        (2, "Got argnum=2, but only 2 positional inputs"),
        (-3, "Got argnum=-3, but only 2 positional inputs"),
        ((), "argnums must be non-empty"),
        ((0, 0), "argnums elements must be unique"),
        ((0, -2), "argnums elements must be unique"),
        ((0, "a"), "argnum must be int, got"),
        ("a", r"argnum.* must be int"),
    ],
)
def test_argnums_are_checked(lib, argnums, message):
    x = lib.tensor(1.0)
    with pytest.raises(RuntimeError, match=message):
        lib.func.grad(lambda x, y: x * y, argnums=argnums)(x, x)


def test_trees_of_arguments(lib):
    parameters = {"w": lib.tensor([1.0, 2.0]), "b": [lib.tensor(3.0)]}

    def f(parameters, x):
        return (parameters["w"] * x).sum() * parameters["b"][0]

    found = lib.func.grad(f)(parameters, lib.tensor([4.0, 5.0]))
    assert found["w"].tolist() == [12.0, 15.0]
    assert found["b"][0].item() == 14.0


def test_keyword_arguments_are_passed_on(lib):
    assert lib.func.grad(lambda x, *, k: x * k)(lib.tensor(1.0), k=lib.tensor(7.0)).item() == 7.0


def test_unused_arguments_have_zero_gradients(lib):
    x, y = lib.tensor([1.0, 2.0]), lib.tensor(3.0)
    used, unused = lib.func.grad(lambda x, y: y * 2, argnums=(1, 0))(x, y)
    assert used.item() == 2.0
    assert unused.tolist() == [0.0, 0.0]
    constant = lib.tensor(5.0)
    assert lib.func.grad(lambda x: constant)(x).tolist() == [0.0, 0.0]


def test_grad_and_value(lib):
    gradient, value = lib.func.grad_and_value(lambda x: x**3)(lib.tensor(2.0))
    assert (gradient.item(), value.item()) == (12.0, 8.0)


def test_aux_comes_back_unwrapped(lib):
    def f(x):
        y = x * x
        return y.sum(), {"y": y}

    x = lib.tensor([1.0, 2.0])
    gradient, aux = lib.func.grad(f, has_aux=True)(x)
    assert gradient.tolist() == [2.0, 4.0]
    assert aux["y"].tolist() == [1.0, 4.0]
    assert (aux["y"] + 1).tolist() == [2.0, 5.0]
    gradient, (value, aux) = lib.func.grad_and_value(f, has_aux=True)(x)
    assert value.item() == 5.0


@pytest.mark.parametrize("aux", [None, 3, "text", ["x", 3], {"a": None}])
@pytest.mark.parametrize("transform", ["grad", "grad_and_value", "vjp", "jvp", "jacrev", "jacfwd"])
def test_aux_holds_tensors_only(lib, transform, aux):
    def f(x):
        return x * x, (x, aux)

    x, apply = lib.tensor(1.0), getattr(lib.func, transform)
    with pytest.raises(RuntimeError, match="Expected tensors, got unsupported type"):
        if transform == "vjp":
            apply(f, x, has_aux=True)
        elif transform == "jvp":
            apply(f, (x,), (x,), has_aux=True)
        else:
            apply(f, has_aux=True)(x)


def test_aux_may_be_empty(lib):
    x = lib.tensor(2.0)
    assert lib.func.grad(lambda x: (x * x, ()), has_aux=True)(x)[1] == ()
    assert lib.func.vjp(lambda x: (x * x, {}), x, has_aux=True)[2] == {}


@pytest.mark.parametrize("output", [lambda x: x, lambda x: (x, x, x), lambda x: [x, x]])
def test_aux_must_be_a_pair(lib, output):
    with pytest.raises(RuntimeError, match=re.escape("should be a tuple: (output, aux)")):
        lib.func.grad(output, has_aux=True)(lib.tensor(1.0))


def test_output_must_be_a_scalar_tensor(lib):
    with pytest.raises(RuntimeError, match="to return a scalar Tensor, got tensor with"):
        lib.func.grad(lambda x: x * 2)(lib.tensor([1.0]))
    with pytest.raises(RuntimeError, match="to return a Tensor, got"):
        lib.func.grad(lambda x: 2.0)(lib.tensor(1.0))


def test_inputs_must_be_floating_point_tensors(lib):
    with pytest.raises(ValueError, match="must be Tensor"):
        lib.func.grad(lambda x: x * 2)(1.0)
    with pytest.raises(RuntimeError, match="only Tensors of floating point"):
        lib.func.grad(lambda x: x * 2)(lib.tensor(1))


def test_the_function_is_wrapped(lib):
    def loss(x):
        """What loss does."""
        return x * x

    assert lib.func.grad(loss).__name__ == "loss"
    assert lib.func.grad(loss).__doc__ == "What loss does."


def test_arguments_and_their_gradients_stay_as_they_are(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    lib.func.grad(lambda x: (x * x).sum())(x)
    assert x.grad is None and x.requires_grad and x.is_leaf


def test_results_are_part_of_the_graph_outside(lib):
    x = lib.tensor(2.0, requires_grad=True)
    w = lib.tensor(3.0, requires_grad=True)
    slope = lib.func.grad(lambda x: w * x**3)(x)
    dx, dw = lib.autograd.grad(slope, (x, w))
    assert (slope.item(), dx.item(), dw.item()) == (36.0, 36.0, 12.0)


def test_one_tensor_given_twice_is_two_arguments(lib):
    x = lib.tensor(3.0)
    assert lib.func.grad(lambda a, b: a * a * b)(x, x).item() == 18.0


def test_complex_gradients(lib):
    z = lib.tensor(1.0 + 2.0j)
    found = lib.func.grad(lambda z: (z * z.conj()).real)(z)
    assert found.item() == 2.0 + 4.0j


def test_hooks_inside(lib):
    seen = []

    def f(x):
        y = x * 2
        y.register_hook(lambda g: seen.append(tuple(g.shape)) or g * 10)
        return (y * x).sum()

    assert lib.func.grad(f)(lib.tensor([1.0, 3.0])).tolist() == [22.0, 66.0]
    assert seen == [(2,)]


def test_autograd_inside(lib):
    def slope(x):
        (found,) = lib.autograd.grad((x**3).sum(), x, create_graph=True)
        return found.sum()

    assert lib.func.grad(slope)(lib.tensor([1.0, 2.0])).tolist() == [6.0, 12.0]


def test_an_error_leaves_nothing_active(lib):
    def fails(x):
        raise KeyError("inside")

    x = lib.tensor(1.0, requires_grad=True)
    for transform in (lib.func.grad(fails), lib.func.jacfwd(fails)):
        with pytest.raises(KeyError, match="inside"):
            transform(x)
    with pytest.raises(KeyError, match="inside"):
        lib.func.vmap(fails)(lib.ones(3))
    (x * x).backward()
    assert x.grad.item() == 2.0
