"""The sources of settings for pydantic-settings, with the names of settings in each.

Knows the spelling of flags, variables and TOML; must not know which values are valid.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_settings import EnvSettingsSource, InitSettingsSource, TomlConfigSettingsSource

from proxy.settings.content import content_of
from proxy.settings.display import effective
from proxy.settings.model import PREFIX, Location, Settings

CONFIG = f"{PREFIX}CONFIG"

DEFAULTS = f"{PREFIX}DEFAULTS"
"""Names a file with the lowest precedence, for example a container image's own defaults."""

FROM_FILE = "_FILE"
"""Suffix of variables that name a file with the value, like secrets of containers."""

NOT_SETTINGS = frozenset(
    {CONFIG, DEFAULTS, *(f"{PREFIX}{name}" for name in ("URL", "KEY", "KEY_FILE", "TENANT"))}
)
"""Variables that are not settings: the files, and how commands reach a running proxy."""

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
    "tenancy.mode": "--tenancy",
}

# Kubernetes describes a Service called memory-proxy to every pod in variables of this form.
_KUBERNETES = re.compile(r"SERVICE_(HOST|PORT)(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_\w+)?")
_KUBERNETES_PORT = re.compile(r"(tcp|udp|sctp)://")


class CommandLine(InitSettingsSource):
    """Dotted names and values; None is a flag that was not given."""

    def __init__(self, overrides: Mapping[str, object]) -> None:
        self.names: dict[Location, str] = {}
        tree: dict[str, Any] = {}
        for dotted, value in overrides.items():
            if value is not None:
                *above, last = dotted.split(".")
                table = tree
                for step in above:
                    table = table.setdefault(step, {})
                table[last] = value
                self.names[(*above, last)] = FLAGS.get(dotted, dotted)
        super().__init__(Settings, tree)


class Environment(EnvSettingsSource):
    """The variables under our prefix.  Empty ones count as not set, as compose files write them."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.names: dict[Location, str] = {}
        self.problems: list[str] = []
        self._environ = environ
        super().__init__(Settings)

    def _load_env_vars(self) -> Mapping[str, str | None]:
        """The variables with full names; unknown ones are reported instead of ignored."""
        found: dict[str, str | None] = {}
        for variable in sorted(self._environ):
            name, text = variable.removeprefix(PREFIX), self._environ[variable].strip()
            if not variable.startswith(PREFIX) or variable in NOT_SETTINGS or not text:
                continue
            if _KUBERNETES.fullmatch(name) or (name == "PORT" and _KUBERNETES_PORT.match(text)):
                continue
            place = _place(name)
            if place is None and name.endswith(FROM_FILE):
                place = _place(name.removesuffix(FROM_FILE))
                text = self._content(variable, text) if place else ""
            if place is None:
                self.problems.append(f"{variable}: unknown setting{_hint(name)}")
            elif found.get(full := _full(place), text) != text:
                self.problems.append(f"{variable}: contradicts {self.names[place]}")
            elif text:
                found[full], self.names[place] = text, variable
        return found

    def _content(self, variable: str, path: str) -> str:
        """The content of the file that a variable names; "" after reporting a problem."""
        try:
            return content_of(path)
        except ValueError as error:
            self.problems.append(f"{variable}: {error}")
            return ""

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: Any) -> Any:
        """Decode lists, and tables that are values and not sections, from JSON.

        Invalid ones stay text, so that validation reports them with all other problems.
        """
        try:
            decoded = super().decode_complex_value(field_name, field, value)
        except ValueError:
            return value
        wanted = list if field_name != "parameters" else dict
        return decoded if isinstance(decoded, wanted) else value


class ConfigFile(TomlConfigSettingsSource):
    """Raises OSError, tomllib.TOMLDecodeError, UnicodeDecodeError."""

    def __init__(self, path: Path) -> None:
        # The library takes Path(".") for "no file was named".
        super().__init__(Settings, path.absolute())

    def _read_files(self, files: Any, deep_merge: bool = False) -> dict[str, Any]:
        """Unlike the library: a missing file is an error, and pipes can be read."""
        return self._read_file(files)

    def _read_file(self, file_path: Any) -> dict[str, Any]:
        """Accepts a byte order mark, which editors on Windows write and TOML does not allow."""
        return tomllib.loads(Path(file_path).read_bytes().decode("utf-8-sig"))

    @property
    def not_tables(self) -> list[Location]:
        """Places with a value instead of a table, which sources above would hide."""
        return list(_not_tables(self.toml_data))


def _not_tables(found: Mapping[str, Any], above: Location = ()) -> Iterator[Location]:
    for name, value in found.items():
        place = (*above, name)
        if isinstance(value, dict):
            yield from _not_tables(value, place)
        elif settings_in(place) or settings_in((*place, name)):
            yield place


def settings_in(place: Location) -> Mapping[str, FieldInfo]:
    """The settings in the table at ``place``; none where there is no table."""
    kind: Any = Settings
    for step in place:
        if _is_table(kind):
            field = kind.model_fields.get(step)
            kind = field.annotation if field else None
        elif isinstance(step, int) == (get_origin(kind) is tuple):  # a client's or a profile's
            kind = next(filter(_is_table, get_args(kind)), None)
    return kind.model_fields if _is_table(kind) else {}


def _place(name: str) -> Location | None:
    """The setting that a variable means, by its name without our prefix."""
    place = SHORT_NAMES.get(name) or tuple(name.lower().split("__"))
    known = str(place[-1]) in settings_in(place[:-1]) and not settings_in(place)
    return place if known else None


def _full(place: Location) -> str:
    return PREFIX + "__".join(map(str, place))


def _is_table(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _hint(name: str) -> str:
    every = (dotted.upper().replace(".", "__") for dotted, _ in effective(Settings()))
    close = get_close_matches(name, ["CONFIG", *SHORT_NAMES, *every], n=1)
    return f"; did you mean {PREFIX}{close[0]}?" if close else ""
