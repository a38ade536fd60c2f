"""Recomputes a profile without some of its sources.  Pure.

The patches that remain are applied again from the start, see ``rebase``.
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
    diff_patch,
    split_pointer,
)
from proxy.learning.profile.rebase import PATH_FIELDS, PUT_OPERATIONS, rebased
from proxy.learning.profile.statement import (
    is_satisfied,
    limit_idle,
    with_idle_statements,
    without_effect,
)
from proxy.learning.profile.times import (
    AppliedStatement,
    apply_statement,
    last_said_times,
    note_statement,
    note_version,
)


def replayed(versions: Sequence[Version], gone: IsGone) -> list[Version]:
    """The versions (by number) without the sources that are ``gone``, with their new documents and
    patches.

    Versions of which nothing is left are dropped.  Other statements are applied again, and may
    have an effect now that they did not have before.
    """
    replay = _Replay(gone)
    was: Document = {}
    for version in versions:
        replay.apply(version, was)
        was = version.document
    return replay.kept


class _Replay:
    """Applies versions again, one after the other."""

    def __init__(self, gone: IsGone) -> None:
        self._gone = gone
        self._times: dict[str, float] = {}
        """The time at which each part of the newest document was last said, by path."""
        self._documents: dict[int, Document] = {}
        """The newest document after each version, by its number."""
        self.kept: list[Version] = []
        """The versions that are left so far."""

    def apply(self, version: Version, was: Document) -> None:
        """Apply a version that was made from the document ``was``."""
        now = self._now
        if version.before is not None:
            then = _without_lost_members(version, self._gone)
            note_version(self._times, then, now)
        else:
            then = self._with_statements_left(
                self._without_statements(version, was, now), version.said, now
            )
        by_hand = version.rolled_back_to is not None
        first = not self.kept and bool(then.said)  # what was said of it must lie somewhere
        if then.patch or then.before is not None or by_hand or first:
            self.kept.append(then)
        elif self.kept:
            self.kept[-1] = with_idle_statements(self.kept[-1], then.said)
        self._documents[version.version] = self._now

    @property
    def _now(self) -> Document:
        return self.kept[-1].document if self.kept else {}

    def _without_statements(self, version: Version, was: Document, now: Document) -> Version:
        """The version applied to ``now``, without the effect of its statements."""
        if version.rolled_back_to in self._documents:
            return _replayed_rollback(
                version, now, self._documents[version.rolled_back_to], self._gone
            )
        if any(map(self._gone, version.sources)):
            return replace(version, document=now, patch=(), sources=(), said=())
        patch, document = rebased(version.shared_operations, was, now)
        sources = version.sources if patch or not version.shared_operations else ()
        return replace(version, document=document, patch=tuple(patch), sources=sources, said=())

    def _with_statements_left(
        self, version: Version, said: Sequence[Statement], was: Document
    ) -> Version:
        """The version, made from the document ``was``, with the statements that are not gone."""
        note_version(self._times, version, was)
        document, patch, applied = version.document, [*version.patch], list[Statement]()
        for each in said:
            if not self._gone(each.source):
                made = _apply_or_idle(each, document, self._times)
                note_statement(self._times, made.statement, was)
                document = made.document
                patch += made.patch
                applied.append(made.statement)
        return replace(version, document=document, patch=tuple(patch), said=tuple(applied))


def _apply_or_idle(
    statement: Statement, document: Document, times: Mapping[str, float]
) -> AppliedStatement:
    try:
        return apply_statement(statement, document, times)
    except PatchError:
        return AppliedStatement(replace(statement, operations=0), (), document)


def merge_versions(oldest: Version, following: Version) -> Version:
    """Merge the oldest version into the following one, whose document stays, with the sources of
    each member in ``before``.

    Statements of the oldest are kept if the document still has what they say.
    """
    before = oldest.before if oldest.before is not None else _origins(oldest, {})
    if following.rolled_back_to is not None:
        origins = {name: following.all_sources for name in following.document}
    else:
        origins = _origins(following, before)
    there = {name: origins[name] for name in following.document if name in origins}
    agreeing = without_effect(
        each for each in oldest.said if is_satisfied(each, following.document)
    )
    return replace(following, before=there, said=limit_idle((*agreeing, *following.said)))


def _origins(
    version: Version, before: Mapping[str, tuple[Source, ...]]
) -> dict[str, tuple[Source, ...]]:
    """The sources of each member after a version, from those ``before`` it."""
    origins = dict(before)
    for operation, sources in version.attributed_operations:
        for path in (operation[place] for place in PATH_FIELDS if place in operation):
            names = split_pointer(path)
            whole = operation["op"] in PUT_OPERATIONS and len(names) < 2
            for name in names[:1] or version.document:
                earlier = () if whole else origins.get(name, ())
                origins[name] = tuple(dict.fromkeys((*earlier, *sources)))
    return origins


def _replayed_rollback(
    version: Version, now: Document, document: Document, gone: IsGone
) -> Version:
    """A rollback version with the new ``document`` of the version that it went back to; ``now`` is
    the document before it."""
    return replace(
        version,
        document=document,
        patch=tuple(diff_patch(now, document)),
        sources=tuple(source for source in version.sources if not gone(source)),
        said=(),
    )


def _without_lost_members(version: Version, gone: IsGone) -> Version:
    """A merged version, which has only the sources of each member, without the members that have a
    source that is gone; their remaining statements are applied again."""
    origins = version.before or {}
    lost = {name for name, sources in origins.items() if any(map(gone, sources))}
    said = tuple(each for each in version.said if not gone(each.source))
    if not lost and not any(map(gone, version.all_sources)):
        return replace(version, said=said)
    left = replace(
        version,
        document={name: value for name, value in version.document.items() if name not in lost},
        before={name: sources for name, sources in origins.items() if name not in lost},
        patch=(),
        sources=(),
        said=(),
    )
    return _with_statements(
        left, [each for each in without_effect(said) if is_satisfied(each, version.document)]
    )


def _with_statements(version: Version, said: Sequence[Statement]) -> Version:
    """The version with these statements applied to its document; its patch stays empty."""
    document, origins = version.document, dict(version.before or {})
    times = last_said_times([version])
    for each in said:
        made = _apply_or_idle(each, document, times)
        document = made.document
        for name in split_pointer(each.path)[:1] if made.patch else ():
            origins[name] = (*origins.get(name, ()), each.source)
    return replace(version, document=document, before=origins, said=tuple(said))


def rolled_back(before: Sequence[Version], left: Sequence[Version]) -> Iterator[Forgotten]:
    """The versions that were dropped or have lost operations, for the receipt."""
    now = {version.version: version for version in left}
    for version in before:
        then = now.get(version.version)
        lost = _lost(version, then)
        if lost or then is None or then.before != version.before:
            text = "; ".join(map(_render_operation, lost))
            yield Forgotten(f"profile_{version.version}", "profile", "rolled_back", text)


def _lost(version: Version, then: Version | None) -> list[Operation]:
    """The operations of a version whose effect it does not have any more."""
    left = set(map(_effect, then.patch)) if then is not None else set()
    return [each for each in version.patch if _effect(each) not in left]


def _effect(operation: Operation) -> tuple[bool, str, bytes]:
    """An operation's effect, for comparison: "add" and "replace" have the same."""
    value = canonical(operation.get("value"))
    return operation["op"] == "remove", operation["path"], value


def _render_operation(operation: Operation) -> str:
    rendered = f"{operation['op']} {operation['path']}"
    if "value" not in operation:
        return rendered
    return f"{rendered}: {msgspec.json.encode(operation['value']).decode()}"
