"""The description of an operation as values, from which ``document`` makes OpenAPI."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from proxy.memory_api.call import Reader
from proxy.memory_api.errors import Failure

Schema = dict[str, Any]
Place = Literal["path", "query", "header"]
Method = Literal["GET", "PUT", "POST", "PATCH", "DELETE"]

JSON = "application/json"
NDJSON = "application/x-ndjson"

REF = "#/components/schemas/{name}"


def ref(kind: type) -> Schema:
    """A reference to the schema of a Struct in the document's components."""
    return {"$ref": REF.format(name=kind.__name__)}


class Parameter(msgspec.Struct, frozen=True):
    """``example`` works together with the examples of the other operations.

    ``read`` returns the argument for the handler; ``errors`` are those that the parameter adds.
    """

    name: str
    place: Place
    description: str
    schema: Schema = msgspec.field(default_factory=lambda: {"type": "string"})
    required: bool = False
    example: object = None
    read: Reader | None = None
    errors: tuple[Failure, ...] = ()


class Body(msgspec.Struct, frozen=True):
    """``kinds``: by media type a Struct, alternatives, or a schema."""

    kinds: Mapping[str, type | tuple[type, ...] | Schema]
    required: bool = True
    examples: Mapping[str, object] = msgspec.field(default_factory=dict)


class Link(msgspec.Struct, frozen=True):
    """A link from an answer to an operation; ``parameters`` are OpenAPI's runtime expressions."""

    operation: str
    parameters: Mapping[str, str]
    body: object = None


@dataclass(frozen=True, slots=True)
class Operation:
    """``errors`` are those beyond what every operation like it has.

    ``conditional``: a change that supports If-Match.  ``idempotent``: supports Idempotency-Key.
    ``open``: needs no key.  ``admin``: only for the administrator.  ``creates_tenant``: the tenant
    need not exist before.  ``tenant_optional``: the administrator need not name a tenant.  ``run``
    is the handler, ``readers`` return its arguments.
    """

    method: Method
    path: str
    id: str
    tag: str
    summary: str
    answer: type | Schema
    description: str = ""
    parameters: tuple[Parameter, ...] = ()
    body: Body | None = None
    status: int = 200
    media: str = JSON
    errors: tuple[Failure, ...] = ()
    conditional: bool = False
    idempotent: bool = False
    open: bool = False
    admin: bool = False
    creates_tenant: bool = False
    tenant_optional: bool = False
    links: tuple[Link, ...] = ()
    run: Callable[..., Awaitable[object]] = field(kw_only=True)
    readers: tuple[Reader, ...] = ()

    @property
    def reads(self) -> bool:
        return self.method == "GET"

    @property
    def of_a_tenant(self) -> bool:
        """Whether it concerns one tenant, which the administrator names."""
        return not self.open and not self.admin

    @property
    def tagged(self) -> bool:
        """Whether the answer has an entity tag."""
        return self.reads and self.media == JSON
