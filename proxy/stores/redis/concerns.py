"""Warnings about settings of a Redis server that may lose memory.  Pure.

Managed servers forbid CONFIG, and users may not be allowed INFO: unknown settings give no warning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

QUESTIONS = (("INFO",), ("CONFIG", "GET", "save"))
"""The commands whose replies ``warnings_of`` gets."""

CLOCKS_APART = 2.0
"""A difference between two hosts' clocks (s) that is worth a warning."""

Facts = Mapping[str, str]


def warnings_of(replies: Sequence[Any], wait_replicas: int, now: float) -> Iterator[str]:
    """The warnings, from a server's replies.  ``now`` is this host's time in Unix seconds."""
    info, config = replies
    facts = _facts(info)
    policy = facts.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        yield (
            f"maxmemory-policy is {policy}: a full server drops parts of sessions; set noeviction"
        )
    if facts.get("aof_enabled") == "0" and _saved(config) == "":
        yield "neither appendonly nor save is set: all memory is gone when the server ends"
    if "connected_slaves" in facts and (there := _online(facts)) < wait_replicas:
        yield (
            f"{there} of {wait_replicas} replicas are connected (store.wait_replicas):"
            " every exchange goes to the spool"
        )
    apart = now - int(facts["server_time_usec"]) / 1e6 if "server_time_usec" in facts else 0.0
    if abs(apart) > CLOCKS_APART:
        yield (
            f"this host's clock is {abs(apart):.0f} s {'behind' if apart < 0 else 'ahead of'} the"
            " server's: a host that lags loses what is said right after an erasure; keep clocks in"
            " step (NTP)"
        )


def _facts(info: Any) -> Facts:
    """The lines of INFO; none if it was refused."""
    if not isinstance(info, bytes):
        return {}
    lines = (line.partition(":") for line in info.decode("utf-8", "replace").splitlines())
    return {name: value for name, colon, value in lines if colon}


def _saved(config: Any) -> str | None:
    """When snapshots are written: "" for never, None if unknown."""
    if isinstance(config, list) and len(config) == 2 and isinstance(config[1], bytes):
        return config[1].decode("utf-8", "replace")
    return None


def _online(facts: Facts) -> int:
    replicas = (facts.get(f"slave{n}", "") for n in range(int(facts["connected_slaves"])))
    return sum("state=online" in replica.split(",") for replica in replicas)
