"""Callbacks for what recording does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from proxy.memory.archive import do_nothing
from proxy.memory.model import SessionKey, WorkRequest


class Listeners(msgspec.Struct, frozen=True, kw_only=True):
    """``on_recorded`` is called for each session written to, ``on_edited`` for messages that say
    something else then, by their seqs, ``on_due`` for work that is due, ``on_quarantine`` for each
    entry of the spool set aside, and ``on_session_failure`` for each session that fails."""

    on_recorded: Callable[[SessionKey], None] = do_nothing
    on_edited: Callable[[SessionKey, Sequence[int]], None] = do_nothing
    on_due: Callable[[Sequence[WorkRequest]], None] = do_nothing
    on_quarantine: Callable[[], None] = do_nothing
    on_session_failure: Callable[[], None] = do_nothing
