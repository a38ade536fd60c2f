"""Other people's client libraries, unchanged, through the real proxy: what they are promised.

The upstream refuses prompts that OpenAI would refuse, and answers from the prompt alone; none is
refused in any of these tests.  A conversation is written in letters: u for a message of the user,
c2 for an answer with two calls, t for a result, a for an answer in words.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from itertools import product

import pytest

from tests.support.processes.applications import Application, Applications, Client
from tests.support.processes.catalogue import (
    FEEBLE_IDS,
    NEVER_RETRIES,
    NEVER_STREAMS,
    ONLY_STREAMS,
    SPEAKS_MESSAGES,
    TELLS_CALLS_AS_TEXT,
    WAITS_WHEN_BUSY,
    WANTS_IDS,
    of,
)
from tests.support.processes.running import Running
from tests.support.talk.compared import Said, Talk, letters, spoken
from tests.support.upstream import anthropic
from tests.support.upstream.answers import Script, chat_stream, error_answer, sse
from tests.support.upstream.scripted import ScriptedUpstream
from tests.support.upstream.weatherman import SNOW, Ids, Weatherman

pytestmark = [pytest.mark.e2e, pytest.mark.clients, pytest.mark.timeout(600)]

SESSION = "talk"
KAI = "Hi, my name is Kai."
WHO = "What is my name?"
WEATHER = "What is the weather in Oslo, Rome and Bergen?"
AGAIN = f"Once more: {WEATHER}"
LOOP = "u c2 t t c1 t a"
EVERY_CHANGE = {"messages", "node"}
"""Environments of the SDKs that others are made of; what all others do waits for a release."""

STREAMED = pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])


def each(clients: list[Client]) -> pytest.MarkDecorator:
    """Parametrised so that all tests of a client are in one process."""
    params = [pytest.param(client, id=client.name, marks=marks(client)) for client in clients]
    return pytest.mark.parametrize("client", params)


def each_with(name: str, pairs: Iterable[tuple[Client, object]]) -> pytest.MarkDecorator:
    """The same, with what is tried of each client."""
    params = [
        pytest.param(client, value, id=f"{client.name}-{value}", marks=marks(client))
        for client, value in pairs
    ]
    return pytest.mark.parametrize(("client", name), params)


def marks(client: Client) -> list[pytest.MarkDecorator]:
    together = pytest.mark.xdist_group(group(client))
    return [together] if client.environment in EVERY_CHANGE else [together, pytest.mark.release]


def group(client: Client) -> str:
    """npm does not like to install twice at once."""
    return "clients-node" if client.environment == "node" else f"client-{client.name}"


@pytest.fixture
def application(client: Client, applications: Applications) -> Application:
    return applications(client)


# What is compared


def in_words(message: Said, log: list[Said]) -> Said:
    """A call that the request forced and nobody answers is sent as the text that it is."""
    role, _, calls, _ = message
    if not calls or {id for id, *_ in calls} <= {answered for *_, answered in log}:
        return message
    return role, "\n".join(json.dumps(arguments) for *_, arguments in calls), [], None


@pytest.fixture
def talk(up: ScriptedUpstream, proxy: Running) -> Talk:
    return Talk(up, proxy, SESSION)


# Memory


@each(of("say"))
async def test_a_new_instance_knows_what_was_said_to_another(
    application: Application, proxy: Running, talk: Talk
) -> None:
    await application.do("say", proxy.url, SESSION, text=KAI)
    answer = await application.do("say", proxy.url, SESSION, text=WHO)
    assert "Your name is Kai." in answer
    assert letters(talk.sent) == "u a u"
    log = await talk.log()
    assert letters(log) == "u a u a"
    assert log[:-1] == talk.sent


@each(of("tools"))
@STREAMED
async def test_a_tool_loop_is_recorded_once_and_sent_once(
    client: Client, application: Application, proxy: Running, talk: Talk, streamed: bool
) -> None:
    answer = await application.do("tools", proxy.url, SESSION, text=WEATHER, streamed=streamed)
    assert SNOW in answer
    log = await talk.log()
    assert [text for role, text, *_ in log if role == "user" and WEATHER in text] == [log[0][1]]
    if client.name not in TELLS_CALLS_AS_TEXT:
        assert letters(log) == LOOP
        assert await talk.everything() == log
    assert log[:-1] == talk.sent
    if "say" in client.does:
        await application.do("say", proxy.url, SESSION, text=WHO)
        assert talk.sent[: len(log) - 1] == log[:-1]


@each_with(
    "ids",
    [
        (client, ids)
        for client, ids in product(of("tools"), ("vllm", "mistral", "empty"))
        if ids != "empty" or client.name not in WANTS_IDS
    ],
)
async def test_a_tool_loop_is_exact_whatever_the_upstreams_ids_look_like(
    client: Client,
    application: Application,
    proxy: Running,
    up: ScriptedUpstream,
    talk: Talk,
    ids: Ids,
) -> None:
    up.always(Weatherman(ids))
    up.rules["any_ids"] = ids == "empty"
    await application.do("tools", proxy.url, SESSION, text=WEATHER, streamed=False)
    await application.do("tools", proxy.url, SESSION, text=AGAIN, streamed=True)
    log = await talk.log()
    if client.name not in TELLS_CALLS_AS_TEXT:
        assert letters(log) == f"{LOOP} {LOOP}"
        everything = await talk.everything()
        assert everything == log or ids in FEEBLE_IDS.get(client.name, ())
    assert [role for role, text, *_ in log if WEATHER in text] == ["user", "user"]
    assert [in_words(each, log) for each in log[:-1]] == talk.sent


TURNS = [KAI, WEATHER, WHO, AGAIN, "Thanks."]


@each_with(
    "how",
    [
        (client, how)
        for client, how in product(of("converse"), ("plain", "streamed"))
        if client.name not in (NEVER_STREAMS if how == "streamed" else ONLY_STREAMS)
    ],
)
async def test_a_history_that_the_client_keeps_is_recorded_once_and_sent_once(
    client: Client, application: Application, proxy: Running, talk: Talk, how: str
) -> None:
    answers = await application.do(
        "converse", proxy.url, SESSION, texts=TURNS, streamed=how == "streamed"
    )
    assert "Your name is Kai." in answers[2]
    loop = LOOP if "tools" in client.does else "u a"
    log = await talk.log()
    assert letters(log) == f"u a {loop} u a {loop} u a"
    assert await talk.everything() == log
    assert log[:-1] == talk.sent


@each(of("results_alone"))
async def test_results_are_sent_without_what_they_answer(
    application: Application, proxy: Running, talk: Talk
) -> None:
    assert await application.do("results_alone", proxy.url, SESSION, text=WEATHER) == SNOW
    log = await talk.log()
    assert letters(log) == LOOP
    assert log[:-1] == talk.sent


@each(of("threads"))
@STREAMED
async def test_what_the_upstream_keeps_is_not_sent_to_it_again(
    application: Application, proxy: Running, up: ScriptedUpstream, talk: Talk, streamed: bool
) -> None:
    await application.do("say", proxy.url, SESSION, text=KAI)
    answer = await application.do("threads", proxy.url, SESSION, text=WEATHER, streamed=streamed)
    assert SNOW in answer
    assert letters(await talk.log()) == f"u a {LOOP}"
    begun, *more = up.requests[1:]
    assert letters(spoken(anthropic.as_chat(begun.json)["messages"])) == "u a u"
    assert [letters(spoken(anthropic.as_chat(r.json)["messages"])) for r in more] == ["t t", "t"]


# Streams


@each(of("stream"))
async def test_the_pieces_of_a_stream_come_one_by_one(
    client: Client, application: Application, proxy: Running, up: ScriptedUpstream
) -> None:
    held, said = asyncio.Event(), "first second last"
    pieces, first = chat_stream(["first ", "second ", "last"]), 2
    if client.name in SPEAKS_MESSAGES:
        pieces, first = anthropic.message_stream(anthropic.message(anthropic.text(said))), 4
    up.reply(sse([*pieces[:first], held, *pieces[first:]]))
    told = ""
    async for answer in application.told("stream", proxy.url, SESSION, text=KAI):
        assert answer.raised is None, application.errors()
        told += answer.piece or ""
        if told.strip() == "first":
            held.set()
    assert told == said


@each(of("headers"))
async def test_an_application_can_read_what_memory_did(
    application: Application, proxy: Running
) -> None:
    await application.do("say", proxy.url, SESSION, text=KAI)
    seen = await application.do("headers", proxy.url, SESSION, text=WHO)
    assert seen["x-memory-status"] == "applied"
    assert seen["x-memory-messages"] == "2"
    assert seen["x-memory-session-id"] == SESSION


# Errors


def refusal(status: int) -> Script:
    """An error that no SDK asks again about."""
    answer = error_answer(status, "not now", "its_code")
    return Script(
        status=status,
        headers=(*answer.headers, ("retry-after", "1"), ("x-should-retry", "false")),
        pieces=answer.pieces,
    )


@each_with(
    "status",
    [
        (client, status)
        for client, status in product(of("say"), (429, 401))
        if status != 429 or client.name not in WAITS_WHEN_BUSY
    ],
)
async def test_an_error_is_the_one_that_the_upstream_gives(
    application: Application, proxy: Running, up: ScriptedUpstream, talk: Talk, status: int
) -> None:
    up.always(refusal(status))
    direct = await application.try_to("say", up.origin, SESSION, text=KAI)
    proxied = await application.try_to("say", proxy.url, SESSION, text=KAI)
    assert proxied == direct
    assert len(up.requests) % 2 == 0
    assert await talk.everything() == []


RETRIES_BY_ITSELF = [client for client in of("say") if client.name not in NEVER_RETRIES]


@each(RETRIES_BY_ITSELF)
async def test_a_retry_of_the_clients_own_is_one_turn(
    application: Application, proxy: Running, up: ScriptedUpstream, talk: Talk
) -> None:
    busy = error_answer(429, "not now")
    soon = Script(status=429, headers=(*busy.headers, ("retry-after-ms", "1")), pieces=busy.pieces)
    up.reply(soon)
    await application.do("say", proxy.url, SESSION, text=KAI)
    assert len(up.requests) == 2
    assert letters(await talk.log()) == "u a"


# Structure


@each(of("extract"))
async def test_what_follows_an_extraction_by_call_suits_templates_that_alternate(
    application: Application, proxy: Running, up: ScriptedUpstream, talk: Talk
) -> None:
    up.rules["alternating"] = True
    person = await application.do("extract", proxy.url, SESSION, text=KAI)
    assert person == {"name": "Kai"}
    again = await application.do("extract", proxy.url, SESSION, text="And who was that?")
    assert again == {"name": "Kai"}
    log = await talk.log()
    assert letters(log) == "u c1 u c1"
