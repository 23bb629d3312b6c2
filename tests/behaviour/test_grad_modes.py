"""Grad modes as context managers, decorators, functions; per thread; with exceptions."""

import threading

import pytest


@pytest.fixture(autouse=True)
def default_modes(lib):
    """Each test starts in the default mode and must not leak another one."""
    assert lib.is_grad_enabled()
    assert not lib.is_inference_mode_enabled()
    yield
    leaked = not lib.is_grad_enabled() or lib.is_inference_mode_enabled()
    lib.set_grad_enabled(True)
    assert not leaked


def in_thread(function):
    results = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join(300)
    assert results, "the thread did not finish"
    return results[0]


MODES = {
    "no_grad": (lambda lib: lib.no_grad(), False),
    "enable_grad": (lambda lib: lib.enable_grad(), True),
    "set_grad_enabled(False)": (lambda lib: lib.set_grad_enabled(False), False),
    "set_grad_enabled(True)": (lambda lib: lib.set_grad_enabled(True), True),
    "inference_mode": (lambda lib: lib.inference_mode(), False),
    "inference_mode(False)": (lambda lib: lib.inference_mode(False), True),
}
every_mode = pytest.mark.parametrize("mode", MODES)


# Context managers


@every_mode
def test_context_sets_and_restores(lib, mode):
    make, expected = MODES[mode]
    with make(lib):
        assert lib.is_grad_enabled() is expected
    assert lib.is_grad_enabled()


@every_mode
def test_context_restores_after_an_exception(lib, mode):
    make, _ = MODES[mode]
    with pytest.raises(KeyError), make(lib):
        raise KeyError
    assert lib.is_grad_enabled()
    assert not lib.is_inference_mode_enabled()


def test_no_grad_result_does_not_require_grad(lib):
    x = lib.ones(2, requires_grad=True)
    with lib.no_grad():
        y = x * 2
    assert not y.requires_grad
    assert y.grad_fn is None
    assert y.is_leaf


def test_factory_under_no_grad_may_require_grad(lib):
    with lib.no_grad():
        x = lib.ones(2, requires_grad=True)
    assert x.requires_grad
    assert (x * 2).requires_grad


def test_parameter_flag_may_change_under_no_grad(lib):
    x = lib.ones(2)
    with lib.no_grad():
        x.requires_grad_()
    assert x.requires_grad


def test_nested_contexts(lib):
    with lib.no_grad():
        with lib.enable_grad():
            assert lib.is_grad_enabled()
            with lib.no_grad():
                assert not lib.is_grad_enabled()
            assert lib.is_grad_enabled()
        assert not lib.is_grad_enabled()


def test_nested_same_context(lib):
    with lib.no_grad():
        with lib.no_grad():
            pass
        assert not lib.is_grad_enabled()


def test_one_object_may_be_entered_again(lib):
    mode = lib.no_grad()
    for _ in range(2):
        with mode:
            assert not lib.is_grad_enabled()
        assert lib.is_grad_enabled()


def test_recording_resumes_inside_enable_grad(lib):
    x = lib.ones(2, requires_grad=True)
    with lib.no_grad(), lib.enable_grad():
        y = x * 2
    assert y.requires_grad


def test_backward_inside_no_grad(lib):
    x = lib.ones((), requires_grad=True)
    y = x * 3
    with lib.no_grad():
        y.backward()
    assert x.grad.item() == 3.0


def test_detached_constant_part(lib):
    x = lib.tensor(3.0, requires_grad=True)
    with lib.no_grad():
        factor = x * 2
    (factor * x).backward()
    assert x.grad.item() == 6.0


# The function form


def test_set_grad_enabled_as_a_function(lib):
    lib.set_grad_enabled(False)
    assert not lib.is_grad_enabled()
    lib.set_grad_enabled(True)
    assert lib.is_grad_enabled()


def test_set_grad_enabled_acts_before_entering(lib):
    mode = lib.set_grad_enabled(False)
    assert not lib.is_grad_enabled()
    with mode:
        assert not lib.is_grad_enabled()
    assert lib.is_grad_enabled()


def test_set_grad_enabled_inside_no_grad(lib):
    with lib.no_grad():
        lib.set_grad_enabled(True)
        assert lib.is_grad_enabled()
    assert lib.is_grad_enabled()


@pytest.mark.parametrize("wrong", [3, "no", None])
def test_set_grad_enabled_wants_a_bool(lib, wrong):
    with pytest.raises(TypeError):
        lib.set_grad_enabled(wrong)


# Decorators


@every_mode
def test_decorated_function(lib, mode):
    make, expected = MODES[mode]

    @make(lib)
    def enabled():
        return lib.is_grad_enabled()

    lib.set_grad_enabled(True)
    assert enabled() is expected
    assert lib.is_grad_enabled()
    assert enabled() is expected


@pytest.mark.parametrize("name", ["no_grad", "inference_mode"])
def test_decorator_without_parentheses(lib, name):
    @getattr(lib, name)
    def enabled():
        return lib.is_grad_enabled()

    assert enabled() is False
    assert lib.is_grad_enabled()


def test_enable_grad_decorator_without_parentheses(lib):
    @lib.enable_grad
    def enabled():
        return lib.is_grad_enabled()

    with lib.no_grad():
        assert enabled() is True
        assert not lib.is_grad_enabled()


def test_decorated_function_keeps_its_name_and_arguments(lib):
    @lib.no_grad()
    def scaled(x, factor=2):
        """Scale x."""
        return x * factor

    assert scaled.__name__ == "scaled"
    assert scaled.__doc__ == "Scale x."
    assert scaled(3, factor=5) == 15


def test_decorated_function_restores_after_an_exception(lib):
    @lib.no_grad()
    def fail():
        raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert lib.is_grad_enabled()


def test_decorated_function_may_recurse(lib):
    @lib.no_grad()
    def countdown(n):
        assert not lib.is_grad_enabled()
        return 0 if n == 0 else countdown(n - 1)

    assert countdown(5) == 0
    assert lib.is_grad_enabled()


def test_decorated_function_called_in_other_mode_restores_that(lib):
    @lib.enable_grad()
    def enabled():
        return lib.is_grad_enabled()

    with lib.no_grad():
        assert enabled()
        assert not lib.is_grad_enabled()


def test_decorated_method(lib):
    class Model:
        @lib.no_grad()
        def enabled(self):
            return lib.is_grad_enabled()

    assert Model().enabled() is False


# Generators


def test_generator_body_runs_in_its_mode(lib):
    @lib.no_grad()
    def produce():
        yield lib.is_grad_enabled()
        yield lib.is_grad_enabled()

    generator = produce()
    assert next(generator) is False
    assert lib.is_grad_enabled()
    assert next(generator) is False
    assert lib.is_grad_enabled()


def test_generator_in_a_loop(lib):
    @lib.no_grad()
    def produce():
        for _ in range(3):
            yield lib.is_grad_enabled()

    inside = []
    for value in produce():
        inside.append(value)
        assert lib.is_grad_enabled()
    assert inside == [False] * 3


def test_generator_receives_what_is_sent(lib):
    @lib.no_grad()
    def echo():
        received = None
        while True:
            received = yield (received, lib.is_grad_enabled())

    generator = echo()
    next(generator)
    assert generator.send("hello") == ("hello", False)
    assert lib.is_grad_enabled()


def test_generator_returns_its_value(lib):
    @lib.no_grad()
    def produce():
        yield 1
        return 5

    generator = produce()
    next(generator)
    with pytest.raises(StopIteration) as stop:
        next(generator)
    assert stop.value.value == 5


def test_exception_thrown_into_a_generator(lib):
    seen = []

    @lib.no_grad()
    def produce():
        try:
            yield 1
        except ValueError:
            seen.append(lib.is_grad_enabled())
        yield 2

    generator = produce()
    next(generator)
    assert generator.throw(ValueError()) == 2
    assert seen == [False]
    assert lib.is_grad_enabled()


def test_exception_raised_by_a_generator(lib):
    @lib.no_grad()
    def produce():
        yield 1
        raise KeyError

    generator = produce()
    next(generator)
    with pytest.raises(KeyError):
        next(generator)
    assert lib.is_grad_enabled()


def test_closing_a_generator_runs_its_cleanup_in_its_mode(lib):
    seen = []

    @lib.no_grad()
    def produce():
        try:
            yield 1
        finally:
            seen.append(lib.is_grad_enabled())

    generator = produce()
    next(generator)
    generator.close()
    assert seen == [False]
    assert lib.is_grad_enabled()


def test_generator_under_no_grad_with_enable_grad_body(lib):
    @lib.enable_grad()
    def produce():
        yield lib.is_grad_enabled()
        yield lib.is_grad_enabled()

    with lib.no_grad():
        generator = produce()
        assert next(generator) is True
        assert not lib.is_grad_enabled()
    assert next(generator) is True
    assert lib.is_grad_enabled()


def test_generator_under_inference_mode(lib):
    @lib.inference_mode()
    def produce():
        yield lib.ones(1).is_inference()
        yield lib.ones(1).is_inference()

    assert list(produce()) == [True, True]
    assert not lib.is_inference_mode_enabled()


# Threads


def test_new_thread_starts_with_recording_on(lib):
    with lib.no_grad():
        assert in_thread(lib.is_grad_enabled) is True


def test_new_thread_starts_outside_inference_mode(lib):
    with lib.inference_mode():
        assert in_thread(lib.is_inference_mode_enabled) is False


def test_mode_of_a_thread_stays_there(lib):
    def switch_off():
        lib.set_grad_enabled(False)
        return lib.is_grad_enabled()

    assert in_thread(switch_off) is False
    assert lib.is_grad_enabled()


def test_two_threads_with_different_modes(lib):
    inside, leave = threading.Event(), threading.Event()

    def hold():
        with lib.no_grad():
            inside.set()
            assert leave.wait(300)
            return lib.is_grad_enabled()

    results = []
    thread = threading.Thread(target=lambda: results.append(hold()))
    thread.start()
    assert inside.wait(300)
    x = lib.ones(2, requires_grad=True)
    assert (x * 2).requires_grad
    leave.set()
    thread.join(300)
    assert results == [False]


# Backward and hooks


def test_backward_restores_the_mode(lib):
    x = lib.ones((), requires_grad=True)
    y = x * x
    with lib.no_grad():
        y.backward()
        assert not lib.is_grad_enabled()


def test_grad_with_create_graph_restores_the_mode(lib):
    x = lib.ones((), requires_grad=True)
    y = x * x
    with lib.no_grad():
        lib.autograd.grad(y, x, create_graph=True)
        assert not lib.is_grad_enabled()


def test_mode_set_inside_a_hook_does_not_leak(lib):
    x = lib.ones((), requires_grad=True)
    x.register_hook(lambda g: lib.set_grad_enabled(True) and None)
    y = x * x
    with lib.no_grad():
        y.backward()
        assert not lib.is_grad_enabled()


# Inference mode


def test_inference_mode_tells(lib):
    with lib.inference_mode():
        assert lib.is_inference_mode_enabled()
        assert not lib.is_grad_enabled()
    assert not lib.is_inference_mode_enabled()


def test_inference_mode_false_is_normal_mode(lib):
    with lib.inference_mode(False):
        assert not lib.is_inference_mode_enabled()
        assert lib.is_grad_enabled()


def test_inference_mode_by_keyword(lib):
    with lib.inference_mode(mode=True):
        assert lib.is_inference_mode_enabled()


def test_normal_mode_inside_inference_mode(lib):
    with lib.inference_mode():
        with lib.inference_mode(False):
            x = lib.ones(2, requires_grad=True)
            assert not x.is_inference()
            assert (x * 2).requires_grad
        assert lib.is_inference_mode_enabled()


def test_enable_grad_inside_inference_mode_records_nothing(lib):
    with lib.inference_mode(), lib.enable_grad():
        x = lib.ones(2, requires_grad=True)
        assert lib.is_grad_enabled()
        assert not (x * 2).requires_grad


def test_tensor_made_in_inference_mode_is_an_inference_tensor(lib):
    with lib.inference_mode():
        x = lib.ones(2)
    assert x.is_inference()
    assert lib.is_inference(x)


def test_normal_tensor_is_no_inference_tensor(lib):
    x = lib.ones(2)
    assert not x.is_inference()
    with lib.inference_mode():
        assert not x.is_inference()


def test_result_in_inference_mode_is_an_inference_tensor(lib):
    x = lib.ones(2, requires_grad=True)
    with lib.inference_mode():
        y = x * 2
    assert y.is_inference()
    assert not y.requires_grad


def test_result_outside_of_inference_operand_is_normal(lib):
    with lib.inference_mode():
        x = lib.ones(2)
    assert not (x * 2).is_inference()


@pytest.mark.parametrize("alias", [lambda x: x.view(2), lambda x: x[:1], lambda x: x.detach()])
def test_alias_of_inference_tensor_is_one(lib, alias):
    with lib.inference_mode():
        x = lib.ones(2)
    assert alias(x).is_inference()


def test_clone_of_inference_tensor_is_normal(lib):
    with lib.inference_mode():
        x = lib.ones(2)
    y = x.clone().requires_grad_()
    (y * y).sum().backward()
    assert y.grad.tolist() == [2.0, 2.0]


def test_inference_tensor_may_not_require_grad_outside(lib):
    with lib.inference_mode():
        x = lib.ones(2)
    with pytest.raises(RuntimeError, match="requires_grad=True on inference tensor"):
        x.requires_grad_()
    with pytest.raises(RuntimeError, match="requires_grad=True on inference tensor"):
        x.requires_grad = True


def test_inference_tensor_may_be_told_not_to_require_grad(lib):
    with lib.inference_mode():
        x = lib.ones(2)
    assert x.requires_grad_(False) is x


def test_inference_tensor_may_require_grad_inside(lib):
    with lib.inference_mode():
        x = lib.ones(2, requires_grad=True)
        assert x.requires_grad
        assert not (x * 2).requires_grad


def test_inference_tensor_may_not_be_saved(lib):
    with lib.inference_mode():
        constant = lib.ones(2)
    x = lib.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="cannot be saved for backward"):
        x * constant


def test_inference_tensor_that_need_not_be_saved_is_fine(lib):
    with lib.inference_mode():
        constant = lib.ones(2)
    x = lib.ones(2, requires_grad=True)
    (x + constant).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_inference_tensor_without_recording_is_fine(lib):
    with lib.inference_mode():
        constant = lib.ones(2)
    x = lib.ones(2, requires_grad=True)
    with lib.no_grad():
        assert (x * constant).tolist() == [1.0, 1.0]


def test_backward_of_result_in_inference_mode_is_refused(lib):
    with lib.inference_mode():
        x = lib.ones((), requires_grad=True)
        with pytest.raises(RuntimeError, match="does not require grad"):
            (x * 2).backward()


def test_backward_of_outer_graph_in_inference_mode(lib):
    x = lib.ones((), requires_grad=True)
    y = x * 3
    with lib.inference_mode():
        y.backward()
    assert x.grad.item() == 3.0


# Multithreading switch


@pytest.fixture
def multithreading(lib):
    yield lib.autograd.is_multithreading_enabled
    lib.autograd.set_multithreading_enabled(True)


def test_multithreading_is_on_by_default(multithreading):
    assert multithreading()


def test_multithreading_context(lib, multithreading):
    with lib.autograd.set_multithreading_enabled(False):
        assert not multithreading()
        with lib.autograd.set_multithreading_enabled(True):
            assert multithreading()
        assert not multithreading()
    assert multithreading()


def test_multithreading_context_restores_after_an_exception(lib, multithreading):
    with pytest.raises(KeyError), lib.autograd.set_multithreading_enabled(False):
        raise KeyError
    assert multithreading()


def test_multithreading_function(lib, multithreading):
    lib.autograd.set_multithreading_enabled(False)
    assert not multithreading()
    lib.autograd.set_multithreading_enabled(True)
    assert multithreading()


def test_multithreading_decorator(lib, multithreading):
    @lib.autograd.set_multithreading_enabled(False)
    def enabled():
        return multithreading()

    assert enabled() is False


def test_backward_with_multithreading_off(lib, multithreading):
    x = lib.ones((), requires_grad=True)
    with lib.autograd.set_multithreading_enabled(False):
        (x * 3).backward()
    assert x.grad.item() == 3.0


def test_backward_hooks_run_on_the_calling_thread(lib):
    x = lib.ones((), requires_grad=True)
    seen = []
    x.register_hook(lambda g: seen.append(threading.get_ident()))
    (x * 3).backward()
    assert seen == [threading.get_ident()]


# Names


@pytest.mark.parametrize("name", ["no_grad", "enable_grad", "set_grad_enabled", "inference_mode"])
def test_modes_are_found_in_all_their_places(lib, name):
    mode = getattr(lib, name)
    assert getattr(lib.autograd, name) is mode
    assert getattr(lib.autograd.grad_mode, name) is mode


def test_memory_of_a_tensor_that_requires_grad(lib):
    x = lib.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        x.numpy()
    with lib.no_grad():
        assert x.numpy().tolist() == [1.0, 1.0]
    with lib.inference_mode():
        assert x.numpy().tolist() == [1.0, 1.0]
