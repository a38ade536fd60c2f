"""Saving a fact that a model states: an operation for MCP's tools only, without a route."""

from __future__ import annotations

from msgspec import Struct

from proxy.learning.facts.fact import TooManyFacts
from proxy.learning.facts.tools import FactTools
from proxy.memory_api.api import Api
from proxy.memory_api.errors import too_many_memories
from proxy.memory_api.objects import Object
from proxy.memory_api.operation import operation
from proxy.memory_api.parameters import PersonAt
from proxy.memory_api.people.memories import as_item_owner, memories_of
from proxy.memory_api.people.users import ALL, TAG
from proxy.memory_api.shapes.people import Memory


class Statement(Struct, kw_only=True):
    """What a model states, and of whom; each is one line.

    ``afresh``: always add a fact, even if there is one with the same text, which the caller may not
    be allowed to read.
    """

    text: str
    about: str
    afresh: bool


@operation("POST", ALL, TAG, answer=Memory, creates_tenant=True)
async def save_fact(api: Api, owner: PersonAt, statement: Statement) -> Object:
    """Save a fact.

    It is a model's word, not a person's: what tells the assistant what to do is quarantined.
    """
    facts = FactTools(api.learned.facts, api.settings.memory.facts)
    try:
        fact = await facts.add(
            as_item_owner(owner), statement.text, statement.about, always_new=statement.afresh
        )
    except TooManyFacts:
        raise too_many_memories() from None
    return await memories_of(api).existing(owner, fact.id)
