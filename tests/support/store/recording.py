"""What tests of the recorder say and look at."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from proxy.chat.message import ChatMessage
from proxy.chat.reply.answer import Choice
from proxy.memory.locks import Locks
from proxy.memory.model import LoadOptions, SessionKey, Snapshot
from proxy.memory.planner import Planner
from proxy.memory.prompt.compose import PromptRules
from proxy.memory.prompt.window import Window
from proxy.memory.reconciliation.match import Intent
from proxy.memory.recording.backlog import Backlog
from proxy.memory.recording.commit import Count, Deferred, ExchangeMeta
from proxy.memory.recording.concurrent_commit import CommitSettler
from proxy.memory.recording.listeners import Listeners
from proxy.memory.recording.recorder import PreparedRequest, Recorder
from proxy.memory.recording.replay import ReplayContext
from proxy.memory.recording.spool import Spool
from proxy.memory.store import Store
from tests.support.clock import Clock
from tests.support.faulty import FaultyStore
from tests.support.store.commits import exchange

LOAD_TIMEOUT = 1.0
COMMIT_TIMEOUT = 0.5
KEY = SessionKey("tenant", "session")
OTHER = SessionKey("tenant", "other")
APART = SessionKey("another", "session")
"""On another server, see FaultyStore."""
PROFILE = "default"
ASK = LoadOptions(profile=PROFILE)
NOBODY = Listeners()


def said(text: str, role: str = "user") -> ChatMessage:
    body = b'{"role":"%b","content":"%b"}' % (role.encode(), text.encode())
    return ChatMessage(
        raw=body,
        role=role,
        digest=f"{role}-{text}",
        calls=(),
        answers=None,
        text=text,
        blank=False,
    )


def answered(text: str, *, complete: bool = True) -> Choice:
    body = b'{"role":"assistant","content":"%b"}' % text.encode()
    return Choice(
        index=0,
        body=body,
        wire=None,
        calls=(),
        digest=f"assistant-{text}",
        blank=False,
        complete=complete,
    )


def deferred(
    id: str,
    *messages: ChatMessage,
    reply: str = "yes",
    user: str | None = None,
    at: float = 1000.0,
    intent: Intent = Intent(),  # noqa: B008
    idempotency_key: str | None = None,
) -> Deferred:
    """An exchange that found no snapshot."""
    return Deferred.of(
        messages,
        [answered(reply)],
        ExchangeMeta(exchange=exchange(id, at), user=user, idempotency_key=idempotency_key),
        intent,
        Window(),
    )


def texts(snapshot: Snapshot) -> list[str]:
    return [entry.card.digest.partition("-")[2] for entry in snapshot.log]


def recorder_over(
    store: Store,
    spool: Spool,
    planner: Planner | None = None,
    counter: Callable[[str | None], Count] = lambda model: len,
    load_timeout: float = LOAD_TIMEOUT,
    listeners: Listeners = NOBODY,
    clock: Callable[[], float] = time.monotonic,
) -> Recorder:
    """One that replays with the store that requests have."""
    live = ReplayContext(store, planner or Planner(store), CommitSettler(store, Locks()), counter)
    backlog = Backlog(spool, live, live, listeners, COMMIT_TIMEOUT, clock)
    return Recorder(live, backlog, listeners, load_timeout, clock)


@dataclass
class Workbench:
    """A recorder and all that it works with; ``quarantined`` has an item for each such entry,
    ``edited`` the places of what says something else."""

    store: FaultyStore
    spool: Spool
    recorder: Recorder
    clock: Clock
    quarantined: list[str] = field(default_factory=list)
    edited: list[tuple[SessionKey, Sequence[int]]] = field(default_factory=list)

    async def prepare(self, *messages: ChatMessage, key: SessionKey = KEY) -> PreparedRequest:
        asked: Sequence[ChatMessage] = messages or (said("hello"),)
        return await self.recorder.prepare(key, ASK, asked, Intent(), PromptRules(window=Window()))

    async def history(self, key: SessionKey = KEY) -> list[str]:
        """Ids of the exchanges in the store, in order, and that each is contiguous."""
        page = await self.store.messages(key, ("active", "superseded"), 0, 10_000)
        ids = [message.card.exchange for message in page.items]
        order = list(dict.fromkeys(ids))
        assert ids == sorted(ids, key=order.index)
        return order
