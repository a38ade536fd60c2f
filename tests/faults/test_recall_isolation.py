"""People at random who say, edit, rewind, retry and delete: nobody is told what is not theirs.

Every message holds a word of its own, so that a prompt says where its text is from.  Beside the
proxy stands the truth: which words a person may be reminded of.  After each step somebody asks for
all the words there ever were, and the very next request must show what the step did.
"""

from __future__ import annotations

import random
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from proxy.tenancy import digest_of
from tests.support.rig import Rig, Talk, rig
from tests.support.store.places import Places
from tests.support.talk.recalling import BLOCK, Person, index, somebody, texts, user_said

STEPS = 120
WORD = re.compile(r"\bzw[a-z]+\b")
LETTERS = "bcdfghklmnprstvx"
PEOPLE, SESSIONS = 3, 3
KEYS = ["sk-test", "sk-other"]
SETTINGS: dict[str, object] = {
    "memory__window": "none",
    "memory__recall__timeout": 10,
    "memory__recall__min_score": 0,
}
"""What is not recalled is not in a prompt at all; and what is there is recalled."""


@pytest.fixture(params=["sqlite", "redis"])
async def own(request: pytest.FixtureRequest, places: Places, tmp_path: Path) -> AsyncIterator[Rig]:
    url = places.of(request.param, tmp_path).url
    async with rig(tmp_path, **SETTINGS, store__url=url) as ready:
        yield ready


@dataclass
class Session:
    """``turns`` are the words of each turn that is in force: the question's and the answer's."""

    talk: Talk
    person: Person
    turns: list[tuple[str, str]] = field(default_factory=list)

    @property
    def words(self) -> set[str]:
        return {word for turn in self.turns for word in turn}


@dataclass
class World:
    """Two tenants with people of the same names, and sessions of the same names."""

    rig: Rig
    rng: random.Random
    sessions: list[Session] = field(default_factory=list)
    said: int = 0
    reminded: int = 0
    gone: list[str] = field(default_factory=list)

    def populate(self) -> None:
        people = [somebody(self.rig) for _ in range(PEOPLE)]
        for key in KEYS:
            for person in people:
                for n in range(SESSIONS):
                    talk = person.talk(f"{n} of {person.user}".replace(" ", "-"))
                    talk.headers["authorization"] = f"Bearer {key}"
                    self.sessions.append(Session(talk, person))

    def word(self) -> str:
        """A word that was never said, and that no other begins with."""
        self.said += 1
        digits = f"{self.said:04d}"
        return "zw" + "".join(LETTERS[int(digit)] for digit in digits) + "q"

    async def step(self) -> Session:
        """Something happens in a session, and the truth follows."""
        session = self.rng.choice(self.sessions)
        kinds = ["say", "say", "say", "rewind", "retry", "edit", "delete"]
        await getattr(self, f"_{self.rng.choice(kinds)}")(session)
        return session

    async def _exchange(
        self, session: Session, before: list[dict[str, Any]], **headers: str
    ) -> tuple[str, str]:
        question, answer = self.word(), self.word()
        sent = [*before, user_said(f"My {question} is here.")]
        await session.person.says(session.talk, sent, f"Your {answer} is there.", **headers)
        may = self.may_see(session)
        assert self.shown() <= may, "a prompt of a step shows what its person may not see"
        return question, answer

    async def _say(self, session: Session) -> None:
        session.turns.append(await self._exchange(session, []))

    async def _rewind(self, session: Session) -> None:
        count = self.rng.randint(1, 2)
        self._drop(session, count)
        session.turns.append(await self._exchange(session, [], x_memory_rewind=f"{count}"))

    async def _retry(self, session: Session) -> None:
        key = f"key-{self.said}"
        session.turns.append(await self._exchange(session, [], idempotency_key=key))
        await self.index(session)
        self._drop(session, 1)
        session.turns.append(await self._exchange(session, [], idempotency_key=key))

    async def _edit(self, session: Session) -> None:
        kept = self.rng.randint(0, len(session.turns))
        before: list[dict[str, Any]] = []
        for question, answer in session.turns[:kept]:
            before.append(user_said(f"My {question} is here."))
            before.append({"role": "assistant", "content": f"Your {answer} is there."})
        self._drop(session, len(session.turns) - kept)
        turn = await self._exchange(session, before, x_memory_history="full")
        session.turns.append(turn)

    async def _delete(self, session: Session) -> None:
        talk = session.talk
        path = f"/memory/v1/sessions/{talk.session}"
        deleted = await self.rig.client.delete(path, headers=talk.all_headers)
        assert deleted.status_code == (200 if session.turns else 404)
        self._drop(session, len(session.turns))

    def _drop(self, session: Session, count: int) -> None:
        dropped = session.turns[len(session.turns) - count :] if count else []
        self.gone += [word for turn in dropped for word in turn]
        del session.turns[max(0, len(session.turns) - count) :]

    async def index(self, session: Session) -> None:
        key = session.talk.key._replace(tenant=self.tenant(session))
        await index(self.rig.store.real, key)  # type: ignore[arg-type]

    def tenant(self, session: Session) -> str:
        return digest_of(session.talk.headers["authorization"].removeprefix("Bearer ").encode())

    def may_see(self, session: Session) -> set[str]:
        """The words of the same person under the same key."""
        mine = [
            other
            for other in self.sessions
            if other.person is session.person and self.tenant(other) == self.tenant(session)
        ]
        return {word for other in mine for word in other.words}

    def shown(self) -> set[str]:
        """Words in the blocks of the newest prompt."""
        prompt = texts(self.rig.up.requests[-1].messages)
        blocks = [found["lines"] for found in BLOCK.finditer(prompt)]
        return set(WORD.findall("\n".join(blocks)))

    async def ask(self, session: Session, *, indexed: bool = False) -> None:
        """Ask for words that are there and for words that are gone; nothing is recorded."""
        may = self.may_see(session)
        everything = {word for other in self.sessions for word in other.words}
        for words in (session.words, may, everything - may, set(self.gone)):
            asked = self.rng.sample(sorted(words), min(6, len(words)))
            question = f"What about {' and '.join(asked)}?"
            await session.person.says(session.talk, question, x_memory_mode="read")
            assert self.shown() <= may
            if indexed and asked and words <= session.words:
                assert self.shown() & set(asked), "what is there is found"
                self.reminded += 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1])
async def test_only_what_is_theirs_and_still_there_is_recalled(own: Rig, seed: int) -> None:
    world = World(own, random.Random(seed))
    world.populate()
    for number in range(STEPS):
        session = await world.step()
        await world.ask(world.rng.choice([session, world.rng.choice(world.sessions)]))
        if number % 3:
            await world.index(session)
            await world.ask(session, indexed=True)
    assert world.reminded > STEPS / 4 and len(world.gone) > STEPS / 2


def test_words_are_words_of_their_own() -> None:
    world = World(None, random.Random(1))  # type: ignore[arg-type]
    words = [world.word() for _ in range(2000)]
    assert len(set(words)) == 2000
    assert all(WORD.fullmatch(word) for word in words)
