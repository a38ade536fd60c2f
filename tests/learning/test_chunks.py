"""Long messages are cut to what fits into one request, and nothing of them is lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from proxy.learning.evidence import UserMessage
from proxy.learning.reading import MAX_PIECE_CHARACTERS, part_of, split_message
from proxy.recall.own_words import BLANK, Span
from tests.support.learning.harness import count


def said(text: str, *pasted: Span) -> UserMessage:
    return UserMessage("m", "e", 3, text, 5.0, pasted)


@given(st.text(alphabet="ab .\n。", max_size=2000), st.integers(1, 50))
def test_pieces_fit_and_together_are_the_whole(text: str, room: int) -> None:
    pieces = list(split_message(said(text), room, count))
    assert "".join(part.text for part, _, _ in pieces) == text
    assert all(count(part.text) <= tokens <= room for part, tokens, _ in pieces)
    ends = [end for _, _, end in pieces]
    assert ends == sorted(set(ends)) and ends[-1:] == [len(text)] * bool(text)


def test_a_piece_ends_with_a_paragraph_where_there_is_one() -> None:
    text = "\n\n".join(f"Paragraph {n} has some words in it. Two." for n in range(50))
    pieces = [part.text for part, _, _ in split_message(said(text), 100, count)]
    assert len(pieces) > 5 and all(part.endswith("\n\n") for part in pieces[:-1])


def test_a_text_that_costs_more_than_it_seems_is_cut_smaller() -> None:
    def dear(text: str) -> int:
        return 3 * len(text)

    pieces = list(split_message(said("字" * 1000), 60, dear))
    assert all(tokens <= 60 for _, tokens, _ in pieces)
    assert sum(len(part.text) for part, _, _ in pieces) == 1000


def test_a_cheap_text_is_bounded_in_characters() -> None:
    pieces = list(split_message(said("a" * 200_000), 10**6, lambda text: 1))
    assert max(len(part.text) for part, _, _ in pieces) <= MAX_PIECE_CHARACTERS


@given(st.data())
def test_what_is_pasted_stays_so_in_every_piece(data: st.DataObject) -> None:
    text = data.draw(st.text(alphabet="ab \n", min_size=1, max_size=200))
    places = data.draw(st.lists(st.integers(0, len(text)), max_size=6, unique=True))
    places = sorted(places)[: len(places) // 2 * 2]
    spans = [Span(*pair) for pair in zip(places[::2], places[1::2], strict=True)]
    whole = said(text, *spans)
    parts = [part for part, _, _ in split_message(whole, 5, count)]
    assert "".join(part.own_text for part in parts) == whole.own_text
    assert whole.own_text.count(BLANK) == sum(end - start for start, end in spans)


def test_a_piece_knows_where_it_is_from() -> None:
    part = part_of(said("abcdef", Span(1, 4)), 2, 6)
    assert (part.text, part.own_text) == ("cdef", "\0\0ef")
    assert (part.id, part.exchange, part.seq, part.at) == ("m", "e", 3, 5.0)
