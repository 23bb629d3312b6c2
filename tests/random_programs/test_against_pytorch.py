"""Programs of functions, views, in-place edits, hooks and backward: the outcome of PyTorch."""

import pytest
from hypothesis import given

import wengert
from random_programs.machine import compare, execute
from random_programs.programs import check, programs


@pytest.mark.filterwarnings("ignore:Use of .* on expanded tensors is deprecated")
@check(examples=2000)
@given(programs())
def test_same_outcome_as_pytorch(program):
    torch = pytest.importorskip("torch")
    compare(execute(wengert, program), execute(torch, program))
