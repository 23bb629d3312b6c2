"""In-place operations and new tensors inside transforms."""

import pytest

import wengert


@pytest.fixture(params=["grad", "jvp"])
def derivative(request, lib):
    """The derivative of a function of vectors, along ones."""
    if request.param == "grad":
        return lambda f: lambda x: lib.func.grad(lambda x: f(x).sum())(x)
    return lambda f: lambda x: lib.func.jacfwd(lambda x: f(x).sum(), randomness="same")(x)


# Targets that were there before


def test_captured_tensors_cannot_be_changed_in_a_derivative(lib):
    captured = lib.zeros(2)

    def adds(x):
        captured.add_(x)
        return x

    def adds_a_number(x):
        captured.add_(1)
        return x

    def assigns(x):
        captured[0] = x[0]
        return x

    x = lib.ones(2)
    for f in (adds, adds_a_number, assigns):
        with pytest.raises(RuntimeError, match="would mutate a captured Tensor"):
            lib.func.grad(lambda x, f=f: f(x).sum())(x)
        with pytest.raises(RuntimeError, match="would mutate a captured Tensor"):
            lib.func.jvp(f, (x,), (x,))
    assert captured.tolist() == [0.0, 0.0]


MADE_OF_CAPTURED = {
    "copy": lambda lib, base: base.clone(),
    "sum": lambda lib, base: base + 1,
    "indexed": lambda lib, base: base[[1, 0, 2]],
    "part": lambda lib, base: base.clone()[:],
    "one of several": lambda lib, base: base.sort().values,
    "stacked": lambda lib, base: lib.stack([base, base])[1],
    "called": lambda lib, base: twice(lib).apply(base),
}


def twice(lib):
    class Twice(lib.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, g):
            return g * 2

        @staticmethod
        def jvp(ctx, t):
            return t * 2

    return Twice


@pytest.mark.parametrize("make", MADE_OF_CAPTURED.values(), ids=list(MADE_OF_CAPTURED))
def test_what_is_made_of_captured_tensors_can_be_changed(lib, derivative, make):
    base, x = lib.zeros(3), lib.tensor([1.0, 2.0, 3.0])
    assert derivative(lambda x: make(lib, base).copy_(x * x))(x).tolist() == [2.0, 4.0, 6.0]
    second = derivative(lambda x: derivative(lambda x: make(lib, base).copy_(x) * x * x)(x))
    assert second(x).tolist() == [6.0, 12.0, 18.0]
    assert base.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("make", MADE_OF_CAPTURED.values(), ids=list(MADE_OF_CAPTURED))
def test_history_of_what_is_made_of_captured_tensors(lib, make):
    base = lib.zeros(3, requires_grad=True)
    gradient = lib.func.grad(lambda x: (make(lib, base) * x * x).sum())(lib.ones(3))
    once = make(lib, lib.ones(3)) - make(lib, lib.zeros(3))
    (found,) = lib.autograd.grad(gradient.sum(), base)
    assert found.tolist() == (2 * once).tolist()


def test_views_and_aliases_of_captured_tensors_cannot_be_changed(lib, derivative):
    base = lib.zeros(3)
    for part in (lambda: base[:2], lambda: base.view(3, 1), lambda: base.detach()):
        with pytest.raises(RuntimeError, match="would mutate a captured Tensor"):
            derivative(lambda x, part=part: part().mul_(x[0]))(lib.ones(3))


def test_captured_tensors_inside_a_vmap_inside_a_derivative(lib):
    captured = lib.zeros(2)
    x = lib.ones(3)
    with pytest.raises(RuntimeError, match="would mutate a captured Tensor"):
        lib.func.grad(lambda x: lib.vmap(lambda y: captured.add_(1) + y)(x).sum())(x)


def test_shared_tensors_can_be_changed_alike_in_vmap(lib):
    captured = lib.zeros(2)
    found = lib.vmap(lambda x: captured.add_(1) * x)(lib.ones(3))
    assert captured.tolist() == [1.0, 1.0]
    assert found.tolist() == [[1.0, 1.0]] * 3


UNBATCHED = {
    "mul_": lambda lib, t, x: t.mul_(x),
    "copy_": lambda lib, t, x: t.copy_(x),
    "fill_": lambda lib, t, x: t.fill_(x),
    "setitem": lambda lib, t, x: t.__setitem__(0, x) or t,
    "masked_fill_": lambda lib, t, x: t.masked_fill_(x > 0, 1.0),
    "index_put_": lambda lib, t, x: t.index_put_((lib.tensor([0]),), x),
    "scatter_": lambda lib, t, x: t.scatter_(0, lib.tensor([0]), x.reshape(1)),
}


@pytest.mark.parametrize("name", UNBATCHED)
def test_shared_tensors_cannot_take_one_value_per_example(lib, name):
    captured = lib.ones(3)
    with pytest.raises(RuntimeError, match="is not possible because there exists a Tensor"):
        lib.vmap(lambda x: UNBATCHED[name](lib, captured, x))(lib.ones(2))
    with pytest.raises(RuntimeError, match="is not possible because there exists a Tensor"):
        lib.vmap(lambda x: UNBATCHED[name](lib, lib.ones(3), x))(lib.ones(2))
    assert captured.tolist() == [1.0, 1.0, 1.0]


def test_arguments_are_changed(lib):
    x = lib.tensor([1.0, 2.0])
    lib.vmap(lambda x: x.add_(1))(x)
    assert x.tolist() == [2.0, 3.0]
    lib.func.jvp(lambda x: x.mul_(2), (x,), (lib.ones(2),))
    assert x.tolist() == [4.0, 6.0]
    lib.func.grad(lambda y, x: x.add_(y).sum())(lib.tensor(1.0), x)
    assert x.tolist() == [5.0, 7.0]


def test_the_differentiated_argument_is_a_leaf(lib):
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        lib.func.grad(lambda x: x.add_(1).sum())(lib.ones(2))
    x = lib.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        lib.vmap(lambda x: x.add_(1))(x)


# New tensors


MADE = {
    "zeros": lambda lib, x: lib.zeros(3),
    "tensor": lambda lib, x: lib.tensor([0.0, 0.0, 0.0]),
    "full": lambda lib, x: lib.full((3,), 0.0),
    "arange": lambda lib, x: lib.arange(3.0) * 0,
    "eye": lambda lib, x: lib.eye(3)[0] * 0,
    "Tensor": lambda lib, x: lib.Tensor([0.0, 0.0, 0.0]),
    "rand": lambda lib, x: lib.rand(3).zero_(),
    "zeros_like": lambda lib, x: lib.zeros_like(x),
    "empty_like": lambda lib, x: lib.empty_like(x).zero_(),
    "full_like": lambda lib, x: lib.full_like(x, 0.0),
    "new_zeros": lambda lib, x: x.new_zeros(3),
    "new_full": lambda lib, x: x.new_full((3,), 0.0),
    "new_tensor": lambda lib, x: x.new_tensor([0.0, 0.0, 0.0]),
    "clone": lambda lib, x: x.clone().zero_(),
}


@pytest.mark.parametrize("name", MADE)
def test_new_tensors_can_be_changed_in_a_derivative(lib, derivative, name):
    def f(x):
        made = MADE[name](lib, x)
        made.add_(x)
        made[1:] = x[:2] * x[1:]
        made[0].mul_(x[2])
        return made

    # f = (x0 x2, x0 x1, x1 x2)
    assert derivative(f)(lib.tensor([2.0, 3.0, 5.0])).tolist() == [8.0, 7.0, 5.0]


LIKE = ("zeros_like", "empty_like", "full_like", "new_zeros", "new_full", "clone")


@pytest.mark.parametrize("name", LIKE)
def test_tensors_like_a_batched_one_are_batched(lib, name):
    def f(x):
        made = MADE[name](lib, x)
        made[1:] = x[:2] * 2
        return made.add_(x)

    x = lib.arange(6.0).reshape(2, 3)
    expected = [f(row).tolist() for row in x]
    assert lib.vmap(f)(x).tolist() == expected
    assert lib.vmap(f, in_dims=1)(x.T.contiguous()).tolist() == expected


def test_likes_keep_type_and_shape(lib):
    def f(x):
        made = lib.ones_like(x, dtype=lib.float64)
        assert tuple(made.shape) == (2, 3) and made.dtype == lib.float64
        other = x.new_ones((4, 1), dtype=lib.int64)
        assert tuple(other.shape) == (4, 1) and other.dtype == lib.int64
        return made, other

    made, other = lib.vmap(f, in_dims=1)(lib.zeros(2, 5, 3))
    assert tuple(made.shape) == (5, 2, 3) and tuple(other.shape) == (5, 4, 1)


def test_copies_of_level_tensors(lib):
    found = lib.func.grad(lambda x: (x * lib.as_tensor(x)).sum())(lib.tensor([1.0, 2.0]))
    assert found.tolist() == [2.0, 4.0]
    found = lib.func.grad(lambda x: x * x.detach().clone() * x.to(lib.float64))(lib.tensor(3.0))
    assert found.item() == 18.0
    with pytest.warns(UserWarning, match="To copy construct from a tensor"):
        assert lib.func.grad(lambda x: x * lib.tensor(x))(lib.tensor(3.0)).item() == 3.0


def test_data_is_outside_of_the_graph(lib):
    assert lib.func.grad(lambda x: (x * x.data).sum())(lib.tensor([1.0, 2.0])).tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="accessing `data` under vmap transform is not allowed"):
        lib.vmap(lambda x: x.data)(lib.ones(2))


# Views


def test_changes_through_views(lib, derivative):
    def f(x):
        y = x.clone()
        y[0].mul_(3)
        y.view(3)[1:].add_(x[:2] * x[1:])
        y.unsqueeze(0).t()[2].mul_(x[0])
        return y * y

    x = lib.tensor([0.2, 0.3, 0.5])
    expected = derivative(lambda x: _without_views(lib, x))(x)
    for a, b in zip(derivative(f)(x).tolist(), expected.tolist(), strict=True):
        assert a == pytest.approx(b, rel=1e-5)


def _without_views(lib, x):
    b, c = x[1] + x[0] * x[1], x[2] + x[1] * x[2]
    return lib.stack([x[0] * 3, b, c * x[0]]) ** 2


def test_changes_through_views_of_a_batch(lib):
    def f(x):
        y = x.clone()
        y[0].mul_(3)
        y[1:] += x[:2]
        return y

    x = lib.arange(6.0).reshape(2, 3)
    assert lib.vmap(f)(x).tolist() == [f(row).tolist() for row in x]
    assert lib.vmap(f, in_dims=1)(x.T.contiguous()).tolist() == [f(row).tolist() for row in x]
    slopes = lib.vmap(lib.func.grad(lambda x: (f(x) ** 2).sum()))(x)
    assert slopes.tolist() == [lib.func.grad(lambda x: (f(x) ** 2).sum())(r).tolist() for r in x]


def test_second_derivatives_through_views(lib):
    def f(x):
        y = x.clone()
        y[0].mul_(x[1])
        return (y * y).sum()

    # f = x0^2 x1^2 + x1^2
    x0, x1 = 2.0, 3.0
    found = lib.func.hessian(f)(lib.tensor([x0, x1]))
    assert found.tolist() == [[2 * x1 * x1, 4 * x0 * x1], [4 * x0 * x1, 2 * x0 * x0 + 2]]


def test_shapes_changed_in_place(lib):
    assert tuple(lib.vmap(lambda x: (x * 2).unsqueeze_(0))(lib.ones(3)).shape) == (3, 1)
    assert tuple(lib.vmap(lambda x: (x * 2).t_())(lib.ones(2, 3, 4)).shape) == (2, 4, 3)
    found = lib.func.grad(lambda x: ((x * x).unsqueeze_(0) * lib.ones(2, 1)).sum())(lib.ones(3))
    assert found.tolist() == [4.0, 4.0, 4.0]


def test_in_place_operators_of_python(lib, derivative):
    def f(x):
        y = x * 1
        y += x
        y *= x
        y -= 1
        y /= 2
        return y

    assert derivative(f)(lib.tensor([1.0, 2.0])).tolist() == [2.0, 4.0]


def test_a_changed_saved_tensor_is_noticed(lib):
    def f(x):
        y = x * 1
        z = y * y
        y.add_(1)
        return z.sum()

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        lib.func.grad(f)(lib.ones(2))


def test_detaching_in_place(lib):
    assert lib.func.grad(lambda x: (x * (x * 2).detach_()).sum())(lib.ones(2)).tolist() == [2, 2]


def test_out_arguments():
    """A result is written into a tensor of the level; a shared one cannot hold a batch."""
    found = wengert.vmap(lambda x: wengert.add(x, 1, out=wengert.zeros_like(x)))(wengert.ones(2))
    assert found.tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="is not possible because there exists a Tensor"):
        wengert.vmap(lambda x: wengert.add(x, 1, out=wengert.zeros(())))(wengert.ones(2))
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        wengert.func.grad(lambda x: wengert.add(x, 1, out=wengert.zeros(())))(wengert.tensor(1.0))


PARTS = {
    "split": lambda y: y.split(2, 1)[0],
    "chunk": lambda y: y.chunk(2, 1)[1],
    "unbind": lambda y: y.unbind(0)[1],
    "part of a part": lambda y: y.unbind(0)[1].split(2)[0],
    "part of a transposed matrix": lambda y: y.t().split(2, 0)[0],
    "transposed part": lambda y: y.chunk(3, 1)[1].t(),
}


@pytest.mark.parametrize("in_dim", [0, 1, 2])
@pytest.mark.parametrize("part", PARTS)
def test_one_of_several_views_is_changed_in_forward_mode(lib, part, in_dim):
    def changed(x):
        y = x * 2
        PARTS[part](y).mul_(x.sum())
        return y

    def pushed(x):
        return lib.func.jvp(changed, (x,), (lib.ones(2, 3, dtype=lib.float64),))[1]

    x = lib.arange(12, dtype=lib.float64).reshape(2, 2, 3) + 1
    loop = [pushed(each).tolist() for each in x.unbind(0)]
    batch = x.movedim(0, in_dim).contiguous()
    assert lib.vmap(pushed, in_dims=in_dim)(batch).tolist() == loop
    assert loop[0] != (2 * lib.ones(2, 3)).tolist()


def test_strided_views_of_a_batch_keep_their_tangent_or_refuse():
    def changed(x):
        y = x * 1
        y.as_strided((2,), (1,)).zero_()
        return y

    def pushed(x):
        return wengert.func.jvp(changed, (x,), (wengert.ones(2, 3),))[1]

    expected = [[0.0, 0.0, 1.0], [1.0, 1.0, 1.0]]
    assert wengert.vmap(pushed)(wengert.ones(2, 2, 3)).tolist() == [expected] * 2
    with pytest.raises(RuntimeError, match="a view made by as_strided.* cannot be changed"):
        wengert.vmap(pushed, in_dims=2)(wengert.ones(2, 3, 2))


@pytest.mark.parametrize(
    "change",
    [
        lambda y: y.mul_(2),
        lambda y: y[:1].mul_(2),
        lambda y: y.__setitem__(slice(1), 0.5),
        lambda y: y.view(3, 1)[0].add_(1),
    ],
    ids=["whole", "part", "constant", "view of view"],
)
@pytest.mark.parametrize("outer", ["vjp", "backward", "vmap"])
def test_tangents_changed_without_recording_keep_their_history(lib, change, outer):
    def f(x):
        y = x.clone()
        with lib.no_grad():
            change(y)
        return y

    def product(x):
        return lib.func.jvp(f, (x,), (x.sin(),))[1].sum()

    x = lib.ones(3)
    if outer == "vjp":
        (found,) = lib.func.vjp(product, x)[1](lib.ones(()))
    elif outer == "vmap":
        found = lib.vmap(lib.func.grad(product))(lib.ones(2, 3))[1]
    else:
        x.requires_grad_()
        (found,) = lib.autograd.grad(product(x), x)
    expected = lib.ones(3).cos()  # the derivative of the sine, whatever the change has done
    assert lib.allclose(found, expected)


@pytest.mark.filterwarnings("ignore:Use of")
@pytest.mark.parametrize("transform", ["jvp", "jacfwd", "vmap of jvp"])
@pytest.mark.parametrize(
    "change",
    [lambda y: y.masked_fill_(y > 0, 0.5), lambda y: y.fill_(0.5), lambda y: y.zero_()],
    ids=["masked_fill_", "fill_", "zero_"],
)
@pytest.mark.parametrize("number", [0.2, -0.2])
def test_an_expanded_tensor_may_be_filled_in_forward_mode(lib, change, transform, number):
    def f(x):
        y = x.expand(3)
        change(y)
        return y * x

    def along(x):
        return lib.func.jvp(lambda x: f(x.clone()), (x,), (lib.ones_like(x),))

    x = lib.tensor(number)
    expected = (x.clone().expand(3) * 1).clone()
    change(expected)
    filled = expected[0] != x
    if transform == "jvp":
        value, tangent = along(x)
        assert value.tolist() == (expected * expected).tolist()
    elif transform == "jacfwd":
        tangent = lib.func.jacfwd(lambda x: f(x.clone()))(x)
    else:
        tangent = lib.vmap(along)(x.expand(2).clone())[1][1]
    assert tangent.tolist() == ([0.0] * 3 if filled else [2 * x.item()] * 3)


@pytest.mark.parametrize("transform", [lambda lib, f: f, lambda lib, f: lib.vmap(f)])
def test_numbers_changed_as_complex_ones(lib, transform):
    """The gradient of real numbers stays real, though what was changed is complex."""

    def changed(x):
        x = x * 3
        lib.view_as_complex(x).mul_(2j)
        return (x * x).sum()

    def gradient(x):
        return lib.func.grad(changed)(x)

    x = lib.tensor([[1.0, 2.0]])
    found = transform(lib, gradient)(x)
    assert found.dtype == lib.float32
    assert found.tolist() == [[72.0, 144.0]]
