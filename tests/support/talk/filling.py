"""Many sessions at once, through the memory API."""

from __future__ import annotations

import asyncio

import httpx

TOPICS = (
    "Plan a trip to Lisbon in May",
    "Why does my sourdough not rise?",
    "请帮我写一封给客户的道歉邮件",
    "Refactor this function",
    "What is the difference between TCP and QUIC?",
    "اقترح وصفة عشاء سريعة",
)
PEOPLE = 40
AT_ONCE = 16


async def fill(
    client: httpx.AsyncClient, count: int, name: str = "chat", now: int = 1_760_000_000
) -> None:
    """``count`` sessions, named chat-00000 and on, the last one the newest."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> None:
        messages = [
            {"role": "user", "content": f"{TOPICS[number % len(TOPICS)]} ({number})"},
            {"role": "assistant", "content": "Certainly. " * (1 + number % 30)},
        ]
        at = now + 60 * number
        body = {"messages": messages, "created_at": [at, at + 5]}
        user = {"user": f"user-{number % PEOPLE}"} if number % 3 else {}
        async with gate:
            path = f"/memory/v1/sessions/{name}-{number:05d}/messages"
            answer = await client.post(path, json={**body, **user})
        assert answer.status_code == 200, answer.text

    await asyncio.gather(*(one(number) for number in range(count)))
