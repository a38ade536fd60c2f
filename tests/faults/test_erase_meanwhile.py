"""Erasing goes on beside everything else: what began before leaves nothing, what begins after
does."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from proxy.memory.store import StoreError
from tests.support.learning.environment import NOTHING, adding
from tests.support.learning.harness import answer, operation
from tests.support.rig import Rig, Talk, rig
from tests.support.store.dossier import API, Dossier
from tests.support.store.inside import nothing_left
from tests.support.store.places import STORES, Place, Places
from tests.support.store.scanning import found_in_files
from tests.support.upstream.answers import (
    Piece,
    Script,
    chat_completion,
    chat_stream,
    json_answer,
    sse,
)
from tests.support.upstream.connection import Request
from tests.support.upstream.scribing import FEW, SCRIBE
from tests.support.waiting import eventually

BREATH = 0.02
"""Seconds between a reply and the next text; nine that take none leave nothing for the erasing."""

WRITER = "writer"
"""The model of all that is learned."""


@pytest.fixture(params=STORES)
def place(request: pytest.FixtureRequest, places: Places, tmp_path: Path) -> Place:
    return places.of(request.param, tmp_path)


@pytest.fixture(params=["sqlite", "redis"])
def lasting(request: pytest.FixtureRequest, places: Places, tmp_path: Path) -> Place:
    return places.of(request.param, tmp_path)


@pytest.fixture
async def one(place: Place) -> AsyncIterator[Rig]:
    async with rig(place.folder, store__url=place.url) as one:
        yield one


def user_says(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


async def says(talk: Talk, text: str, **more: Any) -> None:
    response = await talk.ask(user_says(text), stream=True, **more)
    assert response.status_code == 200
    assert response.text.endswith("data: [DONE]\n\n")


async def remembers(talk: Talk) -> str:
    """All that is recorded of a session."""
    return " ".join(message.wire.decode() for message in await talk.history())


@dataclass
class Chatter:
    """Talks in one session, on and on; each text is marked, and when it was begun is kept."""

    talk: Talk
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    begun: dict[str, float] = field(default_factory=dict)

    async def run(self) -> None:
        while not self.stop.is_set():
            marker = f"{uuid.uuid4().hex}-is-said"
            self.begun[marker] = time.time()
            await says(self.talk, marker)
            await asyncio.sleep(BREATH)


@dataclass
class Heard:
    """When an upstream got each text: by then its exchange had begun."""

    times: dict[str, float] = field(default_factory=dict)

    def __call__(self, request: Request) -> Script:
        text = request.messages[-1]["content"].split("\n")[-1]
        self.times[text] = time.time()
        return sse(chat_stream(["Aye, ", text]))


async def test_eight_streams_go_on_and_nothing_said_before_is_left(place: Place, one: Rig) -> None:
    heard = Heard()
    one.up.always(heard)
    kai, eve = Dossier(one), Dossier(one)
    theirs = [Chatter(one.talk(**{"x-user-id": kai.user})) for _ in range(8)]
    other = Chatter(one.talk(**{"x-user-id": eve.user}))
    async with asyncio.TaskGroup() as running:
        for chatter in (*theirs, other):
            running.create_task(chatter.run())

        async def warm() -> bool:
            return all(len(chatter.begun) > 3 for chatter in theirs)

        await eventually(warm)
        receipts = [await kai.erase() for _ in range(3)]
        received = time.time()
        after = len(heard.times) + 60

        async def talked_on() -> bool:
            return len(heard.times) > after

        await eventually(talked_on)
        for chatter in (*theirs, other):
            chatter.stop.set()
    await nothing_left(one.proxy)

    erased_at = receipts[-1]["erased_at"]
    begun = {marker: at for chatter in theirs for marker, at in chatter.begun.items()}
    before = [marker for marker in begun if heard.times[marker] <= erased_at]
    later = [marker for marker in begun if begun[marker] > received]
    assert len(before) > 30 and len(later) > 15
    assert receipts[0]["counts"]["sessions"] == 8
    kept = " ".join([await remembers(chatter.talk) for chatter in theirs])
    assert [marker for marker in later if marker not in kept] == []
    assert place.scan(one, *before) == []
    others = await remembers(other.talk)
    assert [marker for marker in other.begun if marker not in others] == []


def held_back(text: str, gate: asyncio.Event) -> Script:
    """A stream that says its text and stops before its end until the gate opens."""
    first, *rest = chat_stream([text], include_usage=True)
    pieces: list[Piece] = [first, rest[0], gate, *rest[1:]]
    return sse(pieces)


@pytest.mark.parametrize("named", [True, False], ids=["named", "owner"])
@pytest.mark.parametrize("what", ["user", "session"])
async def test_a_stream_that_began_before_and_ends_after_leaves_nothing(
    place: Place, one: Rig, what: str, named: bool
) -> None:
    """Whether it names its person, or only the session does."""
    kai, gate = Dossier(one), asyncio.Event()
    talk = kai.talks[0]
    await says(talk, kai.text("asked"))
    anonymous = Talk(one, talk.session)
    one.up.reply(held_back(kai.text("answered"), gate))
    slow = asyncio.create_task(says(talk if named else anonymous, kai.text("wish")))
    await one.up.wait_for(2)
    path = f"{API}/users/{kai.user}" if what == "user" else f"{API}/sessions/{talk.session}"
    receipt = await kai.call("DELETE", path)
    assert receipt["counts"]["messages"] == 2
    gate.set()
    await slow
    await nothing_left(one.proxy)
    assert place.scan(one, *kai.markers) == []
    await kai.call("GET", f"{API}/sessions/{talk.session}", status=404)
    await says(talk, "Hello again.")
    assert "Hello again." in await remembers(talk)
    again = await one.store.real.session(talk.key)
    assert again is not None and again.user == kai.user
    assert place.scan(one, *kai.markers) == []


class Writers:
    """An upstream whose models that write memory wait at a gate; chats are answered at once."""

    def __init__(self, one: Rig, text_of: Callable[[str], str]) -> None:
        self.text_of = text_of
        self.gate = asyncio.Event()
        self.asked: list[str] = []
        one.up.always(self._answer)

    def _answer(self, request: Request) -> Script:
        if request.json["model"] not in (WRITER, SCRIBE):
            return sse(chat_stream(["Aye."]))
        self.asked.append(request.messages[0]["content"])
        body = json.dumps(chat_completion(self.text_of(self.asked[-1]))).encode()
        return sse([self.gate, body]) if not self.gate.is_set() else json_answer(json.loads(body))

    async def asked_about(self, marker: str) -> None:
        async def heard() -> bool:
            return any(marker in text for text in self.asked)

        await eventually(heard)


async def test_a_hung_summary_that_comes_back_is_not_kept(lasting: Place) -> None:
    async with rig(lasting.folder, store__url=lasting.url, **FEW) as one:
        kai = Dossier(one)
        talk = kai.talks[0]
        writers = Writers(one, lambda text: f"In short: {kai.marker('summary')}")
        for _ in range(4):
            await says(talk, kai.text("asked"))
        await writers.asked_about(kai.marker("asked"))
        await kai.erase()
        for _ in range(2):
            await says(talk, "Something else.")
        writers.gate.set()
        await nothing_left(one.proxy)
        assert lasting.scan(one, *kai.markers) == []
        assert "Something else." in await remembers(talk)


async def test_a_learner_in_the_middle_keeps_nothing(lasting: Place) -> None:
    learns = {"enabled": True, "model": WRITER, "after_turns": 1}
    settings: dict[str, object] = {"memory__profile": learns, "memory__facts": learns}
    async with rig(lasting.folder, store__url=lasting.url, **settings) as one:
        kai, eve = Dossier(one), Dossier(one)

        def learned(text: str) -> str:
            who = next((each for each in (kai, eve) if each.marker("asked") in text), None)
            if who is None:
                return NOTHING if "append" in text else answer()
            told = who.text("asked")
            if "append" in text:
                return adding("/name", told, told)
            return answer(operation(text=told, quote=told))

        writers = Writers(one, learned)
        for each in (kai, eve):
            await says(each.talks[0], each.text("asked"))
            await writers.asked_about(each.marker("asked"))
        await kai.erase()
        await says(kai.talks[0], "Something else.")
        writers.gate.set()

        async def learned_of(person: Dossier) -> list[Any]:
            api = f"{API}/users/{person.user}"
            facts = await person.call("GET", f"{api}/memories?kind=fact")
            profile = await person.call("GET", f"{api}/profile")
            return [*(fact["text"] for fact in facts["data"]), profile["document"].get("name")]

        async def others_learned() -> bool:
            return await learned_of(eve) == [eve.text("asked")] * 2

        await eventually(others_learned)
        await nothing_left(one.proxy)
        assert lasting.scan(one, *kai.markers) == []
        assert "Something else." in await remembers(kai.talks[0])
        assert await learned_of(kai) == [None]


@contextmanager
def cut_off(one: Rig) -> Iterator[None]:
    """The store cannot be reached by this proxy."""

    async def fails(*_: object, **__: object) -> Any:
        raise StoreError("connection refused")

    names = ("load", "commit", "amend", "ping", "bodies", "session", "change_items")
    for name in names:
        setattr(one.store, name, fails)
    try:
        yield
    finally:
        for name in names:
            delattr(one.store, name)


async def test_what_another_hosts_spool_kept_does_not_come_back(lasting: Place) -> None:
    folder = lasting.folder / "far"
    folder.mkdir()
    async with (
        rig(lasting.folder, store__url=lasting.url) as one,
        rig(folder, store__url=lasting.url) as far,
    ):
        kai, eve = Dossier(one), Dossier(one)
        talk = kai.talks[0]
        await says(talk, kai.text("asked"))
        with cut_off(far):
            for place, session, user in [
                ("answered", talk.session, kai.user),
                ("system", talk.session, None),
                ("fact", f"new-{kai.token}", kai.user),
            ]:
                headers = {"x-user-id": user} if user else {}
                await says(Talk(far, session, headers), kai.text(place))
            mine = Talk(far, eve.talks[0].session, {"x-user-id": eve.user})
            await says(mine, eve.text("asked"))
            receipt = await kai.erase()
            assert receipt["counts"]["sessions"] == 1
            left = [kai.marker(place) for place in ("answered", "system", "fact")]
            assert len(found_in_files(folder, *left)) >= 3
            await says(Talk(far, talk.session, {"x-user-id": kai.user}), "And afterwards.")

        async def replayed() -> bool:
            written = await remembers(talk)
            return "And afterwards." in written and not found_in_files(folder, *left)

        await eventually(replayed)
        await nothing_left(one.proxy)
        assert lasting.scan(one, *kai.markers) == []
        assert eve.marker("asked") in await remembers(eve.talks[0])
        again = await one.store.real.session(talk.key)
        assert again is not None and again.user == kai.user
