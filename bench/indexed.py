"""Seeded sessions are new to the index: they are read into it before anything is measured."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

from bench.processes import Process
from bench.requests import turn
from bench.wire import connect

LOOK_SECONDS = 1.0
AT_REST = 0.05
"""Of a core."""

PATIENCE_SECONDS = 300.0


async def indexed(target: Process, sessions: Iterable[str]) -> None:
    """Ask once in each session, and wait until the process has nothing more to do.

    Raises RuntimeError where it goes on for ``PATIENCE_SECONDS``.
    """
    connection = await connect(target.port)
    try:
        for session in sessions:
            await connection.ask(turn(session))
    finally:
        connection.close()
    await _at_rest(target)


async def _at_rest(target: Process) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        before = target.cpu()
        await asyncio.sleep(LOOK_SECONDS)
        if target.cpu() - before < AT_REST * LOOK_SECONDS:
            return
    raise RuntimeError("the proxy did not come to rest")
