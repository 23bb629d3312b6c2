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
from collections.abc import Iterator
from typing import Any

import torch
from database import INSIDE, converted, explanation, operators, ours

#: A number can stand beside a tensor in every operator that broadcasts, see docs/differences.md,
#: and be the first operand of a method that Python calls for a number.
STANDS_FOR_A_TENSOR = re.compile(
    r"must be Tensor, not int|got \((int, Tensor|Tensor, int|int, int)\)|to a 'int' object"
    r"|'int' object has no attribute"
)
#: What cannot be tried, by the reason: there is no such argument here.
CANNOT_BE_TRIED = re.compile("has no attribute 'sparse_coo'|must be within \\[0, 64\\]")


def arguments(case: Any) -> tuple[Any, str]:
    """The arguments of a call in our library, or why there are none."""
    sample = case.sample_input
    try:
        return converted((sample.input, sample.args, sample.kwargs), {}), ""
    except Exception as error:
        if CANNOT_BE_TRIED.search(str(error)):
            return None, ""
        return None, f"cannot be tried: {type(error).__name__}: {str(error)[:80]}"


def verdict(operator: Any, function: Any, case: Any, given: tuple) -> str:
    """What is wrong with the error of one call; empty if nothing."""
    sample = case.sample_input
    expected, words = raised(operator.op, sample.input, sample.args, sample.kwargs)
    if expected is None:
        return ""
    found, text = raised(function, *given)
    text = text.replace("wengert.", "torch.")
    if found in (None, TypeError) and STANDS_FOR_A_TENSOR.search(words):
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


def verdicts(words: list[str]) -> Iterator[tuple[str, str]]:
    """Names of operators, with what is wrong with the error of each call; empty if nothing."""
    for operator in operators():
        if operator.error_inputs_func is None or explanation(operator.name) == INSIDE:
            continue
        if words and not any(word in operator.name for word in words):
            continue
        function = ours(operator)
        if function is None:
            yield operator.name, "missing"
            continue
        cases = list(operator.error_inputs_func(operator, "cpu"))
        # All are converted before the first call, which may resize what others hold.
        for case, (given, reason) in list(zip(cases, map(arguments, cases), strict=True)):
            yield operator.name, reason or given and verdict(operator, function, case, given) or ""


def main() -> int:
    """Print the calls whose errors differ, and how many there are of each kind."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("words", nargs="*", help="parts of names of operators")
    counts: collections.Counter[str] = collections.Counter()
    seen = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, text in verdicts(parser.parse_args().words):
            counts["calls"] += 1
            if text:
                counts[text.partition(" ")[0].rstrip(":")] += 1
                if (name, text) not in seen:
                    print(f"{name}: {text}", flush=True)
                seen.add((name, text))
    print(dict(counts))
    return 1 if len(counts) > 1 else 0


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main())
