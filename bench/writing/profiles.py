"""The proxy's configuration: profiles that differ in what a model writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from proxy.gateway.context import reserved_tokens
from proxy.settings import ProfileSettings
from proxy.settings.memory import inherit

# The budget of a day ends no measurement.
BACKGROUND = "[background]\ntokens_per_day = 0\n"

_WRITER = """
[profiles.{profile}.{feature}]
enabled = true
model = "{feature}"
url = "{url}/v1"
api_key = "bench"
{more}
"""

ALL: Mapping[str, str] = {name: "" for name in ProfileSettings().writers} | {
    "episodes": "by_model = true"
}


@dataclass(frozen=True, slots=True)
class Profile:
    """``features`` by name, each with further settings as TOML.

    ``tokens`` is what all memory may take.
    """

    name: str
    features: Mapping[str, str]
    recall: bool = True
    tools: bool = False
    tokens: int = ProfileSettings().max_tokens

    def lines(self, writers: str) -> Iterator[str]:
        """TOML; the models are asked at ``writers``."""
        yield f"[profiles.{self.name}]\nmax_tokens = {self.tokens}\n"
        yield f"[profiles.{self.name}.recall]\nenabled = {str(self.recall).lower()}\n"
        yield f"[profiles.{self.name}.tools]\nenabled = {str(self.tools).lower()}\n"
        for feature, more in self.features.items():
            yield _WRITER.format(profile=self.name, feature=feature, url=writers, more=more)


def roomy(name: str, features: Mapping[str, str], *, recall: bool) -> Profile:
    """With as much room more as its features may take: the window is the one of all others."""
    enabled = {feature: {"enabled": True} for feature in features}
    off = ProfileSettings()
    on = inherit(off, ProfileSettings.model_validate(enabled))
    more = reserved_tokens(on) - reserved_tokens(off)
    return Profile(name, features, recall, tokens=off.max_tokens + more)


def configured(folder: Path, writers: str, *profiles: Profile) -> Path:
    """The file of a configuration with these profiles."""
    path = folder / f"{profiles[0].name}.toml"
    lines = (line for profile in profiles for line in profile.lines(writers))
    path.write_text("".join((BACKGROUND, *lines)), encoding="utf-8")
    return path
