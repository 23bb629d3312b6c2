"""What ran in a region's forward and in its recomputation, to explain a difference."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...core.frames import frames
from ...core.tensor import Tensor
from ...dispatch.modes import TorchDispatchMode


class CallLog:
    """The operator calls of the two runs."""

    def __init__(self) -> None:
        self.calls: dict[str, list[str]] = {"forward": [], "recomputation": []}

    @contextmanager
    def listening(self, part: str) -> Iterator[None]:
        """Note the calls of one run."""
        self.calls[part] = []
        with _Listener(self.calls[part]):
            yield

    def comparison(self) -> str:
        """Both runs, and where they part."""
        forward, again = self.calls["forward"], self.calls["recomputation"]
        text = ["Operators of the original forward:", *_numbered(forward)]
        text += ["Operators of the recomputation:", *_numbered(again)]
        for i, (old, new) in enumerate(zip(forward, again, strict=False)):
            if old != new:
                text.append(f"The first difference is operator {i + 1}: {old} became {new}")
                break
        return "\n".join(text)


def _numbered(calls: list[str]) -> list[str]:
    return [f"  {i + 1}. {call}" for i, call in enumerate(calls)]


class _Listener(TorchDispatchMode):
    def __init__(self, calls: list[str]) -> None:
        self.calls = calls

    def __torch_dispatch__(
        self, func: Any, types: tuple, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        code = frames.caller()
        shapes = ", ".join(_text(a) for a in args)
        where = "" if code is None else f" in {code.co_name} ({code.co_filename})"
        self.calls.append(f"{func.name()}({shapes}){where}")
        return func(*args, **(kwargs or {}))


def _text(value: Any) -> str:
    return f"{value.dtype}{list(value.shape)}" if isinstance(value, Tensor) else repr(value)
