"""Edits and removals of messages: the new message, and what is removed with one.  Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from msgspec import structs

from proxy.chat.message import ChatMessage
from proxy.chat.native import without_native
from proxy.chat.tools.calltext import tokens_without_calls
from proxy.memory.archive import StoredMessage
from proxy.memory.model import Card, Entry, MessageEdit
from proxy.memory.recording.commit import Count


def edit_message(line: StoredMessage, said: ChatMessage, count: Count) -> MessageEdit:
    """The message with the content of ``said`` instead of its own.

    Its reasoning text and the like, and its forms for single APIs, are dropped, as they belong to
    the old text.  A text by a person is never incomplete.
    """
    body = without_native(said.record)
    blank = line.card.role == "assistant" and said.blank
    card = structs.replace(
        line.card,
        tokens=0 if blank else count(body),
        digest=said.digest,
        calls=said.calls,
        answers=said.answers,
        shape=said.shape,
        incomplete=False,
        blank=blank,
        side_text_tokens=tokens_without_calls(said.text, said.calls, count),
    )
    return MessageEdit(card=card, body=body, replaced_wire=line.original)


def result_ids(calls: Collection[str], later: Iterable[Card]) -> list[str]:
    """Ids of the results of a message's calls among the ``later`` messages, superseded or not.

    Results after a later call with the same id belong to that one.
    """
    waiting, found = set(calls), list[str]()
    for card in later:
        if card.answers in waiting:
            found.append(card.id)
        waiting.difference_update(card.calls)
    return found


def ids_from(log: Sequence[Entry], message: str) -> list[str] | None:
    """Ids of a message of the log and all that follow it; None if it is not there."""
    ids = [entry.card.id for entry in log]
    return ids[ids.index(message) :] if message in ids else None
