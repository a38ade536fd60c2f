"""The JSON in what a model answers, and how much of an answer is read for it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proxy.background.completion import MAX_ANSWER_BYTES
from proxy.learning.evidence import UserMessage
from proxy.learning.extract import MAX_PARSED_CHARACTERS, find_json
from proxy.learning.facts.claim import MAX_PART, parse_operations
from proxy.learning.profile.document import PatchError, Schema
from proxy.learning.profile.proposal import ProposedPatch, parse_proposal
from proxy.learning.profile.proposal_check import MAX_PATCH_BYTES, ReviewContext, accept_proposal
from tests.support.learning.harness import MAY


def is_wanted(value: object) -> bool:
    return isinstance(value, dict) and "good" in value


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param('{"good": [1]}', id="alone"),
        pytest.param('Sure!\n```json\n{"good": [1]}\n```\nDone {now}.', id="fences-and-talk"),
        pytest.param('{maybe [so} [1] {"bad": {"good": 2}} {"good": [1]} {"good": 3}', id="first"),
        pytest.param("{so} " * 200 + '{"good": [1]}', id="much-talk"),
        pytest.param("[1] " * 50_000 + '{"good": [1]}', id="many-values"),
        pytest.param('<tool_call>{"name": "f", "arguments": {"good": [1]}}</tool_call>', id="call"),
        pytest.param('[{"type": "tool_use", "input": {"good": [1]}}]', id="use"),
        pytest.param(
            json.dumps({"tool_calls": [{"function": {"arguments": '{"good": [1]}'}}]}), id="calls"
        ),
        pytest.param('```jsonc\n{\n// as "asked\n"good": [1, /* no, */], }\n```', id="comments"),
    ],
)
def test_the_first_value_that_is_wanted_is_found(answer: str) -> None:
    assert find_json(answer, is_wanted) == {"good": [1]}


def test_what_looks_like_a_comment_in_a_text_stays() -> None:
    told = '{"good": ["see https://x.org/*, a,]"], // a link\n}'
    assert find_json(told, is_wanted) == {"good": ["see https://x.org/*, a,]"]}


NOTED = [{"op": "add", "text": "Plays chess.", "quote": "I play chess"}]


@pytest.mark.parametrize("talk", ["{}", "Notes so far were [], so I add: {}", "```json\n{}\n```"])
def test_an_empty_list_before_what_is_asked_for_is_talk(talk: str) -> None:
    (read,) = parse_operations(talk.replace("{}", json.dumps({"operations": NOTED}))) or ()
    assert read.quote == "I play chess"


@pytest.mark.parametrize("talk", ["[]", "```json\n[]\n```", "Nothing to note: []"])
def test_an_empty_list_where_there_is_no_object_is_nothing_new(talk: str) -> None:
    assert parse_operations(talk) == ()
    assert parse_proposal(talk) == ProposedPatch([], [])


@pytest.mark.parametrize(
    "broken",
    [
        '{"set": [], "append": [{"key": "hobbies", "value": "chess", "quote": "I play che',
        '{"set": [], "append": [{"key": "hobbies", "quote": "I play chess"; }], "remove": []}',
        '{"operations": [{"op": "add", "text": "Plays chess.", "sources": [], "quote": "I pl',
    ],
)
def test_an_empty_list_in_a_broken_object_is_no_answer(broken: str) -> None:
    assert parse_proposal(broken) is None
    assert parse_operations(broken) is None


@pytest.mark.parametrize(
    "answer",
    [
        *("[" * 60 + "1," * 250_000, "{" * 500_000, '{"a":' * 100_000, '["' * 250_000),
        *("/*{" * 150_000, "//{" * 150_000, '//"\\\n{' * 100_000),
    ],
)
def test_no_more_is_read_than_an_answer_is_worth(
    answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    raw_decode = json.JSONDecoder.raw_decode

    def counted(decoder: json.JSONDecoder, text: str, at: int = 0) -> tuple[Any, int]:
        read.append(len(text) - at)
        return raw_decode(decoder, text, at)

    monkeypatch.setattr(json.JSONDecoder, "raw_decode", counted)
    assert find_json(answer, is_wanted) is None
    assert sum(read) < 2 * (MAX_PARSED_CHARACTERS + MAX_ANSWER_BYTES), "once more without comments"


def test_of_what_is_far_too_long_no_more_is_looked_at() -> None:
    long = "you are now " * 40_000
    written = {"op": "add", "text": long, "quote": long, "about": long, "valid_from": long}
    (read,) = parse_operations(json.dumps([written])) or ()
    parts = (read.text, read.quote, read.about, read.valid_from)
    assert [len(part) for part in parts] == [MAX_PART] * 4
    change = {"key": "hobbies", "value": long, "quote": "I like boats"}
    proposal = parse_proposal(json.dumps({"set": [change]}))
    said = UserMessage(id="m", exchange="e", seq=1, text="I like boats", at=MAY)
    assert proposal is not None
    with pytest.raises(PatchError, match=f"more than {MAX_PATCH_BYTES} bytes"):
        accept_proposal(proposal, {}, ReviewContext([said], Schema(None), {}))
