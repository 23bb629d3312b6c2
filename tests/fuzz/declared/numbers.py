"""Numbers among nested lists: in what way two results differ."""

from __future__ import annotations


def differ_by_nan(ours: object, theirs: object) -> bool:
    """Whether numbers differ only where one of them is not a number, and some do; others agree to
    the digits that 16-bit floats have."""
    mine, other = numbers_in(ours), numbers_in(theirs)
    pairs = [(a, b) for a, b in zip(mine, other) if (a != a) == (b != b)]
    return len(pairs) < len(mine) == len(other) and all(
        a != a or a == b or abs(a - b) <= 1e-2 * abs(b) + 1e-12 for a, b in pairs
    )


def nearly(ours: object, theirs: object) -> bool:
    """Whether numbers agree to four digits of the largest among them."""
    mine, other = numbers_in(ours), numbers_in(theirs)
    largest = max([1.0, *(abs(number) for number in other)])
    return len(mine) == len(other) and all(
        abs(a - b) <= 1e-4 * largest for a, b in zip(mine, other)
    )


def numbers_in(value: object) -> list[complex]:
    """All numbers among nested lists, in their order."""
    if isinstance(value, (list, tuple)):
        return [number for item in value for number in numbers_in(item)]
    return [value] if isinstance(value, (int, float, complex)) else []


def only_theirs_nan(ours: object, theirs: object) -> bool:
    """Whether numbers differ only where theirs is not a number and ours is."""
    pairs = zip(numbers_in(ours), numbers_in(theirs))
    return differ_by_nan(ours, theirs) and all(a == a or b != b for a, b in pairs)


def agree_but_for_nan(ours: object, theirs: object) -> bool:
    """Whether numbers differ only where ours is not a number."""
    return only_theirs_nan(theirs, ours)


def numbers(value: object) -> list[str]:
    """All numbers among nested lists, whatever their places."""
    if isinstance(value, (list, tuple)):
        return sorted(number for item in value for number in numbers(item))
    return [f"{value:.4g}" if isinstance(value, (float, complex)) else repr(value)]
