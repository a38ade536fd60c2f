"""``memory-proxy reindex``: indexes made anew from the history."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from proxy.chat.message import typed_text_of
from proxy.cli import app
from proxy.maintenance import reindex
from proxy.memory.model import SessionKey
from proxy.recall.index import Owner
from proxy.recall.indexing.indexer import Indexer
from proxy.settings import Settings, load
from tests.support.store.commits import chat
from tests.support.store.inside import store_at

TENANT = "acme"


@pytest.fixture
async def settings(tmp_path: Path) -> Settings:
    """A store with three sessions: two of one user, one of nobody's, and no index."""
    url = f"sqlite:///{tmp_path}/memory.db"
    async with store_at(url) as store:
        for session, user in [("a", "kai"), ("b", "kai"), ("c", None)]:
            await store.commit(SessionKey(TENANT, session), chat(f"x{session}", user=user))
        await store.commit(SessionKey("other", "z"), chat("xz", user="kai"))
    return load(None, {"store.url": url, "spool.path": f"{tmp_path}/spool.db"}, {})


async def passages(settings: Settings, owner: Owner) -> int:
    async with store_at(settings.store.url) as store:
        indexer = Indexer(store, store, typed_text_of, time.time)
        return (await indexer._state(owner)).passages


async def test_every_owner_of_every_tenant_is_indexed_and_the_progress_told(
    settings: Settings,
) -> None:
    told: list[tuple[int, int]] = []
    assert await reindex(settings, None, None, lambda *at: told.append(at)) == 8
    assert told[-1] == (4, 4) and [done for done, _ in told] == sorted(done for done, _ in told)
    assert await passages(settings, Owner(TENANT, user="kai")) == 4
    assert await passages(settings, Owner(TENANT, session="c")) == 2
    assert await passages(settings, Owner("other", user="kai")) == 2


async def test_it_can_be_done_again_and_indexes_nothing_twice(settings: Settings) -> None:
    for _ in range(2):
        assert await reindex(settings, None, None, lambda *at: None) == 8
    assert await passages(settings, Owner(TENANT, user="kai")) == 4


async def test_one_tenant_or_one_user_of_it_alone(settings: Settings) -> None:
    assert await reindex(settings, TENANT, "kai", lambda *at: None) == 4
    assert await passages(settings, Owner("other", user="kai")) == 0
    assert await passages(settings, Owner(TENANT, session="c")) == 0
    assert await reindex(settings, TENANT, None, lambda *at: None) == 6


async def test_the_command_says_how_many_and_draws_no_bar_into_a_file(settings: Settings) -> None:
    arguments = ["reindex", "--store", settings.store.url]
    result = await asyncio.to_thread(CliRunner().invoke, app, arguments)
    assert result.exit_code == 0
    assert (result.stdout, result.stderr) == ("8 messages indexed\n", "")


@pytest.mark.parametrize("command", [["reindex"], ["tenants", "move", "old", "new"]])
def test_a_file_that_is_not_there_is_not_made(command: list[str], tmp_path: Path) -> None:
    result = CliRunner().invoke(app, [*command, "--store", f"sqlite:///{tmp_path}/typo.db"])
    assert (result.exit_code, list(tmp_path.iterdir())) == (3, [])
    assert "There is no database at" in result.stderr


def test_an_empty_name_is_refused(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/new.db"
    result = CliRunner().invoke(app, ["reindex", "--tenant", "", "--store", store])
    assert (result.exit_code, "need a name" in result.stderr) == (2, True)


def test_a_user_without_a_tenant_is_refused(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/new.db"
    result = CliRunner().invoke(app, ["reindex", "--user", "kai", "--store", store])
    assert result.exit_code == 2
    assert "--tenant" in result.output


def test_a_store_that_is_not_there_is_said(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["reindex", "--store", "redis://127.0.0.1:1"])
    assert result.exit_code == 1
    assert "the store does not work" in result.output
