"""Do the answers of the memory API agree with its OpenAPI document, to the letter?

The document lets objects have more fields than it names; here they may not: a field that nobody
has described is a fault.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import httpx
from jsonschema import Draft202012Validator
from jsonschema.protocols import Validator
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from proxy.memory_api.openapi.document import DocumentOptions, document
from proxy.memory_api.operations import OPERATIONS

PREFIX = "/memory/v1/"
DOCUMENT = "urn:document"
OF_THE_FRAMEWORK = {"method_not_allowed", "invalid_request", "not_found"}
"""Codes of answers that belong to no operation."""

FOREIGN = ("ChatMessage", "SentMessage", "PatchOperation")
"""Objects of somebody else's making: these have other fields."""

Json = dict[str, Any]


class Nonconforming(AssertionError):
    """What a caller was answered is not what the document says."""


class Conformance:
    """Knows the document.  Parameters are found by matching paths, so order does not matter:
    what is written out goes before what is a parameter."""

    def __init__(self, made: Json) -> None:
        self._document = strict(made)
        resource = DRAFT202012.create_resource(self._document)
        self._registry: Registry[Any] = Registry().with_resource(DOCUMENT, resource)
        self._validators: dict[str, Validator] = {}
        paths = sorted(made["paths"], key=lambda path: path.count("{"))
        self._paths = [(re.compile(re.sub(r"\{\w+\}", "[^/]+", path)), path) for path in paths]

    def operation(self, method: str, path: str) -> tuple[str, str] | None:
        """The path and the method, as the document has them."""
        for pattern, found in self._paths:
            if pattern.fullmatch(path):
                name = "get" if method == "HEAD" else method.lower()
                return (found, name) if name in self._document["paths"][found] else None
        return None

    def check(self, method: str, path: str, response: httpx.Response) -> None:
        """Raises Nonconforming."""
        found = self.operation(method, path)
        if found is None or _code(response) in OF_THE_FRAMEWORK:
            return
        responses = self._document["paths"][found[0]][found[1]]["responses"]
        answer = self._resolved(responses.get(str(response.status_code)))
        told = f"{method} {path}: {response.status_code}"
        if answer is None:
            raise Nonconforming(f"{told} is not in the document: {response.text[:300]}")
        self._check_headers(answer, response, told)
        if method != "HEAD":
            self._check_content(answer, response, told)

    def _check_headers(self, answer: Json, response: httpx.Response, told: str) -> None:
        for name, header in answer.get("headers", {}).items():
            value = response.headers.get(name)
            if value is None and header.get("required"):
                raise Nonconforming(f"{told} has no {name}")
            kind = header["schema"]
            self._validate(kind, int(value) if kind.get("type") == "integer" else value, told)

    def _check_content(self, answer: Json, response: httpx.Response, told: str) -> None:
        content = answer.get("content", {})
        kind = response.headers.get("content-type", "")
        if not content:
            if response.content:
                raise Nonconforming(f"{told} has a body")
        elif kind not in content:
            raise Nonconforming(f"{told} is of the kind {kind!r}")
        elif kind == "application/json":
            self._validate(content[kind]["schema"], response.json(), told)

    def _validate(self, schema: Json, value: Any, told: str) -> None:
        for error in self._validator(schema).iter_errors(value):
            path = "/".join(map(str, error.absolute_path))
            raise Nonconforming(f"{told}: {path}: {error.message[:1000]}")

    def _validator(self, schema: Json) -> Validator:
        name = repr(schema)
        if name not in self._validators:
            placed = {"$schema": DRAFT202012_URI, **_placed(schema)}
            self._validators[name] = Draft202012Validator(placed, registry=self._registry)
        return self._validators[name]

    def _resolved(self, answer: Json | None) -> Json | None:
        if answer is None or "$ref" not in answer:
            return answer
        found: Any = self._document
        for part in answer["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        return found  # type: ignore[no-any-return]


DRAFT202012_URI = "https://json-schema.org/draft/2020-12/schema"


def strict(made: Json) -> Json:
    """The document, without room for fields that it does not name."""
    made = copy.deepcopy(made)
    for name, schema in made["components"]["schemas"].items():
        if name not in FOREIGN and "properties" in schema:
            schema["additionalProperties"] = False
    return made


def _placed(value: Any) -> Any:
    """A schema whose references lead into the document from anywhere."""
    if isinstance(value, dict):
        return {
            key: f"{DOCUMENT}{each}" if key == "$ref" else _placed(each)
            for key, each in value.items()
        }
    return [_placed(each) for each in value] if isinstance(value, list) else value


def _code(response: httpx.Response) -> str | None:
    if response.status_code < 400 or not response.content:
        return None
    try:
        body = response.json()
    except ValueError:
        return None
    error = body.get("error") if isinstance(body, dict) else None
    return error.get("code") if isinstance(error, dict) else None


@cache
def conformance() -> Conformance:
    return Conformance(document(DocumentOptions(), OPERATIONS))


async def conforming(response: httpx.Response) -> None:
    """A hook of httpx: every answer of the memory API that somebody asks for is looked at."""
    request = response.request
    path = request.url.raw_path.decode("ascii").partition("?")[0]
    if path.startswith(PREFIX):
        await response.aread()
        conformance().check(request.method, path, response)


def operations() -> Iterator[tuple[str, str]]:
    """Methods and paths of the document."""
    for path, item in document(DocumentOptions(), OPERATIONS)["paths"].items():
        for method in item:
            yield method.upper(), path
