"""What the document says of one operation, as values; ``document`` makes OpenAPI of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Schema = dict[str, Any]
Place = Literal["path", "query", "header"]
Method = Literal["GET", "PUT", "POST", "PATCH", "DELETE"]

JSON = "application/json"
NDJSON = "application/x-ndjson"


@dataclass(frozen=True, slots=True)
class Parameter:
    """``example`` is one that works where the other examples were followed."""

    name: str
    place: Place
    description: str
    schema: Schema = field(default_factory=lambda: {"type": "string"})
    required: bool = False
    example: object = None


@dataclass(frozen=True, slots=True)
class Body:
    """``kinds``: by media type a Struct, several of which one is meant, or a schema."""

    kinds: Mapping[str, type | tuple[type, ...] | Schema]
    required: bool = True
    examples: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Link:
    """From an answer on to an operation; ``parameters`` are runtime expressions."""

    operation: str
    parameters: Mapping[str, str]
    body: object = None


@dataclass(frozen=True, slots=True)
class Operation:
    """``errors`` are the codes beyond those that every operation like it has.

    ``conditional``: a change that If-Match can bind to what was read.  ``idempotent``: takes an
    Idempotency-Key.  ``open``: needs no key.  ``admin``: the administrator's alone.
    ``founds``: may be the first that there is of a tenant.
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
    errors: tuple[str, ...] = ()
    conditional: bool = False
    idempotent: bool = False
    open: bool = False
    admin: bool = False
    founds: bool = False
    links: tuple[Link, ...] = ()

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


def json_body(*kinds: type, required: bool = True, **examples: object) -> Body:
    """A body in JSON: one of these."""
    return Body({JSON: kinds[0] if len(kinds) == 1 else kinds}, required, examples)
