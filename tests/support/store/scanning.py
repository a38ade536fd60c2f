"""Looking for a text in everything that is kept: files, servers, objects.

A text may be kept as it is, as JSON, or in base64, where it can begin at any of three places.
"""

from __future__ import annotations

import base64
from asyncio import AbstractEventLoop
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import msgspec

from proxy.stores.sqlite.store import SQLiteMemory
from tests.support.processes.redis import Server

_NOT_DATA = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType, AbstractEventLoop)
"""An event loop, to which a lock leads that was waited for, leads to all that runs in it."""


@cache
def forms(marker: str) -> list[bytes]:
    """What to look for.  In base64 its last two bytes are left out."""
    text = marker.encode()
    found = [text]
    for before in range(3):
        coded = base64.b64encode(bytes(before) + text)
        # The characters at both ends depend on what is beside it.
        found.append(coded[(0, 2, 3)[before] : (before + len(text)) // 3 * 4])
    return found


def held(pieces: Sequence[bytes], markers: Iterable[str]) -> list[str]:
    """Which of the markers are in one of the pieces."""
    return [
        marker
        for marker in markers
        if any(form in piece for piece in pieces for form in forms(marker))
    ]


def found_in_files(folder: Path, *markers: str) -> list[str]:
    """The files below a folder whose bytes hold one of these."""
    return [
        f"{path.name}: {marker}"
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        for marker in held([path.read_bytes()], markers)
    ]


def found_in_memory(store: object, *markers: str) -> list[str]:
    """Which of these are in a database in memory, in pages that are free too."""
    assert isinstance(store, SQLiteMemory)
    kept = store._memory._anchor
    return [f"memory: {marker}" for marker in held([kept.serialize()] if kept else [], markers)]


def found_in_redis(server: Server, *markers: str) -> list[str]:
    """The keys of a server whose names or values, of whatever type, hold one of these."""
    with server.client() as client:
        return [
            f"{name!r}: {marker}"
            for name in client.scan_iter(count=1000)
            for marker in held([name, *_values(client, name)], markers)
        ]


def _values(client: Any, name: bytes) -> Iterator[bytes]:
    kind = client.type(name)
    if kind == b"string":
        yield client.get(name) or b""
    elif kind == b"hash":
        for field, value in client.hgetall(name).items():
            yield from (field, value)
    elif kind == b"list":
        yield from client.lrange(name, 0, -1)
    elif kind == b"set":
        yield from client.smembers(name)
    elif kind == b"zset":
        yield from client.zrange(name, 0, -1)
    elif kind == b"stream":
        for _, fields in client.xrange(name):
            for field, value in fields.items():
                yield from (field, value)
    else:
        assert kind == b"none", f"{name!r} is a {kind!r}"


def found_in_object(root: object, *markers: str) -> list[str]:
    """Where in all that an object refers to one of these is."""
    seen: set[int] = set()
    waiting: list[tuple[str, object]] = [("", root)]
    found: list[str] = []
    while waiting:
        path, value = waiting.pop()
        if id(value) in seen or isinstance(value, _NOT_DATA):
            continue
        seen.add(id(value))
        if isinstance(value, str | bytes | bytearray | memoryview | msgspec.Raw):
            data = value.encode("utf-8", "replace") if isinstance(value, str) else bytes(value)
            found += [f"{path}: {marker}" for marker in held([data], markers)]
        else:
            waiting += [(f"{path}{name}", part) for name, part in _parts(value)]
    return found


def _parts(value: Any) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping):
        for number, (key, item) in enumerate(value.items()):
            yield f".key{number}", key
            yield f"[{number}]", item
    elif isinstance(value, tuple | list | set | frozenset):
        yield from ((f"[{number}]", item) for number, item in enumerate(value))
    else:
        yield from ((f".{name}", item) for name, item in _attributes(value))


def _attributes(value: object) -> Iterator[tuple[str, object]]:
    yield from getattr(value, "__dict__", {}).items()
    names = list(value.__struct_fields__) if isinstance(value, msgspec.Struct) else []
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        names += (slots,) if isinstance(slots, str) else slots
    yield from ((name, getattr(value, name)) for name in names if hasattr(value, name))
