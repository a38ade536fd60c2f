"""Splits changes of thousands of messages into steps: a store does nothing else during one.

Between two steps others see the session with some of its newest messages superseded.  If the change
is interrupted there, repeating it completes it.
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
    """A step before a commit: it only supersedes and activates messages, and is refused if the
    commit would be."""


def commit_steps(commit: Commit) -> list[Commit]:
    """The steps before the commit, and the commit itself with the rest."""
    *ahead, (superseded, activated) = _steps(commit.superseded, commit.activated)
    if not ahead:
        return [commit]
    fields = asdict(replace(commit, drafts=()))
    first, *others = [CommitStep(**fields | {"superseded": s, "activated": a}) for s, a in ahead]
    last = replace(commit, superseded=superseded, activated=activated)
    # The first one changes the log that the others were planned for.
    return [first, *(replace(each, planned_for=None) for each in (*others, last))]


def revision_steps(revision: Revision) -> list[Revision]:
    """Steps that only change states, and a last one with the rest.  Only the first one checks the
    size of the log, which it changes."""
    *ahead, (superseded, activated) = _steps(revision.superseded, revision.activated)
    if not ahead:
        return [revision]
    first, *others = [Revision(superseded=some, activated=them) for some, them in ahead]
    last = replace(revision, superseded=superseded, activated=activated, log_size=None)
    return [replace(first, log_size=revision.log_size), *others, last]


def _steps(superseded: tuple[str, ...], activated: tuple[str, ...]) -> Iterator[Switched]:
    """Ids in the order of the log: the newest are superseded first, the oldest activated first.

    All are superseded before one is activated: what is in both stays active.
    """
    if len(superseded) + len(activated) <= SWITCHED_AT_ONCE:
        yield superseded, activated
        return
    for end in range(len(superseded), 0, -SWITCHED_AT_ONCE):
        yield superseded[max(0, end - SWITCHED_AT_ONCE) : end], ()
    for begin in range(0, len(activated), SWITCHED_AT_ONCE):
        yield (), activated[begin : begin + SWITCHED_AT_ONCE]
