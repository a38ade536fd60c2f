"""A tenant as one would show it to somebody: people, conversations, what was learned of them."""

from __future__ import annotations

import json
import time
from typing import Any

import httpx
from msgspec.structs import replace

from proxy.assembly.resources import store_of
from proxy.memory.archive import SessionArchive
from proxy.memory.model import SessionKey, Summary
from proxy.portable.session_conversion import ImportOptions, to_session
from proxy.portable.source import Conversation, ImportedMessage
from proxy.tenancy import digest_of
from tests.support.processes.running import Running
from tests.support.store.populating import (
    explained,
    long_conversation,
    passage,
    picture_of,
    populate,
)

USER = "maria"
TRIP = "lisbon-in-may"
OTHERS = 60
LONG_ONE = 600
_MINUTE = 60.0
_WINDOW = 8

FACTS = (
    ("Lives in Kiel with two children", "Maria"),
    ("Is allergic to peanuts", "Maria"),
    ("Prefers trains to planes where there is a choice", None),
    ("Her daughter Ida plays the cello", "Ida"),
    ("Speaks German and some Portuguese", "Maria"),
)

_WEATHER = {"city": "Lisbon", "month": "May"}
_FOUND = {"high": 22, "low": 14, "rain_days": 6, "sea": 17, "unit": "celsius"}
_CODE = """Here is a small script for the budget:

```python
days = 6
per_day = {"food": 70, "trams": 12, "museums": 25}
print(days * sum(per_day.values()))
```

That is 642 euros, without the journey."""


async def put_up(proxy: Running, key: str) -> None:
    """Everything, in the store of a running proxy, for this key's tenant."""
    store, tenant = store_of(proxy.settings), digest_of(key.encode())
    await store.open()
    try:
        await populate(store, tenant, OTHERS, time.time() - 10 * _MINUTE)
        now = time.time()
        long = long_conversation(LONG_ONE, now - 10 * _MINUTE, every=30 * 86_400 / LONG_ONE)
        for archived in (trip(now), long):
            assert await store.restore(SessionKey(tenant, archived.session.id), archived)
    finally:
        await store.close()
    headers = {"authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(base_url=proxy.url, headers=headers, timeout=30) as client:
        await _teach(client)


async def _teach(client: httpx.AsyncClient) -> None:
    person = f"/memory/v1/users/{USER}"
    for text, about in FACTS:
        body = {"text": text, **({"about": about} if about else {})}
        answer = await client.post(f"{person}/memories", json=body)
        assert answer.status_code == 201, answer.text
    for profile in ({"city": "Kiel"}, {"languages": ["de", "pt"], "diet": {"avoid": ["peanuts"]}}):
        answer = await client.patch(f"{person}/profile", json=profile)
        assert answer.status_code == 200, answer.text
    item = {"namespace": ["users", USER, "notes"], "key": "packing", "value": {"list": ["hats"]}}
    answer = await client.put("/memory/v1/store/items", json=item)
    assert answer.status_code == 200, answer.text


def trip(now: float) -> SessionArchive:
    """A conversation with all that there is to see: a summary, a call, a picture, a branch."""
    options = ImportOptions(
        lambda raw: 1 + len(raw) // 4, now, media=1 << 20, user=USER, session=TRIP
    )
    title = "Six days in Lisbon with the children"
    archived = to_session(Conversation(tuple(_said(now)), id=TRIP, title=title), options).archived
    lines = archived.lines
    begins = next(n for n, line in enumerate(lines) if n >= 8 and line.position.turn == n + 1)
    summary = Summary(
        text="Maria is planning six days in Lisbon in May with her two children. They go by night"
        " train from Hamburg, want to see the aquarium and the trams, and need food"
        " without peanuts.",
        version=2,
        until=lines[begins].position,
        seen=begins,
        covers_until=begins,
        tokens=48,
        model="gpt-4o-mini",
        created_at=lines[begins].card.created_at,
    )
    versions = (summary, _earlier(lines[2].card.created_at))
    found = (passage(lines[3], TRIP, 0.78), passage(lines[1], TRIP, 0.54))
    exchanges = tuple(explained(archived, summary, _WINDOW, found))
    start = lines[begins].position
    system = json.dumps([{"role": "system", "content": "You are a travel agent. Be brief."}])
    details = replace(archived.session.details, system=system.encode(), system_tokens=12)
    details = replace(details, metadata=b'{"channel": "web", "tags": ["travel", "family"]}')
    session = replace(archived.session, summary=summary, windows={"": start}, details=details)
    return replace(archived, session=session, exchanges=exchanges, summaries=versions)


def _earlier(at: float) -> Summary:
    """The version before."""
    text = "Maria is planning six days in Lisbon in May with her two children."
    return Summary(text=text, version=1, tokens=17, model="gpt-4o-mini", created_at=at)


def _said(now: float) -> list[ImportedMessage]:
    said: list[ImportedMessage] = []

    def say(role: str, content: object, *, active: bool = True, at: int = -2, **more: Any) -> None:
        message = json.dumps({"role": role, "content": content, **more}).encode()
        parent = len(said) - 1 if at == -2 else at
        said.append(ImportedMessage(message, now - _MINUTE * (40 - 2 * len(said)), parent, active))

    say("user", "We would like to spend six days in Lisbon in May, with two children.")
    say("assistant", "Lovely! How would you like to get there, by train or by plane?")
    say("user", "By train. And please remember that I am allergic to peanuts.")
    say("assistant", "Noted. There is a night train from Hamburg, with a change in Paris.")
    say("user", "What should we see? The children love animals.")
    say("assistant", "The aquarium, the zoo with its cable car, and a ride on tram 28 at dawn.")
    say("user", "Good. And a day at the sea?")
    say("assistant", "Cascais: 40 minutes by train along the river, shallow and calm.")
    say("user", "How warm is it there in May?")
    function = {"name": "climate", "arguments": json.dumps(_WEATHER)}
    call = {"id": "call_1", "type": "function", "function": function}
    say("assistant", None, tool_calls=[call])
    say("tool", json.dumps(_FOUND), tool_call_id="call_1")
    say("assistant", "About 22 °C by day and 14 °C at night, with six days of rain.")
    fork = len(said) - 1
    say("user", "What would a hotel cost?", active=False)
    say("assistant", "In Alfama about 140 euros a night for four.", active=False)
    say("user", "What would a flat for four cost, near the river?", at=fork)
    say("assistant", "In Belém about 110 euros a night, with a kitchen.")
    image = {"type": "image_url", "image_url": {"url": picture_of(7)}}
    say("user", [{"type": "text", "text": "Like the one in this picture?"}, image])
    say("assistant", "Yes, with a balcony to the river. Shall I work out the budget?")
    say("user", "Please do.")
    say("assistant", _CODE)
    return said
