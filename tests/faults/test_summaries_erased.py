"""A deleted session leaves nothing of its summary, wherever a summary lies or is on its way to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.processes import redis as servers
from tests.support.rig import rig
from tests.support.store.inside import nothing_left
from tests.support.upstream.scribing import EVER, FEW, Gate, Scribe, all_done, says, summarised
from tests.support.waiting import eventually

FIRST = 918273000
"""The number of the first turn: nothing else looks like it."""
MARKER = b"918273"

Holds = Callable[[bytes], bool]


def in_files(folder: Path) -> Holds:
    """Is this in a file there: the database, its log, the spool?"""
    return lambda text: any(
        text in file.read_bytes() for file in folder.rglob("*") if file.is_file()
    )


def in_redis(server: servers.Server) -> Holds:
    """Is this in a key's name or in what it holds?  The mark of an erasure names its session."""

    def holds(text: bytes) -> bool:
        keys = [key for key in server.ask("KEYS", "*") if not key.endswith(b"erased")]
        return any(text in key or text in (server.ask("DUMP", key) or b"") for key in keys)

    return holds


@pytest.fixture(params=["sqlite", "redis"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Holds]]:
    """A store's URL, and a raw look into it."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/memory.db", in_files(tmp_path)
    else:
        with servers.standalone(rdbcompression="no") as server:
            yield server.url, in_redis(server)


async def test_nothing_of_a_summary_is_left_once_its_session_is_deleted(
    tmp_path: Path, place: tuple[str, Holds]
) -> None:
    url, holds = place
    async with rig(tmp_path, store__url=url, **FEW) as one:
        scribe, talk = Scribe(one.up), one.talk()
        for number in range(5):
            await says(talk, FIRST + number)
            await all_done(talk)
        assert MARKER in (await summarised(talk, 2)).encode()
        scribe.plays = gate = Gate()
        await says(talk, FIRST + 5)

        async def being_written() -> bool:
            return len(scribe.asked) > 3

        await eventually(being_written)
        assert [work.session for work in await one.store.waiting(EVER, 10)] == [talk.session]
        assert holds(b"Told: [%d] [" % FIRST) and holds(talk.session.encode())

        path = f"/memory/v1/sessions/{talk.session}"
        assert (await one.client.delete(path, headers=talk.all_headers)).status_code == 200
        assert not await one.store.waiting(EVER, 10)
        assert not holds(MARKER) and not holds(talk.session.encode())

        gate.open.set()
        await scribe.asked[-1].answered.wait()
        await nothing_left(one.proxy)
        assert len(scribe.asked) == 4
        assert not await one.store.summaries(talk.key)
        assert not holds(MARKER) and not holds(talk.session.encode())
