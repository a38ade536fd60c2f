"""Erased for good: a raw scan of every place finds nothing, and all others' is as it was."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest

from tests.support.rig import Rig, rig
from tests.support.store.dossier import API, PASSAGES, PLACES, SETTINGS, Dossier, logged
from tests.support.store.inside import nothing_left
from tests.support.store.places import STORES, Place, Places


@pytest.fixture(params=STORES)
def place(request: pytest.FixtureRequest, places: Places, tmp_path: Path) -> Place:
    return places.of(request.param, tmp_path)


@asynccontextmanager
async def proxied(place: Place) -> AsyncIterator[Rig]:
    async with rig(place.folder, store__url=place.url, **SETTINGS) as one:
        yield one


@asynccontextmanager
async def filled(place: Place) -> AsyncIterator[tuple[Rig, Dossier]]:
    """A proxy that knows a person, and has nothing left to do."""
    async with proxied(place) as one:
        kai = Dossier(one)
        await kai.fill()
        await nothing_left(one.proxy)
        yield one, kai


async def test_nothing_of_a_person_is_left_anywhere(place: Place) -> None:
    with logged() as log:
        async with proxied(place) as one:
            kai, eve = Dossier(one), Dossier(one)
            await kai.fill()
            await eve.fill()
            await nothing_left(one.proxy)
            found = " ".join(place.scan(one, *kai.markers))
            assert [name for name in PLACES if kai.marker(name) not in found] == []
            expected = await kai.erase(dry_run="true")
            assert (expected["dry_run"], expected["erased_at"]) == (True, None)
            assert place.scan(one, *kai.markers)

            others = await eve.seen()
            receipt = await kai.erase()

            assert place.scan(one, *kai.markers) == []
            assert await eve.seen() == others
            assert receipt["counts"] == expected["counts"]
            assert receipt["user_id"] == kai.user and receipt["dry_run"] is False
            assert receipt["erased_at"] <= time.time() < receipt["marked_until"]
            again = await kai.erase()
            assert set(_numbers(again["counts"])) == {0}
            for talk in kai.talks:
                await kai.call("GET", f"{API}/sessions/{talk.session}", status=404)
            listed = await kai.call("GET", f"{API}/sessions?user={kai.user}")
            assert listed["data"] == []
            await nothing_left(one.proxy)
        assert place.scan(one, *kai.markers) == []
        assert place.scan(one, eve.marker("quarantined"))
    said = log.getvalue()
    assert "request" in said
    assert [marker for marker in kai.markers if marker in said] == []
    names = [kai.user, *(talk.session for talk in kai.talks)]
    assert [name for name in names if name in said] == []


@pytest.mark.parametrize("store", ["redis", "redis-cluster"])
async def test_nothing_is_left_of_a_person_whose_lists_are_lost(
    store: str, places: Places, tmp_path: Path
) -> None:
    """Evicted, or on a server that came back empty."""
    place = places.of(store, tmp_path)
    async with filled(place) as (one, kai):
        for dry_run in ("true", "false"):
            for server in place.servers:
                for key in server.ask("KEYS", "*}:sessions"):
                    server.ask("DEL", key)
            receipt = await kai.erase(dry_run=dry_run)
            assert receipt["counts"]["sessions"] == len(kai.talks)
        assert place.scan(one, *kai.markers) == []


@pytest.mark.parametrize(
    ("part", "listed"), [("meta", False), ("meta", True), ("item-places", False)]
)
@pytest.mark.parametrize("store", ["redis", "redis-cluster"])
async def test_nothing_is_left_of_a_person_of_whom_keys_were_evicted(
    store: str, part: str, listed: bool, places: Places, tmp_path: Path
) -> None:
    """Heads of sessions, places of what was learned; also where somebody has looked since."""
    place = places.of(store, tmp_path)
    async with filled(place) as (one, kai):
        for server in place.servers:
            for key in server.ask("KEYS", f"*}}:{part}"):
                server.ask("DEL", key)
        for query in (f"?user={kai.user}", "") if listed else ():
            await kai.call("GET", f"{API}/sessions{query}")
        expected = await kai.erase(dry_run="true")
        receipt = await kai.erase()
        assert receipt["counts"] == expected["counts"]
        assert place.scan(one, *kai.markers) == []


@pytest.mark.parametrize("store", ["redis", "redis-cluster"])
async def test_a_server_that_is_full_lets_everything_be_erased(
    store: str, places: Places, tmp_path: Path
) -> None:
    place = places.of(store, tmp_path)
    async with filled(place) as (one, kai):
        with ExitStack() as full:
            for server in place.servers:
                full.enter_context(server.full())
            first, second, _ = kai.talks
            session = f"{API}/sessions/{first.session}"
            refused = await kai.call("PATCH", session, {"title": "new"}, status=503)
            assert refused["error"]["code"] == "memory_unavailable"
            assert "The store is full" in refused["error"]["message"]
            said = (await second.history())[0].card.id
            await kai.call("DELETE", f"{API}/sessions/{second.session}/messages/{said}")
            await kai.call("DELETE", session)
            assert place.scan(one, kai.marker("answered")) == []
            await kai.erase()
            assert place.scan(one, *kai.markers) == []


def _numbers(counts: dict[str, object]) -> Iterator[object]:
    for value in counts.values():
        if isinstance(value, dict):
            yield from _numbers(value)
        else:
            yield value


async def test_the_receipt_counts_what_there_was(place: Place) -> None:
    async with proxied(place) as one:
        kai = Dossier(one)
        await kai.fill()
        receipt = await kai.erase()
    assert receipt["counts"] == {
        "sessions": 3,
        "messages": 15,
        "exchanges": 7,
        "summaries": 1,
        "memories": {"fact": 2, "profile": 1, "episode": 1},
        "items": 1,
        "feedback": 1,
        "proposals": 1,
        "index_passages": PASSAGES,
        "spooled": 3,
    }


async def test_nothing_of_a_session_is_left_anywhere(place: Place) -> None:
    async with filled(place) as (one, kai):
        first, *others = kai.talks
        path = f"{API}/sessions/{first.session}"
        theirs = [kai.marker(name) for name in ("answered", "system", "title", "metadata")]
        theirs += [kai.marker(name) for name in ("summary", "comment", "proposal", "quarantined")]
        assert len({found.rpartition(": ")[2] for found in place.scan(one, *theirs)}) == len(theirs)
        expected = await kai.call("DELETE", f"{path}?dry_run=true")
        assert expected["deleted"] is False and place.scan(one, *theirs)

        receipt = await kai.call("DELETE", path)

        assert place.scan(one, *theirs) == []
        assert (receipt["object"], receipt["id"]) == ("session.deleted", first.session)
        assert receipt["deleted"] is True and receipt["session_id"] == first.session
        assert receipt["counts"] == expected["counts"]
        assert receipt["counts"]["memories"] == {"fact": 0, "profile": 0, "episode": 1}
        assert [receipt["counts"][n] for n in ("feedback", "proposals", "spooled")] == [1, 1, 1]
        await kai.call("DELETE", path, status=404)
        for talk in others:
            await kai.call("GET", f"{API}/sessions/{talk.session}")
        person = f"{API}/users/{kai.user}/memories?kind=fact"
        assert len((await kai.call("GET", person))["data"]) == 2
