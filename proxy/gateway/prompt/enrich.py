"""Fits the prompt into its token budgets and adds learned memory and recalled passages.

``enrich`` builds the prompt; ``compose_within`` reduces everything that memory adds.
"""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from proxy.chat.message import last_user_index
from proxy.gateway.exchange import LoadedExchange, Services
from proxy.gateway.prompt.knowledge_step import KnowledgeStep
from proxy.gateway.prompt.prompt import AssembledPrompt, render_messages
from proxy.gateway.prompt.recall_query import query_for, text_at
from proxy.learning.prompt_cards import KnownBlocks
from proxy.memory.prompt.compose import compose

DEFAULT_ANSWER_TOKENS = 1024
"""Tokens reserved for the answer if the request sets no limit."""


class TokenBudget:
    """The tokens that memory may add: bounded by the model's context window, the request's header
    and, with a summary, the profile's ``max_tokens``.

    With a summary, evicted turns that it does not cover yet are still sent and may use up the
    budget of what is added after them.
    """

    def __init__(self, loaded: LoadedExchange, services: Services) -> None:
        exchange, self._services = loaded.exchange, services
        self._request, self._size = exchange.request, len(exchange.body)
        self._tenant = exchange.context.key.tenant
        self._counter = exchange.counter
        identity, profile = exchange.context.identity, exchange.context.profile
        self._window = partial(services.window, identity.upstream, exchange.request.model)
        max_tokens = profile.max_tokens if exchange.rules.summaries else None
        self._bounds = [bound for bound in (identity.max_tokens, max_tokens) if bound is not None]

    async def room_in_context(self, tokens: int) -> int | None:
        """Tokens left in the model's context window; None if ``tokens`` tokens fit for certain.

        A request has fewer tokens than bytes, so they are counted only near the limit.
        """
        answer = self._request.max_output or DEFAULT_ANSWER_TOKENS
        upper_bound = tokens + self._size + answer
        await self._services.models.wait_loaded(upper_bound)
        window = self._window(upper_bound)
        if window is None or upper_bound <= window:
            return None
        return max(0, window - answer - await self._request_tokens())

    async def available(self, limit: int, injected: int) -> int:
        """How many of ``limit`` tokens may be added to the ``injected`` ones."""
        context_room = await self.room_in_context(injected + limit)
        bounds = self._bounds if context_room is None else [*self._bounds, context_room]
        return min([limit, *(bound - injected for bound in bounds)])

    async def _request_tokens(self) -> int:
        messages = (*self._request.leading, *self._request.messages)
        return await self._services.threads.run(
            self._tenant,
            self._size,
            lambda: sum(self._counter.count(message.clean_json) for message in messages),
        )


async def enrich(loaded: LoadedExchange, services: Services) -> AssembledPrompt:
    """The prompt: the window fitted into the model's context, learned memory, recalled passages."""
    budget = TokenBudget(loaded, services)
    prompt = AssembledPrompt.of(loaded, loaded.prepared.planned.prompt)
    prompt = await _fit_context(prompt, budget, services)
    if not loaded.exchange.may_enrich:
        return prompt
    prompt = replace(prompt, known=await _choose_known_blocks(prompt, budget, services))
    return await _with_recall(prompt, budget, services)


def compose_within(
    assembled: AssembledPrompt, cap: int, services: Services, *, caps_system: bool
) -> AssembledPrompt:
    """The prompt composed again within ``cap`` tokens, at least half of them for learned memory and
    recall.  ``caps_system``: see PromptRules.
    """
    loaded = assembled.loaded
    extra_room = max(cap // 2, cap - assembled.prompt.injected.tokens)
    fits = assembled.known.tokens <= extra_room
    known = assembled.known if fits else _choose_known(assembled, extra_room, services.knowledge)
    recall = assembled.recall.within(extra_room - known.tokens)
    window_room = cap - known.tokens - recall.tokens
    rules = replace(
        loaded.exchange.rules,
        max_injected_tokens=window_room,
        capped_by="context_length",
        caps_system=caps_system,
    )
    plan, request = loaded.prepared.planned.plan, loaded.exchange.request
    prompt = compose(loaded.prepared.snapshot, plan, request.messages, rules)
    messages = render_messages(loaded, prompt, assembled.text_only)
    return replace(assembled, prompt=prompt, messages=messages, known=known, recall=recall)


async def _fit_context(
    prompt: AssembledPrompt, budget: TokenBudget, services: Services
) -> AssembledPrompt:
    """The prompt, narrowed if it does not fit into the model's context window."""
    room = await budget.room_in_context(prompt.tokens) if prompt.tokens else None
    if room is None or prompt.tokens <= room:
        return prompt
    return replace(compose_within(prompt, room, services, caps_system=False), trimmed=True)


async def _choose_known_blocks(
    prompt: AssembledPrompt, budget: TokenBudget, services: Services
) -> KnownBlocks:
    if prompt.loaded.knowledge is None:
        return prompt.known
    limit = _within_profile(prompt, prompt.loaded.exchange.context.profile_rules.max_learned_tokens)
    return _choose_known(prompt, await budget.available(limit, prompt.tokens), services.knowledge)


def _within_profile(prompt: AssembledPrompt, limit: int) -> int:
    """``limit``, lowered so that everything beside the window stays within ``max_tokens``."""
    return min(limit, prompt.loaded.exchange.context.profile.max_tokens - prompt.extra_tokens)


def _choose_known(prompt: AssembledPrompt, budget: int, step: KnowledgeStep) -> KnownBlocks:
    knowledge, exchange = prompt.loaded.knowledge, prompt.loaded.exchange
    if knowledge is None or budget <= 0:
        return KnownBlocks()
    messages, last = prompt.messages, exchange.request.last_user
    at = last_user_index(messages)
    question = text_at(messages, at, last) if at is not None else ""
    known = step.choose(knowledge, question, budget, exchange.counter.count_lines)
    return known if at is not None else KnownBlocks(known.head)


async def _with_recall(
    prompt: AssembledPrompt, budget: TokenBudget, services: Services
) -> AssembledPrompt:
    """The prompt with recalled passages that are not in the window."""
    loaded, exchange = prompt.loaded, prompt.loaded.exchange
    profile = exchange.context.profile
    if not profile.recall.enabled:
        return prompt
    limit = _within_profile(prompt, exchange.context.profile_rules.max_recall_tokens)
    query = query_for(prompt, await budget.available(limit, prompt.tokens))
    if query is None:
        return prompt
    query, rewritten = await services.rewrite.finish(
        loaded.rewriting, exchange.context, exchange.request, prompt.messages, query
    )
    recall = await services.recall.recall(query, profile.recall.timeout)
    return replace(prompt, recall=recall, rewritten=rewritten)
