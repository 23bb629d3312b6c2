"""Worker processes of loaders: order, seeds, errors, death, time limits and another pass."""

import os
import random
import signal
import time

import numpy as np
import pytest

import wengert
from wengert.utils import data as ours


def in_both(run, seed=3):
    """The result of `run(lib, data)` with both libraries, which has to be the same."""
    torch = pytest.importorskip("torch")
    import torch.utils.data as theirs

    results = []
    for library, module in ((wengert, ours), (torch, theirs)):
        library.manual_seed(seed)
        results.append((run(library, module), library.get_rng_state().tolist()))
    assert results[0] == results[1]
    return results[0][0]


def lists(loader):
    return [batch.tolist() for batch in loader]


@pytest.mark.parametrize(
    "options", ["batch_size=3", "batch_size=3, shuffle=True", "batch_size=None, shuffle=True"]
)
def test_order(options):
    def run(lib, data):
        loader = eval(f"data.DataLoader(lib.arange(11), num_workers=2, {options})", {**locals()})
        return [lists(loader), lists(loader), len(loader)]

    in_both(run)


def test_seeds_of_workers():
    def run(lib, data):
        class Noise(data.Dataset):
            def __getitem__(self, index):
                info = data.get_worker_info()
                assert info.num_workers == 2 and len(info.dataset) == 6
                drawn = lib.rand(1).item(), random.random(), np.random.rand()
                return lib.tensor([info.id, index, info.seed % 1000, *drawn], dtype=lib.float64)

            def __len__(self):
                return 6

        return lists(data.DataLoader(Noise(), batch_size=2, num_workers=2))

    np.random.rand()
    batches = in_both(run)
    assert [batch[0][0] for batch in batches] == [0, 1, 0]
    assert batches[0][0][2:] != batches[1][0][2:]


def test_rows_are_taken_in_turn():
    def run(lib, data):
        class Row(data.IterableDataset):
            def __iter__(self):
                info = data.get_worker_info()
                return iter(range(info.id * 100, info.id * 100 + 3 + 4 * info.id))

        loader = data.DataLoader(Row(), batch_size=2, num_workers=2)
        kept = data.DataLoader(Row(), batch_size=2, num_workers=2, persistent_workers=True)
        return [lists(loader), lists(kept), lists(kept)]

    first, kept, again = in_both(run)
    assert first == kept == again and sorted(sum(first, []))[:3] == [0, 1, 2]


def test_persistent_workers():
    def run(lib, data):
        class Numbers(data.Dataset):
            def __getitem__(self, index):
                return lib.tensor([index, lib.randint(1000, ()).item()])

            def __len__(self):
                return 5

        loader = data.DataLoader(
            Numbers(), batch_size=2, shuffle=True, num_workers=2, persistent_workers=True
        )
        return [lists(loader), lists(loader), lists(loader)]

    first, second, _ = in_both(run)
    assert first != second


def test_processes_live_as_long_as_they_should():
    class Where(ours.Dataset):
        def __getitem__(self, index):
            return os.getpid()

        def __len__(self):
            return 4

    loader = ours.DataLoader(Where(), num_workers=2, persistent_workers=True)
    first, second = [{p.item() for p in loader} for _ in range(2)]
    assert first == second and len(first) == 2 and os.getpid() not in first
    pool = loader._iterator.pool
    assert all(member.process.is_alive() for member in pool.members)
    pool.close()
    assert not any(member.process.is_alive() for member in pool.members)
    with pytest.raises(RuntimeError, match="have ended"):
        iter(loader)
    once = iter(ours.DataLoader(Where(), num_workers=1, prefetch_factor=1))
    members = once.pool.members
    assert next(once).item() == members[0].process.pid
    del once  # in the middle of a pass
    assert not members[0].process.is_alive()


class Broken:
    """A dataset of three whose last example is broken in the given way."""

    def __init__(self, way):
        self.way = way

    def __len__(self):
        return 3

    def __getitem__(self, index):
        return self.way() if index == 2 else index


def fail(error):
    raise error


class Odd(Exception):
    def __init__(self, one, two):
        super().__init__(one, two)


@pytest.mark.parametrize(
    "error, kind, phrase",
    [
        (ValueError("bad example"), ValueError, "Caught ValueError in DataLoader worker process 0"),
        (KeyError("key"), KeyError, "Caught KeyError in DataLoader worker process 0"),
        (Odd(1, 2), RuntimeError, "Caught Odd in DataLoader worker process 0"),
    ],
)
def test_errors_are_raised_in_the_loader(error, kind, phrase):
    loader = ours.DataLoader(Broken(lambda: fail(error)), num_workers=1)
    batches = iter(loader)
    assert [next(batches).item(), next(batches).item()] == [0, 1]
    with pytest.raises(kind, match=phrase) as caught:
        next(batches)
    assert "Original Traceback" in str(caught.value) and "in fail" in str(caught.value)
    with pytest.raises(StopIteration):
        next(batches)


def test_what_cannot_be_pickled_is_an_error():
    loader = ours.DataLoader(
        Broken(lambda: (lambda: 0)), num_workers=1, collate_fn=lambda examples: examples
    )
    with pytest.raises(Exception, match="in DataLoader worker process 0") as caught:
        list(loader)
    assert "pickle" in str(caught.value)


def test_errors_at_the_start():
    with pytest.raises(ZeroDivisionError, match="in DataLoader worker process 0"):
        list(ours.DataLoader([1, 2], num_workers=1, worker_init_fn=lambda worker: worker // 0))
    seen = ours.DataLoader([1, 2], num_workers=1, worker_init_fn=lambda worker: os.nice(worker))
    assert lists(seen) == [[1], [2]]


def test_death_is_raised_in_the_loader():
    killed = ours.DataLoader(Broken(lambda: os.kill(os.getpid(), signal.SIGKILL)), num_workers=1)
    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid.* \(signal 9\)\) exited unex"):
        list(killed)
    ended = ours.DataLoader(Broken(lambda: os._exit(3)), num_workers=2)
    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid.* \(3\)\) exited unex"):
        list(ended)


def test_time_limit():
    loader = ours.DataLoader(Broken(lambda: time.sleep(30)), num_workers=1, timeout=0.3)
    batches = iter(loader)
    began = time.monotonic()
    with pytest.raises(RuntimeError, match="DataLoader timed out after 0.3 seconds"):
        list(batches)
    assert time.monotonic() - began < 5
    os.kill(batches.pool.members[0].process.pid, signal.SIGKILL)
    with pytest.raises(AssertionError, match="timeout needs worker processes"):
        iter(ours.DataLoader([1], timeout=1))


def test_info_cannot_be_changed():
    def change(worker):
        info = ours.get_worker_info()
        assert "id=0, num_workers=1" in repr(info)
        info.id = 3

    with pytest.raises(RuntimeError, match="Cannot assign attributes to WorkerInfo objects"):
        list(ours.DataLoader([1], num_workers=1, worker_init_fn=change))


def test_results_as_they_come():
    class Late(ours.Dataset):
        def __getitem__(self, index):
            time.sleep(0.5 if index == 0 else 0)
            return index

        def __len__(self):
            return 4

    found = lists(ours.DataLoader(Late(), num_workers=2, in_order=False))
    assert sorted(found) == [[0], [1], [2], [3]] and found[0] != [0]


def test_started_as_new_interpreters():
    made = ours.TensorDataset(wengert.arange(4), wengert.arange(4) * 2)
    loader = ours.DataLoader(made, 2, num_workers=1, multiprocessing_context="spawn")
    assert [[a.tolist(), b.tolist()] for a, b in loader] == [[[0, 1], [0, 2]], [[2, 3], [4, 6]]]


def test_too_many_workers_are_warned_of():
    with pytest.warns(UserWarning, match="suggested max number of worker"):
        ours.DataLoader([1], num_workers=1000)


def test_large_batches_left_behind():
    """Workers end although nobody reads what they have sent."""
    loader = ours.DataLoader(wengert.ones(8, 200_000), num_workers=1, prefetch_factor=4)
    batches = iter(loader)
    assert next(batches).shape == (1, 200_000)
    members = batches.pool.members
    began = time.monotonic()
    del batches
    assert not members[0].process.is_alive() and time.monotonic() - began < 4
