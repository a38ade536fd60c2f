"""What a request waits for of its session's turns."""

from __future__ import annotations

import asyncio

import pytest

from proxy.gateway.recording import open_turns
from proxy.gateway.recording.open_turns import OpenTurns
from proxy.memory.model import SessionKey
from proxy.wire.body import ClientGone, Message
from proxy.wire.relay import DisconnectGuard

KEY = SessionKey("tenant", "session")


class Turn:
    """A turn whose client may leave, and whose record may take long."""

    def __init__(self, turns: OpenTurns) -> None:
        self.left, self.recorded = asyncio.Event(), asyncio.Event()
        self._turns = turns

    async def run(self) -> None:
        with pytest.raises(ClientGone), self._turns.turn(KEY, DisconnectGuard(self._receive)):
            try:
                await asyncio.Event().wait()
            finally:
                await self.recorded.wait()

    async def _receive(self) -> Message:
        await self.left.wait()
        return {"type": "http.disconnect"}


async def test_a_turn_that_was_broken_off_is_waited_for() -> None:
    turns = OpenTurns()
    turn = Turn(turns)
    running = asyncio.create_task(turn.run())
    await asyncio.sleep(0)
    turn.left.set()
    asking = asyncio.create_task(turns.wait_settled(KEY))
    await asyncio.sleep(0.02)
    assert not asking.done()
    turn.recorded.set()
    await asking
    await running


async def test_a_turn_that_goes_on_is_not_waited_for() -> None:
    turns = OpenTurns()
    turn = Turn(turns)
    running = asyncio.create_task(turn.run())
    await asyncio.sleep(0)
    await turns.wait_settled(KEY)
    assert not running.done()
    turn.left.set()
    turn.recorded.set()
    await running
    await turns.wait_settled(KEY)


async def test_a_record_that_takes_for_ever_is_waited_for_no_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(open_turns, "TIMEOUT", 0.01)
    turns = OpenTurns()
    turn = Turn(turns)
    running = asyncio.create_task(turn.run())
    await asyncio.sleep(0)
    turn.left.set()
    await turns.wait_settled(KEY)
    assert not running.done()
    turn.recorded.set()
    await running
