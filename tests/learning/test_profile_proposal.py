"""What a model proposes for a profile."""

from __future__ import annotations

import pytest

from proxy.learning.evidence import Said
from proxy.learning.profile.document import MOST_OPERATIONS, PatchError, Schema
from proxy.learning.profile.proposal import Grounds, ProfileChange, Way, agreed

QUOTE = "I took up chess"
GROUNDS = Grounds([Said("m", "e", 1, f"{QUOTE}.", 1.0)], Schema(), {})


def change(way: Way, value: object) -> tuple[ProfileChange, ...]:
    return (ProfileChange(way, "hobbies", value, QUOTE),)


def test_a_list_grows_by_what_it_has_not_and_case_does_not_count() -> None:
    added = change("append", ["chess", "Golf ", "CHESS", "tea"])
    assert agreed(added, {"hobbies": ["golf"]}, GROUNDS).document == {
        "hobbies": ["golf", "chess", "tea"]
    }
    removed = change("remove", "GOLF")
    assert agreed(removed, {"hobbies": ["golf", "tea"]}, GROUNDS).document == {"hobbies": ["tea"]}


def test_a_list_cannot_grow_by_more_than_a_patch_may_do() -> None:
    values = [f"hobby {i}" for i in range(MOST_OPERATIONS + 1)]
    with pytest.raises(PatchError, match="more than"):
        agreed(change("append", values), {"hobbies": []}, GROUNDS)
    made = agreed(change("append", [*values[:3], *values[:3] * 10_000]), {}, GROUNDS)
    assert made.document == {"hobbies": values[:3]}
