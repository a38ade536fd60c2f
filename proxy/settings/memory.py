"""[memory], its parts, and how [profiles.NAME] inherits from it."""

from __future__ import annotations

import re
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, Field, field_validator

from proxy.settings.sections import Section

SectionT = TypeVar("SectionT", bound=Section)


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"must be a regular expression: {error}") from error
    return text


class Later(Section):
    """A part of memory that has its names already and cannot be switched on yet."""

    enabled: bool = False

    @field_validator("enabled", mode="after")
    @classmethod
    def _refuse(cls, value: bool) -> bool:
        if value:
            raise ValueError(f"memory.{cls.__name__.lower()} is not available in this version")
        return value


class Summary(Later):
    max_tokens: int = Field(default=1000, ge=1)


class Recall(Later):
    max_tokens: int = Field(default=1500, ge=1)
    scope: Literal["user", "session"] = "user"


class Facts(Later):
    pass


class Profile(Later):
    pass


class Episodes(Later):
    pass


class Instructions(Later):
    pass


class Tools(Later):
    pass


class ProfileSettings(Section):
    """One profile: how memory is made from history.  [memory] is the default one."""

    window: Literal["all", "message_window", "token_window", "none"] = "token_window"
    max_tokens: int = Field(default=8000, ge=1)
    max_messages: int = Field(default=40, ge=1)
    evict_to: float = Field(default=0.7, gt=0, le=1)
    start_on_user: bool = True
    remember_system: bool = True
    client_history: Literal["auto", "full", "delta"] = "auto"
    side_requests: tuple[Annotated[str, AfterValidator(_pattern)], ...] = ("^### Task:",)
    on_disconnect: Literal["cancel", "drain"] = "cancel"
    block_placement: Literal["merge", "separate"] = "merge"
    max_inline_media_bytes: int = Field(default=65536, ge=0)
    ttl: int = Field(default=0, ge=0)
    summary: Summary = Summary()
    recall: Recall = Recall()
    facts: Facts = Facts()
    profile: Profile = Profile()
    episodes: Episodes = Episodes()
    instructions: Instructions = Instructions()
    tools: Tools = Tools()


def inherit(base: SectionT, over: SectionT) -> SectionT:
    """``base`` with all that ``over`` sets itself, field by field, parts included."""
    update: dict[str, object] = {}
    for name in over.model_fields_set:
        ours, theirs = getattr(base, name), getattr(over, name)
        update[name] = inherit(ours, theirs) if isinstance(theirs, Section) else theirs
    return base.model_copy(update=update)
