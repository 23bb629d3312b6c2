"""How programs are drawn, and how many of them."""

import os

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from random_programs import autograd_calls, functions, regions
from random_programs.machine import OPERATIONS

SHAPES = [(), (3,), (2, 3), (3, 2), (2, 1), (1, 3), (2, 2, 2)]


def of_module(*modules):
    return sorted(
        name for name, function in OPERATIONS.items() if function.__module__ in modules
    )


CALLS = of_module(autograd_calls.__name__)
FUNCTIONS = of_module(functions.__name__)
REGIONS = of_module(regions.__name__)
DERIVATIVES = [name for name in CALLS if name.split("_")[0] in ("backward", "grad", "second")]


def programs(names=(*FUNCTIONS, *REGIONS, *CALLS)):
    """Leaves and instructions: twice, some that compute and listen and then some that derive."""
    number = st.integers(0, 11)
    quiet = st.sampled_from([False] * 11 + [True])
    leaves = st.lists(
        st.tuples(st.sampled_from(SHAPES), st.sampled_from([True, True, True, False])),
        min_size=1,
        max_size=3,
    )

    def instructions(allowed, least, most):
        chosen = [name for name in allowed if name in names]
        if not chosen:
            return st.just([])
        instruction = st.tuples(st.sampled_from(chosen), number, number, number, quiet)
        return st.lists(instruction, min_size=least, max_size=most)

    listening = [name for name in CALLS if name not in DERIVATIVES]
    build = st.builds(
        lambda *parts: [instruction for part in parts for instruction in part],
        instructions([*FUNCTIONS, *REGIONS], 2, 8),
        instructions(listening, 0, 4),
        instructions([*FUNCTIONS, *REGIONS], 1, 6),
        instructions(DERIVATIVES, 1, 3),
    )
    return st.tuples(leaves, st.builds(lambda a, b: a + b, build, st.just([]) | build))


def check(examples):
    """A fixed number of programs, the same in every run; WENGERT_PROGRAMS=20000 draws others."""
    wanted = os.environ.get("WENGERT_PROGRAMS")
    return settings(
        max_examples=examples if wanted is None else int(wanted),
        derandomize=wanted is None,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
