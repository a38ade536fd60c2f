"""``memory-proxy sessions``: conversations listed, shown, followed, moved, branched and deleted."""

from __future__ import annotations

import time
from itertools import count
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from proxy.commands.command import CommandContext, Limit, OnlyUser, Yes, command
from proxy.commands.failure import USAGE, CommandError
from proxy.commands.output import Object, count_of, render_message, render_session
from proxy.commands.transfer import STANDARD, Target, export, import_file, working
from proxy.integrations.terms import segment
from proxy.portable.names import FORMATS

sessions = typer.Typer(help="Conversations.", no_args_is_help=True)

Session = Annotated[str, typer.Argument(help="The session's id.")]

COLUMNS = {
    "id": "id",
    "user": "user_id",
    "about": "title|preview",
    "messages": "messages",
    "tokens": "tokens",
    "active": "last_active_at",
}
EVERY_STATE = "active,superseded"
POLL_SECONDS = 1.0
"""Seconds from one look for new messages to the next."""


@command(sessions, "list")
def list_(
    context: CommandContext,
    user: OnlyUser = None,
    query: Annotated[str | None, typer.Option(help="Text in the id, title or user.")] = None,
    limit: Limit = None,
) -> None:
    """The newest sessions first: 50, or all with --json."""
    filters = {"user": user, "query": query}
    none = "There are no sessions"
    context.listing("/sessions", COLUMNS, none, limit, 50, filters, preview="true")


@command(sessions, "show")
def show(
    context: CommandContext,
    session: Session,
    branches: Annotated[bool, typer.Option(help="Superseded messages too.")] = False,
) -> None:
    """A conversation, with what the summary covers and where the window starts."""
    path = f"/sessions/{segment(session)}"
    found = context.api.ask("GET", path)
    states = EVERY_STATE if branches else "active"
    messages = list(context.pages(f"{path}/messages", state=states))
    if context.out.as_json:
        context.out.print_json({**found, "data": messages})
        return
    context.out.print_object(found, facts(found))
    context.out.note("")
    for text in render_session(found, messages):
        context.out.console.print(text, soft_wrap=True)


def facts(session: Object) -> dict[str, object]:
    """What is said of a session itself."""
    summary = session["summary"]
    return {
        "session": session["id"],
        "user": session["user_id"],
        "title": session["title"],
        "messages": session["messages"],
        "tokens": session["tokens"],
        "summary": summary["text"] if summary else None,
        "metadata": session["metadata"] or None,
        "ttl": f"{session['ttl']} s" if session["ttl"] else None,
    }


@command(sessions, "tail")
def tail(
    context: CommandContext,
    session: Session,
    lines: Annotated[
        int, typer.Option("--lines", "-n", min=0, help="How many to begin with.")
    ] = 10,
    follow: Annotated[bool, typer.Option(help="Wait for more.")] = True,
) -> None:
    """The end of a conversation, and what is added to it."""
    path = f"/sessions/{segment(session)}"
    end = context.api.ask("GET", path)["end"]
    known = _last(context, f"{path}/messages", end, lines)
    _print(context, known[-lines:] if lines else [])
    seen = max([end, *(message["seq"] for message in known)])
    for _ in count() if follow else ():
        time.sleep(POLL_SECONDS)
        new = list(context.pages(f"{path}/messages", after=str(seen)))
        _print(context, new)
        seen = max([seen, *(message["seq"] for message in new)])


def _last(context: CommandContext, path: str, end: int, lines: int) -> list[Object]:
    """The last messages, ``lines`` at least if there are so many.

    Where the conversation was rewound most seqs before its end are not of active ones.
    """
    back = 2 * lines + 20
    while True:
        after = max(0, end - back)
        known = list(context.pages(path, after=str(after)))
        if len(known) >= lines or not after:
            return known
        back *= 2


def _print(context: CommandContext, messages: list[Object]) -> None:
    for message in messages:
        if context.out.as_json:
            context.out.print_json(message)
            continue
        for text in render_message(message):
            context.out.console.print(text, soft_wrap=True)


@command(sessions, "export")
def export_(
    context: CommandContext,
    session: Annotated[str | None, typer.Argument(help="One session; else all of them.")] = None,
    user: OnlyUser = None,
    output: Target = STANDARD,
) -> None:
    """Everything as NDJSON, to be imported again: a session, a person's, or the whole tenant's."""
    if session is not None and user is not None:
        raise CommandError("Name a session or --user, not both.", USAGE)
    if session is not None:
        export(context, f"/sessions/{segment(session)}/export", output, 1, None)
    else:
        export(context, "/export", output, None, user)


@command(sessions, "import")
def import_(
    context: CommandContext,
    files: Annotated[list[Path], typer.Argument(metavar="FILE..", help='"-" is standard input.')],
    format: Annotated[str, typer.Option(help=f"auto, {', '.join(FORMATS)}.")] = "auto",
    session: Annotated[str | None, typer.Option(help="The id for a single conversation.")] = None,
    user: Annotated[str | None, typer.Option(help="The person whose they are.")] = None,
    conflict: Annotated[str, typer.Option(help="Where a session exists: skip or error.")] = "skip",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count, change nothing.")] = False,
) -> None:
    """Bring in exports, or what other programs have kept."""
    if session is not None and len(files) > 1:
        raise CommandError("--session names one conversation, and there are several files.", USAGE)
    given = {"format": format, "conflict": conflict, "session": session, "user": user}
    params = [(name, value) for name, value in given.items() if value is not None]
    params += [("dry_run", "true")] if dry_run else []
    for file in files:
        if len(files) > 1:
            context.out.stderr.print(Text(str(file)))
        import_file(context, file, params)


@command(sessions, "fork")
def fork(
    context: CommandContext,
    session: Session,
    new: Annotated[str, typer.Argument(help="The id of the copy.")],
    until: Annotated[str | None, typer.Option(help="The last message of the copy.")] = None,
    title: Annotated[str | None, typer.Option(help="What the copy is called.")] = None,
) -> None:
    """Copy a conversation, to go on differently."""
    fields = {"id": new, "until": until, "title": title}
    found = context.send("POST", f"/sessions/{segment(session)}/fork", fields, long=True)
    context.out.print_object(found, facts(found))


@command(sessions, "rewind")
def rewind(
    context: CommandContext,
    session: Session,
    turns: Annotated[int | None, typer.Option(min=1, help="How many turns leave.")] = None,
    to: Annotated[str | None, typer.Option(help="This message leaves, and all after it.")] = None,
    yes: Yes = False,
) -> None:
    """Take back the end of a conversation; it stays in history as superseded."""
    if (turns is None) == (to is None):
        raise CommandError("Say either --turns or --to.", USAGE)
    path = f"/sessions/{segment(session)}"
    if not yes:
        what = f"the last {count_of(turns, 'turns')}" if turns else f"everything from {to} on"
        there = count_of(context.api.ask("GET", path)["messages"], "messages")
        context.confirm(f"Rewind {session}, which has {there}: {what}?", yes=False)
    found = context.send("POST", f"{path}/rewind", {"turns": turns, "to": to}, long=True)
    context.out.print_object(found, facts(found))


@command(sessions, "delete")
def delete(context: CommandContext, session: Session, yes: Yes = False) -> None:
    """Erase a conversation for good, with a receipt."""
    erase(context, f"/sessions/{segment(session)}", f"session {session}", yes=yes)


def erase(context: CommandContext, path: str, what: str, *, yes: bool) -> None:
    """Say what would go, ask, and do it."""
    if not yes:
        with working("counting"):
            would = context.api.ask("DELETE", path, [("dry_run", "true")], long=True)
        context.out.stderr.print(Text(f"{what} has {counted(would)}."))
        context.confirm("Erase all of it, for good?", yes=False)
    with working("erasing"):
        receipt = context.api.ask("DELETE", path, long=True)
    if context.out.as_json:
        return context.out.print_json(receipt)
    context.out.note(f"erased: {counted(receipt)}")


def counted(receipt: Object) -> str:
    """The counts of a receipt in words."""
    told: list[str] = []
    for name, found in receipt["counts"].items():
        if isinstance(found, dict):
            told += [f"{count_of(n, 'memories')} of kind {kind}" for kind, n in found.items() if n]
        elif found:
            told.append(count_of(found, name.replace("_", " ")))
    return ", ".join(told) or "nothing"
