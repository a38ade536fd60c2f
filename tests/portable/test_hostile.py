"""Whatever a file of another program has in it: it is read, or refused with its place."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import cycle, islice
from typing import Any

import pytest

from proxy.portable import names
from proxy.portable.check import timestamp_in
from proxy.portable.detection import Limits, open_source
from proxy.portable.names import Format
from proxy.portable.source import Conversation, ImportedPart, InvalidFile, Warnings
from tests.support.talk.foreign import NOW, Json, archived, dumped, sample

FILES: dict[str, Format] = {
    "claude.json": "claude",
    "claude_code.jsonl": "claude_code",
    "codex.jsonl": "codex",
    "codex_before.jsonl": "codex",
    "open_webui.json": "open_webui",
    "librechat_tree.json": "librechat",
    "librechat_flat.json": "librechat",
    "mem0.json": "mem0",
    "langmem.json": "langmem",
}
LISTS = [name for name in FILES if name.endswith(".json")]
LIMITS = Limits(10**6, 10**6)


def pieces(content: bytes, format: Format, piece: int = 4096) -> list[ImportedPart]:
    """Raises Broken, and nothing else."""
    _, source = open_source(content, format, LIMITS, Warnings())
    found: list[ImportedPart] = []
    for at in range(0, len(content), piece):
        found += source.feed(content[at : at + piece])
    found += source.finish()
    for each in found:
        if isinstance(each, Conversation):
            sound(each)
    return found


def sound(conversation: Conversation) -> None:
    """Parents first, one active branch, and every result directly behind its call."""
    archived(conversation)
    for place, each in enumerate(conversation.messages):
        assert -1 <= each.parent < place
    active = [place for place, each in enumerate(conversation.messages) if each.active]
    assert [conversation.messages[place].parent for place in active] == [-1, *active[:-1]]
    open_: list[str] = []
    for place in active:
        message = json.loads(conversation.messages[place].message)
        if message["role"] == "tool":
            assert message["tool_call_id"] in open_
            open_.remove(message["tool_call_id"])
        else:
            assert open_ == []
            open_ = [call["id"] for call in message.get("tool_calls", ())]
    assert open_ == []


@pytest.mark.parametrize("name", FILES)
def test_samples_are_sound(name: str) -> None:
    assert pieces(sample(name), FILES[name])


@pytest.mark.parametrize("name", LISTS)
def test_a_file_that_is_cut_off_says_so_wherever_that_is(name: str) -> None:
    content = sample(name).rstrip()
    for cut in range(1, len(content) - 1, 37):
        with pytest.raises(InvalidFile, match=r"it is cut off, behind (conversation|memory) \d"):
            pieces(content[:cut], FILES[name])


@pytest.mark.parametrize("name", [name for name in FILES if name not in LISTS])
def test_a_line_that_is_cut_off_is_named(name: str) -> None:
    content = sample(name).rstrip()
    for cut in range(1, len(content) - 1, 37):
        whole, _, rest = content[:cut].rpartition(b"\n")
        if not rest or content[cut : cut + 1] == b"\n":
            continue
        with pytest.raises(InvalidFile) as broken:
            pieces(content[:cut], FILES[name])
        assert broken.value.line == whole.count(b"\n") + (2 if whole else 1)


CALL = {"type": "tool_use", "name": "x"}
RESULT = {"type": "tool_result", "content": "y"}


def shown(text: str) -> Json:
    """A chat of Open WebUI with one answer."""
    return {"chat": {"messages": [{"role": "assistant", "content": f"Well. {text}"}]}}


def spoken(blocks: list[Json]) -> Json:
    """A conversation of Claude.ai with one answer."""
    content = [{"type": "text", "text": "Well."}, *blocks]
    return {"chat_messages": [{"uuid": "a", "sender": "assistant", "content": content}]}


STRANGE: list[Any] = [None, True, -1, 1e300, "", "\ud800 \x00", [], {}, [[None]], {"type": "text"}]


def changed(value: Any, strange: Iterator[Any]) -> Iterator[Any]:
    """The value, each of its parts a few times something else, and once gone."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        kept = value[key]
        for other in islice(strange, 3):
            value[key] = other
            yield value
        value[key] = kept
        if isinstance(kept, dict | list):
            for _ in changed(kept, strange):
                yield value
    if isinstance(value, dict):
        for key in list(value):
            kept = value.pop(key)
            yield value
            value[key] = kept


@pytest.mark.parametrize("name", FILES)
def test_a_wrong_value_anywhere_does_no_harm(name: str) -> None:
    content, format = sample(name), FILES[name]
    lines = name.endswith(".jsonl")
    value = [json.loads(row) for row in content.splitlines()] if lines else json.loads(content)
    tried = refused = 0
    for each in changed(value, cycle(STRANGE)):
        text = b"\n".join(map(dumped, each)) if lines else dumped(each)
        tried += 1
        try:
            pieces(text, format, len(text))
        except InvalidFile:
            refused += 1
    assert tried > 50
    assert refused < tried / 2


@pytest.mark.parametrize("format", [name for name in names.FORMATS if name != "memory-proxy"])
@pytest.mark.parametrize(
    "content",
    [b"", b"null", b"5", b'"x"', b"{", b"[", b"[5]", b"{}", b"\x00", b"\xff\xfe", b"[" * 10_000],
)
def test_what_is_no_such_file_is_refused_or_empty(format: Format, content: bytes) -> None:
    try:
        found = pieces(content, format)
    except InvalidFile:
        return
    assert found == []


@pytest.mark.parametrize("name", FILES)
def test_brackets_in_a_value_may_not_nest_without_end(name: str) -> None:
    deep = b"[" * 5_000 + b"]" * 5_000
    content = sample(name)
    at = content.index(b'"', content.index(b":")) if b":" in content else 0
    end = content.index(b'"', at + 1) + 1
    try:
        pieces(content[:at] + deep + content[end:], FILES[name])
    except InvalidFile as broken:
        assert "nest" in broken.problem or "deep" in broken.problem


MANY = 40_000
FEW = MANY // 4
FOLDED = '<details type="tool_calls"'


@pytest.mark.parametrize(
    ("value", "format"),
    [
        pytest.param(shown(FOLDED * MANY), "open_webui", id="folds without end"),
        pytest.param(shown(FOLDED + "a" * 10 * MANY + ">"), "open_webui", id="a long word"),
        pytest.param(shown(f"{FOLDED} {'a=' * MANY}>"), "open_webui", id="no quotes"),
        pytest.param(spoken([CALL] * FEW + [RESULT] * FEW), "claude", id="calls without ids"),
        pytest.param(spoken([RESULT] * MANY), "claude", id="results without calls"),
    ],
)
def test_time_grows_with_the_file_whatever_is_in_it(value: Json, format: Format) -> None:
    """As long as the square of what is in there would take, no test may."""
    _, source = open_source(b"[", format, Limits(10**8, 10**8), Warnings())
    assert len(list(source.feed(dumped([value])))) == 1


@pytest.mark.parametrize(
    ("found", "seconds"),
    [
        ("2025-01-01T00:00:00Z", 1735689600.0),
        ("2025-01-01T02:00:00.500+02:00", 1735689600.5),
        ("2025-01-01 00:00:00", 1735689600.0),
        ("2025-01-01", 1735689600.0),
        (1735689600, 1735689600.0),
        (1735689600000, 1735689600.0),
        ("1969-12-31T00:00:00Z", None),
        ("9999-12-31T23:59:59Z", None),
        ("0001-01-01T00:00:00+14:00", None),
        ("yesterday", None),
        ("", None),
        (True, None),
        (-5, None),
        (1e300, None),
        (10**400, None),
        (None, None),
        ([], None),
    ],
    ids=str,
)
def test_dates(found: object, seconds: float | None) -> None:
    assert timestamp_in({"at": found}, "at") == seconds


def test_what_is_dated_later_than_now_has_the_time_of_the_one_before() -> None:
    messages = [
        {"uuid": "a", "sender": "human", "text": "Hi", "created_at": NOW - 5},
        {"uuid": "b", "sender": "assistant", "text": "Ho", "created_at": "2999-01-01"},
    ]
    chat = {"uuid": "c", "created_at": "2999-01-01", "chat_messages": messages}
    (found,) = pieces(dumped([chat]), "claude")
    assert isinstance(found, Conversation)
    session = archived(found)
    assert [line.card.created_at for line in session.lines] == [NOW - 5, NOW - 5]
    assert (session.session.created_at, session.session.last_active_at) == (NOW - 5, NOW - 5)
