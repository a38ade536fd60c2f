"""Looking at the active log: its open calls, its last turns.  Pure."""

from __future__ import annotations

from collections.abc import Sequence

from proxy.memory.model import Entry


def open_calls(log: Sequence[Entry]) -> dict[str, Entry]:
    """The unanswered calls by id; of calls with the same id the latest."""
    waiting: dict[str, Entry] = {}
    for entry in log:
        card = entry[1]
        for call in card.calls:
            waiting[call] = entry
        if card.answers is not None:
            waiting.pop(card.answers, None)
    return waiting


def last_turns(log: Sequence[Entry], n: int) -> list[Entry]:
    """The entries of the last ``n`` turns."""
    if not n:
        return []
    dropped = set(sorted({entry.position.turn for entry in log})[-n:])
    return [entry for entry in log if entry.position.turn in dropped]
