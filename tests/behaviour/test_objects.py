"""Tensors as Python objects: subclasses, copies, attributes, sizes, membership."""

import copy
import warnings

import pytest

import wengert
from wengert.core.tensor import FRESH


def test_subclass_with_arguments_of_its_own(lib):
    class Named(lib.Tensor):
        @staticmethod
        def __new__(cls, data, name):
            return lib.Tensor._make_subclass(cls, data, data.requires_grad)

        def __init__(self, data, name):
            self.title = name

    x = Named(lib.ones(2, requires_grad=True), "weights")
    assert type(x) is Named
    assert (x.title, x.tolist(), x.requires_grad, x.is_leaf) == ("weights", [1.0, 1.0], True, True)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_subclasses_say_what_they_contain(lib):
    class Wrapper(lib.Tensor):
        def __new__(cls, inner, **options):
            return lib.Tensor._make_wrapper_subclass(
                cls, inner.shape, dtype=inner.dtype, **options
            )

        def __init__(self, inner, **options):
            self.inner = inner

        def __repr__(self):
            return super().__repr__(tensor_contents=f"inner={self.inner.tolist()}")

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    class Plain(lib.Tensor):
        pass

    ones = lib.ones(2)
    assert repr(Wrapper(ones)) == "Wrapper(inner=[1.0, 1.0])"
    assert str(Wrapper(ones, requires_grad=True)) == (
        "Wrapper(inner=[1.0, 1.0], requires_grad=True)"
    )
    assert repr(Wrapper(lib.ones(0, 2))) == "Wrapper(inner=[], size=(0, 2))"
    assert Plain([1.0]).__repr__(tensor_contents="one") == "Plain(one)"
    assert lib.ones(2).int().__repr__(tensor_contents="ones") == (
        f"tensor(ones, dtype={lib.__name__}.int32)"
    )
    assert lib.ones(2, device="meta").__repr__(tensor_contents="ones") == (
        "tensor(ones, device='meta', size=(2,))"
    )
    with pytest.raises(TypeError, match=r"__repr__\(\) takes 1 positional argument"):
        lib.ones(2).__repr__("ones")


def test_functions_that_override_see_the_contents(lib):
    seen = []

    class Logging(lib.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func is lib.Tensor.__repr__:
                seen.append(kwargs["tensor_contents"])
            return super().__torch_function__(func, types, args, kwargs or {})

    assert Logging([1.0]).__repr__(tensor_contents="one") == "Logging(one)"
    assert seen == ["one"]


def test_deep_copies_share_memory_as_their_originals_do(lib):
    x = lib.arange(6.0)
    whole, part, turned = copy.deepcopy([x, x[1:3], x.view(2, 3).t()])
    assert turned.stride() == (1, 3)
    whole.zero_()
    assert part.tolist() == [0.0, 0.0]
    assert turned.tolist() == [[0.0, 0.0]] * 3
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_deep_copy_of_an_expanded_tensor_stays_expanded(lib):
    x = copy.deepcopy(lib.ones(3).expand(2, 3))
    assert x.stride() == (0, 1)
    assert x.tolist() == [[1.0] * 3] * 2


def test_deep_copy_of_one_tensor_is_one_tensor(lib):
    x = lib.ones(2, requires_grad=True)
    first, second = copy.deepcopy([x, x])
    assert first is second
    assert first is not x


def test_flag_of_a_result_cannot_be_set(lib):
    y = lib.ones(2, requires_grad=True) * 2
    for value in (True, False):
        with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf"):
            y.requires_grad = value
    assert y.requires_grad_() is y
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf"):
        y.requires_grad_(False)


@pytest.mark.parametrize("make", ["tensor", "as_tensor"])
def test_strings_are_no_data(lib, make):
    with pytest.raises(TypeError, match="invalid data type 'str'"):
        getattr(lib, make)("a")
    with pytest.raises(ValueError, match="too many dimensions 'str'"):
        getattr(lib, make)(["a"])


def test_flag_must_be_a_bool(lib):
    with pytest.raises(TypeError, match="argument 'requires_grad' must be bool, not int"):
        lib.tensor([1.0], requires_grad=1)
    with pytest.raises(TypeError, match="argument 'requires_grad' must be bool, not str"):
        lib.zeros(2, requires_grad="yes")


def test_size_holds_whole_numbers(lib):
    with pytest.raises(TypeError, match="takes an iterable of 'int'"):
        lib.Size(["a"])
    with pytest.raises(TypeError, match="takes an iterable of 'int'"):
        lib.Size([1.5])
    size = lib.Size([lib.tensor(2), 3])
    assert size == (2, 3)
    assert all(type(length) is int for length in size)
    assert isinstance(size[:1], lib.Size)
    assert isinstance(size + (1,), lib.Size)
    assert lib.Size() == ()


def test_membership(lib):
    x = lib.tensor([1, 2])
    assert 1 in x
    assert 3 not in x
    assert lib.tensor(2) in x
    with pytest.raises(RuntimeError, match="__contains__ only supports Tensor or scalar"):
        x.__contains__("a")


def test_shifts_in_place(lib):
    x = lib.tensor([1, 2])
    same = x
    x <<= 2
    assert same.tolist() == [4, 8]
    x >>= 1
    assert same.tolist() == [2, 4]
    assert x is same
    assert x._version == 2


def test_reversed(lib):
    assert reversed(lib.tensor([[1, 2], [3, 4]])).tolist() == [[3, 4], [1, 2]]
    assert reversed(lib.tensor(5)).item() == 5


def test_questions_as_functions(lib):
    x = lib.ones(2, 3)
    assert (lib.numel(x), lib.is_floating_point(x), lib.is_complex(x)) == (6, True, False)
    assert lib.is_nonzero(lib.tensor(2.0))
    assert not lib.is_nonzero(lib.tensor([0]))
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with more than one value"):
        lib.is_nonzero(x)
    assert x.layout is lib.strided
    assert lib.scalar_tensor(2).tolist() == 2.0
    assert lib.scalar_tensor(2).dtype == lib.float32
    assert lib.scalar_tensor(2.5, dtype=lib.int64).item() == 2


# Indices


def test_an_array_of_floats_is_an_index(lib):
    numpy = pytest.importorskip("numpy")
    x = lib.arange(6).view(2, 3)
    assert x[numpy.array([1.0, 0.0])].tolist() == [[3, 4, 5], [0, 1, 2]]


def test_mask_of_bytes_warns(lib):
    x = lib.arange(3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert x[lib.tensor([1, 0, 1], dtype=lib.uint8)].tolist() == [0, 2]
    assert "uint8 is now deprecated" in str(caught[0].message)


def test_values_that_do_not_fit_a_mask(lib):
    x = lib.zeros(2, 3)
    with pytest.raises(RuntimeError, match="shape mismatch: value tensor of shape"):
        x[x == 0] = lib.ones(2, 3)
    with pytest.raises(RuntimeError, match="Index put requires the source and destination dtypes"):
        x[lib.tensor([0])] = lib.tensor(1j)


def test_assigned_number_is_a_tensor_of_the_graph(lib):
    x = lib.ones(2, requires_grad=True) * 1
    x[:] = 3.0
    assert x.grad_fn.name() == "FillBackward3"


def test_volatile_is_refused_by_a_warning(lib):
    with pytest.warns(UserWarning, match="volatile was removed and now has no effect"):
        made = lib.autograd.Variable(lib.ones(2), volatile=True)
    assert not made.requires_grad


@pytest.mark.parametrize(
    "shapes, expected",
    [
        ([], []),
        ([(2, 1), (3,)], [2, 3]),
        ([3, (2, 1)], [2, 3]),
        ([(1, 0), (1, 1)], [1, 0]),
        ([(), (4, 1, 1), (2, 1), 3], [4, 2, 3]),
    ],
)
def test_shapes_broadcast(lib, shapes, expected):
    assert lib.broadcast_shapes(*shapes) == lib.Size(expected)


@pytest.mark.parametrize("shapes", [[(2,), (3,)], [(2, 3), (3, 2)], [(0,), (2,)]])
def test_shapes_that_do_not_broadcast(lib, shapes):
    with pytest.raises(RuntimeError, match="Attempting to broadcast a dimension of length"):
        lib.broadcast_shapes(*shapes)


def test_constants(lib):
    assert (lib.e, lib.pi, lib.inf) == (2.718281828459045, 3.141592653589793, float("inf"))
    assert lib.nan != lib.nan
    assert lib.ones(2)[:, lib.newaxis].shape == (2, 1)


@pytest.mark.compiled_only  # plain classes have no fields that cannot be assigned
@pytest.mark.parametrize("name", FRESH)
def test_fields_of_the_record_cannot_be_assigned(name):
    class Own(wengert.Tensor):
        pass

    x = wengert.ones(2, requires_grad=True)
    for t in (x, x * 2, wengert.ones(2).as_subclass(Own)):
        before = getattr(t, name)
        with pytest.raises(AttributeError, match=f"'{name}' of '.*' objects is not writable"):
            setattr(t, name, 1)
        assert getattr(t, name) is before
    assert not x.is_inference() and x.grad_fn is None


def test_other_names_are_free_for_programs(lib):
    x = lib.ones(2, requires_grad=True)
    x.nodes, x._node = [1], "mine"
    assert x.nodes == [1] and x._node == "mine"
    assert (x * 2).grad_fn.next_functions[0][0].variable is x
