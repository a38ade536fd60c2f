"""Export and import on the command line: files, progress, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from proxy.commands.command import Desk
from proxy.commands.files import pieces, read, size_of, written
from proxy.commands.plain import line
from proxy.commands.progress import counting, loading


def export(desk: Desk, path: str, output: Path, sessions: int | None, user: str | None) -> None:
    """Write an export; the bar counts its sessions, of ``sessions`` if that is known."""
    params = [("user", user)] if user is not None else []
    with written(output) as file, counting() as progress:
        task = progress.add_task("sessions", total=sessions)
        with desk.api.stream("GET", path, params) as response:
            for row in lines(response.iter_bytes()):
                file.write(row)
                if row.startswith(SESSION_ENDS):
                    progress.advance(task)


SESSION_ENDS = b'{"kind":"session_end"'
"""How the line begins that ends a session in an export."""


def lines(pieces: Iterable[bytes]) -> Iterable[bytes]:
    """Whole lines, their ends included."""
    rest: list[bytes] = []
    for piece in pieces:
        *whole, last = piece.split(b"\n")
        for row in whole:
            yield b"".join((*rest, row, b"\n"))
            rest.clear()
        rest.append(last)
    if any(rest):
        yield b"".join(rest)


def bring_in(
    desk: Desk, file: Path, format: str, session: str | None, user: str | None, conflict: str
) -> None:
    """Send a file to be imported, and say what came of it."""
    params = [("format", format), ("conflict", conflict)]
    params += [("session", session)] if session is not None else []
    params += [("user", user)] if user is not None else []
    with read(file) as opened, loading() as progress:
        task = progress.add_task("sent", total=size_of(file))
        body = pieces(opened, lambda size: progress.advance(task, size))
        found = desk.api.ask("POST", "/import", params, body)
    if desk.out.as_json:
        return desk.out.raw(found)
    skipped = found["skipped"]
    desk.out.say(
        f"{found['sessions']} sessions with {found['messages']} messages and "
        f"{found['memories']} memories imported ({found['format']})"
    )
    if any(skipped.values()):
        told = ", ".join(f"{count} {what}" for what, count in skipped.items() if count)
        desk.out.say(f"skipped, as they are there already: {told}")
    for warning in found["warnings"]:
        desk.out.say(f"note: {line(str(warning))}")
