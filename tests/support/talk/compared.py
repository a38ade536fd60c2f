"""A conversation as it was sent and as it is stored, in a form in which the two can be compared."""

from __future__ import annotations

import json
from typing import Any

from tests.support.processes.running import Running
from tests.support.store.history import ALL, history
from tests.support.upstream import anthropic
from tests.support.upstream.scripted import ScriptedUpstream
from tests.support.upstream.weatherman import text_of

Said = tuple[Any, ...]
"""A role, the text, the calls (id, name, arguments) and the call that it answers."""


def said(message: dict[str, Any]) -> Said:
    """What a message says, whatever fields a client leaves out."""
    calls = [
        (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in message.get("tool_calls") or ()
    ]
    return message["role"], text_of(message), calls, message.get("tool_call_id")


def spoken(messages: list[dict[str, Any]]) -> list[Said]:
    """The conversation, without what the system says."""
    return [said(each) for each in messages if each["role"] not in ("system", "developer")]


def letters(messages: list[Said]) -> str:
    """u for a message of the user, c2 for an answer with two calls, t for a result, a for words."""
    return " ".join(
        f"c{len(calls)}" if calls else {"user": "u", "assistant": "a", "tool": "t"}[role]
        for role, _, calls, _ in messages
    )


class Talk:
    """One session, as the upstream saw it last and as it is stored."""

    def __init__(self, up: ScriptedUpstream, proxy: Running, session: str) -> None:
        self._up, self._url, self._session = up, proxy.settings.store.url, session

    @property
    def sent(self) -> list[Said]:
        asked = self._up.requests[-1]
        if asked.path.endswith("/messages"):
            return spoken(anthropic.as_chat(asked.json)["messages"])
        return spoken(asked.messages)

    async def log(self) -> list[Said]:
        return spoken(await history(self._url, self._session))

    async def everything(self) -> list[Said]:
        """With what was superseded."""
        return spoken(await history(self._url, self._session, ALL))
