"""The same module, tensors and results in both libraries."""

import torch

import wengert

LIBS = (wengert, torch)


def tensors(lib, *shapes, seed=1, grad=True):
    """Repeatable float64 leaves; a list instead of a tuple makes whole numbers below 3."""
    generator = torch.Generator().manual_seed(seed)
    found = []
    for shape in shapes:
        if isinstance(shape, list):
            found.append(lib.tensor(torch.randint(3, shape, generator=generator).tolist()))
        else:
            values = torch.randn(shape, generator=generator, dtype=torch.float64)
            made = lib.tensor(values.tolist(), dtype=lib.float64).reshape(shape)
            found.append(made.requires_grad_(grad))
    return found


def pair(build):
    """Modules that `build(lib)` makes, in float64, ours with PyTorch's weights."""
    torch.manual_seed(0)
    ours, theirs = (build(lib).double() for lib in LIBS)
    assert repr(ours) == repr(theirs)
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    state = theirs.state_dict()
    assert list(state) == list(ours.state_dict())
    ours.load_state_dict({name: copied(t) for name, t in state.items()})
    return ours, theirs


def copied(t):
    """A tensor of PyTorch as one of ours."""
    return wengert.tensor(t.tolist(), dtype=getattr(wengert, str(t.dtype)[6:])).reshape(t.shape)


def numbers(t):
    return torch.tensor(t.detach().tolist(), dtype=torch.float64).reshape(tuple(t.shape))


def flat(results):
    """The tensors in nested tuples, lists and dictionaries, in order; None and numbers stay."""
    if isinstance(results, (tuple, list)):
        return [leaf for each in results for leaf in flat(each)]
    return [results]


def assert_same(one, other, tolerance=1e-9):
    """Equal shapes and values, of tensors or nests of them."""
    one, other = flat(one), flat(other)
    assert len(one) == len(other)
    for left, right in zip(one, other, strict=True):
        if hasattr(right, "detach"):
            assert str(left.dtype).split(".")[1] == str(right.dtype).split(".")[1]
            torch.testing.assert_close(
                numbers(left), numbers(right), rtol=tolerance, atol=tolerance, equal_nan=True
            )
        else:
            assert left == right


def derivatives(lib, results, leaves, twice=True):
    """Gradients of all results with respect to the leaves, and of the gradients' squares."""
    total = sum((t**2).sum() for t in flat(results) if hasattr(t, "detach") and t.requires_grad)
    first = lib.autograd.grad(total, leaves, create_graph=twice, allow_unused=True)
    if not twice:
        return list(first)
    slope = sum((g * g).sum() for g in first if g is not None)
    second = lib.autograd.grad(slope, leaves, allow_unused=True)
    return [*first, *second]


def compare(build, call, *shapes, twice=True, seed=1, tolerance=1e-9):
    """Compare values, gradients and second ones of `call(lib, module, *tensors)`."""
    found = []
    for lib, module in zip(LIBS, pair(build), strict=True):
        leaves = tensors(lib, *shapes, seed=seed)
        results = call(lib, module, *leaves)
        floats = [t for t in leaves if t.requires_grad]
        found.append([results, derivatives(lib, results, [*floats, *module.parameters()], twice)])
    assert_same(*found, tolerance=tolerance)
