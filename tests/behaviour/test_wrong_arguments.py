"""What is no tensor in the place of one is refused by name, whatever a function is made of."""

import pytest

CALLS = [
    ("flipud", lambda lib: lib.flipud([1.0, 2.0]), "list"),
    ("diag", lambda lib: lib.diag([lib.ones(2)]), "list"),
    ("quantile", lambda lib: lib.quantile([1.0], lib.ones(2)), None),
    ("take_along_dim", lambda lib: lib.take_along_dim(lib.ones(3), 1), "int"),
    ("masked_scatter", lambda lib: lib.masked_scatter(lib.ones(3), 1, lib.ones(3)), "int"),
    ("masked_select", lambda lib: lib.masked_select(lib.ones(3), mask=1), "int"),
    ("max", lambda lib: lib.max([lib.ones(2), lib.ones(2)]), "list"),
    ("neg", lambda lib: lib.neg(0.5), "float"),
    ("is_floating_point", lambda lib: lib.is_floating_point("x"), "str"),
    ("where", lambda lib: lib.where([True]), "list"),
    ("bucketize", lambda lib: lib.bucketize(lib.ones(2), 1), None),
    ("ger", lambda lib: lib.ger(lib.ones(2), 1), "int"),
]


@pytest.mark.parametrize(("call", "kind"), [c[1:] for c in CALLS], ids=[c[0] for c in CALLS])
def test_argument_that_is_no_tensor(lib, call, kind):
    message = f"must be Tensor, not {kind}" if kind else "Tensor"
    with pytest.raises(TypeError, match=message):
        call(lib)


def test_element_that_is_no_tensor(lib):
    with pytest.raises(TypeError, match="expected Tensor as element 1 in argument 0, but got int"):
        lib.hstack([lib.ones(2), 1])


def test_attribute_that_is_missing_elsewhere(lib):
    """An AttributeError of the program's own objects stays one."""

    class Odd:
        @property
        def array(self):
            raise AttributeError("array of my own")

    def hook(g):
        return Odd().array

    x = lib.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(hook)
    with pytest.raises(AttributeError, match="array of my own"):
        y.sum().backward()
    with pytest.raises(AttributeError, match="no_such_thing"):
        lib.ones(2).no_such_thing
