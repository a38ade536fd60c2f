"""What every back end is: a store of history, of what is made from it, and of the work on it."""

from __future__ import annotations

from typing import Protocol, Self

from proxy.memory.items import Items
from proxy.memory.store import Store
from proxy.memory.usage import Meter
from proxy.recall.index import Index


class Backend(Store, Index, Items, Meter, Protocol):
    """All contracts in one.  Every method raises StoreError and nothing else."""

    def patient(self, seconds: float) -> Self:
        """The same store with so much time for each look and each write: for what nobody awaits.

        It is opened and closed for itself, while this one is open.
        """
        ...
