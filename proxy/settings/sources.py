"""Where settings come from: raw values by place, each with the name its author knows it by.

Knows the spelling of flags, variables and TOML, and which places exist; must not know which values
are right.
"""

from __future__ import annotations

import json
import re
import tomllib
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Union, get_args, get_origin

from pydantic import BaseModel

from proxy.settings.model import Location, Settings

PREFIX = "MEMORY_PROXY_"
CONFIG = "MEMORY_PROXY_CONFIG"

SHORT_NAMES: Mapping[str, Location] = {
    "UPSTREAM": ("upstream", "url"),
    "STORE": ("store", "url"),
    "HOST": ("server", "host"),
    "PORT": ("server", "port"),
    "WORKERS": ("server", "workers"),
    "ADMIN_KEY": ("server", "admin_key"),
    "UPSTREAM_API_KEY": ("upstream", "api_key"),
}
FLAGS: Mapping[str, str] = {
    "server.host": "--host",
    "server.port": "--port",
    "server.workers": "--workers",
    "server.log_level": "--log-level",
    "upstream.url": "--upstream",
    "store.url": "--store",
}

# Kubernetes describes a Service called memory-proxy to every pod in variables of this form.
_KUBERNETES = re.compile(r"SERVICE_(HOST|PORT)(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_\w+)?")
_KUBERNETES_PORT = re.compile(r"(tcp|udp|sctp)://")


class SettingsError(Exception):
    """The configuration is wrong.  ``problems`` has one line each, all there are."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__(problems)
        self.problems = problems

    def __str__(self) -> str:
        return "\n".join(self.problems)


@dataclass(slots=True)
class Source:
    """Values by place, how their author calls those places, and what could not even be read."""

    values: dict[Location, object] = field(default_factory=dict)
    names: dict[Location, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def add(self, place: Location, name: str, value: object) -> None:
        self.values[place] = value
        self.names[place] = name


def command_line(overrides: Mapping[str, object]) -> Source:
    """Dotted names and values; None is a flag that was not given."""
    source = Source()
    for dotted, value in overrides.items():
        if value is not None:
            source.add(tuple(dotted.split(".")), FLAGS.get(dotted, dotted), value)
    return source


def file(path: Path | None) -> Source:
    source = Source()
    if path is None:
        return source
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        source.problems.append(f"--config {path}: {error.strerror or error}")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        source.problems.append(f"--config {path}: is not TOML: {error}")
    else:
        for place, value in _leaves(tree):
            source.add(place, ".".join(map(str, place)), value)
    return source


def environment(environ: Mapping[str, str]) -> Source:
    """The variables under our prefix.  Empty ones count as not set, as compose files write them."""
    source = Source()
    for variable in sorted(environ):
        name, text = variable.removeprefix(PREFIX), environ[variable].strip()
        if not variable.startswith(PREFIX) or variable == CONFIG or not text:
            continue
        if _KUBERNETES.fullmatch(name) or (name == "PORT" and _KUBERNETES_PORT.match(text)):
            continue
        _read_variable(source, variable, name, text)
    return source


def _read_variable(source: Source, variable: str, name: str, text: str) -> None:
    place = SHORT_NAMES.get(name) or tuple(name.lower().split("__"))
    kind = _kind(place)
    if kind is None:
        source.problems.append(f"{variable}: unknown setting{_hint(variable)}")
    elif place in source.values and source.values[place] != text:
        source.problems.append(f"{variable}: contradicts {source.names[place]}")
    elif kind != "json":
        source.add(place, variable, text)
    else:
        _read_json(source, variable, place, text)


def _read_json(source: Source, variable: str, place: Location, text: str) -> None:
    try:
        source.add(place, variable, json.loads(text))
    except json.JSONDecodeError as error:
        source.problems.append(f"{variable}: must be JSON: {error}")


def _leaves(tree: Mapping[str, object], above: Location = ()) -> Iterator[tuple[Location, object]]:
    """Tables are places, all else is a value; an empty table is one too, so that it is checked."""
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, (*above, key))
        else:
            yield (*above, key), value


def children(place: Location) -> Mapping[str, object] | None:
    """The settings at a place with their types; None where a value is or nothing at all."""
    kind: object = Settings
    for step in place:
        kind = _child(kind, step)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {name: info.annotation for name, info in kind.model_fields.items()}
    return None


def _child(kind: object, step: str | int) -> object:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        found = kind.model_fields.get(str(step))
        return found.annotation if found else None
    if get_origin(kind) is dict:
        return get_args(kind)[1]
    if get_origin(kind) is tuple and isinstance(step, int):
        return get_args(kind)[0]
    return None


def _kind(place: Location) -> str | None:
    """How a variable for this place is written: "text" or "json"; None: there is no such place."""
    above = children(place[:-1])
    found = above.get(str(place[-1])) if above else None
    if found is None or (isinstance(found, type) and issubclass(found, BaseModel)):
        return None
    if any(get_origin(option) in (tuple, dict) for option in _options(found)):
        return "json" if get_origin(found) is not dict else None
    return "text"


def _options(kind: object) -> tuple[object, ...]:
    if get_origin(kind) is Annotated:
        return _options(get_args(kind)[0])
    if get_origin(kind) in (Union, types.UnionType):
        return get_args(kind)
    return (kind,)


def _variables(place: Location = ()) -> Iterator[str]:
    for name in children(place) or ():
        if children((*place, name)) is None:
            yield PREFIX + "__".join(map(str, (*place, name))).upper()
        else:
            yield from _variables((*place, name))


def _hint(variable: str) -> str:
    known = [*(PREFIX + name for name in SHORT_NAMES), CONFIG, *_variables()]
    close = get_close_matches(variable, known, n=1)
    return f"; did you mean {close[0]}?" if close else ""
