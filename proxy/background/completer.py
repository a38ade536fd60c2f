"""Calls an OpenAI-compatible API in the background, with the key of the tenant's own requests.

Nothing is sent for a tenant whose key is not known.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cachetools import LRUCache

from proxy.background.budget import Budget
from proxy.background.completion import (
    MAX_NAME,
    Assignment,
    Completed,
    CompletionError,
    Failed,
    NoCredential,
    NoModel,
    ParsedAnswer,
    Refused,
    SchemaRefused,
    Unreadable,
    failure_of,
    read_answer,
    request_body,
    wants_schema,
)
from proxy.background.credentials import Credentials
from proxy.background.pauses import ModelPauses
from proxy.background.routing import NamedUpstreams
from proxy.errors import RawHeaders
from proxy.lazy import lazy_import
from proxy.memory.usage import UsageTotals
from proxy.telemetry import Telemetry
from proxy.upstreams.destination import CHAT, Destination
from proxy.wire.api import bearer, json_headers, retry_after
from proxy.wire.failures import (
    UpstreamError,
    UpstreamSaturated,
    UpstreamTooLarge,
    UpstreamUnreachable,
)
from proxy.wire.upstream import Reply, Upstream

if TYPE_CHECKING:
    from proxy.chat.models import catalogue
else:
    catalogue = lazy_import("proxy.chat.models.catalogue")

MAX_ERROR_BYTES = 64 * 1024

SAMPLE = 16 * 1024
"""Characters of a text whose tokens are counted; the total is extrapolated."""

MAX_MODELS = 1_000
"""Models of which is remembered that they reject schemas; their names come from clients."""

TARGET = f"/{CHAT}".encode()


@dataclass(slots=True)
class _Request:
    """One request with its outcome.  ``billed``: the API may have processed it."""

    assignment: Assignment
    model: str
    credential: RawHeaders = field(repr=False)
    with_schema: bool
    billed: bool = True
    refused: bool = False
    answer: ParsedAnswer | None = None


class UpstreamCompleter:
    """See :class:`proxy.background.completion.Completer`.

    ``upstreams``: clients by URL, "" for [upstream].  ``counter`` returns a model's function for
    counting tokens, used if an answer has no usage.  ``clock`` is in Unix seconds.  ``named``:
    [[upstreams]], if there are any.
    """

    def __init__(
        self,
        upstreams: Mapping[str, Upstream],
        credentials: Credentials,
        budget: Budget,
        counter: Callable[[str | None], Callable[[str], int]],
        telemetry: Telemetry,
        clock: Callable[[], float],
        named: NamedUpstreams | None = None,
    ) -> None:
        self._named = named
        self._upstreams, self._credentials, self._budget = upstreams, credentials, budget
        self._counter, self._telemetry, self._clock = counter, telemetry, clock
        self._pauses = ModelPauses(clock)
        self._without_schema: LRUCache[tuple[str, str], None] = LRUCache(MAX_MODELS)

    def __repr__(self) -> str:
        return f"<UpstreamCompleter of {len(self._upstreams)} APIs>"

    def is_ready(self, assignment: Assignment) -> bool:
        if self._credential(assignment) is not None:
            return True
        return self._named is not None and self._named.may_route(assignment)

    def _credential(self, assignment: Assignment) -> RawHeaders | None:
        """The headers with the assignment's own key, else the tenant's; None if unknown.

        The tenant's key is never sent to another API.
        """
        if assignment.key:
            return bearer(assignment.key)
        destination = self._destination(assignment)
        if destination is not None and self._named is not None:
            return self._named.credential(destination, assignment.tenant)
        if self._upstreams[assignment.url] is not self._upstreams[""]:
            return []
        return self._credentials.of(assignment.tenant)

    def _destination(self, assignment: Assignment) -> Destination | None:
        """The one of [[upstreams]] that the assignment is for; None for another API."""
        return self._named.destination(assignment) if self._named else None

    async def complete(self, assignment: Assignment) -> Completed:
        credential = self._credential(assignment)
        if credential is None:
            raise NoCredential("the tenant's key is not known here")
        model = assignment.model or assignment.default_model
        if not model:
            raise NoModel("there is no model to ask")
        await self._budget.check(assignment.tenant)
        supports_schema = (assignment.endpoint, model) not in self._without_schema
        request = _Request(
            assignment, model, credential, wants_schema(assignment) and supports_schema
        )
        try:
            with self._pauses.count_failures(assignment, model):
                answer = await self._in_time(request)
        except CompletionError as error:
            error.target = f"{assignment.feature} by {model[:MAX_NAME]}"
            raise
        finally:
            await self._budget.flush()
        return Completed(answer.text, answer.model or model, answer.is_truncated)

    async def _in_time(self, request: _Request) -> ParsedAnswer:
        try:
            async with asyncio.timeout(request.assignment.timeout):
                return await self._with_schema_fallback(request)
        except TimeoutError as error:
            raise Failed("no answer in time") from error

    async def _with_schema_fallback(self, request: _Request) -> ParsedAnswer:
        """Send the request, and once more without the schema if that may be why it is refused."""
        try:
            return await self._complete(request)
        except SchemaRefused:
            plain = _Request(request.assignment, request.model, request.credential, False)
            answer = await self._complete(plain)
            self._without_schema[request.assignment.endpoint, request.model] = None
            return answer

    async def _complete(self, request: _Request) -> ParsedAnswer:
        """Send the request once and count its tokens in any case.  Raises Refused, Failed."""
        began = time.perf_counter()
        try:
            request.answer = read_answer(await self._send(request))
            return request.answer
        except Refused:
            request.refused = True
            raise
        except UpstreamTooLarge as error:
            raise Unreadable("the answer is too long") from error
        except UpstreamError as error:
            request.billed = not isinstance(error, UpstreamUnreachable | UpstreamSaturated)
            raise Failed(f"the API failed: {error}") from error
        finally:
            self._count(request, time.perf_counter() - began)

    async def _send(self, request: _Request) -> bytes:
        """Send it; returns the body of an answer with status 200.  Raises Refused, Failed."""
        assignment, with_schema = request.assignment, request.with_schema
        body = request_body(assignment, request.model, with_schema=with_schema)
        upstream, headers = self._upstreams[assignment.url], json_headers(request.credential)
        destination = self._destination(assignment)
        if destination is not None:
            upstream, headers = destination.upstream, destination.headers(headers, CHAT)
        reply = await upstream.send("POST", TARGET, headers, body)
        try:
            request.billed = reply.status == 200
            if request.billed:
                return await reply.read(assignment.max_answer_bytes)
            error_body = await _error_text(reply) if with_schema else b""
            wait = retry_after(reply.headers, self._clock())
            raise failure_of(reply.status, error_body, wait, with_schema=with_schema)
        finally:
            await reply.close()

    def _count(self, request: _Request, seconds: float) -> None:
        feature, spent = request.assignment.feature, self._spent(request)
        outcome = "failed" if request.answer is None else "done"
        self._budget.add(request.assignment.tenant, feature, spent)
        self._telemetry.count_completion(
            feature,
            "refused" if request.refused else outcome,
            seconds,
            spent.input_tokens,
            spent.output_tokens,
        )

    def _spent(self, request: _Request) -> UsageTotals:
        """The tokens by the answer's usage, else counted; only the prompt's without an answer."""
        if not request.billed:
            return UsageTotals(calls=1, failed=1)
        answer, count = request.answer or ParsedAnswer(""), self._counter(request.model)
        tokens_in = answer.input_tokens or _estimated(request.assignment.text, count)
        tokens_out = answer.output_tokens or _estimated(answer.text, count)
        return UsageTotals(
            calls=1,
            failed=int(request.answer is None),
            input_tokens=tokens_in,
            output_tokens=tokens_out,
            micro_usd=catalogue.micro_usd(request.model, tokens_in, tokens_out, self._clock()),
        )


def _estimated(text: str, count: Callable[[str], int]) -> int:
    """The tokens of a text, extrapolated from its beginning if it is long."""
    beginning = text[:SAMPLE]
    return round(count(beginning) * len(text) / max(1, len(beginning)))


async def _error_text(reply: Reply) -> bytes:
    """The body of an error; b"" if it is too long or incomplete."""
    try:
        return await reply.read(MAX_ERROR_BYTES)
    except UpstreamError:
        return b""
