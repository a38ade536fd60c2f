"""Feedback of people on answers: a score and a comment.

Its owner is the session's user, or the tenant if the session has none: it is stored under
("users", U, "feedback", SESSION) or ("instructions", "/feedback", SESSION), by message.
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
"""Stands in the place of an application's name; none is called so."""

Score = Literal[-1, 0, 1]

PAGE = 500

MAX_COMMENT = 2000
"""Characters of a comment."""


class Feedback(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The latest feedback on one message.

    ``profile`` is the name of its exchange's profile, "" the default one; ``created_at`` is in Unix
    seconds.
    """

    session: str
    message: str
    exchange: str
    score: Score
    comment: str = ""
    profile: str = ""
    created_at: float = 0.0


def namespace(user: str, session: str) -> Namespace:
    """The namespace of the feedback on a session; ``user`` is "" for a session without one."""
    return (PEOPLE, user, FEEDBACK, session) if user else (INSTRUCTIONS, UNOWNED_FEEDBACK, session)


def feedback_place(user: str, session: str, message: str) -> Place:
    return Place(namespace(user, session), message)


async def feedback_on(
    items: Items, tenant: str, user: str, session: str, messages: list[str]
) -> dict[str, Feedback]:
    """The latest feedback on these messages, by message.  Raises StoreError.

    Feedback since the session has a user precedes that from before.
    """
    latest: dict[str, Feedback] = {}
    for owner in _owners(user) if messages else ():
        places = [feedback_place(owner, session, message) for message in messages]
        found = await items.items_at(ItemOwner(tenant, owner), places)
        for place, item in found.items():
            latest[place.key] = msgspec.json.decode(item.value, type=Feedback)
    return latest


async def drop_feedback(
    items: Items, key: SessionKey, user: str | None, messages: Collection[str]
) -> None:
    """Delete the feedback on messages, also from before the session had a user.  Raises
    StoreError."""
    for item_owner, where in _owned_namespaces(key, user) if messages else ():
        gone = [delete_change(Place(where, message)) for message in messages]
        await items.change_items(item_owner, gone)


async def count_feedback(items: Items, key: SessionKey, user: str | None) -> int:
    """The number of pieces of feedback on a session.  Raises StoreError."""
    found = 0
    for item_owner, where in _owned_namespaces(key, user):
        async for page in item_pages(items, item_owner, where, PAGE):
            found += len(page)
    return found


async def forget_feedback(items: Items, key: SessionKey, user: str | None) -> int:
    """Delete all feedback on a session; returns how many pieces.  Raises StoreError."""
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
    """The possible owners of feedback: the session may have had no user when it was given."""
    return ("", user) if user else ("",)
