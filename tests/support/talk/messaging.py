"""Conversations in shorthand over the Messages API: see ``words`` for the shorthand."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import httpx

from tests.support.rig import KEY, Rig, Talk
from tests.support.talk import words
from tests.support.upstream.answers import Script
from tests.support.upstream.anthropic import answered, blocks, tool_result, tool_use

PATH = "/v1/messages"
VERSION = "2023-06-01"

Json = dict[str, Any]


class MessagesTalk(Talk):
    """One session over the Messages API."""

    @classmethod
    def on(cls, rig: Rig, session: str | None = None, **headers: str) -> MessagesTalk:
        """A session that nobody has used, or this one."""
        fresh = rig.talk()
        return cls(rig, session or fresh.session, headers, PATH)

    @property
    def all_headers(self) -> dict[str, str]:
        own = {"x-api-key": KEY, "anthropic-version": VERSION, "x-session-id": self.session}
        return {**own, **self.headers}

    async def ask(
        self, sent: Sequence[Mapping[str, Any]], script: Script | None = None, **more: Any
    ) -> httpx.Response:
        return await super().ask(sent, script, **{"max_tokens": 100, **more})

    async def say(self, sent: str, said: str, *, stream: bool = False, **more: Any) -> str:
        if stream:
            more["stream"] = True
        response = await self.ask(messages(sent), answer(said, stream=stream), **more)
        assert response.status_code == 200, response.text
        assert not self.rig.up.refused
        return self.sent

    @property
    def sent(self) -> str:
        return names(self.rig.up.requests[-1].messages)


def messages(shorthand: str) -> list[Json]:
    """Results, and what is said beside them, are one message; two turns are two."""
    joined: list[Json] = []
    for each in words.messages(shorthand):
        said = _message(each)
        if joined and said["role"] == "user" and _is_result(joined[-1]):
            joined[-1] = {"role": "user", "content": [*blocks(joined[-1]), *blocks(said)]}
        else:
            joined.append(said)
    return joined


def _is_result(said: Json) -> bool:
    return bool(blocks(said)[-1]["type"] == "tool_result")


def _message(said: Mapping[str, Any]) -> Json:
    if said["role"] == "tool":
        return {"role": "user", "content": [tool_result(said["tool_call_id"], said["content"])]}
    calls = said.get("tool_calls")
    if calls:
        return {"role": "assistant", "content": [_use(call) for call in calls]}
    return {"role": said["role"], "content": said["content"]}


def _use(call: Mapping[str, Any]) -> Json:
    function = call["function"]
    return tool_use(function["name"], json.loads(function["arguments"]), call["id"])


def answer(word: str, *, stream: bool = False) -> Script:
    """What the upstream is to say: a message in shorthand, plain or streamed."""
    return answered(*blocks(_message(words.message(word))), stream=stream)


def names(listed: Iterable[Mapping[str, Any]]) -> str:
    return " ".join(name for said in listed for name in _names(said))


def _names(said: Mapping[str, Any]) -> Iterator[str]:
    uses = [block["name"] for block in blocks(said) if block["type"] == "tool_use"]
    for block in blocks(said):
        if block["type"] == "tool_result":
            yield str(block["content"])
        elif block["type"] == "text":
            yield words.name({"role": said["role"], "content": block["text"]})
    yield from uses[:1]
