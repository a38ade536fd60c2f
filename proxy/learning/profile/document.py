"""A person's profile: one JSON document with its versions.

Items under ("users", U): "profile" is the current document, "profiles" its versions, "card" the
lines for prompts.  Each change checks the version of "profile", which so guards all three.
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
    from proxy.learning.profile import schema_validation
else:  # 3 MB that only a profile with a schema needs
    schema_validation = lazy_import("proxy.learning.profile.schema_validation")

FEATURE = "profile"

MAX_VERSIONS = 200
"""Versions of a profile; of more, the two oldest are merged."""

Origin = Literal["learned", "edited"]

Way = Literal["set", "append", "remove"]


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """The current document; ``version`` is its number.

    ``kept`` are the numbers of all stored versions, ``last`` the highest number ever used.
    """

    document: Document = {}
    version: int = 0
    last: int = 0
    kept: tuple[int, ...] = ()


class Statement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a message says about one member of the document.

    ``operations`` is the number of operations that it adds to its version's patch: 0 if the
    document had it already, or if something else was said later.
    """

    way: Way
    path: str
    value: Any = None
    source: Source
    operations: int = 0


class Version(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A document and the patch that made it from the version before.  ``created_at``: Unix seconds.

    ``said`` are the statements until the next version, in the order in which they were read.  The
    last operations of the patch are from them, those before from all ``sources`` together.  The
    patch of a first version may be empty, if all its statements are idle.
    ``rolled_back_to`` is the number of the version that it repeats.  ``before`` has the sources of
    each member of a document into which the earlier versions were merged; its patch is history.
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
    def shared_operations(self) -> tuple[Operation, ...]:
        """The operations that come from all ``sources`` together."""
        return self.patch[: len(self.patch) - sum(each.operations for each in self.said)]

    @property
    def all_sources(self) -> tuple[Source, ...]:
        """The sources of the whole patch, each once."""
        effective = (each.source for each in self.said if each.operations)
        return tuple(dict.fromkeys((*self.sources, *effective)))

    @property
    def attributed_operations(self) -> Iterator[tuple[Operation, tuple[Source, ...]]]:
        """The operations of the patch, each with its sources."""
        said = ((each.source,) for each in self.said for _ in range(each.operations))
        together = (self.sources for _ in self.shared_operations)
        return zip(self.patch, chain(together, said), strict=False)


def profile_place(user: str) -> Place:
    return Place((PEOPLE, user, FEATURE), "current")


def version_place(user: str, version: int) -> Place:
    """Where a version is stored; keys sort by number."""
    return Place((PEOPLE, user, "profiles"), f"{version:08}")


Document = dict[str, Any]
"""A JSON object."""

Operation = dict[str, Any]
"""An operation of a JSON Patch (RFC 6902)."""

MAX_BYTES = 8192
"""Bytes of a document as compact JSON, and of a patch."""

MAX_OPERATIONS = 100

MAX_DEPTH = 16
"""Levels of nested objects and lists."""

_MAX_ERROR_CHARACTERS = 160
"""Characters of a library's error text."""


class PatchError(ValueError):
    """An invalid change: the problem and, if known, the ``path`` (JSON Pointer) where it is."""

    def __init__(self, problem: str, path: str | None = None) -> None:
        super().__init__(f"{path}: {problem}" if path else problem)
        self.problem, self.path = problem, path


def apply_patch(document: Document, patch: Sequence[object]) -> Document:
    """The document after a patch, which is applied as a whole or not at all.  Raises PatchError.

    The size is checked after each operation, since copies of copies grow exponentially.
    """
    if len(patch) > MAX_OPERATIONS:
        raise PatchError(f"more than {MAX_OPERATIONS} operations")
    for number, operation in enumerate(patch):
        try:
            document = apply_operation(document, operation)
        except PatchError as error:
            problem = f"operation {number} ({_name(operation, 'op')}): {error.problem}"
            raise PatchError(problem, _name(operation, "path")) from None
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
    """Raise PatchError for an operation that could not be stored with its version."""
    try:
        msgspec.json.encode(operation)
    except UnicodeEncodeError:
        raise PatchError("half of a surrogate pair is no text") from None


def check_size(document: object) -> Document:
    """The same document, if it is a JSON object that is not too large.  Raises PatchError."""
    if not isinstance(document, dict):
        raise PatchError("the document must stay an object")
    if _is_deeper(document, MAX_DEPTH):
        raise PatchError(f"the document would be nested more than {MAX_DEPTH} times")
    if len(msgspec.json.encode(document)) > MAX_BYTES:
        raise PatchError(f"the document would have more than {MAX_BYTES} bytes")
    return document


def patch_of_merge(document: object, merge: Mapping[str, object]) -> list[Operation]:
    """The JSON Patch with the effect of a JSON Merge Patch (RFC 7396) on this document."""
    return list(_patch_of_merge(document, merge, ""))


def _patch_of_merge(
    document: object, merge: Mapping[str, object], path: str
) -> Iterator[Operation]:
    members = document if isinstance(document, dict) else {}
    for name, value in merge.items():
        where = f"{path}/{escape_token(name)}"
        if value is None:
            if name in members:
                yield {"op": "remove", "path": where}
        elif isinstance(value, dict):
            if not isinstance(members.get(name), dict):
                yield {"op": "add", "path": where, "value": {}}
            yield from _patch_of_merge(members.get(name), value, where)
        elif name not in members or not equal_json(members[name], value):
            yield {"op": "add", "path": where, "value": value}


def diff_patch(document: Document, wanted: Document) -> list[Operation]:
    """The patch that turns one document into another, member by member."""
    gone = [name for name in document if name not in wanted]
    new = [
        n for n, value in wanted.items() if n not in document or not equal_json(document[n], value)
    ]
    return [
        *({"op": "remove", "path": join_pointer([name])} for name in gone),
        *({"op": "add", "path": join_pointer([name]), "value": wanted[name]} for name in new),
    ]


def equal_json(one: object, other: object) -> bool:
    """Whether two values are equal as JSON; other than in Python, true is not 1."""
    return canonical(one) == canonical(other)


def escape_token(name: str) -> str:
    """A member's name as a token of a JSON Pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")


def split_pointer(pointer: str) -> list[str]:
    """The names and indexes in a JSON Pointer."""
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def join_pointer(names: Sequence[str]) -> str:
    """The JSON Pointer of names and indexes; the inverse of ``split_pointer``."""
    return "".join(f"/{escape_token(name)}" for name in names)


def member_at(names: Sequence[str], value: Any) -> Any:
    """The value at these names within a value; None if there is none."""
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
    """The JSON Schema in a file.  Raises ValueError with a sentence on what is wrong."""
    try:
        schema = msgspec.json.decode(Path(path).read_bytes())
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    if not isinstance(schema, dict):
        raise ValueError(f"{path} must hold a JSON Schema, which is an object")
    schema_validation.check_schema(path, schema)
    if schema.get("type", "object") != "object":
        raise ValueError(f'{path} must describe an object: "type" must be "object"')
    schema_validation.check_references(path, schema)
    return schema


class Schema:
    """Validates documents.  Without a schema every object is valid."""

    def __init__(self, schema: Mapping[str, Any] | None = None) -> None:
        self.described = schema
        self._judge = schema_validation.SchemaValidator(schema) if schema is not None else None

    @property
    def text(self) -> str | None:
        """The schema as JSON, None if there is none."""
        if self.described is None:
            return None
        return msgspec.json.encode(self.described).decode()

    def check(self, before: Document, now: Document) -> None:
        """Raise PatchError if the new document breaks the schema where the old one did not.

        A required member may still be unknown, and a changed schema must not block all profiles.
        """
        if self._judge is None:
            return
        known = {(join_pointer(steps), problem) for steps, problem in self._judge.faults(before)}
        for steps, problem in self._judge.faults(now):
            if (join_pointer(steps), problem) not in known:
                raise PatchError(problem, join_pointer(steps))


class Schemas:
    """The schemas of all profiles, each read once.  Raises ValueError, as ``read_schema``."""

    def __init__(self, paths: Iterable[str] = ()) -> None:
        self._schemas = {path: Schema(read_schema(path)) for path in set(paths) if path}
        self._schemas[""] = Schema()

    def of(self, path: str) -> Schema:
        """The schema in a file; any object for ""."""
        return self._schemas[path]
