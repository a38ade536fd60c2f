"""Talking by OpenAI's own client with a proxy that keeps what its upstream does not."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from openai import AsyncOpenAI
from openai.types.responses import Response

from proxy.memory.model import LoadOptions, SessionKey
from proxy.tenancy import digest_of
from tests.support.rig import KEY, Rig
from tests.support.talk.words import names
from tests.support.upstream.items import as_messages
from tests.support.upstream.stateless import StatelessResponder

PROFILE = "keeping"
"""A profile of the proxy with ``emulate_response_state``."""


class Keeping:
    """The proxy, its upstream and clients, who have no session."""

    def __init__(self, one: Rig) -> None:
        self.rig, self.upstream = one, StatelessResponder()
        one.up.always(self.upstream)

    @asynccontextmanager
    async def client(self, key: str = KEY, **headers: str) -> AsyncIterator[AsyncOpenAI]:
        """``headers`` by their names, ``_`` for ``-``."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        async with AsyncOpenAI(
            base_url=f"{self.rig.proxy.url}/v1",
            api_key=key,
            default_headers={"X-Memory-Profile": PROFILE, **sent},
            max_retries=0,
        ) as client:
            yield client
            assert not self.upstream.refused and not self.upstream.strays

    @property
    def sent(self) -> str:
        """What the upstream got last, in shorthand."""
        listed = self.rig.up.requests[-1].json["input"]
        said = listed if isinstance(listed, list) else [{"role": "user", "content": listed}]
        return names(as_messages(said))

    async def log(self, session: str, key: str = KEY) -> str:
        """A session's active log, in shorthand."""
        at, store = SessionKey(digest_of(key.encode()), session), self.rig.store.real
        snapshot = await store.load(at, LoadOptions(profile="", whole=True))
        ids = [entry.card.id for entry in snapshot.log]
        bodies = await store.bodies(at, ids)
        return names(json.loads(bodies[id]) for id in ids)


async def asks(
    client: AsyncOpenAI, said: object, previous: Response | str | None = None, **more: Any
) -> Response:
    """The response to a text, or to items."""
    before = previous.id if isinstance(previous, Response) else previous
    if before is not None:
        more = {**more, "previous_response_id": before}
    create: Callable[..., Awaitable[Response]] = client.responses.create
    return await create(model="gpt-5", input=said, **more)
