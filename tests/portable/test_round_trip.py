"""Export, wipe, import: the same memory, on every store and from one to another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proxy.background.runner import Runner
from tests.support.rig import Rig, rig
from tests.support.store.places import STORES, Places
from tests.support.talk.living import (
    SETTINGS,
    exported,
    imported,
    live,
    told,
    told_at_rest,
    wipe,
    without_time,
)
from tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def _nothing_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a learner notes of the sessions that it has looked at would be a difference."""
    monkeypatch.setattr(Runner, "open", lambda runner: None)


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, places: Places, tmp_path: Path) -> str:
    return places.of(request.param, tmp_path).url


async def says_again(here: Rig, before: dict[str, Any]) -> None:
    """The API says what it said: recall's index follows a moment later."""

    async def same() -> bool:
        return await told(here.client) == before

    try:
        await eventually(same)
    except AssertionError:
        assert await told(here.client) == before
        raise


async def test_an_export_brings_back_all_that_was_wiped(url: str, tmp_path: Path) -> None:
    async with rig(tmp_path, store__url=url, **SETTINGS) as here:
        await live(here)
        before, export = await told_at_rest(here.client), await exported(here.client)
        await wipe(here)
        assert (await exported(here.client)).count(b"\n") == 2

        answer = await imported(here.client, export)

        assert answer["sessions"] == 5
        assert answer["warnings"] == []
        await says_again(here, before)
        assert without_time(await exported(here.client)) == without_time(export)
        await wipe(here)


async def test_memory_moves_from_store_to_store_and_back_without_a_difference(
    places: Places, tmp_path: Path
) -> None:
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    for folder in (first, second, third):
        folder.mkdir()
    async with rig(first, store__url=f"sqlite:///{first}/memory.db", **SETTINGS) as here:
        await live(here)
        before, export = await told_at_rest(here.client), await exported(here.client)
    async with rig(second, store__url=places.of("redis", tmp_path).url, **SETTINGS) as there:
        await imported(there.client, export)
        again = await exported(there.client)
        await wipe(there)
    async with rig(third, store__url=f"sqlite:///{third}/memory.db", **SETTINGS) as back:
        await imported(back.client, again)
        assert without_time(await exported(back.client)) == without_time(export)
        await says_again(back, before)
    assert without_time(again) == without_time(export)


async def test_importing_again_changes_nothing(url: str, tmp_path: Path) -> None:
    async with rig(tmp_path, store__url=url, **SETTINGS) as here:
        await live(here)
        export = await exported(here.client)

        answer = await imported(here.client, export)

        assert (answer["sessions"], answer["memories"]) == (0, 0)
        assert answer["skipped"] == {"sessions": 5, "memories": export.count(b'{"kind":"item"')}
        assert without_time(await exported(here.client)) == without_time(export)
        await wipe(here)


async def test_a_persons_export_has_what_is_theirs_and_nothing_else(
    url: str, tmp_path: Path
) -> None:
    async with rig(tmp_path, store__url=url, **SETTINGS) as here:
        await live(here)
        before = await told_at_rest(here.client)
        export = await exported(here.client, "/users/alice/export")
        assert (
            export.splitlines()[1:]
            == (await exported(here.client, "/export?user=alice")).splitlines()[1:]
        )
        assert b"baker" not in export and b"shared" not in export
        await wipe(here)

        answer = await imported(here.client, export)

        assert (answer["sessions"], answer["skipped"]["sessions"]) == (2, 0)
        paths = [path for path in before if "alice" in path or "a-1" in path or "a-2" in path]
        assert len(paths) > 20

        async def same() -> bool:
            now = await told(here.client)
            return all(now.get(path) == before[path] for path in paths if "?" not in path)

        await eventually(same)
        assert without_time(await exported(here.client)) == without_time(export)
        await wipe(here)


async def test_a_sessions_export_is_that_session_alone(url: str, tmp_path: Path) -> None:
    async with rig(tmp_path, store__url=url, **SETTINGS) as here:
        await live(here)
        export = await exported(here.client, "/sessions/a-2/export")
        await wipe(here)

        answer = await imported(here.client, export)

        assert (answer["sessions"], answer["memories"]) == (1, 0)
        assert without_time(await exported(here.client, "/sessions/a-2/export")) == without_time(
            export
        )
        await wipe(here)
