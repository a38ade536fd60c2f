"""What the document says of one operation, as values; ``document`` makes OpenAPI of them."""

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
    """The schema of a Struct, which is a component of the document."""
    return {"$ref": REF.format(name=kind.__name__)}


class Parameter(msgspec.Struct, frozen=True):
    """``example`` is one that works where the other examples were followed.

    ``read`` gives the argument of a handler, ``errors`` come with it.
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
    """``kinds``: by media type a Struct, several of which one is meant, or a schema."""

    kinds: Mapping[str, type | tuple[type, ...] | Schema]
    required: bool = True
    examples: Mapping[str, object] = msgspec.field(default_factory=dict)


class Link(msgspec.Struct, frozen=True):
    """From an answer on to an operation; ``parameters`` are runtime expressions."""

    operation: str
    parameters: Mapping[str, str]
    body: object = None


@dataclass(frozen=True, slots=True)
class Operation:
    """``errors`` are those beyond what every operation like it has.

    ``conditional``: a change that If-Match can bind to what was read.  ``idempotent``: takes an
    Idempotency-Key.  ``open``: needs no key.  ``admin``: the administrator's alone.
    ``founds``: may be the first that there is of a tenant.  ``anybody``: the administrator need not
    say whose memory is meant.  ``run`` is the handler, ``readers`` give its arguments.
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
    founds: bool = False
    anybody: bool = False
    links: tuple[Link, ...] = ()
    run: Callable[..., Awaitable[object]] = field(kw_only=True)
    readers: tuple[Reader, ...] = ()

    @property
    def reads(self) -> bool:
        return self.method == "GET"

    @property
    def of_a_tenant(self) -> bool:
        """Is it about the memory of one tenant, which the administrator names?"""
        return not self.open and not self.admin

    @property
    def tagged(self) -> bool:
        """Has the answer an entity tag?"""
        return self.reads and self.media == JSON
