"""Liveness, readiness and metrics, for probes and Prometheus.

These routes need no key, so they only say which part fails: no address with credentials, no text of
an exception, and the store's name only to callers on this machine.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from proxy.memory.limit import TimeLimit
from proxy.memory.recording.spool import Spool, SpoolError, SpoolFull
from proxy.memory.store import StoreError, StoreTimeout
from proxy.memory_api.access import is_local
from proxy.memory_api.api import Api
from proxy.memory_api.objects import reply
from proxy.memory_api.threads import Threads
from proxy.telemetry import CONTENT_TYPE

logger = logging.getLogger(__name__)

Part = Mapping[str, object]

CONCERNS_SECONDS = 30.0
"""Seconds for which the store's warnings are cached."""

TOO_SLOW = "did not answer in time"
FAILED = "cannot be used"


class Depth(NamedTuple):
    """Numbers of entries in the spool."""

    waiting: int
    quarantined: int


class SpoolStatus(NamedTuple):
    """The numbers of entries in the spool, None if it cannot be read, and what is wrong with it.

    ``elsewhere``: the number of entries for each other store.
    """

    depth: Depth | None
    elsewhere: Mapping[str, int]
    problem: str | None

    def fields(self, *, with_names: bool) -> Part:
        part: dict[str, object] = dict(self.depth._asdict()) if self.depth else {}
        if self.elsewhere:
            part["waiting_elsewhere"] = sum(self.elsewhere.values())
            if with_names:
                part["elsewhere"] = self.elsewhere
        return part


class Concerns:
    """The store's warnings about its configuration, cached so that probes do not query it."""

    def __init__(self, ask: Callable[[], Awaitable[Sequence[str]]]) -> None:
        self._ask = ask
        self._refreshed_at = -CONCERNS_SECONDS
        self._refreshing: asyncio.Task[None] | None = None
        self._known: tuple[str, ...] = ()

    async def known(self, seconds: float) -> tuple[str, ...]:
        """The warnings; waits for new ones for up to ``seconds``."""
        if time.monotonic() - self._refreshed_at >= CONCERNS_SECONDS:
            self._refreshed_at = time.monotonic()
            self._refreshing = asyncio.create_task(self._refresh(), name="concerns")
        if self._refreshing is not None and not self._refreshing.done():
            await asyncio.wait({self._refreshing}, timeout=seconds)
        return self._known

    async def _refresh(self) -> None:
        try:
            concerns = tuple(await self._ask())
        except StoreError:
            return  # readiness says it
        except Exception:  # the boundary to a back end: a probe has to be answered
            logger.exception("the store cannot say how it is set up")
            return
        for concern in concerns:
            if concern not in self._known:
                logger.warning("the store: %s", concern)
        self._known = concerns


class Health:
    """The three routes that need no key."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._timeout = api.settings.store.timeout
        self._spool_reading: asyncio.Task[SpoolStatus] | None = None
        self._concerns = Concerns(api.store.warnings)
        self._threads = Threads("probe")

    async def healthz(self, request: Request) -> Response:
        """The process is up."""
        return reply({"status": "ok"})

    async def readyz(self, request: Request) -> Response:
        """200 if all parts work, else 503; the parts are checked concurrently, with a timeout."""
        local = is_local(request)
        store, spool = await asyncio.gather(self._store(local), self._spool(local))
        ready = bool(store["ok"] and spool["ok"])
        body = {
            "status": "ok" if ready else "unavailable",
            "store": store,
            "spool": spool,
            "configuration": {"ok": True},  # a process with a wrong one does not start
            "tokens": _tokens(self._api.counters()),
        }
        return reply(body, 200 if ready else 503)

    async def metrics(self, request: Request) -> Response:
        """Prometheus' text format."""
        status, problem = await asyncio.gather(
            self._spool_status(), self._problem(self._api.store.ping())
        )
        telemetry = self._api.telemetry
        telemetry.set_store_up(problem is None)
        telemetry.set_tasks(len(asyncio.all_tasks()))
        if status.depth is not None:
            telemetry.set_spool_depth(status.depth.waiting)
        text = await self._threads.run(telemetry.render)
        return Response(text, headers={"content-type": CONTENT_TYPE})

    async def _store(self, with_name: bool) -> Part:
        name = {"name": self._api.store.name} if with_name else {}
        problem = await self._problem(self._api.store.ping())
        if problem:
            return _failed_part(problem, **name)
        part: dict[str, object] = {"ok": True, **name}
        if warnings := await self._concerns.known(self._timeout):
            part["warnings"] = warnings
        if failing_sessions := self._api.failing_sessions():
            part["troubled_sessions"] = failing_sessions
        return part

    async def _problem(self, ping: Awaitable[None]) -> str | None:
        try:
            async with TimeLimit(self._timeout):
                await ping
        except (TimeoutError, StoreTimeout):
            return f"the store {TOO_SLOW}"
        except StoreError:
            return f"the store {FAILED}"
        except Exception:  # the boundary to a back end: a probe has to be answered
            logger.exception("the store failed in an unknown way")
            return f"the store {FAILED}"
        return None

    async def _spool(self, with_names: bool) -> Part:
        status = await self._spool_status()
        fields = status.fields(with_names=with_names)
        if status.problem:
            return _failed_part(status.problem, **fields)
        if self._api.is_losing():
            return _failed_part("exchanges were lost within the last minute", **fields)
        return {"ok": True, **fields}

    async def _spool_status(self) -> SpoolStatus:
        try:
            async with TimeLimit(self._timeout):
                return await asyncio.shield(self._spool_task())
        except TimeoutError:
            return SpoolStatus(None, {}, f"the spool {TOO_SLOW}")

    def _spool_task(self) -> asyncio.Task[SpoolStatus]:
        """The running read of the spool: one at a time, since one that hangs occupies a thread."""
        if self._spool_reading is None or self._spool_reading.done():
            reading = self._threads.run(partial(_read_spool, self._api.spool))
            self._spool_reading = asyncio.create_task(reading, name="spool check")
        return self._spool_reading


def _read_spool(spool: Spool) -> SpoolStatus:
    """A spool that cannot be written, or is full, can still be read."""
    depth, elsewhere = None, dict[str, int]()
    try:
        depth, elsewhere = Depth(*spool.depth()), spool.waiting_for_others()
        spool.check()
    except SpoolFull as full:
        return SpoolStatus(depth, elsewhere, str(full))
    except SpoolError:
        return SpoolStatus(depth, elsewhere, f"the spool {FAILED}")
    return SpoolStatus(depth, elsewhere, None)


def _tokens(counters: Mapping[str, str]) -> Part:
    """``counter``: the table of most models; an encoding with another's table is estimated."""
    return {"ok": True, "counter": counters["others"], "encodings": counters}


def _failed_part(problem: str, **more: object) -> Part:
    return {"ok": False, **more, "error": problem}
