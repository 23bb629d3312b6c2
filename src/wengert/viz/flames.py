"""Profiles as flame charts: time to the right, calls within calls below each other."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..autograd.profiler import profile as Profile
from ..autograd.profiler_util import EventList, chrome_trace, format_time
from .pages import frame, page, write
from .scopes import arguments_of, title_of


class Flames:
    """The events of a profile: as a page (``.html``), or for Perfetto (``.json``)."""

    def __init__(self, events: EventList, title: str) -> None:
        self.events = events
        self.title = title

    def html(self) -> str:
        """One page with the flame chart and the sums by name."""
        depth: dict[int, int] = {}
        threads: dict[int, int] = {}
        rows = []
        for event in self.events:
            parent = event.cpu_parent
            depth[id(event)] = 0 if parent is None else depth[id(parent)] + 1
            rows.append(
                [
                    event.name.removeprefix("autograd::engine::"),
                    threads.setdefault(event.thread, len(threads)),
                    depth[id(event)],
                    round(event.time_range.start, 2),
                    round(event.time_range.elapsed_us(), 2),
                    round(event.self_cpu_time_total, 2),
                    event.scope,
                    str(event.input_shapes) if event.input_shapes else "",
                    event.cpu_memory_usage,
                    event.stack[0] if event.stack else "",
                ]
            )
        sums = sorted(
            ([a.key, a.count, a.self_cpu_time_total] for a in self.events.key_averages()),
            key=lambda row: -row[2],
        )
        return page("profile", self.title, {"events": rows, "sums": sums})

    def trace(self) -> str:
        """The profile in the Chrome trace format, which https://ui.perfetto.dev opens."""
        return json.dumps(chrome_trace(self.events))

    def save(self, path: str | Path) -> Path:
        """Write the page (``.html``) or the trace for Perfetto (``.json``)."""
        return write(path, {".html": self.html, ".json": self.trace})

    def _repr_html_(self) -> str:
        return frame(self.html(), 480)

    def __repr__(self) -> str:
        total = format_time(self.events.self_cpu_time_total)
        return f"<Flames of {self.title}: {len(self.events)} events, {total}>"


def profile(target: Profile | Callable, inputs: Any = (), *, title: str | None = None) -> Flames:
    """A flame chart of a finished profile, or of one call of a function under a new one.

    >>> import wengert
    >>> flames = wengert.viz.profile(lambda x: x.exp().sum(), wengert.ones(3))
    >>> [event.name for event in flames.events]
    ['aten::exp', 'aten::sum']
    """
    if isinstance(target, Profile):
        return Flames(target.function_events, title or "profile")
    measured = Profile(record_shapes=True, profile_memory=True, with_stack=True)
    with measured:
        target(*arguments_of(inputs))
    return Flames(measured.function_events, title_of(target, title))
