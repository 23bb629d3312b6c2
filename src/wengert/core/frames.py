"""Where the program is: the running thread, and the innermost frame outside this package.

`frames.pyx` beside this file is the compiled form; an extension module wins at import.
"""

from __future__ import annotations

import sys
from _thread import get_ident
from types import CodeType, FrameType

from . import PACKAGE_FOLDER

_frame_at = sys._getframe


class Frames:
    """What runs in the calling thread; one instance, `frames`."""

    def __init__(self) -> None:
        self.lasti = -1
        self.last_code: CodeType | None = None
        self.thread_ident = get_ident

    def caller(self, inside: int = 1) -> CodeType | None:
        """Code object of the innermost frame outside this package; its instruction in `lasti`.

        That many frames are known to be `inside` and are not looked at.
        """
        frame: FrameType | None
        try:
            frame = _frame_at(inside)
        except ValueError:  # an operation that C code calls, on a thread without Python frames
            frame = _frame_at(1)
        code = frame.f_code
        if code is not self.last_code:
            while code.co_filename.startswith(PACKAGE_FOLDER):
                frame = frame.f_back
                if frame is None:
                    self.lasti = -1
                    return None
                code = frame.f_code
            self.last_code = code
        self.lasti = frame.f_lasti
        return code


frames = Frames()
