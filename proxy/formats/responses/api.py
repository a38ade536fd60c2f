"""OpenAI's Responses API as a wire format."""

from __future__ import annotations

from proxy.chat.request import ChatRequest
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
    is_side_request = staticmethod(is_side_request)
    read, read_reply = staticmethod(read_request), staticmethod(read_reply)
    read_stream = EventReader
    with_cache_marks = staticmethod(marked_body)
    expand = staticmethod(expand_references)

    def __init__(self, *, records: bool = True) -> None:
        self.records = records

    def write(self, request: ChatRequest, addition: Addition) -> bytes:
        return with_addition(request, addition, stores=self.records)

    def without_signed(self, body: bytes, status: int, error: bytes) -> bytes | None:
        return without_reasoning(body) if refuses_reasoning(status, error) else None

    def part_id(self, part: bytes) -> str:
        item = read_item(part)
        return item.id if item is not None else ""
