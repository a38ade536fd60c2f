"""What telling answers apart takes, and where they stay as they are."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from proxy.chat.message import ChatMessage
from proxy.memory.model import SessionKey, Snapshot
from proxy.memory.planner import LONG_LOG, Planner
from proxy.memory.prompt.compose import PromptRules
from proxy.memory.prompt.window import Window
from proxy.memory.reconciliation.joined_answers import MAX_PIECES, READS_PER_PIECE, split_cost
from proxy.memory.reconciliation.match import Intent
from tests.support.faulty import FaultyStore
from tests.support.talk.shorthand import log, talk


def apart(message: ChatMessage) -> Sequence[Sequence[ChatMessage]]:
    raise AssertionError("is not told apart")


def several(pieces: int, of: str = "a1") -> ChatMessage:
    [message] = talk(of)
    return replace(message, splitter=apart, max_parts=pieces)


def test_what_has_many_pieces_stays_as_it_is() -> None:
    half = several(MAX_PIECES // 2)
    assert split_cost([half, half], {"a2"}) >= READS_PER_PIECE * MAX_PIECES
    assert split_cost([half, half, several(1)], {"a2"}) == 0
    assert split_cost([half, half, several(1, "a2")], {"a2"}) > 0


def test_so_does_what_is_known_as_one_and_what_is_one() -> None:
    assert split_cost([several(2), *talk("u1 a2")], {"a1"}) == 0


def test_where_nothing_is_known_nothing_is_in_doubt() -> None:
    assert split_cost([several(2)], set()) == 0


@pytest.mark.parametrize("pieces", [2, LONG_LOG])
async def test_a_few_answers_are_told_apart_at_once_and_many_beside_the_loop(
    store: FaultyStore, pieces: int
) -> None:
    ran: list[int] = []

    def noted(message: ChatMessage) -> Sequence[Sequence[ChatMessage]]:
        ran.append(threading.get_ident())
        return [[message]]

    m = [*talk("u1"), replace(several(pieces, "a3"), splitter=noted), *talk("u2")]
    key, snapshot, rules = (
        SessionKey("t", "s"),
        log("u1 a1").snapshot(),
        PromptRules(window=Window()),
    )
    planned = await Planner(store).plan(key, snapshot, m, Intent(), rules)
    assert planned.messages == tuple(m)
    assert [one == threading.get_ident() for one in ran] == [pieces == 2]
    await Planner(store).plan(key, Snapshot(), m, Intent(), rules)
    assert len(ran) == 1
