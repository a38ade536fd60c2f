"""What every back end is: a store of history, and of the indexes over it."""

from __future__ import annotations

from typing import Protocol

from proxy.memory.store import Store
from proxy.recall.index import Index


class Backend(Store, Index, Protocol):
    """A store and an index in one.  Errors of both are StoreError."""
