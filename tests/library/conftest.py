"""Custom operators under names that no other test uses, for Wengert and for PyTorch."""

import pytest

from library.support import fresh_name


@pytest.fixture
def define(lib):
    """Makes a custom operator of a function: ``define("(Tensor x) -> Tensor", kernel)``."""

    def make(schema, kernel, *, mutates_args=(), **options):
        name = f"wengert_tests::{fresh_name('op')}"
        return lib.library.custom_op(
            name, kernel, mutates_args=mutates_args, schema=schema, **options
        )

    return make


@pytest.fixture
def leaves(lib):
    """Makes leaves that require grad from lists of numbers."""

    def make(*values):
        return [lib.tensor(v, dtype=lib.float64, requires_grad=True) for v in values]

    return make


@pytest.fixture
def defined(lib):
    """Makes an operator of a schema and a kernel for a key: ``defined("(Tensor x) -> Tensor", f)``.

    Operators live as long as the test.
    """
    libraries = []

    def make(schema, kernel, key="CPU"):
        library = lib.library.Library(fresh_name("wengert_defined"), "DEF")
        libraries.append(library)
        library.define("f" + schema)
        library.impl("f", kernel, key)
        return library, getattr(lib.ops, library.ns).f

    yield make
    for library in libraries:
        library._destroy()
