"""A file takes no more memory for being larger: held is one conversation at a time."""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import Iterator

import pytest

from proxy.portable import check
from proxy.portable.detection import Limits, open_source
from proxy.portable.names import Format
from proxy.portable.source import InvalidFile, Warnings

TALK = [{"role": "user", "content": f"message {n}"} for n in range(50)]
SAID = [{"type": "human", "data": {"content": f"message {n}"}} for n in range(50)]
NODES = {
    f"n{n}": {
        "parent": f"n{n - 1}",
        "message": {
            "author": {"role": "user"},
            "content": {"content_type": "text", "parts": [f"message {n}"]},
        },
    }
    for n in range(50)
}
SPOKEN = [{"uuid": f"m{n}", "sender": "human", "text": f"message {n}"} for n in range(50)]
SHOWN = {f"m{n}": {"parentId": f"m{n - 1}", "role": "user", "content": f"{n}"} for n in range(50)}
LISTS: dict[Format, object] = {
    "openai": TALK,
    "langchain": SAID,
    "chatgpt": {"mapping": NODES, "current_node": "n49"},
    "claude": {"uuid": "c", "chat_messages": SPOKEN},
    "open_webui": {"chat": {"history": {"messages": SHOWN, "currentId": "m49"}}},
    "librechat": {"conversationId": "c", "messages": SPOKEN},
}


def file_of(conversation: object, count: int) -> Iterator[bytes]:
    text = json.dumps(conversation).encode()
    yield b"["
    for n in range(count):
        yield (b"," if n else b"") + text
    yield b"]"


def peak(format: Format, count: int) -> int:
    """Bytes that reading so many conversations takes at its worst."""
    _, source = open_source(b"[", format, Limits(10**6, 10**6), Warnings())
    found = 0
    # What the tests before have left would put off that garbage of ours is collected.
    gc.collect()
    gc.freeze()
    tracemalloc.start()
    try:
        for data in file_of(LISTS[format], count):
            found += sum(1 for _ in source.feed(data))
        found += sum(1 for _ in source.finish())
        assert found == count
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        gc.unfreeze()


@pytest.mark.parametrize("format", LISTS)
def test_four_times_the_conversations_take_no_more_memory(format: Format) -> None:
    peak(format, 5)  # what is loaded once
    assert peak(format, 100) < 2 * peak(format, 25)


def test_a_conversation_without_end_is_refused_where_it_is_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(check, "MAX_MESSAGES", 100)
    _, source = open_source(b"[", "openai", Limits(10**6, 10**6), Warnings())
    with pytest.raises(InvalidFile, match="a conversation of over 100 messages"):
        for data in file_of(TALK[0], 101):
            list(source.feed(data))
