"""Makes better instructions of feedback: a proposal, or with ``auto_apply`` a new version."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from proxy.background.completion import Completer
from proxy.learning.asking import assignment
from proxy.learning.exchanges import Exchanges
from proxy.learning.feedback import feedback_on
from proxy.learning.instructions import FEATURE, Given, Proposal, new_id
from proxy.learning.instructions_check import doubts
from proxy.learning.instructions_pending import PendingFeedback
from proxy.learning.instructions_prompt import (
    SCHEMA,
    Improved,
    Remark,
    again,
    improved_in,
    prompt,
    written,
)
from proxy.learning.instructions_shelf import Held, InstructionShelf
from proxy.learning.lesson import Occasion
from proxy.memory.items import Change, Items, Shelf
from proxy.memory.model import SessionKey
from proxy.settings import ProfileSettings

NO_JSON = 'there is no JSON object with "instructions" in it'

MOST_REMARKS = 30
"""Pieces of feedback in one request, the newest."""

TRIES = 2


@dataclass(frozen=True, slots=True)
class InstructionsReflector:
    """See :class:`proxy.learning.lesson.Reflector`.

    An answer that cannot be used is asked for once more; then all stays as it is until as much
    feedback has come again, and ``skipped`` is told.  ``count`` gives the tokens of a text,
    ``clock`` Unix seconds.
    """

    items: Items
    instructions: InstructionShelf
    pending: PendingFeedback
    exchanges: Exchanges
    completer: Completer
    count: Callable[[str], int]
    clock: Callable[[], float]
    skipped: Callable[[str], None] = field(default=lambda feature: None)

    def wants(self, settings: ProfileSettings) -> bool:
        return settings.instructions.enabled

    def ready(self, tenant: str, settings: ProfileSettings) -> bool:
        return self.completer.ready(assignment(tenant, FEATURE, settings.instructions))

    async def reflect(self, occasion: Occasion) -> bool:
        chosen, shelf = occasion.settings.instructions, Shelf(occasion.key.tenant)
        waiting = await self.pending.waiting(shelf, chosen.name)
        if not waiting.reflection.due(chosen.after_feedback):
            return True
        pending = await self.pending.pending(shelf, chosen.name)
        held = await self.instructions.current(shelf, chosen.name)
        remarks = await self._remarks(shelf.tenant, [each for _, each in pending])
        taken = self._fitting(occasion, held, remarks)
        improved = await self._improved(occasion, held, taken) if taken else None
        if taken and improved is None:
            self.skipped(FEATURE)
            return await self.pending.tried(shelf, chosen.name)
        changes: list[Change] = []
        if improved is not None and improved.text != held.instructions.text:
            changes = await self._proposing(occasion, held, improved, taken)
        items = [item for item, _ in pending]
        return await self.pending.done(shelf, chosen.name, items, changes)

    async def _remarks(self, tenant: str, pending: Sequence[Given]) -> list[Remark]:
        """The feedback that is still there about exchanges that are still there, newest first."""
        found: list[Remark] = []
        for each in pending[:MOST_REMARKS]:
            said = await feedback_on(self.items, tenant, each.user, each.session, [each.message])
            key = SessionKey(tenant, each.session)
            exchange = await self.exchanges.answered(key, each.message) if said else None
            if exchange is not None:
                found.append(Remark(said[each.message], exchange, each))
        return found

    def _fitting(self, occasion: Occasion, held: Held, remarks: Sequence[Remark]) -> list[Remark]:
        chosen, taken = occasion.settings.instructions, list[Remark]()
        room = chosen.max_input_tokens - self.count(held.instructions.text)
        for remark in remarks:
            room -= self.count(written(1, remark))
            if taken and room < 0:
                break
            taken.append(remark)
        return taken[::-1]

    async def _improved(
        self, occasion: Occasion, held: Held, remarks: Sequence[Remark]
    ) -> Improved | None:
        """What the model proposes, None if that cannot be used.  Raises CompletionError."""
        chosen = occasion.settings.instructions
        asked = prompt(held.instructions.text, remarks, chosen.focus, chosen.max_tokens)
        text = asked
        for _ in range(TRIES):
            job = assignment(occasion.key.tenant, FEATURE, chosen, text, occasion.model, SCHEMA)
            answer = (await self.completer.complete(job)).text
            improved = improved_in(answer)
            problem = self._problem(improved, chosen.max_tokens)
            if problem is None:
                return improved
            text = again(asked, answer, problem)
        return None

    def _problem(self, improved: Improved | None, max_tokens: int) -> str | None:
        if improved is None:
            return NO_JSON
        if not improved.text:
            return "the instructions are empty"
        tokens = self.count(improved.text)
        if tokens > max_tokens:
            return f"the instructions have {tokens} tokens and must not have more than {max_tokens}"
        return None

    async def _proposing(
        self, occasion: Occasion, held: Held, improved: Improved, remarks: Sequence[Remark]
    ) -> list[Change]:
        chosen, shelf = occasion.settings.instructions, Shelf(occasion.key.tenant)
        now, current = self.clock(), held.instructions
        said = [text for remark in remarks for text in remark.said]
        found = doubts(improved.text, current.text, said)
        applied = chosen.auto_apply and not found
        proposal = Proposal(
            id=new_id(now),
            text=improved.text,
            why=improved.why,
            base=current.version,
            feedback=len(remarks),
            state="applied" if applied else "pending",
            doubts=found,
            sources=tuple(remark.given for remark in remarks),
            created_at=now,
            decided_at=now if applied else None,
        )
        changes = await self.instructions.proposing(shelf, chosen.name, proposal)
        if applied:
            changes += self.instructions.applying(chosen.name, held, proposal)
        return changes
