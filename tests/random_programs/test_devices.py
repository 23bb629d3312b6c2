"""The same programs with nodes spread over several devices: the outcome of one device."""

from hypothesis import given
from hypothesis import strategies as st

import wengert
from random_programs.machine import Machine, compare
from random_programs.programs import CALLS, FUNCTIONS, check, programs

# Calls whose failure leaves gradients behind that depend on the order of nodes.
ENGINE_CALLS = {name for name in CALLS if "backward" in name or "grad" in name} | {
    "second_derivative"
}
ON_SEVERAL = sorted(set(FUNCTIONS) | set(CALLS) - {"hooked_with_failure"})


def execute_until_failure(program, devices):
    """The final tensors of a run whose nodes are spread over `devices`.

    When backward fails, it depends on the order of nodes which leaves have their gradient by then:
    the program ends before.
    """
    leaves, instructions = program
    machine = Machine(wengert, leaves)
    for instruction in instructions:
        states = machine.outcome()[len(machine.log) :]
        machine.run(*instruction)
        if machine.log and machine.log[-1][0] == "error" and machine.log[-1][1] in ENGINE_CALLS:
            return states
        for number, tensor in enumerate(machine.tensors):
            place(tensor, devices[number % len(devices)])
    return machine.outcome()[len(machine.log) :]


def place(tensor, device):
    try:
        node = tensor.grad_fn
    except RuntimeError:
        return
    if node is not None:
        node.out_device = device


@check(examples=500)
@given(
    programs(ON_SEVERAL),
    st.lists(st.sampled_from([None, "fake:0", "fake:1"]), min_size=1, max_size=5),
)
def test_same_outcome_on_several_devices(program, devices):
    compare(execute_until_failure(program, devices), execute_until_failure(program, [None]))
