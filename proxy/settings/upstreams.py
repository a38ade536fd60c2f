"""[[upstreams]]: others beside [upstream], and where their keys are read from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr, field_validator

from proxy.settings.content import content_of
from proxy.settings.sections import (
    ALLOWED_PATHS,
    Seconds,
    Secret,
    Section,
    egress_url,
    header_name,
    secret,
    upstream_url,
)

DEFAULT = "default"
"""The name of [upstream] among several."""

_NAME = re.compile(r"[a-z0-9_-]{1,64}")
_VALUE = re.compile(r"[\x21-\x7e]([\x20-\x7e\t]*[\x21-\x7e])?")  # RFC 9110 section 5.5, in ASCII
_OURS = re.compile(
    "connection|content-.*|cookie|expect|host|keep-alive|proxy-.*|te|trailer|transfer-encoding"
    "|upgrade|x-memory-.*|x-session-id|x-user-id"
)
_KEYS = frozenset({"authorization", "api-key", "x-api-key"})


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError("must be a name of the characters a-z, 0-9, _ and -, at most 64")
    if text == DEFAULT:
        raise ValueError(f'must not be "{DEFAULT}": that is [upstream]')
    return text


class ListedUpstream(Section):
    """One of [[upstreams]].  What is None is as [upstream] has it, but for keys."""

    name: Annotated[str, AfterValidator(_name)]
    url: Annotated[str, AfterValidator(upstream_url)]
    kind: Literal["openai", "anthropic", "azure"] = "openai"
    models: tuple[Annotated[str, Field(min_length=1, max_length=200)], ...] = ()
    api_key: Secret | None = None
    api_key_env: str = ""
    api_key_file: str = ""
    allowed_paths: tuple[str, ...] = ALLOWED_PATHS
    client_keys: bool = False
    headers: dict[str, SecretStr] = Field(default_factory=dict)
    max_concurrent_requests: int = Field(default=0, ge=0)
    connect_timeout: Seconds | None = None
    read_timeout: Seconds | None = None
    trust_env: bool | None = None
    ca_file: str | None = Field(default=None, min_length=1)
    proxy: Annotated[str, AfterValidator(egress_url)] | None = Field(default=None, repr=False)

    @field_validator("headers")
    @classmethod
    def _headers(cls, headers: dict[str, SecretStr]) -> dict[str, SecretStr]:
        for name, value in headers.items():
            if header_name(name).lower() in _KEYS:
                raise ValueError(f"must not hold {name}: set api_key")
            if _OURS.fullmatch(name.lower()):
                raise ValueError(f"must not hold {name}: the proxy sets it itself")
            if not _VALUE.fullmatch(value.get_secret_value()):
                raise ValueError(f"the value of {name} must be visible ASCII, and not empty")
        return {name.lower(): value for name, value in headers.items()}

    @property
    def keys(self) -> tuple[str, ...]:
        """The settings that say which key is sent."""
        named = ("api_key", "api_key_env", "api_key_file")
        return tuple(name for name in named if getattr(self, name))

    @property
    def reach(self) -> Mapping[str, object]:
        """The fields of [upstream] that it overrides."""
        names = ("connect_timeout", "read_timeout", "trust_env", "ca_file", "proxy")
        chosen = {name: getattr(self, name) for name in names}
        return {
            "url": self.url,
            "api_key": self.api_key,
            **{name: value for name, value in chosen.items() if value is not None},
        }


def with_key(upstream: ListedUpstream, environ: Mapping[str, str]) -> ListedUpstream:
    """The same with its key, read from where it is kept.  Raises ValueError, which names no key."""
    if upstream.api_key_env:
        text = environ.get(upstream.api_key_env, "").strip()
        if not text:
            raise ValueError(f"the environment has no {upstream.api_key_env}")
    elif upstream.api_key_file:
        text = content_of(upstream.api_key_file)
    else:
        return upstream
    return upstream.model_copy(update={"api_key": secret(SecretStr(text))})
