"""The profiler: where the time and the memory of a program go, by operator and by node.

While no profile is active nothing is measured and nothing is paid; while one is, every operator
call passes `layers.call_layers` and every node the engine's observed path.
"""

from __future__ import annotations

import enum
import functools
import json
import time
import traceback
from collections.abc import Callable
from threading import get_ident
from types import TracebackType
from typing import Any

from ..core import PACKAGE_FOLDER
from ..core.scopes import LeavesProfile
from ..core.state import thread_state
from ..core.tensor import Tensor
from .out_of_scope import look_up
from .profiler_util import (
    BACKWARD_SCOPE,
    USER_SCOPE,
    DeviceType,  # noqa: F401 - found here by the name it has in PyTorch
    EventList,
    FunctionEvent,
    FunctionEventAvg,
    MemRecordsAcc,
    build_tree,
    chrome_trace,
)

__all__ = [
    "profile", "record_function", "EnforceUnique", "KinetoStepTracker", "EventList",
    "FunctionEvent", "MemRecordsAcc",
    # out of scope, found by __getattr__
    "emit_itt", "emit_nvtx", "load_nvprof", "parse_nvprof_trace",  # noqa: F822
]  # fmt: skip


class ProfilerActivity(enum.Enum):
    """What a profile can look at; only the CPU is supported."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class Recorder:
    """Collects the events of one profile, from every thread that takes part."""

    def __init__(self, shapes: bool, memory: bool, stacks: bool, flops: bool) -> None:
        self.shapes = shapes
        self.memory = memory
        self.stacks = stacks
        self.flops = flops
        self.events: list[FunctionEvent] = []
        self.open: dict[int, list[FunctionEvent]] = {}
        self.epoch = time.perf_counter_ns()

    def now(self) -> float:
        """Microseconds since the profile began."""
        return (time.perf_counter_ns() - self.epoch) / 1000

    def enter(self, name: str, scope: int = 0, sequence: int = -1) -> FunctionEvent:
        """Begin an event of the calling thread."""
        thread = get_ident()
        event = FunctionEvent(
            len(self.events), name, thread, 0.0, 0.0, scope=scope, sequence_nr=sequence,
            stack=_stack() if self.stacks else None,
        )  # fmt: skip
        self.events.append(event)
        self.open.setdefault(thread, []).append(event)
        event.time_range.start = self.now()
        return event

    def leave(self) -> None:
        """End the calling thread's innermost event."""
        moment = self.now()
        self.open[get_ident()].pop().time_range.end = moment

    def call(self, operator: Any, args: tuple, run: Callable) -> Any:
        """Call an operator through `run` as an event."""
        state = thread_state()
        sequence = state.sequence
        name = operator.name.partition(".")[0]
        event = self.enter(name if "::" in name else "aten::" + name)
        try:
            out = run(operator, args)
            if state.sequence != sequence:
                event.sequence_nr = sequence
            if self.shapes:
                event.input_shapes = [_shape(value) for value in args]
            if self.flops:
                event.flops = _flops(operator.name, args)
            if self.memory and not operator.mutates:
                event.cpu_memory_usage = _allocated(out)
            return out
        finally:
            self.leave()

    def enter_node(self, node: Any) -> None:
        """Begin the event of a node that the engine runs, with its hooks."""
        name = f"autograd::engine::evaluate_function: {node.name()}"
        self.enter(name, BACKWARD_SCOPE, -1 if node.is_accumulator else node.sequence)

    def run_node(self, node: Any, grads: Any, run: Callable) -> list:
        """Run a node through `run` as an event within that."""
        self.enter(node.name(), BACKWARD_SCOPE, -1 if node.is_accumulator else node.sequence)
        try:
            return run(node, grads, thread_state())
        finally:
            self.leave()

    def finished(self) -> EventList:
        """The events so far, those still open ended now, connected with each other."""
        for stack in self.open.values():
            for event in stack:
                event.time_range.end = self.now()
        for event in self.events:
            event.cpu_children, event.cpu_parent = [], None
        build_tree(self.events)
        for event in reversed(self.events):  # results of an event's parts count in the event too
            within = sum(child.cpu_memory_usage for child in event.cpu_children)
            event.cpu_memory_usage = max(event.cpu_memory_usage, within)
        return EventList(self.events, profile_memory=self.memory, with_flops=self.flops)


def _allocated(out: Any) -> int:
    """Bytes of the results that are no views."""
    return sum(
        t.array.nbytes
        for t in (out if isinstance(out, (tuple, list)) else (out,))
        if isinstance(t, Tensor) and t.array.base is None
    )


def _shape(value: Any) -> list:
    if isinstance(value, Tensor):
        return list(value.array.shape)
    if isinstance(value, list):
        return [_shape(item) for item in value]
    return []


def _flops(name: str, args: tuple) -> int | None:
    """Multiplications and additions of the operators that dominate."""
    shapes = [a.array.shape for a in args if isinstance(a, Tensor)]
    if name in ("mm", "bmm", "addmm", "baddbmm") and len(shapes) >= 2:
        size = 2 * shapes[-1][-1]
        for n in shapes[-2]:
            size *= n
        return size
    if name in ("mul", "add") and shapes:
        size = 1
        for n in max(shapes, key=lambda shape: (len(shape), shape)):
            size *= n
        return size
    return None


def _stack() -> list[str]:
    frames = traceback.extract_stack()
    return [
        f"{frame.filename}({frame.lineno}): {frame.name}"
        for frame in reversed(frames)
        if not frame.filename.startswith(PACKAGE_FOLDER)
    ]


class profile(LeavesProfile):
    """Context manager that measures the operators and nodes that run inside it.

    >>> import wengert
    >>> with wengert.autograd.profiler.profile() as prof:
    ...     y = wengert.ones(3).exp().sum()
    >>> [event.name for event in prof.function_events]
    ['aten::exp', 'aten::sum']
    """

    def __init__(
        self, enabled: bool = True, *, use_cuda: bool = False, use_device: str | None = None,
        record_shapes: bool = False, with_flops: bool = False, profile_memory: bool = False,
        with_stack: bool = False, with_modules: bool = False, use_kineto: bool = False,
        use_cpu: bool = True, experimental_config: Any = None, acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None, activity_filters: Any = None,
    ) -> None:  # fmt: skip
        self.enabled = enabled
        if not enabled:
            return
        unsupported = {
            "use_cuda": use_cuda,
            "use_device": use_device is not None,
            "with_modules": with_modules,
            "use_kineto": use_kineto,
            "use_cpu=False": not use_cpu,
            "experimental_config": experimental_config is not None,
            "activity_filters": activity_filters is not None,
        }
        asked = [name for name, given in unsupported.items() if given]
        if asked:
            raise RuntimeError(
                f"profile(): {', '.join(asked)} is not supported: this profiler measures operators "
                "and nodes on the CPU"
            )
        self.record_shapes = record_shapes or with_flops
        self.with_flops = with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.acc_events = acc_events
        self.trace_id = "" if custom_trace_id_callback is None else custom_trace_id_callback()
        self.entered = False
        self.recorder: Recorder | None = None
        self.old_events: list[FunctionEvent] = []
        self.previous: Any = None

    def __enter__(self) -> profile | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self.entered = True
        if self.recorder is not None and self.acc_events:
            self.old_events += self.recorder.finished()
        self.recorder = Recorder(
            self.record_shapes, self.profile_memory, self.with_stack, self.with_flops
        )
        state = thread_state()
        self.previous = state.profiler
        layers = state.layers_with(self.recorder)
        # Plain assignments, so no interrupt comes between them and the block.
        state.profiler = self.recorder
        state.layers = layers
        return self

    @property
    def function_events(self) -> EventList:
        """All events, in the order of their start."""
        if not self.enabled or self.recorder is None:
            raise RuntimeError("Profiler didn't finish running: there are no events")
        events = self.recorder.finished()
        return EventList(
            [*self.old_events, *events],
            profile_memory=self.profile_memory,
            with_flops=self.with_flops,
        )

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """The events summed by name."""
        return self.function_events.key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def total_average(self) -> FunctionEventAvg:
        """The sum of all events."""
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds spent in all events, each moment counted once."""
        return self.function_events.self_cpu_time_total

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:
        """The events as a text table."""
        return self.function_events.table(
            sort_by, row_limit, max_src_column_width, max_name_column_width,
            max_shapes_column_width, header, top_level_events_only,
        )  # fmt: skip

    def export_chrome_trace(
        self, path: str, metadata: dict[str, Any] | None = None, use_python_export: bool = False
    ) -> None:
        """Write a trace that Perfetto and chrome://tracing open."""
        trace = chrome_trace(self.function_events)
        if self.trace_id:
            trace["trace_id"] = self.trace_id
        trace.update(metadata or {})
        with open(path, "w") as file:
            json.dump(trace, file)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write the stacks with their times; needs ``with_stack=True``."""
        if not self.with_stack:
            raise RuntimeError("export_stacks() requires with_stack=True")
        self.function_events.export_stacks(path, metric)

    def toggle_collection_dynamic(self, enabled: bool, activities: Any) -> None:
        """Stop or go on measuring inside the block, if the CPU is among `activities`."""
        if ProfilerActivity.CPU not in activities:
            return
        thread_state().profiler = self.recorder if enabled else self.previous

    def __repr__(self) -> str:
        if not self.enabled or self.recorder is None:
            return "<unfinished autograd.profile>"
        return repr(self.function_events)

    def __str__(self) -> str:
        if not self.enabled or self.recorder is None:
            return "<unfinished autograd.profile>"
        return str(self.function_events)


class record_function:
    """Context manager and decorator that names a part of a program in profiles."""

    enabled = True

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args
        self.recorder: Recorder | None = None

    def __enter__(self) -> record_function:
        self.recorder = thread_state().profiler if self.enabled else None
        if self.recorder is not None:
            event = self.recorder.enter(self.name, USER_SCOPE)
            if self.args is not None:
                event.input_shapes = [self.args]
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.recorder is not None:
            self.recorder.leave()
            self.recorder = None

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def named(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return named


class EnforceUnique:
    """Raises when it sees a key a second time."""

    def __init__(self) -> None:
        self.seen: set = set()

    def see(self, *key: Any) -> None:
        """Note a key."""
        if key in self.seen:
            raise RuntimeError("duplicate key: " + str(key))
        self.seen.add(key)


class KinetoStepTracker:
    """Counts profiling steps of several requesters; the step is the highest of their counts."""

    _current_step = 0
    _step_dict: dict[str, int] = {}

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        """Let a requester begin at the current step."""
        cls._step_dict[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        """Forget a requester; False if it was unknown."""
        return cls._step_dict.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """One more step of a requester; returns the current step."""
        cls._step_dict[requester] = cls._step_dict.get(requester, cls._current_step) + 1
        cls._current_step = max(cls._current_step, *cls._step_dict.values())
        return cls._current_step

    @classmethod
    def current_step(cls) -> int:
        """The current step."""
        return cls._current_step


def kineto_available() -> bool:
    """Whether PyTorch's tracing library is there; it is not needed."""
    return False


def _supported_activities() -> set[ProfilerActivity]:
    return {ProfilerActivity.CPU}


def _profiler_enabled() -> bool:
    return thread_state().profiler is not None


def _enable_record_function(enable: bool) -> None:
    """Let `record_function` blocks appear in profiles, or not."""
    record_function.enabled = enable


def _record_function_with_args_enter(name: str, *args: Any) -> record_function:
    return record_function(name, ", ".join(str(a) for a in args) or None).__enter__()


def _record_function_with_args_exit(handle: record_function) -> None:
    handle.__exit__(None, None, None)


def __getattr__(name: str) -> Any:
    return look_up(__name__, name)
