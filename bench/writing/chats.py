"""One person's chat through the proxy, turn by turn, over a connection of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from bench.cost.added import chat_request
from bench.processes import Process
from bench.wire import Answer, Connection, connect
from proxy.memory.model import message_id


@dataclass(frozen=True, slots=True)
class Chat:
    connection: Connection
    profile: str
    user: str
    session: str

    async def say(self, text: str) -> Answer:
        """Raises RuntimeError for an answer that is none."""
        answer = await self.connection.ask(
            chat_request(
                text,
                [
                    f"x-memory-profile: {self.profile}",
                    f"x-user-id: {self.user}",
                    f"x-session-id: {self.session}",
                ],
            )
        )
        if answer.status != 200:
            raise RuntimeError(f"an answer had status {answer.status}")
        return answer


@asynccontextmanager
async def chatting(proxy: Process, profile: str, user: str, session: str) -> AsyncIterator[Chat]:
    connection = await connect(proxy.port)
    try:
        yield Chat(connection, profile, user, session)
    finally:
        connection.close()


def is_degraded(answer: Answer) -> bool:
    """Did it go without memory, because the store took too long?"""
    return answer.headers.get(b"x-memory-status") not in (b"applied", b"empty")


def answer_id(answer: Answer) -> str:
    """The message that an exchange of one question was answered with."""
    return message_id(answer.headers[b"x-memory-exchange-id"].decode(), 1)
