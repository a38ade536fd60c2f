"""Whether what a process knows of its SQLite file is still true, asked without asking SQLite.

The thread that writes looks at the WAL index's header when it has the lock, and when it has
committed: so it knows which headers are of its own making.  While the file has such a header,
nobody else has written, and what this process knew and kept up to date holds.
"""

from __future__ import annotations

from proxy.stores.sqlite.known.wal_index import WalIndex, writes_between


class Era:
    """A time in which nothing has changed but what the process keeps up to date itself."""


class Changes:
    """``begun``, ``ended`` and ``lost`` are called by the thread that writes, ``era`` by any."""

    def __init__(self) -> None:
        self._index: WalIndex | None = None
        self._own = b""
        self._era = Era()

    def era(self) -> Era | None:
        """The era; None while that cannot be told: somebody has written, or is about to."""
        index, own = self._index, self._own
        if index is None or not own or index.header() != own:
            return None
        return self._era

    @property
    def writing(self) -> Era:
        """The era of the transaction under way, for what it finds: asked in its thread."""
        return self._era

    def renew(self) -> None:
        """Something was written of which nobody tells any more."""
        self._era = Era()

    def begun(self, index: WalIndex | None) -> None:
        """A transaction has the lock, so that the header is the one of the last commit."""
        header = index.header() if index else b""
        if index is not self._index or header != self._own:
            self._era = Era()
            self._index, self._own = index, header

    def ended(self, *, kept: bool) -> None:
        """The transaction is over.  ``kept``: what it has written is kept up to date by whoever
        asked for it."""
        header = self._index.header() if self._index else b""
        # Who had the lock next may have committed before this look.
        if not kept or not header or writes_between(self._own, header) > 1:
            self._era = Era()
        self._own = header

    def lost(self) -> None:
        """The connection that writes is gone, and with it whether the header is the file's."""
        self._index, self._own, self._era = None, b"", Era()
