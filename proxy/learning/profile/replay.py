"""A profile as if some of what it was learned from had never been read.  Pure.

The patches that remain are carried out again from the start, see ``rebase``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from proxy.chat.jsontext import canonical
from proxy.learning.collection import Forgotten
from proxy.learning.evidence import IsGone, Source
from proxy.learning.profile.document import (
    Document,
    Operation,
    PatchError,
    Statement,
    Version,
    differences,
    tokens,
)
from proxy.learning.profile.rebase import PLACES, PUTS, rebased
from proxy.learning.profile.statement import bounded, holds, idle, with_idle
from proxy.learning.profile.times import (
    Entered,
    entered,
    note_statement,
    note_version,
    told_at,
)


def replayed(versions: Sequence[Version], gone: IsGone) -> list[Version]:
    """The versions (by number) that are left, with the documents and patches that they have then.

    Those are dropped of which nothing is left.  What else was said counts as if it had been read
    without what is gone: once more, or before something that was said later.
    """
    replay = _Replay(gone)
    was: Document = {}
    for version in versions:
        replay.carry_out(version, was)
        was = version.document
    return replay.kept


class _Replay:
    """Versions that are carried out again, one after the other."""

    def __init__(self, gone: IsGone) -> None:
        self._gone = gone
        self._times: dict[str, float] = {}
        """When each part of the newest document was said last, by path."""
        self._documents: dict[int, Document] = {}
        """What was the newest document behind each version, by its number."""
        self.kept: list[Version] = []
        """The versions that are left so far."""

    def carry_out(self, version: Version, was: Document) -> None:
        """A version that was made of the document ``was``."""
        now = self._now
        if version.before is not None:
            then = _of_what_is_left(version, self._gone)
            note_version(self._times, then, now)
        else:
            then = self._with_said(self._without_said(version, was, now), version.said, now)
        by_hand = version.rolled_back_to is not None
        first = not self.kept and bool(then.said)  # what was said of it must lie somewhere
        if then.patch or then.before is not None or by_hand or first:
            self.kept.append(then)
        elif self.kept:
            self.kept[-1] = with_idle(self.kept[-1], then.said)
        self._documents[version.version] = self._now

    @property
    def _now(self) -> Document:
        return self.kept[-1].document if self.kept else {}

    def _without_said(self, version: Version, was: Document, now: Document) -> Version:
        """The version as it comes of ``now``, without what is from its statements."""
        if version.rolled_back_to in self._documents:
            return _repeated(version, now, self._documents[version.rolled_back_to], self._gone)
        if any(map(self._gone, version.sources)):
            return replace(version, document=now, patch=(), sources=(), said=())
        patch, document = rebased(version.whole, was, now)
        sources = version.sources if patch or not version.whole else ()
        return replace(version, document=document, patch=tuple(patch), sources=sources, said=())

    def _with_said(self, version: Version, said: Sequence[Statement], was: Document) -> Version:
        """The version, made of the document ``was``, with those statements that are not gone."""
        note_version(self._times, version, was)
        document, patch, heard = version.document, [*version.patch], list[Statement]()
        for each in said:
            if not self._gone(each.source):
                made = _entered(each, document, self._times)
                note_statement(self._times, made.statement, was)
                document = made.document
                patch += made.patch
                heard.append(made.statement)
        return replace(version, document=document, patch=tuple(patch), said=tuple(heard))


def _entered(statement: Statement, document: Document, times: Mapping[str, float]) -> Entered:
    try:
        return entered(statement, document, times)
    except PatchError:
        return Entered(replace(statement, operations=0), (), document)


def folded(oldest: Version, following: Version) -> Version:
    """Two versions as one, which is the second: its document, and where each member is from.

    Of what was said until the first, that stays which the document agrees with.
    """
    before = oldest.before if oldest.before is not None else _origins(oldest, {})
    if following.rolled_back_to is not None:
        origins = {name: following.taught_by for name in following.document}
    else:
        origins = _origins(following, before)
    there = {name: origins[name] for name in following.document if name in origins}
    agreeing = idle(each for each in oldest.said if holds(each, following.document))
    return replace(following, before=there, said=bounded((*agreeing, *following.said)))


def _origins(
    version: Version, before: Mapping[str, tuple[Source, ...]]
) -> dict[str, tuple[Source, ...]]:
    """Where the members of the document are from that a version changes, and all others."""
    origins = dict(before)
    for operation, sources in version.steps:
        for path in (operation[place] for place in PLACES if place in operation):
            names = tokens(path)
            whole = operation["op"] in PUTS and len(names) < 2
            for name in names[:1] or version.document:
                earlier = () if whole else origins.get(name, ())
                origins[name] = tuple(dict.fromkeys((*earlier, *sources)))
    return origins


def _repeated(version: Version, now: Document, document: Document, gone: IsGone) -> Version:
    """A version that went back to an earlier one, with the ``document`` that this one has by now.

    ``now`` is the document before it.
    """
    return replace(
        version,
        document=document,
        patch=tuple(differences(now, document)),
        sources=tuple(source for source in version.sources if not gone(source)),
        said=(),
    )


def _of_what_is_left(version: Version, gone: IsGone) -> Version:
    """What versions became of which only that is known where each member is from: without those
    that are from something gone, but with what else was said of these."""
    origins = version.before or {}
    lost = {name for name, sources in origins.items() if any(map(gone, sources))}
    said = tuple(each for each in version.said if not gone(each.source))
    if not lost and not any(map(gone, version.taught_by)):
        return replace(version, said=said)
    left = replace(
        version,
        document={name: value for name, value in version.document.items() if name not in lost},
        before={name: sources for name, sources in origins.items() if name not in lost},
        patch=(),
        sources=(),
        said=(),
    )
    return _restored(left, [each for each in idle(said) if holds(each, version.document)])


def _restored(version: Version, said: Sequence[Statement]) -> Version:
    """The same with what was said of it as well; its patch is history, and stays empty."""
    document, origins, times = version.document, dict(version.before or {}), told_at([version])
    for each in said:
        made = _entered(each, document, times)
        document = made.document
        for name in tokens(each.path)[:1] if made.patch else ():
            origins[name] = (*origins.get(name, ()), each.source)
    return replace(version, document=document, before=origins, said=tuple(said))


def undone(before: Sequence[Version], left: Sequence[Version]) -> Iterator[Forgotten]:
    """The versions that are not there any more, or have lost a part."""
    now = {version.version: version for version in left}
    for version in before:
        then = now.get(version.version)
        lost = _lost(version, then)
        if lost or then is None or then.before != version.before:
            text = "; ".join(map(_change, lost))
            yield Forgotten(f"profile_{version.version}", "profile", "rolled_back", text)


def _lost(version: Version, then: Version | None) -> list[Operation]:
    """What a version changed and does not change any more, in whatever words."""
    left = set(map(_done, then.patch)) if then is not None else set()
    return [each for each in version.patch if _done(each) not in left]


def _done(operation: Operation) -> tuple[bool, str, bytes]:
    """What comes of an operation: "add" and "replace" put the same."""
    value = canonical(operation.get("value"))
    return operation["op"] == "remove", operation["path"], value


def _change(operation: Operation) -> str:
    told = f"{operation['op']} {operation['path']}"
    if "value" not in operation:
        return told
    return f"{told}: {msgspec.json.encode(operation['value']).decode()}"
