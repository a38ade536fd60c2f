"""Conversations replayed through the running proxy, then the questions, each in a new session."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any, Literal, TypeVar
from urllib.parse import quote

import aiohttp

from bench import processes
from bench.recall.people import Collection, Person, Question, Session
from bench.recall.presence import Injected
from bench.recall.upstream import ANSWER, QUESTION, Scripted

Client = Literal["last", "full"]
Message = dict[str, str]
T = TypeVar("T")
Result = TypeVar("Result")

SIDE_BY_SIDE = 4
OVER = 1.1
"""A prompt with more injected tokens than this times the budget scores 0."""

MESSAGE_TOKENS = 4
"""What a message costs beside its text."""

PATIENCE = 60.0
"""Seconds that indexing may take after the last message."""

PASSAGES = re.compile(r'<memory version="\d+" kind="recall">')
"""How a block of recalled passages begins; standing wishes are pinned whatever is asked."""

_INDEXED = re.compile(r"^memory_indexed_total ([\d.e+]+)$", re.MULTILINE)

# Recall's own time limit is the business of the other bench: here a loaded machine must not look
# like bad ranking.
_RECALL = "[memory.recall]\ntimeout = 5.0\n"
_MODEL = '[memory.recall.embeddings]\nmodel = "{}"\n'
_PROFILE = "[profiles.b{0}.recall]\nmax_tokens = {0}\n"


@dataclass(frozen=True, slots=True)
class Options:
    """``store`` is a URL.  ``client``: does the client send only its new message, or all of its
    session.  ``count`` gives the tokens of a text.  ``model``: of vectors, "" for none; they are
    given ``settle`` seconds after the last message is indexed."""

    store: str
    budgets: tuple[int, ...]
    client: Client
    count: Callable[[str], int]
    model: str = ""
    settle: float = 0.0

    @property
    def config(self) -> str:
        """The proxy's configuration; a profile for each budget."""
        model = _MODEL.format(self.model) if self.model else ""
        return _RECALL + model + "".join(map(_PROFILE.format, self.budgets))


@dataclass(frozen=True, slots=True)
class Asked:
    """What became of a question.

    ``tokens``: what memory injected.  ``recall``: the share of the evidence that is in it, None
    where nothing is to be recalled.  ``quiet``: no passage was.  ``late``: recall was not there.
    """

    person: str
    question: Question
    budget: int
    tokens: int
    recall: float | None
    quiet: bool
    seconds: float
    late: bool = False

    @property
    def over(self) -> bool:
        return self.tokens > OVER * self.budget

    @property
    def score(self) -> float:
        """0 to 1; for what is to recall nothing, whether it did."""
        if self.recall is None:
            return float(self.quiet)
        return 0.0 if self.over else self.recall


Step = Callable[[], None]


async def run(
    collection: Collection, options: Options, folder: Path, replayed: Step, asked: Step
) -> list[Asked]:
    """Replay, wait until all is indexed, ask.

    ``replayed`` is called for each exchange, ``asked`` for each question and budget.  Raises
    RuntimeError where the proxy does not answer as it should.
    """
    async with Scripted().running() as upstream:
        config = folder / "bench.toml"
        config.write_text(options.config, "utf-8")
        with processes.proxy(folder, upstream.url, options.store, config) as proxy:
            async with _driver(proxy.url, upstream, options) as driver:
                people = collection.people
                await _each(people, lambda person: driver.replay(person, replayed))
                await driver.settled(2 * collection.exchanges)
                await asyncio.sleep(options.settle)
                questions = [(person, one) for person in people for one in person.questions]
                found = await _each(questions, lambda one: driver.ask(one[0], one[1], asked))
    return [result for results in found for result in results]


async def _each(items: Iterable[T], work: Callable[[T], Awaitable[Result]]) -> list[Result]:
    """Results in order, a few at a time; the first failure ends it."""
    free = asyncio.Semaphore(SIDE_BY_SIDE)

    async def one(item: T) -> Result:
        async with free:
            return await work(item)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(item)) for item in items]
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]


@asynccontextmanager
async def _driver(url: str, upstream: Scripted, options: Options) -> AsyncIterator[Driver]:
    timeout = aiohttp.ClientTimeout(total=60)
    async with aiohttp.ClientSession(url, timeout=timeout) as http:
        yield Driver(http, upstream, options)


class Driver:
    """The chat client.  Users are new in each run, whatever is in the store already."""

    def __init__(self, http: aiohttp.ClientSession, upstream: Scripted, options: Options) -> None:
        self._http, self._upstream, self._options = http, upstream, options
        self._run = token_hex(3)

    async def replay(self, person: Person, replayed: Step) -> None:
        for session in person.sessions:
            await self._session(person, session, replayed)

    async def _session(self, person: Person, session: Session, replayed: Step) -> None:
        history: list[Message] = []
        for number, pair in enumerate(session.pairs()):
            name = quote(f"{person.id}/{session.id}/{number}")
            self._upstream.answers[name] = pair.answer
            messages = [*history, {"role": "user", "content": pair.question}]
            headers = {**self._who(person, session.id), ANSWER: name}
            await self._chat(messages, headers, 200)
            if self._options.client == "full":
                history = [*messages, {"role": "assistant", "content": pair.answer}]
            replayed()

    async def settled(self, messages: int) -> None:
        """Until so many messages are indexed."""
        deadline = time.monotonic() + PATIENCE
        while await self._indexed() < messages:
            if time.monotonic() > deadline:
                raise RuntimeError(f"not indexed within {PATIENCE:.0f} s")
            await asyncio.sleep(0.05)

    async def _indexed(self) -> float:
        async with self._http.get("/metrics") as answer:
            found = _INDEXED.search(await answer.text())
            return float(found[1]) if found else 0.0

    async def ask(self, person: Person, question: Question, asked: Step) -> list[Asked]:
        results = []
        for budget in self._options.budgets:
            results.append(await self._ask(person, question, budget))
            asked()
        return results

    async def _ask(self, person: Person, question: Question, budget: int) -> Asked:
        name = quote(f"{person.id}/{question.id}/{budget}")
        own = [*question.before, question.text]
        messages = [
            {"role": "assistant" if at % 2 else "user", "content": text}
            for at, text in enumerate(own)
        ]
        headers = self._who(person, f"ask-{question.id}-{budget}")
        headers |= {QUESTION: name, "X-Memory-Profile": f"b{budget}"}
        clock = time.perf_counter()
        answer = await self._chat(messages, headers, 400)
        seconds = time.perf_counter() - clock
        injected = injected_texts(self._upstream.prompts.pop(name), own)
        count, there = self._options.count, Injected("\n".join(injected))
        return Asked(
            person=person.id,
            question=question,
            budget=budget,
            tokens=sum(MESSAGE_TOKENS + count(text) for text in injected),
            recall=there.recall(question, person.texts()) if question.evidence else None,
            quiet=not any(map(PASSAGES.search, injected)),
            seconds=seconds,
            late=answer.get("X-Memory-Reason", "").startswith("recall_"),
        )

    def _who(self, person: Person, session: str) -> dict[str, str]:
        user = quote(f"{self._run}-{person.id}", safe="")
        return {"X-User-Id": user, "X-Session-Id": f"{user}-{quote(session, safe='')}"}

    async def _chat(
        self, messages: Sequence[Message], headers: dict[str, str], status: int
    ) -> dict[str, str]:
        """The answer's headers."""
        body = {"model": "mock", "messages": list(messages)}
        async with self._http.post("/v1/chat/completions", json=body, headers=headers) as answer:
            text = await answer.text()
            if answer.status != status:
                raise RuntimeError(f"the proxy answered {answer.status}: {text[:200]}")
            return dict(answer.headers)


def injected_texts(prompt: Sequence[dict[str, Any]], own: Sequence[str]) -> list[str]:
    """What is in a prompt beside the client's own messages, the last of which are at its end."""
    texts = [_text(message.get("content")) for message in prompt]
    at = len(texts) - 1
    for said in reversed(own):
        place = next((i for i in range(at, -1, -1) if said in texts[i]), None)
        if place is None:
            raise RuntimeError("a message of the client did not reach the upstream")
        before, _, after = texts[place].rpartition(said)
        texts[place] = before + after
        at = place - 1
    return [text for text in texts if text.strip()]


def _text(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""
