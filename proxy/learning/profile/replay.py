"""A profile as if some of what it was learned from had never been read.  Pure.

The patches that remain are carried out again from the start.  What an operation meant is what
counts, and not where that was: an index in a list follows its element, what is replaced but was
never there is added, and what means something that is not there any more is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

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
    after,
    applied,
    differences,
    pointer,
    same,
    tokens,
)
from proxy.learning.profile.statement import bounded, holds, idle, with_idle
from proxy.learning.profile.times import (
    Entered,
    entered,
    note_statement,
    note_version,
    told_at,
)

_PLACES = ("from", "path")
_PUTS = ("add", "replace")
_END = "-"


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
    """The versions that are left so far, and when what the last one has was said."""

    def __init__(self, gone: IsGone) -> None:
        self._gone = gone
        self._times: dict[str, float] = {}
        self._documents: dict[int, Document] = {}
        self.kept: list[Version] = []

    def carry_out(self, version: Version, was: Document) -> None:
        """Once more, what was once made of the document ``was``."""
        now = self._now
        if version.before is not None:
            then = _of_what_is_left(version, self._gone)
            note_version(self._times, then, now)
        else:
            then = self._heeding(self._as_a_whole(version, was, now), version.said, now)
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

    def _as_a_whole(self, version: Version, was: Document, now: Document) -> Version:
        """A version without its statements, carried out on ``now``."""
        if version.rolled_back_to in self._documents:
            return _repeated(version, now, self._documents[version.rolled_back_to], self._gone)
        if any(map(self._gone, version.sources)):
            return replace(version, document=now, patch=(), sources=(), said=())
        patch, document = _carried_out(version.whole, was, now)
        sources = version.sources if patch or not version.whole else ()
        return replace(version, document=document, patch=tuple(patch), sources=sources, said=())

    def _heeding(self, version: Version, said: Sequence[Statement], was: Document) -> Version:
        """A version, made of the document ``was``, after what of this is not gone."""
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
        for path in (operation[place] for place in _PLACES if place in operation):
            names = tokens(path)
            whole = operation["op"] in _PUTS and len(names) < 2
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


def _carried_out(
    patch: Sequence[Operation], was: Document, now: Document
) -> tuple[list[Operation], Document]:
    """The operations that still mean something, as they are now, and the document after them."""
    done: list[Operation] = []
    start = now
    for operation in patch:
        try:
            steps = list(_meant(operation, was, now))
            now = applied(now, steps)
            done += steps
        except (LookupError, ValueError):
            if operation["op"] == "test":
                return [], start
        was = after(was, operation)
    return done, now


def _meant(operation: Operation, was: Document, now: Document) -> Iterator[Operation]:
    """The operations that do to ``now`` what this one did to ``was``.

    What holds a value that is put somewhere is put there first.  Raises LookupError for places that
    are not there any more.
    """
    found = dict(operation)
    for place in _PLACES:
        if place in operation:
            names = tokens(operation[place])
            puts = place == "path" and operation["op"] in (*_PUTS, "move", "copy")
            holders, found[place] = _followed(names, was, now, puts=puts)
            yield from holders
    if operation["op"] == "replace" and operation["path"] and not _there(found["path"], now):
        found["op"] = "add"
    yield found


def _followed(
    names: Sequence[str], was: Any, now: Any, *, puts: bool
) -> tuple[list[Operation], str]:
    """Where a place is now, and what to add first so that there is such a place."""
    missing: list[Operation] = []
    path: list[str] = []
    for number, name in enumerate(names):
        last = number == len(names) - 1
        step = _index(name, was, now, last=last, puts=puts) if isinstance(was, list) else name
        path.append(step)
        was = _inner(was, name)
        now = _inner(now, step)
        if now is None and puts and not last:
            now = [] if isinstance(was, list) else {}
            missing.append({"op": "add", "path": pointer(path), "value": now})
    return missing, pointer(path)


def _index(name: str, was: list[Any], now: Any, *, last: bool, puts: bool) -> str:
    """Which element of the list as it is now is the one at an index of the list as it was.

    In lists of one length it is the one in its place, unless it is itself what is taken away.
    """
    there = now if isinstance(now, list) else []
    if name == _END:
        return name
    index = int(name)
    if index < min(len(was), len(there)) and same(was[index], there[index]):
        return name
    if index < len(was):
        for other, value in enumerate(there):
            if same(value, was[index]):
                return str(other)
        if len(was) == len(there) and (puts or not last):
            return name
    if puts and last:
        return _END
    raise LookupError(name)


def _inner(value: Any, name: str) -> Any:
    """What is at a name or an index; None if there is nothing."""
    if isinstance(value, dict):
        return value.get(name)
    if isinstance(value, list) and name.isdecimal() and int(name) < len(value):
        return value[int(name)]
    return None


def _there(path: str, now: Any) -> bool:
    *outer, last = tokens(path)
    for name in outer:
        now = _inner(now, name)
    return last in now if isinstance(now, dict) else isinstance(now, list) and last != _END


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
