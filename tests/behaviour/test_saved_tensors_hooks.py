"""Hooks on everything that is saved: saved_tensors_hooks, save_on_cpu, and their prohibition."""

import gc
import threading
import weakref

import pytest

import wengert


def leaf(lib, *values):
    return lib.tensor(values or [1.0, 2.0], requires_grad=True)


def hooks(lib, pack=lambda t: t.detach(), unpack=lambda t: t):
    return lib.autograd.graph.saved_tensors_hooks(pack, unpack)


def recording(lib, log):
    """Hooks that note what they see."""

    def pack(t):
        log.append(("pack", t.tolist()))
        return t.detach()

    def unpack(t):
        log.append(("unpack", t.tolist()))
        return t

    return hooks(lib, pack, unpack)


# What is packed -----------------------------------------------------------------------------------


def test_operands_are_packed(lib):
    x, w, log = leaf(lib), leaf(lib, 3.0, 4.0), []
    with recording(lib, log):
        y = x * w
    assert sorted(log) == [("pack", [1.0, 2.0]), ("pack", [3.0, 4.0])]
    y.sum().backward()
    assert [entry[0] for entry in log] == ["pack", "pack", "unpack", "unpack"]


def test_result_is_packed(lib):
    x, log = leaf(lib, 0.0), []
    with recording(lib, log):
        x.exp()
    assert log == [("pack", [1.0])]


def test_numbers_and_shapes_are_not_packed(lib):
    x, log = leaf(lib), []
    with recording(lib, log):
        x.sum()
        x.expand(2, 2)
        x + 1
    assert log == []


def test_constants_and_indices_are_packed(lib):
    x, log = leaf(lib), []
    with recording(lib, log):
        x * lib.tensor([3.0, 4.0])
        x[lib.tensor([1, 0])]
    assert log == [("pack", [3.0, 4.0]), ("pack", [1, 0])]


def test_nothing_is_packed_without_recording(lib):
    x, log = leaf(lib), []
    with recording(lib, log):
        lib.ones(2) * lib.ones(2)
        with lib.no_grad():
            x * x
    assert log == []


def test_in_place_operation_on_a_view(lib):
    x, log = leaf(lib, 1.0, 2.0, 3.0) * 1, []
    with recording(lib, log):
        x[1:].mul_(lib.tensor([5.0, 6.0]))
    assert log == [("pack", [5.0, 6.0])]


def test_pack_hook_sees_the_leaf_itself(lib):
    x, seen = leaf(lib), []
    with hooks(lib, lambda t: seen.append(t) or t.detach()):
        x * x
    assert all(t is x for t in seen)


def test_pack_hook_sees_the_intermediate_itself(lib):
    x, seen = leaf(lib) * 1, []
    with hooks(lib, lambda t: seen.append(t) or t.detach()):
        x * x
    assert all(t is x for t in seen)


def test_pack_hook_sees_the_result_itself(lib):
    seen = []
    with hooks(lib, lambda t: seen.append((t.requires_grad, t.is_leaf)) or t.detach()):
        leaf(lib).exp()
    assert seen == [(True, False)]


def test_pack_hook_runs_unrecorded(lib):
    modes = []
    with hooks(lib, lambda t: modes.append(lib.is_grad_enabled()) or t.detach()):
        leaf(lib).exp()
    assert modes == [False]
    assert lib.is_grad_enabled()


@pytest.mark.parametrize("create_graph", [True, False])
def test_unpack_hook_runs_in_the_mode_of_backward(lib, create_graph):
    x, modes = leaf(lib), []
    with hooks(lib, unpack=lambda t: modes.append(lib.is_grad_enabled()) or t):
        y = x.exp()
    lib.autograd.grad(y.sum(), x, create_graph=create_graph)
    assert modes == [create_graph]


def test_double_backward_packs_what_it_records(lib):
    x, log = leaf(lib), []
    with recording(lib, log):
        (g,) = lib.autograd.grad((x * x * x).sum(), x, create_graph=True)
        packed = len(log)
        g.sum().backward()
    assert x.grad.tolist() == [6.0, 12.0]
    assert packed > 4


def test_hooks_at_the_time_of_backward_do_not_matter(lib):
    x, log = leaf(lib), []
    y = x.exp()
    with recording(lib, log):
        y.sum().backward()
    assert log == []


def test_other_threads_do_not_see_the_hooks(lib):
    x, log = leaf(lib), []
    with recording(lib, log):
        thread = threading.Thread(target=lambda: x.exp())
        thread.start()
        thread.join()
    assert log == []


# What is unpacked ---------------------------------------------------------------------------------


def test_unpacked_value_is_used(lib):
    x = leaf(lib)
    with hooks(lib, lambda t: t * 10, lambda t: t):
        y = x * x
    y.sum().backward()
    assert x.grad.tolist() == [20.0, 40.0]


def test_packed_value_may_be_anything(lib):
    x = leaf(lib)
    with hooks(lib, lambda t: t.tolist(), lib.tensor):
        y = (x * x).sin()
    y.sum().backward()
    expected = 2 * x.detach() * (x.detach() * x.detach()).cos()
    assert x.grad.tolist() == pytest.approx(expected.tolist())


def test_saved_attribute_is_unpacked(lib):
    x = leaf(lib)
    with hooks(lib, lambda t: t.tolist(), lib.tensor):
        y = x * x
    assert y.grad_fn._saved_self.tolist() == [1.0, 2.0]
    assert y.grad_fn._saved_self.requires_grad


def test_unpacked_leaf_stands_for_the_leaf(lib):
    x = leaf(lib)
    with hooks(lib, lambda t: t.tolist(), lib.tensor):
        y = x * x
    saved = y.grad_fn._saved_self
    assert saved is not x
    assert saved.is_leaf
    (saved * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_unpacked_intermediate_keeps_its_place_in_the_graph(lib):
    x = leaf(lib) * 1
    with hooks(lib, lambda t: t.tolist(), lib.tensor):
        y = x * x
    assert y.grad_fn._saved_self.grad_fn is x.grad_fn


def test_unpacked_result_keeps_its_place_in_the_graph(lib):
    with hooks(lib, lambda t: t.tolist(), lib.tensor):
        y = leaf(lib).exp()
    assert y.grad_fn._saved_result.grad_fn is y.grad_fn


def test_unpacked_constant_records_nothing(lib):
    x, c = leaf(lib), lib.tensor([3.0, 4.0])
    with hooks(lib, unpack=lambda t: t.clone().requires_grad_()):
        y = x * c
    assert not y.grad_fn._saved_other.requires_grad


@pytest.mark.parametrize("convert", ["leaf", "intermediate"])
def test_double_backward_through_unpacked_values(lib, convert):
    x = lib.tensor([0.5, 2.0], dtype=lib.float64, requires_grad=True)
    z = x if convert == "leaf" else x * 1
    with hooks(lib, lambda t: t.tolist(), lambda t: lib.tensor(t, dtype=lib.float64)):
        y = (z * z * z).exp()
    (first,) = lib.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = lib.autograd.grad(first.sum(), x)
    at = x.detach()
    assert second.tolist() == pytest.approx(
        ((9 * at**4 + 6 * at) * (at * at * at).exp()).tolist(), rel=1e-9
    )


def test_packed_value_lives_as_long_as_needed(lib):
    class Box:
        def __init__(self, t):
            self.content = t.detach().clone()
            boxes.append(weakref.ref(self))

    boxes = []
    with hooks(lib, Box, lambda box: box.content):
        y = leaf(lib).exp()
    y.sum().backward(retain_graph=True)
    gc.collect()
    assert boxes[0]() is not None
    y.sum().backward()
    gc.collect()
    assert boxes[0]() is None


def test_packed_value_dies_with_the_graph(lib):
    class Box:
        def __init__(self, t):
            self.content = t.detach()
            boxes.append(weakref.ref(self))

    boxes = []
    with hooks(lib, Box, lambda box: box.content):
        y = leaf(lib).exp()
    del y
    gc.collect()
    assert boxes[0]() is None


# Contexts -----------------------------------------------------------------------------------------


def test_innermost_pair_counts(lib):
    x, outer, inner = leaf(lib), [], []
    with recording(lib, outer):
        a = x.exp()
        with recording(lib, inner):
            b = x.sin()
        c = x.cos()
    d = x.exp()
    assert (len(outer), len(inner)) == (2, 1)
    (a + b + c + d).sum().backward()
    assert (len(outer), len(inner)) == (4, 2)


def test_one_object_may_be_entered_twice(lib):
    x, log = leaf(lib), []
    context = recording(lib, log)
    with context:
        with context:
            x.exp()
        x.exp()
    x.exp()
    assert len(log) == 2


def test_context_yields_nothing(lib):
    with hooks(lib) as value:
        assert value is None


def test_context_ends_after_an_exception(lib):
    x, log = leaf(lib), []
    with pytest.raises(KeyError):
        with recording(lib, log):
            raise KeyError
    x.exp()
    assert log == []


def test_hooks_are_attributes(lib):
    context = lib.autograd.graph.saved_tensors_hooks(len, str)
    assert (context.pack_hook, context.unpack_hook) == (len, str)


def test_leaving_without_entering_is_refused(lib):
    with pytest.raises(RuntimeError):
        hooks(lib).__exit__(None, None, None)


def test_pair_pushed_and_popped(lib):
    x, log = leaf(lib), []
    lib.autograd._push_saved_tensors_default_hooks(lambda t: log.append(1) or t.detach(), len)
    x.exp()
    lib.autograd._pop_saved_tensors_default_hooks()
    x.exp()
    assert log == [1]


@pytest.mark.parametrize("pair", [(1, 2), (len, None)])
def test_hooks_must_be_functions(lib, pair):
    with pytest.raises(TypeError):
        with lib.autograd.graph.saved_tensors_hooks(*pair):
            pass


# Errors -------------------------------------------------------------------------------------------


def test_error_in_pack_hook_reaches_the_operation(lib):
    x = leaf(lib)
    with pytest.raises(ZeroDivisionError):
        with hooks(lib, lambda t: 1 / 0):
            x.exp()
    assert lib.is_grad_enabled()
    x.exp().sum().backward()
    assert x.grad.tolist() == x.exp().tolist()


def test_error_in_unpack_hook_reaches_backward(lib):
    x, broken = leaf(lib), [True]

    def unpack(t):
        if broken:
            raise KeyError("broken")
        return t

    with hooks(lib, unpack=unpack):
        y = x.exp()
    with pytest.raises(KeyError, match="broken"):
        y.sum().backward()
    broken.clear()
    y.sum().backward()
    assert x.grad.tolist() == x.exp().tolist()


@pytest.mark.parametrize("wrong", [3, None, "text"])
def test_unpack_hook_must_return_a_tensor(lib, wrong):
    with hooks(lib, unpack=lambda t: wrong):
        y = leaf(lib).exp()
    kind = type(wrong).__name__
    with pytest.raises(TypeError, match=f"unpack_hook expected to be a Tensor but .* {kind}"):
        y.sum().backward()


@pytest.mark.parametrize("what", ["leaf", "intermediate", "constant", "result"])
def test_pack_hook_that_writes_is_refused(lib, what):
    x = leaf(lib)
    y = {"leaf": x, "intermediate": x * 1, "constant": lib.ones(2), "result": None}[what]
    with pytest.raises(RuntimeError, match="pack hook is modifying its input in place"):
        with hooks(lib, lambda t: t.mul_(2)):
            x.exp() if y is None else x * y


def test_change_after_packing_a_copy_is_harmless(lib):
    w = leaf(lib)
    x = w * 1
    with hooks(lib, lambda t: t.clone()):
        y = x * x
    x.mul_(100)
    y.sum().backward()
    assert w.grad.tolist() == [2.0, 4.0]


def test_change_of_the_result_after_packing_a_copy_is_harmless(lib):
    x = leaf(lib, 0.0)
    with hooks(lib, lambda t: t.clone()):
        y = x.exp()
    y.mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == [3.0]


def test_change_after_packing_an_alias_is_not_detected(lib):
    w = leaf(lib)
    x = w * 1
    with hooks(lib, lambda t: t.detach()):
        y = x * x
    x.mul_(10)
    y.sum().backward()
    assert w.grad.tolist() == [20.0, 40.0]


def test_inference_tensor_is_refused_before_it_is_packed(lib):
    log = []
    with lib.inference_mode():
        c = lib.ones(2)
    with recording(lib, log):
        with pytest.raises(RuntimeError, match="Inference tensors cannot be saved"):
            leaf(lib) * c


# save_on_cpu --------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [{}, {"pin_memory": True}, {"device_type": "xpu"}])
def test_save_on_cpu(lib, arguments):
    x = leaf(lib)
    with lib.autograd.graph.save_on_cpu(**arguments):
        y = (x * x).exp()
    y.sum().backward()
    at = x.detach()
    assert x.grad.tolist() == pytest.approx((2 * at * (at * at).exp()).tolist())


def test_save_on_cpu_is_a_pair_of_hooks(lib):
    context = lib.autograd.graph.save_on_cpu()
    assert isinstance(context, lib.autograd.graph.saved_tensors_hooks)
    x = lib.ones(2)
    device, packed = context.pack_hook(x)
    assert (device, packed.tolist()) == (x.device, [1.0, 1.0])
    assert context.unpack_hook((device, packed)).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("pin_memory", [True, False])
def test_save_on_cpu_copies_only_for_pinned_memory(lib, pin_memory):
    x = lib.ones(2)
    _, packed = lib.autograd.graph.save_on_cpu(pin_memory).pack_hook(x)
    assert (packed.data_ptr() != x.data_ptr()) is pin_memory


def test_save_on_cpu_nests_in_other_hooks(lib):
    x, log = leaf(lib), []
    with recording(lib, log):
        with lib.autograd.graph.save_on_cpu():
            x.exp()
        assert log == []
        x.exp()
    assert len(log) == 1


# disable_saved_tensors_hooks ----------------------------------------------------------------------


def try_hooks(lib):
    try:
        with hooks(lib):
            return "allowed"
    except RuntimeError as error:
        return str(error)


def test_disabled_hooks_raise_the_message(lib):
    with lib.autograd.graph.disable_saved_tensors_hooks("not here"):
        assert try_hooks(lib) == "not here"
        with pytest.raises(RuntimeError, match="not here"):
            with lib.autograd.graph.save_on_cpu():
                pass
    assert try_hooks(lib) == "allowed"


def test_disabling_nests_and_restores(lib):
    disable = lib.autograd.graph.disable_saved_tensors_hooks
    with disable("outer"):
        with disable("inner"):
            assert try_hooks(lib) == "inner"
        assert try_hooks(lib) == "outer"
    assert try_hooks(lib) == "allowed"


def test_disabling_restores_after_an_exception(lib):
    with pytest.raises(KeyError):
        with lib.autograd.graph.disable_saved_tensors_hooks("not here"):
            raise KeyError
    assert try_hooks(lib) == "allowed"


def test_disabling_inside_hooks_is_refused(lib):
    x, log = leaf(lib), []
    with recording(lib, log):
        with pytest.raises(RuntimeError, match="not here"):
            with lib.autograd.graph.disable_saved_tensors_hooks("not here"):
                pass
        x.exp()
        assert try_hooks(lib) == "allowed"
    assert len(log) == 1


def test_disabling_as_decorator(lib):
    @lib.autograd.graph.disable_saved_tensors_hooks("not here")
    def function():
        return try_hooks(lib)

    assert function() == function() == "not here"
    assert try_hooks(lib) == "allowed"


def test_disabling_belongs_to_its_thread(lib):
    found = []
    with lib.autograd.graph.disable_saved_tensors_hooks("not here"):
        thread = threading.Thread(target=lambda: found.append(try_hooks(lib)))
        thread.start()
        thread.join()
    assert found == ["allowed"]


def test_disabling_wants_a_text(lib):
    with pytest.raises(TypeError):
        with lib.autograd.graph.disable_saved_tensors_hooks(3):
            pass


def test_saving_works_while_hooks_are_disabled(lib):
    x = leaf(lib)
    with lib.autograd.graph.disable_saved_tensors_hooks("not here"):
        x.exp().sum().backward()
    assert x.grad.tolist() == x.exp().tolist()


@pytest.mark.parametrize("name", ["sort", "topk", "max", "median", "cummax"])
def test_indices_among_the_results_are_packed(lib, name):
    x = lib.tensor([3.0, 1.0, 2.0], requires_grad=True)
    packed = []

    def pack(t):
        packed.append(t.dtype)
        return t.tolist()

    def unpack(values):
        return lib.tensor(values)

    with lib.autograd.graph.saved_tensors_hooks(pack, unpack):
        values, _ = getattr(x, name)(*((2,) if name == "topk" else (0,)))
    assert lib.int64 in packed
    values.sum().backward()
    expected = x.grad.clone()
    x.grad = None
    getattr(x, name)(*((2,) if name == "topk" else (0,)))[0].sum().backward()
    assert x.grad.tolist() == expected.tolist()


def slope_after_change(lib, pack):
    """The second derivative of sigmoid, after its result was changed between the derivatives."""
    x = lib.tensor([0.5], requires_grad=True)
    with lib.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        y = x.sigmoid()
    (g,) = lib.autograd.grad(y, x, lib.ones(1), create_graph=True)
    with lib.no_grad():
        y.sub_(2)
    return lib.autograd.grad(g.sum(), x)[0].item()


def test_what_was_unpacked_is_saved_for_the_second_derivative(lib):
    assert slope_after_change(lib, lambda t: t.clone()) == pytest.approx(-0.05756, abs=1e-4)
    for shared in (lambda t: t, lambda t: t.detach()):
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            slope_after_change(lib, shared)


def test_what_was_unpacked_may_not_change_before_the_second_derivative(lib):
    x, unpacked = lib.tensor([0.5], requires_grad=True), []

    def unpack(t):
        unpacked.append(t)
        return t

    doubled = x * 2
    with lib.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), unpack):
        y = doubled.sin()
    (g,) = lib.autograd.grad(y, doubled, lib.ones(1), create_graph=True)
    with lib.no_grad():
        unpacked[0].mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        lib.autograd.grad(g.sum(), x)


@pytest.mark.parametrize("name", ["exp_", "sqrt_", "tanh_"])
@pytest.mark.parametrize("part", [False, True])
def test_result_that_a_pack_hook_refuses_is_missed(name, part):
    """The change in place has happened by then, so that its node stays and says what it lacks."""

    def refuse(t):
        raise MemoryError("no room")

    p = wengert.tensor([0.3, 0.7], requires_grad=True)
    x = p * 1
    with (
        pytest.raises(MemoryError, match="no room"),
        wengert.autograd.graph.saved_tensors_hooks(refuse, lambda t: t),
    ):
        getattr(x[:1] if part else x, name)()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="could not be saved.*MemoryError: no room"):
            x.sum().backward()
    assert p.grad is None
