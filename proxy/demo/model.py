"""A pretended language model, which knows what it was sent and nothing else.  Pure.

It answers from the messages of the request alone, like a real one: whether it can tell somebody's
name depends on whether the name stands in there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from proxy.chat.blocks import without_blocks
from proxy.chat.message import text_of
from proxy.demo.apis import Json

_MY_NAME = re.compile(r"my name is (\w+)", re.IGNORECASE)
_WEATHER = re.compile(r"Oslo has [\w, -]*C\b")
WRITE = "Write the new summary"
"""What it is asked for in the background; see the setting memory.summary.prompt."""
UNKNOWN = "I do not know. You have not told me."
MARK = "[demo]"
"""What an answer to anybody begins with: nobody shall take it for a model's."""
_WORD = re.compile(
    r"\b(?!(?:and|are|can|did|does|for|has|have|how|the|was|were|what|when|where|which|who|why|will"
    r"|you|your)\b)\w{3,}"
)
"""Of a question what may stand in its answer."""
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")

_CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'},
}


def answer(messages: Sequence[Json], tools: Sequence[Json] = ()) -> Json:
    """The assistant message that follows these messages."""
    last = messages[-1]
    text = str(last.get("content") or "")
    if writes(messages):
        return _said(_summary(text))
    if last["role"] == "tool":
        return _said(f"{text}, so take a warm coat.")
    if tools and "weather" in text.lower():
        return {"role": "assistant", "content": None, "tool_calls": [_CALL]}
    name = _name(messages)
    if text.lower().endswith("my name?"):
        return _said(f"Your name is {name}." if name else UNKNOWN)
    return _said(f"Nice to meet you, {name}!" if name else "Hello!")


def answer_anybody(messages: Sequence[Json], tools: Sequence[Json] = ()) -> Json:
    """The assistant message for an application that we know nothing of.

    It says what it is and how many messages it was sent; to a question, what of them has most of
    its words.
    """
    if writes(messages):
        return answer(messages)
    *before, last = messages
    asked = _text(last)
    if asked.endswith("?"):
        said = _found(asked, before, _read(last).removesuffix(asked))
    else:
        said = answer([{"content": asked, "role": "user"}])["content"]
    return _said(f"{MARK} {said} I was sent {_counted(len(messages))}.")


def _found(question: str, before: Sequence[Json], block: str) -> str:
    """What of what it was shown answers the question; ``block`` stood in front of it."""
    shown = [*before, {"role": "system", "content": block}]
    name = answer([*shown, {"role": "user", "content": question}])["content"]
    if name.startswith("Your name"):
        return str(name)
    nearest = _nearest(question, [sentence for message in shown for sentence in _told(message)])
    return f'You said: "{nearest}"' if nearest else UNKNOWN


def _told(message: Json) -> list[str]:
    """What people say in it, and no question: in a block of memory that follows their role."""
    if message.get("role") == "assistant":
        return []
    sentences = _SENTENCE.split(_read(message))
    own = (sentence.removeprefix("user: ").strip() for sentence in sentences)
    return [text for text in own if text and text[-1] != "?" and MARK not in text]


def _nearest(question: str, known: Sequence[str]) -> str | None:
    """The sentence with most words of the question, of several the last; None without any."""
    wanted = _words(question)
    shared = {len(wanted & _words(text)): text for text in known}
    most = max(shared, default=0)
    return shared[most] if most else None


def _words(text: str) -> set[str]:
    return {*_WORD.findall(text.lower())}


def _read(message: Json) -> str:
    """Its text with the blocks of memory."""
    return text_of(json.dumps(message).encode())


def _text(message: Json) -> str:
    """What the person wrote."""
    return text_of(without_blocks(json.dumps(message).encode())).strip()


def _counted(messages: int) -> str:
    return f"{messages} message{'' if messages == 1 else 's'}"


def writes(messages: Sequence[Json]) -> bool:
    """Is it asked for a summary, in the background?"""
    return WRITE in str(messages[-1].get("content"))


def _summary(text: str) -> str:
    """What it makes of the lines of a conversation that it is to summarise."""
    name, weather = _name([{"content": text}]), _WEATHER.search(text)
    told = [f"The human said: my name is {name}."] if name else []
    return " ".join([*told, *([f"They asked for the weather: {weather[0]}."] if weather else [])])


def said(stream: str) -> Json:
    """The message that a stream of such events amounts to, as an application puts it together."""
    message: Json = {"role": "assistant", "content": ""}
    for line in stream.splitlines():
        if line.startswith("data: {"):
            (choice,) = json.loads(line.removeprefix("data: "))["choices"]
            message["content"] += choice["delta"].get("content") or ""
            if calls := choice["delta"].get("tool_calls"):
                message["tool_calls"] = calls
    return message


def _name(messages: Sequence[Json]) -> str | None:
    for message in reversed(messages):
        found = _MY_NAME.search(str(message.get("content") or ""))
        if found:
            return found[1]
    return None


def _said(text: str) -> Json:
    return {"role": "assistant", "content": text}
