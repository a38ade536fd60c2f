"""What the patterns of all languages share, and how they are put together."""

from __future__ import annotations

import re
from typing import NamedTuple

START = r"(?:^\W*|[,;:،，；：–—]\s*|\s-\s)"
"""Where an order can begin: with the sentence, or after a comma and the like."""


class Patterns(NamedTuple):
    """How people of some languages say it; each is searched in one sentence, in verbose syntax.

    A text without any of the cues, which are in small letters, holds none of the rest: orders to
    the assistant, preferences, leanings (preferences said softly, or of the moment), and
    withdrawals of what was said before.
    """

    cues: tuple[str, ...]
    orders: tuple[str, ...]
    preferences: tuple[str, ...]
    leanings: tuple[str, ...]
    withdrawals: tuple[str, ...]


def either(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """One pattern that is found where any of these is."""
    return re.compile("|".join(f"(?:{p})" for p in patterns), re.IGNORECASE | re.VERBOSE)
