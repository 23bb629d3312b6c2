"""allow_mutation_on_saved_tensors: changes after saving do not reach the backward."""

import gc

import pytest


@pytest.fixture
def allowed(lib):
    return lib.autograd.graph.allow_mutation_on_saved_tensors


def test_without_it_the_backward_refuses(lib):
    a = lib.ones(2, requires_grad=True)
    b = a.clone()
    out = (b**2).sum()
    b.sin_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


def test_the_old_value_is_used(lib, allowed):
    with allowed() as context:
        a = lib.full((2,), 3.0, requires_grad=True)
        b = a.clone()
        out = (b**2).sum()
        b.sin_()
        assert len(context.cloned) == 1
        out.backward()
    assert lib.equal(a.grad, lib.full((2,), 6.0))


def test_nothing_is_copied_without_a_change(lib, allowed):
    with allowed() as context:
        a = lib.full((2,), 3.0, requires_grad=True)
        out = (a.clone() ** 2).sum()
        assert len(context.cloned) == 0
        out.backward()
    assert lib.equal(a.grad, lib.full((2,), 6.0))


def test_one_copy_for_several_changes(lib, allowed):
    with allowed() as context:
        a = lib.full((2,), 3.0, requires_grad=True)
        b = a.clone()
        out = (b**2).sum()
        b.sin_()
        b.add_(1)
        assert len(context.cloned) == 1
        out.backward()
    assert lib.equal(a.grad, lib.full((2,), 6.0))


def test_one_copy_for_a_tensor_saved_twice(lib, allowed):
    with allowed() as context:
        a = lib.full((2,), 3.0, requires_grad=True)
        b = a.clone()
        out = (b**2 + b**3).sum()
        b.zero_()
        assert len(context.cloned) == 1
        out.backward()
    assert lib.equal(a.grad, lib.full((2,), 33.0))


def test_saved_again_after_a_change(lib, allowed):
    with allowed() as context:
        a = lib.full((2,), 3.0, requires_grad=True)
        b = a.clone()
        first = (b**2).sum()
        b.mul_(2)
        second = (b**2).sum()
        b.zero_()
        assert len(context.cloned) == 2
        (first + second).backward()
    assert lib.equal(a.grad, lib.full((2,), 6.0 + 2 * 6.0 * 2))


def test_changes_through_a_view(lib, allowed):
    with allowed():
        a = lib.full((2, 2), 3.0, requires_grad=True)
        b = a.clone()
        out = (b**2).sum()
        b.view(-1).zero_()
        out.backward()
    assert lib.equal(a.grad, lib.full((2, 2), 6.0))


def test_changes_of_the_base_of_a_saved_view(lib, allowed):
    with allowed():
        a = lib.full((2, 2), 3.0, requires_grad=True)
        b = a.clone()
        out = (b[0] ** 2).sum()
        b.zero_()
        out.backward()
    assert lib.equal(a.grad, lib.tensor([[6.0, 6.0], [0.0, 0.0]]))


def test_saved_results(lib, allowed):
    with allowed():
        a = lib.zeros(2, requires_grad=True)
        y = a.exp()
        out = y.sum()
        y.detach().mul_(5)
        out.backward()
    assert lib.equal(a.grad, lib.ones(2))


def test_leaves_changed_without_grad(lib, allowed):
    with allowed():
        a = lib.full((2,), 3.0, requires_grad=True)
        out = (a**2).sum()
        with lib.no_grad():
            a.sub_(1)
        out.backward()
    assert lib.equal(a.grad, lib.full((2,), 6.0))


def test_backward_outside_is_refused(lib, allowed):
    with allowed():
        a = lib.ones(2, requires_grad=True)
        out = (a.clone() ** 2).sum()
    with pytest.raises(AssertionError, match="outside of the 'allow_mutation_on_saved_tensors'"):
        out.backward()


def test_not_nestable(lib, allowed):
    with allowed(), pytest.raises(RuntimeError, match="cannot be nested"), allowed():
        pass


def test_can_be_entered_again(lib, allowed):
    for _ in range(2):
        with allowed():
            a = lib.ones(2, requires_grad=True)
            b = a.clone()
            out = (b**2).sum()
            b.zero_()
            out.backward()
        assert lib.equal(a.grad, lib.full((2,), 2.0))


def test_state_is_cleared_at_the_end(lib, allowed):
    with allowed() as context:
        a = lib.ones(2, requires_grad=True)
        b = a.clone()
        out = (b**2).sum()
        b.zero_()
        assert len(context.cloned) == 1
    assert len(context.cloned) == len(context.original) == 0
    assert len(context.tid_to_weakhandle) == len(context.sid_to_tid) == 0
    del out


def test_copies_die_with_the_graph(lib, allowed):
    with allowed() as context:
        a = lib.ones(2, requires_grad=True)
        b = a.clone()
        out = (b**2).sum()
        b.zero_()
        out.backward()
        del out
        gc.collect()
        assert len(context.cloned) == 0


def test_double_backward(lib, allowed):
    with allowed():
        a = lib.full((2,), 3.0, dtype=lib.float64, requires_grad=True)
        b = a.clone()
        out = (b**3).sum()
        b.zero_()
        (g,) = lib.autograd.grad(out, a, create_graph=True)
        g.sum().backward()
    assert lib.allclose(a.grad, lib.full((2,), 18.0, dtype=lib.float64))


def test_exception_inside(lib, allowed):
    with pytest.raises(ValueError), allowed():
        raise ValueError
    with allowed():
        pass


def test_changes_of_a_part_elsewhere_in_the_memory():
    import wengert as lib

    with lib.autograd.graph.allow_mutation_on_saved_tensors():
        a = lib.full((3,), 3.0, requires_grad=True)
        b = a.clone()
        out = (b**2).sum()
        b[1] = 100.0
        out.backward()
    assert lib.equal(a.grad, lib.full((3,), 6.0))


def test_changes_by_out():
    import wengert as lib

    with lib.autograd.graph.allow_mutation_on_saved_tensors():
        a = lib.full((3,), 3.0, requires_grad=True)
        b = a.detach().clone()
        out = (a * b).sum()
        lib.add(lib.ones(3), 1, out=b)
        out.backward()
    assert lib.equal(a.grad, lib.full((3,), 3.0))
    assert lib.equal(b, lib.full((3,), 2.0))


def test_change_through_data_is_seen(lib):
    a = lib.ones(2, requires_grad=True)
    with lib.autograd.graph.allow_mutation_on_saved_tensors():
        b = a.clone()
        out = (b * b).sum()
        b.data.mul_(3)
        out.backward()
    assert a.grad.tolist() == [2.0, 2.0]


def test_aliases_of_one_memory_keep_their_own_history(lib):
    a, u, v = (lib.ones(2, requires_grad=True) for _ in range(3))
    with lib.autograd.graph.allow_mutation_on_saved_tensors():
        b = a * 3
        out = (b.detach() * u + b * v).sum()
        b.zero_()
        (first,) = lib.autograd.grad(out, v, create_graph=True)
        (second,) = lib.autograd.grad(first.sum(), a)
    assert first.tolist() == [3.0, 3.0]
    assert second.tolist() == [3.0, 3.0]
