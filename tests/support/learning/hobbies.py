"""A fifth kind of what is learned, as small as one can be: what a person does for fun."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from proxy.learning.batch import Batch
from proxy.learning.collection import (
    Collection,
    Forgotten,
    LearnedMemory,
    decode_item,
    delete_change,
    put_change,
)
from proxy.learning.evidence import DeletedSources, IsGone, Source, source_fields, source_of
from proxy.learning.extract import KindModel, Unusable, find_json, retry_with_answer
from proxy.learning.kinds import Kind, personal_card
from proxy.learning.prompt_cards import Block, TokenBudget, card_place, whole_block
from proxy.learning.similarity import QueryText
from proxy.memory.items import PEOPLE, Change, Item, ItemOwner, Place
from proxy.settings import ProfileSettings
from proxy.settings.learned import LearnerSettings

NAME = "hobbies"


class HobbyProfile(ProfileSettings):
    hobbies: LearnerSettings = LearnerSettings(enabled=True, after_turns=1)


class Hobby(msgspec.Struct, frozen=True):
    id: str
    text: str
    sources: tuple[Source, ...]


class HobbyCard(msgspec.Struct, frozen=True):
    """All hobbies of a person."""

    hobbies: tuple[Hobby, ...] = ()


class HobbyStore(Collection):
    async def forget(self, owner: ItemOwner, is_gone: IsGone, dry_run: bool) -> list[Forgotten]:
        async def step() -> tuple[list[Forgotten], Sequence[Change]]:
            card = await self.read(owner, card_place(owner.user, NAME), HobbyCard())
            gone = [x for x in card.value.hobbies if is_gone(x.sources[0])]
            kept = [x for x in card.value.hobbies if x not in gone]
            forgotten = [Forgotten(each.id, "hobby", "deleted", each.text) for each in gone]
            dropped = [delete_change(place_of(owner, each.id)) for each in gone]
            carded = put_change(card_place(owner.user, NAME), HobbyCard(tuple(kept)), card.version)
            return forgotten, [] if dry_run or not gone else [*dropped, carded]

        return await self.update(owner, step)

    async def drop(self, owner: ItemOwner, id: str, check: Callable[[Item], None]) -> bool:
        async def step() -> tuple[bool, Sequence[Change]]:
            item = await self.item_at(owner, place_of(owner, id))
            if item is None:
                return False, ()
            check(item)
            card = await self.read(owner, card_place(owner.user, NAME), HobbyCard())
            kept = HobbyCard(tuple(each for each in card.value.hobbies if each.id != id))
            return True, [
                delete_change(item.place, item.version),
                put_change(card_place(owner.user, NAME), kept, card.version),
            ]

        return await self.update(owner, step)

    async def card_change(self, owner: ItemOwner) -> Change:
        where = card_place(owner.user, NAME)
        card = await self.read(owner, where, HobbyCard())
        page = await self.page(owner, (PEOPLE, owner.user, NAME), None, 100, Hobby)
        return put_change(where, HobbyCard(tuple(page.items)), card.version)

    async def learned(self, owner: ItemOwner, new: Iterable[Hobby]) -> list[Change]:
        """What adds hobbies."""
        card = await self.read(owner, card_place(owner.user, NAME), HobbyCard())
        all_of_them = {each.id: each for each in (*card.value.hobbies, *new)}
        carded = HobbyCard(tuple(all_of_them.values()))
        return [
            *(put_change(place_of(owner, each.id), each, None) for each in new),
            put_change(card_place(owner.user, NAME), carded, card.version),
        ]


@dataclass(frozen=True, slots=True)
class HobbyExtractor:
    model: KindModel
    hobbies: HobbyStore

    async def learn(self, batch: Batch) -> bool:
        prompt = "\n".join(["Which hobbies are these?", *(said.text for said in batch.messages)])
        found = await self.model.extract(batch, prompt, _hobbies_in, retry_with_answer(100))
        said = batch.messages[-1]
        source = source_of(said)
        new = [Hobby(f"hobby_{name}", f"They like {name}.", (source,)) for name in found or ()]
        changes = await self.hobbies.learned(batch.owner, new)
        return await batch.store(self.hobbies.items, NAME, changes)

    async def take_back(self, owner: ItemOwner, gone: DeletedSources) -> None:
        await self.hobbies.forget(owner, gone.has, False)


def _hobbies_in(answer: str) -> list[str]:
    found = find_json(answer, lambda value: isinstance(value, list))
    if not isinstance(found, list):
        raise Unusable("there is no list", readable=False)
    return [name for name in found if isinstance(name, str)]


def place_of(owner: ItemOwner, id: str) -> Place:
    return Place((PEOPLE, owner.user, NAME), id)


def choose(
    card: bytes, profile: ProfileSettings, question: QueryText, room: TokenBudget
) -> Block | None:
    hobbies = msgspec.json.decode(card, type=HobbyCard).hobbies
    lines = [each.text for each in hobbies]
    return whole_block(NAME, "What they do for fun.", lines, room.tokens, room.count)


def memory(item: Item, now: float) -> LearnedMemory:
    return LearnedMemory(item.key, "current", item.created_at, None, partial(_fields, item))


def _fields(item: Item, count: Callable[[str], int]) -> dict[str, object]:
    hobby = decode_item(item, Hobby).value
    return {
        "object": "memory",
        "id": hobby.id,
        "kind": "hobby",
        "text": hobby.text,
        "sources": [source_fields(source) for source in hobby.sources],
        "created_at": item.created_at,
    }


HOBBIES = Kind(
    name=NAME,
    memory="hobby",
    rank=4,
    values={NAME: Hobby},
    by_id=True,
    card=HobbyCard,
    card_place=personal_card(NAME),
    choose=choose,
    make_listed_store=lambda resources: resources.make(HobbyStore),
    to_memory=memory,
    extractor=lambda resources, model, watch: HobbyExtractor(model, resources.make(HobbyStore)),
)
"""The entry."""
