"""Conversations in shorthand (see ``words``), said in items to the Responses API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.rig import Rig, Talk
from tests.support.talk.words import message, messages, names
from tests.support.upstream import items
from tests.support.upstream.items import as_messages
from tests.support.upstream.responder import Responder

Json = dict[str, Any]


def item_list(sent: Sequence[Mapping[str, Any]]) -> list[Json]:
    """Chat messages as the input of a request."""
    return [item for said in sent for item in _items(said)]


def output_of(word: str) -> list[Json]:
    """An answer in shorthand as the output of a response: a thought first."""
    said = message(word)
    made = [
        items.calls(call["function"]["name"], call["function"]["arguments"], call["id"])
        for call in said.get("tool_calls", ())
    ]
    return [items.thought(), *(made or [items.said(said["content"])])]


@dataclass
class ItemTalk(Talk):
    """A session whose client speaks the Responses API."""

    path: str = "/v1/responses"
    upstream: Responder = field(default_factory=Responder)

    @classmethod
    def of(cls, one: Rig, **headers: str) -> ItemTalk:
        talk = one.talk(**headers)
        mine = cls(one, talk.session, talk.headers)
        one.up.always(mine.upstream)
        return mine

    async def say(self, sent: str, said: str, *, stream: bool = False, **more: Any) -> str:
        """See Talk."""
        self.upstream.reply(*output_of(said))
        headers = {key: more.pop(key) for key in list(more) if key.startswith("x_")}
        body = {"model": "gpt-5", "input": item_list(messages(sent)), "stream": stream, **more}
        answered = await self.post(body, **headers)
        assert answered.status_code == 200, answered.text
        assert not self.upstream.refused
        return self.sent

    @property
    def sent(self) -> str:
        return names(as_messages(self.input))

    @property
    def input(self) -> list[Json]:
        """What the upstream got last."""
        listed = self.rig.up.requests[-1].json["input"]
        return listed if isinstance(listed, list) else [{"role": "user", "content": listed}]


def _items(said: Mapping[str, Any]) -> list[Json]:
    if said["role"] == "tool":
        output = {"call_id": said["tool_call_id"], "output": said["content"]}
        return [{"type": "function_call_output", **output}]
    made = [
        {"type": "function_call", "call_id": call["id"], **call["function"]}
        for call in said.get("tool_calls", ())
    ]
    return made or [{"role": said["role"], "content": said["content"]}]
