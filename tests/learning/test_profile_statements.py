"""A profile is what was said last of each thing, however it was read: in whatever order and with
whatever else, said once more or taken back, and when some of it is forgotten."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import product
from random import Random
from typing import Any, NamedTuple, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from proxy.learning.evidence import Source, UserMessage, source_of
from proxy.learning.profile.document import (
    MAX_OPERATIONS,
    MAX_VERSIONS,
    Schema,
    Statement,
    Version,
    Way,
    patch_of_merge,
)
from proxy.learning.profile.proposal import ProfileChange
from proxy.learning.profile.proposal_check import MAX_STATEMENTS, ReviewContext, accept_proposal
from proxy.learning.profile.replay import merge_versions, replayed
from proxy.learning.profile.statement import MAX_IDLE, MAX_REPEATS, limit_idle, with_idle_statements
from proxy.learning.profile.times import last_said_times
from proxy.memory_api.people.profiles import version_object
from tests.support.learning import environment
from tests.support.learning.environment import Env, adding, version_of
from tests.support.learning.harness import DAY, KAI, MAY, Harness


class Told(NamedTuple):
    way: Way
    key: str
    value: str

    @property
    def change(self) -> ProfileChange:
        return ProfileChange(
            self.way, self.key, self.value, f"I {self.way} {self.value or self.key}"
        )


TOLD = [
    *(Told("set", "home", city) for city in ("Bonn", "Berlin", "Kiel")),
    Told("remove", "home", ""),
    *(Told(way, "hobbies", hobby) for hobby in ("golf", "tea") for way in ("append", "remove")),
    Told("set", "place.street", "Mill Road"),
]

TALKS = st.lists(st.sampled_from(list(product(TOLD, range(3)))), unique=True, max_size=12)
"""What is said, one after the other; each of it three times at most."""


def said_at(told: Told, at: int) -> UserMessage:
    return UserMessage(f"m{at}", "e", 1, f"{told.change.quote}.", float(at), session=f"s{at}")


def read(known: list[Version], batch: Iterable[tuple[int, Told]], chance: Random) -> list[Version]:
    """The versions after a faithful model has read a batch, which says all of it in any order."""
    batch = sorted(batch)
    proposal = list(dict.fromkeys(told.change for _, told in batch))
    chance.shuffle(proposal)
    said = [said_at(told, at) for at, told in batch]
    held = known[-1] if known else Version(version=0, document={})
    made = accept_proposal(
        tuple(proposal), held.document, ReviewContext(said, Schema(), last_said_times(known))
    )
    if made.patch or not known:
        return [*known, version_of(held.version + 1, made)]
    return [*known[:-1], with_idle_statements(held, made.statements)]


KAI_IS = Version(
    version=1,
    document={"name": "Kai"},
    patch=({"op": "add", "path": "/name", "value": "Kai"},),
    origin="edited",
    created_at=-1.0,
)


def as_told(talk: Iterable[tuple[int, Told]], known: Sequence[Version]) -> dict[str, Any]:
    """What all is known then that was told behind these versions."""
    document = shown(known)
    hobbies = dict[str, str]()
    for _, told in sorted(talk):
        if told.key == "hobbies":
            hobbies[told.value] = told.way
        elif told.key == "home" and told.way == "remove":
            document.pop("home", None)
        elif told.key == "home":
            document["home"] = told.value
        else:
            document["place"] = {"street": told.value}
    held = sorted(hobby for hobby, way in hobbies.items() if way == "append")
    return document | ({"hobbies": held} if held else {})


def shown(versions: Sequence[Version]) -> dict[str, Any]:
    document = dict(versions[-1].document) if versions else {}
    hobbies = sorted(document.pop("hobbies", []))
    return document | ({"hobbies": hobbies} if hobbies else {})


def batches(talk: Sequence[tuple[int, Told]], chance: Random) -> Iterable[list[tuple[int, Told]]]:
    """All that was said, in an order of arrival, cut anywhere."""
    left = list(talk)
    chance.shuffle(left)
    while left:
        size = chance.randint(1, 4)
        yield left[:size]
        left = left[size:]


def all_read(
    talk: Sequence[tuple[int, Told]], chance: Random, known: Sequence[Version]
) -> list[Version]:
    versions = list(known)
    for batch in batches(talk, chance):
        versions = read(versions, batch, chance)
    return versions


@given(
    TALKS, st.randoms(), st.sets(st.integers(0, 11), max_size=3), st.sampled_from([[KAI_IS], []])
)
def test_what_was_said_last_holds_and_what_is_forgotten_was_never_said(
    told: list[tuple[Told, int]], chance: Random, forgotten: set[int], known: list[Version]
) -> None:
    talk = [(at, each) for at, (each, _) in enumerate(told)]
    versions = all_read(talk, chance, known)
    assert shown(versions) == as_told(talk, known)
    assert replayed(versions, lambda source: False) == versions
    left = replayed(versions, lambda source: source.at in forgotten)
    heard = [(at, each) for at, each in talk if at not in forgotten]
    assert shown(left) == as_told(heard, known)
    assert replayed(left, lambda source: source.at in forgotten) == left
    assert not any(each.source.at in forgotten for version in left for each in version.said)
    assert not any(each.at in forgotten for version in left for each in version.all_sources)


@given(TALKS, st.randoms(), st.integers(0, 11), st.integers(1, 9))
def test_what_else_was_said_of_folded_versions_holds_when_some_of_it_is_forgotten(
    told: list[tuple[Told, int]], chance: Random, forgotten: int, folds: int
) -> None:
    talk = [(at, each) for at, (each, _) in enumerate(told)]
    versions = all_read(talk, chance, [KAI_IS])
    for _ in range(min(folds, len(versions) - 1)):
        versions = [merge_versions(versions[0], versions[1]), *versions[2:]]
    assert shown(versions) == as_told(talk, [KAI_IS])
    left = replayed(versions, lambda source: source.at == forgotten)
    named = [each.value for at, each in talk if at != forgotten]
    document = shown(left)
    assert {*document.get("hobbies", []), document.get("home", "Kai")} <= {*named, "Kai"}
    assert replayed(left, lambda source: source.at == forgotten) == left


def statement(way: Way, key: str, value: object, at: float, operations: int = 0) -> Statement:
    source = Source(session="s", message=f"m{at}", exchange="e", at=at)
    return Statement(way=way, path=f"/{key}", value=value, source=source, operations=operations)


def test_of_what_changes_nothing_the_newest_is_kept_and_all_that_changed_something() -> None:
    first = statement("set", "home", "Bonn", 0.0, operations=1)
    again = [statement("set", "home", "Bonn", float(at)) for at in range(9, 0, -1)]
    assert limit_idle([first, *again]) == (first, *again[:MAX_REPEATS])
    many = [statement("remove", "hobbies", f"hobby {at}", float(at)) for at in range(100)]
    assert limit_idle([first, *many]) == (first, *many[-MAX_IDLE:])


def test_what_is_no_more_stays_so_when_all_that_was_known_is_forgotten() -> None:
    golf = {way: Told(way, "hobbies", "golf") for way in get_args(Way)}
    versions = read([], [(1, Told("set", "home", "Bonn")), (9, golf["remove"])], Random(0))
    left = replayed(versions, lambda source: source.at == 1)
    assert shown(left) == {} and len(left) == 1
    assert shown(read(left, [(5, golf["append"])], Random(0))) == {}
    assert replayed(left, lambda source: source.at == 9) == []


@pytest.mark.parametrize(
    ("older", "home"), [("Berlin", "Berlin"), ("Bonn", "Kiel"), ("bonn ", "Kiel")]
)
def test_a_text_that_was_taken_back_before_it_is_known_does_not_come(older: str, home: str) -> None:
    """Whatever else was said in between does."""
    held = replace(KAI_IS, document={"name": "Kai", "home": "Kiel"})
    known = [with_idle_statements(held, [statement("remove", "home", "Bonn", 9.0)])]
    change = ProfileChange("set", "home", older, "I live there")
    said = UserMessage("m", "e", 1, f"{older}: I live there", 5.0)
    grounds = ReviewContext([said], Schema(), last_said_times(known))
    assert accept_proposal((change,), held.document, grounds).document["home"] == home


@pytest.mark.parametrize(
    ("texts", "places"),
    [
        (["I live in Bonn", "I live in Kiel"], [1]),
        (["I live in Kiel", "I live in Bonn", "in kiel I live in the north"], [0, 2]),
        (["I live in Kiel"] * 5, [2, 3, 4]),
    ],
)
def test_words_of_several_messages_are_from_those_that_name_the_value(
    texts: list[str], places: list[int]
) -> None:
    said = [
        UserMessage(f"m{n}", "e", n, text, float(n), session="s") for n, text in enumerate(texts)
    ]
    change = ProfileChange("set", "home", "Kiel", "I live in")
    made = accept_proposal((change,), {}, ReviewContext(said, Schema(), {}))
    assert [each.source for each in made.statements] == [source_of(said[place]) for place in places]
    assert [each.operations for each in made.statements] == [1, *[0] * (len(places) - 1)]


@pytest.mark.parametrize(("way", "left"), [("append", ["tea", "golf"]), ("remove", ["tea"])])
def test_of_several_values_in_one_change_each_goes_by_itself(way: Way, left: list[str]) -> None:
    """Of one of them something was said later: the others come, or go, all the same."""
    held = ["tea"] if way == "append" else ["golf", "tea"]
    known = [with_idle_statements(KAI_IS, [statement("append", "hobbies", "tea", 9.0)])]
    change = ProfileChange(way, "hobbies", ["golf", "tea"], "golf and tea")
    grounds = ReviewContext(
        [UserMessage("m", "e", 1, "golf and tea", 5.0)], Schema(), last_said_times(known)
    )
    made = accept_proposal((change,), {"hobbies": held}, grounds)
    assert made.document["hobbies"] == left
    assert [(each.value, bool(each.operations)) for each in made.statements] == [
        (["golf"] if way == "append" else "golf", True),
        (["tea"] if way == "append" else "tea", False),
    ]


def test_one_answer_changes_only_so_much() -> None:
    said = [UserMessage("m", "e", 1, "so many hobbies", 5.0)]
    many = [f"hobby {n}" for n in range(90)]
    changes = [ProfileChange("append", f"list {n}", many, "so many") for n in range(50)]
    made = accept_proposal(tuple(changes), {}, ReviewContext(said, Schema(), {}))
    assert len(made.patch) <= MAX_OPERATIONS + 1
    assert len(made.statements) <= MAX_STATEMENTS


# On the shelf


@pytest.fixture
def env(harness: Harness) -> Env:
    harness.settings = environment.settings(profile={})
    return Env(harness)


FIVE = {
    "home": ("set", "Kiel", "I live in Kiel"),
    "work": ("set", "baker", "I work as a baker"),
    "hobbies": ("append", "chess", "I play chess"),
    "family": ("append", "Lina", "my sister Lina"),
    "goals": ("append", "learn Greek", "I want to learn Greek"),
}


def answer(**five: tuple[str, str, str]) -> str:
    found: dict[str, list[dict[str, str]]] = {"set": [], "append": [], "remove": []}
    for key, (way, value, quote) in five.items():
        found[way].append({"key": key, "value": value, "quote": quote})
    return json.dumps(found)


async def test_of_one_batch_only_what_is_forgotten_goes(env: Env) -> None:
    exchanges = await env.harness.say(*(quote for _, _, quote in FIVE.values()))
    env.answers(answer(**FIVE))
    await env.harness.learn()
    (version,) = await env.learned.profiles.all_versions(KAI)
    shown = version_object(version)
    assert [source.exchange_id for source in shown.sources] == exchanges
    (told,) = await env.forget("s", exchanges[-1])
    assert (told.id, told.text) == ("profile_1", 'add /goals: []; add /goals/-: "learn Greek"')
    assert await env.document() == {
        "home": "Kiel",
        "work": "baker",
        "hobbies": ["chess"],
        "family": ["Lina"],
    }
    await env.forget("s", exchanges[0])
    assert "home" not in await env.document() and "hobbies" in await env.document()


async def test_what_is_said_once_more_is_no_version_and_stays_when_the_first_is_forgotten(
    env: Env,
) -> None:
    home = answer(home=FIVE["home"])
    for n, session in enumerate(("first", "again")):
        await env.harness.say("I live in Kiel.", session=session, at=MAY + n * DAY)
        env.answers(home)
        await env.harness.learn(session)
    before = await env.learned.profiles.current(KAI)
    assert before.value.kept == (1,)
    assert await env.forget("again", dry_run=True) == []
    assert await env.forget("first") == [], "it is known from the other one as well"
    assert await env.document() == {"home": "Kiel"}
    (version,) = await env.learned.profiles.all_versions(KAI)
    assert [source.session for source in version.all_sources] == ["again"]
    assert len(await env.forget("again")) == 1 and await env.document() == {}


async def test_what_was_given_up_before_anything_is_known_does_not_come_with_older_words(
    env: Env,
) -> None:
    """Nor does it stay given up when nobody has said so any more."""
    late, early = ("remove", "golf", "I gave up golf"), ("append", "golf", "I play golf")
    for session, told, at in (("late", late, MAY), ("early", early, MAY - DAY)):
        await env.harness.say(f"{told[2]}.", session=session, at=at)
        env.answers(answer(hobbies=told))
        await env.harness.learn(session)
    assert await env.document() == {}
    (version,) = await env.learned.profiles.all_versions(KAI)
    assert [each.source.session for each in version.said] == ["late", "early"]
    await env.forget("late")
    assert await env.document() == {"hobbies": ["golf"]}
    await env.forget("early")
    assert await env.learned.profiles.all_versions(KAI) == []


async def test_nothing_stays_of_what_was_only_said_once_more(env: Env) -> None:
    for session in ("first", "again"):
        await env.harness.say("I live in Kiel.", session=session)
        env.answers(answer(home=FIVE["home"]))
        await env.harness.learn(session)
    await env.forget("again")
    (version,) = await env.learned.profiles.all_versions(KAI)
    assert [each.source.session for each in version.said] == ["first"]


async def test_what_a_person_edits_stays_when_what_was_said_behind_it_is_forgotten(
    env: Env,
) -> None:
    await env.learn_from("I live in Kiel.", answer(home=FIVE["home"]), session="s")
    edit = [{"op": "add", "path": "/hobbies", "value": ["chess"]}]
    await env.learned.profiles.edit(KAI, lambda document: edit, Schema())
    await env.learn_from("I play chess.", answer(hobbies=FIVE["hobbies"]), session="t")
    await env.forget("t")
    assert await env.document() == {"home": "Kiel", "hobbies": ["chess"]}
    await env.forget("s")
    assert await env.document() == {"hobbies": ["chess"]}


async def test_a_profile_rolled_back_goes_without_what_is_forgotten_and_nothing_else(
    env: Env,
) -> None:
    exchanges = await env.harness.say(*(quote for _, _, quote in FIVE.values()))
    env.answers(answer(**FIVE))
    await env.harness.learn()
    wipe = [{"op": "remove", "path": f"/{key}"} for key in FIVE]
    await env.learned.profiles.edit(KAI, lambda document: wipe, Schema())
    await env.learned.profiles.roll_back(KAI, 1)
    await env.forget("s", exchanges[1])
    assert (await env.document()).keys() == FIVE.keys() - {"work"}


async def test_a_profile_stays_rolled_back_in_whatever_order_what_was_undone_is_forgotten(
    env: Env,
) -> None:
    await env.learned.profiles.edit(KAI, partial(patch_of_merge, merge={"name": "Kai"}), Schema())
    home = FIVE["home"]
    moved = ("remove", home[1], home[2])
    told = {"a": {"work": FIVE["work"]}, "b": {"home": home}, "c": {"home": moved}}
    for session, said in told.items():
        await env.learn_from(f"{next(iter(said.values()))[2]}.", answer(**said), session=session)
    await env.learned.profiles.roll_back(KAI, 1)
    for session in "ac":
        await env.forget(session)
        assert await env.document() == {"name": "Kai"}


async def test_a_receipt_names_only_what_is_lost(env: Env) -> None:
    for session, hobby in (("s", "golf"), ("t", "chess")):
        liking = answer(hobbies=("append", hobby, f"I play {hobby}"))
        await env.learn_from(f"I play {hobby}.", liking, session=session)
    told = await env.forget("s")
    assert [each.id for each in told] == ["profile_1"]
    assert await env.document() == {"hobbies": ["chess"]}


async def test_of_more_versions_than_are_kept_a_list_keeps_what_others_said(env: Env) -> None:
    for session, hobby in (("s", "golf"), ("t", "chess")):
        liking = answer(hobbies=("append", hobby, f"I play {hobby}"))
        await env.learn_from(f"I play {hobby}.", liking, session=session)
    for age in range(MAX_VERSIONS):
        aging = partial(patch_of_merge, merge={"age": age})
        await env.learned.profiles.edit(KAI, aging, Schema())
    await env.forget("s")
    assert await env.document() == {"hobbies": ["chess"], "age": MAX_VERSIONS - 1}


async def test_a_patch_as_a_whole_is_from_all_its_words_together(env: Env) -> None:
    await env.learn_from("I am Kai.", adding("/name", "Kai", "I am Kai"), session="s")
    item = (await env.learned.profiles.versions(KAI, 0, 1)).items[0]
    assert item.said == () and item.all_sources == item.sources
    assert "said" not in msgspec.json.decode(msgspec.json.encode(item)), "as it ever was stored"
    await env.learn_from("I live in Kiel.", answer(home=FIVE["home"]), session="t")
    await env.forget("s")
    assert await env.document() == {"home": "Kiel"}
