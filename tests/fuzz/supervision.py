"""Runs programs in a process of their own, so that a crash is one more finding."""

from __future__ import annotations

import gc
import math
import multiprocessing
import signal
import warnings
from typing import Any

from fuzz import checking, judging, runner
from fuzz.report import LEAVE, Report

CHUNK = 5.0  # seconds of work after which the process tells what it has found
LIMIT = 100.0  # seconds of the processor after which one program is given up


def supervise(
    report: Report, seconds: float, first: int = 0, last: float = math.inf
) -> None:
    """Run programs for some time, or up to the one numbered `last`.

    One that kills its process is reported and passed over.
    """
    # A fresh process: PyTorch refuses gradients in the fork of one that has computed some.
    context = multiprocessing.get_context("spawn")
    at, runner.on_pytorch = context.Value("q", first), context.Value("b", 0)
    while report.seconds < seconds and at.value <= last:
        receiver, sender = context.Pipe(duplex=False)
        left = seconds - report.seconds
        known = set(report.found)
        worker = context.Process(
            target=_work,
            args=(report.seed, left, last, at, runner.on_pytorch, known, _settings(), sender),
        )
        worker.start()
        sender.close()
        try:
            while (part := receiver.recv()) is not None:
                report.merge(part)
        except EOFError:
            worker.join()
            report.crashed(at.value, worker.exitcode, bool(runner.on_pytorch.value))
            at.value += 1
        worker.join()


def heed_warnings() -> None:
    """Let nothing be heard but NumPy's warnings of infinities, which no operator may give."""
    warnings.simplefilter("ignore")  # pytest would make errors of some
    warnings.filterwarnings("error", ".* encountered in", RuntimeWarning)


def _settings() -> tuple:
    """What a fresh process has to be told: the flavour, what to leave out and what to ignore."""
    return list(checking.ONLY), list(LEAVE), set(judging.IGNORED)


def _limit_program() -> None:
    """Let this process end if the next program does not: PyTorch may loop over sizes it made up."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, LIMIT)


def _work(
    seed: int, seconds: float, last: float, at: Any, flag: Any, known: set, settings: tuple,
    sender: Any,
) -> None:  # fmt: skip
    runner.on_pytorch = flag
    checking.ONLY[:], LEAVE[:] = settings[:2]
    judging.IGNORED.update(settings[2])
    heed_warnings()
    gc.freeze()  # the modules of two libraries are not looked through again and again
    while seconds > 0 and at.value <= last:
        part = Report(seed)
        part.known = known
        while part.seconds < min(CHUNK, seconds) and at.value <= last:
            _limit_program()
            part.add(at.value)
            at.value += 1
        seconds -= part.seconds
        known |= set(part.found)
        sender.send(part)
    sender.send(None)
    sender.close()
