"""The sections that are not about memory.  Times are seconds, sizes are bytes."""

from __future__ import annotations

import re
from typing import Annotated, Literal, get_args
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
)
from pydantic.fields import FieldInfo

from proxy.stores.address import read_address

MIB = 1024 * 1024
DEMO = "demo"
"""In the place of the upstream's URL: the model that comes with the program, for trying it."""

_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110 section 5.6.2, token
_ENDPOINT = re.compile(
    r"(?:/chat/completions|(?:(?<=/v\d)|(?<=/openai))/(?:responses|messages|embeddings))/?$"
)
"""Ends of URLs that are no base; a gateway may give a whole API a path such as ``/embeddings``."""
_FIELD = re.compile(r"\w+(?:\.\w+)?", re.ASCII)
_ORIGIN = re.compile(r"https?://[^/?#@\s]+")
_TRUSTED = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^\s/?#@:\[\]*]+)(?::[0-9]{1,5})?")


def _may_be_switch(field: FieldInfo) -> bool:
    """Whether it is one, or a table, of which pydantic says so itself."""
    kind = field.annotation
    return bool in (kind, *get_args(kind)) or (isinstance(kind, type) and issubclass(kind, Section))


class Section(BaseModel):
    """A frozen section that rejects unknown names."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _no_switch(cls, value: object, info: ValidationInfo) -> object:
        """Reject true and false for numbers: pydantic would take true for 1."""
        if isinstance(value, bool) and not _may_be_switch(cls.model_fields[info.field_name or ""]):
            raise ValueError("must not be true or false: it is no switch")
        return value


def http_url(text: str, example: str = "http://127.0.0.1:11434/v1") -> str:
    try:
        url = urlsplit(text)
        whole = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:  # a port that is no number, or half a bracket
        whole = False
    if not whole:
        raise ValueError(f"must be a URL such as {example}")
    if re.search(r"[\s\x00-\x1f]", text):
        raise ValueError("must not hold white space")
    return text


def upstream_url(text: str) -> str:
    url = urlsplit(http_url(text))
    if url.username is not None or url.fragment:
        raise ValueError("must hold neither credentials nor a fragment; clients send their own key")
    if found := _ENDPOINT.search(url.path):
        raise ValueError(f"must be the base URL of the API: leave out {found[0]}")
    return text


def egress_url(text: str) -> str:
    return http_url(text, "http://egress.example.com:3128, of an HTTP proxy")


def _main_upstream_url(text: str) -> str:
    return text if text == DEMO else upstream_url(text)


def _store_url(text: str) -> str:
    read_address(text)
    return text


def header_name(text: str) -> str:
    if not _HEADER.fullmatch(text):
        raise ValueError("must be a header name such as X-Thread-Id")
    return text


_NO_IDS = {"authorization", "proxy-authorization", "api-key", "x-api-key", "cookie", "host"}
"""Headers that must not be aliases of ids: keys would be stored in plain text."""


def _alias(text: str) -> str:
    if text.lower() in _NO_IDS:
        raise ValueError("must not be a header of keys, or Host: what it holds is no id")
    return text


def _body_id(text: str) -> str:
    if not _FIELD.fullmatch(text):
        raise ValueError("must be a field such as prompt_cache_key, or metadata.user_id")
    return text


def _origin(text: str) -> str:
    if text != "*" and not _ORIGIN.fullmatch(text):
        raise ValueError("must be an origin such as https://chat.example.com, without a path")
    return text


def _listens_on(text: str) -> str:
    if re.search(r"[/\[\]]|^[^:]*:[^:]*$", text):
        raise ValueError("must be a name or an address alone; the port is server.port")
    return text


def _host(text: str) -> str:
    if not _TRUSTED.fullmatch(text):
        raise ValueError("must be a host such as chat.example.com or 192.168.1.5:3000")
    return text


def secret(value: SecretStr) -> SecretStr:
    if not re.fullmatch(r"[\x21-\x7e]+", value.get_secret_value()):
        raise ValueError("must be visible ASCII characters without spaces, and not empty")
    return value


def _name(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9_-]+", text):
        raise ValueError("must be a name of the characters a-z, 0-9, _ and -")
    return text


def _digest(text: str) -> str:
    if not re.fullmatch(r"[0-9A-Fa-f]{64}", text):
        raise ValueError('must be the SHA-256 of a key in hex: printf %s "$KEY" | sha256sum')
    return text.lower()


Name = Annotated[str, AfterValidator(_name)]
Secret = Annotated[SecretStr, AfterValidator(secret)]
Header = Annotated[str, AfterValidator(header_name)]
Alias = Annotated[Header, AfterValidator(_alias)]
BodyId = Annotated[str, AfterValidator(_body_id)]
Origin = Annotated[str, AfterValidator(_origin)]
Host = Annotated[str, AfterValidator(_host)]
Digest = Annotated[str, AfterValidator(_digest)]
Seconds = Annotated[float, Field(gt=0)]


class ServerSettings(Section):
    """[server]: our own socket and what we accept on it."""

    host: Annotated[str, AfterValidator(_listens_on)] = Field(default="127.0.0.1", min_length=1)
    port: int = Field(default=8080, ge=0, le=65535)
    workers: int = Field(default=1, ge=1, le=1024)
    max_body_bytes: int = Field(default=32 * MIB, ge=1)
    max_import_bytes: int = Field(default=64 * MIB, ge=1)
    max_header_bytes: int = Field(default=64 * 1024, ge=1024)
    max_held_bytes: int = Field(default=1024 * MIB, ge=0)
    body_timeout: Seconds = 30.0
    max_concurrent_requests: int = Field(default=0, ge=0)
    cors_origins: tuple[Origin, ...] = ()
    shutdown_timeout: float = Field(default=30.0, ge=0)
    admin_key: Secret | None = None
    session_aliases: tuple[Alias, ...] = (
        "X-Conversation-Id",
        "X-Thread-Id",
        "X-OpenWebUI-Chat-Id",
        "Helicone-Session-Id",
        "X-Litellm-Session-Id",
        "X-Sm-Conversation-Id",
        "X-Claude-Code-Session-Id",
        "Thread-Id",
        "Session-Id",
        "X-Opencode-Session",
    )
    user_aliases: tuple[Alias, ...] = (
        "X-OpenWebUI-User-Id",
        "Helicone-User-Id",
        "X-Sm-User-Id",
    )
    body_session_ids: tuple[BodyId, ...] = ()
    address_file: str | None = Field(default=None, min_length=1)
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["human", "json"] = "human"

    @field_validator("log_level", mode="before")
    @classmethod
    def _lower_case(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value


class UpstreamSettings(Section):
    """[upstream]: where requests go."""

    url: Annotated[str, AfterValidator(_main_upstream_url)] = "https://api.openai.com/v1"
    client: Literal["direct", "aiohttp", "httpx"] = "direct"
    api_key: Secret | None = None
    connect_timeout: Seconds = 5.0
    read_timeout: Seconds = 600.0
    trust_env: bool = False
    ca_file: str | None = Field(default=None, min_length=1)
    proxy: Annotated[str, AfterValidator(egress_url)] | None = Field(default=None, repr=False)
    retry_too_long: bool = True


class StoreSettings(Section):
    """[store]: where memory lives."""

    url: Annotated[str, AfterValidator(_store_url)] = Field(
        default="sqlite:///data/memory.db", repr=False, validate_default=True
    )
    timeout: Seconds = 0.25
    commit_timeout: Seconds | None = None
    on_failure: Literal["open", "closed"] = "open"
    wait_replicas: int = Field(default=0, ge=0)

    @property
    def commit_limit(self) -> float:
        """``commit_timeout``, else what suits the back end: SQLite's writers queue for the file."""
        if self.commit_timeout is not None:
            return self.commit_timeout
        return 2.5 if read_address(self.url).kind == "sqlite" else 0.5


class SpoolSettings(Section):
    """[spool]: where exchanges wait while the store is away."""

    path: str = Field(default="./data/spool.db", min_length=1)
    max_bytes: int = Field(default=1024 * MIB, ge=MIB)


class TenancySettings(Section):
    """[tenancy]: whose memory a request means."""

    mode: Literal["key", "single", "clients"] = "key"
    require_user: bool = False
    trusted_hosts: tuple[Host, ...] = ()


class McpSettings(Section):
    """[mcp]: memory as tools of agents, at /mcp."""

    enabled: bool = False
    max_concurrent_calls: int = Field(default=32, ge=1)


ALLOWED_PATHS = (
    "chat/completions",
    "completions",
    "messages",
    "responses",
    "embeddings",
    "models",
)
"""The default of paths below /v1 that a client may use, and that an upstream's key is used for."""


class ClientSettings(Section):
    """One of [[clients]]: a name, the hashes of its keys, and what they may do."""

    name: Name
    key_sha256: tuple[Digest, ...] = Field(min_length=1, repr=False)
    profiles: tuple[str, ...] = ("*",)
    allowed_paths: tuple[str, ...] = ALLOWED_PATHS
    signing_secret: Secret | None = None
