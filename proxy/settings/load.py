"""Merges and checks the sources, and reports all problems, by the names used in each source."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import PydanticBaseSettingsSource

from proxy.settings.model import CONFLICT, Location, Settings
from proxy.settings.sources import (
    CONFIG,
    DEFAULTS,
    CommandLine,
    ConfigFile,
    Environment,
    settings_in,
)
from proxy.settings.upstreams import with_key

# Types of errors whose input is a number, word or switch and so safe to show.
_SHOWN_INPUTS = ("int_", "float_", "bool_", "literal_", "greater_", "less_", "finite_")

_TIME = re.compile(r"timeout$|seconds$|^ttl$")
"""Names of settings that are times."""

_SENTENCES = {
    "dict_type": "must be a table",
    "tuple_type": 'must be a list; in the environment that is JSON such as ["a", "b"]',
    "missing": "is missing",
    "too_short": "must list at least one",
    "string_too_short": "must not be empty",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "must be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "must be a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "must be true or false"),
}


class SettingsError(Exception):
    """The configuration is invalid; ``problems`` lists all problems, one line each."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__(problems)
        self.problems = problems

    def __str__(self) -> str:
        return "\n".join(self.problems)


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
    flags, variables = CommandLine(overrides or {}), Environment(environ)
    sources: list[PydanticBaseSettingsSource] = [flags, variables]
    problems = variables.problems
    files = {"--config": config or environ.get(CONFIG), DEFAULTS: environ.get(DEFAULTS)}
    for named_by, path in files.items():
        sources += _file(named_by, Path(path), problems) if path else []
    try:
        settings = Settings(_build_sources=(tuple(sources), {}))  # type: ignore[call-arg]
    except ValidationError as error:
        names = variables.names | flags.names
        problems += (_describe(details, names) for details in _without_follow_ups(error))
    else:
        settings = _with_keys(settings, environ, problems)
    if problems:
        raise SettingsError(tuple(dict.fromkeys(problems)))
    return settings


def _with_keys(settings: Settings, environ: Mapping[str, str], problems: list[str]) -> Settings:
    """The settings with the upstreams' keys from where they are kept."""
    if not settings.upstreams:
        return settings
    found = []
    for index, upstream in enumerate(settings.upstreams):
        try:
            found.append(with_key(upstream, environ))
        except ValueError as error:
            problems.append(f"upstreams[{index}].{upstream.keys[0]}: {error}")
    return settings.model_copy(update={"upstreams": tuple(found)})


def _file(named_by: str, path: Path, problems: list[str]) -> list[PydanticBaseSettingsSource]:
    """The file as a source; none, and a problem told, where it cannot be read."""
    try:
        file = ConfigFile(path)
        problems += (f"{_name(place, {})}: {_table(place)}" for place in file.not_tables)
        return [file]
    except OSError as error:
        problems.append(f"{named_by} {path}: {error.strerror or error}")
    except tomllib.TOMLDecodeError as error:
        problems.append(f"{named_by} {path}: is not TOML: {_not_toml(str(error))}")
    except UnicodeDecodeError:
        problems.append(f"{named_by} {path}: is not UTF-8 text: save it as such")
    return []


def _not_toml(message: str) -> str:
    """What the parser says, with what to do about the mistakes that people make most."""
    if twice := re.match(r"Cannot declare \((.+?),?\) twice", message):
        name = twice[1].replace("'", "").replace(", ", ".")
        return f"[{name}] stands there twice: put all of it below one{message[twice.end() :]}"
    if message.startswith("Invalid value"):
        return f"{message}: text stands in quotes, and true and false are written small"
    return message


def _without_follow_ups(error: ValidationError) -> list[ErrorDetails]:
    """The errors without those of lists that are too short because of what is wrong in them."""
    found = error.errors(include_url=False)
    lists = {each["loc"][:-1] for each in found}
    return [each for each in found if each["type"] != "too_short" or each["loc"] not in lists]


def _describe(error: ErrorDetails, names: Mapping[Location, str]) -> str:
    found = error["loc"][1:] if error["type"] == CONFLICT else error["loc"]
    place = tuple(step for step in found if step != "[key]")
    return f"{_name(place, names)}: {_sentence(place, error)}"


def _sentence(place: Location, error: ErrorDetails) -> str:
    kind = error["type"]
    if kind == "extra_forbidden":
        return _unknown(place)
    if kind == "model_type" or (kind == "tuple_type" and settings_in((*place, 0))):
        return _table(place)
    message = _SENTENCES.get(kind) or _rephrase(error["msg"])
    if not kind.startswith(_SHOWN_INPUTS):
        return message
    unit = "; it is in seconds" if _TIME.search(str(place[-1])) else ""
    return f"{message} (it is {error['input']!r}{unit})"


def _table(place: Location) -> str:
    """How a section is written, or a list of them."""
    if settings_in((*place, 0)):
        return f"must be a list; write [[{place[-1]}]], in the environment JSON"
    if "enabled" not in settings_in(place):
        return "must be a table"
    return f"must be a table: write [{_name(place, {})}], and enabled = true or false below it"


def _rephrase(message: str) -> str:
    message = message.removeprefix("Value error, ").replace("Input should be", "must be")
    return message[0].lower() + message[1:]


def _unknown(place: Location) -> str:
    below = [top for top in settings_in(()) if str(place[0]) in settings_in((top,))]
    if len(place) == 1 and below:
        return f"unknown setting; did you mean {below[0]}.{place[0]}?"
    close = get_close_matches(str(place[-1]), settings_in(place[:-1]), n=1)
    if not close:
        return "unknown setting"
    return f"unknown setting; did you mean {_name((*place[:-1], close[0]), {})}?"


def _name(place: Location, names: Mapping[Location, str]) -> str:
    """The name of ``place`` in its source, by the longest prefix that the source names."""
    above = next((n for n in range(len(place), 0, -1) if place[:n] in names), 0)
    name = names.get(place[:above], "")
    for step in place[above:]:
        name += f"[{step}]" if isinstance(step, int) else f".{step}"
    return name.removeprefix(".")
