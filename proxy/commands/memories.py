"""``memory-proxy memories``: what is known of a person."""

from __future__ import annotations

from typing import Annotated

import typer

from proxy.commands.command import CommandContext, Limit, User, Yes, command
from proxy.commands.failure import USAGE, CommandError
from proxy.commands.output import Object, field_table
from proxy.integrations.terms import segment

memories = typer.Typer(help="What is known of a person.", no_args_is_help=True)

Memory = Annotated[str, typer.Argument(help="The memory's id.")]
Kind = Annotated[
    str | None,
    typer.Option(metavar="KIND,..", help="Only these: fact, instruction, preference, episode."),
]
State = Annotated[
    str | None,
    typer.Option(
        metavar="STATE,..", help="current (the default), expired, superseded, quarantined."
    ),
]

COLUMNS = {"id": "id", "kind": "kind", "state": "state", "text": "text", "created": "created_at"}
FOUND = {"score": "score", "kind": "kind", "text": "text", "id": "id"}


def path_of(user: str, memory: str | None = None) -> str:
    path = f"/users/{segment(user)}/memories"
    return path if memory is None else f"{path}/{segment(memory)}"


@command(memories, "list")
def list_(
    context: CommandContext, user: User, kind: Kind = None, state: State = None, limit: Limit = None
) -> None:
    """What is kept of a person beside what was said: 100, or all with --json."""
    none, filters = "Nothing is known of this person", {"kind": kind, "state": state}
    context.listing(path_of(user), COLUMNS, none, limit, 100, filters)


@command(memories, "search")
def search(
    context: CommandContext,
    user: User,
    query: Annotated[str, typer.Argument(help="A question, or words.")],
    limit: Annotated[int, typer.Option(min=1, max=100, help="How many at most.")] = 10,
) -> None:
    """What recall would find for a question, best first."""
    found = context.send("POST", f"{path_of(user)}/search", {"query": query, "limit": limit})
    if not context.out.print_list(found["data"], FOUND):
        context.out.note("Nothing is found.")


@command(memories, "add")
def add(
    context: CommandContext,
    user: User,
    text: Annotated[str, typer.Argument(help="One short sentence.")],
) -> None:
    """Add a fact about a person."""
    _one(context, context.send("POST", path_of(user), {"text": text}))


@command(memories, "edit")
def edit(
    context: CommandContext,
    user: User,
    memory: Memory,
    text: Annotated[str | None, typer.Option(help="What it shall say.")] = None,
    state: Annotated[str | None, typer.Option(help="current or superseded.")] = None,
) -> None:
    """Change a fact.  What it said before is not kept."""
    if text is None and state is None:
        raise CommandError("Say what to change: --text or --state.", USAGE)
    _one(context, context.send("PATCH", path_of(user, memory), {"text": text, "state": state}))


@command(memories, "forget")
def forget(context: CommandContext, user: User, memory: Memory, yes: Yes = False) -> None:
    """Remove one memory.  What was said stays in history."""
    if not yes:
        found = context.api.ask("GET", path_of(user, memory))
        context.out.stderr.print(field_table(_fields(found)))
    context.confirm("Forget it?", yes=yes)
    gone = context.api.ask("DELETE", path_of(user, memory))
    if context.out.as_json:
        return context.out.print_json(gone)
    context.out.note("forgotten")


def _one(context: CommandContext, memory: Object) -> None:
    context.out.print_object(memory, _fields(memory))


def _fields(memory: Object) -> Object:
    names = ("id", "kind", "state", "text", "about", "message_id", "session_id")
    return {name: memory.get(name) for name in names}
