"""Threads that work for the event loop do not interrupt it when they get work."""

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from proxy.process.runtime import use_quiet_threads
from proxy.process.threads import (
    MAX_TENANT_THREADS,
    SharedThreads,
    never_preempt,
    shared_pool,
    thread_pool,
)
from tests.support.clock import Clock
from tests.support.store.files import opened
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a policy of Linux")


def policy() -> int:
    return os.sched_getscheduler(0)


def in_thread_after(prepare: Callable[[], None]) -> int:
    """The policy of a thread of its own."""
    with ThreadPoolExecutor(1, initializer=prepare) as pool:
        return pool.submit(policy).result()


def test_a_pool_leaves_the_processor_to_the_thread_that_gives_it_work() -> None:
    with thread_pool(1, "work") as pool:
        assert pool.submit(policy).result() == os.SCHED_BATCH
    assert policy() == os.SCHED_OTHER


async def test_so_does_the_pool_of_the_loop_itself() -> None:
    use_quiet_threads()
    assert await asyncio.to_thread(policy) == os.SCHED_BATCH


def test_a_policy_that_the_operator_has_chosen_stays() -> None:
    def idle_before() -> None:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        never_preempt()

    assert in_thread_after(idle_before) == os.SCHED_IDLE


@pytest.mark.parametrize("call", ["sched_getscheduler", "sched_setscheduler"])
def test_a_system_that_does_not_allow_it_is_no_error(
    call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError

    with monkeypatch.context() as patch, ThreadPoolExecutor(1) as pool:
        patch.setattr(os, call, refused)
        pool.submit(never_preempt).result()
        patch.undo()
        assert pool.submit(policy).result() == os.SCHED_OTHER


async def test_the_threads_of_the_embedded_store_are_such(tmp_path: Path) -> None:
    before = threads()
    async with opened(tmp_path / "memory.db", Clock()) as store:
        await store.ping()
        policies = {os.sched_getscheduler(id) for id in threads() - before}
    assert policies == {os.SCHED_BATCH}


def threads() -> set[int]:
    return {int(each) for each in os.listdir("/proc/self/task")}


class Blocked:
    """Work that notes whose it is, and waits until it is ``over``."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.begun: list[str] = []

    def work(self, tenant: str) -> None:
        self.begun.append(tenant)
        assert self.over.wait(PATIENCE)


async def test_nobody_waits_for_all_that_another_tenant_has_brought() -> None:
    with shared_pool("test") as pool:
        threads, blocked = SharedThreads(pool), Blocked()
        jobs = [partial(blocked.work, "many") for _ in range(9)]
        many = [asyncio.create_task(threads.run("many", job)) for job in jobs]
        await asyncio.sleep(0)
        async with asyncio.timeout(PATIENCE):
            assert await threads.run("one", lambda: "done") == "done"
        assert blocked.begun == ["many"] * MAX_TENANT_THREADS
        blocked.over.set()
        await asyncio.gather(*many)
        assert blocked.begun == ["many"] * 9


async def test_work_takes_its_place_until_it_is_done_though_its_caller_left() -> None:
    with shared_pool("test") as pool:
        threads, blocked = SharedThreads(pool), Blocked()
        for _ in range(3 * MAX_TENANT_THREADS):
            left = asyncio.create_task(threads.run("many", partial(blocked.work, "many")))
            await asyncio.sleep(0)
            left.cancel()
            await asyncio.wait({left})
        async with asyncio.timeout(PATIENCE):
            assert await threads.run("one", lambda: "done") == "done"
        assert len(blocked.begun) <= MAX_TENANT_THREADS
        blocked.over.set()
        await threads.run("many", lambda: None)
