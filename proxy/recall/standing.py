"""What a user says shall be done from now on, or prefers: noticed by pattern, pinned to prompts.

No question points at such words ("always answer in French"), so that no search finds them.  They
are given as they were said, and kept until a newer one on the same matter takes their place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from proxy.recall.standing_asian import ASIAN
from proxy.recall.standing_english import ENGLISH
from proxy.recall.standing_european import EUROPEAN
from proxy.recall.standing_matter import split_scope, stems
from proxy.recall.standing_patterns import Patterns, either
from proxy.recall.standing_voice import LONG, Sentence, Voice, end_with_list, voices

Kind = Literal["instruction", "preference", "leaning", "withdrawal"]

SAME = 0.6
"""Two are about the same if they share this part of all their words."""
WITHDRAWN = 0.5
"""A withdrawal means what holds this part of its words."""
MOST = 200
"""Older ones than the newest of this number are not looked at."""
SHORT = 300
"""Characters; of so short a message a preference keeps all sentences, which tell what it is for."""


class _Language(NamedTuple):
    cues: tuple[str, ...]
    patterns: tuple[tuple[Kind, re.Pattern[str]], ...]


def _compiled(said: Patterns) -> _Language:
    return _Language(
        said.cues,
        (
            ("withdrawal", either(said.withdrawals)),
            ("instruction", either(said.orders)),
            ("preference", either(said.preferences)),
            ("leaning", either(said.leanings)),
        ),
    )


_LANGUAGES = tuple(_compiled(said) for said in (ENGLISH, EUROPEAN, ASIAN))

# What somebody else said, or is said to prefer, in the same sentence before.
_REPORTED = re.compile(
    r"\b(?!i\b|i'd\b|you\b)[\w']+ (?:always |often |once )?(?:says?|said|told|tells|wrote|writes"
    r"|insists?|reminds?|reminded|taught|advises?|advised|claims?|claimed|asked|asks"
    r"|yells?|yelled|shouts?)\b"
    r"|\b(?:sagte?|meinte?|schrieb|dijo|dice|decía|disse|diz|a dit|dit que|ha detto|dice che"
    r"|сказал|сказала|говорит|говорил|قال|قالت|يقول)\b"
    r"|(?<!我)(?:说|說|告诉我|告訴我|跟我说)[：:，,]|と(?:言|い)(?:った|われ|う)|라고 (?:했|말)",
    re.IGNORECASE,
)

_SAID_AFTER = re.compile(
    r"[,–—-] ?(?!as i |like i |i )(?:[\w']+ ){0,2}(?:said|says|told me|dijo|sagte|a dit)\b",
    re.IGNORECASE,
)

# A withdrawal that names no matter and says this takes back all ("forget all my instructions").
_EVERYTHING = re.compile(
    r"\b(?:all|everything|every|alles|todo|todas|tout|toutes|tudo|tutto|tutte|всё|все|كل)\b"
    r"|所有|全部|一切|全て|すべて|모든|모두",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Standing:
    """Something said to hold from now on.

    ``kind``: an instruction to the assistant, a preference of the user, a leaning (a preference
    said softly), or the withdrawal of one.  ``text``: as it was said.  ``matter``: the stems it is
    about; ``scope``: those of the condition under which it holds ("when I ask about ...").
    """

    kind: Kind
    text: str
    matter: frozenset[str]
    scope: frozenset[str] = frozenset()

    @cached_property
    def values(self) -> frozenset[str]:
        """What it sets one of several values of, as the language of answers."""
        return frozenset(stem for stem in self.matter if stem.startswith("<"))

    @cached_property
    def words(self) -> frozenset[str]:
        return self.matter | self.scope


def notice(text: str) -> tuple[Standing, ...]:
    """What a user's message says to hold from now on, in the order said; nearly always nothing.

    The text must be of role user.  Only a bounded part of a long one is read.
    """
    if not _cued(_ends(text)):
        return ()
    return tuple(standing for voice in voices(text) for standing in _noticed(voice))


def is_standing(text: str) -> bool:
    """Whether ``notice`` finds anything; for the flag of an indexed message."""
    return bool(notice(text))


def current(standings: Sequence[Standing]) -> tuple[Standing, ...]:
    """Those, of newest first, that no newer one supersedes or withdraws; at most ``MOST`` read."""
    kept: list[Standing] = []
    newer: list[Standing] = []
    for standing in standings[:MOST]:
        if standing.kind != "withdrawal" and not any(_supersedes(n, standing) for n in newer):
            kept.append(standing)
        newer.append(standing)
    return tuple(kept)


def pinned(
    question: str, standings: Sequence[Standing], budget: int, count: Callable[[str], int]
) -> tuple[Standing, ...]:
    """Those of ``current`` standings, newest first, that go into the prompt of a question.

    ``count`` gives the tokens that a text costs, its line's framing included; together they cost at
    most ``budget``.  A leaning is pinned only where the question touches its matter.  Where not
    all fit, what the question touches most goes first, then what holds everywhere.
    """
    asked = stems(_ends(question))
    standings = [s for s in standings if s.kind != "withdrawal"]
    touched = sorted(
        (s for s in standings if s.words & asked),
        key=lambda s: (s.kind == "leaning", -len(s.words & asked)),
    )
    rest = [s for s in standings if not s.words & asked and s.kind != "leaning"]
    order = sorted(rest, key=lambda s: (s.kind != "instruction", bool(s.scope)))
    chosen: set[int] = set()
    for standing in [*touched, *order]:
        cost = count(standing.text)
        if cost <= budget:
            budget -= cost
            chosen.add(id(standing))
    return tuple(s for s in standings if id(s) in chosen)


def _ends(text: str) -> str:
    """The beginning and the end of a long text, all of a short one."""
    return text[:LONG] + text[LONG:][-LONG:]


def _noticed(voice: Voice) -> list[Standing]:
    found: dict[str, Standing] = {}
    end = 0
    for sentence in voice.sentences:
        kind = _kind(sentence) if sentence.start >= end else None
        if kind is not None:
            end = end_with_list(voice.text, sentence.end)
            standing = _standing(kind, voice, voice.text[sentence.start : end])
            found.setdefault(standing.text, standing)
    return list(found.values())


def _cued(words: str) -> list[_Language]:
    """The languages that a text may say it in; of nearly all texts there are none."""
    small = words.lower().replace("’", "'")
    return [language for language in _LANGUAGES if any(cue in small for cue in language.cues)]


def _kind(sentence: Sentence) -> Kind | None:
    languages = _cued(sentence.words)
    for kind, pattern in (pair for language in languages for pair in language.patterns):
        match = pattern.search(sentence.words)
        if match:
            told = kind != "withdrawal" and _by_others(sentence, match.end())
            return None if told else kind
    return None


def _by_others(sentence: Sentence, end: int) -> bool:
    """Whether what ends there is told as another's words."""
    before, after = sentence.words[:end], sentence.words[end:]
    return bool(_REPORTED.search(before) or _SAID_AFTER.search(after))


def _standing(kind: Kind, voice: Voice, said: str) -> Standing:
    rule, condition = split_scope(said)
    whole = voice.text[voice.sentences[0].start : voice.sentences[-1].end]
    alone = kind in ("instruction", "withdrawal") or len(whole) > SHORT
    return Standing(kind, said if alone else whole, stems(rule), stems(condition))


def _supersedes(new: Standing, old: Standing) -> bool:
    if new.kind == "withdrawal":
        return _withdraws(new, old)
    if new.kind == "leaning" and old.kind != "leaning":
        return False
    if bool(new.scope) != bool(old.scope) or (new.scope and _shared(new.scope, old.scope) < SAME):
        return False
    if new.values & old.values:
        return _shared(new.matter - new.values, old.matter - old.values) >= WITHDRAWN
    return bool(new.matter) and _shared(new.matter, old.matter) >= SAME


def _withdraws(new: Standing, old: Standing) -> bool:
    if not new.words:
        return bool(_EVERYTHING.search(new.text))
    return len(new.words & old.words) >= WITHDRAWN * len(new.words)


def _shared(a: frozenset[str], b: frozenset[str]) -> float:
    """The part of all words that both have; two without any words are the same."""
    return len(a & b) / len(a | b) if a | b else 1.0
