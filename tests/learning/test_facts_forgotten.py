"""Forgetting what was learned from a session, or from one exchange of it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count as counter

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from proxy.learning.episodes import episode
from proxy.learning.evidence import Source
from proxy.learning.facts.claim import Claim, Op
from proxy.learning.facts.fact import FACTS, Fact, confirmed, limit_sources, with_expiry
from proxy.learning.facts.rules import apply_claims
from proxy.learning.facts.store import without_sources
from proxy.learning.kinds import Kinds
from proxy.learning.profile import document as profile
from proxy.recall.query.dates import DAY
from proxy.settings.learned import FactsSettings
from tests.support.learning.harness import KAI, MAY, Harness, answer, learning, operation

PLAIN = FactsSettings()


async def test_what_is_from_that_session_alone_is_deleted(harness: Harness) -> None:
    await harness.say("I live in Berlin.")
    await harness.learn()
    (told,) = await harness.forgetting.forget(KAI, "s", None, False)
    assert (told.kind, told.action, told.text) == ("fact", "deleted", "The user lives in Berlin.")
    assert await harness.facts() == []
    assert (await harness.fact_store.card(KAI)).lines == ()


async def test_what_other_sessions_said_as_well_loses_a_source(harness: Harness) -> None:
    await harness.say("I live in Berlin.")
    await harness.learn()
    await harness.say("I live in Berlin.", session="other", at=MAY + DAY)
    await harness.learn("other")
    (told,) = await harness.forgetting.forget(KAI, "s", None, False)
    assert told.action == "source_removed"
    (fact,) = await harness.facts()
    assert [source.session for source in fact.sources] == ["other"]
    assert fact.valid_from == fact.last_confirmed == MAY + DAY


async def test_what_was_superseded_because_of_it_is_current_again(harness: Harness) -> None:
    await harness.say("I live in Berlin.", session="old")
    await harness.learn("old")
    await harness.say("I moved to Paris.", at=MAY + DAY)
    await harness.learn()
    told = await harness.forgetting.forget(KAI, "s", None, False)
    assert {(each.action, each.text) for each in told} == {
        ("deleted", "The user lives in Paris."),
        ("restored", "The user lives in Berlin."),
    }
    (fact,) = await harness.facts()
    assert (fact.state, fact.superseded_by, fact.superseded_in) == ("current", None, None)
    assert [line.id for line in (await harness.fact_store.card(KAI)).lines] == [fact.id]


async def test_what_is_current_again_stands_there_once(harness: Harness) -> None:
    """It was said again meanwhile, and noted anew; it comes back once that is forgotten too."""
    told = (
        operation(text="The user lives in Bonn.", quote="I live in Bonn"),
        operation("supersede", fact=1, text="The user has left Bonn.", quote="I left Bonn"),
        operation(text="The user lives in Bonn.", quote="I live in Bonn"),
    )
    for n, noted in enumerate(told):
        await harness.say(f"{noted['quote']}.", session=f"s{n}", at=MAY + n * DAY)
        harness.model.answers = [answer(noted)]
        await harness.learn(f"s{n}")
    (first,) = (fact for fact in await harness.facts() if fact.superseded_by)
    for session in ("s1", "s2"):
        await harness.forgetting.forget(KAI, session, None, False)
        assert await harness.current() == ["The user lives in Bonn."]
    assert [fact.id for fact in await harness.facts()] == [first.id]


async def test_in_a_row_of_three_the_first_is_superseded_by_the_last(harness: Harness) -> None:
    for day, (session, city) in enumerate([("a", "Berlin"), ("b", "Paris"), ("c", "Rome")]):
        await harness.say(f"I moved to {city}.", session=session, at=MAY + day * DAY)
        await harness.learn(session)
    await harness.forgetting.forget(KAI, "b", None, False)
    berlin, rome = await harness.facts()
    assert (berlin.superseded_by, rome.state) == (rome.id, "current")


async def test_only_one_exchange_is_forgotten_and_not_learned_again(harness: Harness) -> None:
    first, _ = await harness.say("I live in Berlin.", "I have nothing to say.")
    await harness.learn()
    await harness.forgetting.forget(KAI, "s", first, False)
    assert await harness.facts() == []
    await harness.say("Well, I live in Rome.")
    await harness.learn()
    assert await harness.current() == ["The user lives in Rome."]
    assert "Berlin" not in harness.model.asked[-1].text


async def test_an_exchange_that_was_not_read_yet_is_passed_over(harness: Harness) -> None:
    first, _ = await harness.say("I live in Berlin.", "I like soup.")
    await harness.forgetting.forget(KAI, "s", first, False)
    await harness.learn()
    assert "Berlin" not in harness.model.asked[-1].text and "soup" in harness.model.asked[-1].text


async def test_a_rehearsal_changes_nothing(harness: Harness) -> None:
    await harness.say("I live in Berlin.")
    await harness.learn()
    before = await harness.store.items(KAI, (), None, 100)
    (told,) = await harness.forgetting.forget(KAI, "s", None, True)
    assert told.action == "deleted"
    assert await harness.store.items(KAI, (), None, 100) == before


async def test_what_a_person_has_edited_stays_without_its_source(harness: Harness) -> None:
    await harness.say("I live in Berlin.")
    await harness.learn()

    def edit(facts: dict[str, Fact]) -> None:
        for id, fact in list(facts.items()):
            facts[id] = replace(fact, text="The user lives in Bern.", edited=True)

    await harness.fact_store.change(KAI, edit)
    (told,) = await harness.forgetting.forget(KAI, "s", None, False)
    assert told.action == "source_removed"
    (fact,) = await harness.facts()
    assert (fact.text, fact.sources) == ("The user lives in Bern.", ())


async def test_a_better_wording_goes_with_the_session_that_gave_it(harness: Harness) -> None:
    await harness.say("I live in Berlin.", session="old")
    await harness.learn("old")
    await harness.say("I live in Berlin, in Kreuzberg.", at=MAY + DAY)
    quote = "I live in Berlin, in Kreuzberg"
    better = operation("update", fact=1, text="The user lives in Kreuzberg.", quote=quote)
    harness.model.answers = [answer(better)]
    await harness.learn()
    assert await harness.current() == ["The user lives in Kreuzberg."]
    await harness.forgetting.forget(KAI, "s", None, False)
    assert [fact.text for fact in await harness.facts()] == ["The user lives in Berlin."]
    assert await harness.current() == ["The user lives in Berlin."]


async def test_a_confirmation_that_is_forgotten_no_longer_moves_the_end(harness: Harness) -> None:
    harness.settings = learning(expire_days=10)
    await harness.say("I live in Berlin.", session="old")
    await harness.learn("old")
    await harness.say("I live in Berlin.", at=MAY + DAY)
    await harness.learn()
    assert [fact.expires_at for fact in await harness.facts()] == [MAY + 11 * DAY]
    await harness.forgetting.forget(KAI, "s", None, False)
    assert [fact.expires_at for fact in await harness.facts()] == [MAY + 10 * DAY]


async def test_other_users_and_sessions_lose_nothing(harness: Harness) -> None:
    await harness.say("I live in Berlin.")
    await harness.learn()
    assert await harness.forgetting.forget(KAI, "never", None, False) == []
    assert await harness.forgetting.forget(KAI._replace(user="eve"), "s", None, False) == []
    assert await harness.current() == ["The user lives in Berlin."]


def test_at_most_ten_sources_are_kept_and_those_of_most_sessions() -> None:
    source = Source(session="a", message="0", exchange="0", at=0.0)
    fact = with_expiry(Fact(id="f", text="x", sources=(source,)), PLAIN)
    for n in range(1, 40):
        session = "b" if n % 3 else f"c{n}"
        again = Source(session=session, message=str(n), exchange=str(n), at=float(n))
        fact = confirmed(fact, again, PLAIN)
    assert len(fact.sources) == 10 and fact.last_confirmed == 39.0
    assert len({each.session for each in fact.sources}) > 7
    assert limit_sources(fact.sources) == fact.sources


# As if it had never been read

SESSIONS = "abc"
SLOTS = {"home": ("Berlin", "Paris", "Rome"), "job": ("baker", "pilot"), "pet": ("dog", "cat")}

statements = st.lists(
    st.tuples(
        st.sampled_from(SESSIONS),
        st.sampled_from([(slot, value) for slot, values in SLOTS.items() for value in values]),
    ),
    max_size=14,
)


def learned_of(
    said: Sequence[tuple[str, tuple[str, str]]], times: Sequence[int]
) -> dict[str, Fact]:
    """What a model that makes no mistakes makes of statements, one request each."""
    facts: dict[str, Fact] = {}
    number = counter()
    for time, (session, (slot, value)) in zip(times, said, strict=True):
        current = [fact for fact in facts.values() if fact.state == "current"]
        former = next((fact.id for fact in current if slot in fact.text), None)
        op: Op = "supersede" if former else "add"
        source = Source(session=session, message=f"{time}", exchange=f"{time}", at=float(time))
        claim = Claim(op, f"The {slot} is {value}.", "user", "current", 0.0, None, source, former)
        facts = apply_claims(facts, [claim], PLAIN, lambda: f"f{next(number)}", 1000.0)
    return facts


def current(facts: dict[str, Fact]) -> list[str]:
    return sorted(fact.text for fact in facts.values() if fact.state == "current")


@given(statements, st.sampled_from(SESSIONS))
def test_after_forgetting_all_is_as_if_the_session_had_never_been_read(
    said: list[tuple[str, tuple[str, str]]], gone: str
) -> None:
    left = without_sources(
        learned_of(said, range(len(said))), lambda source: source.session == gone
    )
    for fact in left.values():
        sources = [*fact.sources, *fact.inherited]
        sources += [fact.superseded_in] if fact.superseded_in else []
        assert all(source.session != gone for source in sources)
        assert fact.superseded_by is None or fact.superseded_by in left
    others = [(time, each) for time, each in enumerate(said) if each[0] != gone]
    times, kept = [time for time, _ in others], [each for _, each in others]
    assert current(left) == current(learned_of(kept, times))


@given(statements, st.permutations(SESSIONS))
def test_forgetting_everything_leaves_nothing(
    said: list[tuple[str, tuple[str, str]]], order: list[str]
) -> None:
    facts = learned_of(said, range(len(said)))
    for session in order:
        facts = without_sources(facts, lambda source, gone=session: source.session == gone)  # type: ignore[misc]
    assert facts == {}


def test_all_features_that_read_sessions_are_known() -> None:
    assert {FACTS, profile.FEATURE, episode.FEATURE} <= set(Kinds().reading)
