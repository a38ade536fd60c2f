"""Summaries are made of what the window has evicted: all of it, once, oldest first."""

from __future__ import annotations

import msgspec
import pytest

from proxy.memory.model import Draft, Position, SessionKey, Summary, WindowMove
from proxy.stores.open import Backend
from tests.support.clock import Clock
from tests.support.store.commits import chat, draft, record
from tests.support.talk.summarising import (
    PROFILE,
    Workshop,
    ids,
    markers,
    new_lines,
    profile,
    words,
)


async def test_every_evicted_message_is_seen_once_and_oldest_first(workshop: Workshop) -> None:
    await workshop.talk_behind(1, 35)

    assert await workshop.run() is None

    assert workshop.narrator.seen == ids(1, 35)
    assert await workshop.told() == ids(1, 35)
    assert len(workshop.narrator.asked) == 4  # of ten turns each, by what the messages weigh


async def test_the_next_run_goes_on_where_the_last_one_ended(workshop: Workshop) -> None:
    await workshop.talk_behind(1, 3)
    await workshop.run()
    await workshop.talk_behind(4, 6)

    await workshop.run()

    first, second = workshop.narrator.asked
    assert markers(new_lines(second)) == ["xe3.0", "xe3.1", *ids(4, 6)]
    assert markers(second.text)[:6] == ids(1, 3), "the summary so far is in the prompt"
    assert len(await workshop.told()) == 14


async def test_a_summary_says_what_it_is(workshop: Workshop) -> None:
    await workshop.talk_behind(1, 2)

    await workshop.run()

    summary = await workshop.summary()
    assert summary == Summary(
        text="It was told x1.0 x1.1 x2.0 x2.1",
        version=1,
        until=Position(5, 0),
        seen=6,
        covers_until=4,
        tokens=7,
        model="small-1",
        created_at=workshop.clock(),
    )


async def test_the_first_prompt_has_no_summary_and_the_lines(workshop: Workshop) -> None:
    await workshop.talk_behind(1, 1)

    await workshop.run()

    (assignment,) = workshop.narrator.asked
    assert assignment.text == ("Told: (none)\n=====\n[Thursday 1970-01-01]\nHuman: x1.0\nAI: x1.1")


async def test_the_model_is_asked_as_the_settings_say(workshop: Workshop) -> None:
    workshop.profiles[PROFILE] = profile(
        model="m", url="http://other/v1", api_key="k", parameters={"temperature": 0}, timeout=7
    )
    await workshop.talk_behind(1, 1, model="chatting")

    await workshop.run()

    (asked,) = workshop.narrator.asked
    assert (asked.tenant, asked.feature, asked.model) == (workshop.key.tenant, "summary", "m")
    assert (asked.url, asked.key, asked.timeout) == ("http://other/v1", "k", 7)
    assert asked.parameters == {"temperature": 0}
    assert asked.schema is None


async def test_without_a_model_of_its_own_the_sessions_is_asked(workshop: Workshop) -> None:
    workshop.profiles[PROFILE] = profile(model="")
    await workshop.talk(1, 1)
    start = WindowMove(profile=PROFILE, start="x2.0")
    await workshop.commit(chat("x2", model="chatting", window=start))

    await workshop.run()

    assert workshop.narrator.asked[0].default_model == "chatting"


async def test_without_a_window_that_evicts_there_is_nothing_to_do(workshop: Workshop) -> None:
    await workshop.talk(1, 5)
    assert await workshop.run() is None
    assert not workshop.narrator.asked


async def test_a_session_that_is_gone_is_done(workshop: Workshop) -> None:
    assert await workshop.run() is None
    await workshop.talk_behind(1, 2)
    await workshop.store.delete(workshop.key)
    assert await workshop.run() is None
    assert not workshop.narrator.asked


@pytest.mark.parametrize("change", ["off", "gone"])
async def test_a_profile_without_summaries_has_nothing_to_do(
    workshop: Workshop, change: str
) -> None:
    await workshop.talk_behind(1, 2)
    if change == "off":
        workshop.profiles[PROFILE] = profile(enabled=False)
    else:
        workshop.profiles.clear()
    workshop.narrator.known = False

    assert workshop.summarizer.is_ready(workshop.work)
    assert await workshop.run() is None
    assert not workshop.narrator.asked


async def test_it_is_ready_where_its_model_can_be_asked(workshop: Workshop) -> None:
    assert workshop.summarizer.is_ready(workshop.work)
    workshop.narrator.known = False
    assert not workshop.summarizer.is_ready(workshop.work)


async def test_every_marker_of_a_huge_message_is_seen(workshop: Workshop) -> None:
    names = [f"xbig.{n}" for n in range(3000)]
    text = "\n".join(" ".join(names[n : n + 20]) for n in range(0, 3000, 20))
    await workshop.commit(chat("x1"))
    await workshop.commit(record("x2", saying("x2", text)))
    await workshop.talk_behind(3, 3)

    await workshop.run()

    assert workshop.narrator.seen == [*ids(1, 1), *names, *ids(3, 3)]
    assert all(words(new_lines(asked)) <= 200 for asked in workshop.narrator.asked)
    versions = await workshop.store.summaries(workshop.key)
    assert [summary.until.turn for summary in versions] == [6, 4, 3]


def saying(exchange: str, text: str) -> Draft:
    body = msgspec.json.encode({"role": "user", "content": text})
    return msgspec.structs.replace(draft(exchange, 0, tokens=words(text)), body=body)


# When


async def test_fewer_turns_than_after_turns_wait(workshop: Workshop) -> None:
    workshop.profiles[PROFILE] = profile(after_turns=3)
    await workshop.talk_behind(1, 2)
    assert await workshop.run() is None
    assert not workshop.narrator.asked

    await workshop.talk_behind(3, 3)
    assert await workshop.run() is None
    assert workshop.narrator.seen == [*ids(1, 2), "xe2.0", "xe2.1", *ids(3, 3)]


async def test_what_arrives_meanwhile_waits_for_enough_turns_again(workshop: Workshop) -> None:
    workshop.profiles[PROFILE] = profile(after_turns=2)
    await workshop.talk_behind(1, 2)

    async def more() -> None:
        start = WindowMove(profile=PROFILE, start="x9.0")
        await workshop.commit(chat("x9", window=start))

    workshop.narrator.meanwhile = more
    assert await workshop.run() is None

    assert await workshop.told() == ids(1, 2), "one more turn has left the window, and waits"


async def test_turns_that_wait_are_summarised_when_the_session_is_quiet(
    workshop: Workshop,
) -> None:
    workshop.profiles[PROFILE] = profile(after_turns=3, after_seconds=60)
    await workshop.talk_behind(1, 2)
    workshop.clock.now = 1059.0  # the exchanges are of 1000
    assert await workshop.run() == 1060.0
    assert not workshop.narrator.asked

    workshop.clock.now = 1060.0
    assert await workshop.run() is None
    assert workshop.narrator.seen == ids(1, 2)


async def test_many_tokens_do_not_wait_for_more_turns(workshop: Workshop) -> None:
    workshop.profiles[PROFILE] = profile(after_turns=9, after_tokens=50)
    await workshop.talk_behind(1, 2)
    assert await workshop.run() is None
    assert not workshop.narrator.asked

    await workshop.talk_behind(3, 3)
    await workshop.run()
    assert len(workshop.narrator.seen) == 8


# Mode "summary"


@pytest.fixture
def rolling(store: Backend, key: SessionKey) -> Workshop:
    return Workshop(store, key, Clock(), mode="summary")


async def test_in_mode_summary_all_complete_turns_are_covered(rolling: Workshop) -> None:
    await rolling.talk(1, 3)
    await rolling.run()
    assert await rolling.told() == ids(1, 3)
    await rolling.talk(4, 4)
    await rolling.run()
    assert await rolling.told() == ids(1, 4)


async def test_in_mode_summary_a_running_turn_is_not_covered(rolling: Workshop) -> None:
    await rolling.talk(1, 1)
    asking = draft("x2", 0)
    calling = draft("x2", 1, "assistant", calls=("c",))
    await rolling.commit(record("x2", asking, calling))
    await rolling.run()
    assert await rolling.told() == ids(1, 1)

    result = draft("x3", 0, "tool", turn="x2.0", answers="c")
    await rolling.commit(record("x3", result))
    await rolling.run()
    assert await rolling.told() == ids(1, 1), "its answer is still to come"

    await rolling.commit(record("x4", draft("x4", 0, "assistant", turn="x2.0")))
    await rolling.run()
    assert await rolling.told() == [*ids(1, 2), "x3.0", "x4.0"]


async def test_a_newest_turn_that_waits_for_a_result_is_never_covered(workshop: Workshop) -> None:
    await workshop.talk(1, 1)
    gone = draft("x3", 0)
    calling = draft("x2", 1, "assistant", calls=("c",))
    await workshop.commit(record("x2", draft("x2", 0), calling))
    await workshop.commit(record("x3", gone, window=WindowMove(profile=PROFILE, start="x3.0")))
    await workshop.commit(record("x4", superseded=("x3.0",)))

    await workshop.run()

    assert await workshop.told() == ids(1, 1)


# Answers of long ago


async def test_late_answers_to_a_covered_turn_are_folded_in_next(workshop: Workshop) -> None:
    calling = draft("x1", 1, "assistant", calls=("c", "d"))
    await workshop.commit(record("x1", draft("x1", 0), calling))
    await workshop.talk_behind(2, 3)
    await workshop.run()
    late = draft("x8", 0, "tool", turn="x1.0", answers="c")
    await workshop.commit(record("x8", late, draft("x8", 1, "assistant", turn="x1.0")))
    assert await workshop.told() == ids(1, 3), "what came late is not covered"

    await workshop.run()
    assert await workshop.told() == [*ids(1, 3), "x8.0", "x8.1"]
    await workshop.run()
    assert len(workshop.narrator.asked) == 2


async def test_many_late_answers_are_folded_in_in_the_order_they_came(workshop: Workshop) -> None:
    await workshop.talk_behind(1, 3)
    await workshop.run()
    for n in range(30):
        turn = f"x{3 - n % 3}.0"
        await workshop.commit(record(f"xl{n}", draft(f"xl{n}", 0, "assistant", turn=turn)))

    await workshop.run()

    told = await workshop.told()
    assert told == [*ids(1, 3), *(f"xl{n}.0" for n in range(30))]
    assert len(workshop.narrator.asked) == 3
