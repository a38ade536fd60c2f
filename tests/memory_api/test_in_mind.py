"""What a process keeps in mind of what is erased."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from proxy.learning.learned import Learned
from proxy.learning.profile.document import Schemas
from proxy.memory.model import SessionKey, Snapshot, Summary
from proxy.memory.recording.spool import Spool
from proxy.memory_api.erasure.eraser import Eraser
from proxy.settings import ProfileSettings
from proxy.summary.attempts import RebuildDrafts
from tests.support.clock import Clock
from tests.support.oracle.store import InMemoryStore
from tests.support.store.commits import chat

WRITTEN = Summary(text="Kai lives in Bonn.", version=1)


@contextmanager
def eraser_of(store: InMemoryStore, path: Path, clock: Clock) -> Iterator[Eraser]:
    profile = ProfileSettings()
    learned = Learned(store, Schemas([""]), bytes.decode, len, lambda name: profile, clock)
    with closing(Spool(path / "spool.db", store.name, 1 << 24)) as spool:
        spool.open()
        yield Eraser(store, spool, learned, clock)


@pytest.mark.parametrize("whose", ["session", "person"])
async def test_a_summary_that_is_being_written_anew_goes_with_its_session(
    tmp_path: Path, whose: str
) -> None:
    clock = Clock(1000.0)
    store, drafts, snapshot = InMemoryStore(clock), RebuildDrafts(clock), Snapshot()
    gone, other = SessionKey("t", "a"), SessionKey("t", "b")
    for key, user in ((gone, "kai"), (other, "lou")):
        await store.commit(key, chat("x1", user=user))
        drafts.put(key, "", snapshot, WRITTEN)
    with eraser_of(store, tmp_path, clock) as eraser:
        await (
            eraser.erase_session(gone) if whose == "session" else eraser.erase_person("t", "kai")
        )
    assert drafts.find(gone, "", snapshot) is None
    assert drafts.find(other, "", snapshot) == WRITTEN
