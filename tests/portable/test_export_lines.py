"""The lines of an export: written, read again, and refused where they cannot be true."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from proxy.chat.message import read_stored
from proxy.learning.kinds import Kinds
from proxy.memory.archive import Details, PlacedExchange, Session, SessionArchive, StoredMessage
from proxy.memory.items import Item
from proxy.memory.model import Card, Exchange, Injection, Position, Summary
from proxy.portable import format, lines
from proxy.portable.lines import ExportReader
from proxy.portable.source import ImportedPart, ImportedSession, InvalidFile, Items, Warnings

LIMIT = 100_000
ODD = (
    b'{"a":\n1}',
    b'{"a":\r\n1}',
    rb'{"a":"half \ud83d"}',
    rb'{"a":"other half \udc00"}',
    rb'{"a":"halves the wrong way round \udc00\ud83d"}',
    rb'{"a":"whole \ud83d\ude00"}',
    b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}",
    b'{"a":\n[' + b"9" * 5000 + b",1e" + b"9" * 50 + b"]}",
    '{"a":"\u2028 \U0001f600"}'.encode(),
    b' {"a": 1.50} ',
)


def archived(bodies: tuple[bytes, ...] = (b'{"role":"user"}', b"{}")) -> SessionArchive:
    """A session with all that one can have."""
    exchange = Exchange(
        id="e1",
        profile="p",
        started_at=1.5,
        created_at=2.5,
        usage=b'{"total_tokens": 7}',
        memory=Injection(status="full", messages=3),
        size=len(bodies),
        follows="",
    )
    lines = tuple(
        StoredMessage(
            Position(1, seq),
            Card(
                id=f"e1.{seq - 1}",
                role=read_stored(body).role,
                tokens=5,
                digest="d",
                created_at=2.5,
                shape="s",
                call_text_tokens=3,
                side_text_tokens=2,
            ),
            "superseded" if seq == 2 else "active",
            body,
            body if seq == 2 else None,
        )
        for seq, body in enumerate(bodies, 1)
    )
    summaries = (
        Summary(text="so", version=3, until=Position(1, 1), created_at=4.0),
        Summary(text="hm", version=1),
    )
    tokens = [line.card.tokens for line in lines if line.state == "active"]
    return SessionArchive(
        Session(
            id="s",
            user="alice",
            messages=len(tokens),
            tokens=sum(tokens),
            window_start=0,
            created_at=1.0,
            last_active_at=3.0,
            details=Details("Title", b'{"k":\n1}', 60, b'[{"role":"system"}]', 9),
            summary=summaries[0],
            end=len(bodies),
            last="e1",
            windows={"p": Position(1, 1)},
        ),
        lines,
        (PlacedExchange(1, exchange, tuple(line.card.id for line in lines)),),
        summaries,
    )


def item(user: str, key: str, *labels: str, value: bytes = b'{"v":1}') -> Item:
    namespace = ("users", user, *labels) if user else labels
    return Item(
        namespace=namespace,
        key=key,
        value=msgspec.Raw(value),
        version=2,
        created_at=1.0,
        updated_at=2.0,
        expires_at=None,
    )


def export(*parts: bytes, sessions: int = 0, shelves: int = 0, items: int = 0) -> bytes:
    end = format.End(sessions=sessions, shelves=shelves, items=items)
    return b"".join([lines.header_line("tenant", 5.0), *parts, lines.encode_line(end)])


def session_part(one: SessionArchive | None = None) -> bytes:
    return b"".join(lines.session_lines(one or archived()))


def shelf_part(user: str, *items: Item, dismissed: tuple[str, ...] = ()) -> bytes:
    told = b"".join(map(lines.item_line, items))
    end = lines.encode_line(format.ShelfEnd(items=len(items)))
    return lines.owner_line(user, dismissed) + told + end


def read(content: bytes, piece: int = 1000, most: int = 1_000_000) -> list[ImportedPart]:
    source = ExportReader(LIMIT, most, Warnings(), Kinds().is_reserved)
    found: list[ImportedPart] = []
    for at in range(0, len(content), piece):
        found += source.feed(content[at : at + piece])
    return [*found, *source.finish()]


def warned(content: bytes) -> list[str]:
    warnings = Warnings()
    source = ExportReader(LIMIT, LIMIT, warnings, Kinds().is_reserved)
    list(source.feed(content))
    list(source.finish())
    return warnings.all


@pytest.mark.parametrize("piece", [1, 7, 1_000_000])
def test_a_session_comes_back_as_it_was(piece: int) -> None:
    (found,) = read(export(session_part(), sessions=1), piece)
    assert found == ImportedSession(archived())


def test_any_json_comes_back_byte_for_byte_and_no_line_is_broken_by_it() -> None:
    one = archived(ODD)
    lines = export(session_part(one), sessions=1).splitlines()
    assert len(lines) == 3 + len(ODD) + 1 + 2 + 1
    for line in lines:
        json.loads(line)
        msgspec.json.decode(line)
    (found,) = read(export(session_part(one), sessions=1))
    assert found == ImportedSession(one)


def test_items_come_in_parts_and_what_was_learned_comes_at_the_end() -> None:
    facts = [item("alice", f"f{i}", "facts") for i in range(3)]
    notes = [item("alice", f"n{i}", "notes") for i in range(450)]
    content = export(
        shelf_part("alice", *facts, *notes, dismissed=("w1", "w2")),
        shelf_part("", item("", "k", "shared", value=ODD[0])),
        shelves=2,
        items=454,
    )
    first, second, last, own = read(content)
    assert isinstance(first, Items) and isinstance(second, Items)
    assert [*first.items, *second.items] == notes[:400]
    assert last == Items("alice", (*notes[400:], *facts), ("w1", "w2"))
    assert own == Items("", (item("", "k", "shared", value=ODD[0]),))


def test_what_an_exchange_names_and_nobody_read_is_left_out() -> None:
    one = archived()
    named = one.exchanges[0]._replace(messages=("e1.0", "e1.1", "e1.2"))
    later = PlacedExchange(9, msgspec.structs.replace(named.exchange, id="e2"), ("e2.0",))
    meanwhile = SessionArchive(one.session, one.lines, (named, later), one.summaries)
    (found,) = read(export(session_part(meanwhile), sessions=1))
    assert found == ImportedSession(one)


def test_unknown_kinds_and_fields_are_passed_over_with_a_warning() -> None:
    lines = export(session_part(), sessions=1).splitlines()
    newer = [json.loads(line) for line in lines]
    newer[0] |= {"minor": 7, "by": "a later release"}
    newer.insert(2, {"kind": "picture", "of": "a dog"})
    newer.insert(3, {"kind": "picture"})
    content = b"\n".join(json.dumps(line).encode() for line in newer)
    assert warned(content) == [
        'The unknown field "by" of "header" was left out (line 1).',
        'Lines of the unknown kind "picture" were left out (line 3, and 1 more).',
    ]
    assert len(read(content)) == 1


def test_another_version_is_refused() -> None:
    content = export().replace(b'"version":1', b'"version":2')
    with pytest.raises(InvalidFile, match="version 2 of the format, and only 1 is known here"):
        read(content)


WHOLE = export(
    session_part(), shelf_part("alice", item("alice", "n", "notes")), sessions=1, shelves=1, items=1
)


@pytest.mark.parametrize("line", range(1, WHOLE.count(b"\n")))
def test_a_file_that_ends_early_is_noticed_wherever_it_ends(line: int) -> None:
    lines = WHOLE.splitlines(keepends=True)
    with pytest.raises(InvalidFile, match=f"ends after line {line} "):
        read(b"".join(lines[:line]))
    with pytest.raises(InvalidFile):
        read(b"".join(lines[:line]) + lines[line][: len(lines[line]) // 2])


@pytest.mark.parametrize("line", range(WHOLE.count(b"\n")))
def test_a_file_that_lacks_a_line_is_noticed(line: int) -> None:
    lines = WHOLE.splitlines(keepends=True)
    del lines[line]
    with pytest.raises(InvalidFile):
        read(b"".join(lines))


@pytest.mark.parametrize("line", range(WHOLE.count(b"\n")))
def test_a_file_with_a_line_twice_is_noticed(line: int) -> None:
    lines = WHOLE.splitlines(keepends=True)
    lines.insert(line, lines[line])
    with pytest.raises(InvalidFile):
        read(b"".join(lines))


def changed(kind: str, change: Callable[[Any], None]) -> bytes:
    """The file with the first line of a kind changed."""
    lines = [json.loads(line) for line in WHOLE.splitlines()]
    change(next(line for line in lines if line["kind"] == kind))
    return b"\n".join(json.dumps(line).encode() for line in lines)


@pytest.mark.parametrize(
    ("kind", "fields", "what"),
    [
        ("session", {"id": "no id"}, "an id that is not"),
        ("session", {"id": ".."}, "an id that is not"),
        ("session", {"user": "\u00e9"}, "a user that is not"),
        ("session", {"title": "x" * 201}, "a title of more"),
        ("session", {"metadata": [1]}, "no dict"),
        ("session", {"metadata": {"x": "y" * 17_000}}, "metadata of more"),
        ("session", {"system": "no JSON"}, "not JSON"),
        ("session", {"system": 5}, "no list"),
        ("session", {"system": ["c1"]}, "a system message that is none"),
        ("session", {"system": [[]]}, "a system message that is none"),
        ("session", {"system": [{"role": "user"}]}, "a system message that is none"),
        ("session", {"system": [{}]}, "a system message that is none"),
        ("session", {"end": 1}, "wrong size"),
        ("session", {"ttl": -1}, "no line of the kind"),
        ("session", {"created_at": 1e300}, "no line of the kind"),
        ("message", {"seq": 2}, "not where its exchange has it"),
        ("message", {"turn": 2}, "not where its exchange has it"),
        ("message", {"turn": 0}, "not where its exchange has it"),
        ("message", {"id": "e1.00"}, "not where its exchange has it"),
        ("message", {"id": "e2.0"}, "not where its exchange has it"),
        ("message", {"id": "e1"}, "not where its exchange has it"),
        ("message", {"state": "gone"}, "no line of the kind"),
        ("message", {"tokens": 2**80}, "no line of the kind"),
        ("message", {"body": "[]"}, "no dict"),
        ("message", {"body": '{"a": }'}, "not JSON"),
        ("message", {"body": {}}, "another role"),
        ("message", {"body": {"role": "bogus"}}, "another role"),
        ("message", {"role": "tool"}, "another role"),
        ("exchange", {"first": 2}, "wrong size"),
        ("exchange", {"first": 0}, "not in order"),
        ("exchange", {"messages": ["e1.1", "e1.0"]}, "not those of the exchanges"),
        ("exchange", {"messages": []}, "wrong size"),
        ("session_end", {"messages": 3}, "lines are missing"),
        ("shelf", {"user": "a b"}, "a user that is not"),
        ("shelf", {"user": "bob"}, "another shelf"),
        ("shelf", {"user": None}, "another shelf"),
        ("shelf_end", {"items": 2}, "lines are missing"),
        ("end", {"sessions": 2}, "some are missing"),
        ("header", {"format": "another"}, "another format"),
    ],
)
def test_what_cannot_be_true_is_refused_with_its_line(
    kind: str, fields: dict[str, object], what: str
) -> None:
    with pytest.raises(InvalidFile, match=what) as broken:
        read(changed(kind, lambda line: line.update(fields)))
    assert broken.value.line is not None


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"size": 1}, "wrong size"),
        ({"size": 2**60}, "wrong size"),
        ({"id": ""}, "an impossible id"),
        ({"id": "e\n1"}, "an impossible id"),
    ],
)
def test_exchanges_that_cannot_be_are_refused(fields: dict[str, object], what: str) -> None:
    with pytest.raises(InvalidFile, match=what):
        read(changed("exchange", lambda line: line["exchange"].update(fields)))


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"shown": 5}, "Expected `object"),
        ({"shown": {"kept": 1e300}}, "Expected `int`"),
        ({"shown": {"runs": [["e1", "0"]]}}, "Expected `int`"),
        ({"shown": {"recall": 10**4000}}, "more tokens than"),
        ({"tokens": 10**4000}, "more tokens than"),
        ({"recalled": [5]}, "Expected `object`"),
        ({"tools": 5}, "Expected `array`"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_memory_did_must_be_what_can_be_told_again(
    fields: dict[str, object], what: str
) -> None:
    with pytest.raises(InvalidFile, match=what):
        read(changed("exchange", lambda line: line["exchange"]["memory"].update(fields)))


def test_what_an_upstream_answered_keeps_its_role() -> None:
    one = archived((b'{"role":"model"}',))
    line = one.lines[0]
    card = msgspec.structs.replace(line.card, role="assistant", origin="response")
    answered = msgspec.structs.replace(one, lines=(line._replace(card=card),))
    (found,) = read(export(session_part(answered), sessions=1))
    assert found == ImportedSession(answered)


@pytest.mark.parametrize(
    "fields",
    [
        {"namespace": ["users"]},
        {"namespace": []},
        {"namespace": ["users", "alice", "\x02"]},
        {"namespace": ["users", "bob", "x"]},
        {"namespace": ["shared"]},
        {"key": "\x01"},
        {"key": ""},
        {"version": 0},
        {"value": [1]},
    ],
    ids=str,
)
def test_items_that_cannot_be_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(InvalidFile):
        read(changed("item", lambda line: line["item"].update(fields)))


@pytest.mark.parametrize(
    "line", [b"{", b"5", b"{}", b'{"kind":5}', b"[" * 5000, b'{"kind":"item"}']
)
def test_lines_that_are_none_are_refused(line: bytes) -> None:
    header = lines.header_line("tenant", 5.0)
    with pytest.raises(InvalidFile) as broken:
        read(header + line + b"\n")
    assert broken.value.line == 2


def test_a_session_that_is_too_large_to_hold_is_refused_and_those_before_it_are_not() -> None:
    small, large = archived(), archived((b'{"a":"%b"}' % (b"x" * 40_000),) * 3)
    content = export(session_part(small), session_part(large), sessions=2)
    source = ExportReader(LIMIT, 100_000, Warnings(), Kinds().is_reserved)
    found: list[ImportedPart] = []
    with pytest.raises(InvalidFile, match="more than 100000 bytes"):
        for piece in source.feed(content):
            found.append(piece)
    assert found == [ImportedSession(small)]


def test_a_message_line_says_all_that_a_card_does() -> None:
    fields = set(format.MessageLine.__struct_fields__)
    assert set(Card.__struct_fields__) <= fields
    assert set(StoredMessage._fields) - {"position", "card"} <= fields
    assert set(Position.__struct_fields__) <= fields
