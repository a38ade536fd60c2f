"""The kinds of learned memory: their list, and what is derived from it.

A new kind is one entry here, a folder beside this file, its section of the settings, and its names
in the console, which tests ask for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

import msgspec

from proxy.background.completion import Completer
from proxy.learning.batch import READ_MARKS, Exchanges, Extractor, History, Improver, ReadMark
from proxy.learning.collection import Collection, KindStore, LearnedMemory, ListedStore, OwnerLocks
from proxy.learning.episodes import store as episode_card
from proxy.learning.episodes.episode import Episode, EpisodeCard, episode_memory
from proxy.learning.episodes.extract import EpisodeExtractor
from proxy.learning.episodes.store import EpisodeStore
from proxy.learning.extract import KindModel
from proxy.learning.facts import card as fact_card
from proxy.learning.facts.extract import FactExtractor
from proxy.learning.facts.fact import Fact, fact_memory
from proxy.learning.facts.store import FactStore
from proxy.learning.feedback import FEEDBACK, UNOWNED_FEEDBACK, Feedback
from proxy.learning.instructions import document as instructions_card
from proxy.learning.instructions.document import (
    CURRENT,
    PENDING,
    PROPOSALS,
    REFLECTION,
    VERSIONS,
    FeedbackSource,
    Instructions,
    Proposal,
    Reflection,
    Revision,
    current_place,
)
from proxy.learning.instructions.improve import InstructionsImprover
from proxy.learning.instructions.pending import PendingFeedback
from proxy.learning.instructions.store import InstructionStore
from proxy.learning.profile import store as profile_card
from proxy.learning.profile.document import Profile, Schemas, Version, profile_place
from proxy.learning.profile.extract import ProfileExtractor
from proxy.learning.profile.store import ProfileStore
from proxy.learning.prompt_cards import CARDS, Block, TokenBudget, card_place
from proxy.learning.similarity import QueryText
from proxy.memory.items import (
    PEOPLE,
    REQUESTS,
    Item,
    ItemOwner,
    Items,
    Namespace,
    OwnedPlace,
    Place,
)
from proxy.memory.store import Queue
from proxy.settings import ProfileSettings
from proxy.settings.learned import LearnedSettings

CollectionT = TypeVar("CollectionT", bound=Collection)

Choose = Callable[[bytes, ProfileSettings, QueryText, TokenBudget], Block | None]
"""The block for a prompt from a card's value, None if nothing fits; pure, fast.

Raises msgspec.DecodeError for an invalid card.
"""


class Store(Items, History, Queue, Protocol):
    """What is needed of a store."""


class KindResources(msgspec.Struct, frozen=True):
    """What stores, extractors and improvers are made from.

    ``count`` gives the tokens of a text, ``clock`` Unix seconds.
    """

    store: Store
    exchanges: Exchanges
    schemas: Schemas
    count: Callable[[str], int]
    clock: Callable[[], float]
    owner_locks: OwnerLocks = msgspec.field(default_factory=OwnerLocks)

    def make(self, collection: type[CollectionT]) -> CollectionT:
        return collection(self.store, self.count, self.clock, self.owner_locks)


class LearningObserver(msgspec.Struct, frozen=True):
    """Callbacks: ``on_skipped`` gets the kind whose answer could not be used; ``on_nothing_found``
    is called when no fact was found in messages that clearly have one."""

    on_skipped: Callable[[str], None] = lambda kind: None
    on_nothing_found: Callable[[], None] = lambda: None


def personal_card(name: str) -> Callable[[str, str | None, ProfileSettings], OwnedPlace | None]:
    """Makes ``Kind.card_place`` of a person's card; None without a user."""

    def where(tenant: str, user: str | None, profile: ProfileSettings) -> OwnedPlace | None:
        return OwnedPlace(ItemOwner(tenant, user), card_place(user, name)) if user else None

    return where


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of learned memory.

    ``name`` is its section of [memory], the kind of its block in prompts, the feature that its
    model's tokens are counted for, and the label of its items: the third one of a person's
    namespaces, or if it is ``shared`` by all people of a tenant the first.  ``rank`` is its place
    in lists, where a person's standing instructions have the second.
    """

    name: str
    memory: str
    """The kind of one item in lists of memories and in counts."""
    rank: int
    shared: bool = False
    values: Mapping[str, type[msgspec.Struct]]
    """Types of its values, by the third label, or for a shared kind without one by the key."""
    by_id: bool = False
    """The keys of its items are the ``id`` of their values."""
    card: type[msgspec.Struct] | None = None
    card_place: Callable[[str, str | None, ProfileSettings], OwnedPlace | None]
    """Where its card is stored, a short extract beside its items; None without a user whose card
    it could be."""
    choose: Choose
    current: Callable[[str], Place] | None = None
    """For a kind with versions: the place of the current one, by user or application."""
    copies_messages: bool = False
    """It has copies of messages, and is deleted with their session."""
    make_store: Callable[[KindResources], KindStore] | None = None
    make_listed_store: Callable[[KindResources], ListedStore] | None = None
    to_memory: Callable[[Item, float], LearnedMemory] | None = None
    """For a kind that is listed among memories: a memory from an item and the time (Unix
    seconds)."""
    extractor: Callable[[KindResources, KindModel, LearningObserver], Extractor] | None = None
    improver: Callable[[KindResources, KindModel, LearningObserver], Improver] | None = None

    def settings(self, profile: ProfileSettings) -> LearnedSettings:
        part: LearnedSettings = getattr(profile, self.name)
        return part

    def model(self, completer: Completer) -> KindModel:
        return KindModel(completer, self.name, self.settings, self._is_written)

    def _is_written(self, profile: ProfileSettings) -> bool:
        part = self.settings(profile)
        return part.enabled if self.extractor is None else part.reads

    def store_from(self, resources: KindResources) -> KindStore | None:
        """Its store, None for a shared kind."""
        made = self.make_listed_store or self.make_store
        return made(resources) if made else None


INSTRUCTIONS = Kind(
    name="instructions",
    memory="instructions",
    rank=3,
    shared=True,
    values={
        VERSIONS: Revision,
        PROPOSALS: Proposal,
        PENDING: FeedbackSource,
        CURRENT: Instructions,
        REFLECTION: Reflection,
    },
    card_place=instructions_card.card_place,
    choose=instructions_card.choose,
    current=current_place,
    improver=lambda resources, model, observer: InstructionsImprover(
        model,
        resources.make(InstructionStore),
        resources.make(PendingFeedback),
        resources.exchanges,
        observer.on_skipped,
    ),
)

PROFILE = Kind(
    name="profile",
    memory="profile",
    rank=1,
    values={"profile": Profile, "profiles": Version},
    card=profile_card.ProfileCard,
    card_place=personal_card("profile"),
    choose=profile_card.choose,
    current=profile_place,
    make_store=lambda resources: resources.make(ProfileStore),
    extractor=lambda resources, model, observer: ProfileExtractor(
        model, resources.make(ProfileStore), resources.schemas, observer.on_skipped
    ),
)

FACTS = Kind(
    name="facts",
    memory="fact",
    rank=0,
    values={"facts": Fact},
    by_id=True,
    card=fact_card.FactCard,
    card_place=personal_card("facts"),
    choose=fact_card.choose,
    make_listed_store=lambda resources: resources.make(FactStore),
    to_memory=fact_memory,
    extractor=lambda resources, model, observer: FactExtractor(
        model, resources.make(FactStore), observer.on_nothing_found
    ),
)

EPISODES = Kind(
    name="episodes",
    memory="episode",
    rank=2,
    values={"episodes": Episode},
    by_id=True,
    card=EpisodeCard,
    card_place=personal_card("episodes"),
    choose=episode_card.choose,
    copies_messages=True,
    make_listed_store=lambda resources: resources.make(EpisodeStore),
    to_memory=episode_memory,
    extractor=lambda resources, model, observer: EpisodeExtractor(
        model, resources.make(EpisodeStore), resources.exchanges
    ),
)

KINDS: tuple[Kind, ...] = (INSTRUCTIONS, PROFILE, FACTS, EPISODES)
"""In their order in a prompt, which is also the order in which they take from its budget."""


_OTHER_TYPES: Mapping[str, type[msgspec.Struct]] = {
    FEEDBACK: Feedback,
    UNOWNED_FEEDBACK: Feedback,
    READ_MARKS: ReadMark,
}
"""Types of reserved values that are of no kind, by label: a person's third or a tenant's second."""


class Kinds:
    """Lists derived from all kinds, in order of rank.

    ``personal`` are those of a person, ``listed`` those whose items are separate memories, and
    ``reading`` the names of those with an extractor.  ``labels`` are the reserved third labels of
    people's namespaces, ``first_labels`` the reserved first labels of all others.
    """

    def __init__(self, kinds: Sequence[Kind] = KINDS) -> None:
        self.ranked = tuple(sorted(kinds, key=lambda kind: kind.rank))
        self.personal = tuple(kind for kind in self.ranked if not kind.shared)
        self.listed = tuple(kind for kind in self.ranked if kind.to_memory is not None)
        self.reading = tuple(kind.name for kind in self.ranked if kind.extractor is not None)
        values = (kind.values for kind in self.personal)
        self.labels = frozenset({READ_MARKS, CARDS, FEEDBACK}.union(*values))
        self._shared = {kind.name: kind for kind in self.ranked if kind.shared}
        self.first_labels = frozenset({REQUESTS, *self._shared})

    def named(self, memory: str) -> Kind | None:
        """The listed kind of a memory id."""
        named = (kind for kind in self.listed if memory.startswith(f"{kind.memory}_"))
        return next(named, None)

    def is_reserved(self, namespace: Namespace) -> bool:
        """Whether only the proxy itself writes to this namespace."""
        return self.reserved_label(namespace) is not None

    def reserved_label(self, namespace: Namespace) -> str | None:
        """The label that makes a namespace reserved, None if it is not."""
        theirs = namespace[:1] == (PEOPLE,)
        labels, named = (
            (self.labels, namespace[2:3]) if theirs else (self.first_labels, namespace[:1])
        )
        return next((label for label in named if label in labels), None)

    def is_sound(self, item: Item) -> bool:
        """Whether a reserved item has a value of the right type; for items of an import.

        Learned memory is decoded without checks wherever it is used.
        """
        kind = self._kind_of(item)
        type = _type_of(item, kind)
        if type is None:
            return False
        try:
            value = msgspec.json.decode(item.value, type=type)
        except (ValueError, RecursionError):
            return False
        named = kind is not None and kind.by_id and not is_card(item)
        return not named or getattr(value, "id", None) == item.key

    def current_place_of(self, item: Item) -> Place | None:
        """The place of the current version for an item of a kind with versions, else None."""
        kind = self._kind_of(item)
        if kind is None or kind.current is None or len(item.namespace) < 2:
            return None
        return kind.current(item.namespace[1])

    def _kind_of(self, item: Item) -> Kind | None:
        """The kind of an item or a card."""
        first, *labels = item.namespace
        if first != PEOPLE:
            return self._shared.get(first) if labels[:1] != [UNOWNED_FEEDBACK] else None
        if is_card(item):
            return next((kind for kind in self.personal if kind.name == item.key), None)
        return next((kind for kind in self.personal if _label(item, 2) in kind.values), None)


def _type_of(item: Item, kind: Kind | None) -> type[msgspec.Struct] | None:
    """The type of an item's value; None if there may be no such item."""
    if kind is None:
        return _OTHER_TYPES.get(_label(item, 2 if item.namespace[0] == PEOPLE else 1))
    if is_card(item):
        return kind.card
    return kind.values.get(_label(item, 2) or item.key)


def _label(item: Item, place: int) -> str:
    """The label at an index of its namespace, "" if it has fewer."""
    return item.namespace[place] if len(item.namespace) > place else ""


def is_card(item: Item) -> bool:
    return item.namespace[:1] == (PEOPLE,) and item.namespace[2:] == (CARDS,)
