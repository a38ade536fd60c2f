"""Converts an answer of other programs, a list of texts, calls and results, to OpenAI's messages.
Pure.

There, results directly follow the message with their calls, and each call has a result.  So a call
without result becomes a line of text, and a result without call is dropped, both with a warning.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence

import msgspec

from proxy.chat import jsontext
from proxy.portable.check import Fields, fields_in, text_in
from proxy.portable.programs.tree import TimedMessage
from proxy.portable.source import Warnings

THOUGHTS_SKIPPED = "what a model only thought was left out"
FILES_REPLACED = "files and images are lines in brackets: what was in them is not in the file"
PROGRAM_TEXT_SKIPPED = "what the program itself has put in for the model was left out"
CALLS_WITHOUT_RESULT = "calls of tools that never had a result are lines in brackets"
RESULTS_WITHOUT_CALL = "results of tools whose call is not there were left out"


class TextBlock(msgspec.Struct, frozen=True):
    text: str
    at: float | None = None


class ToolCall(msgspec.Struct, frozen=True):
    """A tool call; ``arguments`` is JSON, ``id`` is "" if it has none."""

    name: str
    arguments: str
    id: str = ""
    at: float | None = None


class ToolResult(msgspec.Struct, frozen=True):
    """A tool's result; ``id`` is its call's, "" for the first call without a result."""

    text: str
    id: str = ""
    at: float | None = None


Block = TextBlock | ToolCall | ToolResult


def size_of(block: Block) -> int:
    """Characters that it holds."""
    return len(block.text) if not isinstance(block, ToolCall) else len(block.name + block.arguments)


def as_arguments(value: object) -> str:
    """A call's arguments as JSON: an object, or JSON text, unchanged; others as "input"."""
    if isinstance(value, str) and value.lstrip()[:1] == "{":
        return value
    return jsontext.encode(value if isinstance(value, dict) else {"input": value}).decode()


def call_or_result(fields: Fields, at: float | None) -> Block | None:
    """A tool call or result from a block of Anthropic's messages; None for other blocks."""
    kind = text_in(fields, "type")
    if kind.endswith("tool_use"):
        arguments = as_arguments(fields.get("input") or {})
        return ToolCall(text_in(fields, "name") or "tool", arguments, text_in(fields, "id"), at)
    if kind.endswith("tool_result"):
        return ToolResult(result_text(fields.get("content")), text_in(fields, "tool_use_id"), at)
    return None


def result_text(content: object) -> str:
    """A tool's result as text, from text, a list of blocks, or JSON."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return "" if content is None else jsontext.encode(content).decode()
    return "\n".join(map(_piece, content))


def _piece(block: object) -> str:
    if isinstance(block, str):
        return block
    fields = block if isinstance(block, dict) else {}
    kind = text_in(fields, "type").removeprefix("input_").removeprefix("output_")
    about = text_in(fields, "title"), text_in(fields, "url")
    return text_in(fields, "text") or f"[{', '.join(filter(None, (kind or 'unknown', *about)))}]"


class _Pairs:
    """Matches calls and results.  ``ids``: the calls' ids by position in the list of blocks."""

    def __init__(self, blocks: Sequence[Block], id_prefix: str) -> None:
        self.ids: dict[int, str] = {}
        self.results: dict[str, ToolResult] = {}
        self.stray = 0
        waiting: OrderedDict[str, str] = OrderedDict()  # whose first is found at once
        used: set[str] = set()
        for place, block in enumerate(blocks):
            if isinstance(block, ToolCall):
                unique_id = block.id if block.id not in used else ""
                self.ids[place] = id = unique_id or f"call_{id_prefix}_{place}"
                used.add(id)
                waiting[block.id or id] = id
            elif isinstance(block, ToolResult):
                call_id = waiting.pop(block.id or next(iter(waiting), ""), None)
                if call_id is None:
                    self.stray += 1
                else:
                    self.results[call_id] = block


def answer(blocks: Sequence[Block], id_prefix: str, warnings: Warnings) -> Iterator[TimedMessage]:
    """The messages; ``id_prefix`` makes the ids unique of calls without an id."""
    pairs = _Pairs(blocks, id_prefix)
    if pairs.stray:
        warnings.add(RESULTS_WITHOUT_CALL)
    texts: list[TextBlock] = []
    calls: list[tuple[str, ToolCall]] = []
    for place, block in enumerate(blocks):
        if calls and not isinstance(block, ToolCall):
            yield from _call_messages(texts, calls, pairs)
            texts, calls = [], []
        if isinstance(block, TextBlock):
            texts.append(block)
        elif isinstance(block, ToolCall) and pairs.ids[place] in pairs.results:
            calls.append((pairs.ids[place], block))
        elif isinstance(block, ToolCall):
            warnings.add(CALLS_WITHOUT_RESULT)
            texts.append(TextBlock(f"[call of {block.name}: {block.arguments}]", block.at))
    yield from _call_messages(texts, calls, pairs)


def _call_messages(
    texts: Sequence[TextBlock], calls: Sequence[tuple[str, ToolCall]], pairs: _Pairs
) -> Iterator[TimedMessage]:
    """One message of the assistant, and the results of its calls."""
    text = "\n".join(words.text for words in texts if words.text)
    message: Fields = {"role": "assistant", "content": text or None}
    times = [*(words.at for words in texts), *(call.at for _, call in calls)]
    if calls:
        message["tool_calls"] = [_tool_call_object(id, call) for id, call in calls]
    if text or calls:
        yield TimedMessage(message, times[0])
    for id, _ in calls:
        result = pairs.results[id]
        yield TimedMessage({"role": "tool", "tool_call_id": id, "content": result.text}, result.at)


def _tool_call_object(id: str, call: ToolCall) -> Fields:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": id, "type": "function", "function": function}


def blocks_of(item: Fields, at: float | None, warnings: Warnings) -> Iterator[Block]:
    """The blocks of an item of OpenAI's Responses API that is not a user message."""
    kind, call_id = text_in(item, "type"), text_in(item, "call_id")
    name = text_in(item, "name") or kind.removesuffix("_call")
    if kind in ("function_call", "custom_tool_call"):
        yield ToolCall(
            name, as_arguments(item.get("arguments", item.get("input", ""))), call_id, at
        )
    elif kind == "local_shell_call":
        arguments = as_arguments(fields_in(item, "action"))
        yield ToolCall(name, arguments, call_id or text_in(item, "id"), at)
    elif kind.endswith("_call_output"):
        output = item.get("output")
        result = output.get("content") if isinstance(output, dict) else output
        yield ToolResult(result_text(result), call_id, at)
    elif kind == "message":
        yield TextBlock(result_text(item.get("content")), at)
    elif kind == "reasoning":
        warnings.add(THOUGHTS_SKIPPED)
    elif kind.endswith("_call"):
        query = text_in(fields_in(item, "action"), "query")
        yield TextBlock(f"[{name.replace('_', ' ')}{': ' if query else ''}{query}]", at)
