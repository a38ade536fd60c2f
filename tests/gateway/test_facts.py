"""Facts about users, from the socket to the store and into the prompts of other sessions."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from proxy.background.completion import Assignment
from tests.support.learning.harness import LIVES, ScriptedModel, messages_in, states
from tests.support.rig import KEY, Rig, Talk, rig
from tests.support.store.places import IN_GROUPS, Places
from tests.support.talk.recalling import blocks_in
from tests.support.upstream.answers import Script, chat_completion, json_answer
from tests.support.upstream.connection import Request
from tests.support.upstream.scribing import nothing_waits
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

WRITER = "writer"
LIKES = states(r"I like (\w+)", "The user likes {}.")
FRIEND = states(r"my friend (\w+) dislikes (\w+)", "{0} dislikes {1}.", about="{0}, a friend")

PROFILES = {
    "shy": {"facts": {"enabled": False}},
    "apart": {"block_placement": "separate"},
    "tight": {"facts": {"max_tokens": 5}},
}


@pytest_asyncio.fixture(
    scope="module",
    loop_scope="session",
    params=IN_GROUPS,
)
async def learning(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Rig]:
    folder: Path = tmp_path_factory.mktemp("learning")
    facts = {"enabled": True, "model": WRITER, "after_turns": 1}
    with ExitStack() as started:
        url = Places(started).of(str(request.param), folder).url
        async with rig(
            folder,
            store__url=url,
            profiles=PROFILES,
            memory__facts=facts,
            memory__recall__enabled=False,
        ) as ready:
            yield ready


class Class:
    """A proxy whose upstream also learns, by plain rules; people whom nobody else knows."""

    def __init__(self, rig: Rig) -> None:
        self.rig, self.model = rig, ScriptedModel([LIVES, LIKES, FRIEND])
        self.asked: list[Request] = []
        rig.up.always(self._answer)

    def _answer(self, request: Request) -> Script:
        if request.json["model"] != WRITER:
            return json_answer(chat_completion(self.echo(request)))
        self.asked.append(request)
        text = request.messages[0]["content"]
        return json_answer(chat_completion(self.model._by_rules(Assignment("t", "facts", text))))

    def echo(self, request: Request) -> str:
        """A model that repeats what memory tells it."""
        return f"I know: {blocks_in(request.messages).get('facts', 'nothing')}"

    def somebody(self) -> str:
        return f"user-{uuid.uuid4().hex}"

    async def hears(self, user: str, text: str, talk: Talk | None = None, **headers: Any) -> Talk:
        """Somebody says something, and what there is to learn from it is learned."""
        talk = talk or self.rig.talk(**{"x-user-id": user})
        response = await talk.ask([{"role": "user", "content": text}], **headers)
        assert response.status_code == 200, response.text
        await nothing_waits(self.rig.store, talk.session)
        return talk

    def prompt(self) -> dict[str, str]:
        """The blocks of memory in the last chat."""
        chats = [request for request in self.rig.up.requests if request.json["model"] != WRITER]
        return blocks_in(chats[-1].messages)

    async def facts(self, user: str, **query: str) -> list[dict[str, Any]]:
        path = f"/memory/v1/users/{user}/memories"
        query = {"kind": "fact", **query}
        response = await self.rig.client.get(path, params=query, headers=HEADERS)
        assert response.status_code == 200, response.text
        found: list[dict[str, Any]] = response.json()["data"]
        return found


HEADERS = {"authorization": f"Bearer {KEY}"}


@pytest_asyncio.fixture(loop_scope="session")
async def school(learning: Rig) -> AsyncIterator[Class]:
    learning.reset()
    yield Class(learning)
    await nothing_waits(learning.store)


async def test_what_is_said_in_one_session_is_known_in_another_and_the_record_says_why(
    school: Class,
) -> None:
    kai = school.somebody()
    first = await school.hears(kai, "I live in Kyoto and I like tea.")
    second = school.rig.talk(**{"x-user-id": kai})
    response = await second.ask([{"role": "user", "content": "Where is my home?"}])
    lines = school.prompt()["facts"].splitlines()
    assert {line.rpartition(" (")[0] for line in lines} == {
        "- The user lives in Kyoto.",
        "- The user likes tea.",
    }
    assert response.headers["x-memory-status"] == "applied"
    assert response.headers["x-memory-recalled"] == "2"
    facts = await school.facts(kai)
    exchange = response.headers["x-memory-exchange-id"]
    path = f"/memory/v1/sessions/{second.session}/exchanges/{exchange}"
    why = (await school.rig.client.get(path, headers=HEADERS)).json()["memory"]["recalled"]
    assert {one["memory_id"] for one in why} == {fact["id"] for fact in facts}
    (source,) = facts[0]["sources"]
    assert source["session_id"] == first.session
    assert "Kyoto" not in str(why)


async def test_nobody_else_is_told(school: Class) -> None:
    kai, mia = school.somebody(), school.somebody()
    await school.hears(kai, "I live in Kyoto.")
    await school.hears(mia, "Where do I live?")
    assert school.prompt() == {}
    await school.rig.talk(**{"x-user-id": kai, "authorization": "Bearer another"}).ask(
        [{"role": "user", "content": "Where do I live?"}]
    )
    assert school.prompt() == {}
    await school.rig.talk().ask([{"role": "user", "content": "Where do I live?"}])
    assert school.prompt() == {}


async def test_fifty_turns_in_which_the_model_echoes_memory_add_no_fact(school: Class) -> None:
    kai = school.somebody()
    talk = await school.hears(kai, "I live in Kyoto.")
    for number in range(50):
        await school.hears(kai, f"And what else, for the {number}th time?", talk)
    answers = [message.wire for message in await talk.history() if message.card.role != "user"]
    assert sum(b"The user lives in Kyoto" in answer for answer in answers) >= 49
    assert len(await school.facts(kai, state="current,superseded,quarantined")) == 1


async def test_a_contradiction_supersedes(school: Class) -> None:
    kai = school.somebody()
    await school.hears(kai, "I live in Kyoto.")
    await school.hears(kai, "I moved to Osaka.")
    await school.hears(kai, "So?")
    assert "Osaka" in school.prompt()["facts"] and "Kyoto" not in school.prompt()["facts"]
    (now,) = await school.facts(kai)
    (old,) = await school.facts(kai, state="superseded")
    assert old["superseded_by"] == now["id"]


async def test_what_a_friend_dislikes_is_told_of_the_friend_alone(school: Class) -> None:
    kai = school.somebody()
    await school.hears(kai, "my friend Jack dislikes football")
    (fact,) = await school.facts(kai)
    assert fact["about"] == "Jack, a friend"
    await school.hears(kai, "What sport suits me?")
    assert school.prompt() == {}
    await school.hears(kai, "Shall I give Jack a football?")
    assert "Jack" in school.prompt()["facts"]


async def test_an_imported_conversation_of_2023_is_learned_from_as_of_2023(school: Class) -> None:
    kai = school.somebody()
    session = f"session-{uuid.uuid4().hex}"
    body = {
        "messages": [{"role": "user", "content": "I live in Kyoto since yesterday."}],
        "created_at": [1_683_554_160],
        "user": kai,
    }
    path = f"/memory/v1/sessions/{session}/messages"
    response = await school.rig.client.post(path, json=body, headers=HEADERS)
    assert response.status_code == 200, response.text
    await school.hears(school.somebody(), "My key is known now.")

    async def learned() -> bool:
        return bool(await school.facts(kai))

    await eventually(learned)
    (fact,) = await school.facts(kai)
    assert fact["valid_from"] == 1_683_554_160
    dates = [heard.date for r in school.asked for heard in messages_in(r.messages[0]["content"])]
    assert "2023-05-08" in dates
    await school.hears(kai, "Where?")
    assert school.prompt()["facts"].endswith("(noted 2023-05-08)")


async def test_forgotten_is_forgotten_at_once_and_not_learned_again(school: Class) -> None:
    kai = school.somebody()
    talk = await school.hears(kai, "I live in Kyoto.")
    await school.hears(kai, "I like tea.")
    path = f"/memory/v1/sessions/{talk.session}/forget"
    receipt = (await school.rig.client.post(path, json={}, headers=HEADERS)).json()
    assert [(one["kind"], one["action"]) for one in receipt["data"]] == [("fact", "deleted")]
    await school.hears(kai, "And now?", talk)
    assert "Kyoto" not in school.prompt()["facts"] and "tea" in school.prompt()["facts"]
    assert len(await school.facts(kai)) == 1


async def test_a_fact_that_is_edited_or_deleted_by_hand_is_so_in_the_next_prompt(
    school: Class,
) -> None:
    kai = school.somebody()
    await school.hears(kai, "I live in Kyoto.")
    (fact,) = await school.facts(kai)
    path = f"/memory/v1/users/{kai}/memories/{fact['id']}"
    edit = {"text": "The user lives in Nara."}
    assert (await school.rig.client.patch(path, json=edit, headers=HEADERS)).status_code == 200
    await school.hears(kai, "Where?")
    assert "Nara" in school.prompt()["facts"]
    assert (await school.rig.client.delete(path, headers=HEADERS)).status_code == 200
    await school.hears(kai, "Where?")
    assert school.prompt() == {}


async def test_profiles_and_modes_say_who_learns_and_what_goes_in(school: Class) -> None:
    kai = school.somebody()
    await school.hears(kai, "I live in Kyoto.", x_memory_profile="shy")
    await school.hears(kai, "I live in Kyoto.", x_memory_mode="read")
    assert not school.asked
    await school.hears(kai, "I live in Kyoto.")
    await school.hears(kai, "Where?", x_memory_profile="shy")
    assert school.prompt() == {}
    await school.hears(kai, "Where?", x_memory_profile="tight")
    assert school.prompt() == {}
    await school.hears(kai, "Where?", x_memory_mode="write")
    assert school.prompt() == {}
    await school.hears(kai, "Where?", x_memory_max_tokens="5")
    assert school.prompt() == {}
    await school.hears(kai, "Where?", x_memory_profile="apart")
    chats = [request for request in school.rig.up.requests if request.json["model"] != WRITER]
    assert [message["role"] for message in chats[-1].messages] == ["system", "user"]


async def test_the_request_is_minimal_and_shows_nothing_but_what_the_user_wrote(
    school: Class,
) -> None:
    kai = school.somebody()
    talk = school.rig.talk(**{"x-user-id": kai})
    await talk.ask(
        [
            {"role": "system", "content": "SECRET-OF-THE-APP"},
            {"role": "user", "content": "I live in Kyoto."},
        ]
    )
    await nothing_waits(school.rig.store, talk.session)
    (request,) = school.asked
    assert set(request.json) == {"model", "messages", "response_format"}
    assert request.header("authorization") == f"Bearer {KEY}"
    text = request.messages[0]["content"]
    assert "SECRET-OF-THE-APP" not in text and "I know: nothing" not in text
    await school.hears(kai, "Thanks.", talk)
    assert "<memory" not in school.asked[-1].messages[0]["content"]
