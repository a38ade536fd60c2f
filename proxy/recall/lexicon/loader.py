"""Loads the files of all languages once, and combines their lists.

A feature selects one list of a language with a function, such as ``lambda each: each.dates.ago``;
the functions here combine it over all languages into one set of words or one regular expression.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from importlib.resources import files
from typing import Any, TypeVar, cast

import msgspec

from proxy.recall.lexicon.language import Common, Language, Phrases

_FOLDER = files("proxy.recall.lexicon")
_PART = re.compile(r"\{([A-Z_]+)\}")
_BREAK = re.compile(r"\s*\n\s*")
_GROUP = re.compile(r"\(\?P<(\w+)>")

StructT = TypeVar("StructT", bound=msgspec.Struct)


def decode_file(name: str, text: bytes, type: type[StructT]) -> StructT:
    """Decode a TOML file.  Raises ValueError with the file's name for invalid content."""
    try:
        return msgspec.toml.decode(text, type=type)
    except ValueError as error:
        raise ValueError(f"proxy/recall/lexicon/{name}: {error}") from None


def _load_file(name: str, type: type[StructT]) -> StructT:
    return decode_file(name, (_FOLDER / name).read_bytes(), type)


COMMON = _load_file("common.toml", Common)
LANGUAGES = tuple(_load_file(f"{code}.toml", Language) for code in COMMON.order)


class _LazyPattern:
    """A regular expression that is compiled when it is first used."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._parts = pattern, flags

    def __repr__(self) -> str:
        return f"<LazyPattern [{self._parts[0][:40]!r}]>"

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
            raise ValueError("\n".join(invalid_patterns(named)) or str(error)) from error


def lazy_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """A regular expression made of those in the files, compiled at its first use, which raises
    ValueError with the file of an invalid one."""
    return cast("re.Pattern[str]", _LazyPattern(pattern, flags))


def invalid_patterns(languages: Iterable[tuple[str, Language]]) -> Iterator[str]:
    """A message for each string in a list that is no valid regular expression; ``languages`` are
    pairs of code and content."""
    for code, language in languages:
        for place, pattern in _pattern_strings(msgspec.to_builtins(language)):
            try:
                re.compile(_PART.sub("x", _without_line_breaks(pattern)))
            except re.error as error:
                yield f"proxy/recall/lexicon/{code}.toml: {place}: {pattern!r}: {error}"


def _pattern_strings(value: object, place: str = "") -> Iterator[tuple[str, str]]:
    """All regular expressions in a decoded file, each after its key: strings in lists, and the
    values of ``parts``."""
    if isinstance(value, dict):
        for name, each in value.items():
            listed = list(each.values()) if name == "parts" else each
            yield from _pattern_strings(listed, f"{place}.{name}".lstrip("."))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from [(place, each)] if isinstance(each, str) else _pattern_strings(each, place)


def vocabulary(of: Callable[[Language], str]) -> tuple[str, ...]:
    """The words of one list in all languages, each once."""
    return tuple(dict.fromkeys(word for each in LANGUAGES for word in of(each).split()))


def word_positions(of: Callable[[Language], Iterable[str]]) -> dict[str, int]:
    """The position of each word, from 0, in ordered lists such as the months; an element may be
    several words for the same."""
    return {
        word: place
        for each in LANGUAGES
        for place, same in enumerate(of(each))
        for word in same.split()
    }


def patterns(of: Callable[[Language], Iterable[str]]) -> tuple[str, ...]:
    """The patterns of one list in all languages."""
    return tuple(_without_line_breaks(pattern) for each in LANGUAGES for pattern in of(each))


def alternation(found: Iterable[str]) -> str:
    """A pattern that matches any of these; without any it never matches."""
    return f"(?:{'|'.join([*found] or ['(?!)'])})"


def any_of(of: Callable[[Language], Iterable[str]]) -> str:
    """A pattern that matches any of one list, in any language."""
    return alternation(patterns(of))


def phrase_pattern(of: Callable[[Language], Phrases], language: str = "") -> str:
    """A pattern that matches any of these phrases, in all languages or in the one named."""
    each = [of(each) for each in LANGUAGES if language in ("", each.language.name)]
    words = tuple(pattern for one in each for pattern in one.words)
    return pattern_of(Phrases(words, tuple(pattern for one in each for pattern in one.anywhere)))


def pattern_of(phrases: Phrases) -> str:
    """A pattern that matches any of these phrases."""
    words = (
        [rf"\b{alternation(map(_without_line_breaks, phrases.words))}\b"] if phrases.words else []
    )
    return alternation((*words, *map(_without_line_breaks, phrases.anywhere)))


def longest_first(found: Iterable[str]) -> str:
    """A pattern of words or patterns that prefers the longest."""
    return alternation(sorted(found, key=len, reverse=True))


def word_pattern(names: Iterable[str]) -> str:
    """A pattern of plain words that prefers the longest.

    Grouped by first letter: of hundreds of words only those that begin as the text does are tried.
    """
    rests: dict[str, list[str]] = {}
    for name in sorted(names, key=len, reverse=True):
        rests.setdefault(name[:1], []).append(re.escape(name[1:]))
    return alternation(f"{re.escape(first)}{alternation(found)}" for first, found in rests.items())


def with_parts(pattern: str, parts: Mapping[str, str]) -> str:
    """A pattern in which each ``{NAME}`` is replaced by the part of that name."""
    pattern = _without_line_breaks(pattern)
    while found := _PART.search(pattern):
        pattern = pattern.replace(found[0], _without_line_breaks(parts[found[1]]))
    return pattern


def with_numbered_groups(found: Iterable[str]) -> str:
    """A pattern that matches any of these.  Group names, which may occur in several, get a number
    appended; ``named_groups`` removes it."""
    joined = iter(re.split(_GROUP, alternation(found)))
    text = [next(joined)]
    for number, (name, rest) in enumerate(zip(joined, joined, strict=True)):
        text.append(f"(?P<{name}_{number}>{rest}")
    return "".join(text)


def named_groups(match: re.Match[str]) -> dict[str, str]:
    """The matched groups by the names that they have in the files, without empty ones."""
    found = match.groupdict()
    return {name.rpartition("_")[0]: value for name, value in found.items() if value}


def _without_line_breaks(pattern: str) -> str:
    """A pattern without line breaks and the white space around them."""
    return _BREAK.sub("", pattern).lstrip()
