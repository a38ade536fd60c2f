"""Messages edited and removed: what an edit keeps, and what goes with a call."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from proxy.chat.message import read_stored
from proxy.memory.archive import StoredMessage
from proxy.memory.history.editing import edit_message, ids_from, result_ids
from proxy.memory.model import Card, Entry, Position
from proxy.memory.prompt.validity import valid_messages
from tests.support.store.commits import card


def line(body: bytes, wire: bytes | None = None, **fields: object) -> StoredMessage:
    role = read_stored(body).role
    return StoredMessage(Position(1, 1), card("x", 0, role, **fields), "active", body, wire)


def test_an_edit_is_read_anew_and_keeps_what_is_not_about_the_words() -> None:
    old = line(
        b'{"role":"assistant","content":"old"}',
        b'{"role":"assistant","content":"old","reasoning":"why"}',
        incomplete=True,
        evidence=True,
        choice=1,
        created_at=7.0,
    )
    said = read_stored(b'{"role":"assistant","content":"new words"}')
    new = edit_message(old, said, lambda raw: len(raw.split()))
    assert new.replaced_wire == old.wire
    assert (new.body, new.wire) == (said.raw, None)
    assert (new.card.digest, new.card.tokens) == (said.digest, 2)
    assert (new.card.incomplete, new.card.blank) == (False, False)
    for name in ("id", "role", "origin", "evidence", "choice", "created_at"):
        assert getattr(new.card, name) == getattr(old.card, name)


def test_an_edit_of_the_words_beside_a_call_is_what_stands_for_it() -> None:
    call = b'"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]'
    old = line(b'{"role":"assistant","content":"old",%b}' % call, side_text_tokens=9)
    new = read_stored(b'{"role":"assistant","content":"some new words",%b}' % call)
    assert edit_message(old, new, lambda raw: len(raw.split())).card.side_text_tokens == 3
    assert (
        edit_message(
            old, read_stored(b'{"role":"assistant","content":"x"}'), len
        ).card.side_text_tokens
        == 0
    )


def test_what_is_behind_a_message_begins_with_it() -> None:
    log = [Entry(Position(n, n), card(f"x{n}", 0)) for n in (1, 2, 3)]
    assert ids_from(log, "x2.0") == ["x2.0", "x3.0"]
    assert ids_from(log, "x9.0") is None


def test_a_later_call_with_the_same_id_has_the_later_result() -> None:
    cards = [card("r1", 0, "tool", answers="c"), card("a", 0, "assistant", calls=("c",))]
    cards.append(card("r2", 0, "tool", answers="c"))
    assert result_ids(("c",), cards) == ["r1.0"]
    assert result_ids((), cards) == []


class Sent:
    """A stored message on its way upstream."""

    stored = True
    as_text = None

    def __init__(self, of: Card) -> None:
        self.role, self.calls, self.answers = of.role, of.calls, of.answers


@st.composite
def conversations(draw: st.DrawFn) -> list[Card]:
    """Questions, calls whose ids may repeat, and their results, all of them directly behind."""
    cards: list[Card] = []
    for turn in range(draw(st.integers(1, 5))):
        cards.append(card(f"u{turn}", 0))
        for loop in range(draw(st.integers(0, 2))):
            calls = tuple(draw(st.lists(st.sampled_from("abc"), min_size=1, unique=True)))
            cards.append(card(f"c{turn}-{loop}", 0, "assistant", calls=calls))
            cards += [
                card(f"r{turn}-{loop}", n, "tool", answers=each) for n, each in enumerate(calls)
            ]
        cards.append(card(f"a{turn}", 0, "assistant"))
    return cards


@given(conversations(), st.data())
def test_no_result_is_left_without_its_call(cards: list[Card], data: st.DataObject) -> None:
    """Whatever is removed, one after the other: all that stays is sent, but for open calls."""
    for _ in range(data.draw(st.integers(1, 4))):
        calls = [x for x in cards if x.calls]
        gone = data.draw(st.sampled_from(calls or cards))
        at = cards.index(gone)
        removed = {gone.id, *result_ids(gone.calls, cards[at + 1 :])}
        assert len(removed) == 1 + len(gone.calls)
        cards = [x for x in cards if x.id not in removed]
        assert len(valid_messages([Sent(x) for x in cards])) == len(cards)
        if not cards:
            return
