"""Changes of thousands of messages, in steps: while it takes one, a store does nothing else.

Between two steps others see the session with a part of its newest messages taken back.  Where it is
cut off there, coming again does the rest.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import asdict, replace

from proxy.memory.archive import Revision
from proxy.memory.model import Commit

SWITCHED_AT_ONCE = 1000
"""Messages that a step supersedes or activates."""

Switched = tuple[tuple[str, ...], tuple[str, ...]]
"""What a step supersedes and what it activates, by id."""


class CommitStep(Commit, frozen=True, kw_only=True):
    """A part of a commit that goes ahead of it: it only supersedes and activates, and is refused
    where the commit would be."""


def commit_steps(commit: Commit) -> list[Commit]:
    """The parts that go ahead, and the commit itself with the rest."""
    *ahead, (gone, back) = _steps(commit.superseded, commit.activated)
    if not ahead:
        return [commit]
    fields = asdict(replace(commit, drafts=()))
    parts = [CommitStep(**(fields | {"superseded": s, "activated": a})) for s, a in ahead]
    others = [replace(part, seen=None) for part in parts[1:]]  # they find what the first has done
    return [parts[0], *others, replace(commit, superseded=gone, activated=back, seen=None)]


def revision_steps(revision: Revision) -> list[Revision]:
    """What only switches; the last one does all else.  The first one finds the log as it was."""
    *ahead, (gone, back) = _steps(revision.superseded, revision.activated)
    if not ahead:
        return [revision]
    first, *others = [Revision(superseded=some, activated=them) for some, them in ahead]
    last = replace(revision, superseded=gone, activated=back, log_size=None)
    return [replace(first, log_size=revision.log_size), *others, last]


def _steps(gone: tuple[str, ...], back: tuple[str, ...]) -> Iterator[Switched]:
    """Ids in the order of the log: the newest are superseded first, the oldest activated first.

    All are superseded before one is activated: what is in both stays active.
    """
    if len(gone) + len(back) <= SWITCHED_AT_ONCE:
        yield gone, back
        return
    for end in range(len(gone), 0, -SWITCHED_AT_ONCE):
        yield gone[max(0, end - SWITCHED_AT_ONCE) : end], ()
    for begin in range(0, len(back), SWITCHED_AT_ONCE):
        yield (), back[begin : begin + SWITCHED_AT_ONCE]
