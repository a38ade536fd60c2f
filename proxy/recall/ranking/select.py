"""Selects the ranked passages for the prompt: within the budget, without repetition.  Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import pairwise

import msgspec

from proxy.recall.query.counting import count_words
from proxy.recall.query.question import has_question_mark
from proxy.recall.ranking.excerpts import GAP, Excerpter
from proxy.recall.ranking.match import Matches
from proxy.recall.ranking.score import LONG_TOKENS, Ranked

BLOCK_TOKENS = 40
SESSION_TOKENS = 9
PASSAGE_TOKENS = 0
"""Tokens of framing: the block, the line of a session, the label of a passage, which is covered by
the tokens of a message beside its text."""

MIN_UNEXPANDED_COVER = 0.45
"""If the best passage has a smaller ``cover``, words related in meaning are searched too.  If the
question's own words find more, related ones only add irrelevant passages."""

DOUBTED_COVER, SURE_COVER = 0.5, 0.75
"""``BestCover.strict`` of a general question up to which it gets the least tokens, and from which
it gets all of the budget: it may not be about this history at all."""

MIN_CONTEXT, MIN_CONTEXT_IN_PAIRS = 0.3, 0.45
"""The least ``BestCover.context`` of a message that depends on those before it; with less it is
only about messages in the prompt.  The second is for scripts without spaces, where one common word
is several overlapping pairs of characters."""

MIN_OWN_SHARE = 0.6
MIN_OWN_WORDS = 2
"""Otherwise such a message is about older ones only if one passage has so large a share of its own
words, and it has so many of them; one is enough for a question about what was, or is the user's."""

SIMILAR_SHARE = 0.8
"""Passages with this share of their words in common, or more, count as the same."""

EXCERPT_TOKENS = 200
"""Tokens, about, of the excerpt of a long passage: two pieces.  A third one, or the whole text, is
worth less than other passages."""

MAX_QUESTION_TOKENS = 60
"""Questions of up to so many tokens are added to their answers."""

BRIEF_TOKENS = 40
"""A user's message of up to so many tokens depends on the message before it."""

EXCERPT_DENSITY = 1.1
"""Tokens per character of an excerpt, relative to the whole text: it has more names and code."""

OMISSION_TOKENS = 3 * len(GAP)
"""Tokens of the marks in an excerpt of two pieces, where each character is one."""

FEW_TOKENS = (
    BLOCK_TOKENS + SESSION_TOKENS + 1 + int(EXCERPT_DENSITY * (EXCERPT_TOKENS + OMISSION_TOKENS))
)
"""The least tokens of a general question, block included: a few passages, or an excerpt."""

_MAX_READ = 4096
_MAX_WORD_LENGTH = 12
"""A text with more characters per word counts as one without spaces."""


class Passage(msgspec.Struct, frozen=True, gc=False):
    """A message as it is in history, or an excerpt of it."""

    number: int
    session: int
    seq: int
    role: str
    text: str
    tokens: int
    is_excerpt: bool = False


def is_relevant(matches: Matches, min_score: float) -> bool:
    """Whether there is anything to recall: passages of the right days, or with enough of the words.

    ``min_score``: the least ``cover`` (0 to 1) of the best passage.
    """
    if matches.of_right_days.size:
        return True
    if not (_context_is_found(matches) or _own_words_are_found(matches)):
        return False
    return bool(matches.cover.size) and float(matches.cover.max()) >= min_score


def _context_is_found(matches: Matches) -> bool:
    """Whether a passage holds enough of what the messages before a short one said."""
    in_pairs = matches.question.context_is_unspaced
    return matches.best_cover.context >= (MIN_CONTEXT_IN_PAIRS if in_pairs else MIN_CONTEXT)


def _own_words_are_found(matches: Matches) -> bool:
    """Whether a passage holds enough of what such a message says itself."""
    question = matches.question
    if matches.best_cover.own < MIN_OWN_SHARE:
        return False
    words = count_words(word.text for word in question.own_words)
    return words >= (1 if question.asks_past_or_own else MIN_OWN_WORDS)


def allotted_tokens(matches: Matches, budget: int) -> int:
    """The part of ``budget`` (tokens) that a question gets: less if it may not be about this
    history."""
    if matches.of_right_days.size or matches.by_speaker.size:
        return budget
    sureness = (matches.best_cover.strict - DOUBTED_COVER) / (SURE_COVER - DOUBTED_COVER)
    share = min(1.0, max(0.0, sureness))
    return min(budget, FEW_TOKENS + int(share * max(0, budget - FEW_TOKENS)))


def needs_expansion(matches: Matches) -> bool:
    """Whether a self-contained question may have been answered in other words.

    Not if it only tells a time.
    """
    if not matches.distinctive or matches.question.context_terms or matches.of_right_days.size:
        return False
    return float(matches.cover.max(initial=0.0)) < MIN_UNEXPANDED_COVER


def choose_passages(
    matches: Matches,
    ranked: Sequence[Ranked],
    passage_of: Callable[[int], Passage | None],
    budget: int,
    shown: Iterable[str] = (),
    reserve: int = 0,
) -> list[Passage]:
    """The passages to inject, in rank order, each answer with its question behind it: greedy, those
    that do not fit are skipped.  What is left of the budget, less ``reserve`` tokens, is used to
    restore whole texts of excerpts.

    Skipped are numbers for which ``passage_of`` returns None (deleted, changed, or already in the
    prompt), and passages that repeat one of the ``shown`` texts or an earlier passage.
    """
    packer = _Packer(matches, passage_of, budget - BLOCK_TOKENS, shown)
    by_next = {each.number + 1: each for each in ranked}
    for each in ranked:
        taken = packer.take(each)
        previous = by_next.get(each.number) if taken else None
        if taken and previous and _is_question_of(previous, taken, passage_of):
            packer.take(previous)
    packer.restore(reserve)
    return packer.chosen


def _is_question_of(
    previous: Ranked, answer: Passage, passage_of: Callable[[int], Passage | None]
) -> bool:
    """Whether the passage before an answer is a brief question in the same session, which it
    answers."""
    if previous.tokens > MAX_QUESTION_TOKENS or previous.session != answer.session:
        return False
    question = passage_of(previous.number)
    return question is not None and _answers(answer, question)


class _Packer:
    """Takes passages while they fit into the budget, each once, without repetition."""

    def __init__(
        self,
        matches: Matches,
        passage_of: Callable[[int], Passage | None],
        budget: int,
        shown: Iterable[str],
    ) -> None:
        self.chosen: list[Passage] = []
        self._matches, self._passage_of = matches, passage_of
        self._tokens_left = budget
        self._taken: set[int] = set()
        self._sessions: set[int] = set()
        self._whole_by_place: dict[int, Passage] = {}
        self._seen_texts = set(shown)
        self._seen_words = SimilarTexts(map(_words_of, self._seen_texts))

    @cached_property
    def _cutter(self) -> Excerpter:
        """Made for the first long passage: nearly all are short."""
        return Excerpter(self._matches.question, self._matches.term_weights)

    def take(self, each: Ranked) -> Passage | None:
        """Take a passage, or an excerpt of it; None if it does not fit or says nothing new."""
        framing = PASSAGE_TOKENS + SESSION_TOKENS * (each.session not in self._sessions)
        available = self._tokens_left - framing
        # By the size in the index most passages can be skipped without reading them.
        if available < min(EXCERPT_TOKENS, each.tokens) or each.number in self._taken:
            return None
        whole = self._passage_of(each.number)
        if whole is None or available < min(EXCERPT_TOKENS, whole.tokens):
            return None
        words = self._new_words(whole.text)
        if words is None:
            return None
        passage = _excerpt(whole, self._cutter) if whole.tokens > LONG_TOKENS else whole
        if passage.tokens > available:
            return None
        # A passage that an earlier round recalled as an excerpt has the excerpt's tokens: it stays.
        if passage.is_excerpt and each.tokens >= whole.tokens:
            self._whole_by_place[len(self.chosen)] = whole
        self._tokens_left = available - passage.tokens
        self._add(passage, words)
        return passage

    def _add(self, passage: Passage, words: frozenset[str]) -> None:
        self.chosen.append(passage)
        self._taken.add(passage.number)
        self._sessions.add(passage.session)
        self._seen_words.add(words)

    def restore(self, reserve: int) -> None:
        """Replace excerpts by whole texts, the best first, while more than ``reserve`` tokens are
        left."""
        for place, whole in self._whole_by_place.items():
            left = self._tokens_left - (whole.tokens - self.chosen[place].tokens)
            if left >= reserve:
                self.chosen[place], self._tokens_left = whole, left

    def _new_words(self, text: str) -> frozenset[str] | None:
        """The words of a text, None if it says nothing new."""
        if text in self._seen_texts:  # the same again, as a question is put twice
            return None
        words = _words_of(text)
        if not self._seen_words.has_similar(words):
            return words
        self._seen_texts.add(text)
        return None


def _answers(answer: Passage, question: Passage) -> bool:
    """Whether a passage answers the one before it, if that is a question: by the model, or briefly
    by the user."""
    if question.role == answer.role or question.seq != answer.seq - 1:
        return False
    if answer.role == "user" and answer.tokens > BRIEF_TOKENS:
        return False
    return has_question_mark(question.text)


def _excerpt(passage: Passage, cutter: Excerpter) -> Passage:
    """The parts that matter of a long passage, about ``EXCERPT_TOKENS`` tokens."""
    text = cutter.excerpt(passage.text, passage.tokens, EXCERPT_TOKENS)
    tokens = 1 + int(EXCERPT_DENSITY * passage.tokens * len(text) / max(1, len(passage.text)))
    return msgspec.structs.replace(passage, text=text, tokens=tokens, is_excerpt=True)


def _words_of(text: str) -> frozenset[str]:
    """The words of a text, roughly; pairs of characters where it has no spaces."""
    text = text[:_MAX_READ].lower()
    words = text.split()
    if len(words) * _MAX_WORD_LENGTH > len(text):
        return frozenset(words)
    return frozenset(first + second for first, second in pairwise(text))


class SimilarTexts:
    """The words of each text that was taken, to find texts that are alike: their Jaccard index, the
    words of both as a share of the words of either, is at least ``SIMILAR_SHARE``."""

    def __init__(self, texts: Iterable[frozenset[str]] = ()) -> None:
        self._texts: list[frozenset[str]] = []
        self._words: set[str] = set()
        """Those of all texts, and of those that ``has_similar`` was asked for."""
        for words in texts:
            self.has_similar(words)
            self.add(words)

    def add(self, words: frozenset[str]) -> None:
        """Add a text for which ``has_similar`` was called."""
        self._texts.append(words)

    def has_similar(self, words: frozenset[str]) -> bool:
        size, known = len(words), len(self._words)
        self._words |= words
        # Most texts have too few words in common with all texts together.
        if known + size - len(self._words) < SIMILAR_SHARE * size:
            return False
        for other in self._texts:
            shared = len(words & other)
            if shared >= SIMILAR_SHARE * (size + len(other) - shared):
                return True
        return False
