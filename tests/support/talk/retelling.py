"""Clients that show their tool calls otherwise than they came, against the real decisions.

What is said has a name: u1, c2, t3, a4.  The truth is the list of the names; whatever a client does
to ids and forms, memory must send and keep each name once and in order, in a form that a strict
upstream takes.  Pure: a session is a snapshot, and a commit is laid over it.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from proxy.chat.message import ChatMessage, read_message
from proxy.chat.reply.answer import make_choice
from proxy.memory.model import Commit, Exchange, LoadOptions, Snapshot
from proxy.memory.prompt.compose import PromptRules, compose, render
from proxy.memory.prompt.window import Window
from proxy.memory.reconciliation.match import Intent
from proxy.memory.reconciliation.reconcile import answer_comparison, reconcile
from proxy.memory.recording.commit import ExchangeMeta, build_commit, pending_record
from proxy.memory.recording.overlay import overlay
from tests.support.upstream.strict import validate

Json = dict[str, Any]
NAME = re.compile(r"\b[uact]\d+\b")


def named_in(messages: Sequence[Json]) -> list[str]:
    return NAME.findall(json.dumps(messages))


def call(name: str, id: str) -> Json:
    function = {"name": "look", "arguments": json.dumps({"for": name})}
    return {"id": id, "type": "function", "function": function}


def read(messages: Sequence[Json]) -> list[ChatMessage]:
    found = [read_message(json.dumps(message).encode()) for message in messages]
    return [message for message in found if message is not None]


@dataclass
class Session:
    """A session in the hands of the real decisions."""

    window: Window = Window()
    snapshot: Snapshot = field(default_factory=Snapshot)
    commits: list[Commit] = field(default_factory=list)
    strict: bool = True

    def say(self, sent: Sequence[Json], answer: Json, intent: Intent = Intent()) -> list[Json]:  # noqa: B008
        """One exchange; what the upstream got, which it takes or refuses."""
        m, bodies = read(sent), self.snapshot.bodies
        plan = reconcile(self.snapshot, m, intent, answer_comparison(bodies))
        prompt = compose(self.snapshot, plan, m, PromptRules(window=self.window))
        pieces = render(prompt, m, bodies)
        raw = (x.raw if isinstance(x, ChatMessage) else x for x in pieces)
        got: list[Json] = [json.loads(piece) for piece in raw]
        if self.strict:
            validate({"model": "m", "messages": got})
        exchange = Exchange(
            id=f"x{len(self.commits) + 1}", profile="", started_at=0.0, created_at=0.0
        )
        choice = make_choice(
            0,
            answer,
            finish_reason="stop",
            complete=True,
        )
        outlined = pending_record(plan, prompt, m, self.snapshot)
        commit = build_commit(outlined, [choice], ExchangeMeta(exchange), lambda raw: 10)
        self.commits.append(commit)
        self.snapshot = overlay(self.snapshot, commit, LoadOptions(profile=""))
        return got

    @property
    def log(self) -> list[Json]:
        return [json.loads(self.snapshot.bodies[e.card.id]) for e in self.snapshot.log]

    @property
    def recorded(self) -> int:
        """Messages in history, superseded ones included."""
        return sum(len(commit.drafts) for commit in self.commits)


Telling = Callable[[Sequence[Json], random.Random], list[Json]]
"""How a client shows the conversation so far."""


def as_it_came(said: Sequence[Json], rng: random.Random) -> list[Json]:
    return list(said)


def under_other_ids(said: Sequence[Json], rng: random.Random) -> list[Json]:
    """The same ids of its own each time, made from those that came."""
    return _with_ids(said, lambda id, n: f"own-{n}")


def under_new_ids_each_time(said: Sequence[Json], rng: random.Random) -> list[Json]:
    mark = rng.getrandbits(64)
    return _with_ids(said, lambda id, n: f"own-{mark}-{n}")


def as_text(said: Sequence[Json], rng: random.Random) -> list[Json]:
    """Calls as text, all of a message in one; their results as one message of the user's."""
    told: list[Json] = []
    for message in said:
        if message.get("tool_calls"):
            text = f"Calling tools: {json.dumps([x['function'] for x in message['tool_calls']])}"
            told.append({"role": "assistant", "content": text})
        elif message["role"] == "tool" and told[-1]["content"].startswith("Observation"):
            told[-1]["content"] += f", {message['content']}"
        elif message["role"] == "tool":
            told.append({"role": "user", "content": f"Observation: {message['content']}"})
        else:
            told.append(dict(message))
    return told


def without_words_beside_calls(said: Sequence[Json], rng: random.Random) -> list[Json]:
    return [{**x, "content": None} if x.get("tool_calls") else x for x in said]


def answers_as_calls(said: Sequence[Json], rng: random.Random) -> list[Json]:
    """An answer is the call of a tool that gives the answer."""
    told: list[Json] = []
    for n, message in enumerate(said):
        if message["role"] != "assistant" or message.get("tool_calls"):
            told.append(message)
            continue
        calls = [call(message["content"], f"final-{n}")]
        told.append({"role": "assistant", "content": None, "tool_calls": calls})
        told.append({"role": "tool", "tool_call_id": f"final-{n}", "content": "done"})
    return told


def _with_ids(said: Sequence[Json], made: Callable[[str, int], str]) -> list[Json]:
    told: list[Json] = []
    waiting: list[str] = []
    n = 0
    for message in json.loads(json.dumps(said)):
        for each in message.get("tool_calls") or ():
            n += 1
            each["id"] = made(each["id"], n)
            waiting.append(each["id"])
        if message["role"] == "tool":
            message["tool_call_id"] = waiting.pop(0)
        told.append(message)
    return told


TELLINGS: dict[str, Telling] = {
    "as it came": as_it_came,
    "other ids": under_other_ids,
    "new ids each time": under_new_ids_each_time,
    "calls as text": as_text,
    "no words beside calls": without_words_beside_calls,
    "answers as calls": answers_as_calls,
}


@dataclass
class Client:
    """A client with a telling of its own, which resends all of it with each step."""

    telling: Telling
    rng: random.Random
    session: Session = field(default_factory=Session)
    ids: bool = True
    """Does the upstream give its calls ids?"""
    retries: bool = False
    said: list[Json] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    number: int = 0

    def turn(self, steps: int) -> Client:
        """A question, so many rounds of tools, an answer."""
        self.said.append({"role": "user", "content": self._name("u")})
        for left in range(steps, -1, -1):
            answer = self._calling() if left else self._answer()
            self._exchange(answer)
            self.said.append(answer)
            self.said += [
                {"role": "tool", "tool_call_id": x["id"], "content": self._name("t")}
                for x in answer.get("tool_calls") or ()
            ]
        return self

    def new_only(self) -> Client:
        """A turn of a client that sends only what is new; the whole view is memory's."""
        user = {"role": "user", "content": self._name("u")}
        self.said += [user]
        answer = self._answer()
        self._sent([user], answer)
        self.said.append(answer)
        return self

    def _exchange(self, answer: Json) -> None:
        if self.retries and self.rng.random() < 0.3:
            again = self.telling(self.said, self.rng)
            self._sent(again, self._calling() if self.rng.random() < 0.5 else self._answer())
            self._sent(again, answer, Intent(retry=True))
            return
        self._sent(self.telling(self.said, self.rng), answer)

    def _sent(self, m: Sequence[Json], answer: Json, intent: Intent = Intent()) -> None:  # noqa: B008
        got = self.session.say(m, answer, intent)
        truth = named_in(self.said)
        if not self._right(named_in(got), truth):
            self.wrong.append(f"sent {named_in(got)} for {truth}")
        truth += named_in([answer])
        if named_in(self.session.log) != truth:
            self.wrong.append(f"kept {named_in(self.session.log)} for {truth}")

    def _right(self, got: list[str], truth: list[str]) -> bool:
        """All of it; with a window some of it, in order and once."""
        if self.session.window == Window():
            return got == truth
        return got == [name for name in truth if name in set(got)] and got[-1:] == truth[-1:]

    def _calling(self) -> Json:
        count = self.rng.choice([1, 1, 2, 3])
        names = [self._name("c") for _ in range(count)]
        calls = [call(name, f"id-{name[1:]}" if self.ids else "") for name in names]
        return {"role": "assistant", "content": None, "tool_calls": calls}

    def _answer(self) -> Json:
        return {"role": "assistant", "content": self._name("a")}

    def _name(self, kind: str) -> str:
        self.number += 1
        return f"{kind}{self.number}"
