"""Made text with the statistics of talk: Zipf's law, sessions with topics, lengths of messages.

The same seed makes the same text.  The words mean nothing; the most frequent ones are English
function words, so that stop words are as frequent as they really are.  Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

WORDS = 30_000
EXPONENT, OFFSET = 1.07, 2.7
"""Of the Zipf-Mandelbrot law: frequency falls with (rank + offset) to the exponent."""

TOPIC = 40
"""Words that a session comes back to."""
ON_TOPIC = 0.2
"""The share of its words that are such ones."""

MEDIAN_LENGTH, SPREAD = 18, 0.8
"""Words of a message: log-normal, with many short ones and a few of some hundred."""
MAX_CHARACTERS = 400

_FUNCTION = """
    the i to and a of you it in is that for my on was have with me this but be so we at not are
    do what like just as your or about if they can one all there from had will up out when would
    time know how get some then more no he she them really been were her his an has by
"""
FUNCTION = tuple(_FUNCTION.split())


class Talk:
    """What people say; each session begins anew, with its own topic."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._words = _vocabulary(self._random)
        weights = (np.arange(WORDS) + 1 + OFFSET) ** -EXPONENT
        self._bounds = np.cumsum(weights / weights.sum())

    def session(self, messages: int) -> list[str]:
        """The texts of a session."""
        topic = self._random.integers(len(FUNCTION), WORDS // 3, TOPIC)
        return [self._message(topic) for _ in range(messages)]

    def question(self, text: str) -> str:
        """A question about a message: a few of its words that say something."""
        said = [word for word in text.split() if word not in FUNCTION] or text.split()
        count = min(len(said), int(self._random.integers(2, 6)))
        chosen = self._random.choice(len(said), count, replace=False)
        return f"What did I tell you about {' '.join(said[at] for at in chosen)}?"

    def _message(self, topic: NDArray[np.int64]) -> str:
        length = int(self._random.lognormal(np.log(MEDIAN_LENGTH), SPREAD))
        length = min(max(3, length), MAX_CHARACTERS)
        ranks = np.searchsorted(self._bounds, self._random.random(length)).clip(max=WORDS - 1)
        on_topic = self._random.random(length) < ON_TOPIC
        ranks[on_topic] = self._random.choice(topic, int(on_topic.sum()))
        return " ".join(self._words[rank] for rank in ranks)


def _vocabulary(random: np.random.Generator) -> Sequence[str]:
    """Words by rank: function words, then made ones of two or three syllables, shuffled."""
    syllables = ["".join(each) for each in product("bdfgklmnprst", "aeiou", ("", "n", "r"))]
    shapes = random.integers(0, len(syllables), (2 * WORDS, 3))
    long = random.random(2 * WORDS) < 0.6
    made = (
        "".join(syllables[part] for part in (shape if three else shape[:2]))
        for shape, three in zip(shapes, long, strict=True)
    )
    return list(dict.fromkeys([*FUNCTION, *made]))[:WORDS]
