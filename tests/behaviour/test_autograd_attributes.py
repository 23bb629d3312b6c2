"""The attributes of a tensor that autograd owns."""

import copy
import gc
import pickle
import warnings
import weakref

import numpy as np
import pytest

# requires_grad


def test_tensor_does_not_require_grad_by_default(lib):
    x = lib.ones(2)
    assert x.requires_grad is False
    assert x.is_leaf
    assert x.grad_fn is None
    assert x.grad is None
    assert x.output_nr == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda lib: lib.tensor([1.0, 2.0], requires_grad=True),
        lambda lib: lib.ones(2, requires_grad=True),
        lambda lib: lib.zeros(2, requires_grad=True),
        lambda lib: lib.full((2,), 3.0, requires_grad=True),
        lambda lib: lib.empty(2, requires_grad=True),
        lambda lib: lib.arange(2.0, requires_grad=True),
        lambda lib: lib.linspace(0, 1, 2, requires_grad=True),
        lambda lib: lib.eye(2, requires_grad=True),
        lambda lib: lib.rand(2, requires_grad=True),
        lambda lib: lib.randn(2, requires_grad=True),
        lambda lib: lib.ones_like(lib.ones(2), requires_grad=True),
        lambda lib: lib.ones(2).new_zeros(2, requires_grad=True),
    ],
)
def test_factories_take_requires_grad(lib, make):
    x = make(lib)
    assert x.requires_grad
    assert x.is_leaf
    assert x.grad_fn is None


@pytest.mark.parametrize("value", [True, False])
def test_setter(lib, value):
    x = lib.ones(2, requires_grad=not value)
    x.requires_grad = value
    assert x.requires_grad is value


def test_method_returns_the_tensor(lib):
    x = lib.ones(2)
    assert x.requires_grad_() is x
    assert x.requires_grad
    assert x.requires_grad_(False) is x
    assert not x.requires_grad


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "bool"])
def test_integers_may_not_require_grad(lib, dtype):
    x = lib.ones(2, dtype=getattr(lib, dtype))
    with pytest.raises(RuntimeError, match="[Oo]nly Tensors of floating point"):
        x.requires_grad_()
    with pytest.raises(RuntimeError, match="[Oo]nly Tensors of floating point"):
        x.requires_grad = True
    assert not x.requires_grad


def test_integer_factory_may_not_require_grad(lib):
    with pytest.raises(RuntimeError, match="[Oo]nly Tensors of floating point"):
        lib.tensor([1, 2], requires_grad=True)
    with pytest.raises(RuntimeError, match="[Oo]nly Tensors of floating point"):
        lib.ones(2, dtype=lib.int64, requires_grad=True)


def test_integers_may_be_told_not_to_require_grad(lib):
    x = lib.ones(2, dtype=lib.int64)
    x.requires_grad = False
    assert x.requires_grad_(False) is x


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
)
def test_floats_and_complex_may_require_grad(lib, dtype):
    assert lib.ones(2, dtype=getattr(lib, dtype), requires_grad=True).requires_grad


@pytest.mark.parametrize("wrong", [1, 0, None, "yes"])
def test_setter_wants_a_bool(lib, wrong):
    x = lib.ones(2)
    with pytest.raises(RuntimeError, match="must be a bool"):
        x.requires_grad = wrong


def test_nonleaf_may_not_be_frozen(lib):
    y = lib.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="only change requires_grad flags of leaf"):
        y.requires_grad = False
    with pytest.raises(RuntimeError, match="only change requires_grad flags of leaf"):
        y.requires_grad_(False)
    assert y.requires_grad


def test_freezing_a_nonleaf_names_the_remedy(lib):
    y = lib.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="detach"):
        y.requires_grad_(False)


def test_nonleaf_may_be_told_again_to_require_grad(lib):
    y = lib.ones(2, requires_grad=True) * 2
    assert y.requires_grad_() is y
    assert y.grad_fn is not None


def test_result_without_grad_may_start_a_graph(lib):
    y = lib.ones(2) * 2
    y.requires_grad_()
    (y * 3).sum().backward()
    assert y.grad.tolist() == [3.0, 3.0]


def test_result_requires_grad_if_any_operand_does(lib):
    x, y = lib.ones(2, requires_grad=True), lib.ones(2)
    assert (x * y).requires_grad
    assert (y * x).requires_grad
    assert not (y * y).requires_grad


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x > 0,
        lambda x: x == x,
        lambda x: x.argmax(),
        lambda x: x.long(),
        lambda x: x.sort()[1],
        lambda x: x.max(0)[1],
        lambda x: x.nonzero(),
        lambda x: x.detach(),
        lambda x: x.data,
        lambda x: x.new_ones(2),
        lambda x: x.isnan(),
        lambda x: x.logical_not(),
    ],
)
def test_results_that_never_require_grad(lib, make):
    y = make(lib.ones(3, requires_grad=True))
    assert not y.requires_grad
    assert y.grad_fn is None
    assert y.is_leaf


@pytest.mark.parametrize("name", ["zeros_like", "ones_like", "rand_like", "empty_like"])
def test_like_factories_do_not_inherit_requires_grad(lib, name):
    assert not getattr(lib, name)(lib.ones(2, requires_grad=True)).requires_grad


@pytest.mark.parametrize("name", ["sign", "round", "floor", "ceil", "trunc"])
def test_piecewise_constant_functions_have_zero_gradient(lib, name):
    x = lib.tensor([1.5, -2.5], requires_grad=True)
    y = getattr(x, name)()
    assert y.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "name", ["is_leaf", "grad_fn", "output_nr", "_version", "_base", "retains_grad"]
)
def test_read_only_attributes(lib, name):
    x = lib.ones(2, requires_grad=True)
    with pytest.raises(AttributeError):
        setattr(x, name, None)


# Leaves


def test_leaf_that_requires_grad(lib):
    x = lib.ones(2, requires_grad=True)
    assert x.is_leaf
    assert x.grad_fn is None


def test_result_is_no_leaf(lib):
    y = lib.ones(2, requires_grad=True) * 2
    assert not y.is_leaf
    assert y.grad_fn is not None


def test_result_of_constants_is_a_leaf(lib):
    assert (lib.ones(2) * 2).is_leaf


def test_converted_leaf_is_no_leaf(lib):
    x = lib.ones(2, requires_grad=True)
    y = x.to(lib.float64)
    assert not y.is_leaf
    (y * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    assert x.grad.dtype == lib.float32


def test_conversion_to_the_same_dtype_is_the_tensor_itself(lib):
    x = lib.ones(2, requires_grad=True)
    assert x.to(lib.float32) is x
    assert x.float() is x


def test_clone_of_leaf_is_no_leaf(lib):
    x = lib.ones(2, requires_grad=True)
    y = x.clone()
    assert not y.is_leaf
    (y * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


# detach and data


def test_detach_shares_memory(lib):
    x = lib.ones(2, requires_grad=True)
    alias = x.detach()
    assert alias is not x
    assert not alias.requires_grad
    alias[0] = 5.0
    assert x.tolist() == [5.0, 1.0]


def test_detach_of_nonleaf_is_a_leaf(lib):
    y = (lib.ones(2, requires_grad=True) * 2).detach()
    assert y.is_leaf
    assert y.grad_fn is None


def test_detach_blocks_the_gradient(lib):
    x = lib.tensor(3.0, requires_grad=True)
    (x * x.detach()).backward()
    assert x.grad.item() == 3.0


def test_detached_alias_may_require_grad_on_its_own(lib):
    x = lib.ones(2, requires_grad=True)
    alias = x.detach().requires_grad_()
    (alias * 2).sum().backward()
    assert alias.grad.tolist() == [2.0, 2.0]
    assert x.grad is None


def test_data_shares_memory(lib):
    x = lib.ones(2, requires_grad=True)
    x.data[0] = 5.0
    assert x.tolist() == [5.0, 1.0]
    assert not x.data.requires_grad


def test_data_assignment_keeps_the_identity_of_the_leaf(lib):
    x = lib.ones(2, requires_grad=True)
    x.data = lib.zeros(3)
    assert x.shape == (3,)
    assert x.requires_grad
    assert x.is_leaf


def test_data_assignment_of_integers_to_a_leaf_with_grad_is_refused(lib):
    x = lib.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="floating point or complex"):
        x.data = lib.zeros(2, dtype=lib.int64)


def test_data_assignment_of_no_tensor_is_refused(lib):
    x = lib.ones(2)
    with pytest.raises(TypeError, match="has to be a tensor"):
        x.data = 3


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("shape", [(3,), (1,), ()])
@pytest.mark.parametrize(
    ("use", "expected"),
    [
        (lambda lib, x: x * 3, [3.0, 3.0]),
        (lambda lib, x: x * lib.ones(4, 2), [4.0, 4.0]),
        (lambda lib, x: lib.cat([x[:1], x.exp() * 0]), [1.0, 0.0]),
    ],
)
def test_gradient_of_what_was_computed_before_data_was_set(lib, use, expected, shape, again):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    y = use(lib, x).sum()
    if again:
        lib.autograd.grad(y, x, retain_graph=True)
    x.data = lib.ones(shape)
    assert lib.autograd.grad(y, x)[0].tolist() == expected


def test_gradients_before_and_after_data_was_set(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    y = (x * 3).sum()
    x.data = lib.ones(3)
    y.backward()
    assert x.grad.tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError):
        (x * 2).sum().backward()
    x.grad = y = None
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_data_may_not_be_deleted(lib):
    x = lib.ones(2)
    with pytest.raises(RuntimeError, match="Deleting tensor data is not allowed"):
        del x.data


# .grad of a non-leaf


def test_reading_grad_of_nonleaf_warns(lib):
    y = lib.ones(2, requires_grad=True) * 2
    with pytest.warns(UserWarning, match="not a leaf Tensor is being accessed"):
        assert y.grad is None


def test_reading_grad_of_retaining_nonleaf_does_not_warn(lib):
    y = lib.ones(2, requires_grad=True) * 2
    y.retain_grad()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert y.grad is None


def test_reading_grad_of_leaf_does_not_warn(lib):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert lib.ones(2, requires_grad=True).grad is None
        assert lib.ones(2).grad is None


def test_nonleaf_gets_no_gradient_by_itself(lib):
    x = lib.ones(2, requires_grad=True)
    y = x * 2
    y.sum().backward()
    with pytest.warns(UserWarning):
        assert y.grad is None


# Conversions


def test_numpy_of_tensor_with_grad_is_refused(lib):
    x = lib.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="requires grad.*detach"):
        x.numpy()


def test_asarray_of_tensor_with_grad_is_refused(lib):
    x = lib.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="requires grad"):
        np.asarray(x)


def test_numpy_of_detached_tensor_shares_memory(lib):
    x = lib.ones(2, requires_grad=True)
    array = x.detach().numpy()
    array[0] = 7.0
    assert x.tolist() == [7.0, 1.0]


def test_numpy_with_force(lib):
    assert lib.ones(2, requires_grad=True).numpy(force=True).tolist() == [1.0, 1.0]


def test_item_and_tolist_of_tensor_with_grad(lib):
    x = lib.tensor([2.5], requires_grad=True)
    assert x.item() == 2.5
    assert x.tolist() == [2.5]


def test_as_tensor_returns_the_tensor(lib):
    x = lib.ones(2, requires_grad=True)
    assert lib.as_tensor(x) is x


@pytest.mark.filterwarnings("ignore:To copy construct from a tensor")
def test_tensor_of_a_tensor_is_a_constant_copy(lib):
    x = lib.ones(2, requires_grad=True)
    y = lib.tensor(x)
    assert not y.requires_grad
    y[0] = 5.0
    assert x.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda x: x, "requires_grad=True"),
        (lambda x: x * 2, "grad_fn=<MulBackward0>"),
        (lambda x: x.sum(), "grad_fn=<SumBackward0>"),
    ],
)
def test_repr_tells_the_history(lib, make, text):
    assert text in repr(make(lib.ones(2, requires_grad=True)))


def test_repr_of_constant_is_silent_about_grad(lib):
    assert "grad" not in repr(lib.ones(2))


# Copying and pickling


def test_deepcopy_of_leaf(lib):
    x = lib.ones(2, requires_grad=True)
    x.grad = lib.tensor([3.0, 4.0])
    y = copy.deepcopy(x)
    assert y.requires_grad
    assert y.is_leaf
    assert y.grad.tolist() == [3.0, 4.0]
    assert y.grad is not x.grad
    with lib.no_grad():
        y.add_(1)
    assert x.tolist() == [1.0, 1.0]


def test_deepcopy_of_nonleaf_is_refused(lib):
    y = lib.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="deepcopy protocol"):
        copy.deepcopy(y)


def test_deepcopy_of_a_view_made_without_grad(lib):
    x = lib.ones(2, requires_grad=True)
    with lib.no_grad():
        view = x[:1]
    assert view.requires_grad
    copied = copy.deepcopy(view)
    assert copied.requires_grad
    assert copied.tolist() == [1.0]


def test_deepcopy_keeps_shared_tensors_shared(lib):
    x = lib.ones(2, requires_grad=True)
    first, second = copy.deepcopy([x, x])
    assert first is second


def test_pickled_leaf_still_requires_grad(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    y = pickle.loads(pickle.dumps(x))
    assert y.requires_grad
    assert y.is_leaf
    assert y.tolist() == [1.0, 2.0]


def test_gradient_is_not_pickled(lib):
    x = lib.ones(2, requires_grad=True)
    (x * 2).sum().backward()
    assert pickle.loads(pickle.dumps(x)).grad is None


def test_pickled_nonleaf_becomes_a_leaf(lib):
    y = pickle.loads(pickle.dumps(lib.ones(2, requires_grad=True) * 2))
    assert y.is_leaf
    assert y.tolist() == [2.0, 2.0]


def test_node_may_not_be_pickled(lib):
    y = lib.ones(2, requires_grad=True) * 2
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(y.grad_fn)


# Life time


def test_tensor_may_be_weakly_referenced(lib):
    x = lib.ones(2)
    reference = weakref.ref(x)
    assert reference() is x
    del x
    gc.collect()
    assert reference() is None


def test_intermediate_dies_while_the_graph_lives(lib):
    x = lib.ones(2, requires_grad=True)
    y = x + 1
    reference = weakref.ref(y)
    z = y + 1
    del y
    gc.collect()
    assert reference() is None
    z.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_leaf_is_kept_alive_by_the_graph(lib):
    x = lib.ones(2, requires_grad=True)
    seen = []
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.tolist()))
    z = (x * 2).sum()
    del x
    gc.collect()
    z.backward()
    assert seen == [[2.0, 2.0]]


def test_attributes_set_on_a_tensor_survive_the_graph(lib):
    x = lib.ones(2, requires_grad=True)
    x.label = "weights"
    y = x * 2
    del x
    gc.collect()
    leaf = y.grad_fn.next_functions[0][0].variable
    assert leaf.label == "weights"


def test_tensors_compare_by_identity_when_hashed(lib):
    x, y = lib.ones(1), lib.ones(1)
    assert len({x, y, x}) == 2


# Variable


def test_variable_is_the_tensor_type(lib):
    assert isinstance(lib.ones(1), lib.autograd.Variable)


def test_variable_makes_a_tensor(lib):
    x = lib.autograd.Variable(lib.ones(2), requires_grad=True)
    assert x.requires_grad
    assert isinstance(x, lib.Tensor)


def test_lower_case_variable_is_refused(lib):
    with pytest.raises(RuntimeError, match="deprecated"):
        lib.autograd.variable(3)
