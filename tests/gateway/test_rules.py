"""The rules of memory that no table of conversations shows: what is recorded and injected."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.support.rig import Rig
from tests.support.talk.words import answer, message, messages, names
from tests.support.upstream.answers import (
    Script,
    chat_completion,
    error_answer,
    json_answer,
    tool_call,
)
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="session")


def user(content: object) -> dict[str, object]:
    return {"role": "user", "content": content}


# Modes


async def test_mode_read_injects_and_records_nothing(every: Rig) -> None:
    talk = every.talk()
    await talk.say("u1", "a1")
    assert await talk.say("u2", "a2", x_memory_mode="read") == "u1 a1 u2"
    assert await talk.say("u3", "a3", stream=True, x_memory_mode="read") == "u1 a1 u3"
    assert await talk.log() == "u1 a1"


async def test_mode_write_records_and_injects_nothing(every: Rig) -> None:
    talk = every.talk()
    await talk.say("u1", "a1")
    assert await talk.say("u2", "a2", x_memory_mode="write") == "u2"
    assert await talk.log() == "u1 a1 u2 a2"


async def test_mode_off_neither_injects_nor_records(every: Rig) -> None:
    talk = every.talk()
    await talk.say("u1", "a1")
    assert await talk.say("u2", "a2", x_memory_mode="off") == "u2"
    assert await talk.log() == "u1 a1"


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param([user("### Task:\nWrite a title for this chat")], id="in-the-last-user-text"),
        pytest.param(
            [{"role": "system", "content": "### Task: tags"}, user("u1 a1")],
            id="in-the-system-text",
        ),
        pytest.param([user([{"type": "text", "text": "### Task: x"}])], id="in-a-text-part"),
    ],
)
async def test_side_requests_of_chat_uis_are_answered_and_not_recorded(
    one: Rig, sent: list[dict[str, object]]
) -> None:
    talk = one.talk()
    await talk.say("u1", "a1")
    response = await talk.ask(sent)
    assert response.status_code == 200
    assert response.headers["x-memory-reason"] == "side_request"
    assert response.headers["x-memory-status"] == "applied"
    assert "x-memory-exchange-id" not in response.headers
    assert await talk.log() == "u1 a1"


async def test_words_of_a_side_request_inside_a_text_mean_nothing(one: Rig) -> None:
    talk = one.talk()
    response = await talk.ask([user("what does ### Task: mean?")])
    assert "x-memory-reason" not in response.headers
    assert len(await talk.history()) == 2


# The system message


async def test_the_system_message_is_remembered(every: Rig) -> None:
    talk = every.talk()
    await talk.say("s1 u1", "a1")
    assert await talk.say("u2", "a2") == "s1 u1 a1 u2"
    assert await talk.log() == "u1 a1 u2 a2"


async def test_a_new_system_message_replaces_the_remembered_one(every: Rig) -> None:
    talk = every.talk()
    await talk.say("s1 u1", "a1")
    assert await talk.say("s2 u2", "a2") == "s2 u1 a1 u2"
    assert await talk.say("u3", "a3") == "s2 u1 a1 u2 a2 u3"


async def test_a_run_of_system_and_developer_messages_is_remembered_as_sent(every: Rig) -> None:
    talk = every.talk()
    first = {"role": "system", "name": "rules", "content": [{"type": "text", "text": "s1"}]}
    await talk.ask([first, {"role": "developer", "content": "d1"}, user("u1")], answer("a1"))
    await talk.say("u2", "a2")
    assert every.up.requests[-1].messages[:2] == [first, {"role": "developer", "content": "d1"}]


async def test_the_remembered_system_message_counts_in_the_tokens_header(one: Rig) -> None:
    talk = one.talk()
    await talk.ask([{"role": "system", "content": "be brief " * 50}, user("u1")], answer("a1"))
    alone = await talk.ask([user("u2")], answer("a2"), x_memory_max_tokens="150")
    assert alone.headers["x-memory-status"] == "applied"
    assert 100 < int(alone.headers["x-memory-tokens"]) <= 150


async def test_a_profile_can_leave_the_system_message_unremembered(one: Rig) -> None:
    talk = one.talk(**{"x-memory-profile": "forgetful"})
    await talk.say("s1 u1", "a1")
    assert await talk.say("u2", "a2") == "u1 a1 u2"


async def test_the_system_message_outlives_every_window(one: Rig) -> None:
    talk = one.talk(**{"x-memory-profile": "brief"})
    await talk.say("s1 u1", "a1")
    await talk.say("u2", "a2")
    assert await talk.say("u3", "a3") == "s1 u2 a2 u3"


@pytest.mark.parametrize("most", ["0", "5"])
async def test_the_system_message_outlives_a_bound_of_one_request(one: Rig, most: str) -> None:
    talk = one.talk()
    await talk.ask([{"role": "system", "content": "s1" + " brief" * 20}, user("u1")], answer("a1"))
    bounded = await talk.ask([user("u2")], answer("a2"), x_memory_max_tokens=most)
    assert one.up.requests[-1].messages[0]["content"].startswith("s1")
    assert one.up.requests[-1].messages[1:] == [user("u2")]
    assert int(bounded.headers["x-memory-tokens"]) > int(most)


async def test_a_greeting_that_came_first_stays_first(one: Rig) -> None:
    talk = one.talk()
    await talk.say("a0 u1", "a1")
    assert await talk.say("u2", "a2") == "a0 u1 a1 u2"


# Windows and profiles


async def test_each_profile_has_its_window_and_the_history_is_whole(every: Rig) -> None:
    talk = every.talk()
    for turn in range(1, 4):
        await talk.say(f"u{turn}", f"a{turn}")
    assert await talk.say("u4", "a4", x_memory_profile="brief") == "u3 a3 u4"
    assert await talk.say("u5", "a5", x_memory_profile="blind") == "u5"
    assert await talk.say("u6", "a6") == "u1 a1 u2 a2 u3 a3 u4 a4 u5 a5 u6"
    assert await talk.say("u7", "a7", x_memory_profile="brief") == "u6 a6 u7"
    assert len(await talk.history("active")) == 14


async def test_the_running_tool_loop_is_never_cut_by_a_window(every: Rig) -> None:
    talk = every.talk(**{"x-memory-profile": "blind"})
    await talk.say("u0", "a0")
    await talk.say("u1", "a1(c1)")
    assert await talk.say("t1:c1", "a2(c2)") == "u1 a1 t1"
    assert await talk.say("t2:c2", "a3") == "u1 a1 t1 a2 t2"


async def test_max_tokens_bounds_what_one_request_gets(every: Rig) -> None:
    talk = every.talk()
    for turn in range(1, 5):
        await talk.say(f"u{turn}", f"a{turn}")
    whole = await talk.ask(messages("u5"), answer("a5"), x_memory_mode="read")
    bound = int(whole.headers["x-memory-tokens"]) // 2
    half = await talk.ask(messages("u5"), answer("a5"), x_memory_max_tokens=str(bound))
    assert talk.sent == "u3 a3 u4 a4 u5"
    assert int(half.headers["x-memory-tokens"]) <= bound
    none = await talk.ask(messages("u6"), answer("a6"), x_memory_max_tokens="0")
    assert (talk.sent, none.headers["x-memory-status"]) == ("u6", "empty")
    assert await talk.say("u7", "a7") == "u1 a1 u2 a2 u3 a3 u4 a4 u5 a5 u6 a6 u7"


async def test_a_session_with_a_ttl_ends(one: Rig) -> None:
    talk = one.talk(**{"x-memory-profile": "short-lived"})
    await talk.say("u1", "a1")
    await talk.say("u2", "a2", stream=True)
    async with asyncio.timeout(PATIENCE):
        while await talk.say("u3", "a3", x_memory_mode="read") != "u3":
            await asyncio.sleep(0.05)
    assert await one.store.real.session(talk.key) is None


async def test_a_chat_leaves_the_life_that_a_session_was_given(one: Rig) -> None:
    talk = one.talk(**{"x-memory-profile": "short-lived"})
    await talk.say("u1", "a1")
    for ttl in (3600, 0):
        path = f"/memory/v1/sessions/{talk.session}"
        authorization = {"authorization": talk.all_headers["authorization"]}
        changed = await one.client.patch(path, json={"ttl": ttl}, headers=authorization)
        assert changed.json()["ttl"] == ttl
        await talk.say(f"u{ttl}", f"a{ttl}", stream=not ttl)
        found = await one.store.real.session(talk.key)
        assert found is not None and found.details.ttl == ttl


# Answers that are not sent back


async def test_an_empty_answer_is_recorded_and_not_sent_back(every: Rig) -> None:
    talk = every.talk()
    await talk.ask(messages("u1"), json_answer(chat_completion("")))
    assert await talk.say("u2", "a2") == "u1 u2"
    assert len(await talk.history("active")) == 4


async def test_an_empty_user_message_is_sent_and_harms_nothing(every: Rig) -> None:
    talk = every.talk()
    await talk.say("u1", "a1")
    await talk.ask([user("")], answer("a2"))
    assert every.up.requests[-1].messages[-1] == user("")
    assert await talk.say("u3", "a3") == "u1 a1 a2 u3"
    assert not every.up.refused


async def test_reasoning_is_history_and_is_not_sent_back(every: Rig) -> None:
    talk = every.talk()
    spoken = chat_completion("a1-one")
    spoken["choices"][0]["message"] |= {"reasoning_content": "hm", "annotations": [{"x": 1}]}
    await talk.ask(messages("u1"), json_answer(spoken))
    await talk.say("u2", "a2")
    assert every.up.requests[-1].messages[1] == {"role": "assistant", "content": "a1-one"}
    wire = json.loads((await talk.history())[1].wire)
    assert (wire["reasoning_content"], wire["annotations"]) == ("hm", [{"x": 1}])


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
async def test_the_first_of_several_choices_is_memory_and_all_are_history(
    every: Rig, stream: bool
) -> None:
    talk = every.talk()
    await talk.say("u1", "a1", stream=stream, n=3)
    assert await talk.say("u2", "a2") == "u1 a1 u2"
    said = [(m.state, m.card.choice) for m in await talk.history() if m.card.choice]
    assert said == [("superseded", 1), ("superseded", 2)]


async def test_another_choice_that_the_client_goes_on_with_becomes_the_memory(every: Rig) -> None:
    talk = every.talk()
    spoken = chat_completion("first")
    others = [
        {"index": i, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
        for i, said in enumerate(("alpha beta", "gamma delta", "epsilon zeta"))
    ]
    await talk.ask(messages("u1"), json_answer(spoken | {"choices": others}), n=3)
    chosen = {"role": "assistant", "content": "gamma delta"}
    await talk.ask([user("u1"), chosen, user("u2")], answer("a2"))
    assert await talk.say("u3", "a3") == "u1 gamma delta u2 a2 u3"
    assert await talk.gone() == "alpha beta epsilon zeta"


def several(*words: str) -> Script:
    """An answer of these choices."""
    said = enumerate(message(word) for word in words)
    choices = [{"index": i, "message": each, "finish_reason": "stop"} for i, each in said]
    return json_answer(chat_completion("") | {"choices": choices})


async def test_results_alone_choose_the_choice_whose_calls_they_answer(every: Rig) -> None:
    talk = every.talk()
    await talk.ask(messages("u1"), several("a1", "a2(c1,c2)", "a3(c3)"), n=3)
    assert await talk.say("t1:c1 t2:c2", "a4", x_memory_mode="read") == "u1 a2 t1 t2"
    assert await talk.log() == "u1 a1"
    assert await talk.say("t1:c1 t2:c2", "a4") == "u1 a2 t1 t2"
    assert await talk.say("u2", "a5") == "u1 a2 t1 t2 a4 u2"
    assert await talk.gone() == "a1 a3"
    memory = (await talk.exchange((await talk.history())[-1].card.exchange)).memory
    assert (memory.messages, memory.evicted_messages) == (5, 0)


async def test_another_choice_that_calls_is_sent_again_and_not_stored_again(every: Rig) -> None:
    talk = every.talk()
    await talk.ask(messages("u1"), several("a1(c1)", "a2(c2)"), n=2)
    assert await talk.say("u1 a2(c2) t2:c2", "a3") == "u1 a2 t2"
    assert await talk.log() == "u1 a2 t2 a3"
    assert await talk.gone() == "a1"
    assert await talk.say("u1 a2(c2) t2:c2 a3 u2", "a4") == "u1 a2 t2 a3 u2"
    assert await talk.gone() == "a1"


async def test_results_choose_between_two_choices_that_call(every: Rig) -> None:
    talk = every.talk()
    await talk.ask(messages("u1"), several("a1(c1)", "a2(c2)"), n=2)
    retry: dict[str, Any] = {"idempotency_key": "k"}
    assert await talk.say("t2:c2", "a3", **retry) == "u1 a2 t2"
    assert await talk.say("t2:c2", "a4", **retry) == "u1 a2 t2"
    assert await talk.say("u2", "a5") == "u1 a2 t2 a4 u2"


async def test_results_choose_nothing_once_something_else_was_said(every: Rig) -> None:
    every.up.strict = False
    talk = every.talk()
    await talk.ask(messages("u1"), several("a1", "a2(c1)"), n=2)
    await talk.say("u2", "a3")
    await talk.ask(messages("t1:c1"), answer("a4"))
    assert await talk.log() == "u1 a1 u2 a3 t1 a4"


async def test_a_rewind_takes_all_choices_of_its_turn(every: Rig) -> None:
    every.up.strict = False
    talk = every.talk()
    await talk.ask(messages("u1"), several("a1", "a2(c1)"), n=2)
    await talk.ask(messages("t1:c1"), answer("a4"), x_memory_rewind="1")
    assert await talk.log() == "t1 a4"


async def test_call_ids_may_repeat_inside_the_prompt(every: Rig) -> None:
    talk = every.talk()
    for conversation in ("u1", "t1:c1", "u2", "t2:c1"):
        await talk.say(conversation, "a1(c1)" if conversation[0] == "u" else "a2")
    assert await talk.say("u3", "a3") == "u1 a1 t1 a2 u2 a1 t2 a2 u3"


async def test_partial_tool_results_go_as_the_client_sent_them(one: Rig) -> None:
    talk = one.talk()
    await talk.say("u1", "a1(c1,c2)")
    response = await talk.ask(messages("t1:c1"), answer("a2"))
    assert response.status_code == 400  # the upstream's own opinion of what the client asked
    assert one.up.requests[-1].refused is not None
    assert talk.sent == "u1 a1 t1"
    assert await talk.log() == "u1 a1"


# Media


async def test_large_inline_media_are_recorded_as_a_line_of_text(every: Rig) -> None:
    talk = every.talk(**{"x-memory-profile": "small-media"})
    large = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "QUJD" * 50}}
    link = {"type": "image_url", "image_url": {"url": "https://example.com/" + "x" * 99}}
    sent = user([{"type": "text", "text": "look"}, large, link])
    await talk.ask([sent], answer("a1"))
    assert every.up.requests[-1].messages == [sent]
    await talk.say("u2", "a2")
    text, placeholder, kept = every.up.requests[-1].messages[0]["content"]
    assert (text["text"], kept) == ("look", link)
    assert placeholder["type"] == "text"
    assert "image/png" in placeholder["text"] and "150 bytes" in placeholder["text"]


async def test_an_image_sent_again_is_recognised_though_only_its_hash_is_kept(every: Rig) -> None:
    talk = every.talk(**{"x-memory-profile": "small-media"})
    large = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "QUJD" * 50}}
    sent = user([{"type": "text", "text": "look"}, large])
    await talk.ask([sent], answer("a1"))
    response = await talk.ask([sent, *messages("a1 u2")], answer("a2"))
    assert response.headers["x-memory-messages"] == "0"
    assert every.up.requests[-1].messages == [sent, *messages("a1 u2")]
    assert len(await talk.history()) == 4


# Upstream errors


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503])
async def test_nothing_is_recorded_of_an_upstream_error(every: Rig, status: int) -> None:
    talk = every.talk()
    await talk.say("u1", "a1")
    response = await talk.ask(messages("u2"), error_answer(status, "no", "why"))
    assert (response.status_code, response.json()["error"]["code"]) == (status, "why")
    assert await talk.log() == "u1 a1"


async def test_concurrent_exchanges_are_contiguous_and_none_is_lost(every: Rig) -> None:
    talk = every.talk()
    every.up.always(lambda request: answer(names(request.messages).split()[-1].replace("u", "a")))
    await asyncio.gather(*(talk.ask(messages(f"u{n}")) for n in range(1, 9)))
    words = (await talk.log()).split()
    pairs = list(zip(words[::2], words[1::2], strict=True))
    assert sorted(pairs) == [(f"u{n}", f"a{n}") for n in range(1, 9)]


async def test_tool_calls_are_stored_and_sent_back_as_they_were(every: Rig) -> None:
    talk = every.talk()
    calls = [tool_call("f", '{"city": "Oslo \\u00e9"}', "c1"), tool_call("g", "", "c2")]
    calls[1]["extra"] = {"signature": "s"}
    await talk.ask(messages("u1"), json_answer(chat_completion(None, tool_calls=calls)))
    await talk.say("t1:c1 t2:c2", "a2")
    assert every.up.requests[-1].messages[1] == {
        "role": "assistant",
        "content": None,
        "tool_calls": calls,
    }
