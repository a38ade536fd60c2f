"""LangChain's chat message history, kept by the proxy.  Needs ``memory-proxy[langchain]``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import dropwhile
from typing import Any

import httpx
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import BaseMessage

from proxy.integrations.api import MemoryApi, encoded
from proxy.integrations.messages import SYSTEM_ROLES, Wire, from_openai, to_openai
from proxy.integrations.terms import DEFAULT_URL, NO_TENANT, MemoryProxyError, segment

__all__ = ["MemoryProxyChatMessageHistory", "MemoryProxyError"]

PAGE = "1000"
"""Messages that one request may list."""

NOTHING_YET = ("session_not_found", NO_TENANT)


class MemoryProxyChatMessageHistory(BaseChatMessageHistory):
    """The messages of a session of the proxy.  All methods raise MemoryProxyError.

    A session has its system messages at its beginning: those that are added later take the place
    of the earlier ones.  ``user_id`` is whose session it becomes.  ``api_key`` is the one that the
    application chats with, ``tenant`` is for the administrator's key.  Give all histories one
    ``client``: without it each opens connections of its own.

    Ids, response metadata and usage of messages are not kept.
    """

    def __init__(
        self,
        session_id: str,
        base_url: str = DEFAULT_URL,
        api_key: str | None = None,
        tenant: str | None = None,
        client: httpx.Client | None = None,
        *,
        user_id: str | None = None,
    ) -> None:
        self._api = MemoryApi(base_url, api_key, tenant, client)
        self._session = f"/sessions/{segment(session_id)}"
        self._user = user_id

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]  # read only: see add_messages
        """The active ones, with those that the proxy recorded in chats of this session."""
        try:
            system = self._api.ask("GET", self._session)["system_messages"]
            return [from_openai(wire) for wire in (*system, *self._log())]
        except MemoryProxyError as error:
            if error.code in NOTHING_YET:
                return []
            raise

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """All of them or none.  Raises ValueError for a system message behind another one."""
        wires = to_openai(messages)
        if not wires:
            return
        _check(wires)
        body = encoded({"messages": wires, "user": self._user})
        self._api.ask("POST", f"{self._session}/messages", body=body)

    def clear(self) -> None:
        """Delete the session with all that it owns."""
        try:
            self._api.ask("DELETE", self._session)
        except MemoryProxyError as error:
            if error.code not in NOTHING_YET:
                raise

    def close(self) -> None:
        """Close the connections, unless the client was given."""
        self._api.close()

    def _log(self) -> Iterator[Wire]:
        """The messages but the system ones, page by page."""
        after = "0"
        while after is not None:
            asked = [("limit", PAGE), ("after", after)]
            page: dict[str, Any] = self._api.ask("GET", f"{self._session}/messages", asked)
            yield from (item["message"] for item in page["data"])
            after = page["next"]


def _check(wires: Sequence[Wire]) -> None:
    """The proxy would drop a system message that comes later."""
    later = dropwhile(lambda wire: wire["role"] in SYSTEM_ROLES, wires)
    if any(wire["role"] in SYSTEM_ROLES for wire in later):
        raise ValueError("System messages come before all others of one call.")
