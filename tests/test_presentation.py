"""What operators and public functions say of themselves: help, signatures, examples, modules."""

import collections
import doctest
import inspect
import pydoc
from types import ModuleType

import pytest

import wengert
from wengert.core.registry import operators
from wengert.operators.examples import EXAMPLES

PLACES = ("", "linalg", "special", "fft", "nn.functional", "masked", "signal.windows")


def _place(lib, path):
    for part in filter(None, path.split(".")):
        lib = getattr(lib, part)
    return lib


def _functions():
    """The public functions by name, in-place forms included."""
    for path in PLACES:
        place = _place(wengert, path)
        for name in getattr(place, "__all__", None) or dir(place):
            value = getattr(place, name)
            if name[0] != "_" and callable(value) and not isinstance(value, (type, ModuleType)):
                yield f"{path}.{name}".lstrip("."), value


FUNCTIONS = dict(_functions())


def test_no_two_functions_share_a_docstring():
    """But for functions of one name: `dropout` takes its arguments in another order than
    `nn.functional.dropout`."""
    by_text = collections.defaultdict(set)
    for name, value in FUNCTIONS.items():
        by_text[inspect.getdoc(value)].add((id(getattr(value, "function", value)), name))
    shared = []
    for found in by_text.values():
        if len({which for which, _ in found}) > 1:
            names = sorted(name for _, name in found)
            if len({name.rpartition(".")[2] for name in names}) > 1:
                shared.append(names)
    assert not shared
    assert None not in by_text and all(len(text) > 10 for text in by_text)


def test_functions_are_of_the_package():
    internal = ("wengert.operators", "wengert.dispatch")
    found = {
        name: value.__module__
        for name, value in FUNCTIONS.items()
        if value.__module__.startswith(internal) or not value.__module__.startswith("wengert")
    }
    assert not found


def test_operators_are_documented_by_their_declarations():
    for name, operator in operators().items():
        if name.startswith("_"):
            continue
        text = operator.__doc__
        assert text.startswith(f"{operator.name}(") and "Arguments:" in text, name
        for argument in operator.schema.arguments:
            shown = "input" if argument.name == "self" else argument.name
            assert f"\n    {shown}: " in text, name
        assert operator.__module__ == "wengert"


def test_classes_of_operators_keep_what_they_say():
    kind = type(wengert.exp)
    assert kind.__doc__.startswith("A declared operator")
    assert kind.__module__ == "wengert.dispatch.operator"


DEFAULTS = {
    "exp": "(input, *, out=None)",
    "sum": "(input, dim=None, keepdim=False, *, dtype=None, out=None)",
    "mean": "(input, dim=None, keepdim=False, *, dtype=None, out=None)",
    "max": "(input, dim=None, keepdim=False, *, out=None)",
    "median": "(input, dim=None, keepdim=False, *, out=None)",
    "sort": "(input, dim=-1, descending=False, *, stable=None, out=None)",
    "add": "(input, other, *, alpha=1, out=None)",
    "clamp": "(input, min=None, max=None, *, out=None)",
    "matmul": "(input, other, *, out=None)",
    "exp_": "(input)",
    "cat": "(tensors, dim=0, *, axis=None, out=None)",
    "topk": "(input, k, dim=-1, largest=True, sorted=True, *, out=None)",
    "unsqueeze": "(input, dim)",
    "linalg.lu_factor": "(A, *, pivot=True, out=None)",
    "masked.sum": "(input, dim=None, *, keepdim=False, dtype=None, mask=None)",
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_signatures_have_the_defaults_of_calls(name):
    signature = inspect.signature(FUNCTIONS[name])
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    shown = signature.replace(parameters=plain, return_annotation=signature.empty)
    assert str(shown) == DEFAULTS[name]


def test_signatures_have_types():
    parameters = inspect.signature(wengert.add).parameters
    assert parameters["input"].annotation is wengert.Tensor
    assert inspect.signature(wengert.add).return_annotation is wengert.Tensor
    assert inspect.signature(wengert.sum).parameters["keepdim"].annotation is bool


def test_every_signature_can_be_called_as_it_says():
    """What a signature does not require, a call need not give."""
    x = wengert.ones(2, 2)
    for name, value in FUNCTIONS.items():
        parameters = list(inspect.signature(value).parameters.values())
        if not parameters or parameters[0].annotation is not wengert.Tensor or name[-1] == "_":
            continue
        required = [p for p in parameters if p.default is p.empty]
        if [p.name for p in required] == ["input"]:
            try:
                value(x)
            except TypeError as error:
                raise AssertionError(name) from error
            except (RuntimeError, NotImplementedError, ValueError, IndexError):
                pass  # it asks for another shape or type


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_show_what_happens(name):
    text = FUNCTIONS[name].__doc__ if name in FUNCTIONS else getattr(wengert.Tensor, name).__doc__
    assert EXAMPLES[name].splitlines()[0] in text
    parser = doctest.DocTestParser()
    test = parser.get_doctest(EXAMPLES[name], {"wengert": wengert}, name, None, 0)
    assert test.examples
    results = doctest.DocTestRunner(verbose=False).run(test)
    assert not results.failed


def test_help_shows_it():
    text = pydoc.plain(pydoc.render_doc(wengert.exp))
    assert "exp(input: Tensor, *, out: Tensor | None = None) -> Tensor" in text
    assert "Exponential function" in text
    assert "in module wengert" in text
