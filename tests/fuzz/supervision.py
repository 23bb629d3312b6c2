"""Runs programs in a process of their own, so that a crash of either library is one more finding."""

from __future__ import annotations

import multiprocessing
import sys

from fuzz.report import Report

CHUNK = 5.0  # seconds of work after which a process tells what it has found


def supervise(report: Report, seconds: float, first: int = 0) -> None:
    """Run programs for some time; one that kills its process is reported and passed over."""
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    at = context.Value("q", first)
    while report.seconds < seconds:
        receiver, sender = context.Pipe(duplex=False)
        known = set(report.found)
        left = min(CHUNK, seconds - report.seconds)
        worker = context.Process(target=_work, args=(report.seed, left, at, known, sender))
        worker.start()
        sender.close()
        try:
            report.merge(receiver.recv())
        except EOFError:
            worker.join()
            report.crashed(at.value, worker.exitcode)
            at.value += 1
        worker.join()


def _work(seed: int, seconds: float, at, known: set, sender) -> None:
    report = Report(seed)
    report.found.update(dict.fromkeys(known, ""))
    while report.seconds < seconds:
        report.add(at.value)
        at.value += 1
    for key in known:
        del report.found[key]
    sender.send(report)
    sender.close()
