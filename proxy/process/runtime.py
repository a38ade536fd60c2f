"""Tunes a serving process: thread switching, garbage collection, memory."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from proxy.process.threads import thread_pool

SWITCH_SECONDS = 0.0005
"""For how long a thread that computes may keep others waiting.  Python's own 5 ms are paid many
times over by whoever reads from SQLite while a long conversation is planned."""

YOUNG_OBJECTS = 10_000
"""Objects that may be new before the collector looks for cycles among them.  A turn makes a
thousand and leaves no cycle: Python's own 700 would have those of all turns under way looked at
several times a turn."""

YOUNG_ROUNDS, MIDDLE_ROUNDS = 2, 50
"""After more collections of the young generation than this one of the middle, and after more of
those one of all.  Python's own 10 let a hundred thousand objects of a flood of requests wait in the
middle, which took a seventh of a second; all are looked at about as often as with 10 and 10."""

SETTLED_SECONDS = 5.0
"""From the start of the process on: the stores are open by then, and what they need is loaded."""

HUGE_PAGE = 2 * 1024 * 1024
"""Bytes of a huge page."""

DENSE_SHARE = 0.9
"""Share of a region that is in memory, at least, so that huge pages take no more than it has."""

LARGE = 1024 * 1024
"""Bytes from which on memory goes back to the system as soon as it is free.  Else the C library
takes ever larger blocks for its own after the first that was, and keeps them."""

SPARE = 4 * LARGE
"""Bytes at the end of what it has for small ones that it keeps."""

_TRIM, _MAP = -1, -3
"""``M_TRIM_THRESHOLD`` and ``M_MMAP_THRESHOLD`` of glibc's mallopt(3)."""

_COLLAPSE = 25
"""``MADV_COLLAPSE``, of Linux 6.1."""

_ALLOWED = Path("/sys/kernel/mm/transparent_hugepage/enabled")
_REGIONS = Path("/proc/self/smaps")

_REGION = re.compile(
    r"^(?P<start>[0-9a-f]+)-(?P<end>[0-9a-f]+) rw-p \S+ \S+ 0 *(?:\[heap\])?\n"
    r"(?:(?![0-9a-f]+-).*\n)*?Rss: +(?P<resident>\d+) kB$",
    re.MULTILINE,
)


class Region(NamedTuple):
    """Addresses from ``start`` to before ``end``; ``resident`` bytes of them are in memory."""

    start: int
    end: int
    resident: int


def prepare_threads() -> None:
    """Shorten the time that a thread waits for another one that computes."""
    sys.setswitchinterval(SWITCH_SECONDS)


def use_quiet_threads() -> None:
    """Give the running loop's own pool threads that do not interrupt it."""
    asyncio.get_running_loop().set_default_executor(thread_pool(None, "asyncio"))


def return_large_memory() -> None:
    """Make glibc return large blocks to the system as soon as they are free: else a process keeps
    the memory of its largest requests."""
    if sys.platform == "linux":
        with suppress(AttributeError):
            adjust = ctypes.CDLL(None).mallopt
            adjust(_MAP, LARGE)
            adjust(_TRIM, SPARE)


@contextmanager
def keep_uncollected() -> Iterator[None]:
    """Exclude what is created in the block from garbage collection for ever: it lives to the end,
    and each full collection of it would delay every stream by a tenth of a second.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.freeze()
        gc.set_threshold(YOUNG_OBJECTS, YOUNG_ROUNDS, MIDDLE_ROUNDS)


def use_huge_pages() -> None:
    """Move the process's memory into huge pages, in a thread, once start-up is over."""
    loop = asyncio.get_running_loop()
    loop.call_later(SETTLED_SECONDS, loop.run_in_executor, None, into_huge_pages)


def into_huge_pages() -> int:
    """Move what this process has in memory into huge pages; returns their number.

    A turn touches more of it than the processor keeps addresses of in pages of 4 kB.  It takes no
    more memory.  Nothing happens before Linux 6.1, elsewhere, or where the host wants no such
    pages ("never"); what the kernel refuses stays as it is.
    """
    if sys.platform != "linux":
        return 0
    with suppress(OSError):
        if "[never]" not in _ALLOWED.read_text(encoding="ascii"):
            return _collapsed(whole_pages(regions(_REGIONS.read_text(encoding="utf-8"))))
    return 0


def regions(smaps: str) -> list[Region]:
    """Private writable regions without a file: where Python and the C library have objects.

    ``smaps`` as in proc_pid_smaps(5).
    """
    return [
        Region(int(found["start"], 16), int(found["end"], 16), 1024 * int(found["resident"]))
        for found in _REGION.finditer(smaps)
    ]


def whole_pages(regions: Iterable[Region]) -> Iterator[int]:
    """The addresses of the huge pages within dense regions."""
    for each in regions:
        if each.resident >= DENSE_SHARE * (each.end - each.start):
            first = -(-each.start // HUGE_PAGE) * HUGE_PAGE
            yield from range(first, each.end - HUGE_PAGE + 1, HUGE_PAGE)


def _collapsed(pages: Iterable[int]) -> int:
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return sum(advise(page, HUGE_PAGE, _COLLAPSE) == 0 for page in pages)
