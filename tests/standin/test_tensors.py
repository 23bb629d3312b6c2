"""Tensors on an array class that is not NumPy's: making, reading, writing, differentiating."""

import copy
import pickle

import numpy as np
import pytest

import wengert
from standin.array import Array, Strictness
from standin.backend import PLACE
from standin.support import assert_on_device
from wengert.autograd import forward_ad
from wengert.backends.backend import Backend, backend_of, register
from wengert.utils.checkpoint import checkpoint


def tensor(values, **options):
    return wengert.tensor(values, device=PLACE, dtype=wengert.float64, **options)


def values_of(t):
    assert_on_device(t)
    return t.tolist()


# Making and reading ------------------------------------------------------------------------------


def test_tensors_share_an_array_that_they_are_made_of():
    array = Array(np.arange(3.0))
    for make in (wengert.asarray, wengert.as_tensor):
        t = make(array)
        assert t.array is array and t.device == PLACE
    copied = wengert.tensor(array)
    assert type(copied.array) is Array and copied.array is not array


@pytest.mark.parametrize(
    "make",
    [
        lambda: wengert.zeros(2, 3, device="standin"),
        lambda: wengert.full((2,), 7, device="standin"),
        lambda: wengert.arange(5, device="standin"),
        lambda: wengert.linspace(0, 1, 4, device="standin"),
        lambda: wengert.eye(3, device="standin"),
        lambda: wengert.empty_strided((2, 2), (1, 2), device="standin").zero_(),
        lambda: wengert.ones_like(tensor([[1.0, 2.0]]).t()),
        lambda: tensor([1.0]).new_zeros(2, 2),
        lambda: tensor([1.0]).new_tensor([3.0, 4.0]),
    ],
)
def test_factories(make):
    assert_on_device(make())


def test_the_default_device():
    with PLACE:
        made = wengert.ones(2) + wengert.tensor([1.0, 2.0])
    assert values_of(made) == [2.0, 3.0]


def test_moving_and_reading():
    x = tensor([[1.0, 2.0], [3.0, 4.0]])
    assert str(x.device) == "standin:0" and not x.is_cpu
    assert type(x.cpu().array) is np.ndarray
    assert values_of(x.cpu().to("standin")) == x.tolist()
    assert x.to("standin") is x
    assert x[1, 0].item() == 3.0 and float(x[0, 1]) == 2.0
    assert "device='standin:0'" in repr(x)
    assert x.data_ptr() == x.array.pointer
    with pytest.raises(TypeError, match="can't convert standin:0 device type tensor to numpy"):
        x.numpy()
    assert type(x.numpy(force=True)) is np.ndarray


def test_gradients_pass_devices():
    x = wengert.tensor([1.0, 2.0], requires_grad=True)
    y = (x.to("standin") * 3).cpu() * x
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 12.0] and x.grad.is_cpu


def test_copies():
    x = tensor([1.0, 2.0], requires_grad=True)
    for made in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert made.requires_grad and values_of(made.detach()) == [1.0, 2.0]
    memory = tensor([1.0, 2.0, 3.0])
    whole, part = copy.deepcopy([memory, memory[1:]])
    part.zero_()
    assert values_of(whole) == [1.0, 0.0, 0.0] and values_of(memory) == [1.0, 2.0, 3.0]


# Several devices ---------------------------------------------------------------------------------


def test_devices_do_not_mix():
    x, y = tensor([1.0, 2.0]), wengert.tensor([1.0, 2.0])
    for function in (lambda: x + y, lambda: y * x, lambda: wengert.cat([x, y]), lambda: x.add_(y)):
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
            function()


def test_single_elements_may_lie_on_the_cpu():
    x = tensor([1.0, 2.0])
    assert values_of(x * wengert.tensor(2.0)) == [2.0, 4.0]
    assert values_of(wengert.tensor(2.0) - x) == [1.0, 0.0]


def test_indices_may_lie_on_the_cpu():
    x = tensor([1.0, 2.0, 3.0])
    assert values_of(x[wengert.tensor([2, 0])]) == [3.0, 1.0]
    assert values_of(x[[0, 1]]) == [1.0, 2.0]
    x[np.array([True, False, True])] = 5.0
    assert values_of(x) == [5.0, 2.0, 5.0]


def test_indices_may_not_lie_on_another_device():
    for index in (lambda x, i: x[i], lambda x, i: x.index_put((i,), wengert.tensor(1.0))):
        with pytest.raises(RuntimeError, match="indices should be on the same device"):
            index(wengert.ones(3), tensor([0.0]).long())


def test_copy_crosses_devices():
    x, y = tensor([1.0, 2.0]), wengert.tensor([3.0, 4.0], dtype=wengert.float64)
    assert values_of(x.copy_(y)) == [3.0, 4.0]
    y.copy_(tensor([5.0, 6.0]))
    assert y.is_cpu and y.tolist() == [5.0, 6.0]


# Memory ------------------------------------------------------------------------------------------


def test_views_share_memory():
    x = tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    x.t()[0].mul_(10)
    x[:, 1:].select(1, 0).zero_()
    x.view(-1)[5] = 60.0
    x.as_strided((2,), (1,), 2).add_(1)
    assert values_of(x) == [[10.0, 0.0, 4.0], [41.0, 0.0, 60.0]]
    assert x[1].storage_offset() == 3 and x[1]._base is x


def test_expanded_memory_is_not_written():
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        tensor([1.0]).expand(3).add_(1)


def test_writing_over_what_is_read_is_refused():
    x = tensor([1.0, 2.0, 3.0])
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        x[1:].add_(x[:-1])


def test_shapes_that_do_not_broadcast():
    with pytest.raises(RuntimeError, match="The size of tensor a .* must match the size of tensor"):
        tensor([1.0, 2.0]) + tensor([1.0, 2.0, 3.0])


def test_out_arguments():
    out = wengert.empty(0, device="standin", dtype=wengert.float64)
    wengert.add(tensor([1.0, 2.0]), 1, out=out)
    assert values_of(out) == [2.0, 3.0]


# Differentiation ---------------------------------------------------------------------------------


def test_accumulation():
    x = tensor([1.0, 2.0], requires_grad=True)
    for _ in range(2):
        (x * x).sum().backward()
    assert values_of(x.grad) == [4.0, 8.0]


def test_in_place_changes_of_views_are_recorded():
    x = tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 2
    y[1:].mul_(x[:2])
    y[0] = 5.0
    y.sum().backward()
    assert values_of(y.detach()) == [5.0, 4.0, 12.0]
    assert values_of(x.grad) == [4.0, 8.0, 4.0]


def test_changed_saved_values_are_noticed():
    x = tensor([1.0, 2.0], requires_grad=True)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_outputs_that_nobody_asked_for():
    x = tensor([[3.0, 1.0], [2.0, 4.0]], requires_grad=True)
    x.unbind(0)[1].sum().backward()
    assert values_of(x.grad) == [[0.0, 0.0], [1.0, 1.0]]


def test_hooks_functions_and_checkpoints():
    class Cube(wengert.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 3 * g * x * x

    x = tensor([1.0, 2.0], requires_grad=True)
    seen = []
    y = checkpoint(lambda t: Cube.apply(t.sin()), x, use_reentrant=False)
    y.register_hook(seen.append)
    y.sum().backward()
    assert_on_device(seen)
    expected = 3 * np.sin([1.0, 2.0]) ** 2 * np.cos([1.0, 2.0])
    np.testing.assert_allclose(values_of(x.grad), expected)


def test_functions_that_write_to_views():
    class Twice(wengert.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 1
    Twice.apply(y[1:])
    y.sum().backward()
    assert values_of(x.grad) == [1.0, 2.0, 2.0]


def test_subclasses_see_calls():
    class Noting(wengert.Tensor):
        seen = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            cls.seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    out = (tensor([1.0, 2.0]).as_subclass(Noting) * 2).sum()
    assert type(out) is Noting and type(out.array) is Array
    assert Noting.seen == ["mul", "sum"]


def test_custom_operators():
    with wengert.library._scoped_library("standin_tests", "FRAGMENT"):
        twice = wengert.library.custom_op(
            "standin_tests::twice", lambda x: x * 2, mutates_args=(), schema="(Tensor x) -> Tensor"
        )
        twice.register_autograd(lambda ctx, g: g * 2)
        x = tensor([1.0, 2.0], requires_grad=True)
        twice(x).sum().backward()
        assert values_of(x.grad) == [2.0, 2.0]
        with pytest.warns(UserWarning, match="no batching rule"):
            mapped = wengert.func.vmap(twice)(tensor([[1.0], [2.0]]))
        assert values_of(mapped) == [[2.0], [4.0]]


def test_anomalies_are_found():
    x = tensor([0.0], requires_grad=True)
    with pytest.warns(UserWarning), pytest.raises(RuntimeError, match="returned nan values"):
        with wengert.autograd.detect_anomaly():
            (x.sqrt() * x).sum().backward()


def test_forward_mode():
    x, t = tensor([1.0, 2.0]), tensor([1.0, 10.0])
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, t)
        part = dual.clone()
        part[:1].mul_(dual[1:])
        tangent = forward_ad.unpack_dual(part).tangent
    assert values_of(tangent) == [12.0, 10.0]


def test_gradcheck():
    x = tensor([[0.3, -1.2], [0.8, 2.0]], requires_grad=True)
    weight = tensor([[1.0, -0.5], [0.2, 0.7]], requires_grad=True)
    function = lambda x, w: wengert.nn.functional.layer_norm((x @ w).tanh(), (2,))
    assert wengert.autograd.gradcheck(function, (x, weight))
    assert wengert.autograd.gradgradcheck(function, (x, weight))


def test_transforms_nest():
    x = tensor([[1.0, 2.0], [3.0, 4.0]])
    cubes = lambda v: (v**3).sum()
    gradients = wengert.func.vmap(wengert.func.grad(cubes))(x)
    assert values_of(gradients) == [[3.0, 12.0], [27.0, 48.0]]
    assert values_of(wengert.func.hessian(cubes)(x[0])) == [[6.0, 0.0], [0.0, 12.0]]
    assert values_of(wengert.func.jacrev(wengert.func.jacfwd(cubes))(x[0])) == [
        [6.0, 0.0], [0.0, 12.0],
    ]  # fmt: skip


def test_writing_inside_transforms():
    def function(v):
        made = v.new_zeros(3)
        made[:2] = v
        made[1:].mul_(v[0])
        return made.sum()

    x = tensor([[1.0, 2.0], [3.0, 4.0]])
    assert values_of(wengert.func.vmap(function)(x)) == [3.0, 15.0]
    assert values_of(wengert.func.vmap(wengert.func.grad(function))(x)) == [[3.0, 1.0], [5.0, 3.0]]


def test_memory_inside_transforms():
    function = lambda v: (v[1:].as_strided((2,), (1,), 2) * v[1:].storage_offset()).prod()
    x = tensor([1.0, 2.0, 3.0, 4.0])
    assert values_of(wengert.func.grad(function)(x)) == [0.0, 0.0, 4.0, 3.0]
    twice = wengert.stack([x, x + 1])
    assert values_of(wengert.func.vmap(lambda v: v[2:].view(2, 1).t()[0])(twice)) == [
        [3.0, 4.0], [4.0, 5.0],
    ]  # fmt: skip


def test_functionalize():
    x = tensor([1.0, 2.0])
    result = wengert.func.functionalize(lambda v: v.add_(1).view(2, 1))(x)
    result.zero_()
    assert values_of(x) == [2.0, 3.0]


# Compiled functions ------------------------------------------------------------------------------


def test_compiled_functions_run_graphs(recwarn):
    def function(x, w):
        h = (x @ w).tanh()
        h = h + wengert.ones(2, device=x.device) * x.new_full((1,), 0.5)
        return wengert.nn.functional.softmax(h, -1)[:, 0].sum()

    compiled = wengert.compile(function)
    x, w = tensor([[1.0, 2.0], [0.5, -1.0]]), tensor([[0.1, 0.2], [0.3, -0.4]], requires_grad=True)
    (expected,) = wengert.autograd.grad(function(x, w), w)
    for _ in range(2):
        (found,) = wengert.autograd.grad(compiled(x, w), w)
        assert_on_device(found)
        np.testing.assert_allclose(found.tolist(), expected.tolist())
    # What the stand-in keeps in a weak dictionary cannot be watched: one call is compiled.
    messages = [str(each.message) for each in recwarn.list]
    assert len(messages) <= 1 and all("_OWNERS.data" in each for each in messages)


def test_compiled_functions_know_devices():
    compiled = wengert.compile(lambda x: (x.to("standin") + 1).cpu() * 2)
    assert compiled(wengert.ones(2)).tolist() == [4.0, 4.0]
    compiled = wengert.compile(lambda x: x * 2)
    assert compiled(wengert.ones(2)).is_cpu
    assert_on_device(compiled(wengert.ones(2, device="standin")))


def test_compiled_functions_write():
    def function(x):
        x[1:].mul_(2)
        return x.sum()

    x = tensor([1.0, 2.0, 3.0])
    assert wengert.compile(function)(x).item() == 11.0
    assert values_of(x) == [1.0, 4.0, 6.0]


# Random numbers ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "draw",
    [
        lambda place: wengert.rand(3, device=place),
        lambda place: wengert.randn(2, 2, device=place),
        lambda place: wengert.randint(0, 9, (4,), device=place),
        lambda place: wengert.randperm(5, device=place),
        lambda place: wengert.rand_like(wengert.ones(2, device=place)),
        lambda place: wengert.bernoulli(wengert.full((4,), 0.5, device=place)),
        lambda place: wengert.normal(wengert.ones(3, device=place), 2.0),
        lambda place: wengert.multinomial(wengert.ones(4, device=place), 2),
        lambda place: wengert.ones(3, device=place).uniform_(2, 3),
        lambda place: wengert.ones(3, device=place).normal_(),
        lambda place: wengert.nn.functional.dropout(wengert.ones(8, device=place), 0.5),
    ],
)
def test_random_numbers_are_those_of_the_cpu(draw):
    wengert.manual_seed(3)
    expected = draw("cpu").tolist()
    wengert.manual_seed(3)
    assert values_of(draw("standin")) == expected


# Backends ----------------------------------------------------------------------------------------


def test_a_class_without_a_backend_is_refused():
    class Unknown:
        pass

    with pytest.raises(TypeError, match="arrays of class Unknown are not supported"):
        backend_of(Unknown())


def test_a_backend_is_found_by_class_and_by_device():
    class Numbers:
        """An array class in name only."""

    class NumbersBackend(Backend):
        array_class = Numbers
        device_type = "numbers"

    backend = NumbersBackend()
    register(backend)
    assert backend_of(Numbers()) is backend
    assert wengert.device("numbers:1").index == 1
    with pytest.raises(NotImplementedError, match=r"NumbersBackend does not define empty\(\)"):
        wengert.zeros(2, device="numbers")


# The stand-in itself -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "convert",
    [
        np.asarray, np.sin, np.sum, float, bool, int, list, complex, lambda a: a + np.ones(2),
        lambda a: np.ones(2) * a, lambda a: a[np.array([0])], lambda a: np.concatenate([a, a]),
        lambda a: [1, 2][a[0]], lambda a: 1.0 in a, lambda a: a.__setitem__(0, np.ones(1)),
    ],
)  # fmt: skip
def test_the_stand_in_refuses_implicit_conversions(convert):
    with pytest.raises(Strictness):
        convert(Array(np.arange(2.0)))
