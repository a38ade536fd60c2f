"""One chat completion with memory, from the parsed request to what the upstream gets.

``prepare`` turns the request into what the upstream gets; ``sent`` leaves what is to be recorded.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from proxy.chat.request import ChatRequest
from proxy.chat.tokens import TokenCounter
from proxy.errors import ProxyError, memory_unavailable, session_owner_mismatch
from proxy.gateway.account import Account
from proxy.gateway.additions import Additions
from proxy.gateway.aside import Aside
from proxy.gateway.due import due_of
from proxy.gateway.informing import Informed, Informing
from proxy.gateway.ledger import Heading, Ledger, Unplanned
from proxy.gateway.profile import known_tokens, recall_tokens
from proxy.gateway.refusals import Kind
from proxy.gateway.reminder import Reminding, last_user, text_at, wanted_for
from proxy.gateway.room import Room
from proxy.gateway.situation import Situation, ask_of, intent_of, rules_of
from proxy.gateway.tool_use import ToolUse
from proxy.learning.known import Known
from proxy.memory.clock import steady
from proxy.memory.compose import compose
from proxy.memory.model import Injection, Snapshot
from proxy.memory.recorder import Prepared, Recorder
from proxy.memory.store import StoreError, StoreTimeout
from proxy.memory.transcript import Outline, outline
from proxy.telemetry import Telemetry

logger = logging.getLogger(__name__)


def new_exchange_id() -> str:
    return f"ex_{secrets.token_urlsafe(15)}"


@dataclass(frozen=True, slots=True)
class Means:
    """What every exchange works with.

    ``counter`` gives the token counter for a model, ``aside`` is where large requests are read.
    """

    recorder: Recorder
    reminding: Reminding
    informing: Informing
    counter: Callable[[str | None], TokenCounter]
    telemetry: Telemetry
    aside: Aside = field(default_factory=Aside)


class ChatExchange:
    """From the request as it came to the request as it is sent.

    Raises ProxyError from ``prepare`` alone.
    """

    def __init__(
        self, request: ChatRequest, body: bytes, situation: Situation, means: Means
    ) -> None:
        self._request, self._body, self._situation, self._means = request, body, situation, means
        self._counter = means.counter(request.model)
        self.began = steady()
        self._intent = intent_of(situation, self.began)
        self._rules = rules_of(request, situation, self._counter.count_text)
        # Evicted turns that no summary covers yet may take the place of all that comes after them.
        most = situation.profile.max_tokens if self._rules.summarised else None
        bounds = (situation.identity.max_tokens, most)
        self._room = Room(request, body, self._counter, means.aside, *bounds)
        self._records = situation.identity.mode in ("on", "write")
        self._prepared: Prepared | None = None
        self._adds: Additions | None = None
        self._informed: Informed | None = None
        self._lessened = False
        self._side = situation.side.matches(request.last_user_text, request.system_text)
        self._id = new_exchange_id()
        self.account = Account(situation.key.session)
        self.tools: ToolUse | None = None
        self.refused: Kind | None = None
        """Of a request whose tools the upstream has refused."""

    async def prepare(self) -> None:
        """Load and compose.

        Raises ProxyError 403 for another user's session, 503 where memory must not fail.
        """
        clock = time.perf_counter()
        if self._side:
            self.give_up("side_request")
        asked, count = self._request.last_user_text, self._counter.count_text
        looking = self._means.informing.begin(self._situation, asked, count, wanted=self._recalls)
        try:
            await self._load()
            self._informed = await looking
            await self._enrich()
        except ProxyError:
            raise
        except StoreError as error:
            self._degrade(error)
        except Exception as error:  # the boundary to what memory is made of: the chat goes on
            logger.exception("a request goes on without memory")
            self._degrade(error)
        finally:
            looking.cancel()
        self._take_stock()
        self.account.exchange = self._id if self._records else None
        self.account.duration = time.perf_counter() - clock
        self._means.telemetry.loaded(self.account.duration)

    async def _load(self) -> None:
        situation = self._situation
        ask = ask_of(situation, self._rules)
        prepared = await self._means.recorder.prepare(
            situation.key, ask, self._request.messages, self._intent, self._rules
        )
        self._check(prepared.snapshot)
        self._prepared, self._adds = prepared, Additions(prepared.planned.prompt)
        if prepared.spools:
            self.account.reason = self.account.reason or "spooled"

    def _check(self, snapshot: Snapshot) -> None:
        user = self._situation.identity.user
        if snapshot.owner is not None and user is not None and snapshot.owner != user:
            raise session_owner_mismatch()
        attempt, last = snapshot.attempt, snapshot.last
        if attempt is not None and last is not None and attempt.id != last.id:
            self.give_up("stale_retry")

    def _degrade(self, error: Exception) -> None:
        """Go on without memory.  Raises ProxyError where that must not be."""
        self._prepared = self._adds = None
        if self._situation.closed:
            raise memory_unavailable() from error
        self.account.status = "degraded"
        self.account.reason = "store_timeout" if isinstance(error, StoreTimeout) else "store_error"

    # What goes in beside the stored messages

    async def _enrich(self) -> None:
        adds, prepared = self._adds, self._prepared
        if adds is None or prepared is None:
            return
        await self._fit(adds)
        if self._recalls:
            await self._know()
            await self._remind(prepared)

    async def _fit(self, adds: Additions) -> None:
        """Fit memory to the model's context window, where that is known."""
        room = await self._room.in_context(adds.tokens) if adds.tokens else None
        if room is not None and adds.tokens > room:
            self._narrow(room, hard=False)
            self.account.reason = "context_trimmed"

    async def _know(self) -> None:
        """Add what is known of the person and of how to answer."""
        if self._informed is not None and self._adds is not None:
            most = known_tokens(self._situation.profile)
            known = self._chosen(await self._room.left(most, self._adds.tokens))
            self._adds = replace(self._adds, known=known)

    def _chosen(self, budget: int) -> Known:
        if self._informed is None or budget <= 0 or self._adds is None:
            return Known()
        messages = self._adds.messages(self._request, self._bodies)
        at = last_user(messages, self._request.last_user)
        question = text_at(messages, at, self._request.last_user) if at is not None else ""
        count = self._counter.count_text
        known = self._means.informing.choose(self._informed, question, budget, count)
        return known if at is not None else Known(known.instructions)

    async def _remind(self, prepared: Prepared) -> None:
        """Ask recall for what the window does not show."""
        adds, recall = self._adds, self._situation.profile.recall
        if adds is None or not recall.enabled:
            return
        budget = await self._room.left(recall_tokens(self._situation.profile), adds.tokens)
        said = [message.digest for message in self._request.messages]
        wanted = wanted_for(
            self._situation,
            prepared,
            adds.prompt,
            adds.messages(self._request, self._bodies),
            self._request.last_user,
            said,
            budget,
            self._counter.count_text,
        )
        if wanted is not None:
            reminder = await self._means.reminding.remind(wanted, recall.timeout)
            self._adds = replace(adds, reminder=reminder)
            self.account.recall_duration = reminder.seconds
            self.account.reason = self.account.reason or reminder.reason

    @property
    def _recalls(self) -> bool:
        return self._rules.inject and not self._side

    @property
    def _bodies(self) -> Mapping[str, bytes]:
        return self._prepared.planned.bodies if self._prepared else {}

    def _narrow(self, cap: int, *, hard: bool) -> None:
        """Compose anew within ``cap`` tokens; what is beside the window gets half at least."""
        adds, prepared = self._adds, self._prepared
        if adds is None or prepared is None:
            return
        most = max(cap // 2, cap - adds.prompt.injected.tokens)
        known = adds.known if adds.known.tokens <= most else self._chosen(most)
        reminder = adds.reminder.within(most - known.tokens)
        left = cap - known.tokens - reminder.tokens
        rules = replace(self._rules, cap=left, capped_by="context_length", hard=hard)
        messages = self._request.messages
        prompt = compose(prepared.snapshot, prepared.planned.plan, messages, rules)
        self._adds = Additions(prompt, known, reminder)

    def _take_stock(self) -> None:
        if self._adds is not None:
            self._adds.tell(self.account)

    def give_up(self, reason: str) -> None:
        """Do not record this exchange."""
        self._records = False
        self.account.reason, self.account.exchange = reason, None

    def leave_tools(self) -> None:
        """The upstream takes no tools for this model, or not beside what else is sent."""
        self.tools = None
        self.account.reason = "tools_refused"

    @property
    def drains(self) -> bool:
        """Is the reply finished for a client that has left?"""
        return self._records and self._situation.profile.on_disconnect == "drain"

    def lessen(self) -> bool:
        """The upstream found the context too long: inject half as much, then nothing.

        False if nothing is injected that could be left out.
        """
        before = self._adds
        if not self.adds:
            return False
        half = () if self._lessened else (self.account.tokens // 2,)
        self._lessened = True
        for cap in (*half, 0):
            self._narrow(cap, hard=True)
            if self._adds != before:
                self.account.reason = "context_trimmed"
                self._take_stock()
                return True
        return False

    @property
    def size(self) -> int:
        """Bytes of the request."""
        return len(self._body)

    @property
    def adds(self) -> bool:
        """Is there anything to put into the request?"""
        return bool(self._adds)

    def upstream_body(self) -> bytes:
        """The request's body with memory in it; its own bytes where there is nothing to add."""
        if not self._adds:
            return self._body
        profile = self._situation.profile
        return self._adds.body(self._request, self._bodies, profile.block_placement)

    @property
    def additions(self) -> Additions | None:
        """All that memory adds; None where the session could not be seen."""
        return self._adds

    def sent(self) -> Ledger | None:
        """The request is on its way: what will be recorded, if anything.

        The exchange itself, with all that was injected, is not needed any more.
        """
        if not self._records:
            return None
        outlined, m = self._outline(), self._request.messages
        new = m if isinstance(outlined, Unplanned) else [m[fresh.i] for fresh, _ in outlined.said]
        return Ledger(
            self._situation.key,
            self._heading(),
            outlined,
            self._means.recorder,
            self._counter.count,
            self._means.telemetry,
            self._means.aside,
            sum(len(message.raw) for message in new),
            self.tools.log if self.tools else None,
        )

    def _heading(self) -> Heading:
        leading, situation = self._request.system_record, self._situation
        system = b"[" + b",".join(leading) + b"]" if leading else None
        snapshot = self._prepared.snapshot if self._prepared else Snapshot()
        return Heading(
            id=self._id,
            profile=situation.identity.profile,
            began=self.began,
            model=self._request.model,
            choices=self._request.n,
            forced=self._request.forces_calls,
            user=situation.identity.user or snapshot.owner,
            system=leading if system != snapshot.system else (),
            idempotency_key=situation.identity.idempotency_key,
            ttl=situation.profile.ttl,
            injection=self.injection(),
            due=due_of(situation, self.began),
        )

    def injection(self) -> Injection:
        """What memory did, as the record has it."""
        if self._adds is None:
            return self.account.injection()
        most = self._situation.profile.why
        # What waits in the spool gets its places when it is replayed.
        placed = self._prepared is not None and not self._prepared.spools
        noted = self._adds.noted(self._request, self._bodies, most, placed=placed)
        return self.account.injection(noted)

    def _outline(self) -> Outline | Unplanned:
        said = self._request.messages
        if self._prepared is None or self._adds is None:
            return Unplanned(said, self._intent, self._rules.window)
        return outline(self._prepared.planned.plan, self._adds.prompt, said)
