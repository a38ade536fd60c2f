"""The languages, read once, and how what they say is put together.

A feature takes the same list of every language and makes one set of words or one pattern of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from importlib.resources import files
from typing import Any, TypeVar, cast

import msgspec

from proxy.recall.lexicon.language import Common, Language, Told

_FOLDER = files("proxy.recall.lexicon")
_PART = re.compile(r"\{([A-Z_]+)\}")
_BREAK = re.compile(r"\s*\n\s*")
_GROUP = re.compile(r"\(\?P<(\w+)>")

StructT = TypeVar("StructT", bound=msgspec.Struct)


def read(name: str, text: bytes, type: type[StructT]) -> StructT:
    """What stands in a file.  Raises ValueError with its name for a mistake in it."""
    try:
        return msgspec.toml.decode(text, type=type)
    except ValueError as error:
        raise ValueError(f"proxy/recall/lexicon/{name}: {error}") from None


def _file(name: str, type: type[StructT]) -> StructT:
    return read(name, (_FOLDER / name).read_bytes(), type)


COMMON = _file("common.toml", Common)
LANGUAGES = tuple(_file(f"{code}.toml", Language) for code in COMMON.order)


class _Late:
    """A pattern that is compiled when it is first used, and costs no more from then on."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._parts = pattern, flags

    def __repr__(self) -> str:
        return f"<Late [{self._parts[0][:40]!r}]>"

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._pattern, name)
        setattr(self, name, found)
        return found

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        try:
            return re.compile(*self._parts)
        except re.error as error:
            named = zip(COMMON.order, LANGUAGES, strict=True)
            raise ValueError("\n".join(mistakes(named)) or str(error)) from error


def compiled(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """A pattern made of those in the files, compiled at its first use: that raises ValueError with
    the file of a wrong one."""
    return cast("re.Pattern[str]", _Late(pattern, flags))


def mistakes(languages: Iterable[tuple[str, Language]]) -> Iterator[str]:
    """What is wrong in languages, by their codes: strings in brackets that are no patterns."""
    for code, language in languages:
        for place, pattern in _listed(msgspec.to_builtins(language)):
            try:
                re.compile(_PART.sub("x", _joined(pattern)))
            except re.error as error:
                yield f"proxy/recall/lexicon/{code}.toml: {place}: {pattern!r}: {error}"


def _listed(value: object, place: str = "") -> Iterator[tuple[str, str]]:
    """Where patterns are, and they: what stands in brackets, and parts of patterns."""
    if isinstance(value, dict):
        for name, each in value.items():
            listed = list(each.values()) if name == "parts" else each
            yield from _listed(listed, f"{place}.{name}".lstrip("."))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from [(place, each)] if isinstance(each, str) else _listed(each, place)


def vocabulary(of: Callable[[Language], str]) -> tuple[str, ...]:
    """A list's words in all languages, each once."""
    return tuple(dict.fromkeys(word for each in LANGUAGES for word in of(each).split()))


def named(of: Callable[[Language], Iterable[str]]) -> dict[str, int]:
    """For lists of words in an order, as months have: the place of each word, from 0 on."""
    return {
        word: place
        for each in LANGUAGES
        for place, same in enumerate(of(each))
        for word in same.split()
    }


def patterns(of: Callable[[Language], Iterable[str]]) -> tuple[str, ...]:
    """A list's patterns in all languages."""
    return tuple(_joined(pattern) for each in LANGUAGES for pattern in of(each))


def either(found: Iterable[str]) -> str:
    """What is found where any of these patterns is; of none, nowhere."""
    return f"(?:{'|'.join(found) or '(?!)'})"


def any_of(of: Callable[[Language], Iterable[str]]) -> str:
    """What is found where any pattern of this list is, in any language."""
    return either(patterns(of))


def told(of: Callable[[Language], Told], language: str = "") -> str:
    """What is found where anything of this list tells it, in any language or in the one of this
    name."""
    each = [of(each) for each in LANGUAGES if language in ("", each.language.name)]
    words = tuple(pattern for one in each for pattern in one.words)
    return pattern_of(Told(words, tuple(pattern for one in each for pattern in one.anywhere)))


def pattern_of(told: Told) -> str:
    """What is found where anything of one list tells it."""
    words = [rf"\b{either(map(_joined, told.words))}\b"] if told.words else []
    return either((*words, *map(_joined, told.anywhere)))


def longest_first(found: Iterable[str]) -> str:
    """Words as a pattern that takes the longest where one begins like another."""
    return either(sorted(found, key=len, reverse=True))


def one_of(names: Iterable[str]) -> str:
    """Plain words as a pattern that takes the longest where one begins like another.

    By their first letters: of hundreds of words only those are tried that begin as the text does.
    """
    rests: dict[str, list[str]] = {}
    for name in sorted(names, key=len, reverse=True):
        rests.setdefault(name[:1], []).append(re.escape(name[1:]))
    return either(f"{re.escape(first)}{either(found)}" for first, found in rests.items())


def filled(pattern: str, parts: Mapping[str, str]) -> str:
    """A pattern with its parts in the place of their names."""
    pattern = _joined(pattern)
    while found := _PART.search(pattern):
        pattern = pattern.replace(found[0], _joined(parts[found[1]]))
    return pattern


def numbered(found: Iterable[str]) -> str:
    """Patterns as one.  A group of one name may be in each: see ``groups``."""
    joined = iter(re.split(_GROUP, either(found)))
    text = [next(joined)]
    for number, (name, rest) in enumerate(zip(joined, joined, strict=True)):
        text.append(f"(?P<{name}_{number}>{rest}")
    return "".join(text)


def groups(match: re.Match[str]) -> dict[str, str]:
    """What the groups found, by the names they have in the files."""
    found = match.groupdict()
    return {name.rpartition("_")[0]: value for name, value in found.items() if value}


def _joined(pattern: str) -> str:
    """A pattern without the line breaks in it, and without the blanks around them."""
    return _BREAK.sub("", pattern).lstrip()
