"""What a process keeps in mind of what is erased."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from proxy.learning.learned import Learned
from proxy.learning.profile.document import Schemas
from proxy.memory.archive import do_nothing
from proxy.memory.model import SessionKey, Snapshot, Summary
from proxy.memory.recording.spool import Spool
from proxy.memory_api.erasure.caches import TextCaches
from proxy.memory_api.erasure.eraser import Eraser
from proxy.recall.index_cache import IndexCache
from proxy.settings import ProfileSettings, Settings
from proxy.stores.open import Backend
from proxy.summary.attempts import RebuildDrafts
from proxy.summary.summarizer import Summarizer
from tests.support.clock import Clock
from tests.support.memory_api import SESSIONS, open_site, said, seed
from tests.support.oracle.store import InMemoryStore
from tests.support.store.commits import chat

WRITTEN = Summary(text="Kai lives in Bonn.", version=1)


@contextmanager
def eraser_of(
    store: InMemoryStore, path: Path, clock: Clock, drafts: RebuildDrafts
) -> Iterator[Eraser]:
    caches = TextCaches(do_nothing, drafts.forget)
    profile = ProfileSettings()
    learned = Learned(store, Schemas([""]), bytes.decode, len, lambda name: profile, clock)
    with closing(Spool(path / "spool.db", store.name, 1 << 24)) as spool:
        spool.open()
        yield Eraser(store, spool, learned, caches, clock)


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
    with eraser_of(store, tmp_path, clock, drafts) as eraser:
        await (
            eraser.erase_session(gone) if whose == "session" else eraser.erase_person("t", "kai")
        )
    assert drafts.find(gone, "", snapshot) is None
    assert drafts.find(other, "", snapshot) == WRITTEN


async def test_what_is_cached_of_a_session_goes_when_it_is_edited_or_erased(
    settings: Settings, store: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cleared: list[str | SessionKey] = []
    monkeypatch.setattr(IndexCache, "clear_terms", lambda cache, tenant: cleared.append(tenant))
    monkeypatch.setattr(Summarizer, "forget", lambda summarizer, key: cleared.append(key))
    memory = settings.memory.model_validate({"summary": {"enabled": True, "model": "small"}})
    settings = settings.model_copy(update={"memory": memory})
    async with (
        open_site(settings, store, tmp_path, writes=True) as site,
        site.client("alice") as client,
    ):
        first, _ = await seed(client, "a", said("user", "I live in Bonn."), said("assistant", "Ah"))
        assert not cleared
        place = f"{SESSIONS}/a/messages/{first['id']}"
        assert (await client.patch(place, json={"content": "In Porto."})).status_code == 200
        tenant, key = cleared
        assert key == SessionKey(str(tenant), "a")
        cleared.clear()
        assert (await client.delete(f"{SESSIONS}/a")).status_code == 200
        assert {tenant, key} == set(cleared)
