"""The same exchange again: SDK retries, idempotency keys, attempts at once, broken first tries."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Any

import httpx
import pytest

from tests.support.rig import Rig, Talk
from tests.support.talk import messaging
from tests.support.talk.messaging import MessagesTalk
from tests.support.talk.responding import ItemTalk, item_list
from tests.support.talk.words import answer, messages
from tests.support.upstream.answers import (
    DROPPED,
    Script,
    chat_completion,
    chat_stream,
    error_answer,
    json_answer,
    sse,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

RETRY: dict[str, Any] = {"x_stainless_retry_count": "1"}


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
async def test_an_sdks_retry_replaces_the_exchange_it_repeats(every: Rig, stream: bool) -> None:
    talk = every.talk()
    await talk.say("u1", "a1")
    await talk.say("u2", "a2", stream=stream)
    assert await talk.say("u2", "a2'", stream=stream, **RETRY) == "u1 a1 u2"
    assert await talk.log() == "u1 a1 u2 a2'"
    assert await talk.gone() == "u2 a2"


async def test_a_retry_that_resends_everything_is_one_exchange(every: Rig) -> None:
    talk = every.talk()
    await talk.say("u1", "a1")
    await talk.say("u1 a1 u2", "a2")
    assert await talk.say("u1 a1 u2", "a2'", **RETRY) == "u1 a1 u2"
    assert await talk.log() == "u1 a1 u2 a2'"


async def test_the_first_attempt_is_not_called_a_retry(every: Rig) -> None:
    talk = every.talk()
    await talk.say("u1", "a1", x_stainless_retry_count="0")
    assert await talk.say("u1", "a2", x_stainless_retry_count="0") == "u1 a1 u1"
    assert await talk.log() == "u1 a1 u1 a2"


async def test_a_retry_of_what_was_never_recorded_is_a_new_exchange(every: Rig) -> None:
    talk = every.talk()
    await talk.say("u1", "a1")
    assert await talk.say("u2", "a2", **RETRY) == "u1 a1 u2"
    assert await talk.log() == "u1 a1 u2 a2"


async def test_a_retry_does_not_rewind_again(every: Rig) -> None:
    talk = every.talk()
    for turn in "123":
        await talk.say(f"u{turn}", f"a{turn}")
    await talk.say("u4", "a4", x_memory_rewind="1")
    assert await talk.say("u4", "a4'", x_memory_rewind="1", **RETRY) == "u1 a1 u2 a2 u4"
    assert await talk.log() == "u1 a1 u2 a2 u4 a4'"


async def test_an_incomplete_exchange_is_replaced_by_asking_again(every: Rig) -> None:
    talk = every.talk()
    await talk.say("u1", "a1")
    broken = sse(chat_stream(["a2-one"], finish_reason="", done=False))
    await talk.ask(messages("u2"), broken, stream=True)
    assert [m.card.incomplete for m in await talk.history()][-1]
    assert await talk.say("u2", "a2'") == "u1 a1 u2"
    assert await talk.log() == "u1 a1 u2 a2'"


async def test_an_incomplete_answer_is_gone_on_from_where_the_client_saw_more_of_it(
    every: Rig,
) -> None:
    talk = every.talk()
    broken = sse(chat_stream(["a1-one a1-two"], finish_reason="", done=False))
    await talk.ask(messages("u1"), broken, stream=True)
    assert await talk.say("u1 a1 u2", "a2") == "u1 a1 u2"
    assert await talk.bodies() == messages("u1 a1 u2 a2")


async def test_an_answer_that_was_stopped_and_gone_on_from_is_kept_whole(every: Rig) -> None:
    talk = every.talk()
    broken = sse(chat_stream(["a1-one a1-two, "], finish_reason="", done=False))
    await talk.ask(messages("u1"), broken, stream=True)
    half = {"role": "assistant", "content": "a1-one a1-two, "}
    await talk.ask([*messages("u1"), half], json_answer(chat_completion("a1-three")))
    assert await talk.say("u1 a1 u2", "a2") == "u1 a1 u2"
    assert await talk.bodies() == messages("u1 a1 u2 a2")


# Attempts of which nothing is recorded

FAILURES = {
    "refused": error_answer(429, "slow down"),
    "failed": error_answer(500, "try again"),
    "not-answered": DROPPED,
    "broken-off": replace(json_answer(chat_completion("half of it")), cut=20),
}


async def fails(talk: Talk, body: dict[str, Any], failure: Script) -> None:
    """A first attempt that the client gets no answer to."""
    talk.rig.up.reply(failure)
    with suppress(httpx.RemoteProtocolError):
        answered = await talk.post({"model": "scripted-1", **body}, x_stainless_retry_count="0")
        assert answered.status_code >= 400


@pytest.mark.parametrize("history", ["auto", "delta"])
@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
async def test_a_retry_of_an_attempt_that_failed_leaves_the_exchange_before_it(
    every: Rig, failure: Script, history: str
) -> None:
    talk = every.talk(**{"x-memory-history": history})
    await talk.say("u", "a1")
    await fails(talk, {"messages": messages("u")}, failure)
    assert await talk.say("u", "a2", **RETRY) == "u a1 u"
    assert await talk.log() == "u a1 u a2"
    assert await talk.gone() == ""


async def test_a_retry_of_its_retry_replaces_it(every: Rig) -> None:
    talk = every.talk()
    await talk.say("u", "a1")
    await fails(talk, {"messages": messages("u")}, FAILURES["failed"])
    await talk.say("u", "a2", **RETRY)
    assert await talk.say("u", "a2'", x_stainless_retry_count="2") == "u a1 u"
    assert await talk.log() == "u a1 u a2'"


async def test_a_retry_of_a_recorded_exchange_replaces_it_behind_one_that_failed(
    every: Rig,
) -> None:
    talk = every.talk()
    await talk.say("u", "a1", x_stainless_retry_count="0")
    every.up.reply(FAILURES["failed"])
    await talk.ask(messages("u"), **RETRY)
    assert await talk.say("u", "a1'", x_stainless_retry_count="2") == "u"
    assert await talk.log() == "u a1'"


async def test_a_retry_leaves_the_same_words_of_another_caller(every: Rig) -> None:
    """Who has been answered since, while the first attempt had failed."""
    talk = every.talk()
    await fails(talk, {"messages": messages("u")}, FAILURES["refused"])
    await talk.say("u", "a1")
    assert await talk.say("u", "a2", **RETRY) == "u a1 u"
    assert await talk.log() == "u a1 u a2"


async def test_of_two_callers_that_failed_both_retries_are_answers(every: Rig) -> None:
    talk = every.talk()
    for _ in range(2):
        await fails(talk, {"messages": messages("u")}, FAILURES["refused"])
    for said in ("a1", "a2"):
        await talk.say("u", said, **RETRY)
    assert await talk.log() == "u a1 u a2"
    assert await talk.say("u", "a2'", **RETRY) == "u a1 u"


async def test_a_retry_without_a_key_leaves_the_exchange_of_a_key(every: Rig) -> None:
    talk = every.talk()
    await talk.say("u", "a1", idempotency_key="k")
    assert await talk.say("u", "a2", **RETRY) == "u a1 u"
    assert await talk.log() == "u a1 u a2"


async def test_a_retry_with_a_key_of_its_own_leaves_the_exchange_of_another_key(
    every: Rig,
) -> None:
    talk = every.talk()
    await talk.say("u", "a1", idempotency_key="k1")
    assert await talk.say("u", "a2", idempotency_key="k2", **RETRY) == "u a1 u"
    assert await talk.log() == "u a1 u a2"


async def test_the_retried_result_of_a_call_keeps_the_round_before_it(every: Rig) -> None:
    talk = every.talk()
    await talk.say("u1", "a1(c1)")
    await talk.say("t:c1", "a2(c2)")
    assert await talk.say("t:c2", "a3", **RETRY) == "u1 a1 t a2 t"
    assert await talk.log() == "u1 a1 t a2 t a3"


async def test_so_does_that_of_a_function_of_the_responses_api(every: Rig) -> None:
    talk = ItemTalk.of(every)
    await talk.say("u1", "a1(c1)")
    await talk.say("t:c1", "a2(c2)")
    await fails(talk, {"input": item_list(messages("t:c2"))}, FAILURES["failed"])
    assert await talk.say("t:c2", "a3", **RETRY) == "u1 a1 t a2 t"
    assert await talk.log() == "u1 a1 t a2 t a3"


async def test_so_does_that_of_a_tool_of_the_messages_api(every: Rig) -> None:
    talk = MessagesTalk.on(every)
    await talk.say("u1", "a1(c1)")
    await talk.say("t:c1", "a2(c2)")
    body = {"messages": messaging.messages("t:c2"), "max_tokens": 9}
    await fails(talk, body, FAILURES["failed"])
    assert await talk.say("t:c2", "a3", **RETRY) == "u1 a1 t a2 t"
    assert await talk.log() == "u1 a1 t a2 t a3"


# Idempotency keys


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
async def test_the_same_idempotency_key_is_the_same_exchange(every: Rig, stream: bool) -> None:
    talk = every.talk()
    await talk.say("u1", "a1")
    await talk.say("u2", "a2", stream=stream, idempotency_key="k")
    assert await talk.say("u2", "a2'", stream=stream, idempotency_key="k") == "u1 a1 u2"
    assert every.up.requests[-1].header("idempotency-key") == "k"
    assert await talk.log() == "u1 a1 u2 a2'"
    assert await talk.gone() == "u2 a2"


async def test_a_retry_with_a_key_may_come_three_times(every: Rig) -> None:
    talk = every.talk()
    for attempt in ("a1", "a2", "a3"):
        assert await talk.say("u1", attempt, idempotency_key="k") == "u1"
    assert await talk.log() == "u1 a3"


async def test_a_retry_behind_another_exchange_is_answered_and_not_recorded(every: Rig) -> None:
    talk = every.talk()
    await talk.say("u1", "a1", idempotency_key="k")
    await talk.say("u2", "a2")
    response = await talk.ask(messages("u1"), answer("a1'"), idempotency_key="k")
    assert response.headers["x-memory-reason"] == "stale_retry"
    assert "x-memory-exchange-id" not in response.headers
    assert await talk.log() == "u1 a1 u2 a2"


async def test_different_keys_are_different_exchanges(every: Rig) -> None:
    talk = every.talk()
    await talk.say("u1", "a1", idempotency_key="k1")
    assert await talk.say("u1", "a2", idempotency_key="k2") == "u1 a1 u1"
    assert await talk.log() == "u1 a1 u1 a2"


async def test_the_same_key_in_another_session_is_another_exchange(every: Rig) -> None:
    one, other = every.talk(), every.talk()
    await one.say("u1", "a1", idempotency_key="k")
    await other.say("u1", "a2", idempotency_key="k")
    assert (await one.log(), await other.log()) == ("u1 a1", "u1 a2")


@pytest.mark.parametrize("last_to_end", ["first", "second"])
async def test_of_attempts_at_once_the_one_started_last_wins(every: Rig, last_to_end: str) -> None:
    talk = every.talk()
    releases = {name: asyncio.Event() for name in ("first", "second")}
    attempts = []
    for number, (name, said) in enumerate((("first", "a1"), ("second", "a2")), start=1):
        pieces = answer(said, stream=True).pieces
        every.up.reply(sse([*pieces[:2], releases[name], *pieces[2:]]))
        attempts.append(asyncio.create_task(_attempt(talk)))
        await every.up.wait_for(number)
    order = ("second", "first") if last_to_end == "first" else ("first", "second")
    for name in order:
        releases[name].set()
        await attempts[0 if name == "first" else 1]
    assert await talk.log() == "u1 a2"
    assert every.store.commits


async def _attempt(talk: Talk) -> None:
    response = await talk.ask(messages("u1"), stream=True, idempotency_key="k")
    assert response.status_code == 200
    assert response.text.endswith("data: [DONE]\n\n")
