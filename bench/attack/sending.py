"""Requests as bytes, and blocking connections that send them: attackers run in threads."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

ATTACKER = "sk-attacker"
MAX_SECONDS = 150.0
"""Seconds after which a connection of an attacker is given up."""

Json = dict[str, Any]


def messages_body(messages: Iterable[Json]) -> bytes:
    return json.dumps({"model": "mock", "messages": list(messages)}).encode()


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def assistant(text: str) -> Json:
    return {"role": "assistant", "content": text}


def head(key: str, method: str, path: str, length: int, more: bytes = b"") -> bytes:
    """Of a request with a body of so many bytes; ``more`` are further lines."""
    return (
        b"%b %b HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer %b\r\n"
        b"content-type: application/json\r\ncontent-length: %d\r\n%b\r\n"
        % (method.encode(), path.encode(), key.encode(), length, more)
    )


def chat(key: str, session: str, messages: Iterable[Json], more: bytes = b"") -> bytes:
    """A chat request."""
    body = messages_body(messages)
    return chat_head(session, len(body), key, more) + body


def chat_head(session: str, length: int, key: str = ATTACKER, more: bytes = b"") -> bytes:
    """The head of one with a body of so many bytes."""
    more += b"x-session-id: %b\r\n" % session.encode()
    return head(key, "POST", "/v1/chat/completions", length, more)


class Attacker:
    """Asks the proxy at ``port`` as one tenant; ``statuses`` is what it was answered."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.statuses: list[str] = []

    def chat(self, session: str, body: bytes, **more: str) -> None:
        headers = {"x-session-id": session, **{k.replace("_", "-"): v for k, v in more.items()}}
        self.ask("POST", "/v1/chat/completions", body, headers)

    def ask(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> None:
        """One request on a connection of its own."""
        sent = {"authorization": f"Bearer {ATTACKER}", "content-type": "application/json"}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=MAX_SECONDS)
        try:
            connection.request(method, path, body, {**sent, **(headers or {})})
            answer = connection.getresponse()
            while answer.read(1 << 20):
                pass
            status = answer.headers.get("x-memory-status", "")
            reason = answer.headers.get("x-memory-reason", "")
            self.statuses.append(" ".join(filter(None, [str(answer.status), status, reason])))
        except (OSError, http.client.HTTPException) as error:
            self.statuses.append(type(error).__name__)
        finally:
            connection.close()

    def raw(self, pieces: Iterable[bytes], seconds: float) -> None:
        """Send these on one connection until it is closed on us or the time is over."""
        until, sent = time.monotonic() + seconds, 0
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 5) as line:
            line.settimeout(10)
            for piece in pieces:
                line.sendall(piece)
                sent += len(piece)
                if time.monotonic() > until:
                    break
        self.statuses.append(f"{sent / 1e6:.0f} MB")
