"""What an index knows of itself: how much there is, and which passages hold standing wishes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

FORMAT = 2
"""Changes with every change of how texts become terms, and of what rows hold: an index of another
format is made anew."""

MOST_STANDING = 64
"""Passages with standing wishes that are kept, the newest."""

MOST_DISMISSED = 512
"""Wishes removed by hand that are kept in mind, the newest."""


DISMISSED_AT = 5
"""Their place in the state, the same in every format."""


class State(msgspec.Struct, frozen=True, array_like=True):
    """``length`` is the sum of the passages' lengths in terms, ``sessions`` how many were numbered.

    ``standing`` are numbers of passages, oldest first.  ``dismissed`` are ids of standing wishes
    that are not to be pinned.  ``caught_up``: every session that was last active before
    this time (Unix seconds) has been indexed.  ``born`` (Unix seconds) tells an index from another
    of the same owner that was made anew.  ``embedded``: by the name of vectors, the number of the
    first passage that has not been embedded.
    """

    format: int = FORMAT
    passages: int = 0
    length: int = 0
    sessions: int = 0
    standing: tuple[int, ...] = ()
    dismissed: tuple[str, ...] = ()
    caught_up: float = 0.0
    born: float = 0.0
    embedded: Mapping[str, int] = {}

    def extended(self, lengths: Sequence[int], standing: Iterable[int], sessions: int) -> State:
        """With further passages, some of which (by number) hold standing wishes."""
        return msgspec.structs.replace(
            self,
            passages=self.passages + len(lengths),
            length=self.length + sum(lengths),
            sessions=sessions,
            standing=(*self.standing, *standing)[-MOST_STANDING:],
        )

    def without(self, wish: str) -> State:
        """With a standing wish dismissed."""
        kept = tuple(id for id in self.dismissed if id != wish)
        return msgspec.structs.replace(self, dismissed=(*kept, wish)[-MOST_DISMISSED:])

    def with_vectors(self, name: str, end: int) -> State:
        """With the passages before ``end`` embedded."""
        return msgspec.structs.replace(self, embedded={**self.embedded, name: end})


def read_state(data: bytes, now: float = 0.0) -> State | None:
    """The state that an index has; None for one of another format, a new one where there is none.

    ``now`` is when the new one is born.

    Raises msgspec.DecodeError for what no release has written.
    """
    if not data:
        return State(born=now)
    if msgspec.json.decode(data, type=list[msgspec.Raw])[:1] != [msgspec.Raw(b"%d" % FORMAT)]:
        return None
    return msgspec.json.decode(data, type=State)


def dismissed_in(data: bytes) -> tuple[str, ...]:
    """The wishes that an index of whatever format has been told to leave alone.

    Every release has kept them at the same place; what has none there has told of none.
    """
    try:
        place = msgspec.json.decode(data or b"[]", type=list[msgspec.Raw])[DISMISSED_AT]
        return msgspec.json.decode(place, type=tuple[str, ...])
    except (msgspec.DecodeError, IndexError):
        return ()


def write_state(state: State) -> bytes:
    return msgspec.json.encode(state)
