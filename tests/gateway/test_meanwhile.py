"""What a reply is recorded in is made while the upstream is waited for, and once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from proxy.gateway.offload import run_soon
from proxy.gateway.recording.exchange_recorder import recorder_for
from tests.support.rig import Rig
from tests.support.talk.words import answer, messages
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_it_is_done_while_something_is_waited_for_and_once() -> None:
    done: list[int] = []

    def work() -> int:
        done.append(1)
        return len(done)

    result = run_soon(work)
    assert not done
    await asyncio.sleep(0)
    assert done == [1]
    assert result() == result() == 1


async def test_where_nothing_was_waited_for_it_is_done_when_it_is_needed() -> None:
    done: list[int] = []
    result = run_soon(lambda: done.append(1))
    result()
    await asyncio.sleep(0)
    assert done == [1]


async def test_what_fails_fails_where_its_result_is_needed() -> None:
    reported: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda loop, context: reported.append(context))
    try:
        result = run_soon(lambda: 1 // 0)
        await asyncio.sleep(0)
    finally:
        loop.set_exception_handler(None)
    assert len(reported) == 1
    with pytest.raises(ZeroDivisionError):
        result()


async def test_it_is_made_before_the_upstream_has_answered(
    one: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk, made = one.talk(), asyncio.Event()

    def noticed(*arguments: Any) -> Any:
        made.set()
        return recorder_for(*arguments)

    monkeypatch.setattr("proxy.gateway.asking.asker.recorder_for", noticed)
    script = replace(answer("a1"), before=made)  # else it would wait for ever
    async with asyncio.timeout(PATIENCE):
        assert (await talk.ask(messages("u1"), script)).status_code == 200
    assert len(await talk.history()) == 2
