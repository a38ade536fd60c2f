"""What learning is tested with: sessions in a store, and a model that learns by plain rules."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from proxy.background.completion import Assignment, Completed, Failed
from proxy.background.runner import Backoff
from proxy.chat.message import typed_string_of
from proxy.learning.batch import Extractor
from proxy.learning.collection import OwnerLocks, Stored
from proxy.learning.facts.extract import FactExtractor
from proxy.learning.facts.fact import Fact
from proxy.learning.facts.store import FactStore
from proxy.learning.job import LearningJob
from proxy.learning.kinds import FACTS, Kind
from proxy.learning.learned import Forgetter
from proxy.learning.prompt_cards import Block, TokenBudget
from proxy.learning.reading import Reader
from proxy.learning.similarity import QueryText
from proxy.memory.items import ItemOwner
from proxy.memory.model import Draft, SessionKey, Work, message_id
from proxy.settings import ProfileSettings
from proxy.stores.open import Backend
from tests.support.clock import Clock
from tests.support.store.commits import card, record

KAI = ItemOwner("t", "kai")
DAY = 86_400.0
MAY = 1_683_554_160.0
"""Monday, 2023-05-08 13:56 UTC"""

BACKOFF = Backoff(first_seconds=5.0, max_seconds=600.0)

Answer = str | Completed | Exception | Callable[[Assignment], str]


def count(text: str) -> int:
    """Tokens, about."""
    return (len(text) + 3) // 4


def block_of(
    kind: Kind,
    card: bytes,
    profile: ProfileSettings,
    question: QueryText,
    budget: int,
    now: float = 0.0,
) -> Block | None:
    """What of a card goes into a prompt that has so many tokens left."""
    room = TokenBudget(min(budget, kind.settings(profile).max_tokens), count, now)
    return kind.choose(card, profile, question, room)


class Heard(NamedTuple):
    """A message as the model is shown it."""

    number: int
    date: str
    text: str


_MESSAGE = re.compile(
    r"^Message (\d+), \w+ (\S+) \S+?(?:, text of \S+)?:\n((?:  .*(?:\n|\Z)|\n)*)", re.MULTILINE
)
_NOTE = re.compile(r"^(\d+)\. (.*) \(noted ([^)]+)\)$", re.MULTILINE)


def messages_in(text: str) -> list[Heard]:
    found = _MESSAGE.findall(text)
    return [Heard(int(n), date, said.replace("\n  ", "\n").strip()) for n, date, said in found]


def notes_in(text: str) -> list[tuple[int, str]]:
    return [(int(number), note) for number, note, _ in _NOTE.findall(text)]


def operation(op: str = "add", **fields: Any) -> dict[str, Any]:
    known: dict[str, Any] = {"fact": None, "text": "", "about": "user", "message": 1, "quote": ""}
    return {"op": op, **known, "valid_from": None, "expires": None, **fields}


def answer(*operations: dict[str, Any]) -> str:
    return json.dumps({"operations": operations})


Rule = Callable[[Heard, Sequence[tuple[int, str]]], dict[str, Any] | None]


@dataclass
class ScriptedModel:
    """A Completer that answers with the next of ``answers``, then by ``rules``.

    ``asked`` has all that it was asked.  ``credential``: is there one?  ``down`` are the models of
    sessions that fail.
    """

    rules: Sequence[Rule] = ()
    answers: list[Answer] = field(default_factory=list)
    asked: list[Assignment] = field(default_factory=list)
    credential: bool = True
    down: set[str | None] = field(default_factory=set)

    def is_ready(self, assignment: Assignment) -> bool:
        return self.credential

    async def complete(self, assignment: Assignment) -> Completed:
        self.asked.append(assignment)
        if assignment.default_model in self.down:
            raise Failed("503")
        given = self.answers.pop(0) if self.answers else self._by_rules
        if isinstance(given, Exception):
            raise given
        if isinstance(given, Completed):
            return given
        text = given if isinstance(given, str) else given(assignment)
        return Completed(text=text, model="scripted")

    def _by_rules(self, assignment: Assignment) -> str:
        heard, notes = messages_in(assignment.text), notes_in(assignment.text)
        found = [rule(each, notes) for each in heard for rule in self.rules]
        return answer(*(each for each in found if each is not None))


def states(pattern: str, note: str, *, subject: str = "", about: str = "user") -> Rule:
    """A rule: what matches is noted as ``note``, filled with the match's groups.

    A note so far that holds ``subject`` is superseded, or confirmed if it says the same.
    """

    def rule(heard: Heard, notes: Sequence[tuple[int, str]]) -> dict[str, Any] | None:
        found = re.search(pattern, heard.text, re.IGNORECASE)
        if found is None:
            return None
        text = note.format(*found.groups())
        fields = {"text": text, "quote": found[0], "message": heard.number}
        fields["about"] = about.format(*found.groups())
        same = [number for number, known in notes if known == text]
        former = [number for number, known in notes if subject and subject in known]
        if same:
            return operation("none", fact=same[0], **fields)
        if former:
            return operation("supersede", fact=former[-1], **fields)
        return operation("add", **fields)

    return rule


LIVES = states(r"I (?:live in|moved to) (\w+)", "The user lives in {}.", subject="lives in")


@dataclass
class Harness:
    """A job of facts over a store; sessions of ``kai`` in tenant "t"."""

    store: Backend
    model: ScriptedModel
    clock: Clock
    settings: ProfileSettings
    empty: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    extractors: Sequence[Extractor] = ()
    _said: int = 0

    @property
    def fact_store(self) -> FactStore:
        return FactStore(self.store, count, self.clock)

    @property
    def job(self) -> LearningJob:
        model = FACTS.model(self.model)
        extractor = FactExtractor(model, self.fact_store, lambda: self.empty.append("facts"))
        return LearningJob(
            reader=Reader(self.store, typed_string_of, count),
            items=self.store,
            queue=self.store,
            profile_of=lambda name: self.settings if name == "" else None,
            clock=self.clock,
            backoff=BACKOFF,
            extractors=self.extractors or (extractor,),
            on_skipped=self.skipped.append,
        )

    @property
    def forgetting(self) -> Forgetter:
        return Forgetter(self.store, OwnerLocks(), self.store, ["facts"], [self.fact_store])

    async def say(
        self,
        *texts: str,
        session: str = "s",
        at: float | None = None,
        user: str | None = "kai",
        model: str = "m",
    ) -> list[str]:
        """An exchange for each text, with an answer; the exchanges' ids."""
        exchanges = []
        for text in texts:
            self._said += 1
            id = f"ex_{self._said}"
            exchanges.append(await self.record(id, text, session, at, user, model))
        return exchanges

    async def record(
        self,
        id: str,
        text: str,
        session: str,
        at: float | None,
        user: str | None,
        model: str = "m",
    ) -> str:
        at = self.clock() if at is None else at
        answer_body = json.dumps({"role": "assistant", "content": f"I note: {text}"}).encode()
        drafts = [
            Draft(
                card=card(id, 0, tokens=count(text), created_at=at),
                turn=message_id(id, 0),
                body=json.dumps({"role": "user", "content": text}).encode(),
            ),
            Draft(
                card=card(id, 1, "assistant", created_at=at),
                turn=message_id(id, 0),
                body=answer_body,
            ),
        ]
        commit = record(id, *drafts, at=at, user=user, model=model)
        assert await self.store.commit(SessionKey("t", session), commit) == "recorded"
        return id

    async def learn(self, session: str = "s") -> float | None:
        return await self.job.run(work(session))

    async def filed(self) -> dict[str, Stored[Fact]]:
        return dict((await self.fact_store.load(KAI)).by_id)

    async def facts(self) -> list[Fact]:
        """All of them, in the order since when they hold."""
        facts = [filed.value for filed in (await self.filed()).values()]
        return sorted(facts, key=lambda fact: (fact.valid_from, fact.text))

    async def current(self) -> list[str]:
        return [fact.text for fact in await self.facts() if fact.holds(self.clock())]


def work(session: str = "s", attempts: int = 0, profile: str = "") -> Work:
    return Work(
        tenant="t", session=session, kind="learning", profile=profile, due=0.0, attempts=attempts
    )


def learning(**facts: Any) -> ProfileSettings:
    """A profile that learns facts."""
    return ProfileSettings.model_validate({"facts": {"enabled": True, **facts}})
