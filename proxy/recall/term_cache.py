"""Cached postings of an index: of the terms that were looked up, or of all terms.

All terms are packed into arrays: they take 12 bytes per term beside its postings, a dictionary 200.
If all are cached, a term that is not among them is in no passage, so no lookup is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from proxy.recall.index import NO_POSTINGS, POSTING_SIZE, TERM_SIZE, Postings, split_terms

NEWEST = 5_000
"""Postings that a lookup reads of a term: enough for rare terms, and a bound for frequent ones."""

_TERM_BYTES = 200
"""Approximate memory of a term in a dictionary, without its postings."""

_PACKED_TERM_BYTES = TERM_SIZE + 4
"""Memory of a term in packed arrays, without its postings."""

_TERM = np.dtype(">u8")
"""Terms as numbers are in the order of their bytes."""

_LAST = b"\xff" * TERM_SIZE

MIN_ADDED_TERMS = 256
"""Added terms that may stay unpacked; if there are many packed ones, up to a quarter of them."""


class SomeTerms:
    """The newest postings of the terms that were looked up."""

    def __init__(self) -> None:
        self._postings: dict[bytes, Postings] = {}
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._postings)

    def find(self, terms: Sequence[bytes]) -> Sequence[Postings | None]:
        """The postings of each term, None if they are not cached."""
        return [self._postings.get(term) for term in terms]

    def put(self, postings: Mapping[bytes, Postings]) -> None:
        for term, found in postings.items():
            before = self._postings.get(term)
            self.size_bytes += len(found.newest) - (len(before.newest) if before else -_TERM_BYTES)
            self._postings[term] = found

    def add(self, postings: Mapping[bytes, bytes]) -> None:
        """Append postings that were added to the index."""
        self.put(
            {
                term: _longer(self._postings[term], postings[term])
                for term in self._postings.keys() & postings.keys()
            }
        )


def _longer(known: Postings, data: bytes) -> Postings:
    newest = (known.newest + data)[-NEWEST * POSTING_SIZE :]
    return Postings(known.count + len(data) // POSTING_SIZE, newest)


class AllTerms:
    """Every posting of every term, of an index of at most ``NEWEST`` passages."""

    def __init__(
        self, terms: bytes = b"", sizes: Sequence[int] = (), postings: bytes = b""
    ) -> None:
        """``terms`` in ascending order and ``postings`` are joined; ``sizes``: the bytes of each
        term's postings."""
        self._added: dict[bytes, bytes] = {}
        self._pack(terms, sizes, postings)

    def __len__(self) -> int:
        return self._terms.size - 1 + len(self._added)

    @property
    def size_bytes(self) -> int:
        return self._packed_bytes + self._added_bytes

    def find(self, terms: Sequence[bytes]) -> tuple[Postings, ...]:
        """The postings of each term, never None: a term that is not cached is in no passage."""
        wanted = np.frombuffer(b"".join(terms), _TERM).astype(np.uint64)
        places = self._terms.searchsorted(wanted)
        (here,) = (self._terms.take(places) == wanted).nonzero()
        begins = self._begins.take(places[here]).tolist()
        ends = self._begins.take(places[here] + 1).tolist()
        found = [NO_POSTINGS] * len(terms)
        for at, begin, end in zip(here.tolist(), begins, ends, strict=True):
            found[at] = Postings((end - begin) // POSTING_SIZE, self._data[begin:end])
        fresh = self._added
        for at in [at for at, term in enumerate(terms) if term in fresh]:
            data = found[at].newest + fresh[terms[at]]
            found[at] = Postings(len(data) // POSTING_SIZE, data)
        return tuple(found)

    def put(self, postings: Mapping[bytes, Postings]) -> None:
        """Nothing to do: all are cached."""

    def add(self, postings: Mapping[bytes, bytes]) -> None:
        """Append postings that were added to the index."""
        for term, data in postings.items():
            before = self._added.get(term)
            self._added_bytes += len(data) + (_TERM_BYTES if before is None else 0)
            self._added[term] = (before or b"") + data
        if len(self._added) > max(MIN_ADDED_TERMS, self._terms.size // 4):
            self._repack()

    def _repack(self) -> None:
        postings = self._all()
        terms = sorted(postings)
        data = [postings[term] for term in terms]
        self._pack(b"".join(terms), [*map(len, data)], b"".join(data))

    def _all(self) -> Mapping[bytes, bytes]:
        begins = self._begins.tolist()
        terms = split_terms(self._terms[:-1].astype(_TERM).tobytes())
        postings = {
            term: self._data[begin:end]
            for term, begin, end in zip(terms, begins, begins[1:], strict=False)
        }
        for term, data in self._added.items():
            postings[term] = postings.get(term, b"") + data
        return postings

    def _pack(self, terms: bytes, sizes: Sequence[int], postings: bytes) -> None:
        """Pack these alone.  A last term above all others keeps searches in bounds."""
        self._terms = np.frombuffer(terms + _LAST, _TERM).astype(np.uint64)
        self._begins = np.cumsum([0, *sizes, 0], dtype=np.uint32)
        self._data = postings
        self._added.clear()
        self._packed_bytes = len(self._data) + _PACKED_TERM_BYTES * self._terms.size
        self._added_bytes = 0
