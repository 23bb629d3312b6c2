"""The graph that a call leaves behind, as in PyTorch: names of nodes, edges, views and bases."""

import warnings

import numpy as np
import pytest

import wengert
from operators import declared
from operators.samples import BY_NAME
from operators.support import build, call, each_sample, map_tensors, results

#: In-place forms that PyTorch lets change the shape of their target, which is refused here.
CHANGES_SHAPE = {"addbmm"}


def _name(node):
    """PyTorch's name without the namespace that two of its nodes have."""
    return None if node is None else node.name().rpartition("::")[2]


def _graph(t, depth=1):
    """The name of a tensor's node and, so many levels deep, those of the nodes that follow."""

    def describe(node, depth):
        if node is None or not depth:
            return _name(node)
        return _name(node), [describe(following, depth - 1) for following, _ in node.next_functions]

    return describe(t.grad_fn, depth)


def _first_is_tensor(operation, sample):
    return operation.name.isidentifier() and sample.args and isinstance(sample.args[0], np.ndarray)


def _function(lib, operation, built):
    return call(operation, lib, built)


def _method(lib, operation, built):
    return getattr(built.args[0], operation.name)(*built.args[1:], **built.kwargs)


def _inplace(lib, operation, built):
    target = built.args[0].clone()
    return getattr(target, operation.name + "_")(*built.args[1:], **built.kwargs)


def _graphs(lib, operation, sample, form):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = results(form(lib, operation, build(lib, sample, requires_grad=True)))
    return [_graph(t) for t in found if isinstance(t, lib.Tensor)]


def _forms(operation, sample):
    torch = pytest.importorskip("torch")
    yield _function
    if _first_is_tensor(operation, sample):
        if operation.name in ("to", "type_as") or not hasattr(torch.Tensor, operation.name):
            return
        yield _method
        if hasattr(torch.Tensor, operation.name + "_") and operation.name not in CHANGES_SHAPE:
            yield _inplace


@each_sample(lambda o: o.name not in declared.NODES)
def test_nodes_of_results_and_what_follows_them(operation, sample):
    torch = pytest.importorskip("torch")
    for form in _forms(operation, sample):
        try:
            want = _graphs(torch, operation, sample, form)
        except (RuntimeError, NotImplementedError, TypeError, AttributeError):
            continue
        assert _graphs(wengert, operation, sample, form) == want, form.__name__


@pytest.mark.parametrize("name", declared.NODES)
def test_every_declared_operation_does_differ(name):
    """The table has no entry that is not needed."""
    torch = pytest.importorskip("torch")
    found = []
    for sample in BY_NAME[name].draw("real" if BY_NAME[name].real else "complex"):
        graphs = [_graphs(lib, BY_NAME[name], sample, _function) for lib in (wengert, torch)]
        found.append(graphs[0] == graphs[1])
    assert not all(found)


# Views --------------------------------------------------------------------------------------------


def _plain(lib, built):
    return built


def _views(lib, built):
    return map_tensors(lib, built, lambda t: t.view_as(t) if t.dim() else t)


def _turned(lib, built):
    return map_tensors(lib, built, lambda t: t.t().contiguous().t() if t.dim() == 2 else t)


def _relations(lib, operation, sample, prepare, mode):
    """For each result whether it is a view, and which of the inputs or their bases its base is."""
    built = prepare(lib, build(lib, sample, requires_grad=mode != "plain"))
    inputs = []
    map_tensors(lib, built, inputs.append)
    known = [*inputs, *[t._base for t in inputs if t._base is not None]]

    def place(t):
        return next((i for i, each in enumerate(known) if each is t), "another")

    with warnings.catch_warnings(), lib.set_grad_enabled(mode != "no_grad"):
        warnings.simplefilter("ignore")
        found = [t for t in results(call(operation, lib, built)) if isinstance(t, lib.Tensor)]
    return [
        (t._is_view(), place(t), None if t._base is None else (place(t._base), t._base._is_view()))
        for t in found
    ]


@each_sample(lambda o: o.name not in declared.VIEWS)
def test_views_and_their_bases(operation, sample):
    torch = pytest.importorskip("torch")
    for prepare in (_plain, _views, _turned):
        for mode in ("plain", "grad", "no_grad"):
            try:
                want = _relations(torch, operation, sample, prepare, mode)
            except (RuntimeError, NotImplementedError):
                continue
            got = _relations(wengert, operation, sample, prepare, mode)
            assert got == want, (prepare.__name__, mode)


# Indexing -----------------------------------------------------------------------------------------


INDICES = {
    "True": lambda lib: True,
    "False": lambda lib: False,
    "None": lambda lib: None,
    "...": lambda lib: ...,
    "()": lambda lib: (),
    "0": lambda lib: 0,
    "-1": lambda lib: -1,
    ":": lambda lib: slice(None),
    "1:": lambda lib: slice(1, None),
    "1:1": lambda lib: slice(1, 1),
    "::2": lambda lib: slice(None, None, 2),
    "0, 1": lambda lib: (0, 1),
    ":, 0": lambda lib: (slice(None), 0),
    "..., 0": lambda lib: (..., 0),
    "None, 0": lambda lib: (None, 0),
    "..., None": lambda lib: (..., None),
    "None, None": lambda lib: (None, None),
    "True, 0": lambda lib: (True, 0),
    "0, True": lambda lib: (0, True),
    "True, True": lambda lib: (True, True),
    "False, 0": lambda lib: (False, 0),
    "1:, 1:": lambda lib: (slice(1, None), slice(1, None)),
    "[0, 1]": lambda lib: [0, 1],
    "[]": lambda lib: [],
    "[True, False, True]": lambda lib: [True, False, True],
    "range": lambda lib: range(2),
    "array": lambda lib: np.array([0, 1]),
    "NumPy number": lambda lib: np.int64(1),
    "tensor": lambda lib: lib.tensor([0, 1]),
    "int32 tensor": lambda lib: lib.tensor([0, 1], dtype=lib.int32),
    "number": lambda lib: lib.tensor(1),
    "mask": lambda lib: lib.tensor([True, False, True]),
    "matrix mask": lambda lib: lib.ones(3, 4) > 0,
    "true number": lambda lib: lib.tensor(True),
    "tensors": lambda lib: (lib.tensor([0, 1]), lib.tensor([1, 2])),
    "numbers": lambda lib: (lib.tensor(1), lib.tensor(2)),
    ":, tensor": lambda lib: (slice(None), lib.tensor([0, 1])),
    "1:, tensor": lambda lib: (slice(1, None), lib.tensor([0, 1])),
    "0, tensor": lambda lib: (0, lib.tensor([0, 1])),
    "tensor, 0": lambda lib: (lib.tensor([0, 1]), 0),
    "None, tensor": lambda lib: (None, lib.tensor([0, 1])),
    "mask, 0": lambda lib: (lib.tensor([True, False, True]), 0),
}
VALUES = {
    "integer": lambda lib, part: 2,
    "float": lambda lib, part: 2.5,
    "bool": lambda lib, part: True,
    "number": lambda lib, part: lib.tensor(2.0),
    "integer tensor": lambda lib, part: lib.tensor(2),
    "recorded number": lambda lib, part: lib.tensor(2.0, requires_grad=True),
    "one element": lambda lib, part: lib.ones(1, requires_grad=True),
    "last dimension": lambda lib, part: lib.ones(part.shape[-1:], requires_grad=True),
    "constant": lambda lib, part: lib.ones(part.shape),
    "as large": lambda lib, part: lib.ones(part.shape, requires_grad=True),
    "one in front": lambda lib, part: lib.ones((1, *part.shape), requires_grad=True),
}


def _outcome(function, lib):
    try:
        return function(lib)
    except (IndexError, RuntimeError, TypeError, ValueError) as error:
        return type(error)


@pytest.mark.parametrize("shape", [(3, 4), (3,), ()], ids=str)
@pytest.mark.parametrize("index", INDICES)
def test_nodes_of_indexing(index, shape):
    torch = pytest.importorskip("torch")

    def taken(lib):
        x = lib.ones(shape, requires_grad=True) * 1
        part = x[INDICES[index](lib)]
        place = part.stride(), part.storage_offset(), part._is_view(), part._base is x
        return _graph(part, 3), place

    assert _outcome(taken, wengert) == _outcome(taken, torch)


@pytest.mark.parametrize("shape", [(3, 4), (3,), ()], ids=str)
@pytest.mark.parametrize("index", INDICES)
def test_nodes_of_assignment(index, shape):
    torch = pytest.importorskip("torch")
    for name, make in VALUES.items():

        def written(lib, make=make):
            x = lib.ones(shape, requires_grad=True) * 1
            value = make(lib, x.detach()[INDICES[index](lib)])
            x[INDICES[index](lib)] = value
            return _graph(x, 3), x._version, x.tolist()

        assert _outcome(written, wengert) == _outcome(written, torch), name


# Python's operators -------------------------------------------------------------------------------

EXPRESSIONS = [
    "x + 2", "2 + x", "x - 2", "2 - x", "x * 2", "2 * x", "x / 2", "x % 2",
    "x ** 2", "2 ** x", "x ** 2.5", "-x", "+x", "abs(x)", "x + y", "x - y", "x * y", "x / y",
    "x % y", "x ** y", "x @ y", "x @ y[0]", "x[0] @ y", "x[0] @ y[0]",
    "x.T", "x.mT", "x.H", "x.data", "x.real", "x.sum()", "x.sum(0)", "x.mean()",
    "x.mean(0)", "x.max()", "x.max(0)[0]", "x.std()", "x.norm()", "x.to(torch.float64)",
    "x.double()", "x.type(torch.float64)", "x.float()", "x.add(y, alpha=2)", "x.clip(0, 1)",
    "x.clamp(y, None)", "x.clamp(None, y)", "x.clamp(y, y)",
    "x.clamp(0)", "x.flatten()", "x.t().flatten()", "x.t().reshape(-1)", "x.detach()",
    "x.new_ones(2)", "torch.ones_like(x)", "x.masked_fill(x > 0, 1)", "x.where(x > 0, y)",
    "x.where(x > 0, 0)", "torch.where(x > 0, 1, x)", "x.contiguous()", "x.t().contiguous()",
    "x.squeeze(0)", "x.squeeze()", "x.unsqueeze(0)", "x.view(4)", "x.view_as(y)", "x.clone()",
    "torch.stack([x, y])", "torch.cat([x, y])", "list(x)[0]", "x.chunk(2)[0]", "x.split(1)[1]",
    "x.unbind()[0]", "x.relu()", "x.sigmoid()", "x.square()", "x.pow(y)",
    "x[0, 0].movedim(0, -1)", "x[0].movedim(0, -1)", "torch.chain_matmul(x)",
]  # fmt: skip


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_nodes_of_expressions(expression):
    torch = pytest.importorskip("torch")

    def evaluated(lib):
        x = lib.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        y = lib.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _graph(eval(expression, {"torch": lib, "x": x, "y": y}), 3)

    assert evaluated(wengert) == evaluated(torch)


@pytest.mark.parametrize("expression", declared.EXPRESSIONS)
def test_every_declared_expression_does_differ(expression):
    torch = pytest.importorskip("torch")
    graphs = [
        _graph(eval(expression, {"x": lib.ones(2, requires_grad=True)})) for lib in (wengert, torch)
    ]
    assert graphs[0] != graphs[1]


STATEMENTS = [
    "x += 2", "x -= 2", "x *= 2", "x /= 2", "x **= 2", "x %= 2", "x += y", "x *= y", "x /= y",
    "x **= y", "x.zero_()", "x.fill_(2)", "x.fill_(y[0, 0])", "x.copy_(y)", "x.copy_(y[0])",
    "x[0, 0] = 1", "x.t_()", "x.squeeze_()", "x.unsqueeze_(0)",
    "x.clamp_(0, 1)", "x.masked_fill_(x > 0, 1)", "x.relu_()", "x.exp_()", "x.asinh_()",
    "x.index_add_(0, torch.tensor([0]), y[:1])", "x[0].zero_()", "x.diagonal().fill_(1)",
    "x.addmm_(y, y)", "x.detach_()", "x.requires_grad_()", "x.mul_(y).add_(1)",
    "x.conj_physical_()",
]  # fmt: skip


@pytest.mark.parametrize("statement", STATEMENTS)
def test_nodes_of_changes_in_place(statement):
    torch = pytest.importorskip("torch")

    def executed(lib):
        names = {
            "torch": lib,
            "x": lib.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True) * 1,
            "y": lib.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True),
        }
        exec(statement, names)
        return _graph(names["x"], 3)

    assert executed(wengert) == executed(torch)
