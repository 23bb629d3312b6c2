"""Every module of PyTorch with every option: text, state, results, derivatives, copies, errors."""

import copy
import inspect
import io
import pickle
import re
import warnings

import numpy as np
import pytest

import wengert
from nn.every_module import (
    ELSEWHERE,
    MODULES,
    OTHER_DERIVATIVES,
    OTHER_OPTIONS,
    REFUSED,
    USUAL,
    WRONG,
    first_of_each,
)

# Both forms of the package have the same Python here: the compiled run suffices.
pytestmark = pytest.mark.slow

torch = pytest.importorskip("torch")
PUBLIC = sorted(
    name
    for name, value in vars(torch.nn).items()
    if inspect.isclass(value) and name[0] != "_" and value.__module__.startswith("torch.nn")
)


@pytest.fixture(autouse=True)
def unseen():
    """Both libraries warn of the same few things, which others test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class Arguments:
    """What makes the arguments of a call, the same for both libraries."""

    def __init__(self, lib):
        self.lib, self.numbers, self.leaves = lib, np.random.default_rng(3), []

    def leaf(self, values):
        made = self.lib.tensor(np.asarray(values)).requires_grad_()
        self.leaves.append(made)
        return made * 1  # some modules change what they are given

    def read(self, text):
        numbers, tensor = self.numbers, self.lib.tensor
        names = {
            "lib": self.lib,
            "x": lambda *shape: self.leaf(numbers.standard_normal(shape)),
            "u": lambda *shape: self.leaf(numbers.uniform(0.1, 0.9, shape)),
            "i": lambda *shape: tensor(numbers.integers(0, 3, shape)),
            "s": lambda *shape: tensor(numbers.integers(0, 2, shape) * 2.0 - 1),
            "b": lambda *shape: tensor(numbers.integers(0, 2, shape) > 0),
        }
        return eval(f"({text},)", names)


def made(lib, text, seed=0):
    lib.manual_seed(seed)
    text, dot, _ = text.partition(".eval")
    layer = eval(f"lib.nn.{text.strip()}", {"lib": lib})
    return layer.double().eval() if dot else layer.double()


def flat(value):
    """The tensors in nested tuples."""
    if isinstance(value, tuple):
        return [leaf for each in value for leaf in flat(each)]
    return [] if value is None else [value]


def gradients(lib, results, leaves):
    found = lib.autograd.grad(
        sum((t * t).sum() for t in results), leaves, create_graph=True, allow_unused=True
    )
    return [t for t in found if t is not None]


def observed(lib, text, arguments):
    """All that shows of a module: state, text, fields, results and derivatives."""
    layer = made(lib, text)
    given = Arguments(lib)
    call = given.read(arguments)
    lib.manual_seed(1)
    results = [t for t in flat(layer(*call)) if isinstance(t, lib.Tensor)]
    seen = {
        "text": repr(layer),
        "class": type(layer).__name__,
        "fields": fields(layer),
        "names": [name for name, _ in layer.named_modules()],
        "trained": [name for name, p in layer.named_parameters() if p.requires_grad],
        "state": {name: array(t) for name, t in layer.state_dict().items()},
        "results": [array(t) for t in results],
        "draws": lib.get_rng_state().tolist()[:5000],
    }
    leaves = [*given.leaves, *(p for p in layer.parameters() if p.requires_grad)]
    seen["first"] = seen["second"] = None
    results = [t for t in results if t.requires_grad]
    if leaves and results:
        first = gradients(lib, results, leaves)
        seen["first"] = [array(t) for t in first]
        try:
            second = gradients(lib, [t for t in first if t.requires_grad], leaves)
            seen["second"] = [array(t) for t in second]
        except (RuntimeError, TypeError) as error:  # TypeError: nothing is left to differentiate
            seen["second"] = str(error)
    return seen


def fields(layer):
    """Public fields and parameters that are not there, which may be either."""
    absent = {name: None for name, value in layer._parameters.items() if value is None}
    public = {name: value for name, value in vars(layer).items() if not name.startswith("_")}
    return {name: plain(value) for name, value in (public | absent).items()}


def plain(value):
    """A field, if it can be compared."""
    if isinstance(value, (wengert.Tensor, torch.Tensor)):
        return value.tolist()
    return value if isinstance(value, (int, float, str, bool, tuple, list, type(None))) else ""


def array(t):
    return t.detach().numpy().copy()


def cases(usual):
    """All cases, those that are not usual left to the long run."""
    full = pytest.mark.full
    return [text if text in usual else pytest.param(text, marks=full) for text in MODULES]


def assert_close(ours, theirs, tolerance=1e-9):
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("text", cases(USUAL))
def test_module(text):
    ours, theirs = (observed(lib, text, MODULES[text]) for lib in (wengert, torch))
    for what in ("text", "class", "fields", "names", "trained", "draws"):
        assert ours[what] == theirs[what], what
    assert list(ours["state"]) == list(theirs["state"])
    # PyTorch's slope of this one is a sixth in float32.
    tolerance = 1e-7 if "Hardsigmoid" in text else 1e-9
    for what in ("state", "results", "first", "second"):
        one, other = ours[what], theirs[what]
        if what == "second" and isinstance(other, str):
            assert re.search("not implemented|does not require grad|not supported", other), other
            continue
        if what in OTHER_DERIVATIVES.get(text, ()):
            continue
        if what == "state":
            one, other = list(one.values()), list(other.values())
        assert (one is None) == (other is None), (what, one)
        assert not isinstance(one, str), one
        if one is not None:
            assert_close(one, other, tolerance)


@pytest.mark.parametrize("text", cases(first_of_each()))
def test_copies(text):
    layer = made(wengert, text)
    file = io.BytesIO()
    wengert.save(layer, file)
    file.seek(0)
    copies = [copy.deepcopy(layer), wengert.load(file, weights_only=False)]
    if "silu" not in text:
        copies.append(pickle.loads(pickle.dumps(layer)))
    for other in copies:
        assert type(other) is type(layer) and repr(other) == repr(layer)
        results = []
        for each in (layer, other):
            wengert.manual_seed(1)
            call = Arguments(wengert).read(MODULES[text])
            # A lazy layer draws its parameters now, another may change its state.
            results.append(flat(copy.deepcopy(each)(*call)))
        for one, two in zip(*results, strict=True):
            np.testing.assert_array_equal(array(one), array(two))


class TestComplete:
    def test_every_class(self):
        called = {text.partition("(")[0] for text in MODULES}
        assert called | set(ELSEWHERE) | REFUSED == set(PUBLIC)
        assert not called & set(ELSEWHERE)
        for name in REFUSED:
            with pytest.raises(AttributeError, match="not planned because"):
                getattr(wengert.nn, name)

    def test_every_option(self):
        """Each argument of each constructor has another value than its default in some case."""
        given = {}
        for text in MODULES:
            name = text.partition("(")[0]
            call = eval(f"record({text.partition('(')[2].partition('.eval')[0]}",
                        {"record": lambda *a, **k: (a, k), "lib": torch})  # fmt: skip
            signature = inspect.signature(getattr(wengert.nn, name))
            bound = signature.bind(*call[0], **call[1]).arguments
            for key, value in bound.items():
                default = signature.parameters[key].default
                if isinstance(value, torch.Tensor) or value != default:
                    given.setdefault(name, set()).add(key)
                if key == "kwargs":
                    given[name].update(value)
        others = {name for names in OTHER_OPTIONS.values() for name in names.split()}
        missing = {
            (name, key)
            for name in {text.partition("(")[0] for text in MODULES}
            for key in inspect.signature(getattr(wengert.nn, name)).parameters
            if key not in given.get(name, ()) and key not in others
            # Refused but for its default.
            if not ("ConvTranspose" in name and key == "padding_mode")
        }
        assert not missing


#: Calls whose errors say the same in other words: the whole of a shape, a set in order.
OTHER_WORDS = {
    "Conv1d(4, 4, 3, padding='some')",
    "Conv2d(4, 3, 3)",
    "ConvTranspose2d(4, 3, 3, 2, output_padding=3).double()",
    "RMSNorm(3).double()",
}


@pytest.mark.parametrize("text", WRONG)
def test_errors(text):
    found = []
    for lib in (wengert, torch):
        try:
            layer = eval(f"lib.nn.{text.strip()}", {"lib": lib})
            if WRONG[text] is not None:
                layer(*Arguments(lib).read(WRONG[text]))
        except Exception as error:
            found.append(error)
        else:
            found.append(None)
    ours, theirs = found
    assert ours is not None and type(ours) is type(theirs)
    assert text in OTHER_WORDS or phrase(theirs) in phrase(ours)


def phrase(error):
    """The first line of an error without the library's name, sets in alphabetical order."""
    line = str(error).strip().partition("\n")[0]
    line = re.sub(r"(torch|wengert)\.|Argument #\d+: |\.$", "", line)
    line = re.sub(r"\{(.*?)\}", lambda found: ", ".join(sorted(found[1].split(", "))), line)
    return re.sub(r" +", " ", line).lower()


def test_devices_and_types():
    seen = []
    for text in MODULES:
        name, _, rest = text.partition("(")
        parameters = inspect.signature(getattr(torch.nn, name)).parameters
        if "dtype" in parameters and "device" in parameters:
            given = rest.partition(".eval")[0][:-1]
            options = "device='meta', dtype=lib.float16"
            call = f"lib.nn.{name}({', '.join(filter(None, (given, options)))})"
            states = []
            for lib in (wengert, torch):
                layer = eval(call, {"lib": lib})
                if not name.startswith("Lazy"):
                    state = layer.state_dict().items()
                    states.append([(k, str(t.dtype).split(".")[1], str(t.device), tuple(t.shape))
                                   for k, t in state])  # fmt: skip
            assert states[1:] == states[:1], text
            seen.append(name)
    assert len(set(seen)) > 40


def test_sparse_gradients_are_refused():
    for name in ("Embedding", "EmbeddingBag"):
        with pytest.raises(NotImplementedError, match="sparse"):
            layer = getattr(wengert.nn, name)(3, 4, sparse=True)
            layer(wengert.tensor([[0, 1]])).sum().backward()
