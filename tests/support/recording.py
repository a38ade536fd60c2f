"""What tests of the recorder say and look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from proxy.memory.compose import Rules
from proxy.memory.deferred import Choice, Deferred, Utterance
from proxy.memory.model import Ask, SessionKey, Snapshot
from proxy.memory.recorder import Prepared, Recorder
from proxy.memory.request import Intent, Rerendered
from proxy.memory.spool import Spool
from proxy.memory.transcript import Occasion, Said
from proxy.memory.window import Window
from tests.support.clock import Clock
from tests.support.commits import exchange
from tests.support.faulty import FaultyStore

LOAD_TIMEOUT = 1.0
KEY = SessionKey("tenant", "session")
OTHER = SessionKey("tenant", "other")
PROFILE = "default"
ASK = Ask(profile=PROFILE)


def never_the_same(bodies: Mapping[str, bytes]) -> Rerendered:
    return lambda message, card: False


def said(text: str, role: str = "user") -> Utterance:
    body = b'{"role":"%b","content":"%b"}' % (role.encode(), text.encode())
    return Utterance(
        role=role,
        digest=f"{role}-{text}",
        calls=(),
        answers=None,
        text=text,
        blank=False,
        record=body,
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
    *messages: Utterance,
    reply: str = "yes",
    user: str | None = None,
    at: float = 1000.0,
    intent: Intent = Intent(),  # noqa: B008
) -> Deferred:
    """An exchange that found no snapshot."""
    return Deferred.of(
        messages,
        [answered(reply)],
        Occasion(exchange=exchange(id, at), user=user),
        intent,
        Window(),
    )


def texts(snapshot: Snapshot) -> list[str]:
    return [entry.card.digest.partition("-")[2] for entry in snapshot.log]


@dataclass
class Workbench:
    """A recorder and all that it works with; ``quarantined`` has an item for each such entry."""

    store: FaultyStore
    spool: Spool
    recorder: Recorder
    clock: Clock
    quarantined: list[str] = field(default_factory=list)

    async def prepare(self, *messages: Said, key: SessionKey = KEY) -> Prepared:
        asked: Sequence[Said] = messages or (said("hello"),)
        return await self.recorder.prepare(key, ASK, asked, Intent(), Rules(window=Window()))

    async def history(self, key: SessionKey = KEY) -> list[str]:
        """Ids of the exchanges in the store, in order, and that each is contiguous."""
        page = await self.store.messages(key, ("active", "superseded"), 0, 10_000)
        ids = [message.card.exchange for message in page.items]
        order = list(dict.fromkeys(ids))
        assert ids == sorted(ids, key=order.index)
        return order
