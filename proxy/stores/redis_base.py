"""What all parts of the Redis store have in common: the way to the servers, and limits of time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from proxy.stores.redis_archive import Archive
from proxy.stores.redis_link import Link, bounded
from proxy.stores.redis_scripts import Script, Scripts


class RedisBase:
    """``timeout`` bounds each read, ``commit_timeout`` each step of a write, in seconds.

    ``one_slot`` says that all keys are on one server, so that one script can write several of them.
    """

    def __init__(
        self,
        link: Link,
        scripts: Scripts,
        timeout: float,
        commit_timeout: float,
        clock: Callable[[], float],
        *,
        one_slot: bool,
    ) -> None:
        self._link = link
        self._scripts = scripts
        self._timeout = timeout
        self._commit_timeout = commit_timeout
        self._clock = clock
        self._one_slot = one_slot
        self._archive = Archive(link, scripts, clock)

    async def _step(self, script: Script, keys: Sequence[bytes], arguments: Sequence[Any]) -> int:
        work = self._scripts.read(script, keys, arguments)
        return int(await bounded(work, self._commit_timeout))

    async def _ask(self, key: bytes, *command: Any) -> Any:
        (reply,) = await bounded(self._link.many([(key, command)]), self._commit_timeout)
        return reply
