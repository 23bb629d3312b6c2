"""Errors about saved tensors name the user's lines, compiled or not."""

import re
from pathlib import Path

import pytest

import wengert
from wengert.nn import functional

HERE = re.escape(Path(__file__).name)


def line_of(text):
    """The number of the line of this file that ends with a marker."""
    for number, line in enumerate(Path(__file__).read_text().splitlines(), 1):
        if line.endswith(f"# {text}"):
            return number
    raise AssertionError(text)


def test_change_of_a_saved_result_names_both_lines():
    x = wengert.ones(3, requires_grad=True)
    y = x.exp()  # saved here
    y.mul_(2)  # changed here
    with pytest.raises(RuntimeError) as caught:
        y.sum().backward()
    message = str(caught.value)
    assert re.search(rf"ExpBackward0 saved it at \S*{HERE}:{line_of('saved here')}", message)
    assert re.search(rf"`mul_` at \S*{HERE}:{line_of('changed here')}", message)
    assert "version 1; expected version 0" in message


def test_change_of_a_saved_operand_through_a_view():
    x = wengert.ones(3, requires_grad=True)
    w = wengert.ones(3)
    y = x * w
    w[0].fill_(5)  # filled here
    with pytest.raises(RuntimeError, match=rf"`fill_` at \S*{HERE}:{line_of('filled here')}"):
        y.sum().backward()


def test_second_backward_names_the_recording_and_the_freeing():
    x = wengert.ones(3, requires_grad=True)
    y = (x * x).sum()  # recorded here
    y.backward()  # freed here
    with pytest.raises(RuntimeError) as caught:
        y.backward()
    message = str(caught.value)
    assert re.search(rf"recorded at \S*{HERE}:{line_of('recorded here')}", message)
    assert re.search(rf"freed by the backward at \S*{HERE}:{line_of('freed here')}", message)


def test_line_of_a_composite_is_the_callers():
    x = wengert.ones(3, requires_grad=True)
    y = functional.mse_loss(x, wengert.zeros(3))  # composed here
    y.backward()
    with pytest.raises(RuntimeError, match=rf"{HERE}:{line_of('composed here')}"):
        y.backward()
