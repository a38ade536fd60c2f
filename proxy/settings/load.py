"""The sources merged, checked, and every problem told at once, by the name its author used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from proxy.settings.model import Location, Settings, conflicts
from proxy.settings.sources import (
    CONFIG,
    SettingsError,
    Source,
    children,
    command_line,
    environment,
    file,
)

# Kinds of errors whose input is a plain number, word or switch: safe and helpful to repeat.
_REPEATED = ("int_", "float_", "bool_", "literal_", "greater_", "less_", "finite_")


def load(
    config: Path | None = None,
    overrides: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """The settings of this start: command line, then environment, then file, then defaults.

    ``overrides`` has dotted names (``server.port``).  ``config`` None means the file that the
    environment names, if any.  Raises SettingsError with all problems there are.
    """
    environ = environ or {}
    if config is None and environ.get(CONFIG):
        config = Path(environ[CONFIG])
    sources = (file(config), environment(environ), command_line(overrides or {}))
    problems = [problem for source in sources for problem in source.problems]
    sections, told = _check(_tree(sources))
    names = {place: name for source in sources for place, name in source.names.items()}
    problems += [f"{_name(place, names)}: {text}" for place, text in told]
    if problems:
        raise SettingsError(tuple(dict.fromkeys(problems)))
    return Settings.model_validate(sections)


def _tree(sources: Iterable[Source]) -> dict[str, object]:
    tree: dict[str, object] = {}
    for source in sources:
        for place, value in source.values.items():
            _put(tree, place, value)
    return tree


def _put(tree: dict[str, object], place: Location, value: object) -> None:
    """A later source replaces values; what stands where a table belongs gives way to it."""
    for step in map(str, place[:-1]):
        below = tree.get(step)
        if not isinstance(below, dict):
            below = tree[step] = {}
        tree = below
    tree[str(place[-1])] = value


def _check(tree: Mapping[str, object]) -> tuple[dict[str, object], list[tuple[Location, str]]]:
    """The sections that are right, and what is wrong with and between them.

    Section by section, so that one wrong value does not hide what is wrong elsewhere.
    """
    good: dict[str, object] = {}
    told: list[tuple[Location, str]] = []
    for name, value in tree.items():
        kind = (children(()) or {}).get(name)
        if kind is None:
            told.append(((name,), _unknown((name,))))
            continue
        try:
            good[name] = _validated(kind, value)
        except ValidationError as error:
            told.extend(_told(name, error.errors(include_url=False)))
    broken = tree.keys() - good.keys()
    told.extend(conflicts(Settings.model_construct(**good), broken))  # type: ignore[arg-type]
    return good, told


def _validated(kind: Any, value: object) -> object:
    adapter: TypeAdapter[object] = TypeAdapter(kind)
    return adapter.validate_python(value)


def _told(section: str, errors: Iterable[ErrorDetails]) -> Iterator[tuple[Location, str]]:
    for error in errors:
        place: Location = (section, *(step for step in error["loc"] if step != "[key]"))
        yield place, _sentence(place, error)


def _sentence(place: Location, error: ErrorDetails) -> str:
    kind, message = error["type"], error["msg"]
    if kind == "extra_forbidden":
        return _unknown(place)
    if kind in ("model_type", "dict_type"):
        return "must be a table"
    if kind == "missing":
        return "is missing"
    if error["loc"] and error["loc"][-1] == "[key]":
        return "must be a name of the characters a-z, 0-9, _ and -"
    message = message.removeprefix("Value error, ").replace("Input should be", "must be")
    message = message[0].lower() + message[1:]
    return f"{message} (it is {error['input']!r})" if kind.startswith(_REPEATED) else message


def _unknown(place: Location) -> str:
    known = children(place[:-1]) or {}
    close = get_close_matches(str(place[-1]), list(known), n=1)
    if not close:
        return "unknown setting"
    return f"unknown setting; did you mean {'.'.join(map(str, (*place[:-1], close[0])))}?"


def _name(place: Location, names: Mapping[Location, str]) -> str:
    """What the author of the value at ``place`` calls it: the longest part of it that was named."""
    for length in range(len(place), 0, -1):
        name = names.get(place[:length])
        if name is not None:
            return name + "".join(
                f"[{step}]" if isinstance(step, int) else f".{step}" for step in place[length:]
            )
    return ".".join(map(str, place))
