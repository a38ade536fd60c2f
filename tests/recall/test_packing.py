"""The packed formats: what is written is read, and what does not fit is bounded."""

from __future__ import annotations

import struct

import pytest

from proxy.recall.index import POSTING_SIZE, ROW_SIZE, TERM_SIZE
from proxy.recall.ranking.packing import (
    LENGTHS,
    coded_length,
    mark_check,
    read_postings,
    read_rows,
    term_of,
)


def test_rows_are_read_as_they_lie_in_a_store() -> None:
    data = struct.pack("<IIIIHBB", 1, 2, 3, 4, 5, 6, 7) + bytes(ROW_SIZE)
    rows = read_rows(data)
    assert rows.tolist() == [(1, 2, 3, 4, 5, 6, 7), (0, 0, 0, 0, 0, 0, 0)]
    assert int.from_bytes(data[:4], "little") == rows["session"][0]


def test_postings_are_read_as_they_lie_in_a_store() -> None:
    data = struct.pack("<IBBIBB", 7, 2, 30, 2**32 - 1, 255, 255)
    assert len(data) == 2 * POSTING_SIZE
    assert read_postings(data).tolist() == [(7, 2, 30), (2**32 - 1, 255, 255)]
    assert not read_postings(b"").size


@pytest.mark.parametrize("terms", [0, 1, 2, 5, 10, 50, 100, 1000, 10_000, 60_000])
def test_a_coded_length_is_the_length_within_a_few_percent(terms: int) -> None:
    coded = coded_length(terms)
    assert 0 <= coded <= 255
    assert abs(float(LENGTHS[coded]) - terms) <= max(1, 0.05 * terms)


def test_coded_lengths_never_fall_and_end_at_a_byte() -> None:
    coded = [coded_length(terms) for terms in range(0, 70_000, 7)]
    assert coded == sorted(coded)
    assert coded_length(10**9) == 255


def test_a_term_is_a_hash_of_the_word_whatever_is_in_it() -> None:
    words = ["boat", "Boat", "", "船", "\ud83d", "a" * 100_000]
    terms = [term_of(word) for word in words]
    assert {len(term) for term in terms} == {TERM_SIZE}
    assert len(set(terms)) == len(words)
    assert not any(b"boat" in term for term in terms)
    assert term_of("boat") == terms[0]


def test_a_check_tells_messages_apart_and_fits_its_field() -> None:
    checks = {mark_check(f"ex_{n}.0") for n in range(1000)}
    assert len(checks) == 1000
    assert all(0 <= check < 2**32 for check in checks)
