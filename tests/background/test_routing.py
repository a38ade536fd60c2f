"""Where work in the background is asked with several upstreams, and with whose key."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from proxy.background.budget import Budget
from proxy.background.completer import UpstreamCompleter
from proxy.background.completion import Assignment, NoCredential
from proxy.background.credentials import Credentials
from proxy.background.routing import NamedUpstreams
from proxy.telemetry import Telemetry
from proxy.upstreams.choice import Upstreams
from proxy.upstreams.destination import Destination
from proxy.wire.origin import UpstreamOptions
from proxy.wire.upstream import Upstream, open_upstream
from tests.support.oracle.usage import InMemoryMeter
from tests.support.upstream.scripted import ScriptedUpstream

NOON = 1_700_049_600.0
MINE = [(b"authorization", b"Bearer sk-tenant")]


@dataclass
class Desk:
    """A completer and the APIs that it may ask, by name."""

    completer: UpstreamCompleter
    credentials: dict[str, Credentials]
    ups: dict[str, ScriptedUpstream]

    async def ask(self, **more: Any) -> tuple[str, str | None]:
        """Who was asked for something, and with which key."""
        await self.completer.complete(Assignment("tenant", "summary", "text", **more))
        ((name, request),) = [(n, r) for n, up in self.ups.items() for r in up.requests]
        return name, request.header("authorization")


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with AsyncExitStack() as opened:
        names = ("default", "paid", "open", "local", "elsewhere")
        ups = {name: await opened.enter_async_context(ScriptedUpstream()) for name in names}
        clients: dict[str, Upstream] = {}
        for name, up in ups.items():
            clients[name] = open_upstream("direct", UpstreamOptions(up.url))
            await clients[name].open()
            opened.push_async_callback(clients[name].close)
        several = Upstreams(
            [
                Destination("paid", clients["paid"], ("claude-*",), "anthropic", "sk-of-paid"),
                Destination("open", clients["open"], ("llama-*",), client_keys=True),
                Destination("local", clients["local"], ("qwen-*",)),
            ]
        )
        credentials, further = Credentials("anonymous"), NamedUpstreams(several, "anonymous")
        completer = UpstreamCompleter(
            {"": clients["default"], "http://elsewhere/v1": clients["elsewhere"]},
            credentials,
            Budget(InMemoryMeter(), 0, lambda: NOON),
            lambda model: len,
            Telemetry(),
            lambda: NOON,
            further,
        )
        yield Desk(completer, {"": credentials, **further.credentials}, ups)


@pytest.mark.parametrize(
    ("asked", "name", "key"),
    [
        ({"default_model": "gpt-4o"}, "default", "Bearer sk-tenant"),
        ({"default_model": "claude-1"}, "paid", "Bearer sk-of-paid"),
        ({"model": "qwen-1", "default_model": "claude-1"}, "local", None),
        ({"model": "gpt-4o", "upstream": "paid"}, "paid", "Bearer sk-of-paid"),
        ({"model": "claude-1", "upstream": "default"}, "default", "Bearer sk-tenant"),
        ({"model": "claude-1", "key": "sk-part"}, "default", "Bearer sk-part"),
        ({"model": "claude-1", "url": "http://elsewhere/v1"}, "elsewhere", None),
    ],
)
async def test_it_is_asked_where_a_chat_goes_or_where_the_settings_say(
    desk: Desk, asked: dict[str, str], name: str, key: str | None
) -> None:
    desk.credentials[""].remember("tenant", MINE)
    assert await desk.ask(**asked) == (name, key)


async def test_a_tenants_key_is_used_only_where_it_was_sent(desk: Desk) -> None:
    desk.credentials["open"].remember("tenant", MINE)
    with pytest.raises(NoCredential):
        await desk.ask(model="gpt-4o")
    assert not desk.completer.is_ready(Assignment("tenant", "summary", "x", model="gpt-4o"))
    assert await desk.ask(model="llama-4") == ("open", "Bearer sk-tenant")


def test_while_no_model_is_known_it_is_ready_if_anybody_could_be_asked(desk: Desk) -> None:
    assert desk.completer.is_ready(Assignment("tenant", "summary", "x"))
    assert not desk.completer.is_ready(Assignment("tenant", "summary", "x", upstream="open"))
    assert not desk.completer.is_ready(Assignment("tenant", "summary", "x", default_model="gpt-4o"))


def test_only_those_that_take_clients_keys_have_any(desk: Desk) -> None:
    assert desk.credentials.keys() == {"", "open"}
