"""Ranks items by the words of a question: BM25 over their texts, without an index.  Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from proxy.recall.index import POSTING_SIZE, IndexLookup, Postings
from proxy.recall.query.question import Question
from proxy.recall.query.words import (
    Analysis,
    Corpus,
    TermEntry,
    guess_language,
    pack,
    prefix_term,
    terms_of,
    words,
)
from proxy.recall.ranking.match import match


def texts_of(value: object) -> Iterator[str]:
    """Every text in a JSON value, names of fields left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for each in value if isinstance(value, list) else value.values():
            yield from texts_of(each)


def question_terms_in(question: Question, value: object) -> Analysis:
    """The question's terms in a value, and the value's length.

    Without terms for days and speakers, which passages have: they would cost more than the words.
    """
    found = words("\n".join(texts_of(value)))
    language = guess_language([word.text for word in found])
    counts = Counter(terms_of(found, language))
    length = counts.total()
    counts.update(filter(None, (prefix_term(word.text) for word in found if not word.unspaced)))
    wanted = counts.keys() & set(question.terms)
    return Analysis({term: counts[term] for term in wanted}, length, language)


def rank(question: Question, read: Sequence[Analysis]) -> list[tuple[int, float]]:
    """Index and score of those that have a word of the question, best first."""
    entries = [TermEntry(0, n, 0, 0.0, 0, 0, analysis) for n, analysis in enumerate(read)]
    packed = pack(entries, 0)
    found = [packed.postings.get(term, b"") for term in question.terms]
    lookup = IndexLookup(
        postings=tuple(Postings(len(data) // POSTING_SIZE, data) for data in found)
    )
    corpus = Corpus(len(read), sum(analysis.length for analysis in read))
    matches = match(question, lookup, corpus)
    scored = zip(matches.numbers.tolist(), matches.scores.tolist(), strict=True)
    return sorted(scored, key=lambda pair: (-pair[1], pair[0]))
