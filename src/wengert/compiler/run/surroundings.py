"""What a function reads from outside while it runs, and whether it is still the same later.

While a function is traced, the Python functions that it calls are noted. The names in their code
tell what they can have read: closures, globals, attributes of objects, modules and classes, and the
contents of containers found there; also what was not there, since it may be later. Tensors must be
the same objects, numbers and strings equal. What this package keeps for itself is not looked at.

An object whose state is out of Python's sight cannot be watched: a compilation that has met one
serves a single call.
"""

from __future__ import annotations

import gc
import linecache
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any

from ...core.tensor import Tensor
from ..trace.refusals import TraceError
from .checks import Additions, Cell, Contents, Each, Elements, Fields, Tensors, all_hold
from .places import Change
from .purity import LIBRARIES, STANDARD, reaches_outside, shown
from .reads import names_read
from .walk import Walk
from .watching import unwatch, watch

#: What these keep is bookkeeping: caches that do not change results.
_BOOKKEEPING = frozenset((
    "abc", "importlib", "linecache", "re", "tokenize", "traceback", "typing", "warnings",
))  # fmt: skip


def _owner(frame: Any) -> str:
    """The package whose code a frame runs."""
    name = frame.f_globals.get("__name__")
    if not isinstance(name, str):
        return ""
    return "collections" if name.startswith("namedtuple_") else name.partition(".")[0]


def _is_ours(frame: Any) -> bool:
    """Whether a frame runs code of which nothing has to be known, whoever calls it."""
    owner = _owner(frame)
    return owner in LIBRARIES or owner in _BOOKKEEPING


class Surroundings:
    """Notes what a function reads; `changed` compares it with what is there now."""

    def __init__(self) -> None:
        self.checks: list[Additions | Cell | Contents | Each | Elements | Fields | Tensors] = []
        #: Something that cannot be watched.
        self.unwatchable: str | None = None
        #: A call that no graph would do again; it was not made.
        self.refusal: TraceError | None = None
        self.attributes_of: Callable[[Tensor], tuple] = lambda t: ()
        self._hold: Callable[[], bool] = lambda: False
        self._tensors: set[int] = set()  # by identity; the checks hold them
        # Code that has run with its globals, by identity: equal code may have others.
        self._ran: dict[tuple[int, int], tuple[CodeType, dict[str, Any]]] | None = {}
        self._start: Any = None  # the frame from which on it is watched

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Note the functions that are called, unless another profiler does so."""
        if sys.getprofile() is not None:
            self._ran = None
            yield
            return
        self._start = sys._getframe()
        watch(self._event, _is_ours, reaches_outside)
        collecting = gc.isenabled()
        gc.disable()  # what it calls is not called by the function
        try:
            yield
        finally:
            unwatch()
            self._start = None
            if collecting:
                gc.enable()

    def _event(self, frame: Any, event: str, argument: Any) -> None:
        if event == "call" and self._ran is not None:
            code, variables = frame.f_code, frame.f_globals
            key = (id(code), id(variables))
            if key not in self._ran and self._is_users(frame):
                self._ran[key] = (code, variables)
        elif event == "c_call" and reaches_outside(argument) and self._is_users(frame):
            self.refusal = TraceError(
                f"{shown(argument)}() does more than to compute a result from its arguments, which "
                "a graph would not do again: call it outside of the function, and pass what it "
                f"returns as an argument.\n  {self._users_line(frame)}"
            )
            raise self.refusal

    def _users_line(self, frame: Any) -> str:
        """The line of the program on whose behalf a frame runs."""
        while _owner(frame) in STANDARD and frame.f_back not in (None, self._start):
            frame = frame.f_back
        name, line = frame.f_code.co_filename, frame.f_lineno
        return f"{name}:{line}: {linecache.getline(name, line).strip()}"

    @property
    def code(self) -> list[CodeType]:
        """The code of the functions that have been called, where that was watched."""
        return [code for code, _ in (self._ran or {}).values()]

    def _is_users(self, frame: Any) -> bool:
        """Whether a frame is the user's, or the standard library's on behalf of the user.

        An import happens once and may call anybody's hooks, so what it runs is not.
        """
        if _is_ours(frame):
            return False
        owner = _owner(frame)
        caller = frame.f_back
        while owner in STANDARD and caller is not None and caller is not self._start:
            owner = _owner(caller)
            caller = caller.f_back
        return owner not in LIBRARIES and not self._importing(frame)

    def _importing(self, frame: Any) -> bool:
        while frame is not None and frame is not self._start:
            if frame.f_globals.get("__name__") == "importlib._bootstrap":
                return True
            frame = frame.f_back
        return False

    def note(
        self, function: Callable, arguments: list[Any], skipped: frozenset[tuple] = frozenset()
    ) -> None:
        """Look at all that the function, called with such objects, can have read, but for what is
        looked up anew in each call."""
        names: set[str] = set()
        by_any_name = self._ran is None
        ran = None if self._ran is None else list(self._ran.values())
        for code, _ in ran or ():
            read, computed = names_read(code)
            names |= read
            by_any_name = by_any_name or computed
        walk = Walk(names, by_any_name, ran, skipped)
        self.unwatchable = walk.run(function, arguments)
        self.checks = walk.checks
        self.attributes_of = walk.attributes_of
        self._tensors = {id(t) for t in walk.tensors.objects}
        if self.unwatchable is None:
            self._hold = all_hold(self.checks)

    def watches(self, t: Tensor) -> bool:
        """Whether the kind of a tensor is looked at."""
        return id(t) in self._tensors

    def holds(self) -> bool:
        """Whether nothing has changed, told quickly; False where in doubt."""
        try:
            return self._hold()
        except Exception:  # something is gone
            return False

    def changes(self) -> Iterator[Change]:
        """What is not as it was, as far as that can be told."""
        for check in self.checks:
            try:
                if check.changed() is not None:
                    yield from check.changes()
            except Exception:  # something is gone
                continue

    def changed(self) -> str | None:
        """The name of something that is not what it was, None if all is."""
        if self.holds():
            return None
        for check in self.checks:
            try:
                found = check.changed()
            except Exception as error:
                return f"something that cannot be read any more ({error!r})"
            if found is not None:
                return found
        return None
