"""What a profile consists of: events, their averages, the table and the trace file."""

from __future__ import annotations

import enum
import json
import os
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

__all__ = [
    "EventList", "FormattedTimesMixin", "FunctionEvent", "FunctionEventAvg", "Interval", "Kernel",
    "MemRecordsAcc", "StringTable",
]  # fmt: skip

USER_SCOPE = 7
BACKWARD_SCOPE = 1


class DeviceType(enum.Enum):
    """The kinds of devices that events can be of; here always the CPU."""

    CPU = 0
    CUDA = 1
    MKLDNN = 2
    OPENGL = 3
    OPENCL = 4
    IDEEP = 5
    HIP = 6
    FPGA = 7
    MAIA = 8
    XLA = 9
    Vulkan = 10
    Metal = 11
    XPU = 12
    MPS = 13
    Meta = 14
    HPU = 15
    VE = 16
    Lazy = 17
    IPU = 18
    MTIA = 19
    PrivateUse1 = 20


class Interval:
    """A span of time in microseconds."""

    def __init__(self, start: float, end: float) -> None:
        self.start = start
        self.end = end

    def elapsed_us(self) -> float:
        return self.end - self.start


class Kernel(NamedTuple):
    """A kernel that a device ran for an event."""

    name: str
    device: int
    duration: float


class StringTable(defaultdict):
    """A dictionary in which an unknown key stands for itself."""

    def __missing__(self, key: Any) -> Any:
        self[key] = key
        return key


class MemRecordsAcc:
    """Memory records in the order of their start, to be asked for those of an interval."""

    def __init__(self, mem_records: Iterable[Any]) -> None:
        self._records = sorted(mem_records, key=lambda record: record[0].start_ns())

    def in_interval(self, start_ns: int, end_ns: int) -> Iterable[Any]:
        """The records that started between two moments."""
        for record in self._records:
            if start_ns <= record[0].start_ns() <= end_ns:
                yield record


def _as_text(name: str) -> property:
    """A property: a time of an event, as text."""
    return property(lambda self: format_time(getattr(self, name)), doc=f"`{name}` as text.")


class FormattedTimesMixin:
    """The times of an event as text, and per call."""

    count: int
    cpu_time_total: float
    self_cpu_time_total: float

    @property
    def cpu_time(self) -> float:
        """Microseconds per call."""
        return 0.0 if self.count == 0 else self.cpu_time_total / self.count

    @property
    def device_time(self) -> float:
        """Microseconds on other devices: none."""
        return 0.0

    cuda_time = cuda_time_total = self_cuda_time_total = device_time
    device_time_total = self_device_time_total = device_time
    cpu_time_str = _as_text("cpu_time")
    cpu_time_total_str = _as_text("cpu_time_total")
    self_cpu_time_total_str = _as_text("self_cpu_time_total")
    device_time_str = _as_text("device_time")
    device_time_total_str = _as_text("device_time_total")
    self_device_time_total_str = _as_text("self_device_time_total")


class FunctionEvent(FormattedTimesMixin):
    """One call: an operator, a node of a backward, or a `record_function` block."""

    def __init__(
        self, id: Any, name: str, thread: int, start_us: float, end_us: float,
        overload_name: str | None = None, fwd_thread: int | None = None,
        input_shapes: Any = None, stack: Any = None, scope: int = 0,
        use_device: str | None = None, cpu_memory_usage: int = 0, device_memory_usage: int = 0,
        is_async: bool = False, is_remote: bool = False, sequence_nr: int = -1,
        node_id: int = -1, device_type: Any = DeviceType.CPU, device_index: int = 0,
        device_resource_id: int | None = None, is_legacy: bool = False,
        flops: int | None = None, trace_name: str | None = None, concrete_inputs: Any = None,
        kwinputs: Any = None, is_user_annotation: bool = False,
        is_python_function: bool = False, activity_type: Any = None, metadata_json: Any = None,
        flow_id: Any = None, flow_type: Any = None, flow_start: Any = None, external_id: int = 0,
        linked_correlation_id: int = 0, extra_meta: Any = None,
        structured_input_shapes: Any = None, structured_input_strides: Any = None,
        input_dtypes: Any = None, python_id: int = -1, python_parent_id: int = -1,
        python_module_id: int = -1,
    ) -> None:  # fmt: skip
        given = dict(locals())
        for unset in ("self", "start_us", "end_us", "input_shapes", "stack", "device_resource_id"):
            del given[unset]
        del given["metadata_json"]
        self.__dict__.update(given)
        self._metadata_json = metadata_json
        self.id = id
        self.name = name
        self.trace_name = name if trace_name is None else trace_name
        self.thread = thread
        self.time_range = Interval(start_us, end_us)
        self.scope = scope
        self.sequence_nr = sequence_nr
        self.flops = flops
        self.input_shapes: list = input_shapes or []
        self.stack: list = stack or []
        self.device_resource_id = thread if device_resource_id is None else device_resource_id
        self.cpu_memory_usage = cpu_memory_usage
        self.count = 1
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None
        self.kernels: list[Kernel] = []

    @property
    def key(self) -> str:
        """What events are summed by: the name."""
        return self.name

    @property
    def metadata_json(self) -> Any:
        """Further facts as JSON text, None if there are none."""
        return self._metadata_json

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        """Microseconds from the beginning to the end."""
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:  # type: ignore[override]
        """Microseconds spent in this and not in what ran within it."""
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        """Bytes allocated by this and not by what ran within it."""
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    @property
    def device_memory_total(self) -> int:
        """Bytes on other devices: none."""
        return 0

    self_cuda_memory_usage = self_device_memory_usage = device_memory_total

    def append_kernel(self, name: str, device: int, duration: float) -> None:
        """Note a kernel that this event has launched."""
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Note an event that ran within this one."""
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        """Note the event within which this one ran."""
        self.cpu_parent = parent

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} cpu_time={self.cpu_time_str} "
            f"cpu_start_us={self.time_range.start} cpu_end_us={self.time_range.end} "
            f"cpu_children={[child.id for child in self.cpu_children]} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} "
            f"seq_nr={self.sequence_nr}>"
        )


class FunctionEventAvg(FormattedTimesMixin):
    """The sum of several events of one key."""

    def __init__(self) -> None:
        self.key: str | None = None
        self.count = 0
        self.cpu_time_total = 0.0
        self.self_cpu_time_total = 0.0
        self.cpu_memory_usage = 0
        self.self_cpu_memory_usage = 0
        self.input_shapes: list = []
        self.stack: list = []
        self.scope: int | None = None
        self.flops = 0
        self.overload_name: str | None = None
        self.node_id = 0
        self.device_type = DeviceType.CPU
        self.is_async = self.is_remote = self.is_legacy = self.is_user_annotation = False
        self.device_memory_usage = self.self_device_memory_usage = 0
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None

    def add(self, other: Any) -> FunctionEventAvg:
        """Add an event, or another sum of events of the same key."""
        if self.key is None:
            self.key = other.key
            self.input_shapes = other.input_shapes
            self.stack = other.stack
            self.scope = other.scope
            for name in (
                "overload_name", "node_id", "device_type", "is_async", "is_remote", "is_legacy",
                "is_user_annotation",
            ):  # fmt: skip
                setattr(self, name, getattr(other, name))
            self.cpu_parent = other.cpu_parent
            self.cpu_children = other.cpu_children
        if other.key != self.key:
            raise ValueError(f"events of {self.key} and {other.key} cannot be averaged together")
        self.count += other.count
        self.cpu_time_total += other.cpu_time_total
        self.self_cpu_time_total += other.self_cpu_time_total
        self.cpu_memory_usage += other.cpu_memory_usage
        self.self_cpu_memory_usage += other.self_cpu_memory_usage
        self.flops += other.flops or 0
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} count={self.count} "
            f"self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str} "
            f"input_shapes={self.input_shapes}>"
        )


class EventList(list):
    """Events in the order of their start, with what can be made of them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._use_device = kwargs.pop("use_device", None)
        self._profile_memory = kwargs.pop("profile_memory", False)
        self._with_flops = kwargs.pop("with_flops", False)
        super().__init__(*args, **kwargs)

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds spent in this and not in what ran within it."""
        return sum(event.self_cpu_time_total for event in self)

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """One sum for each key; with `group_by_input_shapes` for each key and list of shapes."""
        sums: dict[tuple, FunctionEventAvg] = {}
        for event in self:
            key: list[Any] = [event.key]
            if group_by_overload_name:
                key.append(event.overload_name)
            if group_by_input_shapes:
                key.append(str(event.input_shapes))
            if group_by_stack_n > 0:
                key.extend(event.stack[:group_by_stack_n])
            sums.setdefault(tuple(key), FunctionEventAvg()).add(event)
        averages = EventList(
            sums.values(),
            use_device=self._use_device,
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
        )
        for average in averages:
            average.stack = average.stack[:group_by_stack_n]
            if not group_by_input_shapes:
                average.input_shapes = []
        return averages

    def total_average(self) -> FunctionEventAvg:
        """The sum of all events, under the key Total."""
        total = FunctionEventAvg()
        for event in self:
            total.key = event.key
            total.add(event)
        total.key = "Total"
        return total

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The events as a text table, the largest `sort_by` first; times in one unit if given."""
        rows = [e for e in self if not top_level_events_only or e.cpu_parent is None]
        if sort_by is not None:
            rows.sort(key=lambda event: getattr(event, sort_by), reverse=True)
        hidden = max(len(rows) - row_limit, 0) if row_limit >= 0 else 0
        rows = rows[:row_limit] if row_limit >= 0 else rows
        widths = (max_name_column_width, max_shapes_column_width, max_src_column_width)
        return _table(self, rows, widths, header, hidden, time_unit)

    def export_chrome_trace(self, path: str) -> None:
        """Write the events in the trace format that Perfetto and chrome://tracing open."""
        with open(path, "w") as file:
            json.dump(chrome_trace(self), file)

    def supported_export_stacks_metrics(self) -> list[str]:
        """What `export_stacks` can write."""
        return ["self_cpu_time_total"]

    def export_stacks(self, path: str, metric: str) -> None:
        """Write the stacks of the events with their times, in the format of flame graph tools."""
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError(
                f"metric should be one of: {self.supported_export_stacks_metrics()}, but it is "
                f"{metric!r}"
            )
        with open(path, "w") as file:
            for event in self:
                if event.stack:
                    frames = ";".join(frame.translate(_PLAIN) for frame in reversed(event.stack))
                    file.write(f"{frames} {int(getattr(event, metric))}\n")

    def __str__(self) -> str:
        return self.table()


_PLAIN = str.maketrans(" ;\t\n", "____")


def build_tree(events: Iterable[FunctionEvent]) -> None:
    """Connect every event with the one of its thread within which it ran."""
    open_events: dict[int, list[FunctionEvent]] = defaultdict(list)
    for event in events:
        stack = open_events[event.thread]
        while stack and stack[-1].time_range.end < event.time_range.end:
            stack.pop()
        if stack:
            stack[-1].append_cpu_child(event)
            event.set_cpu_parent(stack[-1])
        stack.append(event)


def chrome_trace(events: Iterable[FunctionEvent]) -> dict[str, Any]:
    """The trace as a JSON object; arrows lead from an operator to its node in the backward."""
    process = os.getpid()
    records: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": process, "tid": 0, "args": {"name": "wengert"}}
    ]
    forward: dict[int, FunctionEvent] = {}
    threads: set[int] = set()
    for event in events:
        where = {"pid": process, "tid": event.thread}
        if event.thread not in threads:
            threads.add(event.thread)
            name = {"name": f"thread {event.thread}"}
            records.append({"ph": "M", "name": "thread_name", **where, "args": name})
        args: dict[str, Any] = {"External id": event.id}
        if event.sequence_nr >= 0:
            args["Sequence number"] = event.sequence_nr
        if event.input_shapes:
            args["Input Dims"] = event.input_shapes
        if event.cpu_memory_usage:
            args["Bytes"] = event.cpu_memory_usage
        if event.stack:
            args["Call stack"] = ";".join(event.stack)
        records.append(
            {
                "ph": "X",
                "cat": "user_annotation" if event.scope == USER_SCOPE else "cpu_op",
                "name": event.name,
                **where,
                "ts": event.time_range.start,
                "dur": event.time_range.elapsed_us(),
                "args": args,
            }
        )
        if event.sequence_nr < 0:
            continue
        arrow = {"cat": "fwdbwd", "name": "fwdbwd", "id": event.sequence_nr, **where}
        if event.scope == BACKWARD_SCOPE:
            parent = event.cpu_parent
            if parent is not None and parent.sequence_nr == event.sequence_nr:
                continue  # the node itself, within the event that the arrow leads to
            source = forward.get(event.sequence_nr)
            if source is not None:
                start = {"ph": "s", "ts": source.time_range.start}
                records.append({**arrow, **start, "tid": source.thread})
                records.append({**arrow, "ph": "f", "bp": "e", "ts": event.time_range.start})
        else:
            forward[event.sequence_nr] = event
    return {"schemaVersion": 1, "displayTimeUnit": "ms", "traceEvents": records}


# The table ---------------------------------------------------------------------------------------


_UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}


def format_time(microseconds: float, unit: str | None = None) -> str:
    if unit is None:
        unit = next((name for name, size in _UNITS.items() if microseconds >= size), "us")
    elif unit not in _UNITS:
        raise ValueError(f"time_unit must be one of {list(_UNITS)}, not {unit!r}")
    return f"{microseconds / _UNITS[unit]:.3f}{unit}"


def format_memory(size: int) -> str:
    for unit, power in (("GB", 30), ("MB", 20), ("KB", 10)):
        if abs(size) >= 1 << power:
            return f"{size / (1 << power):.2f} {unit}"
    return f"{size} B"


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.2f}%" if whole else "NaN"


def _table(
    events: EventList,
    rows: list,
    widths: tuple[int, int, int],
    header: str | None,
    hidden: int,
    unit: str | None,
) -> str:
    total = sum(event.self_cpu_time_total for event in events)
    columns: list[tuple[str, Any]] = [
        ("Name", lambda e: _clipped(e.key, widths[0])),
        ("Self CPU %", lambda e: _share(e.self_cpu_time_total, total)),
        ("Self CPU", lambda e: format_time(e.self_cpu_time_total, unit)),
        ("CPU total %", lambda e: _share(e.cpu_time_total, total)),
        ("CPU total", lambda e: format_time(e.cpu_time_total, unit)),
        ("CPU time avg", lambda e: format_time(e.cpu_time, unit)),
    ]
    if events._profile_memory:
        columns.append(("CPU Mem", lambda e: format_memory(e.cpu_memory_usage)))
        columns.append(("Self CPU Mem", lambda e: format_memory(e.self_cpu_memory_usage)))
    columns.append(("# of Calls", lambda e: str(e.count)))
    if any(event.input_shapes for event in rows):
        columns.append(("Input Shapes", lambda e: _clipped(str(e.input_shapes), widths[1])))
    if any(event.stack for event in rows):
        columns.append(
            ("Source Location", lambda e: _clipped(e.stack[0], widths[2]) if e.stack else "")
        )
    if events._with_flops:
        columns.append(("Total FLOPs", lambda e: str(e.flops) if e.flops else "--"))
    cells = [[title for title, _ in columns]]
    cells += [[make(event) for _, make in columns] for event in rows]
    column_widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    line = "  ".join("-" * width for width in column_widths)
    text = [header] if header else []
    text.append(line)
    for number, row in enumerate(cells):
        text.append("  ".join(c.rjust(w) for c, w in zip(row, column_widths, strict=True)))
        if number == 0:
            text.append(line)
    text.append(line)
    if hidden:
        text.append(f"({hidden} more rows)")
    text.append(f"Self CPU time total: {format_time(total, unit)}")
    return "\n".join(text) + "\n"


def _clipped(text: str, width: int) -> str:
    return text if width < 4 or len(text) <= width else text[: width - 3] + "..."
