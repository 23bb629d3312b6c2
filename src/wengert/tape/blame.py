"""Errors about saved values that tell who saved, who changed and who freed them."""

from __future__ import annotations

import linecache
from types import CodeType
from typing import Any


def position(code: CodeType | None, lasti: int) -> str:
    """`file:line, in function: source` of one instruction, or a plain word when unknown."""
    if code is None:
        return "an unknown line"
    line = line_number(code, lasti)
    source = linecache.getline(code.co_filename, line).strip()
    where = f"{code.co_filename}:{line}, in {code.co_name}"
    return f"{where}: `{source}`" if source else where


def line_number(code: CodeType, lasti: int) -> int:
    for start, end, line in code.co_lines():
        if start <= lasti < end and line is not None:
            return line
    return code.co_firstlineno


def modified_in_place_error(saved: Any, node: Any, current: int) -> RuntimeError:
    """For a saved value whose version is not the one at which it was saved."""
    expected = getattr(saved, "version", 0)
    tensor = saved
    if not isinstance(expected, int):
        expected = 0
    elif saved.is_output:
        tensor = None
    else:
        tensor = saved.tensor
    counter = saved.counter if tensor is None else tensor.counter
    array = saved.array if tensor is None else tensor.array
    producer = node if tensor is None else tensor.node
    output_nr = saved.output_nr if tensor is None else tensor.output_index
    origin = ""
    if producer is not None:
        origin = f", which is output {output_nr} of {producer.name()},"
    changed = ""
    if counter.operator is not None:
        where = position(counter.code, counter.lasti)
        changed = f" It was changed by `{counter.operator}` at {where}."
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: [{array.dtype} {list(array.shape)}]{origin} is at version {current}; expected "
        f"version {expected} instead. {node.name()} saved it at {position(node.code, node.lasti)}."
        f"{changed} Use the out-of-place form of that operation, or change a clone()."
    )


def already_freed_error(node: Any, freed: Any) -> RuntimeError:
    """For a second use of saved values that a backward has freed."""
    return RuntimeError(
        "Trying to backward through the graph a second time (or directly access saved tensors "
        "after they have already been freed). The first backward frees what the graph saved. "
        "Specify retain_graph=True in that call to go through the graph again. "
        f"{node.name()} was recorded at {position(node.code, node.lasti)} and freed by the "
        f"backward at {position(freed.code, freed.lasti)}; a tensor kept from an earlier iteration "
        "is the usual cause."
    )
