"""Profiles, episodes, instructions and feedback: what makes, keeps, shows and forgets them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from proxy.background.completion import Completer
from proxy.learning.episode_lines import EpisodeCards
from proxy.learning.episode_shelf import EpisodeShelf
from proxy.learning.episode_student import EpisodeStudent
from proxy.learning.exchanges import Exchanges, History
from proxy.learning.feedback import count_feedback, forget_feedback
from proxy.learning.feedback_desk import FeedbackDesk, Queue
from proxy.learning.instructions_forgetting import InstructionsForgetting
from proxy.learning.instructions_lines import InstructionCards
from proxy.learning.instructions_pending import PendingFeedback
from proxy.learning.instructions_reflector import InstructionsReflector
from proxy.learning.instructions_shelf import InstructionShelf
from proxy.learning.profile_forgetting import ProfileForgetting
from proxy.learning.profile_lines import ProfileCards
from proxy.learning.profile_schema import Schemas
from proxy.learning.profile_shelf import ProfileShelf
from proxy.learning.profile_student import ProfileStudent
from proxy.memory.items import Items, Shelf
from proxy.memory.model import SessionKey
from proxy.settings import ProfileSettings, Settings

Count = Callable[[str], int]
Clock = Callable[[], float]


class Store(Items, History, Queue, Protocol):
    """What is needed of a store."""


class Repeated(NamedTuple):
    """How much there was that repeats a session's text, or may."""

    episodes: int
    feedback: int
    proposals: int


class Learned:
    """All of it over one store.

    ``schemas`` are those of all profiles, ``text_of`` gives the text of a message's JSON, ``count``
    the tokens of a text, ``profile_of`` a profile by its name ("" is the default one), ``clock``
    Unix seconds.
    """

    def __init__(
        self,
        store: Store,
        schemas: Schemas,
        text_of: Callable[[bytes], str],
        count: Count,
        profile_of: Callable[[str], ProfileSettings | None],
        clock: Clock,
    ) -> None:
        self._store, self._count, self._clock = store, count, clock
        self._exchanges = Exchanges(store, text_of)
        self.schemas = schemas
        self.profiles = ProfileShelf(store, count, clock)
        self.episodes = EpisodeShelf(store, count, clock)
        self.instructions = InstructionShelf(store, clock)
        self.pending = PendingFeedback(store)
        self.remarks = InstructionsForgetting(store, self.pending, self.instructions)
        self.feedback = FeedbackDesk(
            store,
            self._exchanges,
            self.episodes,
            self.pending,
            self.remarks,
            store,
            profile_of,
            count,
            clock,
        )

    @classmethod
    def under(
        cls,
        settings: Settings,
        store: Store,
        text_of: Callable[[bytes], str],
        count: Count,
        clock: Clock,
    ) -> Learned:
        """With the schemas of all profiles.  Raises ValueError for one that is none."""
        return cls(
            store,
            Schemas(settings.schemas),
            text_of,
            count,
            lambda name: settings.profile(name or None),
            clock,
        )

    def students(
        self, completer: Completer, skipped: Callable[[str], None]
    ) -> tuple[ProfileStudent, EpisodeStudent]:
        """For a Learner; ``skipped`` is told the feature of what could not be used."""
        store, count, clock = self._store, self._count, self._clock
        return (
            ProfileStudent(store, self.profiles, self.schemas, completer, clock, skipped),
            EpisodeStudent(store, self.episodes, self._exchanges, completer, count, clock),
        )

    def reflector(
        self, completer: Completer, skipped: Callable[[str], None]
    ) -> InstructionsReflector:
        """For a Learner."""
        return InstructionsReflector(
            self._store,
            self.instructions,
            self.pending,
            self._exchanges,
            completer,
            self._count,
            self._clock,
            skipped,
        )

    def cards(self) -> tuple[InstructionCards, ProfileCards, EpisodeCards]:
        """For a CardFile; facts belong before the last of them."""
        return InstructionCards(), ProfileCards(), EpisodeCards(self._clock)

    def forgetting(self) -> tuple[ProfileForgetting, EpisodeShelf]:
        """Parts for Forgetting."""
        return ProfileForgetting(self._store, self.profiles), self.episodes

    async def drop_session(
        self, key: SessionKey, user: str | None, *, dry_run: bool = False
    ) -> Repeated:
        """Drop what repeats a session's text, for when that is deleted: episodes, comments, and
        what was proposed because of these.

        With ``dry_run`` they are only counted.  Raises StoreError, and Busy.
        """
        episodes = 0
        if user:
            shelf = Shelf(key.tenant, user)
            episodes = len(await self.episodes.forget(shelf, key.session, None, dry_run))
        proposals = await self.remarks.session(key, dry_run=dry_run)
        feedback = await (count_feedback if dry_run else forget_feedback)(self._store, key, user)
        return Repeated(episodes, feedback, proposals)
