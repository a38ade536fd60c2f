"""Every kind of call of the Responses API goes up with its output, both as they came.

The kinds are those of the SDK's ``ResponseInputItemParam``.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.rig import Rig
from tests.support.talk.responding import ItemTalk
from tests.support.upstream import items

pytestmark = pytest.mark.asyncio(loop_scope="session")

Json = dict[str, Any]


def item(kind: str, id: str, call: str | None = None, **more: Any) -> Json:
    """An item as an upstream makes it."""
    named = {} if call is None else {"call_id": call}
    return {"type": kind, "id": id, **named, "status": "completed", **more}


def output(kind: str, call: str, said: Any, **more: Any) -> Json:
    """An item as a client makes it."""
    return {"type": kind, "call_id": call, "output": said, **more}


SEARCH: Json = {"execution": "client", "arguments": {"query": "weather"}}
LOADED: Json = {"execution": "client", "tools": [{"type": "function", "name": "weather"}]}
PATCH: Json = {"type": "create_file", "path": "a.txt", "diff": "+a"}
EXEC: Json = {"type": "exec", "command": ["ls"], "env": {}}
RAN: Json = {"stdout": "a.txt", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}
SEEN: Json = {"type": "computer_screenshot", "image_url": "https://a/b.png"}
ASKED: Json = {"name": "look", "arguments": "{}", "server_label": "s"}
FOUND = item("tool_search_output", "tso_1", "c1", execution="client", tools=[])

OF_CLIENTS: dict[str, list[tuple[Json, Json]]] = {
    "function": [(items.calls("look", "{}", "c1"), output("function_call_output", "c1", "3"))],
    "namespaced": [
        (
            items.calls("look", "{}", "c1", namespace="n"),
            output("function_call_output", "c1", "3", name="look", namespace="n"),
        )
    ],
    "custom": [
        (
            item("custom_tool_call", "ctc_1", "c1", name="run", input="1 + 2"),
            output("custom_tool_call_output", "c1", "3"),
        )
    ],
    "tool-search": [
        (
            item("tool_search_call", "ts_1", "c1", **SEARCH),
            {"type": "tool_search_output", "call_id": "c1", **LOADED},
        )
    ],
    "tool-search-named": [(item("tool_search_call", "ts_1", "c1", **SEARCH), FOUND)],
    "computer": [
        (
            item("computer_call", "cu_1", "c1", actions=[{"type": "screenshot"}]),
            output("computer_call_output", "c1", SEEN),
        )
    ],
    "shell": [
        (
            item("shell_call", "sh_1", "c1", action={"commands": ["ls"]}),
            output("shell_call_output", "c1", [RAN], max_output_length=99),
        )
    ],
    "local-shell": [
        (
            item("local_shell_call", "lsh_1", "c1", action=EXEC),
            output("local_shell_call_output", "c1", "a.txt"),
        )
    ],
    "local-shell-by-id": [
        (
            item("local_shell_call", "lsh_1", "c1", action=EXEC),
            {"type": "local_shell_call_output", "id": "c1", "output": "a.txt"},
        )
    ],
    "patch": [
        (
            item("apply_patch_call", "apc_1", "c1", operation=PATCH),
            output("apply_patch_call_output", "c1", "done", status="completed"),
        )
    ],
    "approval": [
        (
            {"type": "mcp_approval_request", "id": "mcpr_1", **ASKED},
            {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
        )
    ],
    "several": [
        (
            item("tool_search_call", "ts_1", "c1", **SEARCH),
            {"type": "tool_search_output", "call_id": "c1", **LOADED},
        ),
        (items.calls("look", "{}", "c2"), output("function_call_output", "c2", "3")),
        (
            item("apply_patch_call", "apc_1", "c3", operation=PATCH),
            output("apply_patch_call_output", "c3", "no", status="failed"),
        ),
    ],
}

OF_UPSTREAMS: dict[str, list[Json]] = {
    "web-search": [item("web_search_call", "ws_1", action={"type": "search", "query": "x"})],
    "file-search": [item("file_search_call", "fs_1", queries=["x"], results=None)],
    "code": [item("code_interpreter_call", "ci_1", code="1", container_id="k", outputs=None)],
    "image": [item("image_generation_call", "ig_1", result="QUJD")],
    "mcp": [
        {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": []},
        {"type": "mcp_call", "id": "mcp_1", "output": "3", **ASKED},
    ],
    "tool-search": [
        {**item("tool_search_call", "ts_1", **SEARCH), "call_id": None, "execution": "server"},
        {**item("tool_search_output", "tso_1", **LOADED), "call_id": None, "execution": "server"},
    ],
    "shell-in-a-container": [
        item("shell_call", "sh_1", "c1", action={"commands": ["ls"]}),
        item("shell_call_output", "sho_1", "c1", output=[RAN]),
    ],
    "tool-search-with-ids": [
        item("tool_search_call", "ts_1", "c1", **{**SEARCH, "execution": "server"}),
        item("tool_search_output", "tso_1", "c1", **{**LOADED, "execution": "server"}),
    ],
    "program": [
        item("program", "pg_1", "c1", code="1", fingerprint="f"),
        item("program_output", "pgo_1", "c1", result="1"),
    ],
    "compaction": [{"type": "compaction", "id": "cmp_1", "encrypted_content": "all"}],
}


def user(text: str) -> Json:
    return {"role": "user", "content": text}


async def upstream_has(talk: ItemTalk, turns: list[list[Json]], resends: list[bool]) -> None:
    """Each turn is what the client says and the upstream's answer; of both the upstream is to have
    all that was before, whether the client resends it or not."""
    had: list[Json] = []
    stream = True
    for (said, answer), resent in zip(
        zip(turns[::2], turns[1::2], strict=True), resends, strict=True
    ):
        talk.upstream.reply(*answer)
        body = {"model": "m", "input": [*had, *said] if resent else said, "stream": stream}
        assert (await talk.post(body)).status_code == 200, talk.upstream.refused
        had += said
        assert talk.input == had
        had += answer
        stream = not stream


CLIENTS = pytest.mark.parametrize(
    "resends",
    [[False] * 4, [True] * 4, [True, True, False, True], [False, False, True, False]],
    ids=["sends-what-is-new", "resends", "resends-at-first", "resends-at-last"],
)


@CLIENTS
@pytest.mark.parametrize("pairs", OF_CLIENTS.values(), ids=OF_CLIENTS)
async def test_a_call_that_the_client_answers(
    one: Rig, pairs: list[tuple[Json, Json]], resends: list[bool]
) -> None:
    talk = ItemTalk.of(one)
    calls, outputs = [call for call, _ in pairs], [answer for _, answer in pairs]
    turns = [[user("Look.")], [items.thought(), *calls], outputs, [items.said("It is 3.")]]
    turns += [[user("And?")], [items.said("No more.")], [user("Bye.")], [items.said("Bye.")]]
    await upstream_has(talk, turns, resends)
    assert not await talk.gone()


@CLIENTS
@pytest.mark.parametrize("made", OF_UPSTREAMS.values(), ids=OF_UPSTREAMS)
async def test_what_the_upstream_does_itself(
    one: Rig, made: list[Json], resends: list[bool]
) -> None:
    talk = ItemTalk.of(one)
    turns = [[user("Look.")], [*made, items.said("It is 3.")]]
    turns += [[user("And?")], [*made, items.said("No more.")]]
    turns += [[user("So?")], [items.said("So.")], [user("Bye.")], [items.said("Bye.")]]
    await upstream_has(talk, turns, resends)
    assert not await talk.gone()
