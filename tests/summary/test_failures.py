"""What models do: nonsense, refusals, failures.  The session goes on, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from proxy.background.completion import Assignment, Completed, Denied, Failed, Refused
from proxy.memory.model import Position, WindowMove
from proxy.summary.writer import LEFT_OUT, MAX_HALVINGS
from tests.support.store.commits import chat, draft, record
from tests.support.talk.summarising import (
    PROFILE,
    Workshop,
    covered,
    ids,
    markers,
    narrate,
    new_lines,
    profile,
)


async def test_what_is_no_summary_is_asked_for_once_more(workshop: Workshop) -> None:
    workshop.narrator.answers.append("I'm sorry, but I can't help with that.")
    await workshop.talk_behind(1, 2)

    await workshop.run()

    first, second = workshop.narrator.asked
    assert first == second
    assert await workshop.told() == ids(1, 2)
    assert not (await workshop.look()).stalled


async def test_a_summary_that_was_cut_off_is_asked_for_once_more(workshop: Workshop) -> None:
    workshop.narrator.answers.append(Completed("The human wants to", "small", is_truncated=True))
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
    workshop.narrator.answers.append(Denied("401"))
    await workshop.talk_behind(1, 2)

    with pytest.raises(Denied):
        await workshop.run()

    assert (await workshop.look()).stalled
    assert await workshop.run() is None
    assert len(workshop.narrator.asked) == 1
    await workshop.talk_behind(3, 3)
    await workshop.run()
    assert len(await workshop.told()) == 8


def refusing(*words: str) -> Callable[[Assignment], str]:
    """An API that refuses every request with one of these words in its new lines."""

    def answer(assignment: Assignment) -> str:
        if any(word in new_lines(assignment) for word in words):
            raise Refused("400")
        return narrate(assignment)

    return answer


@pytest.mark.parametrize("refused", [("x1.0",), ("x3.1",), ("x2.0", "x2.1", "xe4.1")])
async def test_what_is_refused_is_left_out_and_all_the_rest_is_told(
    workshop: Workshop, refused: tuple[str, ...]
) -> None:
    workshop.narrator.answers += [refusing(*refused)] * 50
    await workshop.talk_behind(1, 4)
    await workshop.talk_behind(5, 5)

    assert await workshop.run() is None

    snapshot = await workshop.look()
    everything = [*ids(1, 4), "xe4.0", "xe4.1", *ids(5, 5)]
    assert [entry.card.id for entry in covered(snapshot)] == everything
    assert snapshot.summary is not None
    assert markers(snapshot.summary.text) == [id for id in everything if id not in refused]
    assert LEFT_OUT in map(new_lines, workshop.narrator.asked)


async def test_of_a_long_line_a_piece_is_left_out(workshop: Workshop) -> None:
    said = [f"xbig.{n}" for n in range(120)]
    body = msgspec.json.encode({"role": "user", "content": " ".join(said)})
    big = msgspec.structs.replace(draft("x1", 0, tokens=120), body=body)
    workshop.narrator.answers += [refusing("xbig.60 ")] * 50
    await workshop.commit(record("x1", big))
    await workshop.commit(chat("x2", window=WindowMove(profile=PROFILE, start="x2.0")))

    await workshop.run()

    summary = await workshop.summary()
    told = markers(summary.text) if summary else []
    assert "xbig.60" not in told and told == [each for each in said if each in told]
    assert len(told) > 80


async def test_what_the_model_makes_nothing_of_is_left_out_without_a_word(
    workshop: Workshop,
) -> None:
    answer = refusing("x1.0")

    def speechless(assignment: Assignment) -> str:
        return "" if new_lines(assignment) == LEFT_OUT else answer(assignment)

    workshop.narrator.answers += [speechless] * 50
    await workshop.talk_behind(1, 2)

    await workshop.run()

    summary = await workshop.summary()
    assert summary is not None and markers(summary.text) == ids(1, 2)[1:]


async def test_where_all_is_refused_nothing_is_left_out(workshop: Workshop) -> None:
    workshop.narrator.answers += [refusing("")] * 50
    await workshop.talk_behind(1, 9)

    with pytest.raises(Refused):
        await workshop.run()

    assert len(workshop.narrator.asked) <= MAX_HALVINGS + 2
    assert (await workshop.look()).stalled and await workshop.summary() is None


async def test_parts_that_are_written_are_not_asked_for_again_where_a_later_one_fails(
    workshop: Workshop,
) -> None:
    text = " ".join(f"xbig.{n}" for n in range(500))
    body = msgspec.json.encode({"role": "user", "content": text})
    big = msgspec.structs.replace(draft("x1", 0, tokens=500), body=body)
    await workshop.commit(record("x1", big))
    await workshop.commit(chat("x2", window=WindowMove(profile=PROFILE, start="x2.0")))
    workshop.narrator.answers += [narrate, narrate]
    for _ in range(3):
        workshop.narrator.answers.append(Failed("500"))
        with pytest.raises(Failed):
            await workshop.run()
    assert len(workshop.narrator.asked) == 2 + 3

    await workshop.run()

    assert len(workshop.narrator.asked) == 2 + 3 + 2
    summary = await workshop.summary()
    assert summary is not None
    assert markers(summary.text) == [f"xbig.{n}" for n in range(500)]


async def test_what_came_to_nothing_is_tried_again_with_twice_as_many_turns_each_time(
    workshop: Workshop,
) -> None:
    workshop.narrator.answers += [""] * 100
    await workshop.talk_behind(1, 1)
    tried = []
    for turn in range(2, 18):
        before = len(workshop.narrator.asked)
        await workshop.run()
        if len(workshop.narrator.asked) > before:
            tried.append(turn)
        await workshop.commit(
            chat(f"x{turn}", window=WindowMove(profile=PROFILE, start=f"x{turn}.0"))
        )

    assert tried == [2, 3, 5, 9, 17]


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
    workshop.narrator.answers.append(Denied("401"))
    await workshop.talk_behind(1, 2)
    with pytest.raises(Denied):
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
