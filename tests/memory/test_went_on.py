"""Answers that go on behind their finish, while the store works, and when it does not."""

from __future__ import annotations

import logging

import pytest
from msgspec.structs import replace

from proxy.memory.model import Amendment
from proxy.memory.recording.amend import ExtendedAnswer, amend, extended_answer
from proxy.memory.store import StoreError
from tests.support.store.archives import edited
from tests.support.store.commits import TOKENS, chat, exchange
from tests.support.store.recording import KEY, Workbench, answered, deferred, said, texts

DOWN = StoreError("connection refused")
COMMIT = chat("x1")
WHOLE = edited("x1", 1, "assistant", replaced_wire=COMMIT.drafts[1].body, tokens=TOKENS + 5)
AMENDMENT = Amendment(exchange="x1", edited=WHOLE)


@pytest.fixture(autouse=True)
def _failures_may_be_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "proxy.memory.recording.recorder")


def test_an_answer_that_has_ended_with_its_finish_needs_no_second_write() -> None:
    before = (answered("yes"), replace(answered("no"), index=1))
    assert extended_answer(before, before) is None
    assert extended_answer(before, (answered("yes"), replace(answered("no, no"), index=1))) is None
    assert amend(COMMIT, before, None, len) is None


def test_of_one_that_goes_on_all_of_it_is_written_in_place_of_what_was() -> None:
    more = extended_answer([answered("yes")], [answered("yes, and no")])
    assert more is not None
    amendment = amend(COMMIT, (), None, len, more)
    assert amendment is not None and amendment.edited is not None
    new, old = amendment.edited, COMMIT.drafts[1]
    assert (new.card.id, new.body, new.replaced_wire) == (old.card.id, more.body, old.body)
    assert (new.card.digest, new.card.tokens) == ("assistant-yes, and no", len(more.body))


async def test_whoever_finds_messages_is_told_of_what_says_more(bench: Workbench) -> None:
    await bench.recorder.record(KEY, COMMIT)
    assert await bench.recorder.amend(KEY, Amendment(exchange="x1", usage=b"{}")) == "recorded"
    assert bench.edited == []
    assert await bench.recorder.amend(KEY, AMENDMENT) == "recorded"
    assert bench.edited == [(KEY, (2,))]


@pytest.mark.parametrize("stored", [False, True])
async def test_what_waits_in_the_spool_is_shown_and_replayed_whole(
    bench: Workbench, stored: bool
) -> None:
    if stored:
        await bench.recorder.record(KEY, COMMIT)
    bench.store.fail(DOWN, "commit", "amend")
    if not stored:
        await bench.recorder.record(KEY, COMMIT)
    assert await bench.recorder.amend(KEY, AMENDMENT) == "spooled"
    bench.store.recover()
    shown = (await bench.prepare()).snapshot
    assert (shown.log[1].card, shown.bodies["x1.1"]) == (WHOLE.card, WHOLE.body)
    assert (shown.tokens, shown.changes) == (2 * TOKENS + 5, 1)
    await bench.recorder.replay()
    found = (await bench.prepare()).snapshot
    assert (found.log, found.bodies, found.tokens) == (shown.log, shown.bodies, shown.tokens)
    assert bench.edited == [(KEY, (2,))]
    assert bench.spool.is_idle() and not bench.quarantined


@pytest.mark.parametrize("replayed", [False, True])
async def test_one_that_found_no_snapshot_is_whole_too(bench: Workbench, replayed: bool) -> None:
    """Its beginning may be in the store by the time of its end."""
    await bench.recorder.defer(KEY, deferred("x1", said("hello")))
    if replayed:
        await bench.recorder.replay()
    more = ExtendedAnswer.of(exchange("x1"), [answered("yes")], answered("yes, and no"))
    assert await bench.recorder.defer_extended_answer(KEY, more) == "spooled"
    shown = texts((await bench.prepare()).snapshot)
    await bench.recorder.replay()
    assert texts((await bench.prepare()).snapshot) == shown == ["hello", "yes, and no"]
    assert bench.spool.is_idle() and not bench.quarantined


async def test_more_of_what_is_gone_by_then_is_nothing(bench: Workbench) -> None:
    more = ExtendedAnswer.of(exchange("x1"), [answered("yes")], answered("yes, and no"))
    await bench.recorder.defer_extended_answer(KEY, more)
    await bench.recorder.replay()
    assert await bench.history() == [] == bench.edited
    assert bench.spool.is_idle() and not bench.quarantined
