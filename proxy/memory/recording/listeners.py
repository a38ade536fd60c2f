"""Who is told of what recording does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from proxy.memory.archive import unheard
from proxy.memory.model import Due, SessionKey


class Listeners(msgspec.Struct, frozen=True, kw_only=True):
    """``on_recorded`` is told of each session written to, ``on_edited`` of messages that say
    something else then, by their seqs, ``on_due`` of work that is due, ``on_quarantine`` of each
    entry of the spool set aside, and ``on_trouble`` of each session that fails."""

    on_recorded: Callable[[SessionKey], None] = unheard
    on_edited: Callable[[SessionKey, Sequence[int]], None] = unheard
    on_due: Callable[[Sequence[Due]], None] = unheard
    on_quarantine: Callable[[], None] = unheard
    on_trouble: Callable[[], None] = unheard
