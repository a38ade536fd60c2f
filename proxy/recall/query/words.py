"""Tokenizes texts into words and their terms, and packs the rows and postings of an index.  Pure.

Scripts that put spaces between words give words.  Those that do not (Chinese, Japanese, Korean,
Thai ...) give each character and each pair of neighbours, the usual way to find words in them
without a dictionary; Korean does have spaces, but its words carry particles.

A text's language is guessed from its script and, where many languages share one, from its function
words: they are a third of every text that has sentences, and short texts are what chats are made
of.  A wrong guess costs little, because questions are stemmed under every plausible language.

What an index keeps of a word is the term of its stem, by Snowball (Porter 2001).
"""

from __future__ import annotations

import re
import struct
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice
from typing import NamedTuple

from proxy.recall.lexicon.cues import MAX_WORD, WORD_CACHE_SIZE, Cues, PossibleCues, words_to_check
from proxy.recall.lexicon.folding import INDIAN, UNSPACED, fold_beginning
from proxy.recall.lexicon.loader import COMMON, LANGUAGES, vocabulary
from proxy.recall.lexicon.stop_words import ALL_STOP_WORDS, STOP_WORDS
from proxy.recall.notes import wording as notes_wording
from proxy.recall.query import dates, relative_days, spans, speakers, wording
from proxy.recall.query.dates import named_days, tells_time, terms_of_days
from proxy.recall.query.stemming import stem
from proxy.recall.ranking.packing import ENDS_WITH_QUESTION, POSTING, ROW, coded_length, term_of
from proxy.recall.standing import wording as standing_wording
from proxy.recall.text_cache import text_cache

MAX_CHARACTERS = 65_536
"""Characters of a text that are read, to bound the time."""

_ASCII = re.compile(r"\d+(?:,\d\d\d)+(?!\d)|[a-z0-9]+")
_ANY = re.compile(
    rf"[{UNSPACED}]+|\d+(?:,\d\d\d)+(?!\d)|(?:(?![{UNSPACED}])(?:[^\W_]|[{INDIAN}]))+"
)
_UNSPACED = re.compile(rf"[{UNSPACED}]")


class Word(NamedTuple):
    """A word; ``unspaced``: a run of a script without spaces, any length."""

    text: str
    unspaced: bool = False


def words(text: str) -> list[Word]:
    """The words of a text in their order, folded, at most ``MAX_CHARACTERS`` of it."""
    return words_of(fold_beginning(text, MAX_CHARACTERS))


def words_of(folded: str) -> list[Word]:
    """The words of folded text."""
    runs = (_ASCII if folded.isascii() else _ANY).findall(folded)
    if max(map(len, runs), default=0) <= MAX_WORD:
        return list(map(_cached_word, runs))
    return [_cached_word(run) if len(run) <= MAX_WORD else _word(run) for run in runs]


def is_unspaced(run: str) -> bool:
    """Whether a run is of a script without spaces."""
    return _UNSPACED.match(run) is not None


def _word(run: str) -> Word:
    if is_unspaced(run):
        return Word(run, True)
    return Word(_plain(run))


_cached_word = text_cache(WORD_CACHE_SIZE)(_word)


def _plain(word: str) -> str:
    return word.replace(",", "")[:MAX_WORD]


def grams(run: str) -> Iterator[str]:
    """The characters and the pairs of neighbours of a run without spaces."""
    yield from run
    for first, second in zip(run, run[1:], strict=False):
        yield first + second


ENGLISH = "english"
UNKNOWN = ""


def _by_script(scripts: Mapping[str, str]) -> tuple[tuple[re.Pattern[str], tuple[str, ...]], ...]:
    return tuple(
        (re.compile(letter), tuple(e.language.name for e in LANGUAGES if e.language.script == name))
        for name, letter in scripts.items()
    )


_OWN_SCRIPT = _by_script(COMMON.scripts.own)
_SHARED_SCRIPT = _by_script(COMMON.scripts.shared)
_SAMPLE = 200
"""Words of a text by which its language is guessed."""


def _inverted() -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for language, known in STOP_WORDS.items():
        for word in known:
            found.setdefault(word, []).append(language)
    return {word: tuple(languages) for word, languages in found.items()}


_LANGUAGES_OF = _inverted()


def plausible_languages(words: Sequence[str]) -> tuple[str, ...]:
    """The languages that folded words may be in, the likeliest first; () if unknown.

    Likely are those with at least half as many function words as the likeliest.
    """
    known = map(_LANGUAGES_OF.get, words[:_SAMPLE])
    hits = Counter(chain.from_iterable(filter(None, known)))
    if not hits:
        return ()
    least = max(hits.values()) / 2
    return tuple(language for language, count in hits.most_common() if count >= least)


def guess_language(words: Sequence[str]) -> str:
    """The likeliest language of folded words, "" if unknown."""
    likely = plausible_languages(words)
    return likely[0] if likely else language_by_script(words)


def language_by_script(words: Sequence[str]) -> str:
    """The language of folded words by their script alone, "" if several languages use it."""
    text = " ".join(words[:_SAMPLE])
    return next((known[0] for script, known in _OWN_SCRIPT if script.search(text)), UNKNOWN)


CUES = Cues(
    (
        *dates.CUES,
        *relative_days.CUES,
        *spans.CUES,
        *wording.CUES,
        *standing_wording.CUES,
        *notes_wording.CUES,
    )
)
"""The cues of all modules, which are looked up together for each text."""

_SHORT = 4096
"""Characters of a text that is cached."""

_CACHED_TEXTS = 64
"""Texts in the cache: those of turns in progress or waiting to be indexed."""


class TokenizedText:
    """A text and what is derived from it, each computed once; ``MAX_CHARACTERS`` are read.

    A message is read as a question first and indexed afterwards, so these are cached.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"<TokenizedText [characters: {len(self.text)}]>"

    @cached_property
    def folded(self) -> str:
        return fold_beginning(self.text, MAX_CHARACTERS)

    @cached_property
    def words(self) -> list[Word]:
        return words_of(self.folded)

    @cached_property
    def likely_languages(self) -> tuple[str, ...]:
        """The plausible languages, the likeliest first."""
        return plausible_languages([word.text for word in self.words])

    @property
    def language(self) -> str:
        """The likeliest language by its words, else by its script, else ""."""
        return (
            self.likely_languages[0]
            if self.likely_languages
            else language_by_script([word.text for word in self.words])
        )

    @cached_property
    def possible_cues(self) -> PossibleCues:
        """The cues that it may have."""
        return CUES.possible(words_to_check(self.text[:MAX_CHARACTERS], self.folded))


_cached_text = text_cache(_CACHED_TEXTS)(TokenizedText)


def tokenize(text: str) -> TokenizedText:
    """A tokenized text, cached if it is short."""
    return _cached_text(text) if len(text) <= _SHORT else TokenizedText(text)


def languages_by_script(word: str) -> tuple[str, ...]:
    """The languages that a folded word may be in by its letters alone."""
    for script, languages in _SHARED_SCRIPT:
        if script.search(word):
            return languages
    return tuple(known[0] for script, known in _OWN_SCRIPT if script.search(word))


_BEGINNING = 5
_NO_WORDS: frozenset[str] = frozenset()

# Characters of Chinese and Japanese that are grammar, or ask, in nearly every sentence.
UNSPACED_STOPS = frozenset("".join(vocabulary(lambda each: each.language.stop_characters)))


@text_cache(WORD_CACHE_SIZE)
def word_term(word: str, language: str) -> bytes | None:
    """The term of a folded word of a script with spaces, None for a stop word."""
    if is_stop_word(word, language):
        return None
    return term_of(stem(word, language))


@text_cache(WORD_CACHE_SIZE)
def prefix_term(word: str) -> bytes | None:
    """The term of a long word's prefix, which derived and compound words share: painter and
    painting, Fahrrad and Fahrradtour, and most words stemmed in the wrong language.
    """
    return term_of(f"\0begins {word[:_BEGINNING]}") if len(word) > _BEGINNING else None


def is_stop_word(word: str, language: str) -> bool:
    """Whether a word is a function word of a language, or what elision left (l', d', 's)."""
    return word in STOP_WORDS.get(language, _NO_WORDS) or _is_letter(word)


def is_stop_word_somewhere(word: str) -> bool:
    """Whether a word is one in any language."""
    return word in ALL_STOP_WORDS or _is_letter(word)


def _is_letter(word: str) -> bool:
    return len(word) == 1 and word.isalpha()


@text_cache(WORD_CACHE_SIZE)
def gram_term(gram: str) -> bytes | None:
    """The term of a character or a pair of characters, None if both are only grammar."""
    if all(character in UNSPACED_STOPS for character in gram):
        return None
    return term_of(gram)


MAX_TERMS = 16_384
"""Terms that are read of one message."""

_MAX_DATES = 8
"""Dates that are read in one message."""

TELLS_TIME = term_of("\0tells time")
"""The term of messages that tell when something is or was."""

_TAIL = 400
# A caption or a remark in brackets may follow.
_ASKING = "?？؟"
_ENDS_ASKING = re.compile(rf"[{_ASKING}][\s\"'”’»)]*(?:\[[^\]]*\]\s*)?$")


class Analysis(NamedTuple):
    """A text's terms with their frequency, its length in terms, its language.

    ``asks``: it ends with a question.
    """

    terms: Mapping[bytes, int]
    length: int
    language: str
    asks: bool = False


class TermEntry(NamedTuple):
    """A passage to be indexed; the fields as in ``packing.ROW``, ``time`` in Unix seconds."""

    session: int
    seq: int
    check: int
    time: float
    tokens: int
    flags: int
    analysis: Analysis


class Packed(NamedTuple):
    """Entries in an index's formats: joined rows, and postings by term."""

    rows: bytes
    postings: dict[bytes, bytes]


class Corpus(NamedTuple):
    """The number of passages in an index, and the sum of their lengths in terms."""

    passages: int = 0
    length: int = 0


def analyse(text: str, time: float, hint: str = "", further: Iterable[bytes] = ()) -> Analysis:
    """The terms of a message sent at ``time`` (Unix seconds).

    ``hint`` is the language to assume if the text does not tell (that of the message before).
    Terms that do not count in the length: prefixes, days that the text names and the day of
    ``time``, the speaker, whether it tells a time, and ``further`` ones.
    """
    read = tokenize(text)
    found = read.words
    language = read.language or hint
    terms = list(islice(terms_of(found, language), MAX_TERMS))
    length = len(terms)
    terms += _prefix_terms(found, language)
    others = terms_of_days([*islice(named_days(text, time, read.possible_cues), _MAX_DATES), time])
    terms += others.union(_traits(read), further)
    return Analysis(Counter(terms), length, language, _ends_asking(text))


def _ends_asking(text: str) -> bool:
    tail = text[-_TAIL:]
    return any(mark in tail for mark in _ASKING) and _ENDS_ASKING.search(tail) is not None


def terms_of(found: Sequence[Word], language: str) -> Iterator[bytes]:
    """The terms of words in a language, in their order."""
    for text, unspaced in found:
        if unspaced:
            yield from filter(None, map(gram_term, grams(text)))
        elif (known := word_term(text, language)) is not None:
            yield known


def _prefix_terms(found: Sequence[Word], language: str) -> list[bytes]:
    stops = STOP_WORDS.get(language, _NO_WORDS)
    # Most words are too short.
    long = [text for text, unspaced in found if len(text) > _BEGINNING and not unspaced]
    return [known for text in long if text not in stops and (known := prefix_term(text))]


def _traits(read: TokenizedText) -> Iterator[bytes]:
    said_by = speakers.speaker_term(read.text)
    if said_by is not None:
        yield said_by
    if tells_time(read.text[:MAX_CHARACTERS], read.possible_cues):
        yield TELLS_TIME


def pack(entries: Sequence[TermEntry], first: int) -> Packed:
    """Rows and postings of entries that get the numbers from ``first`` on."""
    rows: list[bytes] = []
    postings: defaultdict[bytes, list[bytes]] = defaultdict(list)
    for number, entry in enumerate(entries, first):
        session, seq, check, time, tokens, flags, analysis = entry
        length = coded_length(analysis.length)
        seconds = min(max(0, int(time)), 2**32 - 1)
        flags |= ENDS_WITH_QUESTION * analysis.asks
        rows.append(_ROW.pack(session, seq, check, seconds, min(tokens, 65_535), length, flags))
        once = _POSTING.pack(number, 1, length)
        for term_, frequency in analysis.terms.items():
            many = frequency > 1
            posting = _POSTING.pack(number, min(frequency, 255), length) if many else once
            postings[term_].append(posting)
    return Packed(b"".join(rows), {term_: b"".join(data) for term_, data in postings.items()})


_ROW = struct.Struct("<IIIIHBB")
_POSTING = struct.Struct("<IBB")
assert (_ROW.size, _POSTING.size) == (ROW.itemsize, POSTING.itemsize)
