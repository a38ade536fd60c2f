"""Of a long turn that was labelled whole: the part that its answer is about.  Pure.

Recall takes parts of long messages.  An answer of an assistant may have a thousand words of which
a question asks for ten; that the other 990 are not in the prompt is no loss.
"""

from __future__ import annotations

from bench.recall.presence import tokens

LONG = 120
"""Words of a turn from which on a part of it counts."""

PART = 60
"""Words of that part."""

STEP = 10
"""The part begins at every so many words."""

_SHORT = 3
"""Letters of words that are not compared, numbers apart: nearly all of them are grammar."""


def telling_part(text: str, answer: str) -> str:
    """The ``PART`` words that have most words of the answer, the first such; "" for all of it.

    All of it counts where the turn is not long, and where it shares no word with the answer.
    """
    words = text.split()
    if len(words) <= LONG:
        return ""
    wanted = {word for word in tokens(answer) if len(word) > _SHORT or word.isdigit()}
    places = range(0, len(words) - PART + STEP, STEP)
    parts = [" ".join(words[place : place + PART]) for place in places]
    best = max(parts, key=lambda part: len(wanted.intersection(tokens(part))))
    return best if wanted.intersection(tokens(best)) else ""
