"""`Variable._execution_engine`: run_backward with its checks, callbacks, is_checkpoint_valid."""

import importlib

import pytest


def leaf(lib, *values):
    return lib.tensor(values or [1.0, 2.0], requires_grad=True)


def engine(lib):
    return lib.autograd.Variable._execution_engine


# variable -----------------------------------------------------------------------------------------


def test_module_of_variable(lib):
    module = importlib.import_module(f"{lib.__name__}.autograd.variable")
    assert module.Variable is lib.autograd.Variable
    assert module.VariableMeta is type(lib.autograd.Variable)
    assert isinstance(engine(lib), module.ImperativeEngine)


def test_function_variable_has_the_class(lib):
    assert lib.autograd.variable.Variable is lib.autograd.Variable


def test_every_tensor_is_a_variable(lib):
    assert isinstance(lib.ones(2), lib.autograd.Variable)
    assert not isinstance(3, lib.autograd.Variable)


# run_backward -------------------------------------------------------------------------------------


def test_gradients_of_inputs_return(lib):
    x = leaf(lib)
    y = (x * 2).sum()
    found = engine(lib).run_backward((y,), (lib.tensor(1.0),), False, False, (x,), True, False)
    assert [g.tolist() for g in found] == [[2.0, 2.0]]
    assert x.grad is None


def test_keywords(lib):
    x = leaf(lib)
    y = (x * 2).sum()
    found = engine(lib).run_backward(
        tensors=(y,),
        grad_tensors=(lib.tensor(1.0),),
        keep_graph=False,
        create_graph=False,
        inputs=(x,),
        allow_unreachable=True,
        accumulate_grad=True,
    )
    assert found is None
    assert x.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("inputs", [(), None])
def test_accumulation_without_inputs(lib, inputs):
    x = leaf(lib)
    arguments = () if inputs is None else (inputs,)
    engine(lib).run_backward(
        ((x * 2).sum(),), (lib.tensor(1.0),), False, False, *arguments, accumulate_grad=True
    )
    assert x.grad.tolist() == [2.0, 2.0]


def test_nothing_to_compute_is_refused(lib):
    x = leaf(lib)
    with pytest.raises(RuntimeError, match="grad requires non-empty inputs"):
        engine(lib).run_backward(((x * 2).sum(),), (lib.tensor(1.0),), False, False)


def test_edges_as_roots_and_inputs(lib):
    x = leaf(lib)
    y = x * 2
    edge = lib.autograd.graph.get_gradient_edge
    found = engine(lib).run_backward(
        (edge(y),), (lib.ones(2),), False, False, (edge(x),), accumulate_grad=False
    )
    assert found[0].tolist() == [2.0, 2.0]


def test_unreachable_input(lib):
    x, other = leaf(lib), leaf(lib)
    y = (x * 2).sum()
    arguments = ((y,), (lib.tensor(1.0),), True, False, (x, other))
    with pytest.raises(RuntimeError, match="at index 1 appears to not have been used in the graph"):
        engine(lib).run_backward(*arguments)
    assert engine(lib).run_backward(*arguments, allow_unreachable=True)[1] is None


WRONG = {
    "tensors no tuple": (
        lambda lib, y, g: ([y], (g,)),
        "tensors argument is expected to be a tuple",
    ),
    "gradients no tuple": (
        lambda lib, y, g: ((y,), [g]),
        "grad_tensors argument is expected to be a tuple",
    ),
    "too few gradients": (lambda lib, y, g: ((y,), ()), "got 1 tensors and 0 gradients"),
    "no tensor": (lambda lib, y, g: ((3,), (g,)), "element 0 of tensors tuple is neither a Tensor"),
    "constant": (lambda lib, y, g: ((g,), (g,)), "element 0 of tensors does not require grad"),
    "no gradient": (lambda lib, y, g: ((y,), (None,)), "element 0 of gradients tuple is None"),
    "gradient no tensor": (
        lambda lib, y, g: ((y,), ("g",)),
        "element 0 of gradients tuple is not a Tensor or None",
    ),
    "inputs no tuple": (
        lambda lib, y, g: ((y,), (g,), False, False, [y]),
        "inputs to run_backward must be a tuple",
    ),
    "input no tensor": (
        lambda lib, y, g: ((y,), (g,), False, False, (3,)),
        "all inputs have to be Tensors or GradientEdges",
    ),
    "input constant": (
        lambda lib, y, g: ((y,), (g,), False, False, (g,)),
        "does not require grad",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments(lib, case):
    make, message = WRONG[case]
    y, g = (leaf(lib) * 2).sum(), lib.tensor(1.0)
    arguments = make(lib, y, g)
    flags = () if len(arguments) > 2 else (False, False)
    with pytest.raises(RuntimeError, match=message):
        engine(lib).run_backward(*arguments, *flags, accumulate_grad=len(arguments) == 2)


def test_missing_flags(lib):
    with pytest.raises(TypeError, match="missing"):
        engine(lib).run_backward((), ())


# queue_callback -----------------------------------------------------------------------------------


def test_callback_runs_after_accumulation(lib):
    x, log = leaf(lib), []

    def hook(gradient):
        engine(lib).queue_callback(lambda: log.append(x.grad.tolist()))
        log.append("hook")

    x.register_hook(hook)
    (x * 2).sum().backward()
    assert log == ["hook", [2.0, 2.0]]


def test_callbacks_run_in_order(lib):
    x, log = leaf(lib), []

    def hook(gradient):
        for number in range(3):
            engine(lib).queue_callback(lambda number=number: log.append(number))

    x.register_hook(hook)
    (x * 2).sum().backward()
    assert log == [0, 1, 2]


def test_callback_may_queue_another(lib):
    x, log = leaf(lib), []

    def first():
        log.append("first")
        engine(lib).queue_callback(lambda: log.append("second"))

    x.register_hook(lambda gradient: engine(lib).queue_callback(first))
    (x * 2).sum().backward()
    assert log == ["first", "second"]


def test_callback_outside_backward_is_refused(lib):
    with pytest.raises(RuntimeError, match="during backward pass"):
        engine(lib).queue_callback(lambda: None)


def test_callback_of_an_inner_backward_runs_with_that(lib):
    x, log = leaf(lib), []

    def hook(gradient):
        engine(lib).queue_callback(lambda: log.append("outer"))
        z = leaf(lib)
        z.register_hook(lambda g: engine(lib).queue_callback(lambda: log.append("inner")))
        with lib.enable_grad():
            loss = (z * 2).sum()
        loss.backward()
        log.append("hook")

    x.register_hook(hook)
    (x * 2).sum().backward()
    assert log == ["inner", "hook", "outer"]


def test_callback_runs_for_grad_too(lib):
    x, log = leaf(lib), []
    y = x * 2
    y.register_hook(lambda g: engine(lib).queue_callback(lambda: log.append(1)))
    lib.autograd.grad(y.sum(), x)
    assert log == [1]


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")
@pytest.mark.parametrize("create_graph", [True, False])
def test_callback_runs_in_the_mode_of_backward(lib, create_graph):
    x, modes = leaf(lib), []
    x.register_hook(
        lambda g: engine(lib).queue_callback(lambda: modes.append(lib.is_grad_enabled()))
    )
    (x * 2).sum().backward(create_graph=create_graph)
    assert modes == [create_graph]
    assert lib.is_grad_enabled()


def test_error_in_a_callback_reaches_the_caller(lib):
    x = leaf(lib)

    def fail():
        raise KeyError("callback")

    handle = x.register_hook(lambda g: engine(lib).queue_callback(fail))
    with pytest.raises(KeyError, match="callback"):
        (x * 2).sum().backward()
    handle.remove()
    x.grad = None
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_callback_does_not_run_after_a_failure(lib):
    x, log = leaf(lib), []
    y = x * 2
    y.register_hook(lambda g: engine(lib).queue_callback(lambda: log.append(1)))
    x.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        y.sum().backward()
    assert log == []


# is_checkpoint_valid ------------------------------------------------------------------------------


def test_checkpoint_is_valid_outside_backward(lib):
    assert engine(lib).is_checkpoint_valid()
    assert lib.autograd._is_checkpoint_valid()


def test_checkpoint_is_valid_only_for_the_whole_graph(lib):
    x, log = leaf(lib), []
    y = x * 2
    y.register_hook(lambda g: log.append(engine(lib).is_checkpoint_valid()))
    y.sum().backward(retain_graph=True)
    lib.autograd.grad(y.sum(), x, retain_graph=True)
    y.sum().backward(inputs=[x])
    assert log == [True, False, False]


def test_checkpoint_is_not_valid_inside_a_restricted_backward(lib):
    x, log = leaf(lib), []
    y = x * 2

    def hook(gradient):
        z = leaf(lib)
        z.register_hook(lambda g: log.append(engine(lib).is_checkpoint_valid()))
        with lib.enable_grad():
            loss = (z * 2).sum()
        loss.backward()

    y.register_hook(hook)
    y.sum().backward(retain_graph=True)
    lib.autograd.grad(y.sum(), x)
    assert log == [True, False]
