"""Validates documents by JSON Schema.  Knows the libraries, which are large, and no profile.

It passes a registry of its own, as the library would otherwise fetch referenced schemas.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import Draft202012Validator, validator_for
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

_MAX_REASON = 200
"""Characters of an error text."""


class SchemaValidator:
    """Validates documents by one schema."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._validator: Validator = _class_for(schema)(schema, registry=Registry())

    def faults(self, document: dict[str, Any]) -> Iterator[tuple[list[str], str]]:
        """The errors of a document: the names on the path to each, and its text."""
        for error in self._validator.iter_errors(document):
            yield [str(step) for step in error.absolute_path], _error_text(error)


def check_schema(path: Path | str, schema: dict[str, Any]) -> None:
    """Raise ValueError unless it is a JSON Schema that refers to nothing outside of its file."""
    try:
        _class_for(schema).check_schema(schema)
    except SchemaError as error:
        raise ValueError(f"{path} is not a JSON Schema: {_error_text(error)}") from None


def _class_for(schema: Mapping[str, Any]) -> type[Validator]:
    """The library's class for the draft that a schema names."""
    found: type[Validator] = validator_for(schema, default=Draft202012Validator)
    return found


def _error_text(error: ValidationError | SchemaError) -> str:
    message = error.message
    return message if len(message) <= _MAX_REASON else f"{message[:_MAX_REASON]}…"


def check_references(path: Path | str, schema: Mapping[str, Any]) -> None:
    """Raise ValueError for a reference to anything outside of the schema's file."""
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
