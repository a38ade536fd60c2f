"""A response object, read into a ``Reply``: all of its output is one choice.  Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from proxy.chat import jsontext
from proxy.chat.extent import has_over
from proxy.chat.jsontext import NULL
from proxy.chat.message import MAX_INLINE_MEDIA_BYTES
from proxy.chat.reply.answer import Choice, Reply, make_choice
from proxy.chat.reply.reply import MAX_REPLY_VALUES
from proxy.formats.native import NOTHING, NamedAnswer, with_native
from proxy.formats.responses.chat import (
    done_in,
    parts_sent,
    said_of,
    sendable,
    value_of,
    without_thought,
)
from proxy.formats.responses.items import API, MESSAGE, PICTURE, TOLD, ResponseItem, read_item
from proxy.formats.responses.kept import frame_around
from proxy.formats.responses.names import read_answer_name

_WAITING = ("queued", "in_progress")
"""States of a response that is still being made."""

MAX_NAME = 256
"""Characters of a name by which an answer is fetched."""

_CUT = {"max_output_tokens": "length"}
"""Why an answer is incomplete, as chat completions say it."""


class Response(msgspec.Struct):
    """What of a response concerns memory, whatever types it has."""

    id: Any = None
    object: Any = None
    status: Any = None
    model: Any = None
    store: Any = None
    output: msgspec.Raw = NULL
    usage: msgspec.Raw = NULL
    error: Any = None
    incomplete_details: Any = None
    background: Any = None

    @property
    def pending(self) -> str | None:
        """By what it will be fetched, if it is made in the background."""
        made = self.background is not True or self.status not in _WAITING
        return None if made or not isinstance(self.id, str) else self.id[:MAX_NAME]

    @property
    def items(self) -> list[ResponseItem]:
        """Its output, as far as it can be read."""
        try:
            found = map(read_item, jsontext.items(bytes(self.output)))
        except jsontext.UNREADABLE:
            return []
        return [item for item in found if item is not None]

    @property
    def failed(self) -> bool:
        return self.status in ("failed", "cancelled") or self.error is not None

    @property
    def kept(self) -> bool:
        """Does it have a name of ours, so that the proxy keeps it and the upstream does not?"""
        return read_answer_name(self.id) is not None

    @property
    def answer(self) -> NamedAnswer | None:
        return NamedAnswer(self.id, self.store is not False) if isinstance(self.id, str) else None

    @property
    def stored(self) -> bool:
        """Does the upstream keep it?"""
        return (not isinstance(self.id, str) or self.store is not False) and not self.kept

    def finish(self, *, calls: bool) -> str | None:
        """How it ended, as chat completions say it; None if it has not."""
        if self.status == "completed":
            return "tool_calls" if calls else "stop"
        details = self.incomplete_details if self.status == "incomplete" else None
        reason = details.get("reason") if isinstance(details, dict) else None
        return _CUT.get(reason, reason) if isinstance(reason, str) else None


_response = jsontext.reader(Response)


def read_response(raw: bytes) -> Response | None:
    """A response from its JSON; None if it is none, or too much to be looked into."""
    if has_over(MAX_REPLY_VALUES, raw):
        return None
    try:
        return jsontext.forgiving(_response, raw)
    except jsontext.UNREADABLE:
        return None


def read_reply(body: bytes) -> Reply | None:
    """The reply that a plain answer is, None if it is none."""
    response = read_response(body)
    if response is None:
        return Reply(truncated=True) if has_over(MAX_REPLY_VALUES, body) else None
    if response.object != "response" and response.output == NULL and response.error is None:
        return None
    return reply_of(response, response.items, raw=body)


def reply_of(
    response: Response,
    items: Sequence[ResponseItem],
    *,
    raw: bytes,
    truncated: bool = False,
    begun: Mapping[str, bytes] | None = None,
) -> Reply:
    """A reply with this output; ``raw`` is the response's JSON, ``truncated``: there was more.

    ``begun``: what there is of items that were not done, by name (JSON).
    """
    if response.pending is not None:
        return Reply(model=_text(response.model), pending=response.pending)
    usage = bytes(response.usage)
    frame = frame_around(raw) if response.kept else b""
    choices: tuple[Choice, ...] = ()
    if items or begun:
        choices = (_choice(response, items, frame, begun or {}, truncated=truncated),)
    return Reply(
        choices=choices,
        usage=usage if usage.startswith(b"{") else None,
        model=_text(response.model),
        error=response.failed,
        truncated=truncated,
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _choice(
    response: Response,
    items: Sequence[ResponseItem],
    frame: bytes,
    begun: Mapping[str, bytes],
    *,
    truncated: bool,
) -> Choice:
    """The answer that these items are.

    Of one that ended, be it at a limit, a later request carries back the items that were finished;
    of one that was cut off it carries the text alone.
    """
    came, answer = _made(response, items, truncated=truncated), response.answer
    kept = [item.raw for item in sendable(items, MAX_INLINE_MEDIA_BYTES)]
    whole = partial(with_native, came.wire or came.body, API, kept, answer, frame)
    if not came.complete:
        # No items go back, but clients may still name them.
        named = {**begun, **_named(items)}
        body = with_native(came.body, API, (), named=named) if named else came.body
        return replace(came, body=body, wire=whole())
    finished = items if response.status == "completed" else _finished(items)
    is_whole = len(finished) == len(items)
    choice = came if is_whole else _made(response, finished, truncated=truncated)
    parts, named = _carried(items, finished, choice.text, stored=response.stored)
    body = with_native(choice.body, API, parts, answer, frame, named)
    told = is_whole and came.wire is None and kept == parts
    return replace(choice, body=body, wire=None if told else whole())


def _carried(
    items: Sequence[ResponseItem], finished: Sequence[ResponseItem], text: str, *, stored: bool
) -> tuple[list[bytes], dict[str, bytes]]:
    """The items (JSON) that later requests carry back, and what names of others stand for."""
    sent = sendable(finished, MAX_INLINE_MEDIA_BYTES, stored=stored)
    if stored:
        parts = parts_sent(items, sent)
        named = _renamed(sent, parts)
    else:
        parts = [item.raw for item in sent]
        named = _unsent(items, sent)
    return parts, named if parts else named | _stand_ins(items, text, stored=stored)


def _made(response: Response, items: Sequence[ResponseItem], *, truncated: bool) -> Choice:
    by_model = bool(items) and items[0].answers is None
    said = said_of(items if by_model else [_NOTHING, *items])
    finish = response.finish(calls=bool(said.get("tool_calls")))
    return make_choice(
        0,
        said,
        finish_reason=finish,
        complete=finish is not None and not truncated,
    )


def _unsent(items: Sequence[ResponseItem], sent: Sequence[ResponseItem]) -> dict[str, bytes]:
    """Null for each item that is not sent back, by its id: no upstream has it either."""
    known = {item.id for item in sent}
    return {item.id: NOTHING for item in items if item.id and item.id not in known}


def _stand_ins(items: Sequence[ResponseItem], text: str, *, stored: bool) -> dict[str, bytes]:
    """What stands for items of an answer of which nothing is sent back, by their ids: so a request
    that names one still finds the answer.

    The upstream knows a picture that it has ``stored`` by its id.
    https://platform.openai.com/docs/guides/image-generation#multi-turn-image-generation
    """
    done = [item for item in done_in(items) if item.id]
    if stored:
        known = [item for item in done if item.kind == PICTURE]
        return {item.id: jsontext.encode({"type": PICTURE, "id": item.id}) for item in known}
    said = jsontext.encode({"role": "assistant", "content": text})
    return {item.id: said for item in done[:1]}


def _renamed(sent: Sequence[ResponseItem], parts: Sequence[bytes]) -> dict[str, bytes]:
    """Items that are sent back without their ids, as they came, by these: a request that names one
    means the thought before it, too, which the upstream has."""
    pairs = zip(sent, parts, strict=True)
    return {item.id: item.raw for item, part in pairs if item.id and part is not item.raw}


def _named(cut: Sequence[ResponseItem]) -> dict[str, bytes]:
    """Of an answer that was cut off, what clients may name: words and calls without thoughts."""
    return {
        item.id: without_thought(item) if item.kind == MESSAGE or item.call is not None else NOTHING
        for item in cut
        if item.id
    }


def _finished(items: Sequence[ResponseItem]) -> Sequence[ResponseItem]:
    """Of an answer that came to a limit: without what it stopped in.  A call that it stopped in
    stays where it is the only one: clients tell it again, and may answer it."""
    done = [item for item in items if not _is_half(item)]
    if any(item.call is not None for item in done):
        return done
    return [item for item in items if item.call is not None or not _is_half(item)]


def _is_half(item: ResponseItem) -> bool:
    """Was it not finished?  Words say something all the same; a call says that it is done."""
    status = value_of(item).get("status")
    if item.kind == MESSAGE or status == "completed":
        return False
    return status is not None or item.kind in TOLD


_NOTHING = ResponseItem(b"{}", "reasoning")
"""Put before an output that begins with a result that the upstream's own tool has given: so all of
it reads as the model's message."""
