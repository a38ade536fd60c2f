"""Bodies of requests, read into the objects that the document describes.

Raises ProxyError 400 with ``param`` naming the field that is wrong.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import NoneType
from typing import Any, TypeVar, cast, get_args

import msgspec
from msgspec.structs import FieldInfo
from msgspec.structs import fields as fields_in
from starlette.requests import ClientDisconnect, Request

from proxy.chat.extent import MAX_VALUES, has_over
from proxy.chat.jsontext import UNREADABLE, fields, shallow
from proxy.chat.jsontext import value as values
from proxy.errors import ProxyError
from proxy.memory_api.fields import KEPT, LARGEST, REFUSAL, invalid
from proxy.settings import ServerSettings
from proxy.wire.body import ClientGone
from proxy.wire.body import read as received
from proxy.wire.headers import content_length
from proxy.wire.places import Holding

LARGE = 64 * 1024
"""Bytes of a body that is read on a thread."""

_AT = re.compile(r"- at `\$(\[\d+\])`")

Kind = type[msgspec.Struct]
S = TypeVar("S", bound=msgspec.Struct)


async def body_of(request: Request, server: ServerSettings, held: Holding) -> bytes:
    """The body.  Raises ProxyError 413, 408, 503, and 400 for too many values; and
    ClientDisconnect."""
    declared, most = content_length(request.headers.raw), server.max_body_bytes
    try:
        body = await received(request.receive, most, server.body_timeout, declared, held.body)
    except ClientGone:
        raise ClientDisconnect from None
    if len(body) > MAX_VALUES and await asyncio.to_thread(has_over, MAX_VALUES, body):
        raise invalid(f"The body has over {MAX_VALUES} values.")
    return body


async def read(kind: type[S], body: bytes) -> S:
    """The object that a body is."""
    return cast(S, await read_one((kind,), body))


async def read_one(kinds: Sequence[Kind], body: bytes) -> msgspec.Struct:
    """The object that a body is: one of these kinds."""
    if len(body) > LARGE:
        return await asyncio.to_thread(_read, kinds, body)
    return _read(kinds, body)


def fields_of(body: bytes) -> dict[str, bytes]:
    """The fields of a body, each value's JSON untouched."""
    try:
        return fields(body)
    except UNREADABLE:
        raise invalid("The body must be a JSON object.") from None


def _read(kinds: Sequence[Kind], body: bytes) -> msgspec.Struct:
    found = fields_of(body)
    return into(_meant(kinds, found), found)


def _meant(kinds: Sequence[Kind], found: Mapping[str, bytes]) -> Kind:
    """Of several kinds, each has one field of its own, and nothing else."""
    if len(kinds) == 1:
        return kinds[0]
    names = [fields_in(kind)[0].encode_name for kind in kinds]
    others = [name for name in found if name not in names]
    if others or len(found) != 1:
        raise invalid(f"Give either {' or '.join(names)}.", (others or names)[0])
    return kinds[names.index(next(iter(found)))]


def into(kind: Kind, found: Mapping[str, bytes], above: str = "") -> msgspec.Struct:
    """The object with these fields; ``above`` stands before their names in errors."""
    known = {field.encode_name: field for field in fields_in(kind)}
    if kind.__struct_config__.forbid_unknown_fields:
        _only(kind, found, known, above)
    values = {
        field.name: _value(field, found.get(name), above + name)
        for name, field in known.items()
        if name in found or field.required
    }
    return kind(**values)


def _only(
    kind: Kind, found: Mapping[str, bytes], known: Mapping[str, FieldInfo], above: str
) -> None:
    names = ", ".join(above + each for each in known)
    sentence = getattr(kind, "ONLY", "")
    if not found and sentence:
        raise invalid(f"{sentence}: {names}.", names)
    for name in found:
        if name not in known:
            sentence = sentence or f"{above}{name} is none of"
            raise invalid(f"{sentence}: {names}.", above + name)


def _value(field: FieldInfo, raw: bytes | None, name: str) -> object:
    kind = field.type
    if raw is None:
        raise _refusal(kind, name, "it is missing")
    if len(raw) > _told(kind, LARGEST, len(raw)):
        raise _refusal(kind, name, "it is too large")
    if _told(kind, KEPT, False):
        return msgspec.Raw(raw)
    if msgspec.Raw in _parts(kind):
        return _as_it_is(kind, raw, name)
    inner = next((part for part in _parts(kind) if _is_struct(part)), None)
    if inner is not None:
        return _within(inner, kind, raw, name)
    try:
        value = msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        value = _whole(kind, raw, name, error)
    except UNREADABLE as error:
        raise _refusal(kind, name, str(error)) from None
    if _overruns(kind, value):
        raise _refusal(kind, name, "it ends in a line break")
    return value


def _is_struct(part: Any) -> bool:
    return isinstance(part, type) and issubclass(part, msgspec.Struct)


def _within(inner: Kind, kind: Any, raw: bytes, name: str) -> msgspec.Struct | None:
    """An object in an object."""
    if raw.strip() == b"null" and NoneType in _parts(kind):
        return None
    try:
        found = fields(raw)
    except UNREADABLE as error:
        raise _refusal(kind, name, str(error)) from None
    return into(inner, found, f"{name}.")


def _as_it_is(kind: Any, raw: bytes, name: str) -> msgspec.Raw | None:
    """JSON that is kept byte for byte: an object, or null where there may be none."""
    try:
        value = shallow(raw)
    except UNREADABLE as error:
        raise _refusal(kind, name, str(error)) from None
    if value is None and NoneType in _parts(kind):
        return None
    if not isinstance(value, dict):
        raise _refusal(kind, name, "it is no object")
    return msgspec.Raw(raw)


def _overruns(kind: Any, value: object) -> bool:
    """Python's ``$`` lets a line break pass behind it, that of JSON Schema does not."""
    if isinstance(value, list):
        return any(_overruns(kind, each) for each in value)
    patterns = (part.pattern for part in _parts(kind, deep=True) if isinstance(part, msgspec.Meta))
    ends = any(pattern is not None and pattern.endswith("$") for pattern in patterns)
    return ends and isinstance(value, str) and value.endswith("\n")


def _whole(kind: Any, raw: bytes, name: str, error: Exception) -> object:
    """3.0 is 3, as in JSON Schema; to msgspec it is not."""
    try:
        return msgspec.convert(values(raw), kind)
    except UNREADABLE:
        raise _refusal(kind, name, str(error)) from None


def _refusal(kind: Any, name: str, why: str) -> ProxyError:
    """In the words of the field's own declaration, if it has any."""
    at = _AT.search(why)
    items = [part for part in _parts(kind, deep=True) if part not in _parts(kind)] if at else []
    of_item = _told_of(items, REFUSAL, None)
    if at and of_item:
        return of_item(name + at[1])  # type: ignore[no-any-return]
    told: Callable[[str], ProxyError] | None = _told(kind, REFUSAL, None)
    return told(name) if told else invalid(f"{name} is not what it should be: {why}.", name)


def _told(kind: Any, what: str, default: Any) -> Any:
    """What the declaration of a field tells of us, beside what it tells of the document."""
    return _told_of(_parts(kind), what, default)


def _told_of(parts: Iterable[Any], what: str, default: Any) -> Any:
    metas = (part for part in parts if isinstance(part, msgspec.Meta))
    return next((meta.extra[what] for meta in metas if meta.extra and what in meta.extra), default)


def _parts(kind: Any, *, deep: bool = False) -> list[Any]:
    """A type, and what it is made of; ``deep``: also what is in lists."""
    found = [kind, *getattr(kind, "__metadata__", ())]
    if deep or getattr(kind, "__origin__", None) is not list:
        for part in get_args(kind):
            found += _parts(part, deep=deep)
    return found
