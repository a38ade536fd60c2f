"""The effective settings for people's eyes: dotted names and values, secrets masked."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel, SecretStr

from proxy.settings.model import Settings

MASK = "********"


def effective(settings: Settings) -> list[tuple[str, str]]:
    """Every setting as (dotted name, value as TOML would nearly write it)."""
    return list(_rows("", settings))


def _rows(name: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, BaseModel):
        for field in type(value).model_fields:
            yield from _rows(f"{name}.{field}" if name else field, getattr(value, field))
    elif isinstance(value, dict):
        for key, below in value.items():
            yield from _rows(f"{name}.{key}", below)
    elif isinstance(value, tuple) and any(isinstance(item, BaseModel) for item in value):
        for index, item in enumerate(value):
            yield from _rows(f"{name}[{index}]", item)
    else:
        yield name, _toml_value(name, value)


def _toml_value(name: str, value: object) -> str:
    if value is None:
        return "not set"
    if isinstance(value, SecretStr):
        return MASK
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        if name.endswith(".key_sha256"):
            value = tuple(f"{digest[:8]}…" for digest in value)
        return "[" + ", ".join(f'"{item}"' for item in value) + "]"
    return without_credentials(value) if isinstance(value, str) else str(value)


def without_credentials(text: str) -> str:
    """The text with the user, password and query of a URL in it masked; other text as it is.

    Searches instead of parsing: a malformed URL must not leak either.  Where an @ follows a
    question mark, nobody can tell what is the password and what the query: all of it is masked.
    """
    scheme, separator, rest = text.partition("://")
    if not separator:
        return text
    secret, at, place = rest.rpartition("@")
    if "?" in secret:
        return f"{scheme}://{MASK}"
    place, question, _ = place.partition("?")
    return f"{scheme}://{MASK + at if at else ''}{place}{question}{MASK if question else ''}"
