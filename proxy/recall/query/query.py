"""What is asked of recall."""

from __future__ import annotations

from collections.abc import Callable
from datetime import tzinfo

import msgspec

from proxy.memory.model import Recalled, SessionKey
from proxy.recall.index import Owner, owner_of

CountText = Callable[[str], int]
"""Tokens of a text."""


class RecallOptions(msgspec.Struct, frozen=True):
    """How a profile wants recall to work.

    ``min_score``: see ``relevant``.  ``half_life_days``: age that halves a score, None for no
    decay.  ``standing_max_tokens``: what standing instructions may take of the budget.  ``zone``:
    where days are told, None for UTC.
    """

    own_session_only: bool = False
    min_score: float = 0.15
    roles: tuple[str, ...] = ("user", "assistant")
    half_life_days: float | None = None
    standing_max_tokens: int = 300
    zone: tzinfo | None = None


class RecallQuery(msgspec.Struct, frozen=True):
    """A question asked in a session.

    ``user`` asks; ``session_owner`` is whose session it is already, None where nobody's.  ``text``
    is the user message, ``before`` the texts of the few messages before it, oldest first.  Never
    recalled: the messages at ``shown`` (seqs of this session), those with the digests ``said``, and
    those with the ids ``gone``, which this request supersedes.  ``hidden`` is the seq of the newest
    message of this session that is not shown, 0 where all are; None: nobody has looked.
    ``budget`` in tokens by ``count``.  ``again``: what to recall once more instead of searching.
    ``searches``: somebody looks for the text, so that what says no more than it is found too.
    """

    key: SessionKey
    user: str | None
    session_owner: str | None
    text: str
    budget: int
    count: CountText
    before: tuple[str, ...] = ()
    shown: frozenset[int] = frozenset()
    said: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()
    hidden: int | None = None
    again: tuple[Recalled, ...] | None = None
    searches: bool = False
    options: RecallOptions = RecallOptions()

    @property
    def owner(self) -> Owner:
        """Whose index is asked."""
        return owner_of(self.key, self.user or self.session_owner)

    @property
    def reader(self) -> str | None:
        """Whose sessions may be read; None: this session belongs to nobody."""
        return self.user or self.session_owner

    @property
    def nothing_hidden(self) -> bool:
        """Whether nothing of this session can be recalled."""
        return self.hidden == 0 and self.again is None

    @property
    def own_session_only(self) -> bool:
        """Without a user nothing is recalled from other sessions, whoever owns this one."""
        return self.options.own_session_only or not self.user

    @property
    def has_nowhere_to_look(self) -> bool:
        """Whether all that could be recalled is in sight already."""
        return self.nothing_hidden and self.own_session_only
