"""A profile without what was learned from one session, as if that had never been read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from proxy.learning.evidence import Source, is_from
from proxy.learning.profile.document import (
    MAX_VERSIONS,
    Document,
    Operation,
    Schema,
    Version,
    apply_patch,
    diff_patch,
    equal_json,
    patch_of_merge,
)
from proxy.learning.profile.replay import merge_versions, replayed
from proxy.memory.items import PEOPLE
from tests.support.learning import environment
from tests.support.learning.environment import Env, adding, patched
from tests.support.learning.harness import KAI, Harness
from tests.support.store.shelves import places


@pytest.fixture
def env(harness: Harness) -> Env:
    harness.settings = environment.settings(profile={})
    return Env(harness)


class Said(NamedTuple):
    """What somebody tells in a session."""

    session: str
    kind: str
    name: str
    value: str


SAYINGS = st.lists(
    st.builds(
        Said,
        st.sampled_from(["s", "t", "u"]),
        st.sampled_from(["is", "has no", "likes", "dislikes", "lives"]),
        st.sampled_from(["name", "city", "job"]),
        st.sampled_from(["a", "b", "c"]),
    ),
    max_size=12,
)


def patch_of(said: Said, document: Document) -> list[Operation]:
    """What a careful model makes of it."""
    home, likes = document.get("home", {}), document.get("likes", [])
    if said.kind == "is":
        op = "replace" if said.name in document else "add"
        return [{"op": op, "path": f"/{said.name}", "value": said.value}]
    if said.kind == "has no":
        return [{"op": "remove", "path": f"/{said.name}"}] if said.name in document else []
    if said.kind == "lives":
        if "home" not in document:
            return [{"op": "add", "path": "/home", "value": {said.name: said.value}}]
        op = "replace" if said.name in home else "add"
        return [{"op": op, "path": f"/home/{said.name}", "value": said.value}]
    if said.kind == "likes":
        if "likes" not in document:
            return [{"op": "add", "path": "/likes", "value": [said.value]}]
        return [{"op": "add", "path": "/likes/-", "value": said.value}]
    known = said.value in likes
    return [{"op": "remove", "path": f"/likes/{likes.index(said.value)}"}] if known else []


def source(session: str, exchange: str = "e") -> Source:
    return Source(session=session, message=f"{exchange}.0", exchange=exchange, at=1.0)


def learned(sayings: Iterable[Said]) -> list[Version]:
    """What says nothing new makes no version."""
    versions: list[Version] = []
    document: Document = {}
    for number, said in enumerate(sayings, 1):
        patch = patch_of(said, document)
        now = apply_patch(document, patch)
        if now != document:
            sources = (source(said.session),)
            document = now
            versions.append(
                Version(version=number, document=now, patch=tuple(patch), sources=sources)
            )
    return versions


def without(versions: Sequence[Version], session: str) -> list[Version]:
    return replayed(versions, is_from(session))


def last(versions: Sequence[Version]) -> Document:
    return versions[-1].document if versions else {}


def unordered(document: Document) -> Document:
    """Lists as what is in them: which of two equal elements was removed nobody can tell."""
    lists = {k: sorted(v) for k, v in document.items() if isinstance(v, list) and v}
    return lists | {k: v for k, v in document.items() if not isinstance(v, list)}


def follows(versions: Sequence[Version]) -> None:
    """Each document is what its patch makes of the one before."""
    document: Document = {}
    for version in versions:
        if version.before is None:
            assert equal_json(apply_patch(document, version.patch), version.document)
        document = version.document


TAKEN_FROM_BOTH = [
    Said("s", "likes", "name", "b"),
    Said("t", "likes", "name", "a"),
    Said("s", "dislikes", "name", "a"),
    Said("t", "dislikes", "name", "b"),
]


@given(SAYINGS)
@example(TAKEN_FROM_BOTH)
def test_what_is_left_is_as_if_the_session_had_never_been_read(sayings: list[Said]) -> None:
    versions = learned(sayings)
    left = without(versions, "s")
    told = [sayings[version.version - 1] for version in versions]
    found, expected = last(left), last(learned(said for said in told if said.session != "s"))
    assert unordered(found) == unordered(expected)
    follows(left)
    assert all(each.session != "s" for version in left for each in version.sources)


@given(SAYINGS, st.lists(st.integers(0, 11), max_size=3), st.integers(0, 3))
def test_with_edits_rollbacks_and_folded_versions_nothing_of_the_session_is_left(
    sayings: list[Said], rolled: list[int], folds: int
) -> None:
    marked = [
        said._replace(value="S" + said.value) if said.session == "s" else said for said in sayings
    ]
    versions = learned(marked)
    for place in rolled:
        if place < len(versions):
            versions = _with_rollback(versions, place)
    for _ in range(min(folds, len(versions) - 1)):
        versions = [merge_versions(versions[0], versions[1]), *versions[2:]]
    left = without(versions, "s")
    assert b'"S' not in msgspec.json.encode(left)
    assert all(each.session != "s" for version in left for each in version.sources)
    follows(left)
    assert without(left, "s") == left, "forgetting twice is forgetting once"


def _with_rollback(versions: list[Version], place: int) -> list[Version]:
    again, now = versions[place], versions[-1]
    sources = (each for version in versions[: place + 1] for each in version.sources)
    repeated = Version(
        version=now.version + 1,
        document=again.document,
        patch=tuple(diff_patch(now.document, again.document)),
        origin="edited",
        sources=tuple(dict.fromkeys(sources)),
        rolled_back_to=again.version,
    )
    return [*versions, repeated]


@given(SAYINGS)
def test_forgetting_what_nobody_said_changes_nothing(sayings: list[Said]) -> None:
    versions = learned(sayings)
    assert without(versions, "nowhere") == versions


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param(
            [{"op": "add", "path": "/name", "value": "Kai"}],
            [{"op": "replace", "path": "/name", "value": "Kay"}],
            {"name": "Kay"},
            id="what-is-replaced-but-was-never-there-is-added",
        ),
        pytest.param(
            [{"op": "add", "path": "/home", "value": {"city": "Bonn"}}],
            [{"op": "add", "path": "/home/zip", "value": "53111"}],
            {"home": {"zip": "53111"}},
            id="what-holds-a-value-is-made-for-it",
        ),
        pytest.param(
            [{"op": "add", "path": "/name", "value": "Kai"}],
            [{"op": "remove", "path": "/name"}, {"op": "add", "path": "/age", "value": 3}],
            {"age": 3},
            id="the-rest-of-a-patch-stays",
        ),
        pytest.param(
            [{"op": "add", "path": "/name", "value": "Kai"}],
            [
                {"op": "test", "path": "/name", "value": "Kai"},
                {"op": "add", "path": "/known", "value": True},
            ],
            {},
            id="a-test-that-fails-undoes-its-patch",
        ),
        pytest.param(
            [{"op": "add", "path": "/name", "value": "Kai"}],
            [{"op": "move", "from": "/name", "path": "/called"}],
            {},
            id="nothing-is-moved",
        ),
        pytest.param(
            [{"op": "add", "path": "/a", "value": [{"n": 1}]}],
            [{"op": "add", "path": "/a/0/m", "value": 2}],
            {},
            id="an-element-that-is-not-there-gets-nothing",
        ),
        pytest.param(
            [{"op": "add", "path": "/a", "value": None}],
            [{"op": "add", "path": "/b", "value": 1}, {"op": "copy", "from": "/a", "path": "/c"}],
            {"b": 1},
            id="nothing-is-copied",
        ),
    ],
)
def test_operations_mean_what_they_meant(
    first: list[Operation], second: list[Operation], expected: Document
) -> None:
    document = apply_patch({}, first)
    versions = [
        Version(version=1, document=document, patch=tuple(first), sources=(source("s"),)),
        Version(
            version=2,
            document=apply_patch(document, second),
            patch=tuple(second),
            sources=(source("t"),),
        ),
    ]
    left = without(versions, "s")
    assert last(left) == expected
    follows(left)


def test_an_index_follows_its_element() -> None:
    three = [{"op": "add", "path": f"/likes/{n}", "value": v} for n, v in enumerate("abc")]
    versions = [
        Version(
            version=1, document={"likes": []}, patch=({"op": "add", "path": "/likes", "value": []},)
        ),
        *(
            Version(
                version=n + 2,
                document={"likes": list("abc"[: n + 1])},
                patch=(operation,),
                sources=(source("st u".replace(" ", "")[n]),),
            )
            for n, operation in enumerate(three)
        ),
        Version(
            version=5,
            document={"likes": ["a", "c"]},
            patch=({"op": "remove", "path": "/likes/1"},),
            sources=(source("u"),),
        ),
    ]
    left = without(versions, "s")
    assert last(left) == {"likes": ["c"]}
    assert left[-1].patch == ({"op": "remove", "path": "/likes/0"},)


def test_an_edit_stays_whatever_it_is_about() -> None:
    versions = [
        Version(
            version=1,
            document={"name": "Kai"},
            patch=({"op": "add", "path": "/name", "value": "Kai"},),
            sources=(source("s"),),
        ),
        Version(
            version=2,
            document={"name": "Kay"},
            patch=({"op": "replace", "path": "/name", "value": "Kay"},),
            origin="edited",
        ),
    ]
    assert last(without(versions, "s")) == {"name": "Kay"}
    base = merge_versions(*versions)
    assert last(without([base], "s")) == {"name": "Kay"}
    assert last(without([replace(base, before={"name": (source("s"),)})], "s")) == {}


# On the shelf


async def test_forgetting_a_session_undoes_its_versions(env: Env) -> None:
    await env.learn_from("I am Kai.", adding("/name", "Kai", "I am Kai"), session="s")
    renamed = patched({"op": "replace", "path": "/name", "value": "Kay"}, quotes=["call me Kay"])
    await env.learn_from("Please call me Kay.", renamed, session="t")
    await env.learn_from("I live in Bonn.", adding("/city", "Bonn", "I live in Bonn"), session="t")
    receipt = await env.forget("t", dry_run=True)
    assert [(f.id, f.kind, f.action, f.text) for f in receipt] == [
        ("profile_2", "profile", "rolled_back", 'replace /name: "Kay"'),
        ("profile_3", "profile", "rolled_back", 'add /city: "Bonn"'),
    ]
    assert await env.document() == {"name": "Kay", "city": "Bonn"}
    assert await env.forget("t") == receipt
    assert await env.document() == {"name": "Kai"}
    assert await env.forget("t") == []
    held = await env.learned.profiles.current(KAI)
    assert (held.value.version, held.value.last) == (1, 3), "no number is given twice"


async def test_forgetting_one_exchange_leaves_the_others(env: Env) -> None:
    first = await env.learn_from("I am Kai.", adding("/name", "Kai", "I am Kai"))
    await env.learn_from("I live in Bonn.", adding("/city", "Bonn", "I live in Bonn"))
    await env.forget("s", first)
    assert await env.document() == {"city": "Bonn"}


async def test_nothing_of_what_is_forgotten_is_left_on_the_shelf(env: Env) -> None:
    await env.learn_from("I am Kai.", adding("/name", "Kai", "I am Kai"), session="t")
    await env.learn_from("My pin is XYZZY.", adding("/pin", "XYZZY", "My pin is XYZZY"))
    await env.learned.profiles.edit(
        KAI, lambda document: patch_of_merge(document, {"age": 34}), Schema()
    )
    await env.learned.profiles.roll_back(KAI, 2)
    await env.forget("s")
    found = await env.harness.store.items(KAI, (PEOPLE, "kai"), None, 100)
    assert found.items
    assert all(b"XYZZY" not in bytes(item.value) for item in found.items)
    assert await env.document() == {"name": "Kai"}


async def test_a_profile_learned_from_one_session_alone_is_empty_without_it(env: Env) -> None:
    await env.learn_from("I am Kai.", adding("/name", "Kai", "I am Kai"))
    await env.forget("s")
    held = await env.learned.profiles.current(KAI)
    assert held.value.document == {} and held.value.version == 0
    left = await places(env.harness.store, KAI, (PEOPLE, "kai", "profiles"))
    assert left == []


async def test_who_was_forgotten_learns_anew_from_other_sessions(env: Env) -> None:
    await env.learn_from("I am Kai.", adding("/name", "Kai", "I am Kai"))
    await env.forget("s")
    await env.learn_from("I am Kay.", adding("/name", "Kay", "I am Kay"), session="t")
    assert await env.document() == {"name": "Kay"}


async def test_more_versions_than_are_kept_are_forgotten_too(env: Env) -> None:
    await env.learn_from("I am Kai.", adding("/name", "Kai", "I am Kai"))
    await env.learn_from("I live in Bonn.", adding("/city", "Bonn", "I live in Bonn"), session="t")
    for age in range(MAX_VERSIONS):
        aging = partial(patch_of_merge, merge={"age": age})
        await env.learned.profiles.edit(KAI, aging, Schema())
    assert await env.document() == {"name": "Kai", "city": "Bonn", "age": MAX_VERSIONS - 1}
    await env.forget("s")
    assert await env.document() == {"city": "Bonn", "age": MAX_VERSIONS - 1}
