"""What a model proposes for a profile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from proxy.learning.evidence import UserMessage
from proxy.learning.profile.document import (
    MAX_OPERATIONS,
    Document,
    PatchError,
    Schema,
    Version,
    Way,
    diff_patch,
)
from proxy.learning.profile.proposal import ProfileChange, Proposal, ProposedPatch
from proxy.learning.profile.proposal_check import ReviewContext, accept_proposal
from proxy.learning.profile.replay import merge_versions
from proxy.learning.profile.times import last_said_times
from tests.support.learning.environment import version_of

QUOTE = "I took up chess"
SAID = f"{QUOTE}. My hobby is golf, with tea and a piano, in Bonn or Berlin."
GROUNDS = ReviewContext([UserMessage("m", "e", 1, SAID, 1.0)], Schema(), {})


def change(way: Way, value: object) -> tuple[ProfileChange, ...]:
    return (ProfileChange(way, "hobbies", value, QUOTE),)


def test_a_list_grows_by_what_it_has_not_and_case_does_not_count() -> None:
    added = change("append", ["chess", "Golf ", "CHESS", "tea"])
    assert accept_proposal(added, {"hobbies": ["golf"]}, GROUNDS).document == {
        "hobbies": ["golf", "chess", "tea"]
    }
    removed = change("remove", "GOLF")
    assert accept_proposal(removed, {"hobbies": ["golf", "tea"]}, GROUNDS).document == {
        "hobbies": ["tea"]
    }


@pytest.mark.parametrize(
    ("named", "left"),
    [
        ("Bonn", {"home": "Berlin"}),
        ("berlin", {}),
        ("Berlin, Germany", {}),
        (["Bonn"], {"home": "Berlin"}),
        (None, {}),
    ],
)
def test_a_text_is_removed_where_it_has_what_is_named(named: object, left: dict[str, str]) -> None:
    removed = (ProfileChange("remove", "home", named, QUOTE),)
    moved = (ProfileChange("set", "home", "Berlin", QUOTE), *removed)
    assert accept_proposal(moved, {"home": "Bonn"}, GROUNDS).document == left


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("x", False),
        ("Madrid", False),
        ("the user likes it", False),
        (["Madrid", {"city": "Rome"}], False),
        ("a hobbyist", True),
        (["Madrid", "chess"], True),
        ({"city": "Bonn"}, True),
        ("2024-05-01", True),
        (41, True),
        (True, True),
        ("下棋", True),
        ("Kiel", True),
    ],
)
@pytest.mark.parametrize("form", ["set", "append", "patch"])
def test_a_value_has_a_word_of_its_message_or_of_the_schema(
    form: str, value: object, told: bool
) -> None:
    """Numbers are reckoned, and another language is a translation."""
    known = Schema({"description": "Such as Kiel"})
    patch = ProposedPatch([{"op": "add", "path": "/x", "value": value}], [QUOTE])
    changes = (ProfileChange("append" if form == "append" else "set", "x", value, QUOTE),)
    proposal = patch if form == "patch" else changes
    if told:
        assert "x" in accept_proposal(proposal, {}, GROUNDS._replace(schema=known)).document
    else:
        with pytest.raises(PatchError, match="not the person's own words"):
            accept_proposal(proposal, {}, GROUNDS)


@pytest.mark.parametrize(
    ("value", "said", "told"),
    [
        ("married", "My wife and I went out", True),
        ("Two children", "my sons Tom and Ben", True),
        ("father of 2", "my sons Tom and Ben", True),
        ("verheiratet", "Meine Frau kocht gern", True),
        ("deux enfants", "mes fils Tom et Ben", True),
        ("casado", "mi esposa Ana", True),
        ("已婚", "我老婆是医生", True),
        ("married", "I live in Bonn now", False),
        ("daughter Emma", "My wife and I went out", False),
        ("married to a doctor", "My wife and I went out", False),
        ("mother of 2", "my two kids are asleep", True),
        ("两个孩子", "我们的儿子和女儿都好", True),
        ("married, two children", "my wife Ann and our son", True),
        ("married, two children", "my wife Ann", False),
        ("married", "My mother called", False),
        ("married", "Is it called Python?", False),
        ("married", "my ex-wife and my late husband", False),
        ("married", "My boss's wife is nice, if I had a wife", False),
        ("two children", "my sister's sons Tom and Ben", False),
        ("verheiratet", "meine Ex-Frau und die Frau meines Chefs", False),
        ("marié", "ma femme de ménage, la femme de Luc", False),
        ("casado", "la esposa de mi jefe", False),
        ("已婚", "我前妻和我老板的妻子", False),
        ("医生", "我住在波恩", False),
    ],
)
def test_who_is_of_the_users_own_family_is_told_by_other_words_too(
    value: str, said: str, told: bool
) -> None:
    schema = Schema({"description": "name and family"})
    grounds = ReviewContext([UserMessage("m", "e", 1, said, 1.0)], schema, {})
    change = ProfileChange("set", "family", value, said)
    if told:
        assert accept_proposal((change,), {}, grounds).document == {"family": value}
    else:
        with pytest.raises(PatchError, match="not the person's own words"):
            accept_proposal((change,), {}, grounds)


def test_a_list_grows_by_no_more_than_a_patch_may_do() -> None:
    values = [f"hobby {i}" for i in range(MAX_OPERATIONS + 1)]
    made = accept_proposal(change("append", values), {"hobbies": []}, GROUNDS)
    assert made.document == {"hobbies": values[:MAX_OPERATIONS]}
    made = accept_proposal(change("append", [*values[:3], *values[:3] * 10_000]), {}, GROUNDS)
    assert made.document == {"hobbies": values[:3]}


# What was said later wins


def read(versions: Sequence[Version], at: float, *proposals: Proposal) -> list[Version]:
    """The versions after a message of this time has been read."""
    known = list(versions)
    for proposal in proposals:
        document = known[-1].document if known else {}
        grounds = ReviewContext(
            [UserMessage(f"m{at}", "e", 1, SAID, at)], Schema(), last_said_times(known)
        )
        made = accept_proposal(proposal, document, grounds)
        if made.document != document:
            number = len(known) + 1
            known.append(version_of(number, made))
    return known


def edited(versions: Sequence[Version], at: float, document: Document) -> list[Version]:
    """The versions after a person has changed the document."""
    patch = tuple(diff_patch(versions[-1].document, document))
    number = versions[-1].version + 1
    made = Version(version=number, document=document, patch=patch, origin="edited", created_at=at)
    return [*versions, made]


def test_the_last_one_of_a_list_is_taken_back_and_no_other() -> None:
    versions = read([], 5.0, change("append", "golf"))
    versions = read(versions, 9.0, change("remove", "golf"))
    assert versions[-1].document == {}
    versions = read(versions, 3.0, change("append", "Golf"), change("append", "piano"))
    assert versions[-1].document == {"hobbies": ["piano"]}
    assert read(versions, 2.0, change("remove", "piano")) == versions, "that was said before"


def test_what_was_one_value_becomes_a_list_that_older_news_join() -> None:
    versions = read([], 5.0, change("set", "golf"))
    versions = read(versions, 9.0, change("append", "chess"))
    versions = read(versions, 7.0, change("append", "tea"))
    assert versions[-1].document == {"hobbies": ["golf", "chess", "tea"]}
    assert read(versions, 4.0, change("append", "piano")) == versions


@pytest.mark.parametrize("wiped", [{}, {"hobbies": []}, {"hobbies": ["chess"]}])
def test_what_a_person_has_taken_out_of_a_list_stays_out(wiped: Document) -> None:
    versions = edited(read([], 5.0, change("append", ["golf", "chess"])), 9.0, wiped)
    assert read(versions, 7.0, change("append", "golf")) == versions
    assert read(versions, 11.0, change("append", "golf"))[-1].document["hobbies"][-1] == "golf"


def test_nothing_older_joins_a_list_that_was_said_as_a_whole() -> None:
    versions = read([], 5.0, change("append", "golf"))
    versions = read(versions, 9.0, change("set", ["chess", "tea"]))
    assert read(versions, 7.0, change("append", "piano")) == versions


def test_an_element_of_a_patch_goes_by_its_value_too() -> None:
    def patch(*operations: dict[str, Any]) -> ProposedPatch:
        return ProposedPatch(list(operations), [QUOTE])

    versions = read([], 5.0, change("append", ["golf", "chess", "tea"]))
    out = {"op": "remove", "path": "/hobbies/0"}
    versions = read(versions, 9.0, patch(out, {**out, "path": "/hobbies/1"}))
    assert versions[-1].document == {"hobbies": ["chess"]}
    grown = [{"op": "add", "path": "/hobbies/-", "value": x} for x in ("golf", "piano", "tea")]
    versions = read(versions, 7.0, patch(*grown))
    assert versions[-1].document == {"hobbies": ["chess", "piano"]}


def test_of_versions_that_became_one_it_is_only_known_when_their_lists_were_changed_last() -> None:
    versions = read([], 5.0, change("append", ["golf", "chess"]))
    versions = read(versions, 9.0, change("remove", "golf"))
    versions = [merge_versions(*versions), *read(versions, 12.0, change("append", "tea"))[2:]]
    assert read(versions, 7.0, change("append", "golf")) == versions
    assert read(versions, 10.0, change("append", "piano"))[-1].document["hobbies"][-1] == "piano"
