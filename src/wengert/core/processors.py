"""How many processors there are for this process."""

from __future__ import annotations

import os


def usable_processors() -> int:
    """The number of processors that this process may use, or fewer if OMP_NUM_THREADS says so."""
    try:
        count = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        count = os.cpu_count() or 1
    given = os.environ.get("OMP_NUM_THREADS", "")
    return min(count, int(given)) if given.isdigit() and int(given) > 0 else count
