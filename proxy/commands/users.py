"""``memory-proxy users``: people, and all that is kept of them."""

from __future__ import annotations

import typer

from proxy.commands.command import CommandContext, Limit, User, Yes, command
from proxy.commands.output import ago
from proxy.commands.sessions import erase
from proxy.commands.transfer import STANDARD, Target, export
from proxy.integrations.terms import segment

users = typer.Typer(help="People.", no_args_is_help=True)

COLUMNS = {"id": "id", "sessions": "sessions", "active": "last_active_at"}


@command(users, "list")
def list_(context: CommandContext, limit: Limit = None) -> None:
    """Who has been active, the newest first: 100, or all with --json."""
    context.listing("/users", COLUMNS, "There are no people with a user id", limit, 100)


@command(users, "show")
def show(context: CommandContext, user: User) -> None:
    """How much is kept of a person."""
    found = context.api.ask("GET", f"/users/{segment(user)}")
    known = ", ".join(f"{count} {kind}" for kind, count in found["memories"].items() if count)
    active = found["last_active_at"]
    fields = {
        "user": found["id"],
        "sessions": found["sessions"],
        "messages": found["messages"],
        "tokens": found["tokens"],
        "memories": known or None,
        "last active": ago(active) if active is not None else None,
    }
    context.out.print_object(found, fields)


@command(users, "export")
def export_(context: CommandContext, user: User, output: Target = STANDARD) -> None:
    """All that is kept of a person as NDJSON, to be imported again."""
    path = f"/users/{segment(user)}"
    sessions = context.api.ask("GET", path)["sessions"]
    export(context, f"{path}/export", output, sessions, None)


@command(users, "erase")
def erase_(context: CommandContext, user: User, yes: Yes = False) -> None:
    """Erase all that is kept of a person, for good, with a receipt."""
    erase(context, f"/users/{segment(user)}", f"user {user}", yes=yes)
