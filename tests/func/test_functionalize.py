"""`functionalize`: the same results and changes, and no aliases of what was changed."""

import pytest


@pytest.fixture(params=["mutations", "mutations_and_views"])
def functionalize(request, lib):
    return lambda f: lib.func.functionalize(f, remove=request.param)


def test_results_and_changes_are_those_of_the_function(lib, functionalize):
    def f(x, y):
        x.add_(1)
        z = y.clone()
        z[0].mul_(5)
        return x * 2, z

    x, y = lib.zeros(2), lib.ones(2)
    first, second = functionalize(f)(x, y)
    assert first.tolist() == [2.0, 2.0] and second.tolist() == [5.0, 1.0]
    assert x.tolist() == [1.0, 1.0] and y.tolist() == [1.0, 1.0]


def test_a_changed_argument_that_is_returned(lib, functionalize):
    x = lib.zeros(2)
    y = functionalize(lambda x: x.add_(1))(x)
    y.mul_(7)
    assert x.tolist() == [1.0, 1.0] and y.tolist() == [7.0, 7.0]


def test_views_of_arguments(lib):
    x = lib.zeros(2)
    lib.func.functionalize(lambda x: x[0])(x).add_(5)
    assert x.tolist() == [5.0, 0.0]
    lib.func.functionalize(lambda x: x[0], remove="mutations_and_views")(x).add_(5)
    assert x.tolist() == [5.0, 0.0]


def test_an_argument_that_is_returned_as_it_is(lib, functionalize):
    x = lib.zeros(2)
    assert functionalize(lambda x: x)(x) is x


def test_trees_and_keywords(lib, functionalize):
    x = {"a": lib.zeros(2)}
    found = functionalize(lambda x, k=None: {"b": x["a"].add_(k)})(x, k=3.0)
    assert found["b"].tolist() == [3.0, 3.0] and x["a"].tolist() == [3.0, 3.0]


def test_gradients_flow(lib, functionalize):
    def f(x):
        y = x.clone()
        y.mul_(x)
        return y.sum()

    assert lib.func.grad(functionalize(f))(lib.tensor([1.0, 2.0])).tolist() == [2.0, 4.0]
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    functionalize(f)(x).backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_what_to_remove_is_checked(lib):
    with pytest.raises(RuntimeError, match="received invalid argument for remove"):
        lib.func.functionalize(lib.sin, remove="everything")
