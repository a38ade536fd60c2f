"""Learning facts: one request a lesson, whose answer is checked before anything is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from proxy.background.completion import Completer
from proxy.learning.asking import assignment
from proxy.learning.fact import FACTS, Fact, new_id
from proxy.learning.fact_book import FactBook, Kept
from proxy.learning.fact_claim import Claim, claims
from proxy.learning.fact_operations import SCHEMA, Operation, operations_in
from proxy.learning.fact_prompt import AGAIN, prompt
from proxy.learning.fact_rules import entered
from proxy.learning.first_person import tells_of_user
from proxy.learning.lesson import BLANK, Lesson, Unreadable, mark_place
from proxy.memory.items import Items
from proxy.recall.question import read
from proxy.settings import ProfileSettings

SHOWN = 30
"""Facts that the model is shown: all if they are no more, else those most like the messages."""

CUE = 300
"""Characters of each message that say what it is about."""

ATTEMPTS = 5
"""How often what was learned is entered into what others have changed meanwhile."""


class FactStudent:
    """See :class:`proxy.learning.lesson.Student`.

    ``on_empty`` is told when nothing was found, twice, in messages that clearly tell something.
    """

    feature = FACTS

    def __init__(
        self,
        completer: Completer,
        items: Items,
        book: FactBook,
        on_empty: Callable[[], None] = lambda: None,
        ids: Callable[[], str] = new_id,
    ) -> None:
        self._completer, self._items, self._book = completer, items, book
        self._on_empty, self._new_id = on_empty, ids

    def wants(self, settings: ProfileSettings) -> bool:
        return settings.facts.enabled

    def room(self, settings: ProfileSettings) -> int:
        return settings.facts.max_input_tokens

    def ready(self, tenant: str, settings: ProfileSettings) -> bool:
        return self._completer.ready(assignment(tenant, FACTS, settings.facts))

    async def learn(self, lesson: Lesson) -> bool:
        if not any(said.own.strip(f"{BLANK} \n\t") for said in lesson.said):
            read = [lesson.mark(FACTS)]
            return await self._items.change_items(lesson.shelf, read, lesson.since)
        kept = await self._book.load(lesson.shelf)
        shown = _shown(kept, lesson, self._book.clock())
        operations = await self._operations(lesson, shown)
        found = claims(operations, lesson, [fact.id for fact in shown])
        return await self._enter(lesson, kept, found)

    async def _enter(self, lesson: Lesson, kept: Kept, found: Sequence[Claim]) -> bool:
        """Store what was learned; others' changes are no reason to ask the model again."""
        for _ in range(ATTEMPTS):
            facts = entered(
                kept.facts, found, lesson.settings.facts, self._new_id, self._book.clock()
            )
            read = [lesson.mark(FACTS)]
            if await self._book.save(lesson.shelf, kept, facts, read, lesson.since):
                return True
            if not await self._unread(lesson):
                return False
            kept = await self._book.load(lesson.shelf)
        return False

    async def _unread(self, lesson: Lesson) -> bool:
        """Is the lesson still one that nobody has learned, or taken back?"""
        place = mark_place(lesson.shelf.user, FACTS, lesson.key.session)
        item = (await self._items.items_at(lesson.shelf, [place])).get(place)
        return (item.version if item else 0) == lesson.read

    async def _operations(self, lesson: Lesson, shown: Sequence[Fact]) -> tuple[Operation, ...]:
        """What the model answers; asked once more where that is nothing, or nothing readable."""
        text = prompt(lesson.said, shown, lesson.settings.facts.focus)
        first = await self._ask(lesson, text)
        telling = tells_of_user(lesson.said)
        if first or (first is not None and not telling):
            return first
        second = await self._ask(lesson, text if first is None else text + AGAIN)
        if second is None:
            if first is None:
                raise Unreadable("the answer about facts is not the JSON that was asked for")
            second = first
        if telling and not second:
            self._on_empty()
        return second

    async def _ask(self, lesson: Lesson, text: str) -> tuple[Operation, ...] | None:
        settings = lesson.settings.facts
        asked = assignment(lesson.shelf.tenant, FACTS, settings, text, lesson.model, SCHEMA)
        return operations_in((await self._completer.complete(asked)).text)


def _shown(kept: Kept, lesson: Lesson, now: float) -> list[Fact]:
    """The facts that the messages may be about."""
    held = [fact for fact in kept.facts.values() if fact.state == "current"]
    held = [fact for fact in held if fact.until is None or fact.until > now]
    held.sort(key=lambda fact: (fact.valid_from, fact.id))
    if len(held) <= SHOWN:
        return held
    asked = "\n".join(said.own[:CUE] for said in lesson.said)
    scores = kept.card.words.likeness(read(asked, (), now)).tolist()
    likeness = {line.id: score for line, score in zip(kept.card.lines, scores, strict=True)}
    best = sorted(held, key=lambda fact: (-likeness.get(fact.id, 0.0), -fact.last_confirmed))
    return sorted(best[:SHOWN], key=lambda fact: (fact.valid_from, fact.id))
