"""Parses bodies of requests into the objects that the document describes.

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
from proxy.memory_api.fields import MAX_BYTES, RAW, REFUSAL, invalid
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


async def body_of(request: Request, server: ServerSettings, reservation: Reservation) -> bytes:
    """The body.  Raises ProxyError 413, 408, 503, and 400 for too many values; and
    ClientDisconnect."""
    declared, max_bytes = content_length(request.headers.raw), server.max_body_bytes
    try:
        body = await received(
            request.receive, max_bytes, server.body_timeout, declared, reservation.reserve_body
        )
    except ClientGone:
        raise ClientDisconnect from None
    if len(body) > MAX_VALUES and await asyncio.to_thread(has_more_values, MAX_VALUES, body):
        raise invalid(f"The body has over {MAX_VALUES} values.")
    return body


async def read(kind: type[S], body: bytes) -> S:
    """The body as an object of this type."""
    return cast(S, await read_one((kind,), body))


async def read_one(kinds: Sequence[Kind], body: bytes) -> msgspec.Struct:
    """The body as an object of one of these types."""
    if len(body) > LARGE:
        return await asyncio.to_thread(_read, kinds, body)
    return _read(kinds, body)


def fields_of(body: bytes) -> dict[str, bytes]:
    """The fields of a body, with the JSON of their values."""
    try:
        return fields(body)
    except UNREADABLE:
        raise invalid("The body must be a JSON object.") from None


def _read(kinds: Sequence[Kind], body: bytes) -> msgspec.Struct:
    raw_fields = fields_of(body)
    return decode_fields(_matching_kind(kinds, raw_fields), raw_fields)


def _matching_kind(kinds: Sequence[Kind], raw_fields: Mapping[str, bytes]) -> Kind:
    """The type of the body, which must have exactly one field: the first of that type."""
    if len(kinds) == 1:
        return kinds[0]
    names = [fields_in(kind)[0].encode_name for kind in kinds]
    others = [name for name in raw_fields if name not in names]
    if others or len(raw_fields) != 1:
        raise invalid(f"Give either {' or '.join(names)}.", (others or names)[0])
    return kinds[names.index(next(iter(raw_fields)))]


def decode_fields(kind: Kind, raw_fields: Mapping[str, bytes], prefix: str = "") -> msgspec.Struct:
    """The object with these fields; ``prefix`` stands before their names in errors."""
    rules = _field_rules(kind)
    if kind.__struct_config__.forbid_unknown_fields:
        _check_known(kind, raw_fields, rules, prefix)
    values = {
        rule.attribute: _value(rule, raw_fields.get(name), prefix + name)
        for name, rule in rules.items()
        if name in raw_fields or rule.required
    }
    return kind(**values)


def _check_known(
    kind: Kind, raw_fields: Mapping[str, bytes], known_names: Iterable[str], prefix: str
) -> None:
    names = ", ".join(prefix + each for each in known_names)
    sentence = getattr(kind, "ONLY", "")
    if not raw_fields and sentence:
        raise invalid(f"{sentence}: {names}.", names)
    for name in raw_fields:
        if name not in known_names:
            sentence = sentence or f"{prefix}{name} is none of"
            raise invalid(f"{sentence}: {names}.", prefix + name)


class FieldRule:
    """The constraints on a field's value, from its declaration."""

    def __init__(self, field: FieldInfo) -> None:
        self.attribute, self.required = field.name, field.required
        self.kind = field.type
        parts, deep = _parts(field.type), _parts(field.type, deep=True)
        self.nullable = NoneType in parts
        self.is_json = msgspec.Raw in parts
        self.struct: Kind | None = next(filter(_is_struct, parts), None)
        self.is_raw: bool = _extra(parts, RAW, False)
        self.max_bytes: int | None = _extra(parts, MAX_BYTES, None)
        self._refusal: Refusal | None = _extra(parts, REFUSAL, None)
        items = (part for part in deep if part not in parts)
        self._refusal_of_item: Refusal | None = _extra(items, REFUSAL, None)
        patterns = (part.pattern or "" for part in deep if isinstance(part, msgspec.Meta))
        self.has_end = any(pattern.endswith("$") for pattern in patterns)

    def refusal(self, name: str, problem: str) -> ProxyError:
        """The error for an invalid value: the declaration's own, if it has one."""
        item = _AT.search(problem)
        if item and self._refusal_of_item:
            return self._refusal_of_item(name + item[1])
        if self._refusal:
            return self._refusal(name)
        return invalid(f"{name} is not what it should be: {problem}.", name)


@cache
def _field_rules(kind: Kind) -> Mapping[str, FieldRule]:
    """The fields of an object, by their names in JSON."""
    return {field.encode_name: FieldRule(field) for field in fields_in(kind)}


def _value(rule: FieldRule, raw: bytes | None, name: str) -> object:
    if raw is None:
        raise rule.refusal(name, "it is missing")
    if rule.max_bytes is not None and len(raw) > rule.max_bytes:
        raise rule.refusal(name, "it is too large")
    if rule.is_raw:
        return msgspec.Raw(raw)
    if rule.nullable and raw.strip() == b"null":
        return None
    try:
        value = _decoded(rule, raw, name)
    except UNREADABLE as error:
        raise rule.refusal(name, str(error)) from None
    if rule.has_end and _ends_in_a_line_break(value):
        raise rule.refusal(name, "it ends in a line break")
    return value


def _decoded(rule: FieldRule, raw: bytes, name: str) -> object:
    """Raises UNREADABLE, and ProxyError for an invalid field of a nested object."""
    if rule.is_json:
        if not isinstance(decode_shallow(raw), dict):
            raise ValueError("it is no object")
        return msgspec.Raw(raw)
    if rule.struct is not None:
        return decode_fields(rule.struct, fields(raw), f"{name}.")
    try:
        return msgspec.json.decode(raw, type=rule.kind)
    except msgspec.ValidationError:
        with suppress(*UNREADABLE):  # 3.0 is 3, as in JSON Schema; to msgspec it is not
            return msgspec.convert(values(raw), rule.kind)
        raise


def _ends_in_a_line_break(value: object) -> bool:
    """In Python ``$`` matches before a final line break, in JSON Schema it does not."""
    if isinstance(value, list):
        return any(map(_ends_in_a_line_break, value))
    return isinstance(value, str) and value.endswith("\n")


def _is_struct(part: Any) -> bool:
    return isinstance(part, type) and issubclass(part, msgspec.Struct)


def _extra(parts: Iterable[Any], name: str, default: Any) -> Any:
    """A value of ``Meta.extra``, else the default."""
    metas = (part.extra for part in parts if isinstance(part, msgspec.Meta) and part.extra)
    return next((extra[name] for extra in metas if name in extra), default)


def _parts(kind: Any, *, deep: bool = False) -> list[Any]:
    """A type with the types and metadata in it; ``deep``: also those of list items."""
    parts = [kind, *getattr(kind, "__metadata__", ())]
    if deep or getattr(kind, "__origin__", None) is not list:
        for part in get_args(kind):
            parts += _parts(part, deep=deep)
    return parts
