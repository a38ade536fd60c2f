"""What a session holds, read straight from its store, as plain dicts."""

from __future__ import annotations

import json
from typing import Any

from proxy.memory.model import SessionKey, State
from proxy.stores.open import open_store
from proxy.tenancy import digest_of
from tests.support.waiting import PATIENCE

TOKEN = "sk-test"
ACTIVE: tuple[State, ...] = ("active",)
ALL: tuple[State, ...] = ("active", "superseded")


async def history(
    url: str, session: str, states: tuple[State, ...] = ACTIVE
) -> list[dict[str, Any]]:
    """The messages of the session that the key TOKEN has under that id, oldest first."""
    store = open_store(url, timeout=PATIENCE, commit_timeout=PATIENCE)
    await store.open()
    try:
        page = await store.messages(SessionKey(digest_of(TOKEN.encode()), session), states, 0, 1000)
        return [json.loads(message.wire) for message in page.items]
    finally:
        await store.close()


class Remembered:
    """What a store has under a session id, for the key ``TOKEN``."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def __call__(self, session: str) -> list[dict[str, Any]]:
        return await history(self._url, session)

    async def texts(self, session: str) -> list[str]:
        return [message["content"] for message in await self(session)]

    async def everything(self, session: str) -> list[str]:
        """The texts of what was superseded too, in the order they came."""
        return [message["content"] for message in await history(self._url, session, ALL)]
