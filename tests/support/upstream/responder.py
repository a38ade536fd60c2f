"""An upstream of the Responses API that refuses what OpenAI refuses, and keeps what is stored.

    one.up.always(Responder())

It answers with what it is told to, else "reply N: <last user text>", streamed if asked to.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from tests.support.upstream import items
from tests.support.upstream.answers import Script, error_answer, json_answer, sse
from tests.support.upstream.connection import Request
from tests.support.upstream.strict import Refused, few_marks, marked

Json = dict[str, Any]

_PARTS = {
    "user": {"input_text", "input_image", "input_file"},
    "system": {"input_text"},
    "developer": {"input_text"},
    "assistant": {"output_text", "refusal", "input_text"},
}


class RefusedItem(Exception):
    """The upstream would answer with this status."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


Answer = Callable[[Json], list[Json]]
"""The output for a request's body, whose ``input`` is a list of items."""


class Responder:
    """Callable, as a script.  ``refused`` says why requests were not valid."""

    def __init__(self, answer: Answer | None = None) -> None:
        self._answer = answer
        self.refused: list[str] = []
        self.stored: dict[str, Json] = {}
        """Items by id."""
        self.conversations: dict[str, list[Json]] = {}
        """What stands before the next turn, by the id of a response."""
        self._queue: deque[tuple[list[Json], Json]] = deque()
        self._replies = 0

    def reply(self, *output: Json, **more: Any) -> None:
        """Say this next; ``more`` are fields of the response."""
        self._queue.append((list(output), more))

    def __call__(self, request: Request) -> Script:
        body = request.json
        if request.method == "GET" or not request.path.split("?")[0].endswith("/responses"):
            return json_answer({"object": "echo", "path": request.path})
        try:
            before = self._before(body)
            given = self._input(body, before)
        except (TypeError, KeyError, AttributeError) as nonsense:
            return error_answer(400, f"Invalid request: {nonsense}")
        except RefusedItem as refusal:
            self.refused.append(str(refusal))
            request.refused = str(refusal)
            return error_answer(refusal.status, str(refusal), param="input")
        whole = self._answered(body, before, given)
        if whole["store"]:
            self.conversations[whole["id"]] = [*before, *given, *whole["output"]]
            self.stored |= {item["id"]: item for item in whole["output"] if "id" in item}
        return sse(items.events(whole)) if body.get("stream") else json_answer(whole)

    def _answered(self, body: Json, before: Sequence[Json], given: Sequence[Json]) -> Json:
        output, more = self._output(body, before, given)
        return items.response(output, **{"store": body.get("store") is not False, **more})

    def _output(
        self, body: Json, before: Sequence[Json], given: Sequence[Json]
    ) -> tuple[list[Json], Json]:
        if self._queue:
            return self._queue.popleft()
        if self._answer is None:
            return self._default(given), {}
        return self._answer({**body, "input": [*before, *given]}), {}

    def _before(self, body: Mapping[str, Any]) -> list[Json]:
        previous = body.get("previous_response_id")
        if previous is None:
            return []
        if previous not in self.conversations:
            raise RefusedItem(f"Previous response with id '{previous}' not found.", 404)
        return self.conversations[previous]

    def _input(self, body: Mapping[str, Any], before: Sequence[Json]) -> list[Json]:
        given = body.get("input")
        if isinstance(given, str):
            given = [{"role": "user", "content": given}]
        if not isinstance(given, list) or not given:
            raise RefusedItem("Invalid type for 'input'.")
        known = [self._known(item) for item in given]
        _paired([*before, *known])
        try:
            few_marks(given)
            for item in given:
                marked(item, "input")
                marked(item, "input", "output")
        except Refused as refused:
            raise RefusedItem(str(refused)) from refused
        return known

    def _known(self, item: object) -> Json:
        if not isinstance(item, dict):
            raise RefusedItem("Invalid type for 'input[]': expected an object.")
        kind = item.get("type", "message" if "role" in item else "item_reference")
        id = item.get("id")
        if kind == "item_reference":
            if id not in self.stored:
                raise RefusedItem(f"Item with id '{id}' not found.", 404)
            return self.stored[id]
        if kind == "reasoning" and not (self._reads(item) or id in self.stored):
            raise RefusedItem(f"Item with id '{id}' not found. Items are not persisted.", 404)
        if kind == "message":
            _message(item)
        return {**item, "type": kind}

    def _reads(self, thought: Json) -> bool:
        return bool(thought.get("encrypted_content"))

    def _default(self, given: Sequence[Json]) -> list[Json]:
        self._replies += 1
        asked = [item for item in given if item.get("role") == "user"]
        content = asked[-1]["content"] if asked else ""
        if not isinstance(content, str):
            content = " ".join(part.get("text", "") for part in content)
        return [items.said(f"reply {self._replies}: {content}")]


def _message(item: Mapping[str, Any]) -> None:
    role, content = item.get("role"), item.get("content")
    if role not in _PARTS:
        raise RefusedItem(f"Invalid value: {role!r}.")
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        raise RefusedItem("Invalid type for 'content'.")
    for part in content:
        if not isinstance(part, dict) or part.get("type") not in _PARTS[role]:
            raise RefusedItem(f"Invalid content part for {role}: {part!r}.")


def _paired(listed: Sequence[Json]) -> None:
    """Each call has its output and each output its call, of one kind; no thought ends a list."""
    made: dict[str, str] = {}
    waiting: set[str] = set()
    for item, follows in zip_longest(listed, listed[1:], fillvalue={"role": "user"}):
        kind, call = _half(item)
        if kind == "reasoning" and follows.get("role") == "user":
            raise RefusedItem(
                f"Item '{item.get('id')}' of type 'reasoning' was provided without its required "
                "following item."
            )
        if kind.endswith("_call_output") and call is not None:
            if made.get(call) != kind.removesuffix("_output"):
                raise RefusedItem(f"No tool call found for {kind} with call_id {call}.")
            waiting.discard(call)
        elif kind.endswith("_call") and call is not None:
            made[call] = kind
            waiting.add(call)
    if waiting:
        raise RefusedItem(f"No tool output found for {', '.join(sorted(waiting))}.")


def _half(item: Json) -> tuple[str, str | None]:
    """Which half of a call an item is, and of which: the second is the kind of the first, and
    ``_output``."""
    kind, call = item["type"], item.get("call_id")
    if kind == "mcp_approval_request":
        return "mcp_approval_call", item["id"]
    if kind == "mcp_approval_response":
        return "mcp_approval_call_output", item.get("approval_request_id", "")
    if kind == "local_shell_call_output":
        return kind, call or item.get("id", "")
    return "tool_search_call_output" if kind == "tool_search_output" else kind, call
