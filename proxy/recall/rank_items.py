"""Items ranked by the words of a question: BM25 over their texts, read anew each time.  Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from proxy.recall.index import POSTING_SIZE, Look, Postings
from proxy.recall.match import match
from proxy.recall.question import Question
from proxy.recall.terms import Analysis, Corpus, Entry, analyse, pack


def texts_of(value: object) -> Iterator[str]:
    """Every text in a JSON value, names of fields left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for each in value if isinstance(value, list) else value.values():
            yield from texts_of(each)


def sought_in(question: Question, value: object, time: float) -> Analysis:
    """What a value, of ``time`` (Unix seconds), has of what is looked for, and how long it is."""
    found = analyse("\n".join(texts_of(value)), time)
    wanted = found.terms.keys() & set(question.terms)
    return found._replace(terms={term: found.terms[term] for term in wanted})


def rank(question: Question, read: Sequence[Analysis]) -> list[tuple[int, float]]:
    """Index and score of those that have a word of the question, best first."""
    entries = [Entry(0, n, 0, 0.0, 0, 0, analysis) for n, analysis in enumerate(read)]
    packed = pack(entries, 0)
    found = [packed.postings.get(term, b"") for term in question.terms]
    look = Look(postings=tuple(Postings(len(data) // POSTING_SIZE, data) for data in found))
    corpus = Corpus(len(read), sum(analysis.length for analysis in read))
    matches = match(question, look, corpus)
    scored = zip(matches.numbers.tolist(), matches.scores.tolist(), strict=True)
    return sorted(scored, key=lambda pair: (-pair[1], pair[0]))
