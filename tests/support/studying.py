"""Profiles, episodes and instructions in a classroom: one store, one scripted model, one clock."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from proxy.chat.message import text_of
from proxy.learning.exchanges import Exchanges
from proxy.learning.feedback import Score
from proxy.learning.forgetting import Forgetting, Forgotten
from proxy.learning.learned import Learned
from proxy.learning.profile_patch import Document
from proxy.learning.profile_schema import Schema, Schemas
from proxy.memory.items import Shelf
from proxy.memory.model import SessionKey, message_id
from proxy.settings import ProfileSettings
from tests.support.learning import KAI, Answer, Classroom, count, work

TENANT = Shelf("t")


def settings(**parts: Mapping[str, Any]) -> ProfileSettings:
    """A profile with these parts switched on."""
    return ProfileSettings.model_validate({n: {"enabled": True, **p} for n, p in parts.items()})


def patched(*operations: Mapping[str, Any], quotes: Sequence[str]) -> str:
    """A model's answer with a patch."""
    return json.dumps({"patch": operations, "quotes": quotes})


def adding(path: str, value: object, quote: str) -> str:
    """A model's answer that adds one thing."""
    return patched({"op": "add", "path": path, "value": value}, quotes=[quote])


NOTHING = patched(quotes=[])


class Fixed(Schemas):
    """The same schema for all profiles."""

    def __init__(self, schema: Mapping[str, Any] | None = None) -> None:
        self._schema = Schema(schema)

    def of(self, path: str) -> Schema:
        return self._schema


class Study:
    """What is in ``room``, with the parts that make profiles, episodes and instructions."""

    def __init__(self, room: Classroom, schema: Mapping[str, Any] | None = None) -> None:
        self.room = room
        self.learned = Learned(
            room.store, Fixed(schema), text_of, count, lambda name: room.settings, room.clock
        )
        room.students = self.learned.students(room.model, room.skipped.append)
        self.reflector = self.learned.reflector(room.model, room.skipped.append)
        self.exchanges = Exchanges(room.store, text_of)

    def answers(self, *answers: Answer) -> None:
        """What the model will answer next."""
        self.room.model.answers += answers

    @property
    def asked(self) -> list[str]:
        return [assignment.text for assignment in self.room.model.asked]

    async def teach(self, text: str, answer: Answer, session: str = "s") -> str:
        """Say something, and let it be learned from; the exchange's id."""
        (exchange,) = await self.room.say(text, session=session)
        self.answers(answer)
        assert await self.room.learn(session) is None
        return exchange

    async def document(self) -> Document:
        return (await self.learned.profiles.current(KAI)).profile.document

    async def forget(
        self, session: str, exchange: str | None = None, *, dry_run: bool = False
    ) -> list[Forgotten]:
        store = self.room.store
        forgetting = Forgetting(store, store, ["profile", "episodes"], self.learned.forgetting())
        return await forgetting.forget(KAI, session, exchange, dry_run)

    async def judge(
        self, exchange: str, score: Score, comment: str = "", session: str = "s"
    ) -> None:
        """Feedback on the answer of an exchange."""
        key = SessionKey("t", session)
        known = await self.room.store.session(key)
        assert known is not None
        answer = message_id(exchange, 1)
        await self.learned.feedback.take(known, key, answer, score, comment)

    async def reflect(self, session: str = "s") -> float | None:
        """Let the learner look at what there is to make better."""
        learner = self.room.learner
        learner.reflectors = (self.reflector,)
        return await learner.run(work(session))
