"""The profiler: events, averages, tables and traces, as PyTorch's where both have them."""

import json
import threading
from pathlib import Path

import pytest


@pytest.fixture
def profiler(lib):
    return lib.autograd.profiler


def step(lib, x):
    return (x @ x).relu().sum()


def names(prof):
    return [event.name for event in prof.function_events]


def test_operators_become_events(lib, profiler):
    x = lib.ones(3, 3)
    with profiler.profile() as prof:
        step(lib, x)
    found = names(prof)
    assert [n for n in found if n in ("aten::mm", "aten::relu", "aten::sum")] == [
        "aten::mm", "aten::relu", "aten::sum",
    ]  # fmt: skip


def test_nothing_outside_is_measured(lib, profiler):
    x = lib.ones(3)
    with profiler.profile() as prof:
        x.exp()
    x.sin()
    assert "aten::exp" in names(prof) and "aten::sin" not in names(prof)


def test_backward_nodes_become_events(lib, profiler):
    x = lib.ones(3, 3, requires_grad=True)
    with profiler.profile() as prof:
        step(lib, x).backward()
    found = names(prof)
    for node in ("MmBackward0", "ReluBackward0", "SumBackward0"):
        assert f"autograd::engine::evaluate_function: {node}" in found


def test_forward_and_backward_share_the_sequence_number(lib, profiler):
    x = lib.ones(3, 3, requires_grad=True)
    with profiler.profile() as prof:
        step(lib, x).backward()
    by_name = {}
    for event in prof.function_events:
        by_name.setdefault(event.name, event)
    for operator, node in (("mm", "MmBackward0"), ("relu", "ReluBackward0")):
        forward = by_name["aten::" + operator]
        backward = by_name["autograd::engine::evaluate_function: " + node]
        assert forward.sequence_nr == backward.sequence_nr >= 0


def test_record_function_is_the_parent_of_what_runs_inside(lib, profiler):
    with profiler.profile() as prof:
        with profiler.record_function("mine"):
            lib.ones(3).exp()
        lib.ones(3).sin()
    events = {e.name: e for e in prof.function_events}
    assert events["aten::exp"].cpu_parent is events["mine"]
    assert events["aten::sin"].cpu_parent is None
    assert events["mine"].cpu_time_total >= events["aten::exp"].cpu_time_total


def test_record_function_as_a_decorator(lib, profiler):
    @profiler.record_function("double")
    def double(x):
        return x * 2

    with profiler.profile() as prof:
        double(lib.ones(2))
        double(lib.ones(2))
    assert names(prof).count("double") == 2


def test_record_function_outside_does_nothing(lib, profiler):
    with profiler.record_function("alone"):
        assert lib.ones(2).sum().item() == 2


def test_record_function_ends_after_an_exception(lib, profiler):
    with profiler.profile() as prof:
        with pytest.raises(ValueError), profiler.record_function("failing"):
            raise ValueError
        lib.ones(3).exp()
    events = {e.name: e for e in prof.function_events}
    assert events["aten::exp"].cpu_parent is None


def test_shapes(lib, profiler):
    with profiler.profile(record_shapes=True) as prof:
        lib.ones(2, 3) @ lib.ones(3, 4)
    (event,) = [e for e in prof.function_events if e.name == "aten::mm"]
    assert event.input_shapes[:2] == [[2, 3], [3, 4]]


def test_averages_count_calls(lib, profiler):
    x = lib.ones(3)
    with profiler.profile() as prof:
        for _ in range(5):
            x.exp()
        x.sin()
    averages = {a.key: a for a in prof.key_averages()}
    assert averages["aten::exp"].count == 5 and averages["aten::sin"].count == 1
    total = sum(e.cpu_time_total for e in prof.function_events if e.name == "aten::exp")
    assert averages["aten::exp"].cpu_time_total == pytest.approx(total)
    assert averages["aten::exp"].cpu_time == pytest.approx(total / 5)


def test_averages_by_shape(lib, profiler):
    with profiler.profile(record_shapes=True) as prof:
        lib.ones(2).exp()
        lib.ones(3).exp()
        lib.ones(3).exp()
    counts = {
        str(a.input_shapes): a.count
        for a in prof.key_averages(group_by_input_shape=True)
        if a.key == "aten::exp"
    }
    assert sorted(counts.values()) == [1, 2]


def test_memory_of_results(lib, profiler):
    x = lib.ones(1000)
    with profiler.profile(profile_memory=True) as prof:
        x.exp()
    (event,) = [e for e in prof.function_events if e.name == "aten::exp"]
    assert event.cpu_memory_usage == 4000


def test_table_has_the_sorted_rows(lib, profiler):
    x = lib.ones(3, 3)
    with profiler.profile() as prof:
        for _ in range(3):
            step(lib, x)
    text = prof.key_averages().table(sort_by="count", row_limit=2)
    assert "Self CPU" in text and "# of Calls" in text and "Self CPU time total" in text
    rows = [line for line in text.splitlines() if "aten::" in line]
    assert len(rows) == 2


def test_self_time_adds_up(lib, profiler):
    with profiler.profile() as prof:
        with profiler.record_function("outer"):
            lib.ones(3).exp().sum()
    events = {e.name: e for e in prof.function_events}
    outer = events["outer"]
    inside = sum(child.cpu_time_total for child in outer.cpu_children)
    assert outer.self_cpu_time_total == pytest.approx(outer.cpu_time_total - inside)
    assert all(e.self_cpu_time_total >= 0 for e in prof.function_events)


def test_trace_is_consistent(lib, profiler, tmp_path):
    x = lib.ones(8, 8, requires_grad=True)
    with profiler.profile(record_shapes=True) as prof:
        with profiler.record_function("training step"):
            step(lib, x).backward()
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    records = json.loads(path.read_text())["traceEvents"]
    spans = [r for r in records if r["ph"] == "X" and r.get("cat") in ("cpu_op", "user_annotation")]
    assert {"training step", "aten::mm"} <= {r["name"] for r in spans}
    assert all(r["dur"] >= 0 for r in spans)
    (outer,) = [r for r in spans if r["name"] == "training step"]
    for r in spans:
        assert outer["ts"] <= r["ts"] + 1e-3
        assert r["ts"] + r["dur"] <= outer["ts"] + outer["dur"] + 1
    starts = {r["id"] for r in records if r["ph"] == "s"}
    ends = {r["id"] for r in records if r["ph"] == "f"}
    assert starts == ends and len(starts) == 3


def test_disabled_profile_is_nothing(lib, profiler):
    with profiler.profile(enabled=False) as prof:
        lib.ones(2).exp()
    assert prof is None or not prof.enabled


def test_not_reentrant(lib, profiler):
    prof = profiler.profile()
    with prof:
        with pytest.raises(RuntimeError, match="not reentrant"):
            prof.__enter__()


def test_profile_is_left_after_an_exception(lib, profiler):
    with pytest.raises(ValueError), profiler.profile() as prof:
        lib.ones(2).exp()
        raise ValueError
    lib.ones(2).sin()
    assert "aten::exp" in names(prof) and "aten::sin" not in names(prof)


def test_total_average(lib, profiler):
    with profiler.profile() as prof:
        lib.ones(2).exp().sin()
    total = prof.total_average()
    assert total.count == len(prof.function_events)


def test_step_tracker(lib, profiler):
    tracker = profiler.KinetoStepTracker
    tracker.init_step_count("a test")
    before = tracker.current_step()
    assert tracker.increment_step("a test") == before + 1
    assert tracker.erase_step_count("a test")
    assert not tracker.erase_step_count("a test")


def test_enforce_unique(lib, profiler):
    unique = profiler.EnforceUnique()
    unique.see(1, 2)
    with pytest.raises(RuntimeError, match="duplicate key"):
        unique.see(1, 2)


# What is our own -------------------------------------------------------------------------------


def test_unrecorded_operators_have_no_sequence_number():
    import wengert as lib

    with lib.autograd.profiler.profile() as prof:
        lib.ones(3).exp()
    assert [e.sequence_nr for e in prof.function_events if e.name == "aten::exp"] == [-1]


def test_threads_do_not_mix():
    import wengert as lib

    profiler = lib.autograd.profiler
    started, finish = threading.Event(), threading.Event()

    def other():
        started.wait()
        lib.ones(2).sin()
        finish.set()

    thread = threading.Thread(target=other)
    thread.start()
    with profiler.profile() as prof:
        lib.ones(2).exp()
        started.set()
        finish.wait()
    thread.join()
    assert names(prof) == ["aten::exp"]


def test_events_inside_transforms_and_of_double_backward():
    import wengert as lib

    x = lib.ones(2, requires_grad=True)
    with lib.autograd.profiler.profile() as prof:
        (g,) = lib.autograd.grad((x**3).sum(), x, create_graph=True)
        g.sum().backward()
    found = names(prof)
    assert found.count("autograd::engine::evaluate_function: PowBackward0") >= 2
    assert all(e.time_range.end >= e.time_range.start for e in prof.function_events)


def test_unsupported_settings_say_so():
    import wengert as lib

    with pytest.raises(RuntimeError, match="use_cuda is not supported"):
        lib.autograd.profiler.profile(use_cuda=True)
    with pytest.raises(NotImplementedError, match="out of scope"):
        lib.autograd.profiler.emit_nvtx()


def test_stacks_and_flops(tmp_path):
    import wengert as lib

    with lib.autograd.profiler.profile(with_stack=True, with_flops=True) as prof:
        lib.ones(2, 3) @ lib.ones(3, 4)
    (event,) = [e for e in prof.function_events if e.name == "aten::mm"]
    assert event.flops == 2 * 2 * 3 * 4
    assert any("test_stacks_and_flops" in frame for frame in event.stack)
    prof.export_stacks(str(tmp_path / "stacks"))
    assert "test_stacks_and_flops" in (tmp_path / "stacks").read_text()


def test_stacks_of_a_program_in_a_folder_of_the_same_name(tmp_path):
    import wengert as lib

    program = tmp_path / "wengert" / "wengert" / "program.py"
    program.parent.mkdir(parents=True)
    program.write_text("def layer(x):\n    return x.exp()\n")
    names: dict = {}
    exec(compile(program.read_text(), str(program), "exec"), names)
    with lib.autograd.profiler.profile(with_stack=True) as prof:
        names["layer"](lib.ones(2))
    (event,) = prof.function_events
    assert event.stack[0] == f"{program}(2): layer"
    assert not any(frame.startswith(str(Path(lib.__file__).parent)) for frame in event.stack)


def test_node_is_an_event_within_that_of_the_engine(lib):
    x = lib.ones(2, requires_grad=True)
    with lib.autograd.profiler.profile() as prof:
        (x * x).sum().backward()
    events = prof.function_events
    (node,) = (event for event in events if event.name == "MulBackward0")
    (forward,) = (
        event for event in events if event.name == "aten::mul" and event.sequence_nr >= 0
    )
    assert node.cpu_parent.name == "autograd::engine::evaluate_function: MulBackward0"
    assert node.sequence_nr == node.cpu_parent.sequence_nr == forward.sequence_nr


def test_profile_is_not_used_twice(lib):
    prof = lib.autograd.profiler.profile()
    with prof:
        lib.ones(2).exp()
    with pytest.raises(RuntimeError, match="not reentrant"), prof:
        pass
    assert "aten::exp" in [event.key for event in prof.key_averages()]


def test_sums_of_events_say_what_kind_they_are(lib):
    with lib.autograd.profiler.profile() as prof:
        lib.ones(2).exp()
    (event,) = (event for event in prof.key_averages() if event.key == "aten::exp")
    assert event.device_type == lib.autograd.DeviceType.CPU
    assert not (event.is_async or event.is_remote or event.is_legacy)
    assert event.device_memory_usage == 0
