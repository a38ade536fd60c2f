"""Which ranked passages go into the prompt: within the budget, nothing twice.  Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise

import msgspec

from proxy.recall.query.counting import counted
from proxy.recall.query.question import asks
from proxy.recall.ranking.cutting import GAP, Cutter
from proxy.recall.ranking.match import Matches
from proxy.recall.ranking.score import LONG, Ranked

BLOCK_TOKENS = 40
SESSION_TOKENS = 9
PASSAGE_TOKENS = 0
"""What framing costs: the block, the line of a session, the label of a passage, which is no more
than what a message costs beside its text."""

FAINT = 0.45
"""The share of what the question's words are worth that the best passage must hold, else words near
them in meaning are looked for too: where its own find much, those only push in what was not meant.
"""

DOUBTED, SURE = 0.5, 0.75
"""The shares of a general question's words, see ``Matches.known``, up to which it is doubted that
it means anything of this history, and from which on it is not."""

GOES_ON, IN_PAIRS = 0.3, 0.45
"""The least share of what the messages before said that one passage must hold, where a message goes
on about them: else it goes on about what is in sight, and nothing older was meant.  The second is
for scripts without spaces, where pairs of characters overlap: one word in common is several."""

ITSELF = 0.6
TELLING = 2
"""What goes on about what is in sight, and means something older all the same, has so large a share
of its own words in one passage, and so many of them; one, if it is of what is the user's own."""

ALIKE = 0.8
"""Share of words in common that makes two passages one."""

FEW = 3
"""With so many texts one is compared at once."""

CUT = 200
"""Tokens, about, of the excerpt of a long passage: two pieces of it.  A third one, or the whole, is
worth less than what else fits into its place."""

CHEAP = 60
"""Tokens, at most, of a question that comes with its answer."""

BRIEF = 40
"""Tokens, at most, of a user's message that says little without what was said before it."""

DENSER = 1.1
"""What an excerpt may have in tokens by character, against the whole: it has more names and code.
"""

MARKS = 3 * len(GAP)
"""Tokens of the marks in an excerpt of two pieces, where each character is one."""

FEW_TOKENS = BLOCK_TOKENS + SESSION_TOKENS + 1 + int(DENSER * (CUT + MARKS))
"""What a question of which it is doubted that it means anything of this history gets, block and
all: a few passages, or an excerpt."""

KEPT_TEXTS = 512
KEPT_LENGTH = 400
"""Texts whose words are kept, and the characters that these have at most: 2 MB, or 18 of texts
without spaces."""

_READ = 4096
_SPACED = 12
"""Characters to a word at most in a text that has spaces."""


class Passage(msgspec.Struct, frozen=True, gc=False):
    """A message as it is in history; ``time`` in Unix seconds.  ``cut``: an excerpt of it."""

    number: int
    session: int
    seq: int
    role: str
    text: str
    tokens: int
    time: float
    cut: bool = False


def relevant(matches: Matches, min_score: float) -> bool:
    """Whether there is anything to recall: passages of the day, or that hold enough of the words.

    ``min_score`` is the share, 0 to 1, of what these are worth that the best one must hold.
    """
    if matches.dated.size:
        return True
    if not (_goes_on(matches) or _means_others(matches)):
        return False
    return bool(matches.cover.size) and float(matches.cover.max()) >= min_score


def _goes_on(matches: Matches) -> bool:
    return matches.goes_on >= (IN_PAIRS if matches.question.goes_on_in_pairs else GOES_ON)


def _means_others(matches: Matches) -> bool:
    question = matches.question
    if matches.itself < ITSELF:
        return False
    words = counted(word.text for word in question.own)
    return words >= (1 if question.owned else TELLING)


def deserved(matches: Matches, room: int) -> int:
    """How much of the room a question gets: the surer it is that it means something of this
    history, the more."""
    if matches.dated.size or matches.spoken.size:
        return room
    share = min(1.0, max(0.0, (matches.known - DOUBTED) / (SURE - DOUBTED)))
    return min(room, FEW_TOKENS + int(share * max(0, room - FEW_TOKENS)))


def faint(matches: Matches) -> bool:
    """Whether a question that stands by itself may have been answered in other words.

    Not where all of its own are in so many passages that they tell none apart.
    """
    if not matches.whole or matches.question.context or matches.dated.size:
        return False
    return float(matches.cover.max(initial=0.0)) < FAINT


def _always(number: int) -> bool:
    return True


def choose(
    matches: Matches,
    ranked: Sequence[Ranked],
    passage_of: Callable[[int], Passage | None],
    budget: int,
    known: Iterable[str] = (),
    is_meant: Callable[[int], bool] = _always,
    spare: int = 0,
) -> list[Passage]:
    """The passages to inject, in rank order: greedy, what does not fit is skipped.  What is left of
    the budget, less the ``spare``, goes to the whole texts of what was cut.

    Ranked numbers of which ``passage_of`` gives None (gone from history, or already in the prompt)
    are left out, as are passages that say no more than a ``known`` text or one before them, and
    those of which ``is_meant`` says that they are another message by now: that takes longest to
    find out, and is asked last.
    """
    packer = _Packer(matches, passage_of, is_meant, budget - BLOCK_TOKENS, known)
    before = {each.number + 1: each for each in ranked}
    for each in ranked:
        taken = packer.take(each)
        other = before.get(each.number) if taken else None
        if taken and other and other.tokens <= CHEAP and other.session == each.session:
            asked = passage_of(other.number)
            if asked and _answers(taken, asked):
                packer.take(other)
    packer.restore(spare)
    return packer.chosen


class _Packer:
    """Takes passages while there is room, each once, and none that says what is said already."""

    def __init__(
        self,
        matches: Matches,
        passage_of: Callable[[int], Passage | None],
        is_meant: Callable[[int], bool],
        room: int,
        known: Iterable[str],
    ) -> None:
        self.chosen: list[Passage] = []
        self._passage_of, self._is_meant, self._left = passage_of, is_meant, room
        self._taken: set[int] = set()
        self._wholes: dict[int, Passage] = {}
        self._sessions: set[int] = set()
        self._seen, self._texts = AlreadySaid(), set(known)
        for text in self._texts:
            self._seen.add(_said(text))
        self._matches = matches

    @cached_property
    def _cutter(self) -> Cutter:
        """Made for the first long passage: nearly all are short."""
        return Cutter(self._matches.question, self._matches.worth)

    def take(self, each: Ranked) -> Passage | None:
        """This passage, or what of it matters; None where it does not fit or says nothing new."""
        cost = PASSAGE_TOKENS + SESSION_TOKENS * (each.session not in self._sessions)
        room = self._left - cost
        # What the index says of its size: most need not be read then.
        if room < min(CUT, each.tokens) or each.number in self._taken:
            return None
        passage = self._passage_of(each.number)
        if passage is None or room < min(CUT, passage.tokens):
            return None
        said = self._new(passage.text)
        if said is None or not self._is_meant(each.number):
            return None
        whole = passage
        if passage.tokens > LONG:
            passage = _fitted(passage, self._cutter)
        if passage.tokens > room:
            return None
        # Of what was cut when it was recalled first the excerpt's size is known, and no more.
        if passage.cut and each.tokens >= whole.tokens:
            self._wholes[len(self.chosen)] = whole
        self._left = room - passage.tokens
        self._taken.add(passage.number)
        self._sessions.add(passage.session)
        self._seen.add(said)
        self.chosen.append(passage)
        return passage

    def restore(self, spare: int) -> None:
        """Put whole texts in the place of their excerpts, the best first, while there is room."""
        for place, whole in self._wholes.items():
            left = self._left - (whole.tokens - self.chosen[place].tokens)
            if left >= spare:
                self.chosen[place], self._left = whole, left

    def _new(self, text: str) -> frozenset[str] | None:
        """The words of a text, None if it says nothing new."""
        if text in self._texts:  # the same again, as a question is put twice
            return None
        said = _said(text)
        if not self._seen.has_alike(said):
            return said
        self._texts.add(text)
        return None


def _answers(said: Passage, before: Passage) -> bool:
    """Whether a passage says little without the one before it: a reply to a question, of the model,
    or a short one of the user."""
    if before.role == said.role or before.seq != said.seq - 1:
        return False
    if said.role == "user" and said.tokens > BRIEF:
        return False
    return asks(before.text)


def _fitted(passage: Passage, cutter: Cutter) -> Passage:
    """The parts that matter of a long passage."""
    text = cutter.excerpt(passage.text, passage.tokens, CUT)
    tokens = 1 + int(DENSER * passage.tokens * len(text) / max(1, len(passage.text)))
    return msgspec.structs.replace(passage, text=text, tokens=tokens, cut=True)


def _said(text: str) -> frozenset[str]:
    """The words of a text.  Who goes on about something has much the same recalled again."""
    return _kept(text) if len(text) <= KEPT_LENGTH else _words_of(text)


def forget() -> None:
    """The texts that are kept."""
    _kept.cache_clear()


@lru_cache(maxsize=KEPT_TEXTS)
def _kept(text: str) -> frozenset[str]:
    return _words_of(text)


def _words_of(text: str) -> frozenset[str]:
    """Roughly; pairs of characters where it has no spaces."""
    text = text[:_READ].lower()
    parts = text.split()
    if len(parts) * _SPACED > len(text):
        return frozenset(parts)
    return frozenset(first + second for first, second in pairwise(text))


class AlreadySaid:
    """What was said already, as the words of each text, by how many they are: what has far more or
    fewer words than another is not like it."""

    def __init__(self) -> None:
        self._sizes: list[int] = []
        self._said: list[frozenset[str]] = []
        self._words: set[str] = set()

    def add(self, said: frozenset[str]) -> None:
        place = bisect_left(self._sizes, len(said))
        self._sizes.insert(place, len(said))
        self._said.insert(place, said)
        self._words |= said

    def has_alike(self, said: frozenset[str]) -> bool:
        size = len(said)
        first = bisect_left(self._sizes, ALIKE * size)
        last = bisect_right(self._sizes, size / ALIKE)
        # Most texts have too few words that were said at all to be like any of many others.
        if last - first > FEW and len(said & self._words) < ALIKE * size:
            return False
        for other in self._said[first:last]:
            # What is alike lacks little: to list that is faster than to list what is shared.
            shared = size - len(said - other)
            if shared >= ALIKE * (size + len(other) - shared):
                return True
        return False
