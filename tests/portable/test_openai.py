"""Lists of OpenAI's messages, and lines of them."""

from __future__ import annotations

import pytest

from proxy.portable.source import Conversation, InvalidFile
from tests.support.talk.foreign import NOW, archived, dumped, read, read_all, said

SYSTEM = {"role": "system", "content": "Be kind."}
TALK = [{"role": "user", "content": "Hi \U0001f600"}, {"role": "assistant", "content": "Hello"}]
MORE = [{"role": "user", "content": "Bye"}]


def test_a_list_is_one_session() -> None:
    format, (found,), warnings = read_all(dumped([SYSTEM, *TALK]))
    assert (format, warnings) == ("openai", [])
    assert said(found) == TALK
    session = archived(found)
    assert [line.card.role for line in session.lines] == ["user", "assistant"]
    assert [line.card.evidence for line in session.lines] == [False, True]
    assert session.session.created_at == session.session.last_active_at == NOW
    assert session.session.details.system == b"[" + dumped(SYSTEM) + b"]"
    assert session.exchanges[0].exchange.memory.reason == "import"


@pytest.mark.parametrize(
    ("content", "count"),
    [
        pytest.param({"messages": TALK}, 1, id="an object"),
        pytest.param([TALK, MORE], 2, id="a list of lists"),
        pytest.param([{"messages": TALK}, {"messages": MORE}], 2, id="a list of objects"),
    ],
)
def test_other_shapes_of_the_same(content: object, count: int) -> None:
    assert len(read(dumped(content), "openai")) == count
    assert len(read(dumped(content))) == count


def test_bytes_of_messages_are_kept() -> None:
    raw = rb'{ "role" : "user", "content": "\u00e4 \ud83d", "x": 1.50 }'
    (found,) = read(b"[" + raw + b"]")
    assert found.messages[0].message == raw
    assert archived(found).lines[0].body == raw


def test_a_line_is_a_session() -> None:
    content = b"\n".join(dumped({"messages": talk}) for talk in (TALK, MORE)) + b"\r\n\n"
    format, found, _ = read_all(content)
    assert format == "chat_jsonl"
    assert list(map(said, found)) == [TALK, MORE]


def test_weights_of_training_are_taken_off() -> None:
    weighed = [TALK[0], {**TALK[1], "weight": 0}]
    (found,) = read(dumped({"messages": weighed, "tools": []}), "chat_jsonl")
    assert said(found) == TALK


def test_ids_are_those_of_the_content_and_the_person() -> None:
    def id_of(content: object, user: str | None = None) -> str:
        return archived(read(dumped(content))[0], user=user).session.id

    assert id_of(TALK) == id_of(TALK)
    assert len({id_of(TALK), id_of(MORE), id_of(TALK, "alice"), id_of([SYSTEM, *TALK])}) >= 3
    named = archived(read(dumped(TALK))[0], session="mine")
    assert named.session.id == "mine"
    assert len({line.card.id for line in named.lines}) == 2


def test_every_turn_is_an_exchange() -> None:
    session = archived(read(dumped([*TALK, *MORE]))[0])
    assert [placed.first for placed in session.exchanges] == [1, 3]
    assert [placed.exchange.follows for placed in session.exchanges] == [
        "",
        session.lines[1].card.id,
    ]
    assert session.session.last == session.exchanges[1].exchange.id


def test_what_nobody_says_is_left_out_with_a_warning() -> None:
    lines = [{"messages": [SYSTEM]}, {"messages": [*TALK, SYSTEM, *MORE]}]
    _, found, warnings = read_all(b"\n".join(map(dumped, lines)))
    assert list(map(said, found)) == [[*TALK, *MORE]]
    assert warnings == [
        "A conversation in which nothing is said was left out (line 1).",
        "System messages in the midst of a conversation were left out (line 2).",
    ]


def test_a_field_that_is_not_read_is_told_and_counted() -> None:
    dated = [{**message, "created_at": 1} for message in MORE]
    lines = [{"messages": TALK}, {"messages": MORE, "sesion": "a"}]
    lines += [{"messages": dated, "sesion": "b"}, {"messages": TALK, "user": "kai"}]
    _, found, warnings = read_all(b"\n".join(map(dumped, lines)))
    assert list(map(said, found)) == [TALK, MORE, dated, TALK]
    assert warnings == [
        'The field "sesion" beside "messages" was left out (line 2, and 1 more).',
        'The field "created_at" of a message was not read, and stays in it (line 3).',
        'The field "user" beside "messages" was left out (line 4).',
    ]
    told = ['The field "created_at" of a message was not read, and stays in it (2 times).']
    assert read_all(dumped([*dated, *dated]))[2] == told


@pytest.mark.parametrize(
    ("line", "what"),
    [
        pytest.param(b'{"messages": 5}', "Line 2 has no list of messages.", id="a number"),
        pytest.param(b"{", "Line 2 has no list of messages.", id="cut off"),
        pytest.param(b"[" * 5000, "Line 2 has no list of messages.", id="nested deeply"),
        pytest.param(b'{"prompt": "x"}', "Line 2 has no list of messages.", id="another format"),
        pytest.param(
            b'{"messages": [{"role": "king"}]}', "Line 2 has messages.0., whose role", id="a role"
        ),
        pytest.param(b'"' + b"x" * 10_001, "Line 2 is longer than 10000 bytes.", id="a long one"),
    ],
)
def test_a_wrong_line_is_told_by_its_number(line: bytes, what: str) -> None:
    with pytest.raises(InvalidFile) as broken:
        read(dumped({"messages": TALK}) + b"\n" + line + b"\n", "chat_jsonl")
    assert broken.value.sentence.startswith(what.replace(".0.", "[0]"))


def test_a_list_that_is_too_large_is_refused() -> None:
    with pytest.raises(InvalidFile, match="more than 100000 bytes of item 1"):
        read(dumped([{"role": "user", "content": "x" * 100_000}]), piece=5000)


def test_an_id_of_a_file_that_cannot_be_one_is_made_anew() -> None:
    found = Conversation(messages=read(dumped(TALK))[0].messages, id="not an id")
    assert archived(found).session.id.startswith("import-")
