"""``python -m`` this, ``SECONDS serve ...``: the program where it is later already."""

from __future__ import annotations

import runpy
import sys
import time
from collections.abc import Callable


def clock_ahead(clock: Callable[[], float], seconds: float) -> Callable[[], float]:
    return lambda: clock() + seconds


def main() -> None:
    # Set before anything of the program is imported, which may keep a reference.
    time.time = clock_ahead(time.time, float(sys.argv.pop(1)))
    runpy.run_module("proxy", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
