"""What of an answer goes back to its own API alone takes its part of the budget."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import pytest

from proxy.gateway import fetches
from proxy.gateway.offload import MIN_THREAD_BYTES
from proxy.memory.recording.amend import late_answer
from tests.support.rig import Rig
from tests.support.talk.messaging import MessagesTalk
from tests.support.talk.responding import ItemTalk
from tests.support.upstream import items
from tests.support.upstream.answers import json_answer
from tests.support.upstream.anthropic import answered, text, tool_result, tool_use

pytestmark = pytest.mark.asyncio(loop_scope="session")

Json = dict[str, Any]
TEN_THOUSAND = "word " * 10_000
SOME = "word " * 1_000
PICTURE = "A" * 40_000


def ran(output: str) -> Json:
    return {
        "type": "mcp_call",
        "id": f"mcp_{len(output)}",
        "server_label": "s",
        "name": "look",
        "arguments": "{}",
        "output": output,
    }


def user(content: Any) -> Json:
    return {"role": "user", "content": content}


async def asked(talk: ItemTalk, said: Json, *made: Json) -> int:
    """Tokens that memory added."""
    talk.upstream.reply(*made, items.said("Done."))
    answer = await talk.post({"model": "m", "input": [said]})
    assert answer.status_code == 200, answer.text
    return int(answer.headers["x-memory-tokens"])


async def test_what_tools_of_the_responses_upstream_made_is_counted(one: Rig) -> None:
    talk = ItemTalk.of(one)
    await asked(talk, user("Look."), ran(SOME))
    assert 1_000 < await asked(talk, user("Again."), ran(TEN_THOUSAND)) < 1_100
    assert await asked(talk, user("And?")) < 100
    assert len(one.up.requests[-1].body) < 1_000


async def test_what_tools_of_the_messages_upstream_made_is_counted(one: Rig) -> None:
    talk, one.up.strict = MessagesTalk.on(one), False  # it knows no MCP
    use = {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "look", "input": {}}
    found = {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "is_error": False}

    async def added(asking: str, made: str) -> int:
        result = {**found, "content": [text(made)]}
        answer = await talk.ask([user(asking)], answered(use, result, text("Done.")))
        return int(answer.headers["x-memory-tokens"])

    await added("Look.", SOME)
    assert 1_000 < await added("Again.", TEN_THOUSAND) < 1_200
    assert await added("And?", SOME) < 100
    assert len(one.up.requests[-1].body) < 1_000


async def test_an_image_that_a_tool_gives_costs_the_same_in_both_apis(one: Rig) -> None:
    talk = ItemTalk.of(one)
    call = items.calls("look", "{}", "c1")
    await asked(talk, user("Look."), call)
    seen = [{"type": "input_image", "image_url": f"data:image/png;base64,{PICTURE}"}]
    await asked(talk, {"type": "function_call_output", "call_id": "c1", "output": seen})
    of_items = await asked(talk, user("And?"))
    assert any(item.get("output") == seen for item in talk.input)

    other = MessagesTalk.on(one)
    await other.ask([user("Look.")], answered(tool_use("look", {}, "toolu_1")))
    source = {"type": "base64", "media_type": "image/png", "data": PICTURE}
    image = [{"type": "image", "source": source}]
    await other.ask([user([tool_result("toolu_1", image)])], answered(text("A road.")))
    last = await other.ask([user("And?")], answered(text("No more.")))
    assert 765 < int(last.headers["x-memory-tokens"]) < 900
    assert 765 < of_items < 900


async def test_a_large_answer_that_is_fetched_is_counted_in_a_thread(
    one: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = ItemTalk.of(one)
    queued = items.response([], status="queued", background=True, usage=None)
    whole = items.response([ran("x" * MIN_THREAD_BYTES), items.said("Done.")], background=True)
    one.up.reply(json_answer(queued))
    await talk.post({"model": "m", "input": "u1", "background": True})
    threads = set[int]()
    monkeypatch.setattr(fetches, "late_answer", partial(_noting, threads, late_answer))
    one.up.reply(json_answer({**whole, "id": queued["id"]}))
    path = f"/v1/responses/{queued['id']}"
    await one.client.get(path, headers=talk.all_headers)
    assert await talk.log() == "u1 Done."
    assert threads and threading.get_ident() not in threads


def _noting(threads: set[int], real: Any, *given: Any) -> Any:
    threads.add(threading.get_ident())
    return real(*given)
