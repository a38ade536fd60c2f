"""Long texts cut to what fits into one request.  Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from proxy.learning.lesson import Said, Span

CHARACTERS = 4
"""Characters of a token, at most, in nearly all texts."""

LONGEST = 60_000
"""Characters of a piece, at most, however few tokens they are."""

_ENDS = ("\n\n", "\n", "。", ". ", "! ", "? ", " ")
"""Where a text is cut, best first: after a paragraph, a line, a sentence, a word."""


def cut(said: Said, room: int, count: Callable[[str], int]) -> Iterator[tuple[Said, int, int]]:
    """The pieces of a message: each with its tokens, and where in the message it ends.

    A piece has at most ``room`` tokens, and ends with a paragraph where it can; none is lost.
    """
    start = 0
    while start < len(said.text):
        end, tokens = _end(said.text, start, room, count)
        yield piece(said, start, end), tokens, end
        start = end


def piece(said: Said, start: int, end: int) -> Said:
    """A part of a message, in which what is pasted stays so."""
    pasted = (
        Span(max(span.start, start) - start, min(span.end, end) - start)
        for span in said.pasted
        if span.start < end and span.end > start
    )
    return Said(
        message=said.message,
        exchange=said.exchange,
        seq=said.seq,
        text=said.text[start:end],
        at=said.at,
        pasted=tuple(pasted),
    )


def _end(text: str, start: int, room: int, count: Callable[[str], int]) -> tuple[int, int]:
    end = min(len(text), start + min(LONGEST, CHARACTERS * room))
    tokens = count(text[start:end])
    while tokens > room and end - start > 1:
        end = start + max(1, int((end - start) * 0.95 * room / tokens))
        tokens = count(text[start:end])
    return (_break(text, start, end), tokens) if end < len(text) else (end, tokens)


def _break(text: str, start: int, end: int) -> int:
    """A good place to cut in the second half of a piece, else its end."""
    half = (start + end) // 2
    for mark in _ENDS:
        at = text.rfind(mark, half, end)
        if at > 0:
            return at + len(mark)
    return end
