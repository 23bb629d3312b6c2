"""Compares errors: every call that PyTorch's database of operators lists as an error, made here.

    python tools/error_facts.py                  all operators
    python tools/error_facts.py softmax linalg   those whose names contain one of the words

A call has to raise the same type of error, with the words that the database looks for. The exit
status is 1 if some call does not.
"""

from __future__ import annotations

import argparse
import collections
import re
import sys
import warnings
from typing import Any

import torch
from database import converted, operators, ours

#: A number can stand beside a tensor in every operator that broadcasts, see docs/differences.md.
STANDS_FOR_A_TENSOR = re.compile(
    r"must be Tensor, not int|got \((int, Tensor|Tensor, int|int, int)\)"
)


def verdict(operator: Any, function: Any, case: Any) -> str:
    """What is wrong with the error of one call; empty if nothing."""
    sample = case.sample_input
    try:
        expected, words = raised(operator.op, sample.input, sample.args, sample.kwargs)
        if expected is None:
            return ""
        given = converted((sample.input, sample.args, sample.kwargs))
    except Exception as error:
        return f"cannot be tried: {type(error).__name__}: {str(error)[:80]}"
    found, text = raised(function, *given)
    text = text.replace("wengert.", "torch.")
    if found is None and expected is TypeError and STANDS_FOR_A_TENSOR.search(words):
        return ""
    if found is None:
        return f"accepted: {expected.__name__}: {words[:150]}"
    pattern = case.error_regex
    if found.__name__.lstrip("_") != expected.__name__.lstrip("_"):
        return f"type {found.__name__}: {text[:90]} | {expected.__name__}: {words[:120]}"
    if re.search(pattern, words) and not re.search(pattern, text):
        return f"words: {text[:110]} | {words[:150]}"
    return ""


def raised(function: Any, first: Any, args: Any, kwargs: Any) -> tuple[Any, str]:
    """The type of the error of a call and its message; None if there is none."""
    try:
        function(first, *args, **kwargs)
    except Exception as error:
        return type(error), str(error)
    return None, ""


def main() -> int:
    """Print the calls whose errors differ, and how many there are of each kind."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("words", nargs="*", help="parts of names of operators")
    words = parser.parse_args().words
    warnings.simplefilter("ignore")
    counts: collections.Counter[str] = collections.Counter()
    for operator in operators():
        if operator.error_inputs_func is None:
            continue
        if words and not any(word in operator.name for word in words):
            continue
        function = ours(operator)
        seen = set()
        for case in operator.error_inputs_func(operator, "cpu"):
            counts["calls"] += 1
            text = verdict(operator, function, case) if function else "missing"
            if text:
                counts[text.partition(" ")[0].rstrip(":")] += 1
                if text not in seen:
                    print(f"{operator.name}: {text}", flush=True)
                seen.add(text)
    print(dict(counts))
    return 1 if len(counts) > 1 else 0


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main())
