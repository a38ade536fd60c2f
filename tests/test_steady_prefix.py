"""The prompt keeps a steady prefix, so that upstreams bill most of it as cached."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from proxy.chat.tokens import Tokenizers
from tests.support.answers import chat_completion, json_answer
from tests.support.running import running, settings_for
from tests.support.upstream import ScriptedUpstream

TURNS, MEMORY = 60, 2_500
WINDOW = 2_000
"""What is left to the window beside what recall may take."""
WORDS = ["the", "trip", "went", "by", "train", "over", "mountains", "and", "each", "day", "rain"]


def text(turn: int, words: int) -> str:
    return f"[{turn}] " + " ".join(WORDS[(turn + k) % len(WORDS)] for k in range(words))


async def test_most_prompt_tokens_are_in_the_prefix_of_the_request_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with ScriptedUpstream() as up:
        settings = settings_for(tmp_path, up.url, memory__max_tokens=MEMORY)
        async with running(settings) as proxy, httpx.AsyncClient(base_url=proxy.v1) as client:
            for turn in range(TURNS):
                up.reply(json_answer(chat_completion(text(turn, 60 + turn % 30))))
                message = {"role": "user", "content": text(turn, 20 + turn % 25)}
                answer = await client.post(
                    "/chat/completions",
                    headers={"x-session-id": "s"},
                    json={"model": "m", "messages": [message]},
                )
                assert answer.status_code == 200
                assert int(answer.headers["x-memory-tokens"]) <= MEMORY
        share, steps = steadiness([request.messages for request in up.requests])
    with capsys.disabled():
        print(f"\nsteady prefix: {share:.1%} of the prompt tokens, {steps} steps of the window")
    assert steps >= 3
    assert share >= 0.80


def steadiness(prompts: list[list[dict[str, object]]]) -> tuple[float, int]:
    """The share of all prompt tokens that stand in a prefix equal to the prompt before's, and how
    often the prefix broke at its very first message."""
    count = Tokenizers().counter_for("m").count
    steady = total = steps = 0
    for before, now in zip(prompts, prompts[1:], strict=False):
        same = next(
            (k for k, (a, b) in enumerate(zip(before, now, strict=False)) if a != b),
            min(len(before), len(now)),
        )
        tokens = [count(message) for message in now]
        steady, total = steady + sum(tokens[:same]), total + sum(tokens)
        steps += same == 0
    return steady / total, steps
