"""The interface of a wire format of conversations.

The rest of the proxy works with ``ChatRequest``, ``ChatMessage`` and ``Reply`` only.  A format
parses requests and replies into these, writes memory's additions into a request's body, and
recognises the events of a stream that must be held back until the commit.

For formats of items or content blocks, ``ChatMessage.raw`` is the client's own JSON, which is
forwarded byte for byte; ``chat_json`` is the equivalent chat message, which is recorded and
compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from proxy.chat.message import Piece
from proxy.chat.reply.answer import Reply
from proxy.chat.reply.events import EndSignal
from proxy.chat.request import ChatRequest, UnreadReason
from proxy.errors import RawHeaders


class Addition(msgspec.Struct, frozen=True):
    """The messages to send and the memory blocks to add.

    ``system`` is the JSON list of the remembered system messages, None to send the request's own.
    ``messages`` are all after the system messages; stored ones are chat messages as JSON.  ``head``
    and ``tail`` are blocks as text, "" for none: ``head`` goes after the system messages, ``tail``
    before the text of the last user message.  ``separate``: each goes in a message of its own.
    """

    system: bytes | None
    messages: Sequence[Piece]
    head: str
    tail: str
    separate: bool


class StreamReader(Protocol):
    """Reads one streamed reply, event by event; no method raises."""

    def may_end(self, raw: bytes) -> bool:
        """A cheap test of a chunk of the stream: False only if ``end_signal`` is None for all in
        it."""
        ...

    def end_signal(self, payload: bytes) -> EndSignal | None:
        """Whether the event with this data finishes choice 0, ends the stream or is an error; such
        an event is held back until the commit is durable."""
        ...

    def feed(self, payload: bytes) -> None:
        """Take the next event's data."""
        ...

    def build(self) -> Reply:
        """The reply as far as it has been received."""
        ...


class Format(Protocol):
    """A wire format, without state."""

    @property
    def records(self) -> bool:
        """Whether its exchanges are recorded; a count of tokens, for example, is not."""
        ...

    @property
    def has_signed_content(self) -> bool:
        """Whether requests may have content that the upstream has signed: ``without_signed``."""
        ...

    @property
    def supports_tools(self) -> bool:
        """Whether memory's tools can be offered, in the syntax of chat completions."""
        ...

    def is_side_request(self, request: ChatRequest, headers: RawHeaders) -> bool:
        """Whether a program made this request for itself, outside the conversation, for a title
        for example.  It is relayed without memory."""
        ...

    def read(self, body: bytes, max_inline_media_bytes: int, /) -> ChatRequest | UnreadReason:
        """Parse a body; returns why if it cannot be read.  Slow for large ones: use a thread."""
        ...

    def write(self, request: ChatRequest, addition: Addition) -> bytes:
        """The request's body with memory's additions; the client's own parts keep their bytes."""
        ...

    def with_cache_marks(self, body: bytes, model: str | None, key: str) -> bytes:
        """The body with cache marks after the part that the next request will repeat.

        ``body`` itself if its API or model is not known to accept marks, or none fits.  ``key``
        identifies the conversation.
        """
        ...

    def without_signed(self, body: bytes, status: int, error: bytes) -> bytes | None:
        """The body without signed content (reasoning), after an error that refuses its signature;
        None for other errors, or if the body has no such content.

        A signature may cover the preceding messages, which memory changes between requests.
        """
        ...

    def read_reply(self, body: bytes) -> Reply | None:
        """Parse the JSON body of an answer; None if it is not an answer."""
        ...

    def read_stream(self) -> StreamReader: ...


@runtime_checkable
class ReferringFormat(Format, Protocol):
    """A format whose requests may refer to earlier content by id instead of sending it again.

    The ids are kept in stored answers: see ``native``.
    """

    @property
    def api(self) -> str:
        """The name of the API that the ids and native parts belong to."""
        ...

    def part_id(self, part: bytes) -> str:
        """The id of a part (JSON) of a stored answer, "" if it has none."""
        ...

    def expand(self, body: bytes, parts: Mapping[str, bytes], *, detach: bool) -> bytes:
        """The body with references replaced by ``parts`` (JSON by id); null removes a reference.

        ``detach``: remove the id of the continued answer too, as the upstream does not have it.
        """
        ...
