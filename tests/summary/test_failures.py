"""What models do: nonsense, refusals, failures.  The session goes on, and nothing is lost."""

from __future__ import annotations

import msgspec
import pytest

from proxy.background.completion import Completed, Failed, Refused
from proxy.memory.model import Position, WindowMove
from tests.support.store.commits import chat, draft, record
from tests.support.talk.summarising import PROFILE, Workshop, ids, profile


async def test_what_is_no_summary_is_asked_for_once_more(workshop: Workshop) -> None:
    workshop.narrator.answers.append("I'm sorry, but I can't help with that.")
    await workshop.talk_behind(1, 2)

    await workshop.run()

    first, second = workshop.narrator.asked
    assert first == second
    assert await workshop.told() == ids(1, 2)
    assert not (await workshop.look()).stalled


async def test_a_summary_that_was_cut_off_is_asked_for_once_more(workshop: Workshop) -> None:
    workshop.narrator.answers.append(Completed("The human wants to", "small", cut=True))
    await workshop.talk_behind(1, 2)

    await workshop.run()

    assert len(workshop.narrator.asked) == 2
    assert await workshop.told() == ids(1, 2)


async def test_twice_no_summary_stalls_until_there_is_more(workshop: Workshop) -> None:
    workshop.narrator.answers += ["How can I help you today?", ""]
    await workshop.talk_behind(1, 2)

    assert await workshop.run() is None

    assert (await workshop.look()).stalled
    assert await workshop.summary() is None
    assert await workshop.run() is None
    assert len(workshop.narrator.asked) == 2, "the same is not asked for again"
    await workshop.talk_behind(3, 3)
    await workshop.run()
    assert await workshop.told() == [*ids(1, 2), "xe2.0", "xe2.1", *ids(3, 3)]
    assert not (await workshop.look()).stalled


async def test_a_refusal_stalls_and_is_not_repeated(workshop: Workshop) -> None:
    workshop.narrator.answers.append(Refused("400"))
    await workshop.talk_behind(1, 2)

    with pytest.raises(Refused):
        await workshop.run()

    assert (await workshop.look()).stalled
    assert await workshop.run() is None
    assert len(workshop.narrator.asked) == 1
    await workshop.talk_behind(3, 3)
    await workshop.run()
    assert len(await workshop.told()) == 8


async def test_a_failure_is_tried_again_though_there_is_no_more(workshop: Workshop) -> None:
    workshop.narrator.answers.append(Failed("503"))
    await workshop.talk_behind(1, 2)
    with pytest.raises(Failed):
        await workshop.run()
    assert (await workshop.look()).stalled

    await workshop.run()

    assert await workshop.told() == ids(1, 2)
    assert not (await workshop.look()).stalled


async def test_forgetting_all_versions_lets_it_be_tried_again(workshop: Workshop) -> None:
    workshop.narrator.answers.append(Refused("400"))
    await workshop.talk_behind(1, 2)
    with pytest.raises(Refused):
        await workshop.run()

    await workshop.store.drop_summaries(workshop.key)
    await workshop.run()

    assert await workshop.told() == ids(1, 2)


async def test_a_model_that_fails_for_an_hour_is_made_up_for_once(workshop: Workshop) -> None:
    await workshop.talk_behind(1, 2)
    for minute in range(60):
        workshop.clock.now += 60
        workshop.narrator.answers.append(Failed("503", retry_after=1))
        with pytest.raises(Failed):
            await workshop.run()
        assert (await workshop.look()).stalled
        await workshop.talk_behind(10 + minute, 10 + minute)
    workshop.narrator.asked.clear()

    assert await workshop.run() is None

    expected = [entry.card.id for entry in (await workshop.look()).log][:-2]
    assert workshop.narrator.seen == expected
    assert await workshop.told() == expected
    assert not (await workshop.look()).stalled


async def test_a_summary_beyond_max_tokens_is_not_taken(workshop: Workshop) -> None:
    workshop.profiles[PROFILE] = profile(max_tokens=5)
    workshop.narrator.answers += ["one two three four five six", "x1.0 x1.1 and no more"]
    await workshop.talk_behind(1, 1)

    await workshop.run()

    assert len(workshop.narrator.asked) == 2
    assert await workshop.told() == ids(1, 1)


async def test_what_a_person_wrote_is_the_base_of_the_next(workshop: Workshop) -> None:
    await workshop.talk_behind(1, 2)
    await workshop.run()
    summary = await workshop.summary()
    assert summary is not None
    edited = msgspec.structs.replace(summary, text=f"Kai: {summary.text}", edited=True)
    assert await workshop.store.put_summary(workshop.key, edited, 1, None)
    await workshop.talk_behind(3, 3)

    await workshop.run()

    assert workshop.narrator.asked[-1].text.startswith("Told: Kai: It was told x1.0")
    latest = await workshop.summary()
    assert latest is not None and (latest.version, latest.edited) == (3, False)
    assert len(await workshop.told()) == 8


async def test_blank_messages_are_covered_without_a_word(workshop: Workshop) -> None:
    await workshop.commit(record("x1", draft("x1", 0), draft("x1", 1, "assistant", blank=True)))
    await workshop.talk_behind(2, 2)

    await workshop.run()

    assert workshop.narrator.seen == ["x1.0", *ids(2, 2)]
    summary = await workshop.summary()
    assert summary is not None and summary.until == Position(5, 0)


async def test_turns_of_nothing_but_blank_messages_are_not_asked_about(
    workshop: Workshop,
) -> None:
    blank = draft("x1", 0, "assistant", blank=True, tokens=0)
    await workshop.commit(record("x1", blank))
    start = WindowMove(profile=PROFILE, start="x2.0")
    await workshop.commit(chat("x2", window=start))

    assert await workshop.run() is None

    assert not workshop.narrator.asked
    assert await workshop.summary() is None
