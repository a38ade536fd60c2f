"""All settings together, and the rules between sections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, NamedTuple
from urllib.parse import urlsplit

from pydantic import Field, ValidationInfo, field_validator, model_validator

from proxy.settings.memory import ProfileSettings, inherit
from proxy.settings.sections import (
    ClientSettings,
    Section,
    ServerSettings,
    SpoolSettings,
    StoreSettings,
    TenancySettings,
    UpstreamSettings,
)

Location = tuple[str | int, ...]
Problem = tuple[Location, str]
ProfileName = Annotated[str, Field(pattern=r"^[a-z0-9_-]+$")]

_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost", "0.0.0.0", "::"})


class Settings(Section):
    """Every setting, checked.  ``Settings()`` are the defaults.  Can be pickled."""

    server: ServerSettings = ServerSettings()
    upstream: UpstreamSettings = UpstreamSettings()
    store: StoreSettings = StoreSettings()
    spool: SpoolSettings = SpoolSettings()
    tenancy: TenancySettings = TenancySettings()
    clients: tuple[ClientSettings, ...] = ()
    memory: ProfileSettings = ProfileSettings()
    profiles: dict[ProfileName, ProfileSettings] = Field(default_factory=dict)

    def profile(self, name: str | None) -> ProfileSettings | None:
        """The profile of that name; [memory] for None; None where there is no such profile."""
        return self.memory if name is None else self.profiles.get(name)

    @field_validator("profiles", mode="after")
    @classmethod
    def _inherit(
        cls, profiles: dict[str, ProfileSettings], info: ValidationInfo
    ) -> dict[str, ProfileSettings]:
        memory = info.data.get("memory")
        if not isinstance(memory, ProfileSettings):
            return profiles  # [memory] itself is wrong, and that has been said
        return {name: inherit(memory, profile) for name, profile in profiles.items()}

    @model_validator(mode="after")
    def _agree(self) -> Settings:
        problems = list(conflicts(self, broken=()))
        if problems:
            raise ValueError(
                "; ".join(f"{'.'.join(map(str, place))}: {text}" for place, text in problems)
            )
        return self


class _Rule(NamedTuple):
    sections: frozenset[str]
    check: Callable[[Settings], Iterator[Problem]]


def conflicts(settings: Settings, broken: Iterable[str]) -> Iterator[Problem]:
    """What is wrong between sections that are right in themselves.

    Rules that look at a ``broken`` section are left out: its values are not the user's.
    """
    skip = frozenset(broken)
    for rule in _RULES:
        if not rule.sections & skip:
            yield from rule.check(settings)


def _clients_exist(settings: Settings) -> Iterator[Problem]:
    if settings.tenancy.mode == "clients" and not settings.clients:
        yield ("tenancy", "mode"), '"clients" needs at least one [[clients]]'


def _clients_have_a_key_to_spend(settings: Settings) -> Iterator[Problem]:
    if settings.tenancy.mode == "clients" and settings.upstream.api_key is None:
        yield ("upstream", "api_key"), 'is needed with tenancy.mode = "clients"'


def _clients_are_distinct(settings: Settings) -> Iterator[Problem]:
    names = Counter(client.name for client in settings.clients)
    digests = Counter(digest for client in settings.clients for digest in client.key_sha256)
    for index, client in enumerate(settings.clients):
        if names[client.name] > 1:
            yield ("clients", index, "name"), f'"{client.name}" names more than one client'
        if any(digests[digest] > 1 for digest in client.key_sha256):
            yield ("clients", index, "key_sha256"), "holds a hash that is listed twice"


def _clients_name_profiles(settings: Settings) -> Iterator[Problem]:
    for index, client in enumerate(settings.clients):
        for name in client.profiles:
            if name != "*" and name not in settings.profiles:
                yield ("clients", index, "profiles"), f'there is no [profiles.{name}]; "*" is all'


def _upstream_is_somebody_else(settings: Settings) -> Iterator[Problem]:
    url, server = urlsplit(settings.upstream.url), settings.server
    port = url.port or (443 if url.scheme == "https" else 80)
    host = server.host.lower()
    here = _LOOPBACK if host in _LOOPBACK else {host}
    if port == server.port and url.hostname in here:
        yield ("upstream", "url"), "is the address of this proxy itself: it would call itself"


_RULES = (
    _Rule(frozenset({"tenancy", "clients"}), _clients_exist),
    _Rule(frozenset({"tenancy", "upstream"}), _clients_have_a_key_to_spend),
    _Rule(frozenset({"clients"}), _clients_are_distinct),
    _Rule(frozenset({"clients", "profiles"}), _clients_name_profiles),
    _Rule(frozenset({"upstream", "server"}), _upstream_is_somebody_else),
)
