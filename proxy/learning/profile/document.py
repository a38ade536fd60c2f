"""A person's profile: one JSON document, with every version that it had.

It is kept under ("users", U): "profile" holds the current one, "profiles" its versions, "card" what
of it goes into prompts.  Who changes the current one compares its version first, so that it is the
lock of all three.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import jsonpatch
import msgspec

from proxy.chat.jsontext import canonical
from proxy.lazy import lazy_import
from proxy.learning.evidence import Source
from proxy.memory.items import PEOPLE, Place

if TYPE_CHECKING:
    from proxy.learning.profile import judging
else:  # 3 MB that only a profile with a schema needs
    judging = lazy_import("proxy.learning.profile.judging")

FEATURE = "profile"

MAX_VERSIONS = 200
"""Of more, the two oldest become one."""

Origin = Literal["learned", "edited"]

Way = Literal["set", "append", "remove"]


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """The current document.  ``version`` is its number, ``kept`` those of all versions there are.

    ``last`` is the highest number there ever was: none is given twice.
    """

    document: Document = {}
    version: int = 0
    last: int = 0
    kept: tuple[int, ...] = ()


class Statement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What somebody said of a member of the document, and in which message.

    So many ``operations`` of a version's patch came of it: none where it was so already, or where
    something else had been said later.
    """

    way: Way
    path: str
    value: Any = None
    source: Source
    operations: int = 0


class Version(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A document and the patch that made it from the version before.  ``created_at``: Unix seconds.

    ``said`` is what was said until the next version, in the order in which it was read; the last
    operations of the patch are from that.  Those before them are from all ``sources`` together.
    Of a first version the patch is empty where all that was said is of what is no more.
    ``rolled_back_to`` is the number of the version that it repeats; its patch says the same.
    ``before`` is where each member of the document is from, of a version into which all before it
    were folded: its patch is history.
    """

    version: int
    document: Document
    patch: tuple[Operation, ...] = ()
    origin: Origin = "learned"
    sources: tuple[Source, ...] = ()
    said: tuple[Statement, ...] = ()
    created_at: float = 0.0
    rolled_back_to: int | None = None
    before: dict[str, tuple[Source, ...]] | None = None

    @property
    def whole(self) -> tuple[Operation, ...]:
        """The operations that are from all sources together."""
        return self.patch[: len(self.patch) - sum(each.operations for each in self.said)]

    @property
    def taught_by(self) -> tuple[Source, ...]:
        """Where all of the patch is from."""
        told = (each.source for each in self.said if each.operations)
        return tuple(dict.fromkeys((*self.sources, *told)))

    @property
    def steps(self) -> Iterator[tuple[Operation, tuple[Source, ...]]]:
        """The operations of the patch, each with where it is from."""
        said = ((each.source,) for each in self.said for _ in range(each.operations))
        together = (self.sources for _ in self.whole)
        return zip(self.patch, chain(together, said), strict=False)


def profile_place(user: str) -> Place:
    return Place((PEOPLE, user, FEATURE), "current")


def version_place(user: str, version: int) -> Place:
    """Where a version is kept: in the order of their numbers."""
    return Place((PEOPLE, user, "profiles"), f"{version:08}")


Document = dict[str, Any]
"""A JSON object."""

Operation = dict[str, Any]
"""An operation of a JSON Patch (RFC 6902)."""

MAX_BYTES = 8192
"""Of a document as compact JSON, and of a patch."""

MAX_OPERATIONS = 100

DEEPEST = 16
"""Objects and lists within each other."""

_MAX_ERROR_CHARACTERS = 160
"""Characters of what a library says is wrong."""


class PatchError(ValueError):
    """A change that cannot be made: why, and at which ``path`` (JSON Pointer), if it is at one."""

    def __init__(self, problem: str, path: str | None = None) -> None:
        super().__init__(f"{path}: {problem}" if path else problem)
        self.problem, self.path = problem, path


def apply_patch(document: Document, patch: Sequence[object]) -> Document:
    """The document after a patch, which is applied as a whole or not at all; raises PatchError.

    The size is checked after each operation: copies of copies grow without bounds.
    """
    if len(patch) > MAX_OPERATIONS:
        raise PatchError(f"more than {MAX_OPERATIONS} operations")
    for number, operation in enumerate(patch):
        try:
            document = apply_operation(document, operation)
        except PatchError as error:
            told = f"operation {number} ({_name(operation, 'op')}): {error.problem}"
            raise PatchError(told, _name(operation, "path")) from None
    return document


def apply_operation(document: Document, operation: object) -> Document:
    """The document after one operation.  Raises PatchError."""
    if not isinstance(operation, dict):
        raise PatchError("it must be an object")
    try:
        _check_text(operation)
        changed = jsonpatch.apply_patch(document, [operation])
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as error:
        raise PatchError(str(error)[:_MAX_ERROR_CHARACTERS]) from None
    except RecursionError:
        raise PatchError("its value is nested too deeply") from None
    return check_size(changed)


def _check_text(operation: Operation) -> None:
    """Raise PatchError for what no version could keep: operations are kept with their document."""
    try:
        msgspec.json.encode(operation)
    except UnicodeEncodeError:
        raise PatchError("half of a surrogate pair is no text") from None


def check_size(document: object) -> Document:
    """The same, if it is a document of a size that is kept.  Raises PatchError."""
    if not isinstance(document, dict):
        raise PatchError("the document must stay an object")
    if _is_deeper(document, DEEPEST):
        raise PatchError(f"the document would be nested more than {DEEPEST} times")
    if len(msgspec.json.encode(document)) > MAX_BYTES:
        raise PatchError(f"the document would have more than {MAX_BYTES} bytes")
    return document


def patch_of_merge(document: object, merge: Mapping[str, object]) -> list[Operation]:
    """A JSON Merge Patch (RFC 7396) as the JSON Patch that does the same to this document."""
    return list(_patch_of_merge(document, merge, ""))


def _patch_of_merge(
    document: object, merge: Mapping[str, object], path: str
) -> Iterator[Operation]:
    held = document if isinstance(document, dict) else {}
    for name, value in merge.items():
        where = f"{path}/{escaped(name)}"
        if value is None:
            if name in held:
                yield {"op": "remove", "path": where}
        elif isinstance(value, dict):
            if not isinstance(held.get(name), dict):
                yield {"op": "add", "path": where, "value": {}}
            yield from _patch_of_merge(held.get(name), value, where)
        elif name not in held or not same(held[name], value):
            yield {"op": "add", "path": where, "value": value}


def differences(document: Document, wanted: Document) -> list[Operation]:
    """A patch that makes one document into another, member by member."""
    gone = [name for name in document if name not in wanted]
    new = [n for n, value in wanted.items() if n not in document or not same(document[n], value)]
    return [
        *({"op": "remove", "path": pointer([name])} for name in gone),
        *({"op": "add", "path": pointer([name]), "value": wanted[name]} for name in new),
    ]


def same(one: object, other: object) -> bool:
    """Are these equal as JSON?  To Python, ``True`` is 1 as well."""
    return canonical(one) == canonical(other)


def escaped(name: str) -> str:
    """A member's name as a token of a JSON Pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")


def tokens(pointer: str) -> list[str]:
    """The names and indexes that a JSON Pointer consists of."""
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def pointer(names: Sequence[str]) -> str:
    """The opposite of ``tokens``."""
    return "".join(f"/{escaped(name)}" for name in names)


def member_at(names: Sequence[str], value: Any) -> Any:
    """The member of a member; None where there is none."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _name(operation: object, member: str) -> str | None:
    found = operation.get(member) if isinstance(operation, dict) else None
    return found[:_MAX_ERROR_CHARACTERS] if isinstance(found, str) else None


def _is_deeper(value: object, than: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return than < 1 or any(_is_deeper(each, than - 1) for each in inner)


def read_schema(path: Path | str) -> Mapping[str, Any]:
    """The JSON Schema in a file.  Raises ValueError with a sentence that says what is wrong."""
    try:
        schema = msgspec.json.decode(Path(path).read_bytes())
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    if not isinstance(schema, dict):
        raise ValueError(f"{path} must hold a JSON Schema, which is an object")
    judging.check_schema(path, schema)
    if schema.get("type", "object") != "object":
        raise ValueError(f'{path} must describe an object: "type" must be "object"')
    judging.check_references(path, schema)
    return schema


class Schema:
    """Judges documents.  Without a schema every object is right."""

    def __init__(self, schema: Mapping[str, Any] | None = None) -> None:
        self.described = schema
        self._judge = judging.SchemaValidator(schema) if schema is not None else None

    @property
    def text(self) -> str | None:
        """The schema as JSON, None if there is none."""
        if self.described is None:
            return None
        return msgspec.json.encode(self.described).decode()

    def check(self, before: Document, now: Document) -> None:
        """Raise PatchError if something is wrong with a document that was not so before.

        A profile grows: what must be there and is not known yet is no fault of what is.  And who
        changes the schema must not lock up all profiles there are.
        """
        if self._judge is None:
            return
        known = {(pointer(steps), problem) for steps, problem in self._judge.faults(before)}
        for steps, problem in self._judge.faults(now):
            if (pointer(steps), problem) not in known:
                raise PatchError(problem, pointer(steps))


class Schemas:
    """The schemas of all profiles, each read once.  Raises ValueError, as ``read_schema``."""

    def __init__(self, paths: Iterable[str] = ()) -> None:
        self._schemas = {path: Schema(read_schema(path)) for path in set(paths) if path}
        self._schemas[""] = Schema()

    def of(self, path: str) -> Schema:
        """The schema in a file; any object for ""."""
        return self._schemas[path]
