"""All settings together, and the rules between sections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Set
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pydantic import Field, ValidationError, ValidationInfo, field_validator
from pydantic_core import InitErrorDetails, PydanticCustomError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from proxy.settings.learned import BackgroundSettings
from proxy.settings.memory import ProfileSettings, inherit, named
from proxy.settings.sections import (
    ClientSettings,
    McpSettings,
    Name,
    ServerSettings,
    SpoolSettings,
    StoreSettings,
    TenancySettings,
    UpstreamSettings,
)
from proxy.settings.upstreams import DEFAULT, ListedUpstream

Location = tuple[str | int, ...]
Problem = tuple[Location, str]
ValueT = TypeVar("ValueT")

PREFIX = "MEMORY_PROXY_"
CONFLICT = "conflict"
"""The type of errors between sections; their location is that of the section that found it,
followed by the full one."""

_CALLS_ITSELF = "is the address of this proxy itself: it would call itself"

_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost", "0.0.0.0", "::"})


class Settings(BaseSettings):
    """Every setting, checked.  ``Settings()`` are the defaults.  Can be pickled.

    A rule between sections is checked by the validator of the last of them, which sees the valid
    sections before it, so that its error is reported together with all others.
    """

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        case_sensitive=True,
        env_prefix=PREFIX,
        env_nested_delimiter="__",
    )

    server: ServerSettings = ServerSettings()
    store: StoreSettings = StoreSettings()
    spool: SpoolSettings = SpoolSettings()
    tenancy: TenancySettings = TenancySettings()
    mcp: McpSettings = McpSettings()
    background: BackgroundSettings = BackgroundSettings()
    memory: ProfileSettings = ProfileSettings()
    profiles: dict[Name, ProfileSettings] = Field(default_factory=dict)
    clients: tuple[ClientSettings, ...] = ()
    upstream: UpstreamSettings = UpstreamSettings()
    upstreams: tuple[ListedUpstream, ...] = ()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Settings made in code use only the arguments; ``load`` passes its own sources."""
        return (init_settings,)

    def profile(self, name: str) -> ProfileSettings | None:
        """The profile of that name; [memory] for ""; None where there is no such profile."""
        return self.profiles.get(name) if name else self.memory

    def with_upstream(self, listed: ListedUpstream) -> Settings:
        """The settings with one of the upstreams as [upstream]."""
        upstream = self.upstream.model_copy(update=dict(listed.reach))
        return self.model_copy(update={"upstream": upstream})

    def with_upstream_url(self, url: str) -> Settings:
        """The settings with another URL of [upstream]."""
        return self.model_copy(update={"upstream": self.upstream.model_copy(update={"url": url})})

    @property
    def schemas(self) -> frozenset[str]:
        """The schema files of all profiles, "" for a profile without one."""
        profiles = (self.memory, *self.profiles.values())
        return frozenset(profile.profile.schema for profile in profiles)

    @field_validator("profiles")
    @classmethod
    def _inherit(
        cls, profiles: dict[str, ProfileSettings], info: ValidationInfo
    ) -> dict[str, ProfileSettings]:
        memory = info.data.get("memory")
        if memory is None:
            return profiles  # [memory] itself is wrong, and that has been said
        return {name: named(inherit(memory, profile), name) for name, profile in profiles.items()}

    @field_validator("clients", "upstream", "upstreams")
    @classmethod
    def _check_rules(cls, value: ValueT, info: ValidationInfo) -> ValueT:
        problems = [
            InitErrorDetails(type=PydanticCustomError(CONFLICT, text), loc=place, input=None)
            for place, text in _RULES[str(info.field_name)](value, info.data)
        ]
        if problems:
            raise ValidationError.from_exception_data(cls.__name__, problems)
        return value


def _clients(clients: tuple[ClientSettings, ...], above: Mapping[str, Any]) -> Iterator[Problem]:
    names = Counter(client.name for client in clients)
    digests = Counter(digest for client in clients for digest in client.key_sha256)
    for index, client in enumerate(clients):
        if names[client.name] > 1:
            yield ("clients", index, "name"), f'"{client.name}" names more than one client'
        if any(digests[digest] > 1 for digest in client.key_sha256):
            yield ("clients", index, "key_sha256"), "holds a hash that is listed twice"
        for name in client.profiles:
            if name not in {"*", *above.get("profiles", client.profiles)}:
                yield ("clients", index, "profiles"), f'there is no [profiles.{name}]; "*" is all'
    if not clients and "tenancy" in above and above["tenancy"].mode == "clients":
        yield ("tenancy", "mode"), '"clients" needs at least one [[clients]]'


def _upstream(upstream: UpstreamSettings, above: Mapping[str, Any]) -> Iterator[Problem]:
    tenancy, server = above.get("tenancy"), above.get("server")
    if tenancy and tenancy.mode == "clients" and upstream.api_key is None:
        yield ("upstream", "api_key"), 'is needed with tenancy.mode = "clients"'
    if server and _is_own_address(upstream.url, server):
        yield ("upstream", "url"), _CALLS_ITSELF


def _upstreams(listed: tuple[ListedUpstream, ...], above: Mapping[str, Any]) -> Iterator[Problem]:
    tenancy, server = above.get("tenancy"), above.get("server")
    names = Counter(upstream.name for upstream in listed)
    for index, upstream in enumerate(listed):
        place: Location = ("upstreams", index)
        if names[upstream.name] > 1:
            yield (*place, "name"), f'"{upstream.name}" names more than one upstream'
        if server and _is_own_address(upstream.url, server):
            yield (*place, "url"), _CALLS_ITSELF
        for name in upstream.keys[1:]:
            yield (*place, name), f"is set beside {upstream.keys[0]}: keep one of them"
        if upstream.client_keys and upstream.keys:
            text = f"sends the clients' own keys, and {upstream.keys[0]} is set: keep one of them"
            yield (*place, "client_keys"), text
        if upstream.client_keys and tenancy and tenancy.mode == "clients":
            text = "with tenancy.mode = \"clients\" the clients' keys are this proxy's: set api_key"
            yield (*place, "client_keys"), text
    yield from _unknown_upstreams({DEFAULT, *names}, above)


def _unknown_upstreams(names: Set[str], above: Mapping[str, Any]) -> Iterator[Problem]:
    """Problems of sections that call a model and name an upstream."""
    profiles: dict[Location, ProfileSettings] = {
        ("profiles", name): each for name, each in above.get("profiles", {}).items()
    }
    if "memory" in above:
        profiles["memory",] = above["memory"]
    for place, profile in profiles.items():
        for name, chosen in profile.model_callers.items():
            part = (*place, *name.split("."))
            if chosen.upstream and chosen.upstream not in names:
                yield (*part, "upstream"), f'no [[upstreams]] has the name "{chosen.upstream}"'
            for other in ("url", "api_key") if chosen.upstream else ():
                if getattr(chosen, other):
                    yield (*part, other), "is set beside upstream: keep one of them"


def _is_own_address(url: str, server: ServerSettings) -> bool:
    there, host = urlsplit(url), server.host.lower()
    port = there.port or (443 if there.scheme == "https" else 80)
    return port == server.port and there.hostname in (_LOOPBACK if host in _LOOPBACK else {host})


_RULES: Mapping[str, Callable[[Any, Mapping[str, Any]], Iterator[Problem]]] = {
    "clients": _clients,
    "upstream": _upstream,
    "upstreams": _upstreams,
}
