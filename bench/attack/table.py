"""The table of the attacks, as Markdown.  Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from bench.attack.suite import Result
from bench.attack.watch import Seen

HEAD = (
    "| attack | store | the attacker was answered | seconds | stall ms | Redis ms "
    "| victim's slowest ms | victim's chats | degraded | failed | MB before | MB most |\n"
    "|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
)


def report(results: Sequence[Result]) -> str:
    return "\n".join([HEAD, *(line for result in results for line in lines(result))])


def lines(result: Result) -> Iterator[str]:
    counts = Counter(result.statuses)
    answered = ", ".join(f"{n} x {what}" if n > 1 else what for what, n in counts.items())
    yield _line(result, result.name, answered, f"{result.seconds:.1f}", result.seen)
    if result.restarted is not None:
        yield _line(result, f"{result.name}: restarted", "", "", result.restarted)


def _line(result: Result, name: str, answered: str, seconds: str, seen: Seen) -> str:
    cells = [
        name,
        result.store,
        answered,
        seconds,
        f"{seen.stall * 1000:.0f}",
        f"{result.longest * 1000:.0f}" if result.longest else "",
        f"{seen.slowest_chat * 1000:.0f}",
        str(seen.chats),
        str(seen.degraded),
        str(seen.failed),
        f"{result.base / 1e6:.0f}",
        f"{seen.rss / 1e6:.0f}",
    ]
    return f"| {' | '.join(cells)} |"
