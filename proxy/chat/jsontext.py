"""JSON text: read strictly, kept byte for byte, written canonically.

msgspec does the work.  It refuses one thing that RFC 8259 (section 8.2) allows, the escape of half
a surrogate pair, and models do stream half an emoji: such texts take the way round the standard
library.  Knows nothing of chat.
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
Pieces = Mapping[str, bytes]

NULL = msgspec.Raw(b"null")
"""Of a field that is read later: it is null, or not there."""

UNREADABLE = (ValueError, RecursionError)
"""What reading raises: text that is not JSON or not UTF-8, and text nested too deeply."""

MAX_LEVELS = 100

PIECE = 256 * 1024
"""Bytes or characters of a long text that one call looks at: other threads go on in between."""

HALVES = 16 * 1024
"""Characters of a text with halves of surrogate pairs: each of them takes its time."""

HALF = re.compile(rb"\\u[dD][89a-fA-F]")
"""Half a surrogate pair, or what may be one, as JSON writes it."""

MOST_MENDED = 100_000
"""Values of a text that is mended, about: it is read and written slowly."""

SAFE_DIGITS = 20
"""Of an integer that is kept to its last digit: an id of 64 bits has as many."""

_OBJECT = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\n\r]*\{")
_BETWEEN = re.compile(rb"[,\[{]")
_PAIRS = re.compile("(?:[\ud800-\udbff][\udc00-\udfff])+")
_LONE = re.compile("[\ud800-\udfff]+")
_SPACE = re.compile(r"[ \t\n\r]*")


def _number(text: str) -> int | float | str:
    """A fraction or an exponent as a value: 1.0 is 1, and what no float holds stays text."""
    value = float(text)
    if value != value or value in (float("inf"), float("-inf")):
        return text
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _finite(text: str) -> float | None:
    value = float(text)
    return value if isfinite(value) else None


def _integer(text: str) -> int | float | None:
    return int(text) if len(text) <= SAFE_DIGITS else _finite(text)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_any = msgspec.json.Decoder()
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_items = msgspec.json.Decoder(list[msgspec.Raw])
_values = msgspec.json.Decoder(float_hook=_number)
_lenient = json.JSONDecoder(parse_constant=_refuse)
_mending = json.JSONDecoder(
    parse_constant=lambda constant: None, parse_float=_finite, parse_int=_integer
)
_lenient_values = json.JSONDecoder(parse_constant=_refuse, parse_float=_number)


def decode(raw: bytes) -> object:
    """The value of a JSON text.  Raises UNREADABLE."""
    return _either(raw, _any.decode, _lenient.decode)


def value(raw: bytes) -> object:
    """Like ``decode``, with numbers that compare as values: 1.0 and 1e0 are 1."""
    return _either(raw, _values.decode, _lenient_values.decode)


def fields(raw: bytes) -> dict[str, bytes]:
    """The fields of an object in order, each value's JSON untouched; the last of equal keys wins.

    Raises UNREADABLE, also where the text is JSON but no object.
    """
    return _either(raw, _split_object, lambda text: dict(_object_fields(text)))


def reader(kind: type[S]) -> Callable[[bytes], S]:
    """Reads an object into a struct whose fields are Any or Raw, and have defaults.

    What is made raises UNREADABLE.
    """
    quick = msgspec.json.Decoder(kind).decode

    def read(raw: bytes) -> S:
        try:
            return quick(raw)
        except UNREADABLE:  # half a surrogate pair somewhere, or no object
            return _filled(kind(), fields(raw))

    return read


def _filled(struct: S, found: Mapping[str, bytes]) -> S:
    for name in struct.__struct_fields__:
        if name in found:
            later = isinstance(getattr(struct, name), msgspec.Raw)
            setattr(struct, name, msgspec.Raw(found[name]) if later else decode(found[name]))
    return struct


def items(raw: bytes) -> list[bytes]:
    """The items of a list, each one's JSON untouched.  Raises UNREADABLE; no list is none."""
    return _either(raw, _split_list, lambda text: list(_list_items(text)))


def shallow(raw: bytes) -> object:
    """Like ``decode``, and raises ValueError where functions that recurse could fail."""
    what = decode(raw)
    if raw.count(b"[") + raw.count(b"{") > MAX_LEVELS and _levels(what) > MAX_LEVELS:
        raise ValueError("nested too deeply")
    return what


def forgiving(read: Callable[[bytes], T], raw: bytes) -> T:
    """What ``read`` makes of an object that an upstream has sent, or else of its ``mended`` text.

    Raises UNREADABLE.
    """
    try:
        return read(raw)
    except UNREADABLE:
        return read(mended(raw))


def mended(raw: bytes) -> bytes:
    """JSON of an object as some upstreams write it: with a byte order mark, bytes that are not
    UTF-8, numbers that JSON does not have (NaN) or no float holds (1e999), which say nothing here.

    Raises UNREADABLE.
    """
    if not _OBJECT.match(raw) or len(_BETWEEN.findall(raw)) > MOST_MENDED:
        raise ValueError("not to be mended")
    return encode(_mending.decode(raw.decode("utf-8-sig", "replace")))


def encode(what: object) -> bytes:
    """Compact JSON in UTF-8; ASCII with escapes where there is half a surrogate pair."""
    try:
        return msgspec.json.encode(what)
    except UnicodeEncodeError:
        return json.dumps(what, separators=(",", ":"), allow_nan=False).encode()


def canonical(what: object) -> bytes:
    """The same bytes for equal values: keys sorted, no white space."""
    try:
        return msgspec.json.encode(what, order="sorted")
    except UnicodeEncodeError:
        text = json.dumps(what, separators=(",", ":"), sort_keys=True, allow_nan=False)
        return text.encode()


def join_fields(pieces: Pieces) -> bytes:
    """The object with these fields; what may be long is copied as seldom as can be."""
    parts = [part for key, raw in pieces.items() for part in (b",", encode(key), b":", raw)]
    return b"".join([b"{", *parts[1:], b"}"])


def join_items(pieces: Iterable[bytes]) -> bytes:
    """The list of these items."""
    return b"[%b]" % b",".join(pieces)


def is_utf8(raw: bytes, *, whole: bool = True) -> bool:
    """Can these bytes be decoded?  Of what is not ``whole`` the last letter may be cut off."""
    if raw.isascii():
        return True
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for at in range(0, len(raw), PIECE):
            decoder.decode(raw[at : at + PIECE], whole and at + PIECE >= len(raw))
    except UnicodeDecodeError:
        return False
    return True


def paired(text: str) -> str:
    """Text whose halves of surrogate pairs are joined where they meet; lone ones stay."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return _joined(text)
    return text


def well_formed(text: str) -> str:
    """Text that can be encoded: halves of a pair that meet are joined, lone ones replaced."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join(map(_well_formed, _surrogate_pieces(text)))
    return text


def text_in(value: object) -> str:
    """A value that is a text, as text that can be encoded; "" for any other."""
    return well_formed(value) if isinstance(value, str) else ""


def _well_formed(text: str) -> str:
    joined = _PAIRS.sub(lambda halves: _joined(halves[0]), text)
    return _LONE.sub(lambda halves: "\N{REPLACEMENT CHARACTER}" * len(halves[0]), joined)


def _joined(halves: str) -> str:
    return halves.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _surrogate_pieces(text: str) -> Iterator[str]:
    """Pieces of a text; no pair is cut."""
    at = 0
    while at < len(text):
        end = at + HALVES
        end += _PAIRS.match(text, end - 1) is not None
        yield text[at:end]
        at = end


def _levels(what: object) -> int:
    """How deeply lists and objects are nested, counted no further than one over the bound."""
    level, depth = [what], 0
    while level and depth <= MAX_LEVELS:
        lists = (item for item in level if isinstance(item, list))
        objects = (item.values() for item in level if isinstance(item, dict))
        level = [child for children in chain(lists, objects) for child in children]
        depth += 1
    return depth


def _either(raw: bytes, read: Callable[[bytes], T], lenient: Callable[[str], T]) -> T:
    try:
        return read(raw)
    except msgspec.ValidationError:  # JSON, but not what was asked for
        raise
    except msgspec.DecodeError:
        if not HALF.search(raw):
            raise
        return lenient(raw.decode())


def _split_object(raw: bytes) -> dict[str, bytes]:
    return {key: bytes(piece) for key, piece in _fields.decode(raw).items()}


def _split_list(raw: bytes) -> list[bytes]:
    return [bytes(piece) for piece in _items.decode(raw)]


def _object_fields(text: str) -> Iterator[tuple[str, bytes]]:
    at = _after(text, 0, "{")
    if text[at : at + 1] == "}":
        return _at_end(text, at + 1)
    while True:
        key, at = _lenient.raw_decode(text, at)
        if not isinstance(key, str):
            raise ValueError("a key that is not a string")
        start = _after(text, at, ":")
        _, at = _lenient.raw_decode(text, start)
        yield key, text[start:at].encode()
        at = _space(text, at)
        if text[at : at + 1] == "}":
            return _at_end(text, at + 1)
        at = _after(text, at, ",")


def _list_items(text: str) -> Iterator[bytes]:
    at = _after(text, 0, "[")
    if text[at : at + 1] == "]":
        return _at_end(text, at + 1)
    while True:
        start = at
        _, at = _lenient.raw_decode(text, start)
        yield text[start:at].encode()
        at = _space(text, at)
        if text[at : at + 1] == "]":
            return _at_end(text, at + 1)
        at = _after(text, at, ",")


def _space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _after(text: str, at: int, sign: str) -> int:
    """Where the next token begins behind ``sign``, which must be the token at ``at``."""
    at = _space(text, at)
    if text[at : at + 1] != sign:
        raise ValueError(f"{sign} expected at {at}")
    return _space(text, at + 1)


def _at_end(text: str, at: int) -> None:
    if _space(text, at) != len(text):
        raise ValueError("more behind the end")
