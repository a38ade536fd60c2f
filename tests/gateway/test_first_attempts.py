"""Which retries are known to be of attempts that failed."""

from __future__ import annotations

import json

from proxy.chat.models.tokens import Tokenizers
from proxy.formats.chat_completions import ChatCompletions
from proxy.gateway.context import ProfileRules, RequestContext
from proxy.gateway.exchange import ChatExchange
from proxy.gateway.identity import Identity
from proxy.gateway.recording.first_attempts import MAX_PENDING, FirstAttempts
from proxy.memory.model import SessionKey
from proxy.memory.prompt.compose import PromptRules
from proxy.memory.prompt.window import Window
from proxy.memory.reconciliation.match import Intent
from proxy.memory.reconciliation.retry import RETRY_SECONDS
from proxy.settings import ProfileSettings
from tests.support.talk.parsing import parse

RULES = ProfileRules.of(ProfileSettings())
COUNTER = Tokenizers().counter_for(None)


def asked(
    words: str = "yes", *, at: float = 1.0, retry: bool = False, key: str | None = None
) -> ChatExchange:
    body = json.dumps({"messages": [{"role": "user", "content": words}]}).encode()
    request = parse(body)
    assert request is not None
    identity = Identity(session="s", retry=retry, idempotency_key=key)
    return ChatExchange(
        id="ex_1",
        began=at,
        format=ChatCompletions(),
        request=request,
        body=body,
        context=RequestContext(SessionKey("t", "s"), identity, RULES, False),
        counter=COUNTER,
        intent=Intent(retry=retry and key is None),
        rules=PromptRules(window=Window()),
        is_side_request=False,
    )


def has_failed(attempts: FirstAttempts, words: str = "yes", at: float = 2.0) -> bool:
    """Is a retry that comes now taken for one of an attempt that failed?"""
    placed, _ = attempts.register(asked(words, at=at, retry=True))
    return not placed.intent.retry


def succeeds(attempts: FirstAttempts, exchange: ChatExchange) -> None:
    _, attempt = attempts.register(exchange)
    assert attempt is not None
    attempts.forget(attempt)


def test_what_is_recorded_has_not_failed() -> None:
    attempts = FirstAttempts()
    succeeds(attempts, asked())
    assert not has_failed(attempts)


def test_another_callers_success_is_none_of_one_that_failed() -> None:
    attempts = FirstAttempts()
    attempts.register(asked())
    succeeds(attempts, asked())
    assert has_failed(attempts)
    succeeds(attempts, asked(retry=True))
    assert not has_failed(attempts)


def test_an_attempt_with_a_key_is_known_by_it() -> None:
    attempts = FirstAttempts()
    assert attempts.register(asked(key="k"))[1] is None
    assert not has_failed(attempts)
    attempts.register(asked())
    assert attempts.register(asked(retry=True, key="k"))[1] is None


def test_an_attempt_that_nobody_has_repeated_is_forgotten() -> None:
    attempts = FirstAttempts()
    attempts.register(asked(at=1.0))
    assert has_failed(attempts, at=RETRY_SECONDS)
    assert not has_failed(attempts, at=1.0 + RETRY_SECONDS)


def test_of_many_that_failed_the_oldest_are_forgotten() -> None:
    attempts = FirstAttempts(max_attempts=1)
    for words in ("older", "newer"):
        attempts.register(asked(words))
    assert (has_failed(attempts, "older"), has_failed(attempts, "newer")) == (False, True)


def test_of_many_at_once_with_the_same_words_some_are_kept() -> None:
    attempts = FirstAttempts()
    for _ in range(2 * MAX_PENDING):
        attempts.register(asked())
    for _ in range(MAX_PENDING):
        assert has_failed(attempts)
        succeeds(attempts, asked(retry=True))
    assert not has_failed(attempts)
