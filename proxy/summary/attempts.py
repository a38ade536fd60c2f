"""Remembers earlier attempts at summaries: text that the model has written, and turns that failed.

In this process only: after a restart everything is tried once more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
from cachetools import LRUCache, TTLCache

from proxy.background.completion import Assignment
from proxy.memory.model import SessionKey, Snapshot, Summary
from proxy.summary.uncovered_turns import Turn, newest_seen


class WrittenSummary(msgspec.Struct, frozen=True):
    """A summary, the tokens of its text, and the model that wrote it."""

    text: str
    tokens: int
    model: str


SESSIONS = 64
SECONDS = 3600.0
CHARACTERS = 256 * 1024
"""Limits of ``UnstoredSummaries``: sessions, seconds, and characters of each session."""


class UnstoredSummaries:
    """Summaries that the model has written and that are not stored yet, so that a retry does not
    pay for them again.  ``clock`` gives seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._kept: TTLCache[SessionKey, dict[bytes, WrittenSummary]] = TTLCache(
            SESSIONS, SECONDS, clock
        )

    def __repr__(self) -> str:
        return f"<UnstoredSummaries [{len(self._kept)} sessions]>"

    def find(self, key: SessionKey, asked: Assignment) -> WrittenSummary | None:
        return self._kept.get(key, {}).get(_digest(asked))

    def put(self, key: SessionKey, asked: Assignment, written: WrittenSummary) -> None:
        """Keep it, unless the session has too much: the first ones are needed to find the rest."""
        kept = self._kept.get(key, {})
        if sum(len(each.text) for each in kept.values()) + len(written.text) <= CHARACTERS:
            self._kept[key] = {**kept, _digest(asked): written}

    def forget(self, key: SessionKey) -> None:
        self._kept.pop(key, None)


def _digest(asked: Assignment) -> bytes:
    model = asked.model or asked.default_model
    return hashlib.sha256(f"{model}\n{asked.text}".encode("utf-8", "surrogatepass")).digest()


DRAFTS = 1000
DRAFT_SECONDS = 2 * 86_400.0
"""Limits of ``RebuildDrafts``: sessions, and seconds; longer than the day whose token budget is
spent."""


class _Draft(NamedTuple):
    """A summary, and the state of its session when it was written.

    ``newest`` is the id of the last message that it has seen: a store that has lost data has
    another message at this seq.
    """

    profile: str
    began: float
    changes: int
    newest: str | None
    summary: Summary

    @classmethod
    def of(cls, profile: str, snapshot: Snapshot, summary: Summary) -> _Draft:
        newest = newest_seen(summary, snapshot)
        return cls(profile, snapshot.created_at, snapshot.changes, newest, summary)


class RebuildDrafts:
    """Unfinished rebuilds of summaries: one that needs more than a day's token budget continues on
    the next day.  ``clock`` gives seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._kept: TTLCache[SessionKey, _Draft] = TTLCache(DRAFTS, DRAFT_SECONDS, clock)

    def __repr__(self) -> str:
        return f"<RebuildDrafts [{len(self._kept)} sessions]>"

    def find(self, key: SessionKey, profile: str, snapshot: Snapshot) -> Summary | None:
        """The draft of a session, None if the session may have changed since."""
        draft = self._kept.get(key)
        if draft is None or draft != _Draft.of(profile, snapshot, draft.summary):
            return None
        return draft.summary

    def put(self, key: SessionKey, profile: str, snapshot: Snapshot, summary: Summary) -> None:
        self._kept[key] = _Draft.of(profile, snapshot, summary)

    def forget(self, key: SessionKey) -> None:
        self._kept.pop(key, None)


MAX_SESSIONS = 10_000
"""Sessions whose failed turns are remembered."""

DOUBLINGS = 6


class _FailedAttempt(NamedTuple):
    """The number of turns that failed, how often in a row, and a hash of their messages."""

    turns: int
    times: int
    mark: int


class FailedTurns:
    """For each session the turns that could not be summarised, and the version of the summary that
    they were to be added to.

    If the model's API refused them, which costs nothing and may be repaired, they are tried again
    with each further turn; if the model wrote no summary, after one more turn, then two, four, and
    so on.
    """

    def __init__(self) -> None:
        self._known: LRUCache[SessionKey, _FailedAttempt] = LRUCache(MAX_SESSIONS)

    def __repr__(self) -> str:
        return f"<FailedTurns [{len(self._known)} sessions]>"

    def add(
        self, key: SessionKey, version: int, turns: Sequence[Turn], *, refused: bool = False
    ) -> None:
        known = self._of(key, version, turns)
        times = known.times + 1 if known and not refused else 1
        self._known[key] = _FailedAttempt(len(turns), times, _mark(version, turns))

    def has_failed(self, key: SessionKey, version: int, turns: Sequence[Turn]) -> bool:
        known = self._of(key, version, turns)
        return known is not None and len(turns) < known.turns + 2 ** min(known.times - 1, DOUBLINGS)

    def _of(self, key: SessionKey, version: int, turns: Sequence[Turn]) -> _FailedAttempt | None:
        """The failed attempt, if the turns begin with those that failed."""
        known = self._known.get(key)
        same = known is not None and known.mark == _mark(version, turns[: known.turns])
        return known if same else None


def _mark(version: int, turns: Sequence[Turn]) -> int:
    return hash((version, *(entry.card.id for turn in turns for entry in turn.entries)))
