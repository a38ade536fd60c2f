"""All postings of an index, laid close together, are those that were written."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import pytest

from proxy.recall.index import NO_POSTINGS, POSTING_SIZE, TERM_SIZE, Postings
from proxy.recall.term_cache import MIN_ADDED_TERMS, AllTerms

EDGES = [bytes(TERM_SIZE), b"\xff" * TERM_SIZE, b"\0" * 7 + b"\xff", b"\xff" + b"\0" * 7]


@pytest.mark.parametrize("seed", range(4))
def test_what_was_added_is_found(seed: int) -> None:
    random = Random(seed)
    terms = EDGES + [random.randbytes(TERM_SIZE) for _ in range(3 * MIN_ADDED_TERMS)]
    there = {term: random.randbytes(POSTING_SIZE) for term in random.sample(terms, 40 * seed)}
    known = AllTerms(*_packed(there))
    for _ in range(60):
        added = {
            term: random.randbytes(POSTING_SIZE * random.randint(1, 3))
            for term in random.sample(terms, random.randint(0, 30))
        }
        known.add(added)
        there = {term: there.get(term, b"") + added.get(term, b"") for term in {**there, **added}}
        asked = EDGES + random.sample(terms, 20)
        expected = [
            Postings(len(data) // POSTING_SIZE, data) if data else NO_POSTINGS
            for data in (there.get(term, b"") for term in asked)
        ]
        assert known.find(asked) == tuple(expected)


def _packed(postings: Mapping[bytes, bytes]) -> tuple[bytes, list[int], bytes]:
    found = sorted(postings.items())
    data = [each for _, each in found]
    return b"".join([term for term, _ in found]), [*map(len, data)], b"".join(data)


def test_what_it_takes_stays_near_the_postings() -> None:
    random, known = Random(7), AllTerms()
    for _ in range(400):
        known.add({random.randbytes(TERM_SIZE): bytes(POSTING_SIZE) for _ in range(25)})
    assert 180_000 < known.size_bytes < 240_000 + 0.25 * 10_000 * 200
    assert known.find([]) == ()
