"""People who tell a proxy things, and what it recalls when they ask."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from proxy.chat.message import typed_text_of
from proxy.memory.model import SessionKey
from proxy.recall.indexing.indexer import Indexer
from proxy.stores.open import Backend
from tests.support.rig import Rig, Talk
from tests.support.upstream.answers import chat_completion, json_answer

Json = dict[str, Any]

REPLY = "Noted."
"""What the upstream says: nothing that could be recalled in place of what people said."""

BLOCK = re.compile(
    r'<memory version="1" kind="(?P<kind>\w+)">\n(?P<note>.*)\n(?P<lines>(?s:.*?))\n</memory>'
)


PROFILES = {
    "apart": {"block_placement": "separate"},
    "narrow": {"max_tokens": 600},
    "little": {"recall": {"max_tokens": 120}},
    "forgets": {"recall": {"enabled": False}},
    "telling": {"recall_in_instructions": True},
    "listener": {"recall": {"roles": ["user"]}},
    "homely": {
        "window": "message_window",
        "max_messages": 2,
        "evict_to": 1.0,
        "recall": {"scope": "session"},
    },
}
"""Profiles of the proxies that tests of recall share."""

THINGS = [
    "two masts of spruce that my grandfather planted behind the church in spring",
    "a galley where Maria cooks lentils whenever rain keeps everybody below deck",
    "three anchors, one of which lies lost under black rocks near Marseille",
    "an old diesel engine bought from some fisherman who had moved into town",
    "oars for calm mornings, painted green during our long winter ashore",
    "brass bells, given by cousins after they won that regatta against Dutch crews",
    "flags of eleven countries, sewn together from shirts and tablecloths",
    "lamps burning oil because electric light attracts too many insects at night",
]


def user_said(content: object) -> Json:
    return {"role": "user", "content": content}


def texts(messages: Sequence[Mapping[str, Any]]) -> str:
    """All text of a request's messages."""
    found = []
    for message in messages:
        content = message.get("content") or ""
        parts = content if isinstance(content, list) else [{"text": content}]
        found += [part.get("text", "") for part in parts]
    return "\n".join(found)


def blocks_in(messages: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The lines of each block of memory by its kind; no kind is there twice."""
    found = list(BLOCK.finditer(texts(messages)))
    blocks = {one["kind"]: one["lines"] for one in found}
    assert len(blocks) == len(found)
    return blocks


async def index(store: Backend, key: SessionKey) -> None:
    """Index a session now, beside the proxy that would do so a moment later."""
    await Indexer(store, store, typed_text_of, time.time).index_session(key)


@dataclass
class Person:
    """Somebody with an id that nobody else has, or with none; ``headers`` go with all they say."""

    rig: Rig
    user: str | None
    headers: dict[str, str]

    def talk(self, session: str | None = None) -> Talk:
        """A new conversation, or the one of that name."""
        owner = {"x-user-id": self.user} if self.user else {}
        talk = self.rig.talk(**owner, **self.headers)
        talk.session = session or talk.session
        return talk

    async def says(
        self, talk: Talk, sent: str | Sequence[Json], reply: str = REPLY, **more: Any
    ) -> httpx.Response:
        """One exchange; nothing is indexed but by the proxy itself."""
        messages = [user_said(sent)] if isinstance(sent, str) else sent
        response = await talk.ask(messages, json_answer(chat_completion(reply)), **more)
        assert response.status_code == 200, response.text
        assert not self.rig.up.refused
        return response

    async def tells(self, *said: str, talk: Talk | None = None, reply: str = REPLY) -> Talk:
        """Things that are in the index afterwards; in a new conversation unless one is given."""
        talk = talk or self.talk()
        for text in said:
            await self.says(talk, text, reply)
        await index(self.rig.store.real, talk.key)  # type: ignore[arg-type]
        return talk

    async def asks(
        self, sent: str | Sequence[Json], talk: Talk | None = None, **more: Any
    ) -> dict[str, str]:
        """The blocks of memory that the upstream is given; in a new conversation by default."""
        response = await self.says(talk or self.talk(), sent, **more)
        blocks = blocks_in(self.rig.up.requests[-1].messages)
        assert bool(blocks) == (response.headers["x-memory-recalled"] != "0")
        return blocks

    async def is_reminded_of(self, marker: str, talk: Talk | None = None, **more: Any) -> bool:
        """Does the upstream see a word in a block when this person asks for it?

        Earlier questions of this kind are no answer.
        """
        question = f"What about {marker}?"
        found = "\n".join((await self.asks(question, talk, **more)).values())
        return marker in found.replace(question, "")


def somebody(rig: Rig, **headers: str) -> Person:
    return Person(rig, f"user-{uuid.uuid4().hex}", headers)


def nobody(rig: Rig, **headers: str) -> Person:
    """Sends no user id."""
    return Person(rig, None, headers)


def marker() -> str:
    """A word that nobody has ever said."""
    return f"zq{uuid.uuid4().hex[:10]}"


async def with_memories(rig: Rig, **headers: str) -> tuple[Person, str]:
    """Somebody who has said a lot about one thing, and the word for it."""
    person, word = somebody(rig, **headers), marker()
    await person.tells(*(f"My boat {word} has {thing}." for thing in THINGS))
    return person, word
