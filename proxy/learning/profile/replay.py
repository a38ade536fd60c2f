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

from proxy.learning.collection import Forgotten
from proxy.learning.evidence import IsGone, Source
from proxy.learning.profile.document import (
    Document,
    Operation,
    Version,
    after,
    applied,
    differences,
    pointer,
    same,
    tokens,
)

_PLACES = ("from", "path")
_PUTS = ("add", "replace")
_END = "-"


def replayed(versions: Sequence[Version], gone: IsGone) -> list[Version]:
    """The versions (by number) that are left, with the documents and patches that they have then.

    Those are dropped that were learned from something gone, and those of which nothing is left.
    """
    was: Document = {}
    now: Document = {}
    documents: dict[int, Document] = {}
    kept: list[Version] = []
    for version in versions:
        then = _again(version, was, now, documents, gone)
        was = version.document
        if then is not None:
            now = then.document
            kept.append(then)
        documents[version.version] = now
    return kept


def folded(oldest: Version, following: Version) -> Version:
    """Two versions as one, which is the second: its document, and where each member is from."""
    before = oldest.before if oldest.before is not None else _origins(oldest, {})
    if following.rolled_back_to is not None:
        origins = {name: following.sources for name in following.document}
    else:
        origins = _origins(following, before)
    there = {name: origins[name] for name in following.document if name in origins}
    return replace(following, before=there)


def _origins(
    version: Version, before: Mapping[str, tuple[Source, ...]]
) -> dict[str, tuple[Source, ...]]:
    """Where the members of the document are from that a version changes, and all others."""
    origins = dict(before)
    for operation in version.patch:
        for path in (operation[place] for place in _PLACES if place in operation):
            names = tokens(path)
            whole = operation["op"] in _PUTS and len(names) < 2
            for name in names[:1] or version.document:
                earlier = () if whole else origins.get(name, ())
                origins[name] = tuple(dict.fromkeys((*earlier, *version.sources)))
    return origins


def _again(
    version: Version,
    was: Document,
    now: Document,
    documents: dict[int, Document],
    gone: IsGone,
) -> Version | None:
    """A version carried out on ``now`` that was once on ``was``; None if nothing is left of it."""
    if version.before is not None:
        return _of_what_is_left(version, gone)
    if version.rolled_back_to in documents:
        return _repeated(version, now, documents[version.rolled_back_to], gone)
    if any(map(gone, version.sources)):
        return None
    patch, document = _carried_out(version.patch, was, now)
    if not patch and version.patch:
        return None
    return replace(version, patch=tuple(patch), document=document)


def _repeated(version: Version, now: Document, document: Document, gone: IsGone) -> Version:
    return replace(
        version,
        document=document,
        patch=tuple(differences(now, document)),
        sources=tuple(source for source in version.sources if not gone(source)),
    )


def _of_what_is_left(version: Version, gone: IsGone) -> Version:
    origins = version.before or {}
    lost = {name for name, sources in origins.items() if any(map(gone, sources))}
    if not lost and not any(map(gone, version.sources)):
        return version
    return replace(
        version,
        document={name: value for name, value in version.document.items() if name not in lost},
        before={name: sources for name, sources in origins.items() if name not in lost},
        patch=(),
        sources=(),
    )


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
        if then is None or (then.patch, then.before) != (version.patch, version.before):
            name = f"profile_{version.version}"
            yield Forgotten(name, "profile", "rolled_back", _text(version))


def _text(version: Version) -> str:
    """What a version changed, on one line."""
    return "; ".join(_change(operation) for operation in version.patch)


def _change(operation: Operation) -> str:
    told = f"{operation['op']} {operation['path']}"
    if "value" not in operation:
        return told
    return f"{told}: {msgspec.json.encode(operation['value']).decode()}"
