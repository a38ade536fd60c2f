"""A summary is written anew from the history: the one in force stays until that is done."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from proxy.background.completion import DENIALS, BudgetSpent, Denied, Failed
from proxy.memory.model import Summary, Work
from proxy.summary.summarizer import Rebuilder
from tests.support.store.commits import draft, record
from tests.support.talk.summarising import Workshop, ids, markers, narrate

DAY = 86_400.0


async def told_wrong(workshop: Workshop, last: int, text: str = "All wrong.") -> None:
    """Turns of which there is a summary, with other words in its place."""
    await workshop.talk_behind(1, last)
    await workshop.run()
    await put(workshop, text, edited=True)
    workshop.narrator.asked.clear()


async def put(workshop: Workshop, text: str, *, edited: bool) -> None:
    base = await workshop.summary()
    assert base is not None
    words = replace(base, text=text, edited=edited)
    assert await workshop.store.put_summary(workshop.key, words, base.version, None)


async def texts(workshop: Workshop) -> list[str]:
    return [each.text for each in await workshop.store.summaries(workshop.key)]


async def rebuild(workshop: Workshop) -> float | None:
    tenant, session = workshop.key
    work = Work(tenant=tenant, session=session, kind="rebuild", profile="default", due=0.0)
    return await workshop.summarizer.rebuild(work)


async def test_it_begins_with_nothing_and_covers_all_that_waits_then(workshop: Workshop) -> None:
    await told_wrong(workshop, 25)

    assert await rebuild(workshop) is None

    assert workshop.narrator.asked[0].text.startswith("Told: (none)\n")
    assert len(workshop.narrator.asked) == 3
    assert workshop.narrator.seen == await workshop.told() == ids(1, 25)


@pytest.mark.parametrize("failure", [Failed("503"), Denied("401"), "How can I help you?"])
async def test_what_is_in_force_stays_where_the_model_fails(
    workshop: Workshop, failure: str | BaseException
) -> None:
    await told_wrong(workshop, 25)
    before = await texts(workshop)
    workshop.narrator.answers += [lambda asked: "It was told.", failure, failure]

    if isinstance(failure, str):
        assert await rebuild(workshop) is None
    else:
        with pytest.raises(type(failure)):
            await rebuild(workshop)

    assert await texts(workshop) == before
    assert not (await workshop.look()).stalled


async def test_one_that_takes_more_than_the_tokens_of_a_day_goes_on_with_those_of_the_next(
    workshop: Workshop,
) -> None:
    await told_wrong(workshop, 25)
    workshop.narrator.answers += [narrate, BudgetSpent(workshop.clock() + DAY)]
    with pytest.raises(BudgetSpent):
        await rebuild(workshop)
    workshop.clock.now += DAY
    await workshop.talk_behind(26, 26)

    assert await rebuild(workshop) is None

    first, spent, *others = workshop.narrator.asked
    assert others[0] == spent and len(others) == 2
    assert await workshop.told() == [*ids(1, 25), "xe25.0", "xe25.1", *ids(26, 26)]


async def test_one_of_messages_that_have_changed_since_begins_anew(workshop: Workshop) -> None:
    await told_wrong(workshop, 25)
    workshop.narrator.answers += [narrate, Failed("503")]
    with pytest.raises(Failed):
        await rebuild(workshop)
    await workshop.commit(record("x99", draft("x99", 0), superseded=("x1.0", "x1.1")))
    words = Summary(text="", version=0)
    assert await workshop.store.put_summary(workshop.key, words, 0, None)

    assert await rebuild(workshop) is None

    assert markers((await texts(workshop))[0]) == await workshop.told() == ids(2, 25)


@pytest.mark.parametrize(("attempts", "raised"), [(0, Failed), (DENIALS, Denied)])
async def test_what_is_denied_is_tried_again_but_not_for_ever(
    workshop: Workshop, attempts: int, raised: type[Exception]
) -> None:
    await told_wrong(workshop, 3)
    workshop.narrator.answers.append(Denied("401"))
    job, work = Rebuilder(workshop.summarizer, 600.0), replace(workshop.work, attempts=attempts)
    with pytest.raises(raised) as caught:
        await job.run(work)
    assert getattr(caught.value, "retry_after", 600.0) == 600.0
    assert await job.run(work) is None
    assert await workshop.told() == ids(1, 3)


async def test_what_is_folded_in_meanwhile_is_no_reason_to_begin_anew(workshop: Workshop) -> None:
    await told_wrong(workshop, 3)

    async def fold_in() -> None:
        await workshop.talk_behind(4, 5)
        await put(workshop, "All wrong, and more.", edited=False)

    workshop.narrator.meanwhile = fold_in
    assert await rebuild(workshop) is None

    assert len(workshop.narrator.asked) == 1
    assert await workshop.told() == ids(1, 3)


async def test_a_persons_words_that_come_meanwhile_stay(workshop: Workshop) -> None:
    await told_wrong(workshop, 3)

    async def edit() -> None:
        await put(workshop, "My own words.", edited=True)

    workshop.narrator.meanwhile = edit
    assert await rebuild(workshop) is None

    assert (await texts(workshop))[0] == "My own words."


async def test_of_messages_that_change_meanwhile_it_is_made_again(workshop: Workshop) -> None:
    await told_wrong(workshop, 3)
    words = Summary(text="", version=0)

    async def rewind() -> None:
        await workshop.commit(record("x9", draft("x9", 0), superseded=("x3.0", "x3.1")))
        assert await workshop.store.put_summary(workshop.key, words, 0, None)

    workshop.narrator.meanwhile = rewind
    assert await rebuild(workshop) is None

    assert len(workshop.narrator.asked) == 2
    assert markers((await texts(workshop))[0]) == await workshop.told() == ids(1, 2)


async def test_where_all_versions_are_forgotten_meanwhile_there_is_nothing_to_replace(
    workshop: Workshop,
) -> None:
    await told_wrong(workshop, 3)

    async def forget() -> None:
        await workshop.store.drop_summaries(workshop.key)

    workshop.narrator.meanwhile = forget
    assert await rebuild(workshop) is None

    assert await texts(workshop) == []


async def test_where_nothing_waits_it_stays_as_it_is(workshop: Workshop) -> None:
    await workshop.talk(1, 1)
    words = Summary(text="My own words.", version=0, edited=True)
    assert await workshop.store.put_summary(workshop.key, words, 0, None)

    assert await rebuild(workshop) is None

    assert await texts(workshop) == ["My own words."]
    assert not workshop.narrator.asked
