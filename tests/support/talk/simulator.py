"""Clients of every kind talking to memory, with the truth known.

The truth is the conversation as its people see it: a list of messages.  A client sends some view of
it and what is new; memory must end with the truth as its log, and send the truth upstream.  Pure:
the session is a snapshot, and a commit is laid over it.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from proxy.chat.message import ChatMessage
from proxy.chat.reply.answer import Choice
from proxy.memory.model import Commit, Exchange, LoadOptions, Snapshot
from proxy.memory.prompt.compose import Prompt, PromptRules, compose
from proxy.memory.prompt.window import Window
from proxy.memory.reconciliation.match import Intent
from proxy.memory.reconciliation.plan import Plan
from proxy.memory.reconciliation.reconcile import reconcile
from proxy.memory.recording.commit import ExchangeMeta, build_commit, pending_record
from proxy.memory.recording.overlay import overlay
from tests.support.talk.shorthand import message, rerendered


def choice(
    name: str, calls: tuple[str, ...] = (), *, complete: bool = True, index: int = 0
) -> Choice:
    """A choice of a scripted reply; its digest is its name."""
    return Choice(
        index=index,
        body=name.encode(),
        wire=None,
        calls=calls,
        digest=name,
        blank=False,
        complete=complete,
        shape=name.partition("~")[0] if calls else "",
    )


@dataclass
class Memory:
    """One session, in the hands of the real decisions."""

    window: Window = Window()
    snapshot: Snapshot = field(default_factory=Snapshot)
    history: Counter[str] = field(default_factory=Counter)
    exchanges: int = 0
    clock: float = 0.0
    commits: list[Commit] = field(default_factory=list)

    def ask(self, m: Sequence[ChatMessage], intent: Intent = Intent()) -> tuple[Plan, Prompt]:  # noqa: B008
        plan = reconcile(
            self.snapshot, m, msgspec.structs.replace(intent, now=self.clock), rerendered
        )
        return plan, compose(self.snapshot, plan, m, PromptRules(window=self.window))

    def say(
        self,
        m: Sequence[ChatMessage],
        answer: Choice,
        intent: Intent = Intent(),  # noqa: B008
    ) -> list[str]:
        """One exchange; what the upstream was sent, by name."""
        self.clock += 1
        plan, prompt = self.ask(m, intent)
        self.exchanges += 1
        exchange = Exchange(
            id=f"x{self.exchanges}",
            profile="",
            started_at=self.clock,
            created_at=self.clock,
            incomplete=not answer.complete,
        )
        outlined = pending_record(plan, prompt, m, self.snapshot)
        commit = build_commit(outlined, [answer], ExchangeMeta(exchange), lambda raw: 10)
        self.commits.append(commit)
        self.history.update(draft.card.digest for draft in commit.drafts)
        self.snapshot = overlay(self.snapshot, commit, LoadOptions(profile=""))
        return [m[x].digest if isinstance(x, int) else x.card.digest for x in prompt.pieces]

    @property
    def log(self) -> list[str]:
        return [entry.card.digest for entry in self.snapshot.log]


PREFILL = "q"

View = Callable[[Sequence[ChatMessage], random.Random], list[ChatMessage]]
"""What a client keeps of the conversation so far, and sends before what is new."""


def new_only(truth: Sequence[ChatMessage], rng: random.Random) -> list[ChatMessage]:
    return []


def everything(truth: Sequence[ChatMessage], rng: random.Random) -> list[ChatMessage]:
    return list(truth)


def windowed(truth: Sequence[ChatMessage], rng: random.Random) -> list[ChatMessage]:
    """The last messages, cut anywhere but so that an answer is among them."""
    kept = list(truth[-rng.randint(2, 6) :])
    return kept if any(x.role == "assistant" for x in kept) else list(truth)


def head_and_tail(truth: Sequence[ChatMessage], rng: random.Random) -> list[ChatMessage]:
    tail = rng.randint(2, 4)
    cut = _turn_start(truth, len(truth) - tail)
    head = _turn_start(truth, 2)
    return list(truth) if cut <= head else [*truth[:head], *truth[cut:]]


def without_tools(truth: Sequence[ChatMessage], rng: random.Random) -> list[ChatMessage]:
    return [x for x in truth if not x.calls and x.role != "tool"]


def _turn_start(truth: Sequence[ChatMessage], at: int) -> int:
    """The nearest place at or before ``at`` where a turn begins."""
    at = max(0, min(at, len(truth)))
    while at > 0 and (at == len(truth) or truth[at].role != "user"):
        at -= 1
    return at


VIEWS: dict[str, View] = {
    "new only": new_only,
    "everything": everything,
    "windowed": windowed,
    "head and tail": head_and_tail,
    "no tool messages": without_tools,
}


@dataclass
class Conversation:
    """A conversation between one person and a model, through clients of the given kinds."""

    rng: random.Random
    kinds: Sequence[str]
    words: Sequence[str] = ()
    truth: list[ChatMessage] = field(default_factory=list)
    memory: Memory = field(default_factory=Memory)
    wrong: list[str] = field(default_factory=list)
    answered: Counter[str] = field(default_factory=Counter)
    number: int = 0
    preamble: tuple[ChatMessage, ...] = ()

    def run(self, turns: int) -> Conversation:
        return self.play(self.rng.choice(list(self.kinds)) for _ in range(turns))

    def play(self, kinds: Iterable[str]) -> Conversation:
        """One turn of each kind, in order."""
        for kind in kinds:
            getattr(self, f"_{kind.replace(' ', '_')}", self._plain)(kind)
        return self

    @property
    def lost(self) -> Counter[str]:
        """Answers that were given and messages that stand, and that are nowhere in history."""
        stands = Counter(x.digest for x in self.truth)
        return (self.answered | stands) - self.memory.history

    # Kinds of turns

    def _plain(self, kind: str) -> None:
        """A turn, with a tool loop now and then."""
        view = VIEWS[kind]
        rounds = self.rng.choice([0, 0, 0, 1, 2]) if kind != "no tool messages" else 0
        self._exchange(view, [self._user()], self._answer(rounds > 0))
        for left in range(rounds, 0, -1):
            results = [self._talk("tool", answers=call) for call in self.truth[-1].calls]
            running = everything if view is without_tools else view
            self._exchange(running, results, self._answer(left > 1))

    def _preamble(self, kind: str) -> None:
        """The same made-up examples before each new message."""
        if not self.preamble:
            self.preamble = (self._talk("user", mark="p"), self._talk("assistant", mark="q"))
            first = not self.truth
            if not first:  # examples that come late are recorded where they first appear
                self.preamble = ()
                return self._plain("new only")
            self._send([*self.preamble, user := self._user()], self._answer(False))
            self.truth[-1:-1] = [*self.preamble, user]
            return self._check_log()
        m = [*self.preamble, self._user()]
        return self._exchange_as(m, m[-1:], self._answer(False), [*self.truth, m[-1]])

    def _own_summary(self, kind: str) -> None:
        """A summary of the client's own making stands for what it has dropped."""
        cut = _turn_start(self.truth, len(self.truth) - 2)
        if cut == 0:
            return self._plain("everything")
        summary, user = self._talk("user", mark="s"), self._user()
        m = [summary, *self.truth[cut:], user]
        expected = [*self.truth[:cut], *m]
        return self._exchange_as(m, [user], self._answer(False), expected)

    def _edit(self, kind: str) -> None:
        """An earlier message is said otherwise; what followed it is gone."""
        starts = [i for i, x in enumerate(self.truth) if x.role == "user" and i > 1]
        if not starts or not any(x.role == "assistant" for x in self.truth[: starts[0]]):
            return self._plain("everything")
        self.truth = self.truth[: self.rng.choice(starts)]
        return self._exchange(everything, [self._user()], self._answer(False))

    def _regenerate(self, kind: str) -> None:
        """The last message is sent again, with all before it, for another answer."""
        start = max((i for i, x in enumerate(self.truth) if x.role == "user"), default=0)
        if start < 2:
            return self._plain("everything")
        self.truth = self.truth[: start + 1]
        m = list(self.truth)
        return self._exchange_as(m, [], self._answer(False), m)

    def _rewind(self, kind: str) -> None:
        """Some turns are taken back by a client that sends only what is new."""
        starts = [i for i, x in enumerate(self.truth) if x.role == "user"]
        count = self.rng.randint(0, min(3, len(starts)))
        self.truth = self.truth[: starts[-count]] if count else self.truth
        intent = Intent(rewind=count)
        return self._exchange(new_only, [self._user()], self._answer(False), intent)

    def _retry(self, kind: str) -> None:
        """The client's SDK sends a recorded request once more."""
        user = self._user()
        self._exchange(new_only, [user], self._answer(False))
        self.truth = self.truth[:-2]
        intent = Intent(retry=True)
        return self._exchange(new_only, [user], self._answer(False), intent)

    def _interrupted(self, kind: str) -> None:
        """An answer breaks off; the client asks again, or goes on."""
        user, half = self._user(), self._answer(False)
        again = self.rng.random() < 0.5
        self._exchange(new_only, [user], msgspec.structs.replace(half, complete=False))
        if again:
            self.truth = self.truth[:-2]
            return self._exchange(new_only, [user], self._answer(False))
        return self._exchange(everything, [self._user()], self._answer(False))

    def _prefilled(self, kind: str) -> None:
        """A question with the beginning of its answer, which is the same each time."""
        new = [self._user(), message(PREFILL, "assistant")]
        view = self.rng.choice([new_only, everything, windowed])
        return self._exchange(view, new, self._answer(False))

    # One exchange

    def _exchange(
        self, view: View, new: list[ChatMessage], answer: Choice, intent: Intent | None = None
    ) -> None:
        m = [*view(self.truth, self.rng), *new]
        self._exchange_as(m, new, answer, [*self.truth, *new], intent)

    def _exchange_as(
        self,
        m: list[ChatMessage],
        new: list[ChatMessage],
        answer: Choice,
        expected: Sequence[ChatMessage],
        intent: Intent | None = None,
    ) -> None:
        sent = self._send(m, answer, intent)
        self.truth[-1:-1] = new
        if sent != [x.digest for x in expected]:
            self.wrong.append(f"sent {sent} for {[x.digest for x in expected]}")
        self._check_log()

    def _send(
        self, m: list[ChatMessage], answer: Choice, intent: Intent | None = None
    ) -> list[str]:
        sent = self.memory.say(m, answer, intent or Intent())
        self.answered[answer.digest] += 1
        self.truth.append(message(answer.digest, "assistant", answer.calls))
        if [x.digest for x in m if x.digest in sent] != [x.digest for x in m]:
            self.wrong.append(f"removed some of {m}")
        return sent

    def _check_log(self) -> None:
        if self.memory.log != [x.digest for x in self.truth]:
            self.wrong.append(f"kept {self.memory.log} for {[x.digest for x in self.truth]}")

    # Words

    def _user(self) -> ChatMessage:
        return self._talk("user")

    def _answer(self, calls: bool) -> Choice:
        self.number += 1
        made = self.rng.randint(1, 4) if calls else 0
        ids = tuple(f"c{self.number}_{k}" for k in range(made))
        return choice(self._word("a"), ids)

    def _talk(self, role: str, mark: str = "", answers: str | None = None) -> ChatMessage:
        return message(self._word(mark or role[0]), role, answers=answers)

    def _word(self, mark: str) -> str:
        self.number += 1
        if self.words and mark in "ua":
            return f"{mark}:{self.rng.choice(list(self.words))}"
        return f"{mark}{self.number}"
