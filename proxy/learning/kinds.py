"""The kinds of what is learned: the one list, and all that goes over it.

A new kind is one entry here, a folder beside this file, its section of the settings, and its names
in the console, which tests ask for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

import msgspec

from proxy.background.completion import Completer
from proxy.learning.batch import READ_MARKS, Exchanges, Extractor, History, Improver, ReadMark
from proxy.learning.collection import Collection, KindStore, LearnedMemory, ListedStore, ShelfLocks
from proxy.learning.episodes import store as episode_card
from proxy.learning.episodes.episode import Episode, EpisodeCard, episode_memory
from proxy.learning.episodes.extract import EpisodeExtractor
from proxy.learning.episodes.store import EpisodeStore
from proxy.learning.extract import KindModel
from proxy.learning.facts import card as fact_card
from proxy.learning.facts.extract import FactExtractor
from proxy.learning.facts.fact import Fact, fact_memory
from proxy.learning.facts.store import FactStore
from proxy.learning.feedback import FEEDBACK, NOBODYS, Feedback
from proxy.learning.instructions import document as instructions_card
from proxy.learning.instructions.document import (
    CURRENT,
    PENDING,
    PROPOSALS,
    REFLECTION,
    VERSIONS,
    Given,
    Instructions,
    Proposal,
    Reflection,
    Revision,
    current_place,
)
from proxy.learning.instructions.improve import InstructionsImprover
from proxy.learning.instructions.pending import PendingFeedback
from proxy.learning.instructions.store import InstructionStore
from proxy.learning.likeness import QueryText
from proxy.learning.profile import store as profile_card
from proxy.learning.profile.document import Profile, Schemas, Version, profile_place
from proxy.learning.profile.extract import ProfileExtractor
from proxy.learning.profile.store import ProfileStore
from proxy.learning.prompt_cards import CARDS, Allowance, Block, Where, card_place
from proxy.memory.items import PEOPLE, REQUESTS, Item, ItemOwner, Items, Namespace, Place
from proxy.settings import ProfileSettings
from proxy.settings.written import LearnedSettings

CollectionT = TypeVar("CollectionT", bound=Collection)

Choose = Callable[[bytes, ProfileSettings, QueryText, Allowance], Block | None]


class Store(Items, History, Protocol):
    """What is needed of a store."""


class KindResources(msgspec.Struct, frozen=True):
    """What the parts of all kinds are made over.

    ``count`` gives the tokens of a text, ``clock`` Unix seconds.
    """

    store: Store
    exchanges: Exchanges
    schemas: Schemas
    count: Callable[[str], int]
    clock: Callable[[], float]
    shelf_locks: ShelfLocks = msgspec.field(default_factory=ShelfLocks)

    def made(self, collection: type[CollectionT]) -> CollectionT:
        return collection(self.store, self.count, self.clock, self.shelf_locks)


class Watch(msgspec.Struct, frozen=True):
    """Who is told what came of asking a model: the kind whose answer could not be used, and that
    nothing was found where something is clearly told."""

    skipped: Callable[[str], None] = lambda kind: None
    nothing: Callable[[], None] = lambda: None


def persons_card(name: str) -> Callable[[str, str | None, ProfileSettings], Where | None]:
    """Where a person's card of a kind is; nobody has none."""

    def where(tenant: str, user: str | None, profile: ProfileSettings) -> Where | None:
        return Where(ItemOwner(tenant, user), card_place(user, name)) if user else None

    return where


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of what is learned.

    ``name`` is its section of [memory], the kind of its block in prompts, what its model's tokens
    are counted for, and the label that its items lie under: the third one of a person's namespaces,
    or, of what is ``shared`` by all people of a tenant, the first.  ``rank`` is its place in lists,
    where a person's standing instructions have the second.
    """

    name: str
    memory: str
    """What one of it is called among memories and in counts."""
    rank: int
    shared: bool = False
    values: Mapping[str, type[msgspec.Struct]]
    """What lies under its labels: under the third, or, of what is shared and has none, the key."""
    by_id: bool = False
    """Its items are kept by the ``id`` of their values."""
    card: type[msgspec.Struct] | None = None
    where: Callable[[str, str | None, ProfileSettings], Where | None]
    choose: Choose
    """See CardKind: where its card is, and what of that goes into a prompt."""
    current: Callable[[str], Place] | None = None
    """Of what has versions: where the current one is, by the person or the application."""
    repeats: bool = False
    """It repeats what was said, and goes with its session."""
    store: Callable[[KindResources], KindStore] | None = None
    listed: Callable[[KindResources], ListedStore] | None = None
    view: Callable[[Item, float], LearnedMemory] | None = None
    """Of what is listed among a person's memories: an item, as it is now (Unix seconds)."""
    extractor: Callable[[KindResources, KindModel, Watch], Extractor] | None = None
    improver: Callable[[KindResources, KindModel, Watch], Improver] | None = None

    def settings(self, profile: ProfileSettings) -> LearnedSettings:
        part: LearnedSettings = getattr(profile, self.name)
        return part

    def model(self, completer: Completer) -> KindModel:
        """What writes it."""
        return KindModel(completer, self.name, self.settings, self._is_written)

    def _is_written(self, profile: ProfileSettings) -> bool:
        part = self.settings(profile)
        return part.enabled if self.extractor is None else part.reads

    def stores(self, over: KindResources) -> KindStore | None:
        """Where it is kept, of what is a person's."""
        made = self.listed or self.store
        return made(over) if made else None


INSTRUCTIONS = Kind(
    name="instructions",
    memory="instructions",
    rank=3,
    shared=True,
    values={
        VERSIONS: Revision,
        PROPOSALS: Proposal,
        PENDING: Given,
        CURRENT: Instructions,
        REFLECTION: Reflection,
    },
    where=instructions_card.where,
    choose=instructions_card.choose,
    current=current_place,
    improver=lambda over, model, watch: InstructionsImprover(
        model,
        over.store,
        over.made(InstructionStore),
        over.made(PendingFeedback),
        over.exchanges,
        over.count,
        over.clock,
        watch.skipped,
    ),
)

PROFILE = Kind(
    name="profile",
    memory="profile",
    rank=1,
    values={"profile": Profile, "profiles": Version},
    card=profile_card.ProfileCard,
    where=persons_card("profile"),
    choose=profile_card.choose,
    current=profile_place,
    store=lambda over: over.made(ProfileStore),
    extractor=lambda over, model, watch: ProfileExtractor(
        model,
        over.store,
        over.made(ProfileStore),
        over.schemas,
        over.clock,
        watch.skipped,
    ),
)

FACTS = Kind(
    name="facts",
    memory="fact",
    rank=0,
    values={"facts": Fact},
    by_id=True,
    card=fact_card.FactCard,
    where=persons_card("facts"),
    choose=fact_card.choose,
    listed=lambda over: over.made(FactStore),
    view=fact_memory,
    extractor=lambda over, model, watch: FactExtractor(
        model, over.store, over.made(FactStore), watch.nothing
    ),
)

EPISODES = Kind(
    name="episodes",
    memory="episode",
    rank=2,
    values={"episodes": Episode},
    by_id=True,
    card=EpisodeCard,
    where=persons_card("episodes"),
    choose=episode_card.choose,
    repeats=True,
    listed=lambda over: over.made(EpisodeStore),
    view=episode_memory,
    extractor=lambda over, model, watch: EpisodeExtractor(
        model,
        over.store,
        over.made(EpisodeStore),
        over.exchanges,
        over.count,
        over.clock,
    ),
)

KINDS: tuple[Kind, ...] = (INSTRUCTIONS, PROFILE, FACTS, EPISODES)
"""In the order in which they stand in a prompt, and may take from its budget."""


_BESIDE: Mapping[str, type[msgspec.Struct]] = {
    FEEDBACK: Feedback,
    NOBODYS: Feedback,
    READ_MARKS: ReadMark,
}
"""What lies beside the kinds, by its label: a person's third, or a tenant's second."""


class Kinds:
    """All that is derived from the list, in order of rank.

    ``personal`` are learned of people, the items of those that are ``listed`` are memories of their
    own, and ``reading`` are the names of those that are learned by reading sessions.  ``labels``
    are the third ones of people's namespaces that hold what the proxy has learned of them, and
    ``first_labels`` those of all others that hold what is the proxy's own.
    """

    def __init__(self, kinds: Sequence[Kind] = KINDS) -> None:
        self.ranked = tuple(sorted(kinds, key=lambda kind: kind.rank))
        self.personal = tuple(kind for kind in self.ranked if not kind.shared)
        self.listed = tuple(kind for kind in self.ranked if kind.view is not None)
        self.reading = tuple(kind.name for kind in self.ranked if kind.extractor is not None)
        values = (kind.values for kind in self.personal)
        self.labels = frozenset({READ_MARKS, CARDS, FEEDBACK}.union(*values))
        self._shared = {kind.name: kind for kind in self.ranked if kind.shared}
        self.first_labels = frozenset({REQUESTS, *self._shared})

    def named(self, memory: str) -> Kind | None:
        """The kind of a listed memory, by its id."""
        named = (kind for kind in self.listed if memory.startswith(f"{kind.memory}_"))
        return next(named, None)

    def is_reserved(self, namespace: Namespace) -> bool:
        """Whether only the proxy itself writes here."""
        return self.reserved_label(namespace) is not None

    def reserved_label(self, namespace: Namespace) -> str | None:
        """The label because of which only the proxy itself writes here, None where others may."""
        theirs = namespace[:1] == (PEOPLE,)
        labels, named = (
            (self.labels, namespace[2:3]) if theirs else (self.first_labels, namespace[:1])
        )
        return next((label for label in named if label in labels), None)

    def is_sound(self, item: Item) -> bool:
        """Whether a reserved item holds what its place says: for those that others bring.

        What is learned is read without suspicion wherever it is used: nothing else may get there.
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

    def story(self, item: Item) -> Place | None:
        """The place of the current one, of what has versions: it stands for all of them.  None for
        all else."""
        kind = self._kind_of(item)
        if kind is None or kind.current is None or len(item.namespace) < 2:
            return None
        return kind.current(item.namespace[1])

    def _kind_of(self, item: Item) -> Kind | None:
        """The kind of which it is, or of which it is a card."""
        first, *labels = item.namespace
        if first != PEOPLE:
            return self._shared.get(first) if labels[:1] != [NOBODYS] else None
        if is_card(item):
            return next((kind for kind in self.personal if kind.name == item.key), None)
        return next((kind for kind in self.personal if _label(item, 2) in kind.values), None)


def _type_of(item: Item, kind: Kind | None) -> type[msgspec.Struct] | None:
    """What the value of an item of this kind must be; None where nothing belongs."""
    if kind is None:
        return _BESIDE.get(_label(item, 2 if item.namespace[0] == PEOPLE else 1))
    if is_card(item):
        return kind.card
    return kind.values.get(_label(item, 2) or item.key)


def _label(item: Item, place: int) -> str:
    """A label of its namespace, "" if there is none at this place."""
    return item.namespace[place] if len(item.namespace) > place else ""


def is_card(item: Item) -> bool:
    return item.namespace[:1] == (PEOPLE,) and item.namespace[2:] == (CARDS,)
