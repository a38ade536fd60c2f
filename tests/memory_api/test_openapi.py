"""The OpenAPI document: valid, complete, and true of the routes and of every answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator, validate

from proxy.memory_api.endpoint import Endpoint
from proxy.memory_api.errors import CODES
from proxy.memory_api.openapi.answers import codes_of
from proxy.memory_api.openapi.document import DocumentOptions, document, parameters_of
from proxy.memory_api.openapi.operation import Operation
from proxy.memory_api.operations import OPERATIONS
from proxy.settings import Settings
from proxy.stores.open import Backend
from tests.support.conformance import Conformance, Nonconforming, conformance, operations
from tests.support.memory_api import SESSIONS, Site, open_site, seed, talk
from tests.support.store.belongings import Belongings

PATH = "/memory/v1/openapi.json"
PROFILES: dict[str, Any] = {"profiles": {"brief": {}, "long": {}}}


def named(operation: Operation) -> str:
    return operation.id


async def test_it_is_served_to_whoever_asks(site: Site) -> None:
    async with site.client(peer="203.0.113.9", host="memory.example") as stranger:
        answer = await stranger.get(PATH)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["openapi"] == "3.1.0"
    assert len(answer.json()["paths"]) > 30


@pytest.mark.parametrize("keyless", [True, False])
def test_it_is_openapi(keyless: bool) -> None:
    made = document(DocumentOptions(keyless, ("brief",)), OPERATIONS)
    validate(made, cls=OpenAPIV31SpecValidator)
    assert ({} in made["security"]) is keyless


def test_every_route_is_described_and_nothing_else(site: Site) -> None:
    routes = {
        (method, route.template)
        for route in site.routes.routes
        if isinstance(route, Endpoint) and route.template.startswith("/memory/v1/")
        for method in route.methods - {"HEAD"}
    }
    assert {(each.method, each.path) for each in OPERATIONS} == routes
    assert set(operations()) == routes


def test_the_names_of_operations_are_good_names_of_methods() -> None:
    ids = [each.id for each in OPERATIONS]
    assert len(set(ids)) == len(ids)
    assert all(id.isalpha() and id[0].islower() for id in ids)


@pytest.mark.parametrize("operation", OPERATIONS, ids=named)
def test_an_operation_says_what_it_does(operation: Operation) -> None:
    assert operation.summary and not operation.summary.endswith(".")
    in_path = {each.name for each in operation.parameters if each.place == "path"}
    assert in_path == {part[1:-1] for part in operation.path.split("/") if part[:1] == "{"}
    told = [(each.name, each.place) for each in parameters_of(operation)]
    assert len(set(told)) == len(told)
    assert all(each.description for each in parameters_of(operation))
    assert set(codes_of(operation)) <= set(CODES)


@pytest.mark.parametrize("operation", OPERATIONS, ids=named)
def test_links_lead_to_operations_with_their_parameters(operation: Operation) -> None:
    known = {each.id: each for each in OPERATIONS}
    for link in operation.links:
        names = {each.name for each in known[link.operation].parameters}
        assert set(link.parameters) <= names
        assert link.body is None or known[link.operation].body is not None


def test_every_operation_is_tried_with_the_ids_of_others() -> None:
    """By tests/api/test_isolation.py, which takes minutes."""
    nobody = Belongings(httpx.AsyncClient(), "t", "m")
    nobody.ids |= dict.fromkeys(("message", "exchange", "memory", "proposal"), "x")
    tried = {(each.method, each.path) for each in OPERATIONS if nobody.requests(each)}
    assert tried == set(operations())


def test_every_code_is_one_of_some_operation() -> None:
    used = {code for operation in OPERATIONS for code in codes_of(operation)}
    assert used | {"not_found", "method_not_allowed"} == set(CODES)


async def test_it_names_the_profiles_of_the_configuration(store: Backend, tmp_path: Path) -> None:
    settings = Settings.model_validate(PROFILES)
    async with open_site(settings, store, tmp_path) as site, site.client("alice") as client:
        made = (await client.get(PATH)).json()
    profile = made["components"]["schemas"]["ContextRequest"]["properties"]["profile"]
    assert profile["anyOf"][0]["enum"] == ["", "brief", "long"]


async def test_a_field_that_nobody_has_described_is_found(client: httpx.AsyncClient) -> None:
    await seed(client, "s", *talk("hello"))
    answer = await client.get(f"{SESSIONS}/s")
    other = httpx.Response(200, json={**answer.json(), "secret": 1}, headers=_headers(answer))
    with pytest.raises(Nonconforming, match="secret"):
        conformance().check("GET", f"{SESSIONS}/s", other)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"status_code": 418}, "418 is not in the document"),
        ({"headers": {"content-type": "text/html"}}, "has no"),
        ({"json": {"object": "session"}}, "required property"),
    ],
    ids=["status", "headers", "body"],
)
async def test_what_the_document_does_not_say_is_found(
    client: httpx.AsyncClient, change: dict[str, Any], told: str
) -> None:
    await seed(client, "s", *talk("hello"))
    answer = await client.get(f"{SESSIONS}/s")
    same = {"status_code": 200, "json": answer.json(), "headers": _headers(answer)}
    conformance().check("GET", f"{SESSIONS}/s", httpx.Response(**same))
    with pytest.raises(Nonconforming, match=told):
        conformance().check("GET", f"{SESSIONS}/s", httpx.Response(**{**same, **change}))


def test_what_is_written_out_goes_before_a_parameter() -> None:
    found = Conformance(document(DocumentOptions(), OPERATIONS)).operation(
        "POST", "/memory/v1/users/u/memories/search"
    )
    assert found == ("/memory/v1/users/{user}/memories/search", "post")


def _headers(answer: httpx.Response) -> dict[str, str]:
    kept = ("content-type", "etag", "cache-control")
    return {name: answer.headers[name] for name in kept}
