"""A person's passages in memory, asked as recall asks an index, without any store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from proxy.recall.index import NO_POSTINGS, POSTING_SIZE, IndexLookup, Postings
from proxy.recall.query.query import RecallOptions
from proxy.recall.query.question import Question, read_question
from proxy.recall.query.self_statements import told_trait_terms
from proxy.recall.query.words import Corpus, TermEntry, analyse, pack, tokenize
from proxy.recall.ranking.match import Matches, Numbers, candidates, match
from proxy.recall.ranking.packing import SAID_BY_USER, Array, read_rows
from proxy.recall.ranking.score import Ranked, RankingOptions, count_worth_reading, rank_passages
from proxy.recall.ranking.select import Passage, allotted_tokens, choose_passages, is_relevant

NOW = 1_800_000_000.0
"""15 January 2027, a Friday."""
DAY = 86_400.0
HOUR = 3_600.0


@dataclass(frozen=True)
class Said:
    """A message: by whom, in which session, how long ago (days)."""

    text: str
    role: str = "user"
    session: int = 1
    age: float = 0.04


@dataclass
class Person:
    """Whose messages are recalled."""

    said: Sequence[Said]
    passages: dict[int, Passage] = field(init=False)
    rows: Array = field(init=False)
    postings: dict[bytes, bytes] = field(init=False)
    corpus: Corpus = field(init=False)

    def __post_init__(self) -> None:
        entries: list[TermEntry] = []
        self.passages = {}
        seqs: Counter[int] = Counter()
        for number, said in enumerate(self.said):
            time = NOW - said.age * DAY
            seqs[said.session] += 1
            seq = seqs[said.session]
            tokens = 1 + len(said.text) // (4 if said.text.isascii() else 2)
            flags = SAID_BY_USER if said.role == "user" else 0
            traits = told_trait_terms(tokenize(said.text)) if flags else ()
            analysis = analyse(said.text, time, "english", traits)
            entries.append(TermEntry(said.session, seq, 0, time, tokens, flags, analysis))
            self.passages[number] = Passage(number, said.session, seq, said.role, said.text, tokens)
        packed = pack(entries, 0)
        self.rows, self.postings = read_rows(packed.rows), packed.postings
        self.corpus = Corpus(len(entries), sum(entry.analysis.length for entry in entries))

    def matches(self, question: Question, newest: int = 5_000) -> Matches:
        found = (self.postings.get(term, b"") for term in question.terms)
        postings = tuple(
            Postings(len(data) // POSTING_SIZE, data[-newest * POSTING_SIZE :])
            if data
            else NO_POSTINGS
            for data in found
        )
        return match(question, IndexLookup(postings=postings), self.corpus)

    def numbers(self, matches: Matches) -> Numbers:
        numbers = candidates(matches)
        return numbers[numbers < len(self.said)]

    def ranked(
        self, text: str, before: Sequence[str] = (), options: RankingOptions | None = None
    ) -> list[Ranked]:
        matches = self.matches(read_question(text, before, NOW))
        numbers = self.numbers(matches)
        return rank_passages(
            matches, numbers, self.rows[numbers], options or RankingOptions(now=NOW)
        )

    def recall(
        self,
        text: str,
        before: Sequence[str] = (),
        budget: int = 1_000,
        options: RankingOptions | None = None,
    ) -> list[str]:
        """The texts that a question gets, best first."""
        question = read_question(text, before, NOW)
        matches = self.matches(question)
        if question.is_empty or not is_relevant(matches, RecallOptions().min_score):
            return []
        ranked = self.ranked(text, before, options)
        short = ranked[
            : count_worth_reading(np.array([each.tokens for each in ranked], np.uint16), budget)
        ]
        room = allotted_tokens(matches, budget)
        chosen = choose_passages(matches, short, self.passages.get, room, (text,))
        return [passage.text for passage in chosen]


FILLER = tuple(
    Said(text, role, session)
    for session, text, role in (
        (91, "Could you check the grammar of this paragraph?", "user"),
        (91, "Two commas are missing; everything else reads well.", "assistant"),
        (92, "Which spreadsheet function adds only visible rows?", "user"),
        (92, "SUBTOTAL with the code 109 ignores hidden rows.", "assistant"),
        (93, "Explain recursion with a short example.", "user"),
        (93, "A function that calls itself on a smaller input.", "assistant"),
        (94, "The boiler makes a rattling noise in the cellar.", "user"),
        (94, "Bleed the radiators first, then look at the pump.", "assistant"),
    )
)
"""Messages about other things."""


def person(*said: Said) -> Person:
    """Somebody who said this, among other things."""
    return Person([*said, *FILLER])
