"""The state of an index, and the batch that adds a session's new messages to it.  Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from zlib import crc32

import msgspec

from proxy.memory.archive import Message, Session
from proxy.recall.index import ROW_SIZE, IndexBatch, IndexLookup, IndexMark, OwnTextOf
from proxy.recall.notes.notes import names_relative_day
from proxy.recall.notes.slots import slot_values
from proxy.recall.query import self_statements
from proxy.recall.query.small_talk import is_filler
from proxy.recall.query.words import TermEntry, analyse, pack, tokenize
from proxy.recall.ranking.match import REACH
from proxy.recall.ranking.packing import (
    FILLER,
    FILLS_SLOT,
    NAMES_DAY,
    SAID_BY_USER,
    STANDING,
    check_of,
    mark_check,
    scale_tokens,
)
from proxy.recall.standing.standing import has_instruction

FORMAT = 5
"""To be increased when rows change, or the terms of texts (unless queries search both): an index of
another format is rebuilt."""

MAX_STANDING = 64
"""Passages with standing instructions in a state, the newest."""

MAX_DISMISSED = 512
"""Dismissed standing instructions in a state, the newest."""


DISMISSED_AT = 5
"""Their position in the encoded state, which is the same in every format."""


class State(msgspec.Struct, frozen=True, array_like=True):
    """The state of an index.

    ``length`` is the sum of the passages' lengths in terms, ``sessions`` the number of sessions.
    ``standing`` are numbers of passages, oldest first.  ``dismissed`` are ids of standing
    instructions that are not to be pinned.  ``caught_up_at``: all sessions last active before this
    time (Unix seconds) are indexed; 0 or a unique negative number if all are to be checked.
    ``created_at`` (Unix seconds) identifies this build of the owner's index.  ``embedded_until``:
    by the name of vectors, the number of the first passage without one.  ``checksum`` is the CRC of
    all rows, which distinguishes two indexes with the same revision and number of passages after a
    store has lost the newest.  ``counted_passages``: the passages when its live sessions were last
    counted.
    """

    format: int = FORMAT
    passages: int = 0
    length: int = 0
    sessions: int = 0
    standing: tuple[int, ...] = ()
    dismissed: tuple[str, ...] = ()
    caught_up_at: float = 0.0
    created_at: float = 0.0
    embedded_until: Mapping[str, int] = {}
    checksum: int = 0
    counted_passages: int = 0

    def extended(
        self, rows: bytes, lengths: Sequence[int], standing: Iterable[int], sessions: int
    ) -> State:
        """The state with further passages; ``standing`` are those with standing instructions."""
        return msgspec.structs.replace(
            self,
            passages=self.passages + len(lengths),
            length=self.length + sum(lengths),
            sessions=sessions,
            standing=(*self.standing, *standing)[-MAX_STANDING:],
            checksum=crc32(rows, self.checksum),
        )

    def is_followed_by(self, later: State, rows: bytes) -> bool:
        """Whether ``later`` is the state of the same index after these rows were added."""
        return self.created_at == later.created_at and crc32(rows, self.checksum) == later.checksum

    def with_dismissed(self, instruction: str) -> State:
        """The state with a standing instruction dismissed."""
        others = tuple(id for id in self.dismissed if id != instruction)
        return msgspec.structs.replace(self, dismissed=(*others, instruction)[-MAX_DISMISSED:])

    def with_vectors(self, name: str, end: int) -> State:
        """The state with the passages before ``end`` embedded."""
        return msgspec.structs.replace(self, embedded_until={**self.embedded_until, name: end})


def read_state(data: bytes, now: float = 0.0) -> State | None:
    """Decode a state; None for another format, a new state, born ``now``, for no data.  Raises
    msgspec.DecodeError for data that no release has written."""
    if not data:
        return State(created_at=now)
    if data.startswith(_BEGINNING):
        return _STATE.decode(data)
    if msgspec.json.decode(data, type=list[msgspec.Raw])[:1] != [msgspec.Raw(b"%d" % FORMAT)]:
        return None
    return _STATE.decode(data)


_BEGINNING = b"[%d," % FORMAT
_STATE = msgspec.json.Decoder(State)


def dismissed_in(data: bytes) -> tuple[str, ...]:
    """The dismissed instructions in a state of any format, () if it has none."""
    try:
        place = msgspec.json.decode(data or b"[]", type=list[msgspec.Raw])[DISMISSED_AT]
        return msgspec.json.decode(place, type=tuple[str, ...])
    except (msgspec.DecodeError, IndexError):
        return ()


def write_state(state: State) -> bytes:
    return msgspec.json.encode(state)


NO_ROW = bytes(ROW_SIZE)

MAX_BYTES_IN_LOOP = 16_000
"""Up to so many bytes of messages are indexed without a thread, which would cost more."""

MAX_IN_LOOP = 16
"""And up to so many messages: each takes at least a tenth of a millisecond."""

ROLES = ("user", "assistant")
"""Roles of messages that are indexed."""


class Addition(msgspec.Struct, frozen=True):
    """Messages to add: consecutive ones in history after the session's mark in ``lookup``.

    With ``is_edit`` they are edited messages before the mark.  These are surrounded by empty rows,
    since passages with adjacent numbers are treated as neighbours in the conversation.
    """

    lookup: IndexLookup
    state: State
    session: Session
    messages: Sequence[Message]
    own_text_of: OwnTextOf
    is_edit: bool = False
    previous_time: float = 0.0
    """The time of the message before them, Unix seconds."""

    @property
    def is_small(self) -> bool:
        few = len(self.messages) <= MAX_IN_LOOP
        return few and sum(len(each.wire) for each in self.messages) <= MAX_BYTES_IN_LOOP

    def batch(self) -> IndexBatch:
        """The batch that indexes them, and moves the mark after the last unless ``is_edit``."""
        entries = self._entries()
        number, last = self._number, self.messages[-1]
        gap = REACH if self.is_edit and entries else 0
        first = self.state.passages + gap
        packed = pack(entries, first)
        rows = gap * NO_ROW + packed.rows + gap * NO_ROW
        state = self.state.extended(
            rows,
            [*gap * [0], *(entry.analysis.length for entry in entries), *gap * [0]],
            [first + i for i, entry in enumerate(entries) if entry.flags & STANDING],
            max(number, self.state.sessions),
        )
        return IndexBatch(
            revision=self.lookup.revision,
            state=write_state(state),
            session=self.session.id,
            mark=None if self.is_edit else IndexMark(number, last.seq, mark_check(last.card.id)),
            first=self.state.passages,
            rows=rows,
            postings=packed.postings,
            ttl=self.session.details.ttl,
            session_created_at=self.session.created_at,
        )

    @property
    def _number(self) -> int:
        """The session's number, from 1; 0 is that of an empty row."""
        return self.lookup.mark.number if self.lookup.mark else self.state.sessions + 1

    def _entries(self) -> list[TermEntry]:
        entries: list[TermEntry] = []
        language = exchange = ""
        times = Counter(each.card.created_at for each in self.messages if each.card.role == "user")
        for message in self.messages:
            if message.card.exchange != exchange:
                # Which messages share a batch is chance, so it must not decide the language.
                language, exchange = "", message.card.exchange
            if message.card.role not in ROLES:
                continue
            text, share = self.own_text_of(message.wire)
            if text.strip():  # a message may consist of calls alone, or of what a program put in
                at = message.card.created_at
                known = times[at] == 1 and at != self.previous_time and not self.is_edit
                entries.append(self._entry(message, text, share, language, known))
                language = entries[-1].analysis.language
        return entries

    def _entry(
        self, message: Message, text: str, share: float, language: str, known: bool
    ) -> TermEntry:
        """The entry of a message; ``share``: the text's share of the message.  ``known``: its time
        is when it was written, and not shared by messages that were imported without times, or
        sent together by a client's first request."""
        card = message.card
        flags = SAID_BY_USER if card.role == "user" else 0
        if flags and has_instruction(text):
            flags |= STANDING
        if flags and known and names_relative_day(tokenize(text), card.created_at):
            flags |= NAMES_DAY
        if flags and slot_values(tokenize(text)):
            flags |= FILLS_SLOT
        traits = self_statements.told_trait_terms(tokenize(text)) if flags else ()
        if is_filler(text):
            flags |= FILLER
        return TermEntry(
            session=self._number,
            seq=message.seq,
            check=check_of(card),
            time=card.created_at,
            tokens=scale_tokens(card.tokens, share),
            flags=flags,
            analysis=analyse(text, card.created_at, language, traits),
        )
