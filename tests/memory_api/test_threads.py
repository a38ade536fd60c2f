"""Work on threads, of several tenants."""

from __future__ import annotations

import asyncio
import threading
from functools import partial

from proxy.memory_api.threads import TenantThreads
from tests.support.waiting import PATIENCE


async def test_nobody_waits_for_all_that_another_has_brought() -> None:
    threads, over = TenantThreads("test"), threading.Event()
    begun: list[str] = []

    def work(tenant: str) -> None:
        begun.append(tenant)
        if tenant == "many":
            assert over.wait(PATIENCE)

    many = [asyncio.create_task(threads.run_for("many", partial(work, "many"))) for _ in range(9)]
    await asyncio.sleep(0)
    async with asyncio.timeout(PATIENCE):
        await threads.run_for("one", partial(work, "one"))
    assert begun == ["many", "one"]
    over.set()
    await asyncio.gather(*many)
    assert begun == ["many", "one", *["many"] * 8]
