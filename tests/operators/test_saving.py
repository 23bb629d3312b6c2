"""Every operator's gradient from values that were packed, computed again, or copied."""

import functools

import wengert
from operators.support import (
    assert_close,
    build,
    call,
    differentiable,
    each_sample,
    leaves_of,
    results,
    weights_like,
)
from wengert.autograd.graph import allow_mutation_on_saved_tensors, saved_tensors_hooks
from wengert.utils.checkpoint import checkpoint

WITHOUT_GRADIENT = {
    "geqrf", "heaviside", "histogram", "histogramdd", "linalg.ldl_factor", "linalg.ldl_solve",
    "unique", "unique_consecutive",
}  # fmt: skip
SEVERAL_VIEWS = {"chunk", "split", "split_with_sizes", "unbind"}


def second_order(operation, sample, run=call):
    """Gradients of a weighted sum of all results, and the gradients of their sum."""
    built = build(wengert, sample, requires_grad=True)
    inputs = leaves_of(wengert, built)
    outputs = differentiable(run(operation, wengert, built))
    if not outputs:
        return []
    weights = [wengert.tensor(w).to(o.dtype) for w, o in zip(weights_like(outputs), outputs)]
    first = wengert.autograd.grad(outputs, inputs, weights, create_graph=True, allow_unused=True)
    total = [g.abs().square().sum() for g in first if g is not None and g.requires_grad]
    if not total:
        return list(first)
    return [*first, *wengert.autograd.grad(sum(total), inputs, allow_unused=True)]


def assert_agree(found, wanted):
    for mine, other in zip(found, wanted, strict=True):
        assert (mine is None) == (other is None)
        if mine is not None:
            assert_close(mine, other, 1e-9, 1e-12)


@each_sample(lambda o: o.name not in WITHOUT_GRADIENT)
def test_from_packed_values(operation, sample):
    wanted = second_order(operation, sample)
    with saved_tensors_hooks(lambda t: (t.clone(),), lambda packed: packed[0]):
        found = second_order(operation, sample)
    assert_agree(found, wanted)


@each_sample(lambda o: o.name not in WITHOUT_GRADIENT)
def test_from_values_computed_again(operation, sample):
    def run(operation, lib, built):
        region = functools.partial(call, operation, lib, built)
        return checkpoint(lambda *_: region(), *leaves_of(lib, built), use_reentrant=False)

    assert_agree(second_order(operation, sample, run), second_order(operation, sample))


@each_sample(lambda o: o.name not in WITHOUT_GRADIENT | SEVERAL_VIEWS)
def test_from_values_that_were_changed_later(operation, sample):
    def run(operation, lib, built):
        out = call(operation, lib, built)
        with lib.no_grad():
            for t in (*leaves_of(lib, built), *results(out)):
                if isinstance(t, lib.Tensor) and t.is_floating_point() and not t._is_view():
                    t.zero_()
        return out

    wanted = second_order(operation, sample)
    with allow_mutation_on_saved_tensors():
        assert_agree(second_order(operation, sample, run), wanted)
