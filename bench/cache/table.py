"""The result as Markdown.  Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.cache.suite import Result


def report(results: Sequence[Result]) -> str:
    """A table of tokens, and in how many turns recall found something."""
    turns = len(results[0].used)
    found = sorted({each.recalled for each in results if each.row.profile is not None})
    recalled = " to ".join(str(count) for count in dict.fromkeys((found[0], found[-1])))
    note = f"Tokens of {turns} turns; recall found something in {recalled} of them."
    return "\n".join([*_table(results), "", note])


def _table(results: Sequence[Result]) -> Iterator[str]:
    yield "| | prompts | read | written | billed as | saved |"
    yield "|---|" + "--:|" * 5
    for each in results:
        total = each.total
        counts = (total.prompt, total.read, total.written, each.billed)
        shown = " | ".join(f"{count:,.0f}" for count in counts)
        yield f"| {each.row.id} | {shown} | {1 - each.billed / total.prompt:.0%} |"
