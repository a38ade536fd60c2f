"""JSON text: read strictly, split without changing bytes, written canonically.

Uses msgspec.  It rejects escapes of lone surrogates, which RFC 8259 (section 8.2) allows and which
models stream (half an emoji), so such texts are read by the standard library.  Knows nothing of
chat.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from math import isfinite
from typing import NoReturn, TypeVar

import msgspec

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)
JsonFields = Mapping[str, bytes]

NULL = msgspec.Raw(b"null")
"""The default of a field that is decoded later: it is null or missing."""

UNREADABLE = (ValueError, RecursionError)
"""The exceptions of reading: not JSON, not UTF-8, or nested too deeply."""

MAX_LEVELS = 100

PIECE = 256 * 1024
"""Bytes or characters that one call processes: the GIL is released in between."""

SURROGATE_PIECE = 16 * 1024
"""The same for texts with surrogates, which are slower."""

SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
"""The escape of a surrogate, lone or not."""

MAX_REPAIRED_VALUES = 100_000
"""Larger texts (values, about) are not repaired, which is slow."""

SAFE_DIGITS = 20
"""Longer integers become floats when a text is repaired; ids of 64 bits have up to 20 digits."""

_OBJECT = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\n\r]*\{")
_SEPARATOR = re.compile(rb"[,\[{]")
_SURROGATE_PAIRS = re.compile("(?:[\ud800-\udbff][\udc00-\udfff])+")
_LONE_SURROGATES = re.compile("[\ud800-\udfff]+")
_SPACE = re.compile(r"[ \t\n\r]*")


def _number(text: str) -> int | float | str:
    """A number with fraction or exponent: 1.0 becomes 1; what overflows a float stays text."""
    value = float(text)
    if value != value or value in (float("inf"), float("-inf")):
        return text
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _finite(text: str) -> float | None:
    value = float(text)
    return value if isfinite(value) else None


def _integer(text: str) -> int | float | None:
    return int(text) if len(text) <= SAFE_DIGITS else _finite(text)


def _reject_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_any = msgspec.json.Decoder()
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_items = msgspec.json.Decoder(list[msgspec.Raw])
_values = msgspec.json.Decoder(float_hook=_number)
_lenient = json.JSONDecoder(parse_constant=_reject_constant)
_repairing = json.JSONDecoder(
    parse_constant=lambda constant: None, parse_float=_finite, parse_int=_integer
)
_lenient_values = json.JSONDecoder(parse_constant=_reject_constant, parse_float=_number)


def decode(raw: bytes) -> object:
    """The value of a JSON text.  Raises UNREADABLE."""
    return _read_with_fallback(raw, _any.decode, _lenient.decode)


def value(raw: bytes) -> object:
    """Like ``decode``, with numbers normalised for comparison: 1.0 and 1e0 are 1."""
    return _read_with_fallback(raw, _values.decode, _lenient_values.decode)


def fields(raw: bytes) -> dict[str, bytes]:
    """The fields of an object in order, each value as JSON; the last of equal keys wins.  Raises
    UNREADABLE, also for JSON that is not an object."""
    return _read_with_fallback(raw, _split_object, lambda text: dict(_object_fields(text)))


def struct_reader(kind: type[S]) -> Callable[[bytes], S]:
    """A function that decodes an object into a struct of type ``kind``, or raises UNREADABLE.

    All fields of the struct must be of type Any or Raw, and have defaults.
    """
    decode_strictly = msgspec.json.Decoder(kind).decode

    def read(raw: bytes) -> S:
        try:
            return decode_strictly(raw)
        except UNREADABLE:  # half a surrogate pair somewhere, or no object
            return _fill_struct(kind(), fields(raw))

    return read


def _fill_struct(struct: S, raw_fields: Mapping[str, bytes]) -> S:
    for name in struct.__struct_fields__:
        if name in raw_fields:
            is_raw = isinstance(getattr(struct, name), msgspec.Raw)
            raw = raw_fields[name]
            setattr(struct, name, msgspec.Raw(raw) if is_raw else decode(raw))
    return struct


def items(raw: bytes) -> list[bytes]:
    """The items of a list, each as JSON.  Raises UNREADABLE, also for JSON that is not a list."""
    return _read_with_fallback(raw, _split_list, lambda text: list(_list_items(text)))


def decode_shallow(raw: bytes) -> object:
    """Like ``decode``; raises ValueError if the value is nested too deeply for recursion."""
    decoded = decode(raw)
    if raw.count(b"[") + raw.count(b"{") > MAX_LEVELS and _nesting_depth(decoded) > MAX_LEVELS:
        raise ValueError("nested too deeply")
    return decoded


def read_leniently(read: Callable[[bytes], T], raw: bytes) -> T:
    """``read`` an object of an upstream; if that fails, its ``repaired`` text.  Raises
    UNREADABLE."""
    try:
        return read(raw)
    except UNREADABLE:
        return read(repaired(raw))


def repaired(raw: bytes) -> bytes:
    """Valid JSON from an object as some upstreams write it: without byte order mark, with invalid
    UTF-8 replaced, and null for NaN and numbers that overflow a float (1e999).

    Raises UNREADABLE.
    """
    if not _OBJECT.match(raw) or len(_SEPARATOR.findall(raw)) > MAX_REPAIRED_VALUES:
        raise ValueError("cannot be repaired")
    return encode(_repairing.decode(raw.decode("utf-8-sig", "replace")))


def encode(value: object) -> bytes:
    """Compact JSON in UTF-8; in ASCII with escapes if the value has lone surrogates."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def canonical(value: object) -> bytes:
    """The same bytes for equal values: keys sorted, no white space."""
    try:
        return msgspec.json.encode(value, order="sorted")
    except UnicodeEncodeError:
        text = json.dumps(value, separators=(",", ":"), sort_keys=True, allow_nan=False)
        return text.encode()


def join_fields(pieces: JsonFields) -> bytes:
    """The object with these fields (JSON by name); long values are copied only once."""
    parts = [part for key, raw in pieces.items() for part in (b",", encode(key), b":", raw)]
    return b"".join([b"{", *parts[1:], b"}"])


def join_items(pieces: Iterable[bytes]) -> bytes:
    return b"[%b]" % b",".join(pieces)


def encode_by_item(what: msgspec.Struct, name: str) -> bytes:
    """The JSON of a struct; each item of its field ``name`` is encoded by itself, so that other
    threads run in between (which they do not within a ``map``)."""
    rest = fields(msgspec.json.encode(msgspec.structs.replace(what, **{name: ()})))
    each = [msgspec.json.encode(item) for item in getattr(what, name)]
    return join_fields({**rest, _encoded_name(type(what), name): join_items(each)})


def decode_by_item(raw: bytes, kind: type[S], name: str, item: type[T]) -> S:
    """A struct from its JSON, its field ``name`` a tuple of items of type ``item``; each is decoded
    by itself, as above.  Raises msgspec.DecodeError."""
    pieces: dict[str, bytes] = {**_fields.decode(raw)}
    key, read = _encoded_name(kind, name), msgspec.json.Decoder(item).decode
    each = _items.decode(pieces.pop(key, b"[]"))
    rest = msgspec.json.decode(join_fields({**pieces, key: b"[]"}), type=kind)
    return msgspec.structs.replace(rest, **{name: tuple([read(piece) for piece in each])})


def _encoded_name(kind: type[msgspec.Struct], name: str) -> str:
    """The name that the field ``name`` has in JSON."""
    return kind.__struct_encode_fields__[kind.__struct_fields__.index(name)]


def is_utf8(raw: bytes, *, whole: bool = True) -> bool:
    """Whether the bytes are UTF-8; unless ``whole``, the last character may be cut off."""
    if raw.isascii():
        return True
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for at in range(0, len(raw), PIECE):
            decoder.decode(raw[at : at + PIECE], whole and at + PIECE >= len(raw))
    except UnicodeDecodeError:
        return False
    return True


def join_surrogates(text: str) -> str:
    """The text with adjacent surrogates joined to characters; lone surrogates stay."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return _join_halves(text)
    return text


def well_formed(text: str) -> str:
    """The text with adjacent surrogates joined and lone ones replaced, so that it is encodable."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join(map(_well_formed, _surrogate_pieces(text)))
    return text


def text_in(value: object) -> str:
    """A string, made encodable; "" for any other value."""
    return well_formed(value) if isinstance(value, str) else ""


def objects_in(value: object) -> list[dict[str, object]]:
    """The objects in a decoded list; [] for any other value."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _well_formed(text: str) -> str:
    joined = _SURROGATE_PAIRS.sub(lambda halves: _join_halves(halves[0]), text)
    return _LONE_SURROGATES.sub(lambda halves: "\N{REPLACEMENT CHARACTER}" * len(halves[0]), joined)


def _join_halves(halves: str) -> str:
    return halves.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _surrogate_pieces(text: str) -> Iterator[str]:
    """Pieces of a text, none of which ends within a surrogate pair."""
    at = 0
    while at < len(text):
        end = at + SURROGATE_PIECE
        end += _SURROGATE_PAIRS.match(text, end - 1) is not None
        yield text[at:end]
        at = end


def _nesting_depth(value: object) -> int:
    """The depth of nesting, at most ``MAX_LEVELS`` + 1."""
    level, depth = [value], 0
    while level and depth <= MAX_LEVELS:
        lists = (item for item in level if isinstance(item, list))
        objects = (item.values() for item in level if isinstance(item, dict))
        level = [child for children in chain(lists, objects) for child in children]
        depth += 1
    return depth


def _read_with_fallback(
    raw: bytes, read: Callable[[bytes], T], read_leniently: Callable[[str], T]
) -> T:
    try:
        return read(raw)
    except msgspec.ValidationError:  # JSON, but of another type
        raise
    except msgspec.DecodeError:
        if not SURROGATE_ESCAPE.search(raw):
            raise
        return read_leniently(raw.decode())


def _split_object(raw: bytes) -> dict[str, bytes]:
    return {key: bytes(piece) for key, piece in _fields.decode(raw).items()}


def _split_list(raw: bytes) -> list[bytes]:
    return [bytes(piece) for piece in _items.decode(raw)]


def _object_fields(text: str) -> Iterator[tuple[str, bytes]]:
    at = _skip_token(text, 0, "{")
    if text[at : at + 1] == "}":
        return _expect_end(text, at + 1)
    while True:
        key, at = _lenient.raw_decode(text, at)
        if not isinstance(key, str):
            raise ValueError("a key that is not a string")
        start = _skip_token(text, at, ":")
        _, at = _lenient.raw_decode(text, start)
        yield key, text[start:at].encode()
        at = _skip_space(text, at)
        if text[at : at + 1] == "}":
            return _expect_end(text, at + 1)
        at = _skip_token(text, at, ",")


def _list_items(text: str) -> Iterator[bytes]:
    at = _skip_token(text, 0, "[")
    if text[at : at + 1] == "]":
        return _expect_end(text, at + 1)
    while True:
        start = at
        _, at = _lenient.raw_decode(text, start)
        yield text[start:at].encode()
        at = _skip_space(text, at)
        if text[at : at + 1] == "]":
            return _expect_end(text, at + 1)
        at = _skip_token(text, at, ",")


def _skip_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _skip_token(text: str, at: int, token: str) -> int:
    """The index of the token after ``token``, which must be the next one at or after ``at``."""
    at = _skip_space(text, at)
    if text[at : at + 1] != token:
        raise ValueError(f"{token} expected at {at}")
    return _skip_space(text, at + 1)


def _expect_end(text: str, at: int) -> None:
    if _skip_space(text, at) != len(text):
        raise ValueError("text after the end of the value")
