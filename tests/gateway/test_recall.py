"""What recall brings into a prompt, and what it never does."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from proxy.memory.model import SessionKey
from proxy.recall.index import Owner
from proxy.tenancy import digest_of
from tests.support.rig import Rig
from tests.support.talk.recalling import index, marker, nobody, somebody, texts, user_said
from tests.support.upstream.answers import chat_completion, json_answer, tool_call
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_what_was_said_in_another_session_is_recalled(every: Rig) -> None:
    person, word = somebody(every), marker()
    await person.tells(f"My boat is called {word}.", "I had soup for lunch.")
    assert f"user: My boat is called {word}." in (await person.asks(f"Who is {word}?"))["recall"]


async def test_what_the_assistant_said_is_recalled(every: Rig) -> None:
    person, word = somebody(every), marker()
    await person.tells("Name my boat.", reply=f"Call the boat {word}!")
    assert f"assistant: Call the boat {word}!" in (await person.asks(f"Why {word}?"))["recall"]


async def test_what_the_assistant_spoke_is_recalled(every: Rig) -> None:
    person, word = somebody(every), marker()
    talk, whole = person.talk(), chat_completion("")
    audio = {"id": "audio_1", "data": "AAAA", "transcript": f"Call the boat {word}!"}
    whole["choices"][0]["message"] |= {"content": None, "audio": audio}
    await talk.ask([user_said("Name my boat.")], json_answer(whole))
    await person.tells("I had soup.", talk=talk)
    assert f"assistant: Call the boat {word}!" in (await person.asks(f"Why {word}?"))["recall"]


async def test_the_proxy_indexes_by_itself_what_it_has_recorded(every: Rig) -> None:
    person, word = somebody(every), marker()
    await person.says(person.talk(), f"My boat is called {word}.")

    async def recalled() -> bool:
        return await person.is_reminded_of(word, x_memory_mode="read")

    await eventually(recalled)


async def test_what_the_window_has_forgotten_is_recalled_in_the_same_session(every: Rig) -> None:
    person, word = nobody(every, **{"x-memory-profile": "brief"}), marker()
    talk = await person.tells(f"My boat is called {word}.", "I had soup.", "And bread.")
    assert await person.is_reminded_of(word, talk)
    assert "this conversation]" in texts(every.up.requests[-1].messages)


# Whose


async def test_another_users_words_are_never_recalled(every: Rig) -> None:
    person, other, word = somebody(every), somebody(every), marker()
    await person.tells(f"My boat is called {word}.")
    assert not await other.is_reminded_of(word)
    assert not await nobody(every).is_reminded_of(word)
    assert await person.is_reminded_of(word)


async def test_another_tenants_words_are_never_recalled_under_the_same_user(every: Rig) -> None:
    person, word = somebody(every), marker()
    talk = await person.tells(f"My boat is called {word}.")
    elsewhere: dict[str, Any] = {"authorization": "Bearer sk-other"}
    for session in (person.talk(), talk):
        assert not await person.is_reminded_of(word, session, **elsewhere)


async def test_without_a_user_only_the_own_session_is_searched(every: Rig) -> None:
    person, word = nobody(every, **{"x-memory-profile": "brief"}), marker()
    await person.tells(f"My boat is called {word}.")
    assert not await person.is_reminded_of(word)


async def test_without_a_user_id_an_owned_session_recalls_its_own_words_alone(every: Rig) -> None:
    person = somebody(every, **{"x-memory-profile": "brief"})
    mine, elsewhere = marker(), marker()
    await person.tells(f"My boat is called {elsewhere}.")
    talk = await person.tells(f"My cat is called {mine}.", "I had soup.", "And bread.")
    unnamed = nobody(every, **{"x-memory-profile": "brief"})
    same = unnamed.talk(talk.session)
    assert await unnamed.is_reminded_of(mine, same)
    assert not await unnamed.is_reminded_of(elsewhere, same)
    assert await person.is_reminded_of(elsewhere, talk)


async def test_a_session_that_gets_an_owner_is_recalled_by_its_owner(every: Rig) -> None:
    person, word = somebody(every), marker()
    talk = await nobody(every).tells(f"My boat is called {word}.")
    assert not await person.is_reminded_of(word)
    await person.tells("It is me.", talk=person.talk(talk.session))
    assert await person.is_reminded_of(word)
    assert not await somebody(every).is_reminded_of(word)


@pytest.mark.parametrize("indexed", [True, False], ids=["has-an-index", "has-nothing"])
async def test_memory_that_moved_to_another_tenant_is_recalled_there_alone(
    every: Rig, indexed: bool
) -> None:
    person, word, key = somebody(every), marker(), marker()
    old, new = digest_of(f"{key}-old".encode()), digest_of(f"{key}-new".encode())
    before: dict[str, Any] = {"authorization": f"Bearer {key}-old"}
    after: dict[str, Any] = {"authorization": f"Bearer {key}-new"}
    await person.says(person.talk(), f"My boat is called {word}.", **before)
    if indexed:
        await person.says(person.talk(), "I had soup.", **after)
    assert not await person.is_reminded_of(word, x_memory_mode="read", **after)

    async def caught_up() -> bool:
        lookup = await every.store.real.lookup(Owner(new, user=str(person.user)), (), 0)  # type: ignore[attr-defined]
        return bool(lookup.revision) is indexed

    await eventually(caught_up)
    assert await every.store.real.move(old, new) == 1

    async def recalled() -> bool:
        return await person.is_reminded_of(word, x_memory_mode="read", **after)

    await eventually(recalled)
    assert not await person.is_reminded_of(word, x_memory_mode="read", **before)


# What is gone


async def test_a_deleted_session_is_not_recalled_by_the_very_next_request(every: Rig) -> None:
    person, word = somebody(every), marker()
    talk = await person.tells(f"My boat is called {word}.")
    assert await person.is_reminded_of(word, x_memory_mode="read")
    deleted = await every.client.delete(
        f"/memory/v1/sessions/{talk.session}", headers=talk.all_headers
    )
    assert deleted.status_code == 200
    assert not await person.is_reminded_of(word)


async def test_a_session_begun_anew_recalls_its_new_words_alone(every: Rig) -> None:
    person, old, new = somebody(every), marker(), marker()
    talk = await person.tells(f"My boat is called {old}.", "I had soup.")
    assert await every.store.real.delete(talk.key)
    await person.tells(f"My cat is called {new}.", talk=talk)
    assert not await person.is_reminded_of(old)
    assert await person.is_reminded_of(new)


async def test_an_expired_session_is_not_recalled(every: Rig) -> None:
    """The server's own clock: of these stores some have no other."""
    person, word = somebody(every), marker()
    talk = person.talk()
    await person.says(talk, f"My boat is called {word}.", x_memory_profile="short-lived")
    await index(every.store.real, talk.key)  # type: ignore[arg-type]

    async def expired() -> bool:
        return await every.store.real.session(talk.key) is None

    await eventually(expired)
    assert not await person.is_reminded_of(word)


async def test_what_a_rewind_drops_is_not_recalled_even_in_that_request(every: Rig) -> None:
    person, word = somebody(every), marker()
    talk = await person.tells("I had soup.", f"My boat is called {word}.")
    assert not await person.is_reminded_of(word, talk, x_memory_rewind="1")
    assert word not in every.up.requests[-1].body.decode().replace(f"What about {word}?", "")
    assert not await person.is_reminded_of(word)


async def test_what_an_edit_replaces_is_not_recalled_even_in_that_request(every: Rig) -> None:
    person, word = somebody(every), marker()
    talk = await person.tells("I had soup.", f"My boat is called {word}.")
    edited = [user_said("I had soup."), {"role": "assistant", "content": "Noted."}]
    asked = [*edited, user_said(f"My boat is not called {word}, or is it?")]
    assert word not in str(await person.asks(asked, talk))
    await index(every.store.real, talk.key)  # type: ignore[arg-type]
    found = await person.asks(f"What about {word}?")
    assert f"My boat is not called {word}" in found["recall"]
    assert f"My boat is called {word}" not in found["recall"]


async def test_a_regenerated_answer_is_not_recalled(every: Rig) -> None:
    person, word = somebody(every), marker()
    talk = await person.tells("Name my boat.", reply=f"Call the boat {word}!")
    await person.asks([user_said("Name my boat.")], talk, x_memory_history="full")
    await index(every.store.real, talk.key)  # type: ignore[arg-type]
    assert not await person.is_reminded_of(word)


async def test_a_retry_does_not_recall_the_attempt_that_it_replaces(every: Rig) -> None:
    person, word = somebody(every, **{"x-memory-profile": "blind"}), marker()
    talk = person.talk()
    once: dict[str, Any] = {"idempotency_key": "once"}
    await person.says(talk, "Name my boat.", f"Call the boat {word}!", **once)
    await index(every.store.real, talk.key)  # type: ignore[arg-type]
    assert await person.is_reminded_of(word, x_memory_mode="read")
    assert not await person.is_reminded_of(word, talk, **once)
    await index(every.store.real, talk.key)  # type: ignore[arg-type]
    assert not await person.is_reminded_of(word)


# What is there already, and what is nobody's memory


async def test_what_the_window_shows_is_not_recalled(every: Rig) -> None:
    person, word = somebody(every), marker()
    talk = await person.tells(f"My boat is called {word}.")
    assert not await person.is_reminded_of(word, talk)
    assert f"My boat is called {word}." in texts(every.up.requests[-1].messages)


async def test_what_the_client_sends_itself_is_not_recalled(one: Rig) -> None:
    person, word = somebody(one), marker()
    await person.tells(f"My boat is called {word}.")
    own = [user_said(f" My boat is called {word}. "), {"role": "assistant", "content": "Fine!"}]
    assert word not in str(await person.asks([*own, user_said(f"What about {word}?")]))
    assert word in str(await person.asks([*own[1:], user_said(f"What about {word}?")]))


async def test_system_and_tool_messages_and_calls_are_never_recalled(every: Rig) -> None:
    person, word = somebody(every), marker()
    talk = person.talk()
    call = tool_call("find", f'{{"name":"{word}-call"}}', "c1")
    every.up.reply(json_answer(chat_completion(None, tool_calls=[call])))
    said = [
        {"role": "system", "content": f"Say {word}-system."},
        {"role": "developer", "content": f"Say {word}-developer."},
        user_said("Find my boat."),
    ]
    assert (await talk.ask(said)).status_code == 200
    results = [{"role": "tool", "tool_call_id": "c1", "content": f"It is {word}-tool"}]
    await person.says(talk, results, reply=f"It is {word}-answer.")
    await index(every.store.real, talk.key)  # type: ignore[arg-type]
    found = await person.asks(f"What about {word}-answer, {word}-tool, {word}-system, {word}?")
    assert f"{word}-answer" in found["recall"]
    for never in ("tool", "system", "developer", "call"):
        assert f"{word}-{never}" not in found["recall"]


@pytest.mark.parametrize("text", ["thanks!", "ok", "hello", "谢谢!", "👍", "?"])
async def test_small_talk_recalls_nothing(one: Rig, text: str) -> None:
    person = somebody(one)
    await person.tells("Thanks a lot, ok, hello, 谢谢!", "My boat is red.")
    assert await person.asks(text) == {}


async def test_side_requests_recall_nothing(one: Rig) -> None:
    person, word = somebody(one), marker()
    await person.tells(f"My boat is called {word}.")
    sent = f"### Task: write a title about {word}"
    response = await person.says(person.talk(), sent)
    assert response.headers["x-memory-recalled"] == "0"
    assert one.up.requests[-1].messages == [user_said(sent)]


async def test_people_who_talk_at_once_recall_their_own(every: Rig) -> None:
    people = [(somebody(every), marker()) for _ in range(8)]
    await asyncio.gather(*(p.tells(f"My boat is called {word}.") for p, word in people))
    for person, word in people:
        recalled = (await person.asks("What is my boat called?"))["recall"]
        assert word in recalled
        assert not [other for _, other in people if other != word and other in recalled]


async def test_the_index_of_a_session_is_its_own_however_users_are_named(one: Rig) -> None:
    """A user named like a session is not that session."""
    word = marker()
    talk = await nobody(one).tells(f"My boat is called {word}.")
    namesake = somebody(one)
    namesake.user = talk.session
    assert not await namesake.is_reminded_of(word)
    assert await one.store.real.session(SessionKey(talk.key.tenant, talk.session)) is not None
