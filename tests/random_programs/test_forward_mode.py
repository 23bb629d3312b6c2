"""Programs of functions, views and in-place edits on dual tensors: the tangents of PyTorch."""

import pytest
from hypothesis import given

import wengert
from random_programs.machine import Machine, compare, phrase, values
from random_programs.programs import FUNCTIONS, check, programs

NAMES = [name for name in FUNCTIONS if name != "turned_in_place"]


def execute(lib, program):
    """What the program makes of tangents, and of the tangents of gradients; refused leaves."""
    leaves, instructions = program
    forward_ad = lib.autograd.forward_ad
    with forward_ad.dual_level():
        machine = Machine(lib, leaves)
        for number, leaf in enumerate(list(machine.tensors)):
            direction = lib.cos(leaf.detach() + number)
            machine.add(forward_ad.make_dual(leaf, direction))
        for instruction in instructions:
            machine.run(*instruction)
        outcome = [entry[:3] for entry in machine.log]  # all are errors
        refused = sum("a leaf Variable that requires grad" in entry for entry in machine.log)
        for tensor in machine.tensors:
            outcome.append((values(tensor), tangent(lib, tensor)))
        outcome.append(gradients(lib, machine.tensors))
        return outcome, refused


def tangent(lib, tensor):
    """The values of a tangent; None if it is absent, zero, or that of an unusable view."""
    try:
        found = lib.autograd.forward_ad.unpack_dual(tensor).tangent
    except RuntimeError:
        return None
    return None if found is None or (abs(found.detach()) < 1e-9).all() else values(found)


def gradients(lib, tensors):
    """Values and tangents of the gradients of the newest tensor, or the error."""
    newest, leaves = tensors[-1], [tensor for tensor in tensors[:3] if tensor._base is None]
    inputs = [leaf for leaf in leaves if leaf.requires_grad and leaf.grad_fn is None]
    if not (inputs and newest.requires_grad):
        return None
    try:
        found = lib.autograd.grad((newest * newest).sum(), inputs, allow_unused=True)
    except RuntimeError as error:
        return phrase(str(error))
    return [(values(g), None if g is None else tangent(lib, g)) for g in found]


@pytest.mark.filterwarnings("ignore:Use of .* on expanded tensors is deprecated")
@check(examples=500)
@given(programs(NAMES))
def test_same_tangents_as_pytorch(program):
    torch = pytest.importorskip("torch")
    found, refused = execute(wengert, program)
    wanted, refused_there = execute(torch, program)
    if refused_there <= refused:  # PyTorch may take the tangent of a view for a leaf
        compare(found, wanted)
