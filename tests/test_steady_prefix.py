"""The prompt keeps a steady prefix, so that upstreams bill most of it as cached."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from proxy.background.completion import Assignment
from proxy.chat.models.tokens import Tokenizers
from tests.support.learning.harness import ScriptedModel, states
from tests.support.processes.running import running, settings_for
from tests.support.store.inside import store_at
from tests.support.talk.recalling import blocks_in
from tests.support.upstream.answers import Script, chat_completion, json_answer
from tests.support.upstream.connection import Request
from tests.support.upstream.scribing import markers, nothing_waits
from tests.support.upstream.scripted import ScriptedUpstream

Message = dict[str, Any]

TURNS = 60
WINDOW = 2_000
"""What is left to the window beside what summary, recall and facts may take."""
BLOCK = 300
"""What the summary may take, and what facts may."""
WORDS = ["the", "trip", "went", "by", "train", "over", "mountains", "and", "each", "day", "rain"]
SUMMARY = {"enabled": True, "model": "summarizer", "max_tokens": BLOCK}
FACTS = {"enabled": True, "model": "learner", "max_tokens": BLOCK, "after_turns": 1}
FACTS_BLOCK = r'<memory version="1" kind="facts">.*?</memory>\s*'
LIKES = ScriptedModel([states(r"I like (\w+)", "The user likes {}.")])


def text(turn: int, words: int) -> str:
    return f"[{turn}] " + " ".join(WORDS[(turn + k) % len(WORDS)] for k in range(words))


def play(request: Request) -> Script:
    """Chats by long answers, and what writes memory by what it is to write."""
    asked = request.messages[-1]["content"]
    last = int(markers(asked)[-1])
    written = {
        "m": lambda: text(last, 60 + last % 30),
        "summarizer": lambda: f"So far until turn {last}: {text(last, 120)}",
        "learner": lambda: LIKES._by_rules(Assignment("t", "facts", asked)),
    }
    return json_answer(chat_completion(written[request.json["model"]]()))


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({}, id="window"),
        pytest.param({"summary": SUMMARY}, id="summary"),
        pytest.param({"facts": FACTS}, id="facts"),
        pytest.param({"summary": SUMMARY, "facts": FACTS}, id="both"),
    ],
)
async def test_most_prompt_tokens_are_in_the_prefix_of_the_request_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], parts: dict[str, Any]
) -> None:
    most = (WINDOW + len(parts) * BLOCK) * 5 // 4  # a fifth is for recall
    async with ScriptedUpstream() as up:
        up.always(play)
        settings = settings_for(tmp_path, up.url, memory={"max_tokens": most, **parts})
        async with (
            running(settings) as proxy,
            httpx.AsyncClient(base_url=proxy.v1) as client,
            store_at(settings.store.url) as store,
        ):
            for turn in range(TURNS):
                said = f"{text(turn, 13 + turn % 25)}. I like thing{turn}."
                answer = await client.post(
                    "/chat/completions",
                    headers={"x-session-id": "s", "x-user-id": "kai"},
                    json={"model": "m", "messages": [{"role": "user", "content": said}]},
                )
                assert answer.status_code == 200
                assert int(answer.headers["x-memory-tokens"]) <= most
                await nothing_waits(store)
    prompts = [request.messages for request in up.requests if request.json["model"] == "m"]
    assert blocks_in(prompts[-1]).keys() == parts.keys()
    share, steps = steadiness([[*prompt[:-1], bare(prompt[-1])] for prompt in prompts])
    with capsys.disabled():
        what = " and ".join(parts) or "the window alone"
        print(f"\nsteady prefix, {what}: {share:.1%} of the prompt tokens, {steps} steps")
        if "facts" in parts:
            print(f"{steadiness(prompts)[0]:.1%} with the facts before the last message counted")
    assert steps >= 3
    assert share >= 0.80


def steadiness(prompts: list[list[Message]]) -> tuple[float, int]:
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


def bare(message: Message) -> Message:
    """The last message of a prompt as it is remembered: without what is known of the user."""
    return {**message, "content": re.sub(FACTS_BLOCK, "", message["content"], flags=re.DOTALL)}
