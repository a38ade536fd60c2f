"""Converts items to a chat message, and a chat message to items.  Pure.

If chat completions can express the items, the conversion back gives the same items.  If not, the
message keeps them as its native form, and its chat form is a substitute: other calls become calls
of a function with the name of their type, and an answer that has only actions of the upstream's own
tools, such as a search, becomes their names in brackets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from proxy.chat import jsontext
from proxy.chat.canonical import legacy_id
from proxy.chat.media.parts import placeholder, with_small_media
from proxy.formats.responses.items import (
    CHAT_CALLS,
    CUSTOM,
    FUNCTION,
    MESSAGE,
    REASONING,
    REFERENCE,
    ResponseItem,
    output_kind,
)
from proxy.formats.responses.parts import chat_content, is_text, item_content, refusals_of, texts_of

Value = dict[str, object]

_COMPACTIONS = ("compaction", "compaction_summary")
"""Items that replace the conversation before them."""

_SILENT_KINDS = (
    *(REASONING, REFERENCE, *_COMPACTIONS, "compaction_trigger"),
    *("additional_tools", "configuration_update", "mcp_list_tools", "program", "program_output"),
)
"""Items that chat completions cannot express; but see ``_compaction_text``."""

_ENVELOPE = ("type", "id", "call_id", "status", "created_by", "approval_request_id")
"""Fields of a call or an output that are not its content."""

ENCRYPTED = "encrypted_content"
"""The field with the content of reasoning that the upstream does not store."""

ID_OPTIONAL = (MESSAGE, *CHAT_CALLS, "shell_call", "apply_patch_call")
"""Items that need no id.  With one, upstreams refuse them without the reasoning before them."""

_CHAT_CALL_FIELDS = {FUNCTION: ("function", "arguments"), CUSTOM: ("custom", "input")}
"""The type of these calls in chat completions, and the field with their input."""

_RESULT = "result"
"""The field with the result of an upstream's own tool, such as an image in base64."""


def chat_from_items(group: Sequence[ResponseItem]) -> Value:
    """The chat message for the items of one message (see ``group_by_message``)."""
    first = group[0]
    if first.answers is not None and len(group) == 1:
        value = value_of(first)
        return {"role": "tool", "tool_call_id": first.answers, "content": _output_content(value)}
    if first.is_client_message:
        return {"role": first.role, "content": chat_content(value_of(first).get("content"))}
    return _assistant_message(group)


def items_from_chat(message: Mapping[str, object], kinds: Mapping[str, str]) -> list[bytes]:
    """The items (JSON) for a chat message; ``kinds`` are the types of calls by their ids."""
    return [jsontext.encode(value) for value in _item_values(message, kinds)]


def is_lossless(group: Sequence[ResponseItem], message: Mapping[str, object]) -> bool:
    """Whether the items can be restored from their chat message, apart from clients' own ids."""
    first = group[0]
    is_answer = first.answers is None and not first.is_client_message
    if is_answer and any(item.id for item in group):  # as in every upstream's answer
        return False
    kinds = {item.call: item.kind for item in group if item.call is not None}
    if first.answers is not None:  # the output's type follows from its call's
        kinds = {first.answers: first.kind.removesuffix("_output")}
    restored = list(_item_values(message, kinds))
    return list(map(_comparable, restored)) == [
        _comparable(value if is_answer else {k: v for k, v in value.items() if k != "id"})
        for value in map(value_of, group)
    ]


def sendable_items(
    group: Sequence[ResponseItem], limit: int, *, stored: bool = True
) -> list[ResponseItem]:
    """The items that can be recorded and sent again: without media over ``limit`` characters.

    Reasoning is left out if the item that follows it is, since upstreams refuse it alone.  If the
    answer is not ``stored`` upstream, reasoning without its content is left out too.
    """
    kept: list[ResponseItem] = []
    next_is_kept = False
    for item in reversed(group):
        if item.kind == REASONING:
            next_is_kept = next_is_kept and (stored or _has_content(value_of(item)))
        else:
            next_is_kept = _has_small_media(item, limit)
        if next_is_kept:
            kept.append(item)
    return kept[::-1]


def sent_parts(group: Sequence[ResponseItem], sent: Sequence[ResponseItem]) -> list[bytes]:
    """The JSON of those items of a group that are ``sent``.

    Items whose preceding reasoning is left out lose their id, since upstreams refuse them with it.
    """
    if len(sent) == len(group):
        return [item.raw for item in sent]
    return [*_without_orphaned_ids(group, sent)]


def _without_orphaned_ids(
    group: Sequence[ResponseItem], sent: Sequence[ResponseItem]
) -> Iterator[bytes]:
    remaining, lost_reasoning = iter(sent), False
    next_sent = next(remaining, None)
    for item in group:
        if item is not next_sent:
            lost_reasoning = lost_reasoning or item.kind == REASONING
            continue
        next_sent = next(remaining, None)
        lost_reasoning = lost_reasoning and item.kind != REASONING
        yield without_id(item) if lost_reasoning else item.raw


def without_id(item: ResponseItem) -> bytes:
    """The item (JSON) without its id, if it needs none, so that it can be sent alone."""
    if item.kind not in ID_OPTIONAL:
        return item.raw
    try:
        fields = jsontext.fields(item.raw)
    except jsontext.UNREADABLE:  # an upstream's, with invalid UTF-8: sent as received
        return item.raw
    return jsontext.join_fields({key: raw for key, raw in fields.items() if key != "id"})


def _has_content(reasoning: Mapping[str, object]) -> bool:
    """Whether a reasoning item has its content, encrypted or plain, and not only an id."""
    return bool(reasoning.get(ENCRYPTED) or reasoning.get("content"))


def _has_small_media(item: ResponseItem, limit: int) -> bool:
    if len(item.raw) <= limit:
        return True
    value = value_of(item)
    result = value.get(_RESULT)
    if isinstance(result, str) and len(result) > limit:
        return False
    try:
        return with_small_media(value, limit) == value
    except RecursionError:
        return True


def value_of(item: ResponseItem) -> Value:
    """The item's fields; only its type if they are nested too deeply to be read."""
    try:
        value = jsontext.decode_shallow(item.raw)
    except jsontext.UNREADABLE:  # nested too deeply: sent as received
        return {"type": item.kind}
    return value if isinstance(value, dict) else {}


def _assistant_message(group: Sequence[ResponseItem]) -> Value:
    values = [(item, value_of(item)) for item in group]
    contents = [value.get("content") for item, value in values if item.kind == MESSAGE]
    text = "\n".join(text for content in contents for text in texts_of(content))
    refusal = "\n".join(text for content in contents for text in refusals_of(content))
    answered = {item.answers for item in group}
    calls = [_call(i, v) for i, v in values if i.call is not None and i.call not in answered]
    message: Value = {"role": "assistant", "content": text or None}
    if refusal:
        message["refusal"] = refusal
    if calls:
        message["tool_calls"] = calls
    if not (text or refusal or calls):
        message["content"] = _actions_text(group) or _compaction_text(values)
    return message


def _actions_text(group: Sequence[ResponseItem]) -> str:
    """The text in place of an answer that has only actions; "" if it has none either."""
    return " ".join(f"[{item.kind or 'item'}]" for item in actions_in(group))


def actions_in(group: Sequence[ResponseItem]) -> list[ResponseItem]:
    """The items that are actions, such as calls and searches."""
    return [item for item in group if item.kind not in (MESSAGE, *_SILENT_KINDS)]


def _compaction_text(values: Iterable[tuple[ResponseItem, Value]]) -> str:
    """The text in place of a compaction, with its hash, so that it equals no other."""
    return " ".join(
        placeholder(item.kind, jsontext.text_in(value.get(ENCRYPTED)).encode())
        for item, value in values
        if item.kind in _COMPACTIONS
    )


def _call(item: ResponseItem, value: Mapping[str, object]) -> Value:
    if item.kind in _CHAT_CALL_FIELDS:
        kind, input_field = _CHAT_CALL_FIELDS[item.kind]
        call: Value = {key: _string(value, key) for key in ("name", input_field)}
        return {"id": item.call, "type": kind, kind: call}
    fields = {key: each for key, each in value.items() if key not in _ENVELOPE}
    function = {"name": item.kind, "arguments": jsontext.encode(fields).decode()}
    return {"id": item.call, "type": "function", "function": function}


def _output_content(value: Mapping[str, object]) -> object:
    """The chat content of a call's output: text, text parts, or JSON for anything else."""
    output = value.get("output")
    if isinstance(output, str):
        return output
    if isinstance(output, list) and output and all(map(is_text, output)):
        return chat_content(output)
    fields = {key: each for key, each in value.items() if key not in _ENVELOPE}
    rest = output if set(fields) == {"output"} else fields
    return jsontext.encode(rest).decode()


def _item_values(message: Mapping[str, object], kinds: Mapping[str, str]) -> Iterator[Value]:
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
    return {"type": output_kind(kind), "call_id": id, "output": output}


def _model_items(message: Mapping[str, object]) -> Iterator[Value]:
    text = "\n".join(texts_of(message.get("content")))
    refusal = message.get("refusal")
    refusals = [*refusals_of(message.get("content")), *([refusal] if refusal else [])]
    if text:
        yield {"role": "assistant", "content": text}
    if refusals:
        parts = [{"type": "refusal", "refusal": each} for each in refusals]
        yield {"type": MESSAGE, "role": "assistant", "content": parts}
    for call in jsontext.objects_in(message.get("tool_calls")):
        yield _call_item(call)
    legacy = message.get("function_call")
    if isinstance(legacy, dict):
        yield _call_item({"id": legacy_id(legacy.get("name")), "function": legacy})


def _call_item(call: Mapping[str, object]) -> Value:
    item_kind = CUSTOM if isinstance(call.get("custom"), dict) else FUNCTION
    kind, input_field = _CHAT_CALL_FIELDS[item_kind]
    function = call.get(kind)
    known = function if isinstance(function, dict) else {}
    fields = {key: _string(known, key) for key in ("name", input_field)}
    return {"type": item_kind, "call_id": call.get("id") or "", **fields}


def _comparable(value: Mapping[str, object]) -> Value:
    """The item in a form that is equal for equivalent items: without null fields, the status
    "completed" and the type "message", and with content as parts."""
    fields = {
        key: each
        for key, each in value.items()
        if each not in (None, []) and not (key == "status" and each == "completed")
    }
    if fields.get("type") == MESSAGE:
        del fields["type"]
    for key in ("content", "output"):
        parts = fields.get(key)
        if isinstance(parts, str) and (key == "output" or fields.get("role") != "assistant"):
            parts = [{"type": "input_text", "text": parts}]
        if isinstance(parts, list):
            fields[key] = [_comparable_part(part, fields.get("role")) for part in parts]
    parts = fields.get("content")
    if fields.get("role") == "assistant" and isinstance(parts, list) and len(parts) == 1:
        fields["content"] = parts[0]
    return fields


def _comparable_part(part: object, role: object) -> object:
    if not isinstance(part, dict):
        return part
    fields = {key: each for key, each in part.items() if each not in (None, [])}
    if fields.get("detail") == "auto":
        del fields["detail"]
    if role == "assistant" and fields.keys() == {"type", "text"}:
        return fields["text"]
    return fields


def _string(value: Mapping[str, object], key: str) -> str:
    text = value.get(key)
    return text if isinstance(text, str) else ""
