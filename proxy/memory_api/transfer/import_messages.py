"""Messages and items from elsewhere on their way into history.  Pure, and slow for many: run it
on a thread.

An import is one exchange: all of it or nothing.  Its leading system messages become the session's;
later ones are not recorded.  Its answers count as answers of an upstream, so that a client which
resends them can edit and regenerate.

What has its place taken stays out.  What the proxy has learned hangs together, and is kept so: a
profile that is there keeps out another one with its versions, as do instructions; and the cards,
which say what goes into prompts, are made anew where facts or episodes came beside those that were
there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from itertools import takewhile
from typing import NamedTuple

import msgspec

from proxy.chat.extent import MAX_MESSAGES
from proxy.chat.jsontext import UNREADABLE, items, join_items
from proxy.chat.message import ROLES, SYSTEM_ROLES, ChatMessage
from proxy.learning.collection import update
from proxy.learning.facts.fact import FACTS, MOST_GIVEN, MOST_IMPORTED, Fact, given
from proxy.learning.kinds import is_card
from proxy.learning.learned import Learned
from proxy.memory.items import PEOPLE, Change, Item, ItemOwner, Items, Place
from proxy.memory.model import Commit, Draft, Due, Exchange, Injection, Snapshot, message_id
from proxy.memory.recording.commit import Count
from proxy.memory_api.api import ReadMessage
from proxy.memory_api.conversations.checking import check_message
from proxy.memory_api.fields import bytes_of, invalid
from proxy.memory_api.shapes.messages import NewMessages
from proxy.portable.conversing import card_of


class Import(msgspec.Struct, frozen=True):
    """What is imported.  ``times`` are when the messages ``said`` were made, Unix seconds."""

    system: tuple[bytes, ...]
    said: tuple[ChatMessage, ...]
    times: tuple[float, ...]
    user: str | None = None


class MessageReader(msgspec.Struct, frozen=True):
    """Reads the messages of an import; ``limit`` bounds inline media, in bytes."""

    read_message: ReadMessage
    limit: int

    def read(self, new: NewMessages, now: float) -> Import:
        """Raises ProxyError 400, with ``param`` naming the item that is wrong."""
        messages = self._messages(bytes_of(new.messages))
        times = [now] * len(messages) if new.created_at is None else new.created_at
        if len(times) != len(messages):
            raise invalid("created_at must have one number for each message.", "created_at")
        leading = takewhile(lambda message: message.role in SYSTEM_ROLES, messages)
        kept = [
            (message, time)
            for message, time in zip(messages, times, strict=True)
            if message.role not in SYSTEM_ROLES
        ]
        return Import(
            system=tuple(message.record for message in leading),
            said=tuple(message for message, _ in kept),
            times=tuple(time for _, time in kept),
            user=new.user,
        )

    def _messages(self, raw: bytes) -> list[ChatMessage]:
        try:
            pieces = items(raw)
        except UNREADABLE:
            pieces = []
        if not pieces:
            raise invalid("messages must be a list of one or more messages.", "messages")
        if len(pieces) > MAX_MESSAGES:
            raise invalid(f"messages may be at most {MAX_MESSAGES} at once.", "messages")
        return [self._message(piece, f"messages[{n}]") for n, piece in enumerate(pieces)]

    def _message(self, raw: bytes, name: str) -> ChatMessage:
        message = self.read_message(raw, self.limit)
        if message is None:
            raise invalid(f"{name} must be an object.", name)
        if message.role not in ROLES:
            raise invalid(f"{name}.role must be one of: {', '.join(ROLES)}.", f"{name}.role")
        check_message(raw, name)
        return message


def commit_of(
    imported: Import,
    snapshot: Snapshot,
    exchange: str,
    now: float,
    count: Count,
    ttl: int,
    due: tuple[Due, ...],
) -> Commit:
    """The commit of an import into the session of ``snapshot``, whose newest turn must be in it.

    ``ttl`` is for a session that begins with it, ``due`` the work that it asks for.
    """
    drafts = _drafts(imported, snapshot, exchange, count)
    system = join_items(imported.system) if imported.system else None
    if system == snapshot.system:
        system = None
    return Commit(
        exchange=Exchange(
            id=exchange,
            profile="",
            started_at=now,
            created_at=now,
            memory=Injection(status="off", reason="import"),
            size=len(drafts),
            follows=snapshot.log[-1].card.id if snapshot.log else "",
        ),
        user=imported.user,
        drafts=drafts,
        system=system,
        system_tokens=sum(map(count, imported.system)) if system else 0,
        ttl=ttl,
        due=due,
    )


def _drafts(imported: Import, snapshot: Snapshot, exchange: str, count: Count) -> tuple[Draft, ...]:
    """A user message opens a turn; all else joins the turn before it, the session's last one."""
    turn = _newest_turn(snapshot)
    drafts: list[Draft] = []
    for index, (message, time) in enumerate(zip(imported.said, imported.times, strict=True)):
        id = message_id(exchange, index)
        if message.role == "user" or turn is None:
            turn = id
        body = message.record
        drafts.append(Draft(card=card_of(message, body, id, time, count), turn=turn, body=body))
    return tuple(drafts)


def _newest_turn(snapshot: Snapshot) -> str | None:
    newest = snapshot.end.turn
    return next((e.card.id for e in snapshot.log if e.position.turn == newest), None)


AT_ONCE = 200
"""Items that are put in one go."""


class Adopted(NamedTuple):
    """How many items were put, and how many were left out."""

    put: int
    skipped: int


class Adopting:
    def __init__(self, items: Items, learned: Learned) -> None:
        self._items, self._kinds, self._over = items, learned.kinds, learned.over
        self._facts = learned.facts

    async def adopt(self, shelf: ItemOwner, items: Sequence[Item], since: float) -> Adopted:
        """Put what can be put, and nothing if its person was erased at ``since`` or later.

        Raises ValueError as :meth:`check` does, StoreError, and Busy.
        """
        async with self._over.turns.turn(shelf):  # nobody adds to what was counted
            await self.check(shelf, items)
            others = await self._others(shelf, items)
            taken = [item for item in items if self._kinds.story(item) not in others]
            cards = [item for item in taken if is_card(item)]
            put = await self._put(shelf, [item for item in taken if not is_card(item)], since)
            kept = await self._items.items_at(shelf, [card.place for card in cards])
            put_cards = await self._put(shelf, cards, since)  # last: they speak of the others
        if put and kept:
            await self._recard(shelf, {place.key for place in kept}, since)
        return Adopted(put + put_cards, len(items) - put - put_cards)

    async def check(self, shelf: ItemOwner, items: Sequence[Item]) -> None:
        """Raises ValueError for what nobody can have learned and for too many facts, and
        StoreError.
        """
        wrong = await asyncio.to_thread(self._wrong, items)
        if wrong is not None:
            where = "/".join((*wrong.namespace, wrong.key))
            raise ValueError(f"an item at {where} that is not what belongs there")
        await self._check_facts(shelf, items)

    def _wrong(self, items: Sequence[Item]) -> Item | None:
        """The first that is not what belongs at its place; slow for many."""
        kinds = self._kinds
        reserved = (item for item in items if kinds.is_reserved(item.namespace))
        return next((item for item in reserved if not kinds.is_sound(item)), None)

    async def _check_facts(self, shelf: ItemOwner, items: Sequence[Item]) -> None:
        place = (PEOPLE, shelf.user, FACTS)
        brought = [item for item in items if item.namespace == place]
        held = (await self._facts.load(shelf)).facts if brought else {}
        new = [item for item in brought if item.key not in held]
        if new and len(held) + len(new) > MOST_IMPORTED:
            raise ValueError(_too_many("facts of one person", MOST_IMPORTED))
        facts = [*held.values(), *(msgspec.json.decode(item.value, type=Fact) for item in new)]
        if new and given(facts) > MOST_GIVEN:
            what = "facts of one person that were added, saved or imported"
            raise ValueError(_too_many(what, MOST_GIVEN))

    async def there(self, shelf: ItemOwner, items: Sequence[Item]) -> int:
        """How many of these have their place taken.  Raises StoreError."""
        taken = 0
        for start in range(0, len(items), AT_ONCE):
            places = [item.place for item in items[start : start + AT_ONCE]]
            taken += len(await self._items.items_at(shelf, places))
        return taken

    async def remake_card(self, shelf: ItemOwner, since: float) -> None:
        """A person's card of facts, where those came without it.  Raises StoreError, Busy: also
        where the person was erased at ``since`` or later."""
        await self._recard(shelf, {FACTS}, since)

    async def _others(self, shelf: ItemOwner, items: Sequence[Item]) -> set[Place | None]:
        """The stories of which another is there already."""
        mine = {item.place: bytes(item.value) for item in items}
        stories = {story for item in items if (story := self._kinds.story(item))}
        there = await self._items.items_at(shelf, stories)
        return {place for place, item in there.items() if bytes(item.value) != mine.get(place)}

    async def _put(self, shelf: ItemOwner, items: Sequence[Item], since: float) -> int:
        put = 0
        for start in range(0, len(items), AT_ONCE):
            put += await self._items.adopt_items(shelf, items[start : start + AT_ONCE], since)
        return put

    async def _recard(self, shelf: ItemOwner, features: Collection[str], since: float) -> None:
        for kind in self._kinds.ranked:
            if kind.listed is not None and kind.name in features:
                await self._write(shelf, kind.listed(self._over).carded, since)

    async def _write(
        self, shelf: ItemOwner, carded: Callable[[ItemOwner], Awaitable[Change]], since: float
    ) -> None:
        async def step() -> tuple[None, Sequence[Change]]:
            return None, [await carded(shelf)]

        await update(self._items, self._over.turns, shelf, step, since)


def _too_many(what: str, most: int) -> str:
    return f"with those that are there, over {most:,} {what}"
