"""Bodies of requests, read into the objects that the document describes.

Raises ProxyError 400 with ``param`` naming the field that is wrong.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from types import NoneType
from typing import Any, TypeVar, cast, get_args

import msgspec
from msgspec.structs import FieldInfo
from msgspec.structs import fields as fields_in
from starlette.requests import ClientDisconnect, Request

from proxy.chat.json_size import MAX_VALUES, has_more_values
from proxy.chat.jsontext import UNREADABLE, decode_shallow, fields
from proxy.chat.jsontext import value as values
from proxy.errors import ProxyError
from proxy.memory_api.fields import KEPT, LARGEST, REFUSAL, invalid
from proxy.settings import ServerSettings
from proxy.wire.body import ClientGone
from proxy.wire.body import read as received
from proxy.wire.headers import content_length
from proxy.wire.limits import Reservation

LARGE = 64 * 1024
"""Bytes of a body that is read on a thread."""

_AT = re.compile(r"- at `\$(\[\d+\])`")

Kind = type[msgspec.Struct]
Refusal = Callable[[str], ProxyError]
S = TypeVar("S", bound=msgspec.Struct)


async def body_of(request: Request, server: ServerSettings, held: Reservation) -> bytes:
    """The body.  Raises ProxyError 413, 408, 503, and 400 for too many values; and
    ClientDisconnect."""
    declared, most = content_length(request.headers.raw), server.max_body_bytes
    try:
        body = await received(
            request.receive, most, server.body_timeout, declared, held.reserve_body
        )
    except ClientGone:
        raise ClientDisconnect from None
    if len(body) > MAX_VALUES and await asyncio.to_thread(has_more_values, MAX_VALUES, body):
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
    return decode_fields(_matching_kind(kinds, found), found)


def _matching_kind(kinds: Sequence[Kind], found: Mapping[str, bytes]) -> Kind:
    """Of several kinds, each has one field of its own, and nothing else."""
    if len(kinds) == 1:
        return kinds[0]
    names = [fields_in(kind)[0].encode_name for kind in kinds]
    others = [name for name in found if name not in names]
    if others or len(found) != 1:
        raise invalid(f"Give either {' or '.join(names)}.", (others or names)[0])
    return kinds[names.index(next(iter(found)))]


def decode_fields(kind: Kind, found: Mapping[str, bytes], above: str = "") -> msgspec.Struct:
    """The object with these fields; ``above`` stands before their names in errors."""
    known = _declared(kind)
    if kind.__struct_config__.forbid_unknown_fields:
        _check_known(kind, found, known, above)
    values = {
        declared.attribute: _value(declared, found.get(name), above + name)
        for name, declared in known.items()
        if name in found or declared.required
    }
    return kind(**values)


def _check_known(kind: Kind, found: Mapping[str, bytes], known: Iterable[str], above: str) -> None:
    names = ", ".join(above + each for each in known)
    sentence = getattr(kind, "ONLY", "")
    if not found and sentence:
        raise invalid(f"{sentence}: {names}.", names)
    for name in found:
        if name not in known:
            sentence = sentence or f"{above}{name} is none of"
            raise invalid(f"{sentence}: {names}.", above + name)


class Declared:
    """What the declaration of a field says of its value: read once for each type of object."""

    def __init__(self, field: FieldInfo) -> None:
        self.attribute, self.required = field.name, field.required
        self.kind = field.type
        parts, deep = _parts(field.type), _parts(field.type, deep=True)
        self.nullable = NoneType in parts
        self.is_json = msgspec.Raw in parts
        self.inner: Kind | None = next(filter(_is_struct, parts), None)
        self.kept: bool = _extra(parts, KEPT, False)
        self.largest: int | None = _extra(parts, LARGEST, None)
        self._refusal: Refusal | None = _extra(parts, REFUSAL, None)
        items = (part for part in deep if part not in parts)
        self._refusal_of_item: Refusal | None = _extra(items, REFUSAL, None)
        patterns = (part.pattern or "" for part in deep if isinstance(part, msgspec.Meta))
        self.has_end = any(pattern.endswith("$") for pattern in patterns)

    def refusal(self, name: str, why: str) -> ProxyError:
        """In the declaration's own words, if it has any."""
        item = _AT.search(why)
        if item and self._refusal_of_item:
            return self._refusal_of_item(name + item[1])
        if self._refusal:
            return self._refusal(name)
        return invalid(f"{name} is not what it should be: {why}.", name)


@cache
def _declared(kind: Kind) -> Mapping[str, Declared]:
    """The fields of an object, by their names in JSON."""
    return {field.encode_name: Declared(field) for field in fields_in(kind)}


def _value(declared: Declared, raw: bytes | None, name: str) -> object:
    if raw is None:
        raise declared.refusal(name, "it is missing")
    if declared.largest is not None and len(raw) > declared.largest:
        raise declared.refusal(name, "it is too large")
    if declared.kept:
        return msgspec.Raw(raw)
    if declared.nullable and raw.strip() == b"null":
        return None
    try:
        value = _decoded(declared, raw, name)
    except UNREADABLE as error:
        raise declared.refusal(name, str(error)) from None
    if declared.has_end and _ends_in_a_line_break(value):
        raise declared.refusal(name, "it ends in a line break")
    return value


def _decoded(declared: Declared, raw: bytes, name: str) -> object:
    """Raises UNREADABLE; ProxyError for what is wrong in an object in it."""
    if declared.is_json:
        if not isinstance(decode_shallow(raw), dict):
            raise ValueError("it is no object")
        return msgspec.Raw(raw)
    if declared.inner is not None:
        return decode_fields(declared.inner, fields(raw), f"{name}.")
    try:
        return msgspec.json.decode(raw, type=declared.kind)
    except msgspec.ValidationError:
        with suppress(*UNREADABLE):  # 3.0 is 3, as in JSON Schema; to msgspec it is not
            return msgspec.convert(values(raw), declared.kind)
        raise


def _ends_in_a_line_break(value: object) -> bool:
    """Python's ``$`` lets a line break pass behind it, that of JSON Schema does not."""
    if isinstance(value, list):
        return any(map(_ends_in_a_line_break, value))
    return isinstance(value, str) and value.endswith("\n")


def _is_struct(part: Any) -> bool:
    return isinstance(part, type) and issubclass(part, msgspec.Struct)


def _extra(parts: Iterable[Any], name: str, default: Any) -> Any:
    """What a declaration says for us, beside what it says for the document."""
    metas = (part.extra for part in parts if isinstance(part, msgspec.Meta) and part.extra)
    return next((extra[name] for extra in metas if name in extra), default)


def _parts(kind: Any, *, deep: bool = False) -> list[Any]:
    """A type, and what it is made of; ``deep``: also what is in lists."""
    found = [kind, *getattr(kind, "__metadata__", ())]
    if deep or getattr(kind, "__origin__", None) is not list:
        for part in get_args(kind):
            found += _parts(part, deep=deep)
    return found
