"""The log of executed nodes, through the logger of the graph module."""

import logging

import pytest


class Records(logging.Handler):
    def __init__(self):
        super().__init__()
        self.texts = []

    def emit(self, record):
        self.texts.append((record.levelname, record.getMessage()))


@pytest.fixture
def logged(lib):
    """Level DEBUG for the test; what was logged."""
    logger = logging.getLogger(f"{lib.__name__}.autograd.graph")
    handlers, level, propagate = logger.handlers, logger.level, logger.propagate
    records = Records()
    logger.handlers, logger.propagate = [records], False
    logger.setLevel(logging.DEBUG)
    yield records.texts
    logger.handlers, logger.propagate = handlers, propagate
    logger.setLevel(level)


def names(logged):
    return [text.split()[1].lstrip("<") for _, text in logged]


def test_every_node_is_logged_with_its_gradients(lib, logged):
    x = lib.ones(2, 3, requires_grad=True)
    (x * 2).sum().backward()
    assert [level for level, _ in logged] == ["DEBUG"] * 3
    assert names(logged) == ["SumBackward0", "MulBackward0", "AccumulateGrad"]
    endings = [text.partition(" with ")[2] for _, text in logged]
    assert endings == [
        "grad_outputs: [f32[]]",
        "grad_outputs: [f32[2, 3]]",
        "grad_outputs: [f32[2, 3]]",
    ]
    assert all(text.startswith("Executing: <") for _, text in logged)


def test_several_outputs_and_absent_gradients(lib, logged):
    x = lib.ones(2, 3, dtype=lib.float64, requires_grad=True)
    x.unbind(0)[0].sum().backward()
    assert "grad_outputs: [f64[3],None]" in logged[1][1]


@pytest.mark.parametrize(
    ("dtype", "short"),
    [("float16", "f16"), ("bfloat16", "bf16"), ("complex64", "c64"), ("complex128", "c128")],
)
def test_short_names_of_types(lib, logged, dtype, short):
    x = lib.ones(2, dtype=getattr(lib, dtype), requires_grad=True)
    (x * 2).backward(lib.ones(2, dtype=x.dtype))
    assert logged[0][1].endswith(f"[{short}[2]]")


def test_grad_logs_what_runs(lib, logged):
    x = lib.ones(2, requires_grad=True)
    lib.autograd.grad((x * 2).sum(), x)
    assert names(logged) == ["SumBackward0", "MulBackward0"]


def test_node_that_fails_is_logged(lib, logged):
    x = lib.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        (y + 1).sum().backward()
    assert names(logged) == ["SumBackward0", "AddBackward0"]


def test_nothing_stays_on_the_graph(lib, logged):
    x = lib.ones(2, requires_grad=True)
    y = (x * 2).sum()
    y.backward(retain_graph=True)
    logger = logging.getLogger(f"{lib.__name__}.autograd.graph")
    logger.setLevel(logging.INFO)
    count = len(logged)
    y.backward()
    assert len(logged) == count


def test_log_follows_the_level_of_a_parent(lib, logged):
    logger = logging.getLogger(f"{lib.__name__}.autograd.graph")
    logger.setLevel(logging.NOTSET)
    parent = logging.getLogger(f"{lib.__name__}.autograd")
    level = parent.level
    parent.setLevel(logging.DEBUG)
    try:
        lib.ones(2, requires_grad=True).sum().backward()
    finally:
        parent.setLevel(level)
    assert names(logged) == ["SumBackward0", "AccumulateGrad"]


def test_edges_as_roots_are_logged(lib, logged):
    x = lib.ones(2, requires_grad=True)
    lib.autograd.backward(lib.autograd.graph.get_gradient_edge((x * 2).sum()))
    assert names(logged) == ["SumBackward0", "MulBackward0", "AccumulateGrad"]
