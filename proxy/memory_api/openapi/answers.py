"""The responses of an operation, for OpenAPI.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from proxy.memory_api.errors import (
    ALWAYS,
    CODES,
    CONDITIONAL,
    EVERYWHERE,
    IDEMPOTENT,
    OF_A_TENANT,
    WITH_BODY,
    Failure,
    tenant_not_found,
)
from proxy.memory_api.openapi.operation import JSON, Link, Operation, Schema, ref
from proxy.memory_api.shapes.overview import Error

PHRASES = {
    200: "Done.",
    201: "Made.",
    202: "It will be done soon.",
    304: "The resource has a tag that If-None-Match names.",
}

TEXT = {"schema": {"type": "string"}}
RETRY_AFTER = {"description": "Seconds to wait.", "required": True, "schema": {"type": "integer"}}
CHALLENGE = {"description": "How to send a key.", "required": True, **TEXT}
TAG = {
    "description": "The entity tag, strong.",
    "required": True,
    "schema": {"type": "string", "pattern": '^"[A-Za-z0-9_-]{22}"$'},
}
NOT_STORED = {
    "description": "Nobody may keep it.",
    "required": True,
    "schema": {"const": "no-store"},
}


def responses(operation: Operation) -> dict[str, Schema]:
    """By status, ascending; errors are references to components."""
    by_status = {operation.status: _success_response(operation)}
    if operation.tagged:
        by_status[304] = {"description": PHRASES[304], "headers": {"ETag": TAG}}
    for status, codes in _by_status(operation).items():
        by_status[status] = {"$ref": f"#/components/responses/{_component_name(codes)}"}
    return {str(status): by_status[status] for status in sorted(by_status)}


def failures(operations: Iterable[Operation]) -> dict[str, Schema]:
    """The components that the responses refer to, by name."""
    components: dict[str, Schema] = {}
    for operation in operations:
        for status, codes in _by_status(operation).items():
            components[_component_name(codes)] = _failure_response(status, codes)
    return dict(sorted(components.items()))


def _by_status(operation: Operation) -> dict[int, list[str]]:
    by_status: dict[int, list[str]] = {}
    for code in sorted(set(codes_of(operation))):
        by_status.setdefault(CODES[code].status, []).append(code)
    return by_status


def _component_name(codes: Sequence[str]) -> str:
    """The name of a component: ``SessionNotFoundOrMessageNotFound``."""
    return "Or".join("".join(map(str.capitalize, code.split("_"))) for code in codes)


def codes_of(operation: Operation) -> Iterator[str]:
    """The codes of all errors that it can answer."""
    return (error.code for error in _errors(operation))


def _errors(operation: Operation) -> Iterator[Failure]:
    yield from operation.errors
    if not operation.open:
        yield from EVERYWHERE
    if operation.of_a_tenant:
        yield from OF_A_TENANT
        if not operation.creates_tenant:
            yield tenant_not_found
    if operation.tagged or operation.conditional:
        yield from CONDITIONAL
    if operation.body is not None:
        yield from WITH_BODY
    if operation.idempotent:
        yield from IDEMPOTENT
    yield from ALWAYS


def _success_response(operation: Operation) -> Schema:
    answer = operation.answer
    schema = answer if isinstance(answer, dict) else ref(answer)
    headers = {"Cache-Control": NOT_STORED}
    if operation.tagged:
        headers["ETag"] = TAG
    response: Schema = {
        "description": PHRASES[operation.status],
        "headers": headers,
        "content": {operation.media: {"schema": schema}},
    }
    if operation.links:
        response["links"] = {_link_name(link): _link(link) for link in operation.links}
    return response


def _link_name(link: Link) -> str:
    """The operation with the last field that it takes from the answer, since there may be several
    links to it."""
    fields = [each.rpartition("/")[2] for each in link.parameters.values() if "body" in each]
    return link.operation + "".join(field[:1].upper() + field[1:] for field in fields[-1:])


def _link(link: Link) -> Schema:
    link_object: Schema = {"operationId": link.operation, "parameters": dict(link.parameters)}
    return link_object if link.body is None else {**link_object, "requestBody": link.body}


def _failure_response(status: int, codes: list[str]) -> Schema:
    """An error with one of these codes."""
    narrowed = {"properties": {"error": {"properties": {"code": {"enum": codes}}}}}
    response: Schema = {
        "description": "\n".join(f"- `{code}`: {CODES[code].when}" for code in codes),
        "content": {JSON: {"schema": {"allOf": [ref(Error), narrowed]}}},
    }
    if status == 401:
        response["headers"] = {"WWW-Authenticate": CHALLENGE}
    if status == 503:
        response["headers"] = {"Retry-After": RETRY_AFTER}
    return response
