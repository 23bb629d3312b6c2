"""Tensors of a transform that has ended, kept by a side effect."""

import pytest

import wengert

USES = {
    "arithmetic": lambda lib, x: x + 1,
    "reduction": lambda lib, x: x.sum(),
    "list": lambda lib, x: lib.cat([x.reshape(-1), lib.ones(1)]),
    "detach": lambda lib, x: x.detach() * 2,
    "data": lambda lib, x: x.data + 1,
    "view": lambda lib, x: x.reshape(-1)[:1].clone(),
    "copy": lambda lib, x: x.clone(),
    "value": lambda lib, x: x.item() if x.numel() == 1 else x.tolist(),
    "like": lambda lib, x: lib.zeros_like(x) + lib.ones_like(x) + x.new_full((1,), 2.0),
    "in grad": lambda lib, x: lib.func.grad(lambda y: (y * x * y).sum())(lib.tensor(1.0)),
    "in vmap": lambda lib, x: lib.vmap(lambda y: y * x)(lib.ones(2)),
    "in jvp": lambda lib, x: lib.func.jvp(lambda y: y * x, (lib.ones(2),), (lib.ones(2),)),
    "out": lambda lib, x: lib.add(x.detach(), x.detach(), out=lib.ones(2)),
}
uses = pytest.mark.parametrize("use", USES.values(), ids=list(USES))


def escaped(lib, transform, values=(1.0, 2.0)):
    """An input of a transform that has ended."""
    kept = []
    x = lib.tensor(values)
    if transform == "grad":
        lib.func.grad(lambda x: kept.append(x) or x.sum())(x)
    elif transform == "vmap":
        lib.vmap(lambda x: kept.append(x) or x)(x)
    elif transform == "jvp":
        lib.func.jvp(lambda x: kept.append(x) or x, (x,), (x,))
    else:
        lib.func.grad(lib.func.grad(lambda x: (kept.append(x) or x**3).sum()))(x[0])
        kept[0] = lib.stack([kept[0], x[1]])
    return kept[0]


def numbers(lib, result):
    return [numbers(lib, r) for r in result] if isinstance(result, tuple) else (
        result.tolist() if isinstance(result, lib.Tensor) else result
    )


@uses
@pytest.mark.parametrize("transform", ["grad", "jvp", "grad of grad"])
def test_what_was_differentiated_is_its_value(lib, transform, use):
    expected = numbers(lib, use(lib, lib.tensor([1.0, 2.0])))
    assert numbers(lib, use(lib, escaped(lib, transform))) == expected


@uses
def test_an_example_is_refused(use):
    with pytest.raises(RuntimeError):
        use(wengert, escaped(wengert, "vmap"))


def test_an_example_is_refused_by_name(lib):
    with pytest.raises(RuntimeError, match="escaped from inside a function being vmapped"):
        escaped(lib, "vmap") + 1
    kept = []
    lib.vmap(lib.func.grad(lambda x: kept.append(x * 2) or x * x))(lib.ones(3))
    with pytest.raises(RuntimeError, match="escaped from inside a function being vmapped"):
        kept[0] + 1


@pytest.mark.parametrize("transform", ["grad", "vmap", "jvp"])
def test_it_can_be_looked_at(lib, transform):
    x = escaped(lib, transform)
    assert tuple(x.shape) == (() if transform == "vmap" else (2,))
    assert x.dtype == lib.float32
    assert "tensor([1., 2.])" in str(x)


def test_result_does_not_require_grad(lib):
    x = escaped(lib, "grad")
    assert x.requires_grad
    assert not (x * 2).requires_grad


def test_history_of_the_value_holds(lib):
    kept = []
    w = lib.ones(2, requires_grad=True)
    lib.func.grad(lambda x: kept.append(x * w) or x.sum())(lib.tensor([3.0, 4.0]))
    (kept[0] * kept[0]).sum().backward()
    assert w.grad.tolist() == [18.0, 32.0]


def test_it_can_be_changed(lib):
    kept = []
    lib.func.grad(lambda x: kept.append(x * 2) or x.sum())(lib.ones(2))
    x = kept[0]
    assert x.add_(1) is x
    x[0] = 5
    assert x.tolist() == [5.0, 3.0]
    assert x.uniform_(7, 8) is x
    assert (x >= 7).all()


def test_what_was_made_inside_is_its_value(lib):
    kept = []
    lib.func.grad(lambda x: kept.append(lib.ones(2)) or x.sum())(lib.ones(2))
    assert (kept[0] + 1).tolist() == [2.0, 2.0]


def test_inside_an_outer_transform_the_value_is_differentiated(lib):
    def outer(y):
        kept = []
        lib.func.grad(lambda x: kept.append(x * y) or x**3 * y)(y)
        return kept[0] * y

    assert lib.func.grad(outer)(lib.tensor(3.0)).item() == 27.0


def test_between_the_calls_of_a_pulled_back_function(lib):
    kept = []
    x = lib.tensor([1.0, 2.0])
    _, pull_back = lib.func.vjp(lambda x: kept.append(x * 2) or (x * x).sum(), x)
    assert pull_back(lib.tensor(1.0))[0].tolist() == [2.0, 4.0]
    assert (kept[0] + 1).tolist() == [3.0, 5.0]
    assert pull_back(kept[0].sum())[0].tolist() == [12.0, 24.0]


def test_argument_of_a_function(lib):
    class Square(lib.autograd.Function):
        @staticmethod
        def forward(x, w):
            return x * x * w

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            return 2 * x * w * g, x * x * g

    x, w = escaped(lib, "grad"), lib.ones(2, requires_grad=True)
    y = Square.apply(x, w)
    assert y.tolist() == [1.0, 4.0]
    y.sum().backward()
    assert w.grad.tolist() == [1.0, 4.0]
    assert x.grad is None


def test_gradient_retained_from_a_batch_makes_room_for_the_next(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    y.retain_grad()
    z = y * y
    for _ in range(2):
        (rows,) = lib.autograd.grad(z, x, lib.eye(2), is_grads_batched=True, retain_graph=True)
        assert rows.tolist() == [[18.0, 0.0], [0.0, 36.0]]
        assert tuple(y.grad.shape) == (2,)
    (rows,) = lib.autograd.grad(z.sum(), x)
    assert rows.tolist() == [18.0, 36.0]
