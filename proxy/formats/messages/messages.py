"""Anthropic's Messages API."""

from __future__ import annotations

from proxy.chat import jsontext
from proxy.chat.request import ChatRequest
from proxy.errors import RawHeaders
from proxy.formats.format import Addition
from proxy.formats.messages.marking import marked_body
from proxy.formats.messages.reading import read_request
from proxy.formats.messages.reply import EventReader, read_answer
from proxy.formats.messages.side_requests import is_side_request
from proxy.formats.messages.thinking import refuses_thinking, without_thinking
from proxy.formats.messages.writing import messages_of, system_of


class Messages:
    """See Format.

    Memory's tools are not offered, since this API has another syntax for tools.
    """

    records = has_signed_content = True
    supports_tools = False
    is_side_request = staticmethod(is_side_request)
    read, read_reply = staticmethod(read_request), staticmethod(read_answer)
    read_stream = EventReader

    def write(self, request: ChatRequest, addition: Addition) -> bytes:
        fields = dict(request.fields)
        if addition.head and not request.state.kept_upstream:
            own = next(iter(request.leading), None)
            fields["system"] = system_of(own, addition.head, separate=addition.separate)
        tail = "" if request.state.kept_upstream else addition.tail
        messages = messages_of(addition.messages, tail)
        fields["messages"] = jsontext.join_items(messages)
        return jsontext.join_fields(fields)

    def with_cache_marks(self, body: bytes, model: str | None, key: str) -> bytes:
        return marked_body(body)

    def without_signed(self, body: bytes, status: int, error: bytes) -> bytes | None:
        return without_thinking(body) if refuses_thinking(status, error) else None


class TokenCount(Messages):
    """Requests that count a prompt's tokens: with memory in it, but not recorded."""

    records = False

    def is_side_request(self, request: ChatRequest, headers: RawHeaders) -> bool:
        return False
