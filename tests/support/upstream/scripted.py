"""The upstream of all tests: a real server on a socket that speaks bytes and does as it is told.

It parses HTTP/1.1 by itself, records each request as it came, refuses requests that OpenAI or
Anthropic would refuse, and answers from a script.  Nothing of the proxy is used here.

    async with ScriptedUpstream() as up:
        up.reply(json_answer(chat_completion("hello")))
        up.reply(sse(chat_stream(["he", "llo"])))

Without a script it answers "reply N: <last user text>", N counting from 1, streamed if asked to.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Callable
from typing import Any

from tests.support.tcp import TcpServer
from tests.support.upstream import anthropic
from tests.support.upstream.answers import (
    DROPPED,
    SILENT,
    Script,
    chat_completion,
    chat_stream,
    error_answer,
    json_answer,
    pieces_of,
    sse,
    tool_call,
)
from tests.support.upstream.connection import Connection, Request
from tests.support.upstream.strict import Refused, validate
from tests.support.waiting import PATIENCE

__all__ = [
    "DROPPED",
    "SILENT",
    "Request",
    "Script",
    "ScriptedUpstream",
    "chat_completion",
    "chat_stream",
    "error_answer",
    "json_answer",
    "pieces_of",
    "sse",
    "tool_call",
]

MAX_HEAD = 1 << 20


Answer = Script | Callable[[Request], Script]


class ScriptedUpstream(TcpServer):
    """``strict`` refuses what OpenAI would; ``one_system`` and ``alternating`` what many local chat
    templates would; ``any_ids`` does not compare the ids of calls and results.
    """

    def __init__(
        self,
        *,
        strict: bool = True,
        one_system: bool = False,
        alternating: bool = False,
        any_ids: bool = False,
        port: int = 0,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(port, ssl_context, MAX_HEAD)
        self.strict = strict
        self.rules = {
            "one_system": one_system,
            "alternating": alternating,
            "any_ids": any_ids,
        }
        self.merges = False
        """Are messages of one role in a row one, as Anthropic has it and others do not?"""
        self.requests: list[Request] = []
        self.open_connections = 0
        self.total_connections = 0
        self.read_gate: asyncio.Event | None = None
        """While there is one, bodies are not read before it is set."""
        self.answer_early: Script | None = None
        """Said as soon as a head has arrived; its body is then read and forgotten."""
        self._queue: deque[Answer] = deque()
        self._always: Answer | None = None
        self._changed = asyncio.Condition()
        self._replies = 0

    @property
    def url(self) -> str:
        return f"{self.origin}/v1"

    @property
    def refused(self) -> list[str]:
        """Why chat requests were not valid; empty is what tests want to see."""
        return [request.refused for request in self.requests if request.refused]

    def reply(self, *answers: Answer) -> None:
        """Queue answers, one a request."""
        self._queue.extend(answers)

    def always(self, answer: Answer | None) -> None:
        """Answer with this whenever the queue is empty; None goes back to the default."""
        self._always = answer

    def reply_to_nobody(self) -> None:
        """Forget every script; the default answers again, counting from 1."""
        self._queue.clear()
        self._always = self.answer_early = self.read_gate = None
        self._replies = 0

    async def wait_for(self, count: int = 1, timeout: float = PATIENCE) -> Request:
        """The ``count``-th request, as soon as it has arrived whole."""
        await self._until(lambda: len(self.requests) >= count, timeout)
        return self.requests[count - 1]

    async def wait_connections(self, count: int, timeout: float = PATIENCE) -> None:
        """Until exactly so many connections are open."""
        await self._until(lambda: self.open_connections == count, timeout)

    async def _until(self, true: Callable[[], bool], timeout: float) -> None:
        async with asyncio.timeout(timeout), self._changed:
            await self._changed.wait_for(true)

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open_connections += 1
        self.total_connections += 1
        line = Connection(reader, writer)
        try:
            await self._answer_all(line, self.total_connections)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the other side left, or the test is over
        finally:
            line.close()
            self.open_connections -= 1
            await self._notify()

    async def _answer_all(self, line: Connection, number: int) -> None:
        await self._notify()
        while True:
            request = await line.head(number)
            if self.read_gate is not None:
                await self.read_gate.wait()
            if self.answer_early is not None:
                await line.early(request, self.answer_early)
                return
            request.body = await line.body(request)
            script = self._script(request)
            self.requests.append(request)
            await self._notify()
            if not await self._answer(line, request, script):
                return

    async def _answer(self, line: Connection, request: Request, script: Script) -> bool:
        """Answer while watching for the client to leave; True if the connection stays open."""
        said = asyncio.ensure_future(line.say(request, script))
        left = line.watch()
        try:
            await asyncio.wait({said, left}, return_when=asyncio.FIRST_COMPLETED)
            if not said.done() and left.result() == b"":
                request.gone.set()
                return False
            keep = await said
            request.answered.set()
            return keep
        except ConnectionError:
            request.gone.set()
            return False
        finally:
            said.cancel()
            await asyncio.wait({said})
            if not said.cancelled():
                said.exception()
            await self._notify()

    def _script(self, request: Request) -> Script:
        if request.method == "POST" and self.strict:
            try:
                self._validate(request)
            except Refused as refused:
                request.refused = f"{refused} ({refused.param})"
                if _is_messages(request):
                    return anthropic.refusal(400, f"{refused.param}: {refused}")
                return error_answer(400, str(refused), param=refused.param)
        answer = self._queue.popleft() if self._queue else (self._always or self._default)
        return answer if isinstance(answer, Script) else answer(request)

    def _validate(self, request: Request) -> None:
        if request.path.endswith("/chat/completions"):
            validate(request.json, **self.rules)
        elif _is_messages(request):
            headers = {name.decode().lower(): value.decode() for name, value in request.headers}
            counting = request.path.endswith("/count_tokens")
            strict = {"counting": counting, "alternating": not self.merges}
            anthropic.validate(request.json, headers, **strict)

    def _default(self, request: Request) -> Script:
        if request.path.endswith("/models"):
            return json_answer(
                {"object": "list", "data": [{"id": "scripted-1", "object": "model"}]}
            )
        if request.path.endswith("/messages/count_tokens"):
            return json_answer({"input_tokens": len(request.body)})
        if not request.path.endswith(("/chat/completions", "/messages")):
            return json_answer({"object": "echo", "path": request.path, "bytes": len(request.body)})
        self._replies += 1
        body = request.json if isinstance(request.json, dict) else {}
        text = f"reply {self._replies}: {_last_user(body)}"
        if _is_messages(request):
            said = anthropic.text(text)
            return anthropic.answered(said, stream=bool(body.get("stream")))
        n = body.get("n") or 1
        if not body.get("stream"):
            return json_answer(chat_completion(text, n=n))
        usage = bool((body.get("stream_options") or {}).get("include_usage"))
        words = [word + " " for word in text.split(" ")]
        words[-1] = words[-1][:-1]
        return sse(chat_stream(words, include_usage=usage, n=n))


def _is_messages(request: Request) -> bool:
    return request.path.endswith(("/messages", "/messages/count_tokens"))


def _last_user(body: Any) -> str:
    for message in reversed(body.get("messages") or []):
        if message.get("role") == "user":
            content = message["content"]
            if isinstance(content, str):
                return content
            return " ".join(part.get("text", "") for part in content)
    return ""
