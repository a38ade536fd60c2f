"""Attacks through the other doors: Messages, Responses, MCP, packed bodies, names of upstreams."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable
from itertools import chain

from bench.attack.kinds import MEGABYTE, Attack, Run
from bench.attack.sending import Attacker, Json, assistant, messages_body, user

MESSAGES, RESPONSES = "/v1/messages", "/v1/responses"
_LISTED = {MESSAGES: "messages", RESPONSES: "input"}

_SESSION = {"x-session-id": "attack"}


def _posts(path: str, *bodies: bytes, **more: str) -> Run:
    """These bodies, one after the other, in one session."""
    headers = {**_SESSION, **{name.replace("_", "-"): value for name, value in more.items()}}

    def run(attacker: Attacker) -> None:
        for body in bodies:
            attacker.ask("POST", path, body, headers)

    return run


def _body(field: str, items: bytes) -> bytes:
    """A request of either API with this JSON list."""
    return b'{"model":"mock","max_tokens":9,"%b":%b}' % (field.encode(), items)


def _of(path: str, items: Iterable[Json]) -> bytes:
    return _body(_LISTED[path], json.dumps(list(items)).encode())


def _repeated(item: bytes, times: int) -> bytes:
    return b"[" + b",".join([item] * times) + b"]"


def _resent(path: str, log: list[Json]) -> Run:
    """A client that sends all again, with a new question, twice."""
    twice = [[*log, user("and now?")], [*log, user("and now?"), assistant("so"), user("so?")]]
    return _posts(path, *(_of(path, each) for each in twice))


def _turns(path: str, turns: int) -> Callable[[], Run]:
    def build() -> Run:
        spoken = ([user(f"question {n}"), assistant(f"answer {n}")] for n in range(turns))
        return _resent(path, list(chain.from_iterable(spoken)))

    return build


def _loop(path: str, calls: int, step: Callable[[int], list[Json]]) -> Callable[[], Run]:
    """One turn of so many calls."""

    def build() -> Run:
        steps = chain.from_iterable(map(step, range(calls)))
        return _resent(path, [user("do it"), *steps, assistant("done")])

    return build


# Messages


def _use(n: int) -> list[Json]:
    use = {"type": "tool_use", "id": f"toolu_{n}", "name": "look", "input": {"n": n}}
    seen = {"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": str(n)}
    return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [seen]}]


def _content(content: bytes) -> Run:
    return _posts(MESSAGES, _body("messages", b'[{"role":"user","content":%b}]' % content))


def _many_blocks() -> Run:
    return _content(_repeated(b'{"type":"text","text":"x"}', 1_000_000))


def _nested_blocks() -> Run:
    block = b'{"type":"tool_result","tool_use_id":"t","content":[' * 100_000
    return _content(b"[" + block + b"]}" * 100_000 + b"]")


def _thoughts() -> Run:
    """Two hundred thousand thoughts, which are signed."""
    thought = b'{"type":"thinking","thinking":"so","signature":"c2lnbmVk"}'
    spoken = b'{"role":"assistant","content":%b}' % _repeated(thought, 200_000)
    asked = b'{"role":"user","content":"hello"}'
    return _posts(MESSAGES, _body("messages", b"[%b,%b,%b]" % (asked, spoken, asked)))


def _many_systems() -> Run:
    system = _repeated(b'{"type":"text","text":"be kind"}', 500_000)
    asked = b'[{"role":"user","content":"hello"}]'
    return _posts(MESSAGES, b'{"system":%b,%b' % (system, _body("messages", asked)[1:]))


def _evil_events(path: str, kind: str) -> Callable[[], Run]:
    return lambda: _posts(path, _of(path, [user("hello")]), x_bench_answer=kind)


# Responses


def _function_call(n: int) -> list[Json]:
    call = {"type": "function_call", "call_id": f"c{n}", "name": "look", "arguments": "{}"}
    return [call, {"type": "function_call_output", "call_id": f"c{n}", "output": str(n)}]


def _many_items() -> Run:
    return _posts(RESPONSES, _body("input", _repeated(b'{"role":"user","content":"x"}', 1_000_000)))


def _unknown_items() -> Run:
    """Of kinds that nobody knows, with megabytes of whatever in them."""
    item = b'{"type":"of_tomorrow","data":%b}' % _repeated(b"[]", 10_000)
    return _posts(RESPONSES, _body("input", _repeated(item, 300)))


def _references() -> Run:
    """Names of items that are nowhere."""
    items = [{"type": "item_reference", "id": f"msg_{n}"} for n in range(200_000)]
    return _posts(RESPONSES, _of(RESPONSES, [*items, user("hello")]))


def _goes_on() -> Run:
    """A chain of responses, each going on from one that is not there."""

    def run(attacker: Attacker) -> None:
        for n in range(300):
            asked = {"model": "mock", "input": "hello", "previous_response_id": f"resp_{n}" * 100}
            attacker.ask("POST", RESPONSES, json.dumps(asked).encode(), _SESSION)

    return run


# Packed bodies


def _packed(coding: str) -> Callable[[], Run]:
    """Two gigabytes of a chat in a few megabytes, in each API."""

    def build() -> Run:
        packed = gzip.compress(messages_body([user("x" * MEGABYTE)])[:-30] + bytes(64 * MEGABYTE))
        bomb = packed * 32  # members follow one another (RFC 1952, 2.2)

        def run(attacker: Attacker) -> None:
            for path in ("/v1/chat/completions", MESSAGES, RESPONSES):
                attacker.ask("POST", path, bomb, {**_SESSION, "content-encoding": coding})

        return run

    return build


# MCP


def _call(tool: str, **arguments: object) -> bytes:
    asked = {"name": tool, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": asked}).encode()


_MCP = {"accept": "application/json, text/event-stream", "x-user-id": "eve"}


def _mcp(*bodies: bytes) -> Run:
    def run(attacker: Attacker) -> None:
        for body in bodies:
            attacker.ask("POST", "/mcp", body, _MCP)

    return run


def _mcp_bodies() -> Run:
    """Large, deep and long-winded requests."""
    deep = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + b"[" * 100_000
    batch = b"[" + b'{"jsonrpc":"2.0","id":1,"method":"ping"},' * 5_000 + b"{}]"
    query = _call("search_memories", query="where do I live and what did I say " * 6_000)
    return _mcp(deep, batch, query, b"[" * (30 * MEGABYTE))


def _mcp_saves() -> Run:
    """Six hundred facts, more than are kept, and what there is to find of them."""
    saves = [_call("save_memory", text=f"I like number {n} best") for n in range(600)]
    looks = [_call("search_memories", query="what do I like best?", limit=50)] * 100
    return _mcp(*saves, *looks)


# Upstreams


def _upstream_names() -> Run:
    """Names of upstreams and models that are nowhere."""

    def run(attacker: Attacker) -> None:
        for n in range(2_000):
            asked = json.dumps({"model": f"m{n}" * 200, "messages": [user("hi")]}).encode()
            attacker.chat("attack", asked, x_memory_upstream=f"up-{n}")

    return run


DOORS = (
    Attack("Messages: 10,000 resent", _turns(MESSAGES, 5_000)),
    Attack("Messages: 2,500 uses resent", _loop(MESSAGES, 2_500, _use)),
    Attack("Messages: 1 M blocks", _many_blocks),
    Attack("Messages: 100,000 blocks nested", _nested_blocks),
    Attack("Messages: 200,000 thoughts", _thoughts),
    Attack("Messages: 500,000 system blocks", _many_systems),
    Attack("Messages: event of 13.5 MB", _evil_events(MESSAGES, "message-event")),
    Attack("Messages: 100,000 open blocks", _evil_events(MESSAGES, "message-blocks")),
    Attack("Responses: 10,000 resent", _turns(RESPONSES, 5_000)),
    Attack("Responses: 2,500 calls resent", _loop(RESPONSES, 2_500, _function_call)),
    Attack("Responses: 1 M items", _many_items),
    Attack("Responses: 300 items nobody knows", _unknown_items),
    Attack("Responses: 200,000 references", _references),
    Attack("Responses: 300 that go on from nothing", _goes_on),
    Attack("Responses: event of 13.5 MB", _evil_events(RESPONSES, "response-event")),
    Attack("Responses: 100,000 items done", _evil_events(RESPONSES, "response-items")),
    Attack("request of 2 GB in gzip", _packed("gzip")),
    Attack("request that is no zstd", _packed("zstd")),
    Attack("MCP: large and deep", _mcp_bodies),
    Attack("MCP: 600 facts", _mcp_saves),
    Attack("2,000 names of upstreams", _upstream_names),
)
