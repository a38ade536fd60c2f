"""Items as a chat message, and a chat message as items.  Pure.

There and back is the same wherever chat completions can say it.  Where they cannot, a message keeps
its items beside it, and what there is of it for chat completions is a substitute: other calls are
calls of a function of their name, and an answer that is nothing but what the upstream did, a search
say, is its name in brackets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from proxy.chat import jsontext
from proxy.chat.canonical import legacy_id
from proxy.chat.media.parts import placeholder, shrunk
from proxy.formats.responses.items import (
    CUSTOM,
    FUNCTION,
    MESSAGE,
    REASONING,
    REFERENCE,
    TOLD,
    ResponseItem,
    output_of,
)
from proxy.formats.responses.parts import chat_content, is_text, item_content, refusals_of, texts_of

Value = dict[str, object]

_COMPACTED = ("compaction", "compaction_summary")
"""What stands for all that was said before it."""

_UNSAID = (
    *(REASONING, REFERENCE, *_COMPACTED, "compaction_trigger"),
    *("additional_tools", "configuration_update", "mcp_list_tools", "program", "program_output"),
)
"""What nobody said, so that nothing stands for it in a chat; but see ``_compacted``."""

_FRAME = ("type", "id", "call_id", "status", "created_by", "approval_request_id")
"""What of a call or an output is not what it says."""

ENCRYPTED = "encrypted_content"
"""Where a thought is that the upstream does not keep."""

NAMED = (MESSAGE, *TOLD, "shell_call", "apply_patch_call")
"""Items that need no id, and that with one are refused without the thought before them."""

_CHAT_CALLS = {FUNCTION: ("function", "arguments"), CUSTOM: ("custom", "input")}
"""What chat completions call these calls, and the field with what a call is given."""

_RESULT = "result"
"""Where the upstream's own tools put what they made: base64 of an image, say."""


def said_of(group: Sequence[ResponseItem]) -> Value:
    """The chat message that a group of items is (see ``grouped``)."""
    first = group[0]
    if first.answers is not None and len(group) == 1:
        value = value_of(first)
        return {"role": "tool", "tool_call_id": first.answers, "content": _output(value)}
    if first.said_by_client:
        return {"role": first.role, "content": chat_content(value_of(first).get("content"))}
    return _said_by_model(group)


def items_of(message: Mapping[str, object], kinds: Mapping[str, str]) -> list[bytes]:
    """The items of a chat message; ``kinds`` are those of calls by their ids."""
    return [jsontext.encode(value) for value in _values(message, kinds)]


def is_told_whole(group: Sequence[ResponseItem], said: Mapping[str, object]) -> bool:
    """Does the chat message say all that the items do?  Ids of what clients said do not count."""
    first = group[0]
    model = first.answers is None and not first.said_by_client
    if model and any(item.id for item in group):  # as in every answer of an upstream
        return False
    kinds = {item.call: item.kind for item in group if item.call is not None}
    if first.answers is not None:  # its call tells what it is
        kinds = {first.answers: first.kind.removesuffix("_output")}
    back = list(_values(said, kinds))
    return list(map(_plain, back)) == [
        _plain(value if model else {k: v for k, v in value.items() if k != "id"})
        for value in map(value_of, group)
    ]


def sendable(
    group: Sequence[ResponseItem], limit: int, *, stored: bool = True
) -> list[ResponseItem]:
    """What of a group can be kept and sent again: all but media of more than ``limit`` characters.

    A thought goes with what follows from it: without that it is refused.  So is one that is
    neither encrypted nor told in full where its answer is not ``stored``: then nobody has it.
    """
    kept: list[ResponseItem] = []
    follows = False
    for item in reversed(group):
        if item.kind == REASONING:
            follows = follows and (stored or _holds(value_of(item)))
        else:
            follows = _light(item, limit)
        if follows:
            kept.append(item)
    return kept[::-1]


def parts_sent(group: Sequence[ResponseItem], sent: Sequence[ResponseItem]) -> list[bytes]:
    """The items of a group that are ``sent`` (JSON).  With an id an item is refused without the
    thought before it: where that is not sent, the item has none."""
    if len(sent) == len(group):
        return [item.raw for item in sent]
    return [*_alone(group, sent)]


def _alone(group: Sequence[ResponseItem], sent: Sequence[ResponseItem]) -> Iterator[bytes]:
    left, lost = iter(sent), False
    awaited = next(left, None)
    for item in group:
        if item is not awaited:
            lost = lost or item.kind == REASONING
            continue
        awaited = next(left, None)
        lost = lost and item.kind != REASONING
        yield without_thought(item) if lost else item.raw


def without_thought(item: ResponseItem) -> bytes:
    """An item (JSON) as it may stand without the thought before it."""
    if item.kind not in NAMED:
        return item.raw
    try:
        known = jsontext.fields(item.raw)
    except jsontext.UNREADABLE:  # an upstream's, that is not UTF-8: it goes as it came
        return item.raw
    return jsontext.join_fields({key: raw for key, raw in known.items() if key != "id"})


def _holds(thought: Mapping[str, object]) -> bool:
    """Is a thought in its item?  Of others that is a name, with a summary at most."""
    return bool(thought.get(ENCRYPTED) or thought.get("content"))


def _light(item: ResponseItem, limit: int) -> bool:
    if len(item.raw) <= limit:
        return True
    value = value_of(item)
    result = value.get(_RESULT)
    if isinstance(result, str) and len(result) > limit:
        return False
    try:
        return shrunk(value, limit) == value
    except RecursionError:
        return True


def value_of(item: ResponseItem) -> Value:
    """The item's fields; none where they cannot be read."""
    try:
        value = jsontext.shallow(item.raw)
    except jsontext.UNREADABLE:  # nested too deeply: it goes as it came
        return {"type": item.kind}
    return value if isinstance(value, dict) else {}


def _said_by_model(group: Sequence[ResponseItem]) -> Value:
    values = [(item, value_of(item)) for item in group]
    contents = [value.get("content") for item, value in values if item.kind == MESSAGE]
    text = "\n".join(text for content in contents for text in texts_of(content))
    refusal = "\n".join(text for content in contents for text in refusals_of(content))
    answered = {item.answers for item in group}
    calls = [_call(i, v) for i, v in values if i.call is not None and i.call not in answered]
    said: Value = {"role": "assistant", "content": text or None}
    if refusal:
        said["refusal"] = refusal
    if calls:
        said["tool_calls"] = calls
    if not (text or refusal or calls):
        said["content"] = _done(group) or _compacted(values)
    return said


def _done(group: Sequence[ResponseItem]) -> str:
    """What stands for an answer that says nothing: "" for thoughts alone."""
    return " ".join(f"[{item.kind or 'item'}]" for item in done_in(group))


def done_in(group: Sequence[ResponseItem]) -> list[ResponseItem]:
    """What a model has done in an answer that says nothing."""
    return [item for item in group if item.kind not in (MESSAGE, *_UNSAID)]


def _compacted(values: Iterable[tuple[ResponseItem, Value]]) -> str:
    """What stands for a compaction alone; it says which, as no other equals it."""
    found = ((i.kind, _string(v, ENCRYPTED)) for i, v in values if i.kind in _COMPACTED)
    return " ".join(placeholder(k, jsontext.well_formed(said).encode()) for k, said in found)


def _call(item: ResponseItem, value: Mapping[str, object]) -> Value:
    if item.kind in _CHAT_CALLS:
        kind, given = _CHAT_CALLS[item.kind]
        said: Value = {key: _string(value, key) for key in ("name", given)}
        return {"id": item.call, "type": kind, kind: said}
    said = {key: each for key, each in value.items() if key not in _FRAME}
    function = {"name": item.kind, "arguments": jsontext.encode(said).decode()}
    return {"id": item.call, "type": "function", "function": function}


def _output(value: Mapping[str, object]) -> object:
    """What an output says: text, parts of text, or JSON where it is more."""
    output = value.get("output")
    if isinstance(output, str):
        return output
    if isinstance(output, list) and output and all(map(is_text, output)):
        return chat_content(output)
    said = {key: each for key, each in value.items() if key not in _FRAME}
    rest = output if set(said) == {"output"} else said
    return jsontext.encode(rest).decode()


def _values(message: Mapping[str, object], kinds: Mapping[str, str]) -> Iterator[Value]:
    role = message.get("role")
    if role in ("tool", "function"):
        yield _output_item(message, kinds)
    elif role == "assistant":
        yield from _model_items(message)
    else:
        yield {"role": role or "user", "content": item_content(message.get("content"))}


def _output_item(message: Mapping[str, object], kinds: Mapping[str, str]) -> Value:
    id = message.get("tool_call_id")
    if not isinstance(id, str):
        id = legacy_id(message.get("name"))
    kind = CUSTOM if kinds.get(id) == CUSTOM else FUNCTION
    output = item_content(message.get("content"))
    return {"type": output_of(kind), "call_id": id, "output": output}


def _model_items(message: Mapping[str, object]) -> Iterator[Value]:
    text = "\n".join(texts_of(message.get("content")))
    refusal = message.get("refusal")
    refusals = [*refusals_of(message.get("content")), *([refusal] if refusal else [])]
    if text:
        yield {"role": "assistant", "content": text}
    if refusals:
        parts = [{"type": "refusal", "refusal": each} for each in refusals]
        yield {"type": MESSAGE, "role": "assistant", "content": parts}
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else []:
        if isinstance(call, dict):
            yield _call_item(call)
    legacy = message.get("function_call")
    if isinstance(legacy, dict):
        yield _call_item({"id": legacy_id(legacy.get("name")), "function": legacy})


def _call_item(call: Mapping[str, object]) -> Value:
    item = CUSTOM if isinstance(call.get("custom"), dict) else FUNCTION
    kind, given = _CHAT_CALLS[item]
    called = call.get(kind)
    known = called if isinstance(called, dict) else {}
    said = {key: _string(known, key) for key in ("name", given)}
    return {"type": item, "call_id": call.get("id") or "", **said}


def _plain(value: Mapping[str, object]) -> Value:
    """An item without what says nothing: how it is spelled, and that it is done."""
    said = {
        key: each
        for key, each in value.items()
        if each not in (None, []) and not (key == "status" and each == "completed")
    }
    if said.get("type") == MESSAGE:
        del said["type"]
    for key in ("content", "output"):
        parts = said.get(key)
        if isinstance(parts, str) and (key == "output" or said.get("role") != "assistant"):
            parts = [{"type": "input_text", "text": parts}]
        if isinstance(parts, list):
            said[key] = [_plain_part(part, said.get("role")) for part in parts]
    parts = said.get("content")
    if said.get("role") == "assistant" and isinstance(parts, list) and len(parts) == 1:
        said["content"] = parts[0]
    return said


def _plain_part(part: object, role: object) -> object:
    if not isinstance(part, dict):
        return part
    said = {key: each for key, each in part.items() if each not in (None, [])}
    if said.get("detail") == "auto":
        del said["detail"]
    if role == "assistant" and said.keys() == {"type", "text"}:
        return said["text"]
    return said


def _string(value: Mapping[str, object], key: str) -> str:
    said = value.get(key)
    return said if isinstance(said, str) else ""
