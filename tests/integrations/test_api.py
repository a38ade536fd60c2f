"""How the integrations ask the memory API."""

from __future__ import annotations

import dataclasses
import enum
import json
import subprocess
import sys
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from urllib.parse import unquote
from uuid import UUID

import httpx
import pytest
from pydantic import BaseModel

from proxy.integrations.api import MemoryApi, encoded
from proxy.integrations.terms import MemoryProxyError, NoAnswerInTime, segment
from tests.integrations.conftest import Served
from tests.support.processes.program import ROOT
from tests.support.waiting import PATIENCE

KEY = "sk-hush"


def api(answer: Callable[[httpx.Request], httpx.Response]) -> MemoryApi:
    client = httpx.Client(transport=httpx.MockTransport(answer))
    return MemoryApi("http://proxy.test/v1/", "sk-one", "t&t", client)


def test_a_request_has_the_key_the_tenant_and_the_path_below_the_root() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json={"object": "list"})

    found = api(answer).ask("POST", "/a%2Fb/%2E%2E", [("key", "k k")], b"{}")

    assert found == {"object": "list"}
    (request,) = seen
    assert request.url.raw_path == b"/memory/v1/a%2Fb/%2E%2E?key=k+k&tenant=t%26t"
    assert request.headers["authorization"] == "Bearer sk-one"
    assert request.headers["content-type"] == "application/json"
    assert request.content == b"{}"


def test_an_error_of_the_proxy_is_told_as_it_is() -> None:
    error = {"message": "No such item.", "type": "x", "param": None, "code": "item_not_found"}
    with pytest.raises(MemoryProxyError, match=r"No such item\. \(item_not_found\)") as caught:
        api(lambda _: httpx.Response(404, json={"error": error})).ask("GET", "/x")
    told = caught.value
    assert (told.status, told.code, told.message) == (404, "item_not_found", "No such item.")


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(httpx.Response(502, html="<h1>Bad gateway</h1>"), id="another proxy"),
        pytest.param(httpx.Response(200, html="<h1>Welcome</h1>"), id="a page"),
        pytest.param(httpx.Response(200, json=[]), id="no object"),
        pytest.param(httpx.Response(404, json={"error": "Not found"}), id="another API"),
        pytest.param(httpx.Response(404, json={"detail": "Not found"}), id="no error"),
        pytest.param(
            httpx.Response(404, json={"error": {"code": 404, "message": "File Not Found"}}),
            id="a model server",
        ),
        pytest.param(httpx.Response(302, headers={"location": "/login"}), id="elsewhere"),
    ],
)
def test_an_answer_of_somebody_else_is_an_error(answer: httpx.Response) -> None:
    with pytest.raises(MemoryProxyError, match="is not the proxy's memory API") as caught:
        api(lambda _: answer).ask("GET", "/x")
    assert (caught.value.status, caught.value.code) == (answer.status_code, "unexpected_answer")


@pytest.mark.parametrize("id", [".", "..", "...", "a/../b", "a.b?c#d%2E"])
def test_an_id_is_one_segment_of_the_path_whatever_it_is(id: str) -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json={})

    api(answer).ask("DELETE", f"/users/kai/memories/{segment(id)}")
    *above, last = seen[0].url.raw_path.partition(b"?")[0].split(b"/")
    assert above == [b"", b"memory", b"v1", b"users", b"kai", b"memories"]
    assert unquote(last.decode()) == id


def test_json_without_what_the_api_always_says_is_of_somebody_else() -> None:
    found = api(lambda _: httpx.Response(200, json={"data": []})).ask("GET", "/x")
    assert (found["data"], found.get("next")) == ([], None)
    with pytest.raises(MemoryProxyError, match="is not the proxy's memory API"):
        found["next"]


def test_a_key_that_cannot_be_sent_is_not_told(served: Served, http: httpx.Client) -> None:
    with pytest.raises(MemoryProxyError) as caught:
        MemoryApi(served.url, f"{KEY}\n", None, http).ask("GET", "/sessions")
    told = "".join(traceback.format_exception(caught.value))
    assert "HTTP cannot carry such a key" in told
    assert KEY not in told


def test_nobody_at_the_address_is_an_error(http: httpx.Client) -> None:
    with pytest.raises(MemoryProxyError, match="No answer from http://127.0.0.1:1: ") as caught:
        MemoryApi("http://127.0.0.1:1", None, None, http).ask("GET", "/x")
    assert (caught.value.status, caught.value.code) == (None, "unreachable")


def test_what_takes_long_has_its_time_and_what_is_late_may_go_on() -> None:
    seen: list[float] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.extensions["timeout"]["read"])
        raise httpx.ReadTimeout("timed out", request=request)

    for long in (False, True):
        with pytest.raises(NoAnswerInTime, match="what was asked may go on there") as caught:
            api(answer).ask("DELETE", "/users/kai", long=long)
        assert (caught.value.status, caught.value.code) == (None, "unreachable")
    usual, patient = seen
    assert usual < 60 < patient


def test_a_client_that_was_given_stays_open(served: Served, http: httpx.Client) -> None:
    MemoryApi(served.url, None, None, http).close()
    assert not http.is_closed


def test_a_client_of_its_own_is_closed_with_it(served: Served) -> None:
    api = MemoryApi(served.url, None, None, None)
    assert api.ask("GET", "/sessions")["data"] == []
    client = api._client
    api.close()
    assert client.is_closed


def test_a_client_of_its_own_is_closed_when_nobody_has_it_any_more(served: Served) -> None:
    api = MemoryApi(served.url, None, None, None)
    assert api.ask("GET", "/sessions")["data"] == []
    client = api._client
    del api
    assert client.is_closed


class Colour(enum.Enum):
    RED = "red"


class Model(BaseModel):
    when: datetime


@dataclasses.dataclass
class Point:
    x: int
    model: Model | None = None


class Text(str):
    pass


NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
ID = UUID(int=1)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(NOON, "2026-01-02T12:00:00Z", id="a time"),
        pytest.param(NOON.date(), "2026-01-02", id="a day"),
        pytest.param(ID, str(ID), id="a UUID"),
        pytest.param((1, 2), [1, 2], id="a tuple"),
        pytest.param({1}, [1], id="a set"),
        pytest.param(Colour.RED, "red", id="an enum"),
        pytest.param(Text("t"), "t", id="a kind of text"),
        pytest.param(Model(when=NOON), {"when": "2026-01-02T12:00:00Z"}, id="a model"),
        pytest.param(
            Point(1, Model(when=NOON)),
            {"x": 1, "model": {"when": "2026-01-02T12:00:00Z"}},
            id="a model in a dataclass",
        ),
        pytest.param([None, True, 1.0, 2**60, "é \u2028 😀"], ..., id="JSON"),
    ],
)
def test_values_become_what_json_has_for_them(value: object, expected: object) -> None:
    assert json.loads(encoded({"v": value})) == {"v": value if expected is ... else expected}


@pytest.mark.parametrize(
    ("value", "error"),
    [
        pytest.param(float("nan"), ValueError, id="no number"),
        pytest.param("\ud800", ValueError, id="half a character"),
        pytest.param(object(), TypeError, id="any object"),
    ],
)
def test_values_that_json_has_not_are_refused(value: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        encoded(value)


def test_the_proxy_itself_needs_none_of_the_frameworks() -> None:
    code = (
        "import sys, proxy.app, proxy.cli, proxy.assembly.resources;"
        "sys.exit(any(name.startswith(('langgraph', 'langchain')) for name in sys.modules))"
    )
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, cwd=ROOT, timeout=PATIENCE, check=False).returncode == 0
