"""Stores on the SQLite of older systems."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from proxy.process.sqlite_version import mend_group_concat, version_problem

pytestmark = pytest.mark.one_back_end("sqlite")

OLD = (3, 34, 1)
"""That of RHEL 9."""


def test_a_version_that_is_too_old_is_told_with_what_to_do() -> None:
    told = version_problem((3, 31, 1))
    assert told == (
        "this Python has SQLite 3.31.1; take one with 3.32 or newer, or a store in Redis"
    )
    assert version_problem(OLD) is None
    assert version_problem() is None


@pytest.mark.parametrize(
    "values",
    [
        pytest.param([b"\0\1\2", b"", b"\xff\0"], id="blobs"),
        pytest.param(["naïve", "", "\u20ac"], id="texts"),
        pytest.param([1, -2, 3], id="numbers"),
        pytest.param([None, b"\0", None, 7], id="with nulls"),
        pytest.param([None], id="nulls alone"),
        pytest.param([], id="nothing"),
    ],
)
@pytest.mark.parametrize("separator", ["", ","])
def test_values_are_joined_as_newer_versions_join_them(
    values: list[object], separator: str
) -> None:
    def joined(version: tuple[int, ...]) -> object:
        with closing(sqlite3.connect(":memory:")) as connection:
            mend_group_concat(connection, version)
            connection.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, v)")
            connection.executemany("INSERT INTO t (v) VALUES (?)", [(each,) for each in values])
            query = "SELECT CAST(group_concat(v, ?) AS BLOB), group_concat(length(v)) FROM t"
            return connection.execute(query, (separator,)).fetchone()

    expected = joined((3, 37, 0))
    if sqlite3.sqlite_version_info >= (3, 37):
        assert joined(OLD) == expected
    present = [each for each in values if each is not None]
    raw = [each if isinstance(each, bytes) else str(each).encode() for each in present]
    assert joined(OLD)[0] == (separator.encode().join(raw) if raw else None)  # type: ignore[index]
