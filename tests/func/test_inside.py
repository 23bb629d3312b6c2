"""What tensors can do inside a transform: modes, leaves, reading, printing, escaping."""

import copy
import pickle
import threading

import pytest

import wengert

# Modes


class TestNoGrad:
    @staticmethod
    def half_constant(lib):
        def f(x):
            with lib.no_grad():
                c = x**3
            return x**3 * c

        return f

    def test_inside_is_respected(self, lib):
        """x^3 c with a constant c = x^3 has the derivative 3 x^5."""
        assert lib.func.grad(self.half_constant(lib))(lib.tensor(2.0)).item() == 96.0

    def test_inside_counts_for_all_levels_of_reverse_mode(self, lib):
        f = self.half_constant(lib)
        assert lib.func.grad(lib.func.grad(f))(lib.tensor(2.0)).item() == 96.0

    def test_forward_mode_passes_through(self, lib):
        x, one = lib.tensor(2.0), lib.tensor(1.0)
        assert lib.func.jvp(self.half_constant(lib), (x,), (one,))[1].item() == 192.0

    def test_outside_is_not_respected(self, lib):
        with lib.no_grad():
            assert lib.func.grad(lambda x: x**3)(lib.tensor(2.0)).item() == 12.0
            assert lib.func.grad(lib.func.grad(lambda x: x**3))(lib.tensor(2.0)).item() == 12.0
            assert not lib.is_grad_enabled()
        assert lib.is_grad_enabled()

    def test_between_two_transforms_it_belongs_to_the_outer(self, lib):
        def f(x):
            with lib.no_grad():
                return lib.func.grad(lambda y: y**3 * x)(x)

        assert lib.func.grad(f)(lib.tensor(2.0)).item() == 0.0

    def test_outside_results_do_not_require_grad(self, lib):
        w = lib.tensor(3.0, requires_grad=True)
        with lib.no_grad():
            assert not lib.func.grad(lambda x: w * x * x)(lib.tensor(2.0)).requires_grad
        assert lib.func.grad(lambda x: w * x * x)(lib.tensor(2.0)).requires_grad


def test_gradients_are_enabled_inside(lib):
    seen = []
    with lib.no_grad():
        lib.func.grad(lambda x: seen.append(lib.is_grad_enabled()) or x)(lib.tensor(1.0))
    assert seen == [True]


def test_inference_mode_around(lib):
    with lib.inference_mode():
        assert lib.func.grad(lambda x: x**3)(lib.tensor(2.0)).item() == 12.0
        x = lib.tensor([1.0, 2.0])
        assert lib.func.hessian(lambda x: (x**3).sum())(x).tolist() == [[6.0, 0.0], [0.0, 12.0]]
        assert lib.vmap(lib.func.grad(lambda x: x**3))(x).tolist() == [3.0, 12.0]


def test_detach_is_a_constant_at_all_levels(lib):
    def f(x):
        return x**3 * x.detach() ** 3

    x, one = lib.tensor(2.0), lib.tensor(1.0)
    assert lib.func.grad(lib.func.grad(f))(x).item() == 96.0
    assert lib.func.jvp(lib.func.grad(f), (x,), (one,))[1].item() == 96.0
    assert lib.func.grad(lambda x: lib.func.jvp(f, (x,), (one,))[1])(x).item() == 96.0


# Graphs and leaves


@pytest.mark.parametrize("transform", ["grad", "vmap", "jvp"])
class TestRefusals:
    def call(self, lib, transform, f):
        x = lib.tensor([1.0, 2.0])
        if transform == "grad":
            return lib.func.grad(lambda x: f(x).sum())(x)
        return lib.vmap(f)(x) if transform == "vmap" else lib.func.jvp(f, (x,), (x,))

    def test_backward(self, lib, transform):
        def f(x):
            w = lib.ones(2, requires_grad=True)
            w.sum().backward()
            return x

        with pytest.raises(RuntimeError, match="called inside a functorch transform"):
            self.call(lib, transform, f)

    @pytest.mark.parametrize("flag", [True, False])
    def test_requires_grad_(self, lib, transform, flag):
        with pytest.raises(RuntimeError, match="attempting to call Tensor.requires_grad_"):
            self.call(lib, transform, lambda x: x.requires_grad_(flag))
        with pytest.raises(RuntimeError, match="attempting to call Tensor.requires_grad_"):
            self.call(lib, transform, lambda x: x * lib.ones(2).requires_grad_(flag).sum())

    def test_functional_of_autograd(self, lib, transform):
        with pytest.raises(RuntimeError, match="attempting to call Tensor.requires_grad_"):
            self.call(lib, transform, lambda x: lib.autograd.functional.jacobian(lib.sin, x))

    def test_setting_data(self, lib, transform):
        def f(x):
            x = x.clone()
            x.data = lib.ones(2)
            return x

        with pytest.raises(RuntimeError, match="mutating directly with `.data`"):
            self.call(lib, transform, f)

    @pytest.mark.parametrize(
        "way", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
    )
    def test_copies_outside_of_the_library(self, lib, transform, way):
        with pytest.raises(NotImplementedError, match="Cannot access storage of"):
            self.call(lib, transform, lambda x: way(x) * x)


def test_retain_grad_is_refused(lib):
    with pytest.raises(RuntimeError, match="attempting to call Tensor.retain_grad"):
        lib.func.grad(lambda x: (x * 2).retain_grad() or x)(lib.tensor(1.0))


def test_tensors_that_require_grad_can_be_made(lib):
    found = lib.vmap(lambda x: x * lib.ones(2, requires_grad=True).sum())(lib.ones(3))
    assert found.tolist() == [2.0, 2.0, 2.0] and found.requires_grad


def test_what_a_level_tensor_says_of_itself(lib):
    seen = []

    def look(x):
        seen.append((x.requires_grad, x.is_leaf, x.grad_fn))
        return x.sum()

    x = lib.tensor([1.0, 2.0], requires_grad=True)
    lib.func.grad(look)(x)
    lib.func.jvp(look, (x,), (lib.ones(2),))
    lib.vmap(look)(x)
    lib.vmap(lib.func.grad(look))(x)
    leaf, constant = (True, True, None), (False, True, None)
    assert seen == [leaf, constant, constant, leaf]


def test_gradient_of_a_graph_outside_by_batched_cotangents(lib):
    w = lib.tensor(3.0, requires_grad=True)
    square = w * w
    found = lib.vmap(lambda v: lib.autograd.grad(square, w, v, retain_graph=True)[0])(lib.ones(3))
    assert found.tolist() == [6.0, 6.0, 6.0]


def test_autograd_of_batched_outputs_is_refused(lib):
    w = lib.tensor(3.0, requires_grad=True)
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        lib.vmap(lambda x: lib.autograd.grad(w * x, w)[0])(lib.ones(3))


def test_saved_tensor_hooks(lib):
    hooks = lib.autograd.graph.saved_tensors_hooks
    x = lib.tensor([1.0, 2.0])

    def f(x):
        with hooks(lambda t: t, lambda t: t):
            return (x * x).sum()

    with pytest.raises(RuntimeError, match="don't yet support saved tensor hooks"):
        lib.func.grad(f)(x)
    with hooks(lambda t: t, lambda t: t), pytest.raises(RuntimeError, match="saved tensor hooks"):
        lib.func.grad(lambda x: x.sum())(x)
    assert lib.vmap(f)(lib.ones(2, 3)).tolist() == [3.0, 3.0]
    assert lib.func.jvp(f, (x,), (x,))[1].item() == 10.0
    with hooks(lambda t: t, lambda t: t):
        (x.requires_grad_() * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


# Reading


READ = {
    "item": lambda x: x.item(),
    "float": lambda x: float(x),
    "int": lambda x: int(x),
    "bool": lambda x: 1.0 if x > 0 else 2.0,
    "while": lambda x: next(k for k in range(9) if not x > k),
    "contains": lambda x: float(1.0 in x.reshape(1)),
    "format": lambda x: float(f"{x:.3f}"),
}


@pytest.mark.parametrize("read", READ)
def test_numbers_can_be_read_inside_derivatives(lib, read):
    x, one = lib.tensor(2.0), lib.tensor(1.0)
    expected = READ[read](x)
    assert lib.func.grad(lambda x: x * READ[read](x))(x).item() == expected
    assert lib.func.jvp(lambda x: x * READ[read](x), (x,), (one,))[1].item() == expected
    assert lib.func.grad(lib.func.grad(lambda x: x * x * READ[read](x)))(x).item() == 2 * expected


@pytest.mark.parametrize("read", READ)
def test_numbers_cannot_be_read_of_a_batch(lib, read):
    message = "calling .item\\(\\)|data-dependent control flow"
    with pytest.raises(RuntimeError, match=message):
        lib.vmap(lambda x: x * READ[read](x))(lib.ones(3))
    with pytest.raises(RuntimeError, match=message):
        lib.vmap(lib.func.grad(lambda x: x * READ[read](x)))(lib.ones(3))


def test_shared_values_can_be_read_inside_vmap(lib):
    shared = lib.tensor(4.0)
    assert lib.vmap(lambda x: x * shared.item())(lib.ones(2)).tolist() == [4.0, 4.0]
    assert lib.vmap(lambda x, s: x * float(s), in_dims=(0, None))(lib.ones(2), shared).sum() == 8


def test_arrays_are_not_handed_out(lib):
    message = "Cannot access data pointer of Tensor that doesn't have storage"
    for read in (lambda x: x.numpy(), lambda x: x.data_ptr()):
        with pytest.raises(RuntimeError, match=message):
            lib.vmap(lambda x, read=read: x * read(x))(lib.ones(2))
        with pytest.raises(RuntimeError, match=message):
            lib.func.grad(lambda x, read=read: x * read(x.detach()))(lib.tensor(1.0))
    with pytest.raises(RuntimeError, match="numpy\\(\\) on Tensor that requires grad"):
        lib.func.grad(lambda x: x * float(x.numpy()))(lib.tensor(1.0))


SCALED = [[3.0, 8.0], [15.0, 24.0]]
DATA_OF = {
    "shared": (lambda lib, w, x: lib.vmap(lambda x: x * w.data)(x), SCALED),
    "argument": (lambda lib, w, x: lib.vmap(lambda x, w: x * w.data, (0, None))(x, w), SCALED),
    "made": (lambda lib, w, x: lib.vmap(lambda x: x * lib.tensor([3.0, 4.0]).data)(x), SCALED),
    "inner grad": (
        lambda lib, w, x: lib.vmap(lib.func.grad(lambda x: (x * w.data).sum() * x[0]))(x),
        [[14.0, 4.0], [54.0, 20.0]],
    ),
    "outer grad": (
        lambda lib, w, x: lib.func.grad(
            lambda w: lib.vmap(lambda x: (x * w * w.data).sum())(x).sum()
        )(w),
        [18.0, 32.0],
    ),
}


@pytest.mark.parametrize(("use", "expected"), DATA_OF.values(), ids=list(DATA_OF))
def test_data_of_what_examples_share(lib, use, expected):
    w = lib.tensor([3.0, 4.0], requires_grad=True)
    assert use(lib, w, lib.tensor([[1.0, 2.0], [5.0, 6.0]])).tolist() == expected


def test_data_of_an_example_is_refused(lib):
    x = lib.ones(2, 3)
    for use in (
        lambda x: x.data,
        lambda x: lib.vmap(lambda y: y * x.data)(x),
        lambda x: lib.func.grad(lambda y: (y * x.data).sum())(x),
    ):
        with pytest.raises(RuntimeError, match="accessing `data` under vmap transform"):
            lib.vmap(use)(x)


def test_setting_data_of_what_examples_share(lib):
    w = lib.ones(2)

    def f(x):
        w.data = lib.full((2,), 3.0)
        return x * w

    assert lib.vmap(f)(lib.ones(2, 2)).tolist() == [[3.0, 3.0], [3.0, 3.0]]


def test_setting_data_to_an_example_is_refused():
    w = wengert.ones(2)
    with pytest.raises(RuntimeError, match="mutating directly with `.data`"):
        wengert.vmap(lambda x: setattr(w, "data", x) or x)(wengert.ones(2, 2))


def test_lists(lib):
    assert lib.func.grad(lambda x: x[0] * x.tolist()[1])(lib.tensor([1.0, 7.0])).tolist() == [7, 0]
    with pytest.raises(RuntimeError):
        lib.vmap(lambda x: x * x.tolist())(lib.ones(3))


def test_results_of_dynamic_size_are_refused(lib):
    x = lib.ones(2, 3)
    for f in (lambda x: x.nonzero(), lambda x: x[x > 0], lambda x: x.unique()):
        with pytest.raises(RuntimeError, match="dynamic shape"):
            lib.vmap(f)(x)


# Text


def test_text(lib):
    texts = []

    def look(x):
        texts.append(str(x))
        return x.sum()

    lib.vmap(look)(lib.ones(2, 3))
    lib.func.grad(look)(lib.ones(2))
    lib.func.jvp(look, (lib.ones(2),), (lib.ones(2),))
    lib.vmap(lib.func.grad(look))(lib.ones(2, 3))
    lib.func.grad(lambda x: lib.vmap(look, in_dims=1)(x).sum())(lib.ones(2, 2))
    assert texts == [
        "BatchedTensor(lvl=1, bdim=0, value=\n"
        "    tensor([[1., 1., 1.],\n            [1., 1., 1.]])\n)",
        "GradTrackingTensor(lvl=1, value=\n    tensor([1., 1.])\n)",
        "GradTrackingTensor(lvl=1, value=\n    tensor([1., 1.])\n)",
        "GradTrackingTensor(lvl=2, value=\n    BatchedTensor(lvl=1, bdim=0, value=\n"
        "        tensor([[1., 1., 1.],\n                [1., 1., 1.]])\n    )\n)",
        "BatchedTensor(lvl=2, bdim=1, value=\n    GradTrackingTensor(lvl=1, value=\n"
        "        tensor([[1., 1.],\n                [1., 1.]])\n    )\n)",
    ]


def test_text_of_a_cube_has_no_trailing_spaces(lib):
    texts = []
    lib.vmap(lambda x: texts.append(str(x)) or x)(lib.ones(2, 2, 2))
    assert "\n\n" in texts[0]
    assert all(line == line.rstrip() for line in texts[0].split("\n"))


# Levels


def test_a_value_of_a_running_transform_is_no_escape(lib):
    kept = []

    def f(x):
        lib.func.grad(lambda y: kept.append(x * 2) or (y * x).sum())(x)
        return (kept[0] * x).sum()

    assert lib.func.grad(f)(lib.tensor([1.0, 2.0])).tolist() == [4.0, 8.0]


def test_another_thread_does_not_run_the_transform():
    errors = []

    def f(x):
        def work():
            try:
                x * 2
            except RuntimeError as error:
                errors.append(str(error))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return x.sum()

    wengert.func.grad(f)(wengert.ones(2))
    assert len(errors) == 1 and "in a thread that does not run the transform" in errors[0]


def test_threads_have_levels_of_their_own():
    results = {}

    def work(k):
        x = wengert.full((50,), float(k))
        results[k] = wengert.vmap(wengert.func.grad(lambda x: x**3))(x)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, found in results.items():
        assert found.tolist() == [3.0 * k * k] * 50


def test_debug_unwrap(lib):
    seen = []

    def look(x):
        seen.append(lib.func.debug_unwrap(x))
        seen.append(lib.func.debug_unwrap(x, recurse=False))
        return x.sum()

    lib.vmap(lib.func.grad(look))(lib.ones(2, 3))
    assert str(seen[0]) == str(lib.ones(2, 3))
    assert "BatchedTensor" in str(seen[1])
    x = lib.ones(2)
    assert lib.func.debug_unwrap(x) is x


# With the rest of the library


def test_anomaly_mode(lib):
    with pytest.warns(UserWarning, match="Anomaly Detection"), lib.autograd.detect_anomaly():
        assert lib.vmap(lib.func.grad(lambda x: x**3))(lib.tensor([1.0, 2.0])).tolist() == [3, 12]
        with pytest.raises(RuntimeError, match="returned nan values"):
            lib.func.grad(lambda x: (x * 0).sqrt() * 0)(lib.tensor(1.0))


def test_meta_tensors(lib):
    x = lib.ones(3, device="meta")
    assert lib.func.grad(lambda x: (x * x).sum())(x).device.type == "meta"
    assert tuple(lib.func.hessian(lambda x: (x**3).sum())(x).shape) == (3, 3)
    found = lib.vmap(lambda x: x.sin() @ lib.ones(3, 4, device="meta"))(lib.ones(2, 3).to("meta"))
    assert tuple(found.shape) == (2, 4) and found.device.type == "meta"


def test_parameters_made_inside(lib):
    def f(x):
        return (lib.nn.Parameter(lib.full((3,), 2.0)) * x).sum()

    assert lib.func.grad(f)(lib.ones(3)).tolist() == [2.0, 2.0, 2.0]
    assert lib.vmap(f)(lib.ones(2, 3)).tolist() == [6.0, 6.0]


def test_iteration(lib):
    x = lib.arange(6.0).reshape(2, 3)
    assert lib.vmap(lambda row: sum(part * part for part in row))(x).tolist() == [5.0, 50.0]
    assert lib.func.grad(lambda x: sum(p.sum() * k for k, p in enumerate(x)))(x).tolist() == [
        [0.0, 0.0, 0.0],
        [1.0, 1.0, 1.0],
    ]


def test_numpy_functions():
    np = pytest.importorskip("numpy")
    x = wengert.tensor([0.0, 1.0])
    assert wengert.func.grad(lambda x: np.sin(x).sum())(x).tolist() == pytest.approx(
        [1.0, np.cos(1.0)], rel=1e-6
    )
    assert wengert.vmap(lambda x: np.ones(2) * x)(x).tolist() == [[0.0, 0.0], [1.0, 1.0]]
    with pytest.raises(RuntimeError, match="doesn't have storage"):
        wengert.vmap(lambda x: np.asarray(x))(x)


def test_numpy_numbers_as_operands():
    np = pytest.importorskip("numpy")
    x = wengert.tensor([1.0, 2.0])
    assert wengert.vmap(lambda x: x * np.float64(2.0) + np.float32(1.0))(x).tolist() == [3.0, 5.0]
    assert wengert.func.grad(lambda x: (np.float64(3.0) * x).sum())(x).tolist() == [3.0, 3.0]
    with pytest.raises(TypeError):
        wengert.vmap(lambda x: x + "text")(x)
