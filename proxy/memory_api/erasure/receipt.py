"""What was erased, or would be: counts, never text."""

from __future__ import annotations

from collections import Counter

import msgspec
from msgspec.structs import asdict

from proxy.memory.erasure import Subject


class Counts(msgspec.Struct):
    """How much of each kind.  ``memories`` are by kind, ``spooled`` exchanges on this host.

    ``messages`` are those of every state, ``index_passages`` the messages that recall could find,
    ``proposals`` those of better instructions that were made of the feedback.
    """

    sessions: int = 0
    messages: int = 0
    exchanges: int = 0
    summaries: int = 0
    memories: Counter[str] = msgspec.field(default_factory=Counter)
    items: int = 0
    feedback: int = 0
    proposals: int = 0
    index_passages: int = 0
    spooled: int = 0

    def __bool__(self) -> bool:
        """Whether any count is not 0."""
        return any({**asdict(self), "memories": self.memories.total()}.values())

    def add(self, other: Counts) -> None:
        for kind in self.__struct_fields__:
            setattr(self, kind, getattr(self, kind) + getattr(other, kind))


class Receipt(msgspec.Struct, frozen=True):
    """``erased_at`` (Unix seconds) is None for a dry run: then nothing was changed."""

    subject: Subject
    counts: Counts
    erased_at: float | None = None
