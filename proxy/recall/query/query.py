"""Recall queries and their options."""

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

    ``min_score``: see ``is_relevant``.  ``half_life_days``: age that halves a score, None for no
    decay.  ``standing_max_tokens``: the most tokens of the budget for standing instructions.
    ``zone``: the user's time zone, None for UTC.
    """

    own_session_only: bool = False
    min_score: float = 0.15
    roles: tuple[str, ...] = ("user", "assistant")
    half_life_days: float | None = None
    standing_max_tokens: int = 300
    zone: tzinfo | None = None


class RecallQuery(msgspec.Struct, frozen=True):
    """A question asked in a session.

    ``user`` asks; ``session_owner`` is the user that the session belongs to, None if it has
    none.  ``text`` is the user message, ``previous_texts`` are those of the few messages before
    it, oldest first.  Excluded from recall: the messages of this session at ``shown_seqs``, those
    with the ``shown_digests``, and those with the ``superseded_ids``, which this request replaces.
    ``newest_hidden_seq`` is of the newest message of this session that is not in the prompt, 0 if
    all are, None if unknown.  ``budget`` is in tokens as ``count`` counts them.  ``replayed``: what
    to recall again instead of searching.  ``is_search``: the caller searches for the text, so that
    messages with the same text are results too.
    """

    key: SessionKey
    user: str | None
    session_owner: str | None
    text: str
    budget: int
    count: CountText
    previous_texts: tuple[str, ...] = ()
    shown_seqs: frozenset[int] = frozenset()
    shown_digests: frozenset[str] = frozenset()
    superseded_ids: frozenset[str] = frozenset()
    newest_hidden_seq: int | None = None
    replayed: tuple[Recalled, ...] | None = None
    is_search: bool = False
    options: RecallOptions = RecallOptions()

    @property
    def owner(self) -> Owner:
        """The owner of the index to search."""
        return owner_of(self.key, self.user or self.session_owner)

    @property
    def reader(self) -> str | None:
        """The user whose sessions may be read; None if this session has no user."""
        return self.user or self.session_owner

    @property
    def nothing_hidden(self) -> bool:
        """Whether all messages of this session are in the prompt."""
        return self.newest_hidden_seq == 0 and self.replayed is None

    @property
    def own_session_only(self) -> bool:
        """Without a user nothing is recalled from other sessions, whoever owns this one."""
        return self.options.own_session_only or not self.user

    @property
    def has_nowhere_to_look(self) -> bool:
        """Whether everything that could be recalled is in the prompt already."""
        return self.nothing_hidden and self.own_session_only
