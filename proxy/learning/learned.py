"""All learned memory over one store: the stores, extractors and improvers of all kinds.

Forgetting a session removes it as a source; what has other sources stays.  Nothing is learned from
it again: read messages stay read, and unread ones are skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from proxy.background.completion import Completer
from proxy.learning.batch import (
    Exchanges,
    Extractor,
    History,
    Improver,
    ReadMark,
    mark_place,
    read_mark_from,
)
from proxy.learning.collection import Forgotten, KindStore, OwnerLocks, put_change, update
from proxy.learning.episodes.store import EpisodeStore
from proxy.learning.evidence import is_from
from proxy.learning.facts.store import FactStore
from proxy.learning.feedback import count_feedback, forget_feedback
from proxy.learning.feedback_service import FeedbackService
from proxy.learning.instructions.pending import FeedbackForgetter, PendingFeedback
from proxy.learning.instructions.store import InstructionStore
from proxy.learning.kinds import KINDS, Kind, KindResources, Kinds, LearningObserver, Store
from proxy.learning.profile.document import Schemas
from proxy.learning.profile.store import ProfileStore
from proxy.learning.prompt_cards import Block, Cards, CountText, KnownBlocks, TokenBudget
from proxy.learning.similarity import QueryText
from proxy.memory.history.reading import NEWEST_TURN
from proxy.memory.items import Change, ItemOwner, Items
from proxy.memory.model import SessionKey
from proxy.settings import ProfileSettings


class Forgetter:
    """Forgets what was learned from a session.  ``features`` are those of all extractors, ``parts``
    the stores of all kinds."""

    def __init__(
        self,
        items: Items,
        locks: OwnerLocks,
        history: History,
        features: Sequence[str],
        parts: Sequence[KindStore],
    ) -> None:
        self._items, self._locks, self._history = items, locks, history
        self._features, self._parts = tuple(features), tuple(parts)

    async def forget(
        self, owner: ItemOwner, session: str, exchange: str | None, dry_run: bool
    ) -> list[Forgotten]:
        """What was forgotten, or with ``dry_run`` would be.  Raises StoreError and Busy."""
        if not dry_run:  # first, so that a batch that is being learned now cannot be stored
            await self._fence_batches(owner, session, exchange)
        found: list[Forgotten] = []
        for part in self._parts:
            found += await part.forget(owner, is_from(session, exchange), dry_run)
        return found

    async def _fence_batches(self, owner: ItemOwner, session: str, exchange: str | None) -> None:
        async def step() -> tuple[None, Sequence[Change]]:
            return None, await self._marks(owner, session, exchange)

        await update(self._items, self._locks, owner, step)

    async def _marks(self, owner: ItemOwner, session: str, exchange: str | None) -> list[Change]:
        """Changes of the marks of all features, so that no batch that was read before is stored."""
        key = SessionKey(owner.tenant, session)
        found = await self._history.session(key)
        newest = await self._history.load(key, NEWEST_TURN)
        began = found.created_at if found else 0.0
        last = max((entry.position.seq for entry in newest.log), default=0)
        places = [mark_place(owner.user, feature, session) for feature in self._features]
        marks = await self._items.items_at(owner, places)
        return [
            put_change(
                place,
                _skip(read_mark_from(marks.get(place), began), last, exchange),
                marks[place].version if place in marks else 0,
            )
            for place in places
        ]


def _skip(mark: ReadMark, last: int, exchange: str | None) -> ReadMark:
    """The mark with the exchange skipped, or without one all messages up to seq ``last``."""
    if exchange is not None:
        return replace(mark, without=(*mark.without, exchange))
    return replace(mark, seq=max(mark.seq, last), message="", offset=0)


class PromptCards:
    """Selects learned memory for a prompt; ``look`` is the only I/O, begun while the session is
    loaded.  ``kinds`` in the order in which they may take from the budget; ``clock`` in Unix
    seconds."""

    def __init__(self, items: Items, kinds: Sequence[Kind], clock: Callable[[], float]) -> None:
        self._items, self._kinds, self._time = items, tuple(kinds), clock

    async def look(self, tenant: str, user: str | None, settings: ProfileSettings) -> Cards:
        """Load the cards, in one round trip.  Raises StoreError."""
        wanted = {
            kind.name: where
            for kind in self._kinds
            if kind.settings(settings).enabled
            and (where := kind.card_place(tenant, user, settings)) is not None
        }
        found = await self._items.items_of(tuple(wanted.values()))
        cards = {name: bytes(found[at].value) for name, at in wanted.items() if at in found}
        return Cards(settings, cards)

    def choose(self, cards: Cards, query: str, budget: int, count: CountText) -> KnownBlocks:
        """The blocks that fit into ``budget`` tokens and each kind's ``max_tokens``; pure, fast."""
        if not cards.found:
            return KnownBlocks()
        now, settings = self._time(), cards.settings
        query_text = QueryText(query, now, settings.recall.zone)
        head: list[Block] = []
        tail: list[Block] = []
        for kind in self._kinds:
            card = cards.found.get(kind.name)
            if not card:
                continue
            limit = TokenBudget(min(budget, kind.settings(settings).max_tokens), count, now)
            block = kind.choose(card, settings, query_text, limit)
            if block is not None:
                budget -= block.tokens
                (head if kind.shared else tail).append(block)
        return KnownBlocks(tuple(head), tuple(tail))


class DroppedCopies(NamedTuple):
    """Counts of what was deleted because it had copies of a session's text; memories by kind."""

    memories: Mapping[str, int]
    feedback: int
    proposals: int


class Learned:
    """``schemas`` are those of all profiles, ``text_of`` gives the text of a message's JSON,
    ``count`` the tokens of a text, ``profile_of`` a profile by its name ("" is the default one),
    ``clock`` Unix seconds.
    """

    def __init__(
        self,
        store: Store,
        schemas: Schemas,
        text_of: Callable[[bytes], str],
        count: CountText,
        profile_of: Callable[[str], ProfileSettings | None],
        clock: Callable[[], float],
        kinds: Sequence[Kind] = KINDS,
    ) -> None:
        exchanges = Exchanges(store, text_of)
        self.kinds = Kinds(kinds)
        self.resources = resources = KindResources(store, exchanges, schemas, count, clock)
        self.schemas = schemas
        self.facts, self.profiles = resources.make(FactStore), resources.make(ProfileStore)
        self.episodes = resources.make(EpisodeStore)
        self.instructions = resources.make(InstructionStore)
        self.pending = resources.make(PendingFeedback)
        self.feedback_forgetter = FeedbackForgetter(self.pending, self.instructions)
        self.feedback = FeedbackService(
            exchanges, self.episodes, self.pending, self.feedback_forgetter, store, profile_of
        )
        self.prompt_cards = PromptCards(store, kinds, clock)
        stores = [made for kind in self.kinds.ranked if (made := kind.store_from(resources))]
        self.forgetting = Forgetter(store, resources.owner_locks, store, self.kinds.reading, stores)
        self._store = store

    def extractors(self, completer: Completer, observer: LearningObserver) -> list[Extractor]:
        return [
            kind.extractor(self.resources, kind.model(completer), observer)
            for kind in self.kinds.ranked
            if kind.extractor is not None
        ]

    def improvers(self, completer: Completer, observer: LearningObserver) -> list[Improver]:
        return [
            kind.improver(self.resources, kind.model(completer), observer)
            for kind in self.kinds.ranked
            if kind.improver is not None
        ]

    async def drop_session(
        self, key: SessionKey, user: str | None, *, dry_run: bool = False
    ) -> DroppedCopies:
        """Delete what has copies of the text of a deleted session: episodes, comments, and
        proposals made from these.

        With ``dry_run`` they are only counted.  Raises StoreError and Busy.
        """
        memories: dict[str, int] = {}
        for kind in self.kinds.personal:
            store = kind.store_from(self.resources) if kind.copies_messages and user else None
            if store is not None:
                owner = ItemOwner(key.tenant, user or "")
                gone = await store.forget(owner, is_from(key.session), dry_run)
                memories[kind.memory] = len(gone)
        proposals = await self.feedback_forgetter.forget_session(key, dry_run=dry_run)
        feedback = await (count_feedback if dry_run else forget_feedback)(self._store, key, user)
        return DroppedCopies(memories, feedback, proposals)

    async def drop_turn(self, key: SessionKey, user: str | None, turn: int) -> None:
        """Delete what may have copies of a turn's text: the episodes whose question or answer is in
        it, and the proposals made from feedback on its answers.

        Raises StoreError and Busy.
        """
        if user:
            owner = ItemOwner(key.tenant, user)
            for episode in (await self.episodes.load(owner)).episodes:
                answers = [x.message for x in episode.sources if x.session == key.session]
                if await self._within(key, answers, turn):
                    await self.episodes.drop(owner, episode.id)
        messages = await self._within(
            key, await self.feedback_forgetter.messages_with_proposals(key), turn
        )
        if messages:
            await self.feedback_forgetter.drop_proposals(key, messages)

    async def _within(self, key: SessionKey, messages: Iterable[str], turn: int) -> set[str]:
        """Those of the messages that exist and are in this turn."""
        lines = [await self._store.message(key, message) for message in messages]
        return {line.card.id for line in lines if line and line.position.turn == turn}
