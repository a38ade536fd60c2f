"""Why the model got what it got: each exchange says, piece by piece, what memory put into its
prompt, so that the prompt can be made again from it, and from nothing else."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from proxy.chat.blocks import without_blocks
from proxy.memory.model import SessionKey
from proxy.recall.results import GAP
from tests.support.rig import Rig, Talk, rig
from tests.support.store.places import IN_GROUPS, Places
from tests.support.talk.recalling import Json, blocks_in, index, marker, somebody, user_said
from tests.support.upstream.answers import (
    Script,
    chat_completion,
    error_answer,
    json_answer,
    tool_call,
)
from tests.support.upstream.scribing import (
    PROMPT,
    SCRIBE,
    Scribe,
    all_done,
    chats,
    says,
    summarised,
)
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

TOO_LONG = error_answer(
    400, "This model's maximum context length is 100 tokens.", "context_length_exceeded"
)
LEARNED = {"enabled": True, "model": "writer"}
SUMMARY = {"enabled": True, "model": SCRIBE, "prompt": PROMPT, "max_tokens": 300}
PROFILES = {
    "whole": {"window": "all"},
    "apart": {"window": "message_window", "max_messages": 6, "block_placement": "separate"},
    "few": {"window": "message_window", "max_messages": 4, "evict_to": 1.0},
    "loose": {"window": "message_window", "max_messages": 3, "start_on_user": False},
    "blind": {"window": "none"},
    "narrow": {"max_tokens": 400, "recall": {"max_tokens": 150}},
    "brief": {"window": "all", "why": 3},
    "silent": {"window": "all", "why": 0},
    "knowing": {
        "facts": {**LEARNED, "after_turns": 1000},
        "profile": {**LEARNED, "after_turns": 1000},
        "instructions": {**LEARNED, "application": "shop"},
    },
    "telling": {"max_tokens": 600, "recall": {"enabled": False}, "summary": SUMMARY},
}
RANDOM = ("", "whole", "apart", "few", "loose", "blind", "narrow")
TOPICS = ("boat", "garden", "piano")


@pytest_asyncio.fixture(
    scope="module",
    loop_scope="session",
    params=IN_GROUPS,
)
async def explaining(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Rig]:
    folder: Path = tmp_path_factory.mktemp("explaining")
    with ExitStack() as started:
        url = Places(started).of(str(request.param), folder).url
        async with rig(folder, store__url=url, profiles=PROFILES) as ready:
            yield ready


@pytest.fixture
def every(explaining: Rig) -> Rig:
    """A proxy on each of the stores in turn, with nothing scripted."""
    explaining.reset()
    return explaining


async def why(talk: Talk, response: httpx.Response) -> Json:
    """What memory did for an exchange, as the API says it."""
    id = response.headers["x-memory-exchange-id"]
    url = f"/memory/v1/sessions/{talk.session}/exchanges/{id}"
    answer = await talk.rig.client.get(url, headers=talk.all_headers)
    assert answer.status_code == 200, answer.text
    memory: Json = answer.json()["memory"]
    return memory


def of_kind(shown: Sequence[Json], *kinds: str) -> list[Json]:
    return [piece for piece in shown if piece["kind"] in kinds]


def kinds(shown: Sequence[Json]) -> list[str]:
    return [piece["kind"] for piece in shown]


async def bodies(talk: Talk, shown: Sequence[Json]) -> list[Json]:
    """The messages that pieces mean, fetched by their ids."""
    found: list[Json] = []
    for piece in shown:
        key = SessionKey(talk.key.tenant, piece["session_id"])
        texts = await talk.rig.store.real.bodies(key, [piece["id"]])
        found += [json.loads(text) for text in texts.values()]
    return found


def bare(message: Json) -> Json | None:
    """A message as it was without blocks; None if it was nothing else."""
    left: Json = json.loads(without_blocks(json.dumps(message).encode()))
    if left["role"] != "system" or left == message:
        return left
    left["content"] = left["content"].rstrip("\n")  # a block behind it has stood apart
    return left if left["content"] else None


async def explains(talk: Talk, sent: Sequence[Json], response: httpx.Response) -> Json:
    """What the upstream got is what is shown, with what was sent and the frames of blocks."""
    memory, got = await why(talk, response), talk.rig.up.requests[-1].messages
    shown = memory["shown"]
    assert memory["shown_cut"] == 0
    rest = [m for m in map(bare, got) if m is not None and m not in sent]
    if of_kind(shown, "system"):
        session = await talk.rig.store.real.session(talk.key)
        assert session is not None
        assert [rest.pop(0)] == json.loads(session.details.system or b"[]")
    assert rest == await bodies(talk, of_kind(shown, "message"))
    assert order_of(shown) == order_in(got, sent, system=bool(of_kind(shown, "system")))
    await blocks_agree(talk, shown, blocks_in(got))
    numbers_agree(memory, response)
    assert text_free(memory)
    return memory


async def blocks_agree(talk: Talk, shown: Sequence[Json], blocks: dict[str, str]) -> None:
    """Each block says what its pieces do, in their order."""
    passages = await bodies(talk, of_kind(shown, "passage"))
    lines = [f"{m['role']}: {m['content']}" for m in passages]
    recalled = blocks.get("recall", "")
    said = [line for line in recalled.splitlines() if not line.startswith("[") and line != GAP]
    assert said == lines
    wishes = await bodies(talk, of_kind(shown, "instruction", "preference"))
    assert blocks.get("wishes", "").splitlines() == [f"- {m['content']}" for m in wishes]
    assert len(of_kind(shown, "summary")) == ("summary" in blocks)


IN_BLOCKS = {"passage": "recall", "instruction": "wishes", "preference": "wishes"}
"""In which block a piece stands that is not called as its block is."""


def order_of(shown: Sequence[Json]) -> list[str]:
    """What stands behind what: messages one by one, and blocks."""
    parts = [IN_BLOCKS.get(kind, kind) for kind in kinds(shown)]
    return [
        part
        for n, part in enumerate(parts)
        if part in ("message", "system") or parts[n - 1 : n] != [part]
    ]


def order_in(got: Sequence[Json], sent: Sequence[Json], *, system: bool) -> list[str]:
    """The same of what the upstream got; ``system``: the first message is a remembered one."""
    parts: list[str] = []
    for n, message in enumerate(got):
        left, blocks = bare(message), list(blocks_in([message]))
        if message["role"] == "system":
            parts += ["system", *blocks] if system and not n else blocks
        else:
            parts += blocks if left in sent else [*blocks, "message"]
    return parts


def numbers_agree(memory: Json, response: httpx.Response) -> None:
    """The headers, the record and its pieces say the same."""
    headers, shown, spent = response.headers, memory["shown"], memory["breakdown"]
    messages = of_kind(shown, "message")
    others = [piece for piece in shown if piece["kind"] not in ("message", "system", "summary")]
    assert int(headers["x-memory-messages"]) == memory["messages"] == len(messages)
    assert int(headers["x-memory-tokens"]) == memory["tokens"] == sum(spent.values())
    assert int(headers["x-memory-recalled"]) == len(memory["recalled"]) == len(others)
    assert spent["messages"] == sum(piece["tokens"] for piece in messages)
    assert spent["system"] == sum(piece["tokens"] for piece in of_kind(shown, "system"))
    assert spent["summary"] == sum(piece["tokens"] for piece in of_kind(shown, "summary"))
    assert (memory["evicted"]["reason"] is None) == (memory["evicted"]["messages"] == 0)
    assert headers["x-memory-status"] == memory["status"]


def text_free(memory: Json) -> bool:
    """No word of what was said is in the record."""
    return not any(topic in json.dumps(memory) for topic in TOPICS)


# Whatever is said


@dataclass
class Client:
    """Talks at random in two sessions of one person; ``said`` is what each client remembers."""

    rig: Rig
    chance: random.Random
    said: dict[str, list[Json]] = field(default_factory=dict)
    waiting: dict[str, str] = field(default_factory=dict)
    count: int = 0

    def text(self) -> str:
        """Words that have not been said before."""
        self.count += 1
        topic = self.chance.choice(TOPICS)
        size = self.chance.choice((2, 8, 30))
        wish = "Always answer me in rhymes, " if self.chance.random() < 0.1 else ""
        return f"{wish}my {topic} n{self.count}{marker()} is {'very ' * size}nice"

    async def step(self, talk: Talk) -> None:
        """One exchange, of whatever kind, and its explanation."""
        sent = self.sent(talk.session)
        calls = self.chance.random() < 0.2
        refused = [TOO_LONG] * self.chance.choice((0, 0, 0, 1, 2))
        answer, script = self.answered(calls=calls)
        self.rig.up.requests.clear()
        self.rig.up.reply(*refused, script)
        response = await talk.ask(sent, **self.headers())
        if response.status_code == 400:  # there was nothing to leave out
            self.rig.up.forget()
            gone = self.said[talk.session].pop()
            self.waiting[talk.session] = gone.get("tool_call_id", "")
            return
        assert response.status_code == 200, response.text
        assert not self.rig.up.refused
        memory = await explains(talk, sent, response)
        self.said[talk.session].append(answer)
        self.waiting[talk.session] = answer["tool_calls"][0]["id"] if calls else ""
        assert memory["status"] in ("applied", "empty")

    def sent(self, session: str) -> list[Json]:
        """The messages of a request: only what is new, or more of what was said."""
        said = self.said.setdefault(session, [])
        call = self.waiting.pop(session, "")
        said.append(
            {"role": "tool", "tool_call_id": call, "content": self.text()}
            if call
            else user_said(self.text())
        )
        sent = said[:] if self.chance.random() < 0.3 else said[-1:]
        if self.chance.random() < 0.3:
            sent = [{"role": "system", "content": self.text()}, *sent]
        return sent

    def answered(self, *, calls: bool) -> tuple[Json, Script]:
        """What the upstream says."""
        if not calls:
            text = self.text()
            return {"role": "assistant", "content": text}, json_answer(chat_completion(text))
        call = tool_call("look", json.dumps({"n": self.count}), f"call_{marker()}")
        said: Json = {"role": "assistant", "content": None, "tool_calls": [call]}
        return said, json_answer(chat_completion(None, tool_calls=[call]))

    def headers(self) -> dict[str, Any]:
        headers = {"x_memory_profile": self.chance.choice(RANDOM)}
        if self.chance.random() < 0.3:
            headers["x_memory_max_tokens"] = str(self.chance.choice((0, 30, 200, 2000)))
        return {name: value for name, value in headers.items() if value}


@pytest.mark.parametrize("seed", range(6))
async def test_the_prompt_can_be_made_again_from_what_is_shown(every: Rig, seed: int) -> None:
    client, person = Client(every, random.Random(seed)), somebody(every)
    talks = [person.talk(), person.talk()]
    for _ in range(20):
        talk = client.chance.choice(talks)
        await client.step(talk)
        await index(every.store.real, talk.key)  # type: ignore[arg-type]


async def test_what_is_known_is_shown_by_its_ids(every: Rig) -> None:
    person = somebody(every, **{"x-memory-profile": "knowing"})
    talk = person.talk()
    headers, base = talk.all_headers, "/memory/v1"
    users = f"{base}/users/{person.user}"
    texts = [f"Kai has a boat called {marker()}.", f"Kai sails to {marker()}."]
    for text in texts:
        added = await every.client.post(f"{users}/memories", json={"text": text}, headers=headers)
        assert added.status_code == 201, added.text
    for path, change in ((f"{users}/profile", {"city": "Bonn"}),):
        assert (await every.client.patch(path, json=change, headers=headers)).status_code == 200
    told = {"text": "Be polite."}
    put = await every.client.put(f"{base}/instructions/shop", json=told, headers=headers)
    assert put.status_code == 200, put.text
    await person.says(talk, "Hello there.")
    response = await person.says(talk, "And my boat?")
    memory = await why(talk, response)
    got = every.up.requests[-1].messages
    assert list(blocks_in(got)) == ["instructions", "profile", "facts"]
    assert kinds(memory["shown"]) == [
        "instructions",
        "message",
        "message",
        "profile",
        "fact",
        "fact",
    ]
    numbers_agree(memory, response)
    found = [
        (await every.client.get(f"{users}/memories/{piece['id']}", headers=headers)).json()["text"]
        for piece in of_kind(memory["shown"], "fact")
    ]
    lines = blocks_in(got)["facts"]
    assert sorted(found) == sorted(texts) and all(text in lines for text in texts)
    assert [lines.index(text) for text in found] == sorted(lines.index(text) for text in found)
    assert memory["breakdown"]["known"] > 0 and memory["breakdown"]["recalled"] == 0


# What is left out, and why


async def turns(talk: Talk, count: int, **headers: Any) -> list[httpx.Response]:
    """So many turns of about 30 tokens each."""
    return [
        await talk.ask([user_said(f"u{n} {marker()} " + "word " * 10)], **headers)
        for n in range(count)
    ]


async def test_nothing_is_left_out_without_a_reason(every: Rig) -> None:
    talk = every.talk()
    first, second = await turns(talk, 2, x_memory_profile="whole")
    assert (await why(talk, first))["evicted"] == {"messages": 0, "tokens": 0, "reason": None}
    assert (await why(talk, second))["evicted"] == {"messages": 0, "tokens": 0, "reason": None}


async def test_a_window_leaves_out_what_is_older(every: Rig) -> None:
    talk = every.talk()
    *_, last = await turns(talk, 4, x_memory_profile="few")
    memory = await why(talk, last)
    assert (memory["messages"], memory["evicted"]["messages"]) == (4, 2)
    assert memory["evicted"]["reason"] == "window"


async def test_a_window_of_nothing_leaves_everything_out(every: Rig) -> None:
    talk = every.talk()
    *_, last = await turns(talk, 2, x_memory_profile="blind")
    memory = await why(talk, last)
    assert (of_kind(memory["shown"], "message"), memory["evicted"]["reason"]) == ([], "window")


async def test_a_header_leaves_out_what_is_more(every: Rig) -> None:
    talk = every.talk()
    await turns(talk, 4, x_memory_profile="whole")
    (capped,) = await turns(talk, 1, x_memory_profile="whole", x_memory_max_tokens="60")
    memory = await why(talk, capped)
    assert 0 < memory["messages"] < 8 and memory["tokens"] <= 60
    assert memory["evicted"]["reason"] == "max_tokens_header"
    (free,) = await turns(talk, 1, x_memory_profile="whole")
    assert (await why(talk, free))["evicted"]["reason"] is None


@pytest.mark.parametrize("refusals", [1, 2])
async def test_what_was_too_long_is_not_said_to_be_shown(every: Rig, refusals: int) -> None:
    talk = every.talk()
    await turns(talk, 4, x_memory_profile="whole")
    every.up.reply(*[TOO_LONG] * refusals)
    sent = [user_said("And now?")]
    memory = await explains(talk, sent, await talk.ask(sent, x_memory_profile="whole"))
    assert memory["evicted"]["reason"] == "context_length"
    assert memory["reason"] == "context_trimmed"
    assert memory["messages"] in ((2, 4) if refusals == 1 else (0,))


async def test_a_summary_is_shown_by_its_version_in_place_of_what_it_covers(every: Rig) -> None:
    Scribe(every.up)
    talk = every.talk(**{"x-memory-profile": "telling"})
    for number in range(24):
        await says(talk, number)
    await summarised(talk, 1)
    await all_done(talk)
    session = await talk.rig.store.real.session(talk.key)
    assert session is not None and session.summary is not None
    sent = [user_said("[24] and what now?")]
    every.up.requests.clear()
    response = await talk.ask(sent)
    every.up.requests[:] = chats(every.up)
    memory = await explains(talk, sent, response)
    assert kinds(memory["shown"])[0] == "summary" and len(memory["shown"]) > 2
    assert memory["shown"][0]["version"] == session.summary.version
    assert memory["evicted"]["reason"] == "summary"


# What the client itself brought once more


async def resends(talk: Talk, said: list[Json], **headers: Any) -> Json:
    """Ask with all of this; the answer is added to it, and what memory did is told."""
    response = await talk.ask(said, **headers)
    said.append(response.json()["choices"][0]["message"])
    return await why(talk, response)


async def test_a_client_that_resends_its_conversation_is_said_to_have_brought_it(
    every: Rig,
) -> None:
    talk, said = every.talk(), list[Json]()
    for number in range(5):
        said.append(user_said(f"[{number}] and then?"))
        memory = await resends(talk, said, x_memory_profile="few")
    assert memory["resent"] == [{"first": 1, "last": 8}]
    assert memory["shown"] == []
    assert memory["evicted"]["messages"] == 0, "what the client brings is not left out"


async def test_what_was_superseded_was_not_brought_again(every: Rig) -> None:
    talk, said = every.talk(), [user_said("One.")]
    await resends(talk, said)
    await resends(talk, [*said, user_said("Two?")])
    said.append(user_said("Two, edited."))
    await resends(talk, said)
    said.append(user_said("Three."))
    memory = await resends(talk, said)
    assert memory["resent"] == [{"first": 1, "last": 2}, {"first": 5, "last": 6}]


async def test_of_a_window_of_its_own_the_rest_is_injected_or_left_out(every: Rig) -> None:
    talk, said = every.talk(), list[Json]()
    for number in range(4):
        said.append(user_said(f"[{number}] and then?"))
        await resends(talk, said, x_memory_profile="whole")
    rest = [*said[4:], user_said("What now?")]
    memory = await resends(talk, rest, x_memory_profile="whole")
    assert memory["resent"] == [{"first": 5, "last": 8}]
    assert kinds(memory["shown"]) == ["message"] * 4
    rest.append(user_said("And then?"))
    memory = await resends(talk, rest, x_memory_profile="blind")
    assert memory["resent"] == [{"first": 5, "last": 10}]
    assert "message" not in kinds(memory["shown"])
    assert memory["evicted"]["messages"] == 4


async def test_only_new_messages_were_not_brought_before(every: Rig) -> None:
    talk = every.talk()
    *_, last = await turns(talk, 3)
    assert (await why(talk, last))["resent"] == []


async def test_of_many_stretches_the_newest_are_noted(every: Rig) -> None:
    talk, said = every.talk(), list[Json]()
    for number in range(5):
        said.append(user_said(f"[{number}] and then?"))
        await resends(talk, [*said[:-1], user_said(f"[{number}] or what?")])
        memory = await resends(talk, said, x_memory_profile="brief")
    assert len(memory["resent"]) == 3
    assert memory["resent"][-1]["last"] == 16


# How much is noted


async def test_no_more_is_noted_than_the_profile_says(every: Rig) -> None:
    talk = every.talk()
    await talk.ask([{"role": "system", "content": "Be brief."}, user_said("Hello.")])
    await turns(talk, 2, x_memory_profile="brief")
    (last,) = await turns(talk, 1, x_memory_profile="brief")
    memory = await why(talk, last)
    assert (memory["messages"], memory["shown_cut"]) == (6, 4)
    assert kinds(memory["shown"]) == ["system", "message", "message"]
    assert [piece["id"].endswith((".0", ".1")) for piece in memory["shown"][1:]] == [True, True]
    assert sum(memory["breakdown"].values()) == memory["tokens"]


async def test_a_profile_may_have_nothing_noted(every: Rig) -> None:
    talk = every.talk()
    *_, last = await turns(talk, 3, x_memory_profile="silent")
    memory = await why(talk, last)
    assert (memory["messages"], memory["shown"], memory["shown_cut"]) == (4, [], 4)
    assert memory["breakdown"]["messages"] == memory["tokens"]


async def test_what_was_deleted_cannot_be_found_by_what_was_shown(every: Rig) -> None:
    person, word = somebody(every), marker()
    told = await person.tells(f"My boat {word} has two masts of old spruce.")
    talk = person.talk()
    sent = [user_said(f"What of {word}?")]
    response = await person.says(talk, sent)
    memory = await explains(talk, sent, response)
    assert set(kinds(memory["shown"])) == {"passage"}
    gone = f"/memory/v1/sessions/{told.session}"
    deleted = await every.client.delete(gone, headers=talk.all_headers)
    assert deleted.status_code == 200, deleted.text
    again = await why(talk, response)
    assert again == memory and await bodies(talk, again["shown"]) == []
    assert word not in json.dumps(again)


async def test_without_memory_nothing_was_shown_and_the_reason_says_why(every: Rig) -> None:
    talk = every.talk()
    await turns(talk, 2)
    with every.store_away():
        (response,) = await turns(talk, 1)
    assert response.headers["x-memory-status"] == "degraded"

    async def replayed() -> bool:
        exchange = response.headers["x-memory-exchange-id"]
        return await every.store.real.exchange(talk.key, exchange) is not None

    await eventually(replayed)
    memory = await why(talk, response)
    assert (memory["status"], memory["reason"]) == ("degraded", "store_timeout")
    assert (memory["shown"], memory["shown_cut"], memory["breakdown"]) == ([], 0, None)
    assert memory["evicted"] == {"messages": 0, "tokens": 0, "reason": None}
