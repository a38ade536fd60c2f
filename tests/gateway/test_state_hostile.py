"""Names of what is kept, in the hands of those whom they were not given to."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from proxy.gateway.identity import sign
from proxy.tenancy import digest_of
from tests.support.rig import KEY, Rig, rig
from tests.support.talk.keeping import PROFILE, Keeping, asks
from tests.support.upstream import raw

pytestmark = pytest.mark.asyncio(loop_scope="session")

OTHERS = "sk-another"
HEADERS = {"authorization": f"Bearer {KEY}", "x-memory-profile": PROFILE}
UNKNOWN = "0" * 31 + "a"
NEW = {"model": "gpt-5", "input": "A question."}

DOORS = [
    ("GET", "responses/{resp}"),
    ("GET", "responses/{resp}?stream=true"),
    ("GET", "responses/{resp}/input_items"),
    ("POST", "responses/{resp}/cancel"),
    ("DELETE", "responses/{resp}"),
    ("GET", "conversations/{conv}"),
    ("POST", "conversations/{conv}"),
    ("DELETE", "conversations/{conv}"),
    ("GET", "conversations/{conv}/items"),
    ("POST", "conversations/{conv}/items"),
    ("GET", "conversations/{conv}/items/msg_1"),
    ("DELETE", "conversations/{conv}/items/msg_1"),
]
IN_BODIES = ["previous_response_id", "conversation"]


class Counted:
    """Looks at the store, for the tenant of another key."""

    def __init__(self, one: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: Counter[str] = Counter()
        for name in ("items_at", "exchange", "message", "session", "load", "bodies", "commit"):
            monkeypatch.setattr(one.store, name, self._watched(one, name), raising=False)

    def _watched(self, one: Rig, name: str) -> Any:
        async def called(*arguments: Any) -> Any:
            self.calls[name] += arguments[0].tenant == digest_of(OTHERS.encode())
            return await getattr(one.store.real, name)(*arguments)

        return called


async def ask(
    one: Rig, method: str, path: str, body: object = None, **headers: str
) -> httpx.Response:
    sent = {**HEADERS, **{name.replace("_", "-"): value for name, value in headers.items()}}
    content = json.dumps(body).encode() if method == "POST" else b""
    return await one.client.request(method, f"/v1/{path}", headers=sent, content=content)


def told(answered: httpx.Response, *names: str) -> tuple[int, str, list[str]]:
    """An error without the names that its request had."""
    text = answered.text
    for name in names:
        text = text.replace(name, "NAME")
    kept = [name for name in answered.headers if name not in ("date", "server-timing")]
    return answered.status_code, text, kept


async def begun(one: Rig, **headers: str) -> dict[str, str]:
    """Names of a conversation in which something was said."""
    async with Keeping(one).client(**headers) as client:
        conversation = await client.conversations.create(metadata={"a": "secret"})
        answered = await asks(client, "A secret.", conversation=conversation.id)
    one.up.requests.clear()
    return {"resp": answered.id, "conv": conversation.id}


def unknown() -> dict[str, str]:
    return {"resp": f"resp_{UNKNOWN}{'x' * 20}", "conv": f"conv_{UNKNOWN}"}


@pytest.mark.parametrize("named", [True, False], ids=["session-named", "no-session"])
@pytest.mark.parametrize(("method", "path"), DOORS)
async def test_another_tenants_is_as_unknown_as_what_never_was(
    every: Rig, monkeypatch: pytest.MonkeyPatch, method: str, path: str, named: bool
) -> None:
    session = {"X_Session_Id": every.talk().session} if named else {}
    theirs = await begun(every, **session)
    with monkeypatch.context() as patch:
        answers, looks = [], []
        for names in (theirs, unknown()):
            counted = Counted(every, patch)
            body = {"metadata": {}, "items": [{"role": "user", "content": "x"}]}
            key = f"Bearer {OTHERS}"
            answered = await ask(every, method, path.format(**names), body, authorization=key)
            answers.append(told(answered, *names.values()))
            looks.append(counted.calls)
    assert answers[0] == answers[1] and answers[0][0] == 404
    assert looks[0] == looks[1]
    assert "secret" not in answers[0][1]
    assert (await ask(every, "GET", f"responses/{theirs['resp']}")).status_code == 200


@pytest.mark.parametrize("field", IN_BODIES)
async def test_nor_does_anybody_go_on_from_it(
    every: Rig, monkeypatch: pytest.MonkeyPatch, field: str
) -> None:
    theirs = await begun(every)
    kind = "conv" if field == "conversation" else "resp"
    answers, looks = [], []
    with monkeypatch.context() as patch:
        for names in (theirs, unknown()):
            counted, body = Counted(every, patch), {**NEW, field: names[kind]}
            key = f"Bearer {OTHERS}"
            answered = await ask(every, "POST", "responses", body, authorization=key)
            answers.append(told(answered, *names.values()))
            looks.append(counted.calls)
    assert answers[0] == answers[1] and answers[0][0] == 404
    assert json.loads(answers[0][1])["error"]["param"] == field
    assert looks[0] == looks[1]
    assert not every.up.requests


@pytest.mark.parametrize(("method", "path"), DOORS)
async def test_a_session_in_the_headers_must_be_its_own(one: Rig, method: str, path: str) -> None:
    names, other = await begun(one, X_Session_Id=one.talk().session), one.talk().session
    body = {"metadata": {}, "items": [{"role": "user", "content": "x"}]}
    answered = await ask(one, method, path.format(**names), body, x_session_id=other)
    never = unknown()
    as_unknown = await ask(one, method, path.format(**never), body, x_session_id=other)
    assert told(answered, *names.values()) == told(as_unknown, *never.values())
    assert answered.status_code == 404


@pytest.mark.parametrize("field", IN_BODIES)
async def test_so_it_must_where_one_goes_on(one: Rig, field: str) -> None:
    names, other = await begun(one), one.talk()
    named = {field: names["conv" if field == "conversation" else "resp"]}
    answered = await ask(one, "POST", "responses", {**NEW, **named}, x_session_id=other.session)
    assert answered.status_code == 404
    assert not one.up.requests
    assert await other.log() == ""


def names_of_nothing() -> Iterator[Any]:
    right = "resp_" + "a" * 32 + "b" * 20
    yield pytest.param("r" * 20_000, id="long")
    yield pytest.param(right + "b" * 20_000, id="long-and-nearly-right")
    yield pytest.param(right.upper(), id="upper-case")
    yield pytest.param(right + "\n", id="a-line-more")
    yield pytest.param("resp_ä\N{SNOWMAN}\N{NULL}\N{RIGHT-TO-LEFT OVERRIDE}", id="unicode")
    yield pytest.param("resp_" + "\N{FULLWIDTH DIGIT ONE}" * 32 + "b" * 20, id="other-digits")
    yield pytest.param("../../memory/v1/sessions", id="climbing")
    yield pytest.param("%2e%2e%2f", id="climbing-encoded")
    yield pytest.param("' OR 1=1 --", id="sql")
    yield pytest.param("{tag}:*\r\nFLUSHALL", id="redis")


@pytest.mark.parametrize("name", [*names_of_nothing()])
async def test_what_is_no_name_leads_nowhere(one: Rig, name: str) -> None:
    Keeping(one)
    quoted = quote(name, safe="")
    for method, path in DOORS:
        place = path.replace("{resp}", quoted).replace("{conv}", quoted)
        answered = await ask(one, method, place, {"metadata": {}})
        assert answered.status_code in (404, 405), (method, path, answered.text)
        assert answered.json()["error"]["type"] == "invalid_request_error"
        assert len(answered.content) < 1_000
    for field in IN_BODIES:
        body = {**NEW, field: name}
        answered = await ask(one, "POST", "responses", body)
        assert answered.status_code == 404, answered.text
    assert not one.up.requests


@pytest.mark.parametrize(
    "path",
    [
        *("responses/..", "responses/%2e%2e/input_items", "responses//cancel", "responses/a/b/c"),
        *("conversations/../../memory/v1/sessions", "conversations/.", "conversations/a/items/b/c"),
        *("conversations/%2F", "conversations/%00/items", "responses/%ff"),
    ],
)
async def test_nor_does_a_path_that_climbs(one: Rig, path: str) -> None:
    Keeping(one)
    answered = await raw.ask(one.port, "GET", f"/v1/{path}", [*HEADERS.items()])
    assert answered.status == 404
    assert json.loads(answered.body)["error"]["type"] == "invalid_request_error"
    assert not one.up.requests


@pytest.mark.parametrize("said", [7, True, [], {}, {"id": 7}, {"id": None}, ["resp_1"]])
async def test_what_is_no_text_names_nothing(one: Rig, said: object) -> None:
    keeping = Keeping(one)
    answered = await ask(one, "POST", "responses", {**NEW, "conversation": said})
    assert answered.status_code == 404
    answered = await ask(one, "POST", "responses", {**NEW, "previous_response_id": said})
    assert answered.status_code in (200, 404) and not keeping.upstream.refused


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=101", "limit=-1", "limit=x", f"limit={'9' * 5000}", "order=up", "after=x"],
)
async def test_a_page_that_cannot_be_is_refused(one: Rig, query: str) -> None:
    names = await begun(one)
    for path in (f"responses/{names['resp']}/input_items", f"conversations/{names['conv']}/items"):
        answered = await ask(one, "GET", f"{path}?{query}")
        assert (answered.status_code, answered.json()["error"]["code"]) == (400, "invalid_value")


async def test_another_persons_is_not_shown(one: Rig) -> None:
    names = await begun(one, X_User_Id="kai")
    for method, path in DOORS:
        answered = await ask(one, method, path.format(**names), {"metadata": {}}, x_user_id="eve")
        assert answered.status_code == 403
    for field, kind in (("previous_response_id", "resp"), ("conversation", "conv")):
        body = {**NEW, field: names[kind]}
        answered = await ask(one, "POST", "responses", body, x_user_id="eve")
        assert answered.status_code == 403
    assert not one.up.requests


@pytest.mark.parametrize("emulated", [True, False])
async def test_without_it_all_of_this_is_the_upstreams(one: Rig, emulated: bool) -> None:
    keeping, names = Keeping(one), await begun(one)
    keeping.upstream.strays.clear()
    one.up.always(keeping.upstream)
    off = {"x_memory_mode": "off"} if emulated else {"x_memory_profile": ""}
    for method, path in DOORS:
        answered = await ask(one, method, path.format(**names), {"metadata": {}}, **off)
        assert answered.json()["error"]["message"] == "page not found"
    assert len(keeping.upstream.strays) == len(DOORS)


async def test_where_ids_are_signed_no_others_count(tmp_path: Path) -> None:
    secret, key = "a-long-random-string", "sk-alice"
    client = {
        "name": "alice",
        "key_sha256": [digest_of(key.encode())],
        "signing_secret": secret,
        "allowed_paths": ["responses", "conversations"],
    }
    async with rig(
        tmp_path,
        tenancy__mode="clients",
        upstream__api_key="sk-up",
        clients=[client],
        profiles={PROFILE: {"emulate_response_state": True}},
        server__body_session_ids=["prompt_cache_key"],
    ) as one:
        Keeping(one)
        now = int(time.time())
        signed = f"t={now},v1={sign(secret.encode(), now, 'mine', '')}"
        mine = {"x_session_id": "mine", "x_memory_signature": signed}
        theirs = {"authorization": f"Bearer {key}"}
        first = await ask(one, "POST", "responses", NEW, **mine, **theirs)
        name = first.json()["id"]
        assert (await ask(one, "GET", f"responses/{name}", **mine, **theirs)).status_code == 200
        assert (await ask(one, "GET", f"responses/{name}", **theirs)).status_code == 404
        assert (await ask(one, "POST", "conversations", {}, **theirs)).status_code == 400
        plain = {**NEW, "prompt_cache_key": "mine"}
        answered = await ask(one, "POST", "responses", plain, **theirs)
        assert "x-memory-status" not in answered.headers
        assert one.up.requests[-1].json == plain
