"""The decorator that declares an operation.

Parameters, body, answer and description are derived from the handler's signature, name and
docstring; routes and the OpenAPI document are made of the result.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import NoneType
from typing import Any, get_args, get_type_hints

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from proxy.memory_api.access import Access
from proxy.memory_api.api import Api
from proxy.memory_api.body import Kind, read_one
from proxy.memory_api.call import Call, FromRequest, Reader
from proxy.memory_api.conditions import Conditions
from proxy.memory_api.endpoint import Handler
from proxy.memory_api.errors import Failure
from proxy.memory_api.fields import invalid
from proxy.memory_api.idempotency import IdempotentRequest
from proxy.memory_api.objects import reply
from proxy.memory_api.openapi.operation import (
    JSON,
    Body,
    Link,
    Method,
    Operation,
    Parameter,
    Schema,
)
from proxy.memory_api.parameters import TENANT
from proxy.wire.limits import CHANGE_RESERVE, READ_RESERVE

Run = Callable[..., Awaitable[object]]


def operation(
    method: Method,
    path: str,
    tag: str,
    *,
    status: int = 200,
    answer: type | Schema | None = None,
    media: str = JSON,
    body: Body | None = None,
    examples: Mapping[str, object] | None = None,
    parameters: tuple[Parameter, ...] = (),
    errors: tuple[Failure, ...] = (),
    links: tuple[Link, ...] = (),
    **kind: bool,
) -> Callable[[Run], Operation]:
    """``answer``, ``parameters`` and ``body`` are for what the signature cannot say; ``errors`` are
    those beyond what the parameters bring; ``kind`` is ``open``, ``admin``, ``creates_tenant``,
    ``tenant_optional``: see ``Operation``.
    """

    def declare(run: Run) -> Operation:
        hints = get_type_hints(run, include_extras=True)
        returned = hints.pop("return")
        arguments = [
            _argument_and_reader(hint, examples or {})
            for name, hint in hints.items()
            if name != "api"
        ]
        described = [each for each, _ in arguments if isinstance(each, Parameter)]
        summary, description = _summary_and_description(inspect.getdoc(run) or "")
        return Operation(
            method,
            path,
            _camel(run.__name__),
            tag,
            summary,
            answer or returned,
            description,
            (*described, *parameters),
            body or next((each for each, _ in arguments if isinstance(each, Body)), None),
            status,
            media,
            (*_errors((*described, *parameters)), *errors),
            conditional=any(each is Conditions for each, _ in arguments),
            idempotent=any(each is IdempotentRequest for each, _ in arguments),
            links=links,
            run=run,
            readers=tuple(reader for _, reader in arguments),
            **kind,
        )

    return declare


def handler_of(operation: Operation, api: Api, access: Access) -> Handler:
    async def handle(request: Request) -> Response:
        tenant = await _tenant(operation, access, request)
        if not operation.open:
            _check_query(operation, request)
        reservation = api.byte_budgets.reserve_for(request.scope, tenant)
        call = Call(api, access, request, tenant, reservation)
        arguments = [await _await_if_needed(reader(call)) for reader in operation.readers]
        if operation.of_a_tenant:
            await reservation.reserve_answer(
                READ_RESERVE if operation.method == "GET" else CHANGE_RESERVE
            )
        answer = await operation.run(api, *arguments)
        response = answer if isinstance(answer, Response) else reply(answer, operation.status)
        if not isinstance(response, StreamingResponse):
            reservation.set_answer(len(response.body))
        return response

    return handle


async def _tenant(operation: Operation, access: Access, request: Request) -> str:
    """The tenant whose memory the request may access, "" if it needs none.  Raises ProxyError."""
    if operation.admin:
        access.check_admin(request)
    if not operation.of_a_tenant:
        return ""
    if not operation.creates_tenant:
        await access.check_tenant_exists(request)
    if (
        operation.tenant_optional
        and access.is_admin(request)
        and access.named_tenant(request) is None
    ):
        return ""
    return access.tenant(request)


def _check_query(operation: Operation, request: Request) -> None:
    """Who misspells ``dry_run`` erases nothing, and who misspells ``user`` sees nobody else.
    Raises ProxyError."""
    names = [each.name for each in (*operation.parameters, TENANT) if each.place == "query"]
    for name in request.query_params:
        if name not in names:
            raise invalid(f"The query's {name} is none of: {', '.join(names)}.", name)


async def _await_if_needed(value: Any) -> object:
    return await value if inspect.isawaitable(value) else value


def _argument_and_reader(hint: Any, examples: Mapping[str, object]) -> tuple[object, Reader]:
    """An argument's description for the OpenAPI document, and its reader."""
    for meta in getattr(hint, "__metadata__", ()):
        if isinstance(meta, Parameter) and meta.read:
            return meta, meta.read
        if isinstance(meta, FromRequest):
            return hint.__origin__, meta.read
    kinds = get_args(hint) or (hint,)
    structs = tuple(each for each in kinds if each is not NoneType)
    required = NoneType not in kinds
    kind = structs[0] if len(structs) == 1 else structs
    return Body({JSON: kind}, required, examples), _body(structs, required)


def _body(kinds: tuple[Kind, ...], required: bool) -> Reader:
    async def read_body(call: Call) -> msgspec.Struct | None:
        body = await call.body()
        return await read_one(kinds, body) if required or body.strip() else None

    return read_body


def _errors(parameters: Iterable[Parameter]) -> list[Failure]:
    return [error for parameter in parameters for error in parameter.errors]


def _summary_and_description(text: str) -> tuple[str, str]:
    """The summary and the description: a docstring's first line, and all else."""
    summary, _, more = text.partition("\n")
    return summary.removesuffix("."), " ".join(more.split())


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
