"""One chat completion with memory, from the parsed request to what the upstream gets.

``prepare`` turns the request into what the upstream gets; ``sent`` leaves what is to be recorded.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from dataclasses import replace

from proxy.chat.limits import context_window
from proxy.chat.request import ChatRequest
from proxy.chat.tokens import TokenCounter
from proxy.errors import memory_unavailable, session_owner_mismatch
from proxy.gateway.account import Account
from proxy.gateway.ledger import LARGE, Heading, Ledger, Unplanned
from proxy.gateway.profile import ask_of, recall_tokens
from proxy.gateway.reminder import NOTHING, Reminding, wanted_for
from proxy.gateway.situation import Situation, intent_of, rules_of
from proxy.memory.compose import Prompt, compose, render
from proxy.memory.model import Snapshot
from proxy.memory.recorder import Prepared, Recorder
from proxy.memory.store import StoreError, StoreTimeout
from proxy.memory.transcript import Outline, outline
from proxy.recall.found import Found
from proxy.telemetry import Telemetry

ROOM = 1024
"""Tokens kept free for an answer whose request sets no limit."""


def new_exchange_id() -> str:
    return f"ex_{secrets.token_urlsafe(15)}"


class ChatExchange:
    """From the request as it came to the request as it is sent.

    Raises ProxyError from ``prepare`` alone.
    """

    def __init__(
        self,
        request: ChatRequest,
        body: bytes,
        situation: Situation,
        recorder: Recorder,
        reminding: Reminding,
        counter: TokenCounter,
        telemetry: Telemetry,
    ) -> None:
        self._request, self._body, self._situation = request, body, situation
        self._recorder, self._reminding, self._telemetry = recorder, reminding, telemetry
        self._counter, self._count = counter, counter.count
        self._began = time.time()
        self._intent = intent_of(situation, self._began)
        self._rules = rules_of(request, situation)
        self._records = situation.identity.mode in ("on", "write")
        self._prepared: Prepared | None = None
        self._prompt: Prompt | None = None
        self._reminder = NOTHING
        self._lessened = False
        self._side = situation.side.matches(request.last_user_text, request.system_text)
        self._id = new_exchange_id()
        self.account = Account(situation.key.session)

    async def prepare(self) -> None:
        """Load and compose.

        Raises ProxyError 403 for another user's session, 503 where memory must not fail.
        """
        clock = time.perf_counter()
        if self._side:
            self.give_up("side_request")
        try:
            await self._load()
        except StoreError as error:
            self._degrade(error)
        else:
            await self._fit()
            await self._remind()
        self._take_stock()
        self.account.exchange = self._id if self._records else None
        self.account.duration = time.perf_counter() - clock
        self._telemetry.loaded(self.account.duration)

    async def _load(self) -> None:
        situation = self._situation
        key = situation.identity.idempotency_key
        ask = ask_of(situation.identity.profile, self._rules.window, key)
        prepared = await self._recorder.prepare(
            situation.key, ask, self._request.messages, self._intent, self._rules
        )
        self._check(prepared.snapshot)
        self._prepared, self._prompt = prepared, prepared.planned.prompt
        if prepared.spools:
            self.account.reason = self.account.reason or "spooled"

    def _check(self, snapshot: Snapshot) -> None:
        user = self._situation.identity.user
        if snapshot.owner is not None and user is not None and snapshot.owner != user:
            raise session_owner_mismatch()
        attempt, last = snapshot.attempt, snapshot.last
        if attempt is not None and last is not None and attempt.id != last.id:
            self.give_up("stale_retry")

    def _degrade(self, error: StoreError) -> None:
        if self._situation.closed:
            raise memory_unavailable() from error
        self.account.status = "degraded"
        self.account.reason = "store_timeout" if isinstance(error, StoreTimeout) else "store_error"

    async def _fit(self) -> None:
        """Fit memory to the model's context window, where that is known."""
        injected = self._prompt.injected.tokens if self._prompt else 0
        room = await self._room(injected) if injected else None
        if room is not None and injected > room:
            self._narrow(room, hard=False)
            self.account.reason = "context_trimmed"

    async def _room(self, wanted: int) -> int | None:
        """Tokens that may be injected, None if there is room enough for those that are wanted.

        A request has fewer tokens than bytes: only near the limit it is worth counting them.
        """
        window, answer = context_window(self._request.model), self._request.max_output or ROOM
        if window is None or wanted + len(self._body) + answer <= window:
            return None
        return max(0, window - answer - await self._tokens_said())

    async def _remind(self) -> None:
        """Ask recall for what the window does not show."""
        prompt, prepared = self._prompt, self._prepared
        if prompt is None or prepared is None or not self._recalls:
            return
        recall = self._situation.profile.recall
        budget = await self._left(recall_tokens(self._situation.profile), prompt.injected.tokens)
        messages = render(prompt, self._said, prepared.planned.bodies)
        said = [message.digest for message in self._request.messages]
        wanted = wanted_for(
            self._situation, prepared, prompt, messages, said, budget, self._counter.count_text
        )
        if wanted is not None:
            self._reminder = await self._reminding.remind(wanted, recall.timeout)
            self.account.recall_duration = self._reminder.seconds
            self.account.reason = self.account.reason or self._reminder.reason

    @property
    def _recalls(self) -> bool:
        return self._situation.profile.recall.enabled and self._rules.inject and not self._side

    async def _left(self, most: int, injected: int) -> int:
        """What recall may take, beside what is injected already."""
        bounds = [self._rules.cap, await self._room(injected + most)]
        return min([most, *(bound - injected for bound in bounds if bound is not None)])

    @property
    def _said(self) -> list[bytes]:
        return [message.raw for message in self._request.messages]

    async def _tokens_said(self) -> int:
        said = [x.raw for x in (*self._request.leading, *self._request.messages)]
        if len(self._body) > LARGE:
            return await asyncio.to_thread(lambda: sum(map(self._count, said)))
        return sum(map(self._count, said))

    def _narrow(self, cap: int, *, hard: bool) -> None:
        if self._prepared is None or self._prompt is None:
            return
        snapshot, plan = self._prepared.snapshot, self._prepared.planned.plan
        self._reminder = self._reminder.within(max(cap // 2, cap - self._prompt.injected.tokens))
        rules = replace(self._rules, cap=cap - self._reminder.tokens, hard=hard)
        self._prompt = compose(snapshot, plan, self._request.messages, rules)

    def _take_stock(self) -> None:
        prompt, account = self._prompt, self.account
        if prompt is None:
            return
        account.status = "applied" if self.adds else "empty"
        account.messages = prompt.injected.messages
        account.tokens = prompt.injected.tokens + self._reminder.tokens
        account.recalled, account.sources = self._reminder.recalled, self._reminder.sources()
        account.evicted_messages, account.evicted_tokens = prompt.evicted

    def give_up(self, reason: str) -> None:
        """Do not record this exchange."""
        self._records = False
        self.account.reason, self.account.exchange = reason, None

    @property
    def drains(self) -> bool:
        """Is the reply finished for a client that has left?"""
        return self._records and self._situation.profile.on_disconnect == "drain"

    def lessen(self) -> bool:
        """The upstream found the context too long: inject half as much, then nothing.

        False if nothing is injected that could be left out.
        """
        before = (self._prompt, self._reminder)
        if not self.adds:
            return False
        half = () if self._lessened else (self.account.tokens // 2,)
        self._lessened = True
        for cap in (*half, 0):
            self._narrow(cap, hard=True)
            if (self._prompt, self._reminder) != before:
                self.account.reason = "context_trimmed"
                self._take_stock()
                return True
        return False

    @property
    def adds(self) -> bool:
        """Is there anything to put into the request?"""
        return self._prompt is not None and not (self._prompt.empty and not self._reminder)

    def upstream_body(self) -> bytes:
        """The request's body with memory in it; its own bytes where there is nothing to add."""
        prompt, prepared = self._prompt, self._prepared
        if prompt is None or prepared is None or not self.adds:
            return self._body
        system = (prompt.system[1:-1],) if prompt.system else self._request.system
        messages = render(prompt, self._said, prepared.planned.bodies)
        placement = self._situation.profile.block_placement
        return self._request.with_messages((*system, *self._reminder.put_into(messages, placement)))

    @property
    def found(self) -> tuple[Found, ...]:
        """What recall put into the prompt."""
        return self._reminder.recollection.all

    def sent(self) -> Ledger | None:
        """The request is on its way: what will be recorded, if anything.

        The exchange itself, with all that was injected, is not needed any more.
        """
        if not self._records:
            return None
        return Ledger(
            self._situation.key,
            self._heading(),
            self._outline(),
            self._recorder,
            self._count,
            self._telemetry,
        )

    def _heading(self) -> Heading:
        leading, situation = self._request.system_record, self._situation
        system = b"[" + b",".join(leading) + b"]" if leading else None
        known = self._prepared.snapshot.system if self._prepared else None
        return Heading(
            id=self._id,
            profile=situation.identity.profile,
            began=self._began,
            model=self._request.model,
            choices=self._request.n,
            user=situation.identity.user,
            system=leading if system != known else (),
            idempotency_key=situation.identity.idempotency_key,
            ttl=situation.profile.ttl,
            injection=self.account.injection(),
        )

    def _outline(self) -> Outline | Unplanned:
        said = self._request.messages
        if self._prepared is None or self._prompt is None:
            return Unplanned(said, self._intent, self._rules.window)
        return outline(self._prepared.planned.plan, self._prompt, said)
