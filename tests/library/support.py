"""What the tests of custom operators share."""

import itertools

import wengert

_numbers = itertools.count()


def fresh_name(word):
    """A name that no operator has."""
    return f"{word}{next(_numbers)}"


def make(schema, kernel, **options):
    """A custom operator of Wengert, for tests of what PyTorch does not have."""
    options.setdefault("mutates_args", ())
    name = f"wengert_tests::{fresh_name('op')}"
    return wengert.library.custom_op(name, kernel, schema=schema, **options)
