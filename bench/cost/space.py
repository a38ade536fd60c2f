"""The room that a store takes."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import redis as redis_client


def used(url: str) -> int:
    """Bytes: of a SQLite file without its free pages, or of a Redis server's memory."""
    if url.startswith("redis"):
        return _of_redis(url)
    return _of_sqlite(url.removeprefix("sqlite:///"))


def _of_sqlite(path: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        size, pages, free = (
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_size", "page_count", "freelist_count")
        )
        return int(size * (pages - free))


def _of_redis(url: str) -> int:
    with closing(redis_client.Redis.from_url(url)) as client:
        return int(client.info("memory")["used_memory"])
