"""What goes into a prompt beside the stored messages, as far as there is room.

``enrich`` puts it there; ``narrowed`` makes all that memory adds smaller.
"""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from proxy.chat.message import last_user
from proxy.gateway.exchange import Loaded, Services
from proxy.gateway.prompt.knowledge_step import KnowledgeStep
from proxy.gateway.prompt.prompt import AssembledPrompt, rendered
from proxy.gateway.prompt.recall_query import query_for, text_at
from proxy.learning.prompt_cards import Known
from proxy.memory.prompt.compose import compose

ANSWER = 1024
"""Tokens kept free for an answer whose request sets no limit."""


class TokenBudget:
    """What the model's context leaves, and the request and its profile allow.

    Evicted turns that no summary covers yet may take the place of all that comes after them.
    """

    def __init__(self, loaded: Loaded, services: Services) -> None:
        exchange, self._services = loaded.exchange, services
        self._request, self._size = exchange.request, len(exchange.body)
        self._counter = exchange.counter
        identity, profile = exchange.context.identity, exchange.context.profile
        self._window = partial(services.window, identity.upstream, exchange.request.model)
        most = profile.max_tokens if exchange.rules.summarised else None
        self._bounds = [bound for bound in (identity.max_tokens, most) if bound is not None]

    async def in_context(self, wanted: int) -> int | None:
        """What the model's context leaves, None if there is room enough for all that is wanted.

        A request has fewer tokens than bytes: only near the limit it is worth counting them.
        """
        answer = self._request.max_output or ANSWER
        all_of_it = wanted + self._size + answer
        await self._services.models.loaded(all_of_it)
        window = self._window(all_of_it)
        if window is None or all_of_it <= window:
            return None
        return max(0, window - answer - await self._said())

    async def left(self, most: int, injected: int) -> int:
        """What of ``most`` may be added, beside what is injected already."""
        room = await self.in_context(injected + most)
        bounds = self._bounds if room is None else [*self._bounds, room]
        return min([most, *(bound - injected for bound in bounds)])

    async def _said(self) -> int:
        said = (*self._request.leading, *self._request.messages)
        return await self._services.aside.run(
            self._size, lambda: sum(self._counter.count(each.legible) for each in said)
        )


async def enrich(loaded: Loaded, services: Services) -> AssembledPrompt:
    """The window within the model's context, what is known of the person, and what is recalled."""
    budget = TokenBudget(loaded, services)
    prompt = AssembledPrompt.of(loaded, loaded.prepared.planned.prompt)
    prompt = await _fitted(prompt, budget, services)
    if not loaded.exchange.enriched:
        return prompt
    prompt = replace(prompt, known=await _known(prompt, budget, services))
    return await _recalled(prompt, budget, services)


def narrowed(
    before: AssembledPrompt, cap: int, services: Services, *, hard: bool
) -> AssembledPrompt:
    """Composed anew within ``cap`` tokens; what is beside the window gets half at least.

    ``hard``: see Rules.
    """
    loaded = before.loaded
    most = max(cap // 2, cap - before.prompt.injected.tokens)
    fits = before.known.tokens <= most
    known = before.known if fits else _chosen(before, most, services.knowledge)
    recall = before.recall.within(most - known.tokens)
    left = cap - known.tokens - recall.tokens
    rules = replace(loaded.exchange.rules, cap=left, capped_by="context_length", hard=hard)
    planned, said = loaded.prepared.planned, loaded.exchange.request.messages
    prompt = compose(loaded.prepared.snapshot, planned.plan, said, rules)
    messages = rendered(loaded, prompt)
    return replace(before, prompt=prompt, messages=messages, known=known, recall=recall)


async def _fitted(
    prompt: AssembledPrompt, budget: TokenBudget, services: Services
) -> AssembledPrompt:
    """Within the model's context window, where that is known."""
    room = await budget.in_context(prompt.tokens) if prompt.tokens else None
    if room is None or prompt.tokens <= room:
        return prompt
    return replace(narrowed(prompt, room, services, hard=False), trimmed=True)


async def _known(prompt: AssembledPrompt, budget: TokenBudget, services: Services) -> Known:
    """What is known of the person and of how to answer."""
    if prompt.loaded.knowledge is None:
        return prompt.known
    most = _share(prompt, prompt.loaded.exchange.context.usual.known_tokens)
    return _chosen(prompt, await budget.left(most, prompt.tokens), services.knowledge)


def _share(prompt: AssembledPrompt, most: int) -> int:
    """What of ``most`` all that is beside the window leaves: it has ``max_tokens`` together."""
    return min(most, prompt.loaded.exchange.context.profile.max_tokens - prompt.beside)


def _chosen(prompt: AssembledPrompt, budget: int, step: KnowledgeStep) -> Known:
    knowledge, exchange = prompt.loaded.knowledge, prompt.loaded.exchange
    if knowledge is None or budget <= 0:
        return Known()
    messages, asked = prompt.messages, exchange.request.last_user
    at = last_user(messages)
    question = text_at(messages, at, asked) if at is not None else ""
    known = step.choose(knowledge, question, budget, exchange.counter.count_lines)
    return known if at is not None else Known(known.head)


async def _recalled(
    prompt: AssembledPrompt, budget: TokenBudget, services: Services
) -> AssembledPrompt:
    """With what recall finds that the window does not show."""
    loaded, exchange = prompt.loaded, prompt.loaded.exchange
    profile = exchange.context.profile
    if not profile.recall.enabled:
        return prompt
    most = _share(prompt, exchange.context.usual.recall_tokens)
    query = query_for(prompt, await budget.left(most, prompt.tokens))
    if query is None:
        return prompt
    query, rewritten = await services.rewrite.finish(
        loaded.rewriting, exchange.context, exchange.request, prompt.messages, query
    )
    recall = await services.recall.remind(query, profile.recall.timeout)
    return replace(prompt, recall=recall, rewritten=rewritten)
