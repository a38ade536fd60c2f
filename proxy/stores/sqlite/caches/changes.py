"""Tells, without a query, whether the caches of a process for its SQLite file are still valid.

The writing thread reads the WAL index's header when it has the lock and when it has committed, so
it knows which header its own last commit left.  While the file has this header no other process
has written, and caches that this process keeps up to date are valid.
"""

from __future__ import annotations

from proxy.stores.sqlite.caches.wal_index import WalIndex, writes_between


class Era:
    """A period in which caches stay valid: only this process has written, and updated them."""


class Changes:
    """Any thread may call ``era``; only the writing one ``on_begin``, ``on_commit`` and
    ``on_disconnect``."""

    def __init__(self) -> None:
        self._index: WalIndex | None = None
        self._own = b""
        self._era = Era()

    def era(self) -> Era | None:
        """The current era; None if unknown: another process has written, or is writing."""
        index, own = self._index, self._own
        if index is None or not own or index.header() != own:
            return None
        return self._era

    @property
    def writing(self) -> Era:
        """The era of what the current transaction reads; to be called in its thread."""
        return self._era

    def invalidate(self) -> None:
        """Begin a new era: something was written whose caller, which would update the caches, is
        gone."""
        self._era = Era()

    def on_begin(self, index: WalIndex | None) -> None:
        """A transaction has got the lock, so the header is that of the last commit."""
        header = index.header() if index else b""
        if index is not self._index or header != self._own:
            self._era = Era()
            self._index, self._own = index, header

    def on_commit(self, *, keeps_caches: bool) -> None:
        """The transaction is committed.  ``keeps_caches``: its callers update the caches."""
        header = self._index.header() if self._index else b""
        # Another process may have got the lock and committed since.
        if not keeps_caches or not header or writes_between(self._own, header) > 1:
            self._era = Era()
        self._own = header

    def on_disconnect(self) -> None:
        """The writing connection is closed, so the header may be that of another file."""
        self._index, self._own, self._era = None, b"", Era()
