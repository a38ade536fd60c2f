"""How much work a call is, in lines of our code that it runs: the same on every machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps(work: Callable[[], object], under: str = "/proxy/") -> int:
    """Lines run in modules whose path contains ``under``."""
    count = 0

    def line(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return line

    def called(frame: FrameType, event: str, argument: object) -> Any:
        return line if under in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(called)
    try:
        work()
    finally:
        sys.settrace(before)
    return count
