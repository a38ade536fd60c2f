"""OpenAI's Responses API as a wire format."""

from __future__ import annotations

from collections.abc import Mapping

from proxy.chat.reply.answer import Reply
from proxy.chat.request import ChatRequest, UnreadReason
from proxy.errors import RawHeaders
from proxy.formats.format import Addition
from proxy.formats.responses.items import API, read_item
from proxy.formats.responses.marking import marked_body
from proxy.formats.responses.reading import is_side_request, read_request
from proxy.formats.responses.reasoning import refuses_reasoning, without_reasoning
from proxy.formats.responses.reply import read_reply
from proxy.formats.responses.stream import EventReader
from proxy.formats.responses.writing import expand_references, with_addition


class Responses:
    """See Format.  ``records`` is False for requests that only count tokens."""

    api = API
    has_signed_content = True
    supports_tools = False

    def __init__(self, *, records: bool = True) -> None:
        self.records = records

    def is_side_request(self, request: ChatRequest, headers: RawHeaders) -> bool:
        return is_side_request(request, headers)

    def read(self, body: bytes, max_inline_media_bytes: int) -> ChatRequest | UnreadReason:
        return read_request(body, max_inline_media_bytes)

    def write(self, request: ChatRequest, addition: Addition) -> bytes:
        return with_addition(request, addition, stores=self.records)

    def with_cache_marks(self, body: bytes, model: str | None, key: str) -> bytes:
        return marked_body(body, model, key)

    def without_signed(self, body: bytes, status: int, error: bytes) -> bytes | None:
        return without_reasoning(body) if refuses_reasoning(status, error) else None

    def part_id(self, part: bytes) -> str:
        item = read_item(part)
        return item.id if item is not None else ""

    def expand(self, body: bytes, parts: Mapping[str, bytes], *, detach: bool) -> bytes:
        """See ReferringFormat."""
        return expand_references(body, parts, detach=detach)

    def read_reply(self, body: bytes) -> Reply | None:
        return read_reply(body)

    def read_stream(self) -> EventReader:
        return EventReader()
