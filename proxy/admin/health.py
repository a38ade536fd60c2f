"""Is the process up, can it do its work, and what has it done: for probes and Prometheus.

Open to everyone, so nothing here says more than which part fails: no address with credentials, no
text of an exception, and the store's place to nobody but this machine.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from proxy.admin.access import is_local
from proxy.admin.objects import reply
from proxy.admin.parts import AdminParts
from proxy.memory.spool import Spool, SpoolError
from proxy.memory.store import StoreError, StoreTimeout
from proxy.telemetry import CONTENT_TYPE

logger = logging.getLogger(__name__)

Part = Mapping[str, object]

TOO_SLOW = "did not answer in time"
FAILED = "cannot be used"


class Depth(NamedTuple):
    """What a spool that can be written holds; entries."""

    waiting: int
    quarantined: int


class Health:
    """The three routes that need no key."""

    def __init__(self, parts: AdminParts) -> None:
        self._parts = parts
        self._timeout = parts.settings.store.timeout
        self._look: asyncio.Task[Depth | None] | None = None

    async def healthz(self, request: Request) -> Response:
        """The process is up."""
        return reply({"status": "ok"})

    async def readyz(self, request: Request) -> Response:
        """200 if all parts work, else 503; each part is asked at once and waited for briefly."""
        store, spool = await asyncio.gather(self._store(is_local(request)), self._spool())
        ready = bool(store["ok"] and spool["ok"])
        body = {
            "status": "ok" if ready else "unavailable",
            "store": store,
            "spool": spool,
            "configuration": {"ok": True},  # a process with a wrong one does not start
            "tokens": {"ok": True, "counter": self._parts.counter_name()},
        }
        return reply(body, 200 if ready else 503)

    async def metrics(self, request: Request) -> Response:
        """Prometheus' text format."""
        depth, problem = await asyncio.gather(
            self._depth(), self._problem(self._parts.store.ping())
        )
        telemetry = self._parts.telemetry
        telemetry.store_up(problem is None)
        if depth is not None:
            telemetry.spool_depth(depth.waiting)
        text = await asyncio.to_thread(telemetry.render)
        return Response(text, headers={"content-type": CONTENT_TYPE})

    async def _store(self, named: bool) -> Part:
        name = {"name": self._parts.store.name} if named else {}
        problem = await self._problem(self._parts.store.ping())
        return _broken(problem, **name) if problem else {"ok": True, **name}

    async def _problem(self, ping: Awaitable[None]) -> str | None:
        try:
            async with asyncio.timeout(self._timeout):
                await ping
        except (TimeoutError, StoreTimeout):
            return f"the store {TOO_SLOW}"
        except StoreError:
            return f"the store {FAILED}"
        except Exception:  # the boundary to a back end: a probe has to be answered
            logger.exception("the store failed in an unknown way")
            return f"the store {FAILED}"
        return None

    async def _spool(self) -> Part:
        try:
            async with asyncio.timeout(self._timeout):
                depth = await asyncio.shield(self._looking())
        except TimeoutError:
            return _broken(f"the spool {TOO_SLOW}")
        if depth is None:
            return _broken(f"the spool {FAILED}")
        return {"ok": True, "waiting": depth.waiting, "quarantined": depth.quarantined}

    async def _depth(self) -> Depth | None:
        try:
            async with asyncio.timeout(self._timeout):
                return await asyncio.shield(self._looking())
        except TimeoutError:
            return None

    def _looking(self) -> asyncio.Task[Depth | None]:
        """One look at a time: a spool that hangs must not take a thread for every probe."""
        if self._look is None or self._look.done():
            look = asyncio.to_thread(_look_into, self._parts.spool)
            self._look = asyncio.create_task(look, name="spool check")
        return self._look


def _look_into(spool: Spool) -> Depth | None:
    try:
        spool.check()
        return Depth(*spool.depth())
    except SpoolError:
        return None


def _broken(problem: str, **more: object) -> Part:
    return {"ok": False, **more, "error": problem}
