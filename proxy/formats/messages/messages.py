"""Anthropic's Messages API."""

from __future__ import annotations

from proxy.chat import jsontext
from proxy.chat.reply.answer import Reply
from proxy.chat.request import ChatRequest, Unread
from proxy.errors import RawHeaders
from proxy.formats.format import Addition
from proxy.formats.messages.aside import is_aside
from proxy.formats.messages.marking import marked_body
from proxy.formats.messages.reading import read_request
from proxy.formats.messages.reply import EventReader, read_answer
from proxy.formats.messages.thinking import refuses_thinking, without_thinking
from proxy.formats.messages.writing import messages_of, system_of


class Messages:
    """See Format.

    Memory's functions are not offered: this API calls functions in another way.
    """

    records = signed = True
    tools = False

    def is_aside(self, request: ChatRequest, headers: RawHeaders) -> bool:
        return is_aside(request, headers)

    def read(self, body: bytes, max_inline_media_bytes: int) -> ChatRequest | Unread:
        return read_request(body, max_inline_media_bytes)

    def write(self, request: ChatRequest, addition: Addition) -> bytes:
        separate = addition.separate
        fields = dict(request.fields)
        if addition.head and not request.state.elsewhere:
            own = next(iter(request.leading), None)
            fields["system"] = system_of(own, addition.head, separate=separate)
        tail = "" if request.state.elsewhere else addition.tail
        messages = messages_of(addition.messages, tail, separate=separate)
        fields["messages"] = jsontext.join_items(messages)
        return jsontext.join_fields(fields)

    def marked(self, body: bytes, model: str | None, key: str) -> bytes:
        return marked_body(body)

    def unsigned(self, body: bytes, status: int, error: bytes) -> bytes | None:
        return without_thinking(body) if refuses_thinking(status, error) else None

    def read_reply(self, body: bytes) -> Reply | None:
        return read_answer(body)

    def read_stream(self) -> EventReader:
        return EventReader()


class TokenCount(Messages):
    """How many tokens a request would be: with memory in it, and no turn."""

    records = False

    def is_aside(self, request: ChatRequest, headers: RawHeaders) -> bool:
        return False
