"""The seam where a wire format of conversations plugs in.

Memory knows one form of a message: ``ChatMessage``, the request of which it is part, and the
``Reply`` with its choices.  A format reads requests and replies into these, writes what memory adds
in its own way, and says of a stream which event must not pass before the commit.  So neither what
reconciles and records nor stores, recall and the memory API know which format a client speaks.

For a format of items or content blocks: ``ChatMessage.raw`` is the client's own JSON, which is sent
again byte for byte; what is recorded, compared and shown is ``said``, the same as a chat message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from proxy.chat.message import Piece
from proxy.chat.reply.answer import Reply
from proxy.chat.reply.events import Mark
from proxy.chat.request import ChatRequest, Unread
from proxy.errors import RawHeaders


class Addition(msgspec.Struct, frozen=True):
    """A request's conversation with what memory adds to it.

    ``system`` is the JSON list of the remembered system messages, None where the request's own
    stand.  ``messages`` are all that follow, stored ones as chat messages (JSON).  ``head`` and
    ``tail`` are blocks as text, "" for none: behind the system messages, and before the text of the
    last user message.  ``separate``: each in a message of its own.
    """

    system: bytes | None
    messages: Sequence[Piece]
    head: str
    tail: str
    separate: bool


class StreamReader(Protocol):
    """Reads one streamed reply, event by event; no method raises.

    ``suspect`` is asked of all bytes and must be cheap: False only if ``mark`` surely is None.
    """

    def suspect(self, raw: bytes) -> bool: ...

    def mark(self, payload: bytes) -> Mark | None:
        """Does the first answer end here, or the stream, or has it failed?  Held back until the
        commit is durable."""
        ...

    def feed(self, payload: bytes) -> None:
        """The next event's data."""
        ...

    def build(self) -> Reply:
        """The reply as far as it has come."""
        ...


class Format(Protocol):
    """A wire format; holds no state.

    ``records``: are its requests turns of the conversation?  ``signed``: may they hold what the
    upstream has signed (see ``unsigned``)?  ``tools``: may memory's own functions be offered?  They
    are written into requests, and called in replies, as chat completions have it.
    """

    @property
    def records(self) -> bool: ...

    @property
    def signed(self) -> bool: ...

    @property
    def tools(self) -> bool: ...

    def is_aside(self, request: ChatRequest, headers: RawHeaders) -> bool:
        """Is a request made beside the conversation, as its program shows?  It is passed on as it
        is: memory has no part in it."""
        ...

    def read(self, body: bytes, max_inline_media_bytes: int) -> ChatRequest | Unread:
        """A request from its body, or why there is none.  Takes long for a large one."""
        ...

    def write(self, request: ChatRequest, addition: Addition) -> bytes:
        """The request's body with what memory adds; all that is the client's keeps its bytes."""
        ...

    def marked(self, body: bytes, model: str | None, key: str) -> bytes:
        """A request's body with cache marks behind what the next request will begin with too, as
        many as its API and model take; itself where there is no place, or where they are unknown.

        ``key`` tells the conversation, and nothing else.
        """
        ...

    def unsigned(self, body: bytes, status: int, error: bytes) -> bytes | None:
        """A request's body without what the upstream has signed, where its error says that it
        refuses this for what stands before it; None for any other error, or where there is none.

        Memory may change what stands before it from one request to the next.
        """
        ...

    def read_reply(self, body: bytes) -> Reply | None:
        """The reply that a plain answer is, None if it is none."""
        ...

    def read_stream(self) -> StreamReader: ...


@runtime_checkable
class Referring(Format, Protocol):
    """A format whose requests may name what was said before instead of sending it again.

    Stored answers tell by which names: see ``native``.
    """

    @property
    def api(self) -> str:
        """Whose parts and names they are."""
        ...

    def named_part(self, part: bytes) -> str:
        """The name of a part of a stored answer (its JSON), "" for none."""
        ...

    def expand(self, body: bytes, parts: Mapping[str, bytes], *, begins: bool) -> bytes:
        """A request's body with these parts (JSON by name) instead of their names, without those
        that are null.

        ``begins``: and without the answer that it goes on from, which upstream nobody has.
        """
        ...
