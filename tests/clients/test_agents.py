"""Claude Code and Codex, unchanged, through the real proxy: what they are promised.

The upstream refuses prompts that Anthropic or OpenAI would refuse, and answers from the prompt
alone; none is refused in any of these tests, and no other host is asked for anything.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.support.processes.agents import AGENTS, Agent, Home, Terminal
from tests.support.processes.relay import Relay
from tests.support.processes.running import Running
from tests.support.store.history import TOKEN
from tests.support.talk.compared import Said, Talk, letters
from tests.support.upstream.answers import Script, error_answer
from tests.support.upstream.clerk import HELP, HELPER, NOTE, READ, SUMMARY, Clerk
from tests.support.upstream.connection import Request
from tests.support.upstream.scripted import ScriptedUpstream

pytestmark = [
    *(pytest.mark.e2e, pytest.mark.clients, pytest.mark.release, pytest.mark.timeout(600)),
    pytest.mark.parametrize(
        "agent",
        [
            pytest.param(agent, id=type(agent).__name__, marks=pytest.mark.xdist_group(agent.name))
            for agent in AGENTS
        ],
    ),
]

KAI = "Hi, my name is Kai."
WHO = "What is my name?"
KNOWN = "Your name is Kai."
SIDE = b"x-memory-reason: side_request"

Terminals = Callable[..., Terminal]


@pytest.fixture
async def relay(up: ScriptedUpstream, proxy: Running) -> AsyncIterator[Relay]:
    up.always(Clerk())
    port = urlsplit(proxy.url).port
    assert port is not None
    async with Relay(port) as wire:
        yield wire
        assert {request.method for request in up.requests} <= {"POST"}


@pytest.fixture
def terminal(agent: Agent, up: ScriptedUpstream, relay: Relay, tmp_path: Path) -> Terminals:
    """Somebody's, with these headers; each has a home of its own."""
    numbers = itertools.count(1)

    def begin(origin: str = relay.url, **headers: str) -> Terminal:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return Terminal(agent, Home(tmp_path / f"home{next(numbers)}", origin, named), up.origin)

    return begin


async def sessions_of(proxy: Running) -> list[str]:
    async with httpx.AsyncClient(headers={"authorization": f"Bearer {TOKEN}"}) as client:
        found = await client.get(f"{proxy.url}/memory/v1/sessions")
    return [session["id"] for session in found.json()["data"]]


def with_text(log: list[Said], words: str) -> list[str]:
    """Whose messages have these words."""
    return [role for role, text, *_ in log if words in text]


async def test_what_goes_on_is_one_session_named_by_the_program_itself(
    agent: Agent, terminal: Terminals, up: ScriptedUpstream, proxy: Running
) -> None:
    person = terminal()
    first = await person.ask(KAI)
    second = await person.ask(WHO, goes_on=True)
    assert second.text == KNOWN
    assert {request.header(agent.session) for request in up.requests} == {first.session}
    assert second.session == first.session
    assert await sessions_of(proxy) == [first.session]
    talk = Talk(up, proxy, first.session)
    log = await talk.log()
    assert await talk.everything() == log
    assert letters(log).endswith("u a u a")
    assert [with_text(log, words) for words in (KAI, WHO)] == [["user"], ["user"]]
    assert log[:-1] == talk.sent


async def test_a_tool_loop_is_stored_whole_and_sent_once(
    terminal: Terminals, up: ScriptedUpstream, proxy: Running
) -> None:
    person = terminal()
    told = await person.ask(READ)
    assert told.text == f"It says: {NOTE}"
    talk = Talk(up, proxy, told.session)
    log = await talk.log()
    assert letters(log).endswith("u c1 t a")
    assert with_text(log, NOTE) == ["tool", "assistant"]
    assert await talk.everything() == log
    assert log[:-1] == talk.sent
    await person.ask(KAI, goes_on=True)
    assert talk.sent[: len(log)] == log


async def test_what_it_asks_beside_the_conversation_is_no_turn(
    agent: Agent, terminal: Terminals, up: ScriptedUpstream, proxy: Running, relay: Relay
) -> None:
    person = terminal()
    session = (await person.ask(KAI)).session
    if agent.helps:
        await person.ask(HELP, goes_on=True)
        assert relay.heard.count(SIDE) == 1
    before = relay.heard.count(SIDE)
    assert (await person.ask_compacted(WHO)).text == KNOWN
    assert relay.heard.count(SIDE) == before + 1
    assert await sessions_of(proxy) == [session]
    everything = await Talk(up, proxy, session).everything()
    assert "user" not in with_text(everything, HELPER)
    assert "assistant" not in with_text(everything, SUMMARY)
    assert with_text(everything, WHO) == ["user"]


async def test_what_is_told_whole_stays_as_short_as_its_summary(
    terminal: Terminals, up: ScriptedUpstream, relay: Relay
) -> None:
    person = terminal(X_Memory_History="full")
    await person.ask(KAI)
    assert (await person.ask_compacted(WHO)).text == KNOWN
    assert up.requests[-1].body in relay.said


async def test_another_session_of_the_same_person_knows_what_was_said(
    agent: Agent, terminal: Terminals, up: ScriptedUpstream, proxy: Running
) -> None:
    told = await terminal(X_User_Id="kai").ask(KAI)
    stranger = await terminal(X_User_Id="ann").ask(WHO)
    assert stranger.text == "Your name is unknown."
    again = await terminal(X_User_Id="kai").ask(WHO)
    assert again.text == KNOWN
    assert again.session != told.session
    log = await Talk(up, proxy, again.session).log()
    assert with_text(log, KAI) == []
    assert up.requests[-1].header("x-user-id") is None


async def test_without_memory_both_directions_are_as_they_came(
    terminal: Terminals, up: ScriptedUpstream, proxy: Running, relay: Relay
) -> None:
    clerk, answers = Clerk(), list[bytes]()

    def in_one_piece(request: Request) -> Script:
        script = clerk(request)
        answers.append(b"".join(piece for piece in script.pieces if isinstance(piece, bytes)))
        return Script(status=script.status, headers=script.headers, pieces=(answers[-1],))

    up.always(in_one_piece)
    told = await terminal(X_Memory_Mode="off", X_User_Id="kai").ask(READ)
    assert told.text == f"It says: {NOTE}"
    assert len(up.requests) == len(answers) == 2
    assert all(request.body in relay.said for request in up.requests)
    assert all(answer in relay.heard for answer in answers)
    assert await sessions_of(proxy) == []


async def test_an_error_is_the_one_that_the_upstream_gives(
    terminal: Terminals, up: ScriptedUpstream, proxy: Running
) -> None:
    up.always(error_answer(400, "not like this", "its_code"))
    direct = await terminal(up.origin).ask(KAI)
    proxied = await terminal().ask(KAI)
    assert "not like this" in proxied.text
    assert proxied.text == direct.text
    assert await Talk(up, proxy, proxied.session).everything() == []


async def test_a_retry_of_its_own_is_one_turn(
    terminal: Terminals, up: ScriptedUpstream, proxy: Running
) -> None:
    up.reply(error_answer(503, "not now"))
    told = await terminal().ask(KAI)
    assert len(up.requests) == 2
    talk = Talk(up, proxy, told.session)
    assert with_text(await talk.everything(), KAI) == ["user"]
    assert await talk.everything() == await talk.log()
