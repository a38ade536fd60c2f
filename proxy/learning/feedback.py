"""What people say of answers: good, bad, and why.

It is kept with the person whose session it is about, or with the tenant where there is nobody:
under ("users", U, "feedback", SESSION) or ("instructions", "/feedback", SESSION), by message.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

import msgspec

from proxy.learning.collection import delete_change
from proxy.memory.items import INSTRUCTIONS, PEOPLE, ItemOwner, Items, Namespace, Place, item_pages
from proxy.memory.model import SessionKey

FEEDBACK = "feedback"
UNOWNED_FEEDBACK = "/feedback"
"""No application is called so."""

Score = Literal[-1, 0, 1]

PAGE = 500

LONGEST_COMMENT = 2000
"""Characters."""


class Feedback(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The last word about one message.  ``profile`` is the name of its exchange's, "" the default.

    ``created_at`` in Unix seconds.
    """

    session: str
    message: str
    exchange: str
    score: Score
    comment: str = ""
    profile: str = ""
    created_at: float = 0.0


def namespace(user: str, session: str) -> Namespace:
    """Where the feedback about a session is; ``user`` "" is nobody."""
    return (PEOPLE, user, FEEDBACK, session) if user else (INSTRUCTIONS, UNOWNED_FEEDBACK, session)


def feedback_place(user: str, session: str, message: str) -> Place:
    return Place(namespace(user, session), message)


async def feedback_on(
    items: Items, tenant: str, user: str, session: str, messages: list[str]
) -> dict[str, Feedback]:
    """What was last said of messages, by message.  Raises StoreError.

    Before what was said while the session was nobody's comes what was said since.
    """
    said: dict[str, Feedback] = {}
    for owner in _owners(user) if messages else ():
        places = [feedback_place(owner, session, message) for message in messages]
        found = await items.items_at(ItemOwner(tenant, owner), places)
        for place, item in found.items():
            said[place.key] = msgspec.json.decode(item.value, type=Feedback)
    return said


async def drop_feedback(
    items: Items, key: SessionKey, user: str | None, messages: Collection[str]
) -> None:
    """Drop what was said of messages, whoever had their session then.  Raises StoreError."""
    for item_owner, where in _owned_namespaces(key, user) if messages else ():
        gone = [delete_change(Place(where, message)) for message in messages]
        await items.change_items(item_owner, gone)


async def count_feedback(items: Items, key: SessionKey, user: str | None) -> int:
    """How much feedback there is about a session.  Raises StoreError."""
    found = 0
    for item_owner, where in _owned_namespaces(key, user):
        async for page in item_pages(items, item_owner, where, PAGE):
            found += len(page)
    return found


async def forget_feedback(items: Items, key: SessionKey, user: str | None) -> int:
    """Drop all feedback about a session that is deleted; how many it was.  Raises StoreError."""
    found = 0
    for item_owner, where in _owned_namespaces(key, user):
        if (await items.items(item_owner, where, None, 1)).items:
            found += await items.drop_items(item_owner, where)
    return found


def _owned_namespaces(key: SessionKey, user: str | None) -> list[tuple[ItemOwner, Namespace]]:
    return [
        (ItemOwner(key.tenant, owner), namespace(owner, key.session)) for owner in _owners(user)
    ]


def _owners(user: str | None) -> tuple[str, ...]:
    """With whom feedback may be: a person's session may have been nobody's when it was said."""
    return ("", user) if user else ("",)
