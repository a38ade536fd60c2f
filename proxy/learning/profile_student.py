"""Learns a person's profile from what they say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from proxy.background.completion import Completer
from proxy.learning.asking import assignment
from proxy.learning.lesson import BLANK, Lesson, Unreadable
from proxy.learning.profile import FEATURE, Version
from proxy.learning.profile_patch import PatchError
from proxy.learning.profile_prompt import (
    Proposal,
    again,
    operations_of,
    prompt,
    proposal_in,
    sources_of,
)
from proxy.learning.profile_schema import Schema, Schemas
from proxy.learning.profile_shelf import Held, ProfileShelf, changed
from proxy.memory.items import Items
from proxy.settings import ProfileSettings

NO_JSON = 'there is no JSON object with "patch" in it'

TRIES = 2


@dataclass(frozen=True, slots=True)
class ProfileStudent:
    """See :class:`proxy.learning.lesson.Student`.

    A patch that cannot be used is asked for once more with what is wrong; then nothing changes, and
    ``skipped`` is told.  ``clock`` gives Unix seconds.
    """

    items: Items
    profiles: ProfileShelf
    schemas: Schemas
    completer: Completer
    clock: Callable[[], float]
    skipped: Callable[[str], None] = field(default=lambda feature: None)
    feature: str = FEATURE

    def wants(self, settings: ProfileSettings) -> bool:
        return settings.profile.enabled

    def room(self, settings: ProfileSettings) -> int:
        return settings.profile.max_input_tokens

    def ready(self, tenant: str, settings: ProfileSettings) -> bool:
        return self.completer.ready(assignment(tenant, FEATURE, settings.profile))

    async def learn(self, lesson: Lesson) -> bool:
        held = await self.profiles.current(lesson.shelf)
        changes = [lesson.mark(FEATURE)]
        if any(said.own.strip(f"{BLANK} \n\t") for said in lesson.said):
            version = await self._learned(lesson, held)
            if version is not None:
                changes += await self.profiles.changes(lesson.shelf, held, version)
        return await self.items.change_items(lesson.shelf, changes, lesson.since)

    async def _learned(self, lesson: Lesson, held: Held) -> Version | None:
        """The version that the model's patch makes, None if there is nothing new or usable.

        Raises CompletionError: Unreadable if no answer has a patch.
        """
        schema = self.schemas.of(lesson.settings.profile.schema)
        asked = prompt(held.profile.document, schema, lesson.said, lesson.settings.profile.focus)
        text, readable = asked, False
        for _ in range(TRIES):
            answer = await self._asked(lesson, text)
            proposal = proposal_in(answer)
            try:
                return self._version(lesson, held, schema, proposal)
            except PatchError as error:
                text, readable = again(asked, answer, str(error)), readable or proposal is not None
        if not readable:
            raise Unreadable(NO_JSON)
        self.skipped(FEATURE)
        return None

    async def _asked(self, lesson: Lesson, text: str) -> str:
        chosen = lesson.settings.profile
        asked = assignment(lesson.key.tenant, FEATURE, chosen, text, lesson.model)
        return (await self.completer.complete(asked)).text

    def _version(
        self, lesson: Lesson, held: Held, schema: Schema, proposal: Proposal | None
    ) -> Version | None:
        if proposal is None:
            raise PatchError(NO_JSON)
        if not proposal.patch:
            return None
        patch = operations_of(proposal)
        document = changed(held.profile.document, patch, schema)
        if document == held.profile.document:
            return None
        return Version(
            version=held.profile.last + 1,
            document=document,
            patch=patch,
            sources=sources_of(proposal, lesson.said, lesson.key.session),
            created_at=self.clock(),
        )
