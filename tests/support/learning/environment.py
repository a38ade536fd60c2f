"""Profiles, episodes and instructions over one harness: one store, one model, one clock."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from proxy.chat.message import typed_string_of
from proxy.learning.batch import Exchanges
from proxy.learning.collection import Forgotten
from proxy.learning.feedback import Score
from proxy.learning.job import LearningJob
from proxy.learning.kinds import LearningObserver
from proxy.learning.learned import Learned
from proxy.learning.profile.document import Document, Schema, Schemas, Version
from proxy.learning.profile.proposal_check import AcceptedPatch
from proxy.memory.items import ItemOwner
from proxy.memory.model import SessionKey, message_id
from proxy.settings import ProfileSettings
from tests.support.learning.harness import KAI, Answer, Harness, count, work

TENANT = ItemOwner("t")


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


class Env:
    """The parts that make profiles, episodes and instructions, over a harness."""

    def __init__(self, harness: Harness, schema: Mapping[str, Any] | None = None) -> None:
        self.harness = harness
        self.learned = Learned(
            harness.store,
            Fixed(schema),
            typed_string_of,
            count,
            lambda name: harness.settings,
            harness.clock,
        )
        watch = LearningObserver(harness.skipped.append, lambda: harness.empty.append("facts"))
        harness.extractors = self.learned.extractors(harness.model, watch)
        self.improvers = self.learned.improvers(harness.model, watch)
        self.exchanges = Exchanges(harness.store, typed_string_of)

    def answers(self, *answers: Answer) -> None:
        """What the model will answer next."""
        self.harness.model.answers += answers

    @property
    def asked(self) -> list[str]:
        return [assignment.text for assignment in self.harness.model.asked]

    async def learn_from(self, text: str, answer: Answer, session: str = "s") -> str:
        """Say something, and let it be learned from; the exchange's id."""
        (exchange,) = await self.harness.say(text, session=session)
        self.answers(answer)
        assert await self.harness.learn(session) is None
        return exchange

    async def document(self) -> Document:
        return (await self.learned.profiles.current(KAI)).value.document

    async def forget(
        self, session: str, exchange: str | None = None, *, dry_run: bool = False
    ) -> list[Forgotten]:
        return await self.learned.forgetting.forget(KAI, session, exchange, dry_run)

    async def judge(
        self, exchange: str, score: Score, comment: str = "", session: str = "s"
    ) -> None:
        """Feedback on the answer of an exchange."""
        key = SessionKey("t", session)
        known = await self.harness.store.session(key)
        assert known is not None
        answer = message_id(exchange, 1)
        await self.learned.feedback.record(known, key, answer, score, comment)

    async def reflect(self, session: str = "s") -> float | None:
        """Let the job look at what there is to make better."""
        return await self.job.run(work(session))

    @property
    def job(self) -> LearningJob:
        """One more that learns and makes better, as in another process."""
        job = self.harness.job
        job.improvers = self.improvers
        return job


def version_of(number: int, accepted: AcceptedPatch) -> Version:
    """What was accepted as a version of the profile."""
    return Version(
        version=number,
        document=accepted.document,
        patch=accepted.patch,
        sources=accepted.sources,
        said=accepted.statements,
    )
