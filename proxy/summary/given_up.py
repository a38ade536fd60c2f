"""What came to nothing: not to be tried again before there is more to try."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from proxy.memory.model import SessionKey
from proxy.summary.waiting import Turn

MOST = 10_000
"""Sessions that are remembered."""


class GivenUp:
    """For each session the turns that no summary could be made of, and the version they were for.

    In this process alone: after a start everything is tried once more.
    """

    def __init__(self) -> None:
        self._marks: OrderedDict[SessionKey, int] = OrderedDict()

    def __repr__(self) -> str:
        return f"<GivenUp [{len(self._marks)} sessions]>"

    def note(self, key: SessionKey, version: int, turns: Sequence[Turn]) -> None:
        self._marks[key] = _mark(version, turns)
        self._marks.move_to_end(key)
        if len(self._marks) > MOST:
            self._marks.popitem(last=False)

    def knows(self, key: SessionKey, version: int, turns: Sequence[Turn]) -> bool:
        return self._marks.get(key) == _mark(version, turns)


def _mark(version: int, turns: Sequence[Turn]) -> int:
    return hash((version, *(entry.card.id for turn in turns for entry in turn.entries)))
