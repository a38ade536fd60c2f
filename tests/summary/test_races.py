"""A session changes while the model writes, or the process ends: nothing is lost or told twice."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from proxy.memory.model import Summary, WindowMove
from proxy.summary.summarizer import CONFLICTS, RETRY_AFTER_CONFLICTS
from tests.support.store.commits import chat, draft, record
from tests.support.talk.summarising import PROFILE, Workshop, ids, markers, new_lines


async def test_messages_that_arrive_meanwhile_do_not_disturb(workshop: Workshop) -> None:
    await workshop.talk_behind(1, 3)

    async def more() -> None:
        await workshop.talk_behind(4, 5)

    workshop.narrator.meanwhile = more
    await workshop.run()

    assert await workshop.told() == [*ids(1, 3), "xe3.0", "xe3.1", *ids(4, 5)]
    assert len(workshop.narrator.asked) == 2


async def test_a_rewind_of_what_is_not_covered_costs_no_second_request(
    workshop: Workshop,
) -> None:
    await workshop.talk_behind(1, 3)

    async def rewind() -> None:
        await workshop.commit(record("x9", draft("x9", 0), superseded=("xe3.0", "xe3.1")))

    workshop.narrator.meanwhile = rewind
    await workshop.run()

    assert await workshop.told() == ids(1, 3)
    assert len(workshop.narrator.asked) == 1


async def test_a_rewind_into_what_is_being_covered_begins_anew(workshop: Workshop) -> None:
    await workshop.talk_behind(1, 3)

    async def rewind() -> None:
        await workshop.commit(record("x9", draft("x9", 0), superseded=("x3.0", "x3.1")))

    workshop.narrator.meanwhile = rewind
    await workshop.run()

    first, second = workshop.narrator.asked
    assert markers(new_lines(first)) == ids(1, 3)
    assert markers(second.text) == ids(1, 2)
    assert await workshop.told() == ids(1, 2)


async def test_an_answer_taken_back_to_life_meanwhile_is_covered_too(workshop: Workshop) -> None:
    other = draft("x1", 2, "assistant", state="superseded", choice=1)
    await workshop.commit(record("x1", draft("x1", 0), draft("x1", 1, "assistant"), other))
    await workshop.talk_behind(2, 3)

    async def choose() -> None:
        await workshop.commit(
            record("x9", draft("x9", 0), superseded=("x1.1",), activated=("x1.2",))
        )

    workshop.narrator.meanwhile = choose
    await workshop.run()

    assert await workshop.told() == ["x1.0", "x1.2", *ids(2, 3)]


async def test_a_rewind_behind_a_summary_goes_on_from_the_version_before(
    workshop: Workshop,
) -> None:
    await workshop.talk_behind(1, 3)
    await workshop.run()
    await workshop.talk_behind(4, 6)
    await workshop.run()
    anew = WindowMove(profile=PROFILE, start="x9.0", may_move_back=True)
    await workshop.commit(record("x9", draft("x9", 0), superseded=("x6.0", "x6.1"), window=anew))
    assert await workshop.told() == ids(1, 3)

    await workshop.run()

    assert markers(new_lines(workshop.narrator.asked[-1]))[:2] == ["xe3.0", "xe3.1"]
    assert await workshop.told() == [*ids(1, 3), "xe3.0", "xe3.1", *ids(4, 5), "xe6.0", "xe6.1"]


async def test_two_processes_at_once_make_one_summary(workshop: Workshop) -> None:
    await workshop.talk_behind(1, 25)
    both = [workshop.another(), workshop.another()]

    await asyncio.gather(*(workshop.run(summarizer) for summarizer in both))

    assert await workshop.told() == ids(1, 25)
    versions = await workshop.store.summaries(workshop.key)
    assert [summary.version for summary in versions] == [3, 2, 1]


async def test_a_persons_edit_meanwhile_is_not_overwritten(workshop: Workshop) -> None:
    await workshop.talk_behind(1, 3)

    async def edit() -> None:
        words = Summary(text="My own words.", version=0, edited=True)
        assert await workshop.store.put_summary(workshop.key, words, 0, None)

    workshop.narrator.meanwhile = edit
    await workshop.run()

    assert workshop.narrator.asked[-1].text.startswith("Told: My own words.\n")
    assert await workshop.told() == ids(1, 3)
    assert [s.version for s in await workshop.store.summaries(workshop.key)] == [2, 1]


async def test_a_session_deleted_meanwhile_stays_deleted(workshop: Workshop) -> None:
    await workshop.talk_behind(1, 3)

    async def delete() -> None:
        await workshop.store.delete(workshop.key)

    workshop.narrator.meanwhile = delete
    assert await workshop.run() is None

    assert not (await workshop.look()).exists
    assert not await workshop.store.summaries(workshop.key)


async def test_a_session_that_begins_meanwhile_gets_nothing_of_the_one_before(
    workshop: Workshop,
) -> None:
    await workshop.talk_behind(1, 3)

    async def begin_anew() -> None:
        await workshop.store.delete(workshop.key)
        await workshop.talk(7, 7, at=2000.0)
        await workshop.commit(chat("x8", 2000.0, window=WindowMove(profile=PROFILE, start="x8.0")))

    workshop.narrator.meanwhile = begin_anew
    await workshop.run()

    assert await workshop.told() == ids(7, 7)


async def test_a_session_that_keeps_changing_is_left_for_later(workshop: Workshop) -> None:
    await workshop.talk_behind(1, 9)
    changes = 0

    async def rewind() -> None:
        nonlocal changes
        changes += 1
        gone = f"x{changes}.1"
        await workshop.commit(record(f"xr{changes}", draft(f"xr{changes}", 0), superseded=(gone,)))
        workshop.narrator.meanwhile = rewind

    workshop.narrator.meanwhile = rewind
    again = await workshop.run()

    assert again == workshop.clock() + RETRY_AFTER_CONFLICTS
    assert len(workshop.narrator.asked) == CONFLICTS
    assert await workshop.summary() is None


async def test_progress_survives_a_kill_between_batches(workshop: Workshop) -> None:
    await workshop.talk_behind(1, 25)

    async def kill() -> None:
        workshop.narrator.answers.append(asyncio.CancelledError())

    async def then_kill() -> None:
        workshop.narrator.meanwhile = kill

    workshop.narrator.meanwhile = then_kill
    with pytest.raises(asyncio.CancelledError):
        await workshop.run()
    assert await workshop.told() == ids(1, 10)

    await workshop.run(workshop.another())

    assert await workshop.told() == ids(1, 25)
    assert workshop.narrator.seen == [*ids(1, 20), *ids(11, 25)], "one batch was begun twice"


async def test_parts_of_one_message_are_begun_anew_after_a_kill(workshop: Workshop) -> None:
    text = " ".join(f"xbig.{n}" for n in range(500))
    body = msgspec.json.encode({"role": "user", "content": text})
    big = msgspec.structs.replace(draft("x1", 0, tokens=500), body=body)
    await workshop.commit(record("x1", big))
    await workshop.commit(chat("x2", window=WindowMove(profile=PROFILE, start="x2.0")))

    async def kill() -> None:
        workshop.narrator.answers.append(asyncio.CancelledError())

    async def then_kill() -> None:
        workshop.narrator.meanwhile = kill

    workshop.narrator.meanwhile = then_kill
    with pytest.raises(asyncio.CancelledError):
        await workshop.run()
    assert await workshop.summary() is None

    await workshop.run(workshop.another())

    summary = await workshop.summary()
    assert summary is not None
    assert markers(summary.text) == [f"xbig.{n}" for n in range(500)]
    assert summary.version == 1
