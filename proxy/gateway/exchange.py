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
from proxy.errors import memory_unavailable, session_owner_mismatch
from proxy.gateway.account import Account
from proxy.gateway.ledger import LARGE, Heading, Ledger, Unplanned
from proxy.gateway.profile import ask_of
from proxy.gateway.situation import Situation, intent_of, rules_of
from proxy.memory.compose import Prompt, compose, render
from proxy.memory.model import Snapshot
from proxy.memory.recorder import Prepared, Recorder
from proxy.memory.store import StoreError, StoreTimeout
from proxy.memory.transcript import Count, Outline, outline
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
        count: Count,
        telemetry: Telemetry,
    ) -> None:
        self._request, self._body, self._situation = request, body, situation
        self._recorder, self._count, self._telemetry = recorder, count, telemetry
        self._began = time.time()
        self._intent = intent_of(situation, self._began)
        self._rules = rules_of(request, situation)
        self._records = situation.identity.mode in ("on", "write")
        self._prepared: Prepared | None = None
        self._prompt: Prompt | None = None
        self._lessened = False
        self._id = new_exchange_id()
        self.account = Account(situation.key.session)

    async def prepare(self) -> None:
        """Load and compose.

        Raises ProxyError 403 for another user's session, 503 where memory must not fail.
        """
        clock = time.perf_counter()
        if self._situation.side.matches(self._request.last_user_text, self._request.system_text):
            self.give_up("side_request")
        try:
            await self._load()
        except StoreError as error:
            self._degrade(error)
        else:
            await self._fit()
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
        """Fit memory to the model's context window, where that is known.

        A request has fewer tokens than bytes: only near the limit it is worth counting them.
        """
        injected = self._prompt.injected.tokens if self._prompt else 0
        window, room = context_window(self._request.model), self._request.max_output or ROOM
        if injected and window is not None and injected + len(self._body) + room > window:
            fit = max(0, window - room - await self._tokens_said())
            if injected > fit:
                self._narrow(fit, hard=False)
                self.account.reason = "context_trimmed"
        self._take_stock()

    async def _tokens_said(self) -> int:
        said = [x.raw for x in (*self._request.leading, *self._request.messages)]
        if len(self._body) > LARGE:
            return await asyncio.to_thread(lambda: sum(map(self._count, said)))
        return sum(map(self._count, said))

    def _narrow(self, cap: int, *, hard: bool) -> None:
        if self._prepared is None:
            return
        snapshot, plan = self._prepared.snapshot, self._prepared.planned.plan
        rules = replace(self._rules, cap=cap, hard=hard)
        self._prompt = compose(snapshot, plan, self._request.messages, rules)

    def _take_stock(self) -> None:
        prompt, account = self._prompt, self.account
        if prompt is None:
            return
        account.status = "empty" if prompt.empty else "applied"
        account.messages, account.tokens = prompt.injected
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
        prompt = self._prompt
        if prompt is None or prompt.empty:
            return False
        half = () if self._lessened else (prompt.injected.tokens // 2,)
        self._lessened = True
        for cap in (*half, 0):
            self._narrow(cap, hard=True)
            if self._prompt != prompt:
                self.account.reason = "context_trimmed"
                self._take_stock()
                return True
        return False

    @property
    def adds(self) -> bool:
        """Is there anything to put into the request?"""
        return self._prompt is not None and not self._prompt.empty

    def upstream_body(self) -> bytes:
        """The request's body with memory in it; its own bytes where there is nothing to add."""
        prompt, prepared = self._prompt, self._prepared
        if prompt is None or prepared is None or prompt.empty:
            return self._body
        system = (prompt.system[1:-1],) if prompt.system else self._request.system
        said = [message.raw for message in self._request.messages]
        return self._request.with_messages(
            (*system, *render(prompt, said, prepared.planned.bodies))
        )

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
        leading, situation = self._request.system, self._situation
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
