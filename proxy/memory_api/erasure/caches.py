"""Clears this process's caches of texts, after something was edited or erased.

What was erased must not stay in a cache.  Caches that do not know the tenant of an entry, which are
small, are cleared completely; of others the tenant's entries are removed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from proxy.memory.model import SessionKey
from proxy.recall.text_cache import clear_text_caches

CLEARED_AGAIN = 600.0
"""Seconds after a tenant's last erasure after which caches are cleared once more.  Whoever had read
an erased text by then, in a thread or for a model that was asked about it, has put it into a cache
again."""


class TextCaches:
    """``clear`` drops what recall has cached of a tenant; ``forget_session`` drops summaries of a
    session that are written but not stored yet.  Used in the event loop."""

    def __init__(
        self, clear: Callable[[str], None], forget_session: Callable[[SessionKey], None]
    ) -> None:
        self._clear, self.forget_session = clear, forget_session
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def forget(self, tenant: str) -> None:
        """Clear the caches of this tenant's texts, and of what was computed from them: now, and
        once more after the last call."""
        self._clear_all(tenant)
        loop = asyncio.get_running_loop()
        self._timers[tenant] = loop.call_later(CLEARED_AGAIN, self._clear_all, tenant)

    def _clear_all(self, tenant: str) -> None:
        timer = self._timers.pop(tenant, None)
        if timer is not None:
            timer.cancel()
        clear_text_caches()
        self._clear(tenant)
