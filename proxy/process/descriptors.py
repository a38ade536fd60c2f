"""File descriptors: as many as the system allows, and a word in the log before they run out.

Every connection takes one, of a client and to the upstream.  Where none is left the event loop
resets new connections, or leaves them waiting, and tells nobody.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable

if sys.platform != "win32":
    import resource

MAX_LIMIT = 1 << 20
"""Some systems allow any number, and take no such number for a limit."""

RESERVE = 16
"""Descriptors that are left when the log says so."""

SILENCE = 10.0
"""Seconds between two such lines, and between two looks at the limit."""

_LOG = logging.getLogger("proxy.server")


def limit() -> int | None:
    """Descriptors that this process may have, None where nobody counts them."""
    if sys.platform == "win32":
        return None
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def raise_limit() -> int | None:
    """Take what the system allows, as its default is for programs that call select(); the limit."""
    if sys.platform == "win32":
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MAX_LIMIT if hard == resource.RLIM_INFINITY else min(hard, MAX_LIMIT)
    if soft != resource.RLIM_INFINITY and soft < most:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        except (OSError, ValueError):  # a system that allows less than it says
            _LOG.warning("the limit of file descriptors cannot be raised", exc_info=True)
    return limit()


class Shortage:
    """Tells the log when descriptors run out."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._told = self._asked = float("-inf")
        self._most: int | None = None

    def taken(self, number: int) -> None:
        """A descriptor was taken: its number is the lowest that was free."""
        now = self._clock()
        if now - self._asked >= SILENCE:
            self._asked, self._most = now, limit()
        most = self._most
        if most is None or number < most - RESERVE or now - self._told < SILENCE:
            return
        self._told = now
        _LOG.warning(
            "file descriptors run out (EMFILE): new connections will fail; raise the limit "
            "(ulimit -n, LimitNOFILE)",
            extra={"fields": {"descriptor": number, "limit": most}},
        )
