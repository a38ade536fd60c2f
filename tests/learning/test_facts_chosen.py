"""Which facts go into a prompt, and how they are written there."""

from __future__ import annotations

import timeit
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.chat.blocks import block
from proxy.gateway.context import ProfileRules
from proxy.learning.facts.card import NOTE, FactCard, build_card, read_card, render_fact
from proxy.learning.facts.fact import Fact
from proxy.learning.kinds import FACTS, Kind
from proxy.learning.learned import PromptCards
from proxy.learning.prompt_cards import (
    Block,
    Cards,
    TokenBudget,
    card_cache,
    card_place,
    render_block,
)
from proxy.learning.similarity import QueryText
from proxy.memory.items import Change, ItemOwner, OwnedPlace
from proxy.memory.model import Recalled
from proxy.recall.text_cache import clear_text_caches
from proxy.settings import ProfileSettings
from proxy.stores.open import Backend
from tests.support.learning.harness import DAY, MAY, Harness, block_of, count, learning

NOW = MAY + 100 * DAY


def fact(number: int, text: str, **fields: Any) -> Fact:
    at = MAY + number * DAY
    known: dict[str, Any] = {"valid_from": at, "last_confirmed": at, **fields}
    return Fact(id=f"fact_{number:03}", text=text, **known)


def chosen(
    facts: list[Fact], query: str = "", most: int = 300, budget: int = 10_000, now: float = NOW
) -> Block | None:
    card = msgspec.json.encode(build_card(facts, FactCard(), count, MAY))
    asked = QueryText(query, now)
    return block_of(FACTS, card, learning(max_tokens=most), asked, budget, now)


def ids(found: Block | None) -> list[str]:
    return [source.message for source in found.sources] if found else []


def test_facts_are_written_in_the_order_since_when_they_hold() -> None:
    found = chosen([fact(2, "The user has a dog."), fact(1, "The user lives in Berlin.")])
    assert found is not None
    assert found.lines == (
        "- The user lives in Berlin. (noted 2023-05-09)\n- The user has a dog. (noted 2023-05-10)"
    )
    assert (found.kind, found.note) == ("facts", NOTE)
    assert found.tokens == count(block("facts", NOTE, found.lines) + "\n\n")
    assert found.sources[0] == Recalled(
        kind="fact", message="fact_001", session="", seq=0, tokens=found.sources[0].tokens
    )


def test_all_facts_go_in_if_they_fit_whatever_is_asked() -> None:
    facts = [fact(n, f"The user has boat number {n}.") for n in range(8)]
    assert ids(chosen(facts, "Hello!")) == ids(chosen(facts, "boat 3")) == [f.id for f in facts]


def test_of_too_many_those_go_in_that_the_question_is_about() -> None:
    facts = [fact(n, f"The user has {n} cats at home.") for n in range(60)]
    facts[7] = fact(7, "The user owns a sailing boat called Marlin.")
    facts[11] = fact(11, "The user is afraid of sharks.")
    found = ids(chosen(facts, "Can I take my boat out among sharks?", most=150))
    assert {"fact_007", "fact_011"} <= set(found)
    assert found == sorted(found) and "fact_059" in found and "fact_001" not in found


def test_without_any_word_in_common_the_newest_go_in() -> None:
    facts = [fact(n, f"The user has {n} cats at home.") for n in range(60)]
    found = ids(chosen(facts, "Hello!", most=150))
    assert found == [f.id for f in facts[-len(found) :]] and 2 < len(found) < 12


def test_facts_about_others_go_in_only_if_they_are_asked_about() -> None:
    facts = [
        fact(1, "The user lives in Berlin."),
        fact(2, "Dislikes football.", about="Jack, a friend"),
    ]
    assert ids(chosen(facts, "What shall I cook?")) == ["fact_001"]
    assert ids(chosen(facts, "What does Jack like?")) == ["fact_001", "fact_002"]
    assert ids(chosen(facts, "Who dislikes football?")) == ["fact_001", "fact_002"]


def test_a_line_says_whom_it_is_about_where_the_text_does_not() -> None:
    assert render_fact(fact(0, "Dislikes football.", about="Jack, a friend")) == (
        "- Jack, a friend: Dislikes football. (noted 2023-05-08)"
    )
    assert render_fact(fact(0, "Jack dislikes football.", about="Jack, a friend")) == (
        "- Jack dislikes football. (noted 2023-05-08)"
    )


def test_what_does_not_hold_is_not_on_the_card() -> None:
    facts = [
        fact(1, "a", state="superseded"),
        fact(2, "b", state="quarantined"),
        fact(3, "c", expires_at=MAY - 1),
        fact(4, "d", expires_at=NOW - 1),
        fact(5, "e"),
    ]
    assert [line.id for line in build_card(facts, FactCard(), count, MAY).lines] == [
        "fact_004",
        "fact_005",
    ]
    assert ids(chosen(facts)) == ["fact_005"]
    assert chosen(facts[:4]) is None


def test_a_card_takes_over_what_the_one_before_knew() -> None:
    facts = [fact(n, f"The user has {n} boats.") for n in range(5)]
    before = build_card(facts[:4], FactCard(), count, MAY)

    def counted_once(text: str) -> int:
        assert "4 boats" in text
        return count(text)

    assert build_card(facts, before, counted_once, MAY) == build_card(facts, FactCard(), count, MAY)


texts = st.lists(st.text(alphabet="abc dog boat 北京", min_size=1, max_size=60), max_size=30)


@given(texts, st.integers(0, 400), st.integers(1, 400), st.text(max_size=40))
def test_a_block_is_never_more_than_it_may_be(
    said: list[str], budget: int, most: int, query: str
) -> None:
    facts = [fact(n, text) for n, text in enumerate(said)]
    found = chosen(facts, query, most, budget)
    if found is not None:
        assert found.lines and found.tokens <= min(budget, most)
        assert found.tokens == count(render_block(found.kind, found.note, found.lines))


def test_a_block_that_costs_more_than_was_estimated_still_fits() -> None:
    facts = [fact(n, f"The user has {n} cats at home.") for n in range(8)]
    card = msgspec.json.encode(build_card(facts, FactCard(), lambda text: 1, MAY))
    found = block_of(FACTS, card, learning(max_tokens=100), QueryText("cats", NOW), 100, NOW)
    assert found is not None and found.tokens <= 100


@pytest.mark.parametrize(("number", "most_ms"), [(30, 0.1), (500, 2.0)])
def test_choosing_is_fast(number: int, most_ms: float) -> None:
    facts = [fact(n, f"The user has {n} cats, boats and dogs at home.") for n in range(number)]
    card = msgspec.json.encode(build_card(facts, FactCard(), count, MAY))
    settings = learning(max_tokens=800)
    asked = QueryText("Which boats do I have, and where is my dog in Berlin?", NOW)
    times = timeit.repeat(
        lambda: block_of(FACTS, card, settings, asked, 10_000, NOW), number=5, repeat=5
    )
    assert min(times) / 5 * 1000 < 5 * most_ms  # slack for a busy machine


# Put together


KAI_CARD = OwnedPlace(ItemOwner("t", "kai"), card_place("kai", "facts"))


def fixed(name: str, *, shared: bool = False) -> Kind:
    """A kind whose block has one line, and takes what it may."""

    def where(tenant: str, user: str | None, profile: ProfileSettings) -> OwnedPlace | None:
        if shared:
            return OwnedPlace(ItemOwner(tenant), KAI_CARD.place._replace(namespace=(name,)))
        return (
            OwnedPlace(ItemOwner(tenant, user), KAI_CARD.place._replace(key=name)) if user else None
        )

    def choose(
        card: bytes, profile: ProfileSettings, query: QueryText, room: TokenBudget
    ) -> Block | None:
        return Block(name, "", card.decode(), 40) if room.tokens >= 40 else None

    return Kind(
        name=name, memory=name, rank=0, shared=shared, values={}, card_place=where, choose=choose
    )


ON = {"enabled": True, "max_tokens": 300}
SETTINGS = ProfileSettings.model_validate(
    {"instructions": ON, "profile": ON, "facts": ON, "episodes": ON}
)


async def put(store: Backend, where: OwnedPlace | None) -> None:
    assert where is not None
    namespace, key = where.place
    assert await store.change_items(
        where.owner, [Change(namespace=namespace, key=key, value=b"{}")]
    )


async def test_parts_take_from_the_budget_in_their_order(store: Backend) -> None:
    settings = SETTINGS
    parts = [fixed("instructions", shared=True), fixed("profile"), fixed("episodes")]
    for part in parts:
        await put(store, part.card_place("t", "kai", settings))
    file = PromptCards(store, parts, lambda: NOW)
    cards = await file.look("t", "kai", settings)
    assert set(cards.found) == {"instructions", "profile", "episodes"}
    all_of_it = file.choose(cards, "hi", 1000, count)
    assert len(all_of_it.head) == 1 and all_of_it.tokens == 120
    assert [part.kind for part in all_of_it.tail] == ["profile", "episodes"]
    less = file.choose(cards, "hi", 80, count)
    assert [part.kind for part in less.tail] == ["profile"] and less.tokens == 80
    assert not file.choose(cards, "hi", 0, count)


async def test_without_a_user_only_the_tenants_own_is_looked_at(store: Backend) -> None:
    settings = SETTINGS
    parts = [fixed("instructions", shared=True), fixed("profile")]
    for part in parts:
        await put(store, part.card_place("t", "kai", settings))
    cards = await PromptCards(store, parts, lambda: NOW).look("t", None, settings)
    assert set(cards.found) == {"instructions"}


async def test_what_is_switched_off_is_not_looked_at(store: Backend) -> None:
    file = PromptCards(store, [FACTS], lambda: NOW)
    assert ProfileRules.of(learning()).learns and not ProfileRules.of(ProfileSettings()).learns
    assert (await file.look("t", "kai", ProfileSettings())).found == {}
    assert not file.choose(Cards(learning()), "hi", 1000, count)


async def test_what_was_learned_is_found_on_the_card(harness: Harness) -> None:
    await harness.say("I live in Berlin.")
    await harness.learn()
    file = PromptCards(harness.store, [FACTS], harness.clock)
    cards = await file.look("t", "kai", harness.settings)
    assert len(read_card(cards.found["facts"]).lines) == 1
    known = file.choose(cards, "Where do I live?", 1000, count)
    assert [part.lines for part in known.tail] == ["- The user lives in Berlin. (noted 2023-05-08)"]
    for tenant, user in (("t", "eve"), ("other", "kai")):
        assert not (await file.look(tenant, user, harness.settings)).found


def test_a_card_is_read_once_for_all_turns_and_forgotten_when_something_is_erased(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reads: list[bytes] = []

    def counted(card: bytes) -> FactCard:
        reads.append(card)
        return read_card(card)

    monkeypatch.setattr("proxy.learning.facts.card.read_card", counted)
    clear_text_caches()
    facts = [fact(1, "The user lives in Berlin."), fact(2, "The user has a dog.")]
    for query in ("Where do I live?", "What animal do I have?"):
        assert len(ids(chosen(facts, query, most=60))) == 1
    assert len(reads) == 1
    clear_text_caches()
    chosen(facts)
    assert len(reads) == 2


def test_a_very_large_card_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.learning.prompt_cards.MAX_CACHED_BYTES", 10)
    reads: list[bytes] = []
    read = card_cache(lambda card: reads.append(card))
    for card in (b"small", b"larger than that"):
        read(card)
        read(card)
    assert reads == [b"small", b"larger than that", b"larger than that"]
