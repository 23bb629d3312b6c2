"""The threads that native code of one process shares, and how many of them may work.

`pool.py` beside this file is the interface without C.
"""
from libc.stdint cimport int64_t

from .processors import usable_processors

cdef extern from "pool.h":
    void wengert_split(work_t work, void* data, int64_t parts, int threads) noexcept nogil


cdef int allowed = usable_processors()


cdef void split(work_t work, void* data, int64_t parts) noexcept nogil:
    """Call `work(data, part)` for all parts, on the threads that are allowed."""
    wengert_split(work, data, parts, allowed)


cdef int threads_allowed() noexcept nogil:
    """How many threads native code may use."""
    return allowed


def thread_count():
    """How many threads native code may use."""
    return allowed


def set_thread_count(int count):
    """Let native code use so many threads."""
    global allowed
    allowed = count
