"""The OpenAPI 3.1 document of the memory API, from its operations and shapes.  Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from proxy import __version__
from proxy.memory_api.openapi.answers import failures, responses
from proxy.memory_api.openapi.operation import JSON, REF, Body, Operation, Parameter, Schema, ref
from proxy.memory_api.parameters import (
    IDEMPOTENCY_KEY,
    IF_MATCH,
    IF_NONE_MATCH,
    IF_NONE_MATCH_CHANGE,
    TENANT,
)
from proxy.memory_api.shapes.overview import Error
from proxy.memory_api.shapes.people import PatchOperation
from proxy.settings import Settings

Document = dict[str, Any]

TAGS = {
    "Sessions": "Conversations: what memory has of them, and what it would do next.",
    "Messages": "History, message by message, and what memory did for each exchange.",
    "Users": "People, across their sessions.",
    "Memories": "What is remembered of a person: facts, wishes, episodes.",
    "Profiles": "A document on each person, by the operator's own schema.",
    "Instructions": "How an application answers, and what feedback would change about it.",
    "Store": "Items of one's own, as LangGraph's stores have them.",
    "Import and export": "Memory as files, from here and from elsewhere.",
    "Overview": "Everything at once: figures, costs, who asks.",
}

ABOUT = """\
Everything that the proxy remembers can be read, corrected, exported and erased here.

A caller sees the memory of its own key; the administrator's key sees any, and says which with
`?tenant=`. Who else names another tenant than its own is refused (`admin_key_required`), and so is
the name of a tenant that does not exist (`tenant_not_found`), but where something is put into it.
Lists are read part by part: `?after=` takes `next` of the part before. Times are Unix
seconds. What GET answers has an entity tag; `If-Match` binds a change to what was read. More fields
may be added to every answer.
"""

_FUNCTION: Schema = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "arguments": {"type": "string"}},
    "required": ["name", "arguments"],
}
_INSTEAD_OF_CONTENT: dict[str, Schema] = {
    "tool_calls": {"type": "array", "minItems": 1},
    "function_call": {"type": "object", "minProperties": 1},
    "refusal": {"type": "string", "minLength": 1},
    "audio": {"type": "object", "minProperties": 1},
}


def _requires(name: str, schema: Schema, **others: Schema) -> Schema:
    return {"properties": {name: schema, **others}, "required": [name]}


SCHEMA_CONSTRAINTS: dict[str, Schema] = {
    "SessionChange": {"minProperties": 1},
    "ContentPart": {
        "anyOf": [
            {"properties": {"type": {"not": {"const": "text"}}}},
            _requires("text", {"type": "string"}),
        ]
    },
    "ToolCall": {
        "anyOf": [_requires("function", _FUNCTION), _requires("type", {"const": "custom"})]
    },
    "WrittenMessage": {
        "anyOf": [
            _requires("content", {"type": ["string", "array"]}),
            *(
                _requires(name, what, role={"const": "assistant"})
                for name, what in _INSTEAD_OF_CONTENT.items()
            ),
        ]
    },
}
"""Constraints that the types cannot express, by schema."""

SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "The key that the chat uses."},
    "apiKey": {"type": "apiKey", "in": "header", "name": "api-key"},
    "xApiKey": {"type": "apiKey", "in": "header", "name": "x-api-key"},
}


class DocumentOptions(msgspec.Struct, frozen=True):
    """What the document says about the configuration.

    ``keyless``: callers on the same machine need no key.  ``profiles``: the configured ones.
    """

    keyless: bool = True
    profiles: tuple[str, ...] = ()


def document_options(settings: Settings) -> DocumentOptions:
    """In the mode "clients" everybody needs a key."""
    return DocumentOptions(settings.tenancy.mode != "clients", tuple(settings.profiles))


def document(options: DocumentOptions, operations: Sequence[Operation]) -> Document:
    """The whole document, as JSON values."""
    schemas = _schemas(operations)
    _list_profiles(schemas, options.profiles)
    paths: dict[str, Schema] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(
            operation, options
        )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "memory-proxy",
            "summary": "The memory behind a chat, to be seen and governed.",
            "description": ABOUT,
            "version": __version__,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "The proxy that serves this document."}],
        "security": [*({name: []} for name in SCHEMES), *([{}] if options.keyless else [])],
        "tags": [{"name": name, "description": text} for name, text in TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": failures(operations),
            "securitySchemes": SCHEMES,
        },
    }


def parameters_of(operation: Operation) -> Iterator[Parameter]:
    """All parameters: its own, and those that all operations of its sort have."""
    yield from operation.parameters
    if operation.of_a_tenant:
        yield TENANT
    if operation.tagged or operation.conditional:
        yield IF_MATCH
        yield IF_NONE_MATCH if operation.reads else IF_NONE_MATCH_CHANGE
    if operation.idempotent:
        yield IDEMPOTENCY_KEY


def _operation(operation: Operation, options: DocumentOptions) -> Schema:
    described: Schema = {
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
    }
    if operation.description:
        described["description"] = operation.description
    parameters = [_parameter(each) for each in _shared_parameters(operation, options)]
    if parameters:
        described["parameters"] = parameters
    if operation.body is not None:
        described["requestBody"] = _body(operation.body)
    if operation.open:
        described["security"] = []
    return {**described, "responses": responses(operation)}


def _shared_parameters(operation: Operation, options: DocumentOptions) -> Iterator[Parameter]:
    """Its parameters; values of ``profile`` are the configured ones."""
    for parameter in parameters_of(operation):
        if parameter.name != "profile":
            yield parameter
        elif options.profiles:
            yield replace(parameter, schema={"enum": list(options.profiles)})


def _parameter(parameter: Parameter) -> Schema:
    described: Schema = {
        "name": parameter.name,
        "in": parameter.place,
        "description": parameter.description,
        "required": parameter.required,
        "schema": parameter.schema,
    }
    if parameter.example is not None:
        described["example"] = parameter.example
    return described


def _body(body: Body) -> Schema:
    content: dict[str, Schema] = {}
    for kind, kind_schema in body.kinds.items():
        media: Schema = {"schema": _schema(kind_schema)}
        if kind == JSON and body.examples:
            media["examples"] = {name: {"value": value} for name, value in body.examples.items()}
        content[kind] = media
    return {"required": body.required, "content": content}


def _schema(kind: type | tuple[type, ...] | Schema) -> Schema:
    if isinstance(kind, dict):
        return kind
    if isinstance(kind, tuple):
        return {"oneOf": [_schema(each) for each in kind]}
    return ref(kind)


def _schemas(operations: Sequence[Operation]) -> dict[str, Schema]:
    types: list[Any] = [Error, PatchOperation]
    for operation in operations:
        kinds = operation.body.kinds.values() if operation.body else ()
        for kind in (*kinds, operation.answer):
            types += kind if isinstance(kind, tuple) else [kind] if isinstance(kind, type) else []
    _, schemas = msgspec.json.schema_components(types, ref_template=REF)
    for name, more in SCHEMA_CONSTRAINTS.items():
        if name in schemas:
            schemas[name] |= more
    return dict(sorted(schemas.items()))


def _list_profiles(schemas: dict[str, Schema], profiles: Sequence[str]) -> None:
    """List the accepted names of profiles in the schema."""
    profile_schema = schemas.get("ContextRequest", {}).get("properties", {}).get("profile")
    if profile_schema is not None:
        profile_schema["anyOf"] = [{"enum": ["", *profiles]}, {"type": "null"}]
