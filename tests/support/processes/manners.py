"""What each client does, in the words of docs/clients.md: told by the catalogue alone.  Pure."""

from __future__ import annotations

from tests.support.processes.agents import AGENTS, Agent
from tests.support.processes.applications import Client
from tests.support.processes.catalogue import (
    CLIENTS,
    NEVER_RETRIES,
    SPEAKS_MESSAGES,
    TELLS_CALLS_AS_TEXT,
    WAITS_WHEN_BUSY,
)

APIS = {"chat": "chat completions", "responses": "Responses"}

Manner = tuple[str, str, str, str]
"""Its API; tools; what it sends of a conversation; errors."""


def manner_of(client: Client) -> Manner:
    api = "Messages" if client.name in SPEAKS_MESSAGES else APIS[client.api]
    sends = "all that was said" if "converse" in client.does else "what is new"
    return api, _tools(client), sends, _errors(client)


def _tools(client: Client) -> str:
    if client.name in TELLS_CALLS_AS_TEXT:
        return "loops, told as text"
    if "tools" in client.does:
        return "loops"
    return "a forced call" if "extract" in client.does else "not tried"


def _errors(client: Client) -> str:
    if client.name in WAITS_WHEN_BUSY:
        return "as they are; waits when the upstream is busy"
    return "as they are" if client.name in NEVER_RETRIES else "as they are; retries by itself"


def manners() -> list[list[str]]:
    """Rows: clients that do the same, in the order of the catalogue, and what that is."""
    found: dict[Manner, list[str]] = {}
    for client in CLIENTS:
        found.setdefault(manner_of(client), []).append(f"`{client.program}`")
    rows = [[", ".join(names), *manner] for manner, names in found.items()]
    return rows + [[f"`{agent.name}`", *_manner_of_agent(agent)] for agent in AGENTS]


def _manner_of_agent(agent: Agent) -> Manner:
    tools = "loops, sub-agents" if agent.helps else "loops"
    sends = "all that was said, or a summary"
    return agent.api, tools, sends, "as they are; retries by itself"
