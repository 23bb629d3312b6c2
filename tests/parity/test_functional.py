"""autograd.functional on a grid of functions, vectors and options: the same as PyTorch."""

import importlib
from itertools import product

import pytest

from parity.outcomes import libraries, outcome, same

FLAGS = [
    {"create_graph": create_graph, "strict": strict}
    for create_graph, strict in product((False, True), (False, True))
]
PHRASES = (
    "is independent of input",
    "independent of entry",
    "not allowed in strict mode",
    "when create_graph=True",
    "does not require gradients",
    "computed in a differentiable manner",
    "double backward trick",
    "should return a single Tensor",
    "should contain a single element",
    "can only be None if the user-provided function returns a single Tensor",
    "can only be None if the input",
    "v is a tuple of invalid length",
    "should contain a single Tensor",
    "invalid size",
    "must be either a Tensor or a tuple of Tensors",
    "only implemented for `vectorize=True`",
    "Expected strategy to be",
    "are not supported together",
    "implicitly created only for real scalar outputs",
)


def number(lib, *values):
    return lib.tensor(values[0] if len(values) == 1 else values, dtype=lib.float64)


ONE_INPUT = {
    "square": lambda lib: lambda x: (x * x).sum(),
    "power": lambda lib: lambda x: (x**2).sum(),
    "cube": lambda lib: lambda x: (x**3).sum(),
    "linear": lambda lib: lambda x: (x * 3).sum(),
    "constant": lambda lib: lambda x: number(lib, 1.0),
    "constant vector": lambda lib: lambda x: number(lib, 1.0, 2.0),
    "vector": lambda lib: lambda x: x.exp(),
    "two outputs": lambda lib: lambda x: (x.exp(), x.sum()),
    "list of outputs": lambda lib: lambda x: [x.exp(), x.sum()],
    "partly constant": lambda lib: lambda x: (x.sum(), number(lib, 1.0)),
    "identity": lambda lib: lambda x: x,
    "detached": lambda lib: lambda x: x.detach() * 2,
    "nothing": lambda lib: lambda x: None,
    "number": lambda lib: lambda x: 3.0,
    "integers": lambda lib: lambda x: (x > 0).sum(),
    "part": lambda lib: lambda x: x[0] * x[0],
    "one element": lambda lib: lambda x: (x**3).sum().reshape(1),
    "matrix of one": lambda lib: lambda x: (x**3).sum().reshape(1, 1),
    "complex": lambda lib: lambda x: (x * 1j).exp(),
    "unrecorded": lambda lib: lib.no_grad()(lambda x: (x * x).sum()),
}
VECTORS = {
    "none": lambda lib: None,
    "fitting": lambda lib: number(lib, 3.0, 4.0),
    "two": lambda lib: (number(lib, 3.0, 4.0), number(lib, 2.0)),
    "scalar": lambda lib: number(lib, 2.0),
    "too long": lambda lib: number(lib, 1.0, 2.0, 3.0),
    "no tensor": lambda lib: 3.0,
}
TWO_INPUTS = {
    "product": lambda lib: lambda x, y: (x * y).sum(),
    "independent": lambda lib: lambda x, y: (x * x).sum(),
    "sum": lambda lib: lambda x, y: (x + y).sum(),
    "three outputs": lambda lib: lambda x, y: (x * y, y.sum(), x.exp()),
    "matrix": lambda lib: lambda x, y: x.outer(y),
    "mixed": lambda lib: lambda x, y: (x * y * y).sum() + x.sum(),
}
TWO_VECTORS = {
    "none": lambda lib: None,
    "fitting": lambda lib: (number(lib, 3.0, 4.0), number(lib, -1.0, 2.0)),
    "lone": lambda lib: number(lib, 3.0, 4.0),
    "three": lambda lib: (number(lib, 3.0, 4.0), number(lib, 2.0), number(lib, 5.0, 7.0)),
}
INPUTS = {
    "list": lambda lib: [number(lib, 1.0, 2.0)],
    "number": lambda lib: 3.0,
    "tensor and number": lambda lib: (number(lib, 1.0, 2.0), 3.0),
    "integers": lambda lib: lib.tensor([1, 2]),
    "scalar": lambda lib: number(lib, 2.0),
    "recorded leaf": lambda lib: number(lib, 1.0, 2.0).requires_grad_(),
    "recorded": lambda lib: number(lib, 1.0, 2.0).requires_grad_() * 2,
    "complex": lambda lib: lib.tensor([1 + 2j, 3j]),
    "tuple of one": lambda lib: (number(lib, 1.0, 2.0),),
}


def compare(name, make_arguments, options):
    results = []
    for lib in libraries():
        function = getattr(importlib.import_module(f"{lib.__name__}.autograd.functional"), name)
        arguments = make_arguments(lib)
        results.append(
            outcome(lambda f=function, a=arguments: f(*a, **options), PHRASES)
        )
    assert same(*results), results


@pytest.mark.parametrize("function", ONE_INPUT)
@pytest.mark.parametrize("name", ["jacobian", "hessian"])
@pytest.mark.parametrize("options", FLAGS, ids=str)
def test_matrices(name, function, options):
    compare(name, lambda lib: (ONE_INPUT[function](lib), number(lib, 1.0, 2.0)), options)


@pytest.mark.parametrize("function", ONE_INPUT)
@pytest.mark.parametrize("name", ["vjp", "jvp", "vhp", "hvp"])
@pytest.mark.parametrize("vector", VECTORS)
def test_products(name, function, vector):
    for options in FLAGS:
        compare(
            name,
            lambda lib: (ONE_INPUT[function](lib), number(lib, 1.0, 2.0), VECTORS[vector](lib)),
            options,
        )


@pytest.mark.parametrize("function", TWO_INPUTS)
@pytest.mark.parametrize("name", ["jacobian", "hessian"])
@pytest.mark.parametrize("options", FLAGS, ids=str)
def test_matrices_of_two_inputs(name, function, options):
    compare(
        name,
        lambda lib: (TWO_INPUTS[function](lib), (number(lib, 1.0, 2.0), number(lib, 5.0, 6.0))),
        options,
    )


@pytest.mark.parametrize("function", TWO_INPUTS)
@pytest.mark.parametrize("name", ["vjp", "jvp", "vhp", "hvp"])
@pytest.mark.parametrize("vector", TWO_VECTORS)
def test_products_of_two_inputs(name, function, vector):
    for options in FLAGS:
        compare(
            name,
            lambda lib: (
                TWO_INPUTS[function](lib),
                (number(lib, 1.0, 2.0), number(lib, 5.0, 6.0)),
                TWO_VECTORS[vector](lib),
            ),
            options,
        )


@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("name", ["jacobian", "hessian", "vjp", "jvp", "vhp", "hvp"])
@pytest.mark.parametrize("create_graph", [False, True])
def test_inputs(name, inputs, create_graph):
    compare(
        name,
        lambda lib: (lambda x: (x * x * x).sum(), INPUTS[inputs](lib)),
        {"create_graph": create_graph},
    )


@pytest.mark.parametrize(
    "options",
    [
        {"strategy": "forward-mode"},
        {"strategy": "forward-mode", "vectorize": True, "create_graph": True},
        {"strategy": "forward-mode", "vectorize": True, "strict": True},
        {"strategy": "sideways"},
    ],
    ids=str,
)
def test_refused_strategies(options):
    compare("jacobian", lambda lib: (lambda x: x.exp(), number(lib, 1.0, 2.0)), options)
    if "vectorize" not in options:
        outer = {"outer_jacobian_strategy": options["strategy"]}
        compare("hessian", lambda lib: (lambda x: x.exp().sum(), number(lib, 1.0, 2.0)), outer)
