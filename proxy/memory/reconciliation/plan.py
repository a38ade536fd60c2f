"""The values of a plan: what a request means for the stored log."""

from __future__ import annotations

import msgspec

from proxy.memory.model import Card, Entry


class NewMessage(msgspec.Struct, frozen=True, gc=False):
    """Message ``i`` of the request is new.

    It ``begins_turn``, or is in the turn of the stored message ``joins``, or else in the turn of
    the new message before it.  ``replaces`` is the stored answer whose place it takes.
    """

    i: int
    begins_turn: bool = False
    joins: str | None = None
    replaces: Card | None = None


class Plan(msgspec.Struct, frozen=True, gc=False):
    """What is sent and what is recorded for a request.

    ``order`` is everything in the order of sending: entries of the log, and indexes into M.
    ``log`` is the active log when the plan has been carried out, without what is new.
    ``running_turn`` is the turn that the request goes on with, None where it begins one.
    ``reply_joins`` is a stored message in whose turn the reply is, None: the turn of the newest new
    message.  ``follows`` is the last message of the log then, ``activated`` ones included, ""
    without any.  ``resent`` are the stored messages that the request itself brings once more.
    """

    order: tuple[Entry | int, ...]
    log: tuple[Entry, ...]
    new_messages: tuple[NewMessage, ...] = ()
    superseded: frozenset[str] = frozenset()
    activated: tuple[str, ...] = ()
    running_turn: int | None = None
    reply_joins: str | None = None
    follows: str = ""
    resent: tuple[Entry, ...] = ()
