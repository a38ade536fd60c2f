"""The JSON Schema that a profile's document follows, if its operator has one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import Draft202012Validator, validator_for
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from proxy.learning.profile_patch import Document, PatchError, pointer

_TOLD = 200
"""Characters of what is wrong with a value."""


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
    try:
        _validators(schema).check_schema(schema)
    except SchemaError as error:
        raise ValueError(f"{path} is not a JSON Schema: {_told(error)}") from None
    if schema.get("type", "object") != "object":
        raise ValueError(f'{path} must describe an object: "type" must be "object"')
    _check_references(path, schema)
    return schema


class Schema:
    """Judges documents.  Without a schema every object is right."""

    def __init__(self, schema: Mapping[str, Any] | None = None) -> None:
        self.described = schema
        # Without a registry of its own, the library would fetch what a schema refers to.
        self._validator: Validator | None = (
            _validators(schema)(schema, registry=Registry()) if schema is not None else None
        )

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
        if self._validator is None:
            return
        known = {_fault(error) for error in self._validator.iter_errors(before)}
        for error in self._validator.iter_errors(now):
            path, problem = _fault(error)
            if (path, problem) not in known:
                raise PatchError(problem, path)


class Schemas:
    """The schemas of all profiles, each read once.  Raises ValueError, as ``read_schema``."""

    def __init__(self, paths: Iterable[str] = ()) -> None:
        self._schemas = {path: Schema(read_schema(path)) for path in set(paths) if path}
        self._schemas[""] = Schema()

    def of(self, path: str) -> Schema:
        """The schema in a file; any object for ""."""
        return self._schemas[path]


def _validators(schema: Mapping[str, Any]) -> type[Validator]:
    found: type[Validator] = validator_for(schema, default=Draft202012Validator)
    return found


def _fault(error: ValidationError) -> tuple[str, str]:
    """Where it is wrong, and what."""
    return pointer([str(step) for step in error.absolute_path]), _told(error)


def _told(error: ValidationError | SchemaError) -> str:
    return error.message if len(error.message) <= _TOLD else f"{error.message[:_TOLD]}…"


def _check_references(path: Path | str, schema: Mapping[str, Any]) -> None:
    """Raise ValueError unless all that the schema refers to is in the file."""
    resource = Resource.from_contents(schema, default_specification=DRAFT202012)
    resolver = Registry().with_resource("", resource).resolver()
    for reference in _references(schema):
        try:
            if not reference.startswith("#"):
                raise ValueError(f'{path}: "$ref" must stay in the file: {reference}')
            resolver.lookup(reference)
        except Unresolvable:
            raise ValueError(f'{path}: there is nothing at "$ref": {reference}') from None


def _references(schema: object) -> Iterator[str]:
    if isinstance(schema, list):
        for each in schema:
            yield from _references(each)
    if isinstance(schema, dict):
        reference = schema.get("$ref")
        if isinstance(reference, str):
            yield reference
        for each in schema.values():
            yield from _references(each)
