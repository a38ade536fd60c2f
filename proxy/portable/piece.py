"""What a file that is imported falls into."""

from __future__ import annotations

from dataclasses import dataclass

from proxy.memory.archive import Archived
from proxy.memory.items import Item


@dataclass(frozen=True, slots=True)
class Session:
    """One session, to be put back as it was; ``dismissed`` as on its line."""

    archived: Archived
    dismissed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Items:
    """Some items of a person's shelf, or with ``user`` "" of the tenant's own.

    What the proxy itself has learned of a person comes with the last ones, all at once.
    """

    user: str
    items: tuple[Item, ...]
    dismissed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Said:
    """A message from elsewhere: its JSON as OpenAI's chat API has it, and when it was said.

    ``parent`` is the index of the message that it follows, -1 for none: those of a conversation
    with branches form a tree.  ``active`` ones are on the branch that the conversation ended with.
    """

    message: bytes
    at: float | None = None
    parent: int = -1
    active: bool = True


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation from elsewhere.  Parents come before those that follow them.

    ``system`` are its instructions, each a message's JSON.  ``id`` is None where it has none.
    Times are Unix seconds, None where not known.
    """

    said: tuple[Said, ...]
    system: tuple[bytes, ...] = ()
    id: str | None = None
    title: str | None = None
    created_at: float | None = None


Piece = Session | Items | Conversation
