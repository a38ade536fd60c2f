"""The client of an OpenAI-compatible API in the background, on a socket, with every answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from typing import Any

import pytest

from proxy.background import completer as completing
from proxy.background.budget import Budget
from proxy.background.completer import UpstreamCompleter
from proxy.background.completion import (
    MAX_USAGE_TOKENS,
    Assignment,
    BudgetSpent,
    Completed,
    Failed,
    NoCredential,
    NoModel,
    Paused,
    Refused,
    Unreadable,
)
from proxy.background.credentials import Credentials
from proxy.memory import usage
from proxy.memory.store import StoreError
from proxy.memory.usage import UsageKey
from proxy.telemetry import Telemetry
from proxy.wire.origin import UpstreamOptions
from proxy.wire.upstream import Kind, Upstream, open_upstream
from tests.support.clock import Clock
from tests.support.oracle.usage import InMemoryMeter
from tests.support.upstream.answers import (
    DROPPED,
    MODEL,
    SILENT,
    Script,
    chat_completion,
    error_answer,
    json_answer,
)
from tests.support.upstream.scripted import ScriptedUpstream

NOON = 1_700_049_600.0
TODAY = "2023-11-15"
SCHEMA = {"type": "object", "properties": {"facts": {"type": "array"}}}
TOO_LONG = error_answer(400, "too long", "context_length_exceeded")


def said(content: Any, **more: Any) -> Script:
    return json_answer(chat_completion(content, **more))


class Office:
    """A completer, the API that chats go to, another one, and what was counted."""

    def __init__(self, up: ScriptedUpstream, other: ScriptedUpstream) -> None:
        self.up, self.other = up, other
        self.meter, self.telemetry, self.clock = InMemoryMeter(), Telemetry(), Clock(NOON)
        self.credentials = Credentials("anonymous")
        self.credentials.remember("tenant", [(b"authorization", b"Bearer sk-tenant")])
        self.budget = Budget(self.meter, 1000, self.clock)
        self.upstreams: dict[str, Upstream] = {}

    async def open(self, kind: Kind, opened: AsyncExitStack) -> None:
        for name, up in (("", self.up), (self.other.url, self.other)):
            upstream = self.upstreams[name] = open_upstream(kind, UpstreamOptions(up.url))
            await upstream.open()
            opened.push_async_callback(upstream.close)
        self.completer = UpstreamCompleter(
            self.upstreams,
            self.credentials,
            self.budget,
            lambda model: lambda text: len(text.split()),
            self.telemetry,
            self.clock,
        )

    async def complete(self, text: str = "one two three", **more: Any) -> Completed:
        assigned: dict[str, Any] = {"tenant": "tenant", "feature": "facts", "model": "m", **more}
        return await self.completer.complete(Assignment(text=text, **assigned))

    async def spent(self, feature: str = "facts") -> usage.UsageTotals:
        found = await self.meter.usage_of_days("tenant", [TODAY])
        return found.get(UsageKey(TODAY, feature), usage.UsageTotals())

    def bodies(self) -> Sequence[Any]:
        return [request.json for request in self.up.requests]


@pytest.fixture(params=["direct", "aiohttp", "httpx"])
async def office(request: pytest.FixtureRequest) -> AsyncIterator[Office]:
    async with ScriptedUpstream() as up, ScriptedUpstream() as other, AsyncExitStack() as opened:
        office = Office(up, other)
        await office.open(request.param, opened)
        yield office
        assert [upstream.exchanges for upstream in office.upstreams.values()] == [0, 0]


@pytest.mark.parametrize("reason", ["length", "content_filter"])
async def test_an_answer_that_was_cut_off_says_so(office: Office, reason: str) -> None:
    cut = chat_completion("it was wri")
    cut["choices"][0]["finish_reason"] = reason
    office.up.reply(json_answer(cut))
    assert (await office.complete("write")).is_truncated
    office.up.reply(said("it was written"))
    assert not (await office.complete("write")).is_truncated


async def test_the_least_is_asked_and_the_answer_read(office: Office) -> None:
    office.up.reply(said("it was written"))
    assert await office.complete("write,\nü") == Completed("it was written", MODEL)
    (request,) = office.up.requests
    assert (request.method, request.path) == ("POST", "/v1/chat/completions")
    assert request.json == {"model": "m", "messages": [{"role": "user", "content": "write,\nü"}]}
    headers = {name.lower(): value for name, value in request.headers}
    assert headers.pop(b"authorization") == b"Bearer sk-tenant"
    assert set(headers) == {
        b"host",
        b"content-length",
        b"content-type",
        b"accept",
        b"accept-encoding",
        b"user-agent",
    }


async def test_parameters_go_as_they_are(office: Office) -> None:
    await office.complete(parameters={"temperature": 0, "extra": {"a": [1]}})
    assert office.bodies()[0]["temperature"] == 0
    assert office.bodies()[0]["extra"] == {"a": [1]}


async def test_a_model_is_that_of_the_settings_else_that_of_the_chat(office: Office) -> None:
    await office.complete(default_model="chat-model")
    await office.complete(model="", default_model="chat-model")
    assert [body["model"] for body in office.bodies()] == ["m", "chat-model"]
    with pytest.raises(NoModel):
        await office.complete(model="")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        pytest.param("plain", "plain", id="text"),
        pytest.param(
            [{"type": "text", "text": "a"}, {"type": "x"}, {"text": "b"}, 3], "ab", id="parts"
        ),
        pytest.param("", "", id="empty"),
        pytest.param(None, "", id="nothing"),
        pytest.param(7, "", id="a-number"),
        pytest.param("<think>so\n</think>\n\nthe answer", "the answer", id="reasoning-before"),
        pytest.param("<thinking>so</thinking> the answer", "the answer", id="other-tags"),
        pytest.param("<think>and so on", "", id="reasoning-without-end"),
        pytest.param("{1}: so?\n</think>\n\n{2}", "{2}", id="reasoning-without-beginning"),
        pytest.param("and so on</think>", "", id="reasoning-alone"),
        pytest.param("it ends with </think> here", "it ends with </think> here", id="named"),
        pytest.param("a <think>\n</think>\nb", "a <think>\n</think>\nb", id="both-named"),
        pytest.param("<think>" * 50_000, "", id="opened-again-and-again"),
        pytest.param("</think> " * 50_000 + "a", "</think> " * 50_000 + "a", id="only-named"),
        pytest.param("it <think>x</think>", "it <think>x</think>", id="only-before"),
        pytest.param("a\ud83d", "a\ufffd", id="half-an-emoji"),
    ],
)
async def test_the_text_of_an_answer(office: Office, content: object, text: str) -> None:
    answer = chat_completion("x")
    answer["choices"][0]["message"]["content"] = content
    office.up.reply(Script(pieces=(json.dumps(answer).encode(),)))
    assert (await office.complete()).text == text


async def test_a_refusal_of_the_model_is_no_text(office: Office) -> None:
    office.up.reply(said(None, refusal="I cannot do that."))
    assert (await office.complete()).text == ""


@pytest.mark.parametrize(
    "choice", [{}, {"message": None}, {"message": "x"}, {"message": {"role": "assistant"}}]
)
async def test_a_choice_that_was_blocked_is_an_empty_answer(
    office: Office, choice: dict[str, Any]
) -> None:
    blocked = {"choices": [{"index": 0, "finish_reason": "content_filter", **choice}]}
    office.up.reply(json_answer({**blocked, "usage": {"prompt_tokens": 900}}))
    assert await office.complete() == Completed("", "m", is_truncated=True)
    assert await office.spent() == usage.UsageTotals(calls=1, input_tokens=900)


@pytest.mark.parametrize("model", [None, 7, "", "x" * 201])
async def test_an_answer_that_does_not_name_its_model_is_of_the_one_asked(
    office: Office, model: object
) -> None:
    office.up.reply(json_answer({**chat_completion("x"), "model": model}))
    assert (await office.complete()).model == "m"


# What can go wrong


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422])
async def test_a_refusal_is_never_repeated(office: Office, status: int) -> None:
    office.up.always(error_answer(status, "secret detail"))
    with pytest.raises(Refused) as caught:
        await office.complete()
    assert str(caught.value) == f"refused with status {status} (facts by m)"
    assert len(office.up.requests) == 1
    assert await office.spent() == usage.UsageTotals(calls=1, failed=1)


async def test_a_refusal_with_a_long_explanation_is_one_all_the_same(office: Office) -> None:
    office.up.always(Script(status=400, pieces=(b"x" * (1 << 20),)))
    with pytest.raises(Refused):
        await office.complete(schema=SCHEMA)


@pytest.mark.parametrize("status", [302, 408, 409, 425, 429, 500, 502, 503, 529])
async def test_what_is_about_the_moment_may_be_tried_again(office: Office, status: int) -> None:
    office.up.always(json_answer({}, status, headers=(("retry-after", "17"),)))
    with pytest.raises(Failed) as caught:
        await office.complete()
    assert caught.value.retry_after == 17
    assert len(office.up.requests) == 1
    assert await office.spent() == usage.UsageTotals(calls=1, failed=1)


async def test_nobody_else_is_asked_for_before_the_time_that_an_answer_says(
    office: Office,
) -> None:
    office.up.reply(json_answer({}, 429, headers=(("retry-after", "17"),)), said("x"))
    with pytest.raises(Failed):
        await office.complete("of one person")
    for feature in ("facts", "summary"):
        with pytest.raises(Paused) as caught:
            await office.complete("of another", feature=feature)
        assert caught.value.until == NOON + 17
    assert len(office.up.requests) == 1
    office.clock.now += 17
    assert (await office.complete("of another")).text == "x"


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(json_answer({"choices": []}), id="no-choice"),
        pytest.param(json_answer({"choices": [7]}), id="no-object-as-a-choice"),
        pytest.param(json_answer({"error": {"message": "oops"}}), id="an-error-with-200"),
        pytest.param(json_answer([]), id="no-object"),
        pytest.param(Script(pieces=(b"<html>",)), id="no-json"),
        pytest.param(Script(pieces=(b"[" * 5000,)), id="nested-without-end"),
        pytest.param(Script(pieces=(b"",)), id="empty"),
        pytest.param(json_answer({"choices": [], "x": "x" * 2000}), id="too-long"),
    ],
)
async def test_what_is_no_answer_is_unreadable_and_its_prompt_is_paid_for(
    office: Office, answer: Script
) -> None:
    office.up.always(answer)
    with pytest.raises(Unreadable) as caught:
        await office.complete(max_answer_bytes=1000)
    assert caught.value.retry_after is None
    assert len(office.up.requests) == 1
    assert await office.spent() == usage.UsageTotals(calls=1, failed=1, input_tokens=3)


async def test_an_answer_that_is_cut_off_has_failed_and_its_prompt_is_paid_for(
    office: Office,
) -> None:
    office.up.always(Script(pieces=(b'{"choices"', b": []}"), cut=5))
    with pytest.raises(Failed) as caught:
        await office.complete()
    assert not isinstance(caught.value, Unreadable)
    assert await office.spent() == usage.UsageTotals(calls=1, failed=1, input_tokens=3)


async def test_an_api_that_cannot_be_reached_has_failed_and_costs_nothing(office: Office) -> None:
    office.up.always(DROPPED)
    with pytest.raises(Failed):
        await office.complete()
    assert await office.spent() == usage.UsageTotals(calls=1, failed=1)


async def test_silence_is_not_waited_for_but_paid_for(office: Office) -> None:
    office.up.always(SILENT)
    with pytest.raises(Failed, match="no answer in time"):
        await office.complete(timeout=0.05)
    assert await office.spent() == usage.UsageTotals(calls=1, failed=1, input_tokens=3)


async def test_a_request_that_is_cancelled_is_counted(office: Office) -> None:
    office.up.always(SILENT)
    task = asyncio.create_task(office.complete())
    await office.up.wait_for()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await office.spent() == usage.UsageTotals(calls=1, failed=1, input_tokens=3)


# Schemas


async def test_a_schema_is_asked_for_strictly(office: Office) -> None:
    office.up.reply(said("{}"))
    await office.complete(schema=SCHEMA)
    assert office.bodies()[0]["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "facts", "schema": SCHEMA, "strict": True},
    }


@pytest.mark.parametrize("status", [400, 422])
async def test_a_model_that_knows_no_schemas_is_asked_without_from_then_on(
    office: Office, status: int
) -> None:
    office.up.reply(error_answer(status, "response_format?"), said("{}"), said("{}"), said("{}"))
    assert (await office.complete(schema=SCHEMA)).text == "{}"
    await office.complete(schema=SCHEMA)
    await office.complete(schema=SCHEMA, model="another")
    assert [("response_format" in body) for body in office.bodies()] == [True, False, False, True]
    assert (await office.spent()).calls == 4
    assert (await office.spent()).failed == 1


@pytest.mark.parametrize("second", [error_answer(400, "no"), error_answer(503, "busy")])
async def test_a_refusal_that_was_not_about_the_schema_teaches_nothing(
    office: Office, second: Script
) -> None:
    office.up.reply(error_answer(400, "no"), second, said("{}"))
    with pytest.raises((Refused, Failed)):
        await office.complete(schema=SCHEMA)
    await office.complete(schema=SCHEMA)
    assert [("response_format" in body) for body in office.bodies()] == [True, False, True]


@pytest.mark.parametrize("answer", [TOO_LONG, error_answer(401, "no"), error_answer(404, "no")])
async def test_a_refusal_that_cannot_be_about_the_schema_is_not_tried_without(
    office: Office, answer: Script
) -> None:
    office.up.always(answer)
    with pytest.raises(Refused):
        await office.complete(schema=SCHEMA)
    assert len(office.up.requests) == 1


async def test_a_format_of_the_operators_stays(office: Office) -> None:
    office.up.always(error_answer(400, "no"))
    with pytest.raises(Refused):
        await office.complete(schema=SCHEMA, parameters={"response_format": {"type": "text"}})
    assert [body["response_format"] for body in office.bodies()] == [{"type": "text"}]


# Credentials


async def test_a_tenant_whose_key_is_not_known_is_not_asked_for(office: Office) -> None:
    assignment = Assignment(tenant="stranger", feature="facts", text="x", model="m")
    assert not office.completer.is_ready(assignment)
    with pytest.raises(NoCredential):
        await office.completer.complete(assignment)
    assert not office.up.requests


async def test_the_anonymous_tenant_needs_no_key(office: Office) -> None:
    await office.complete(tenant="anonymous")
    assert _authorization(office.up) == [None]


async def test_another_api_never_gets_the_tenants_key(office: Office) -> None:
    there = office.other.url
    await office.complete(url=there)
    await office.complete(url=there, tenant="stranger")
    await office.complete(url=there, key="sk-there")
    assert _authorization(office.other) == [None, None, b"Bearer sk-there"]
    assert not office.up.requests


async def test_a_key_of_its_own_goes_before_the_tenants(office: Office) -> None:
    await office.complete(key="sk-own")
    await office.complete(key="sk-own", tenant="stranger")
    assert _authorization(office.up) == [b"Bearer sk-own"] * 2


def _authorization(up: ScriptedUpstream) -> list[bytes | None]:
    fields = [{name.lower(): value for name, value in request.headers} for request in up.requests]
    return [headers.get(b"authorization") for headers in fields]


def test_no_representation_shows_a_key() -> None:
    assert "sk-1" not in repr(Assignment(tenant="t", feature="f", text="x", key="sk-1"))


# What it costs


async def test_tokens_are_those_of_the_usage(office: Office) -> None:
    office.up.reply(said("x", usage={"prompt_tokens": 70, "completion_tokens": 5}))
    await office.complete()
    assert await office.spent() == usage.UsageTotals(calls=1, input_tokens=70, output_tokens=5)


@pytest.mark.parametrize(
    "used",
    [
        None,
        {},
        {"prompt_tokens": 0, "completion_tokens": "7"},
        {"prompt_tokens": -1},
        {"prompt_tokens": True, "completion_tokens": True},
        {"prompt_tokens": 10**30, "completion_tokens": MAX_USAGE_TOKENS + 1},
        {"prompt_tokens": 70.0},
    ],
)
async def test_tokens_that_an_answer_does_not_say_are_counted(
    office: Office, used: dict[str, Any] | None
) -> None:
    office.up.reply(said("four words of text", usage=used))
    await office.complete()
    assert await office.spent() == usage.UsageTotals(calls=1, input_tokens=3, output_tokens=4)


async def test_of_a_long_text_the_tokens_of_its_beginning_are_counted(office: Office) -> None:
    counted: list[int] = []

    def count(text: str) -> int:
        counted.append(len(text))
        return len(text.split())

    office.completer._counter = lambda model: count
    office.up.reply(said("the " * 20_001, usage=None))
    await office.complete("the " * 20_000)
    assert await office.spent() == usage.UsageTotals(
        calls=1, input_tokens=20_000, output_tokens=20_001
    )
    assert counted == [completing.SAMPLE] * 2


async def test_nothing_is_asked_once_the_day_is_spent(office: Office) -> None:
    office.up.reply(said("x", usage={"prompt_tokens": 999, "completion_tokens": 1}))
    await office.complete()
    with pytest.raises(BudgetSpent) as caught:
        await office.complete()
    assert caught.value.until == NOON + 12 * 3600
    assert len(office.up.requests) == 1


async def test_an_answer_is_not_lost_with_the_count_of_its_cost(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    spend = office.meter.add_usage

    async def down(*_: object) -> None:
        raise StoreError("away")

    monkeypatch.setattr(office.meter, "add_usage", down)
    office.up.reply(said("x"), said("y"))
    assert (await office.complete()).text == "x"
    monkeypatch.setattr(office.meter, "add_usage", spend)
    await office.complete()
    assert (await office.spent()).calls == 2


async def test_metrics_say_what_was_asked_for_and_what_came_of_it(office: Office) -> None:
    office.up.reply(said("x"), error_answer(400, "no"), error_answer(500, "no"))
    await office.complete()
    for expected in (Refused, Failed):
        with pytest.raises(expected):
            await office.complete()
    text = office.telemetry.render().decode()
    for outcome in ("done", "refused", "failed"):
        line = f'memory_background_calls_total{{feature="facts",outcome="{outcome}"}} 1.0'
        assert line in text
    assert 'memory_background_input_tokens_total{feature="facts"} 7.0' in text
    assert 'memory_background_output_tokens_total{feature="facts"} 5.0' in text
    assert "memory_background_call_seconds_count 3.0" in text
