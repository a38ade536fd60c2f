"""The command line: running the proxy, and (``proxy.commands``) looking after what it remembers.

Knows flags, exit statuses and how things look in a terminal; all else is asked of others.
Exit statuses: 0 all is well, 1 it did not work, 2 the command line or configuration is wrong; those
of the commands that look after memory are in :mod:`proxy.commands.command`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from msgspec.structs import asdict
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from proxy import __version__, factory
from proxy.commands.command import AsJson, command, ending, failing
from proxy.commands.context import context
from proxy.commands.failure import NOT_FOUND, USAGE, CommandError
from proxy.commands.init import init
from proxy.commands.memories import memories
from proxy.commands.reach import doubt
from proxy.commands.sessions import sessions
from proxy.commands.stats import stats, tenants
from proxy.commands.transfer import counting, telling
from proxy.commands.users import users
from proxy.lazy import late
from proxy.memory.recording.spool import SpoolError
from proxy.memory.store import StoreError
from proxy.settings import DEMO, Settings, SettingsError, effective, load, without_credentials

if TYPE_CHECKING:
    from proxy import check, demo, maintenance, preflight, server
    from proxy.commands import backup, local, restore
else:
    check, demo, maintenance, preflight, server, backup, local, restore = (
        late(f"proxy.{name}")
        for name in (
            "check",
            "demo",
            "maintenance",
            "preflight",
            "server",
            "commands.backup",
            "commands.local",
            "commands.restore",
        )
    )


class _Program(TyperGroup):
    """The whole command line: all of it ends as commands do, help and version too."""

    def make_context(self, *arguments: Any, **more: Any) -> Any:
        with failing():
            return super().make_context(*arguments, **more)

    def invoke(self, ctx: Any) -> Any:
        with failing():
            return super().invoke(ctx)


app = typer.Typer(
    name="memory-proxy",
    cls=_Program,
    help="An OpenAI-compatible streaming reverse proxy that gives chat applications memory.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for name, group in (
    ("sessions", sessions),
    ("memories", memories),
    ("users", users),
    ("tenants", tenants),
):
    app.add_typer(group, name=name)

# Flags are text here: the settings check them, together with everything else.
Config = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="TOML file; init writes one.")
]
Host = Annotated[
    str | None, typer.Option("--host", metavar="HOST", help="The address to listen on.")
]
Port = Annotated[
    str | None, typer.Option("--port", metavar="PORT", help="The port; 0 takes a free one.")
]
Upstream = Annotated[
    str | None,
    typer.Option("--upstream", metavar="URL", help="The API to forward to; demo needs no key."),
]
Store = Annotated[
    str | None, typer.Option("--store", metavar="URL", help="Where memory is stored.")
]
Workers = Annotated[str | None, typer.Option("--workers", metavar="N", help="Worker processes.")]
LogLevel = Annotated[
    str | None, typer.Option("--log-level", metavar="LEVEL", help="debug, info, warning or error.")
]

_MARKS = {"ok": ("ok", "green"), "warning": ("warn", "yellow"), "problem": ("FAIL", "bold red")}


def main() -> None:
    """The entry point of the installed command."""
    if isinstance(sys.stdout, TextIOWrapper):
        # What a terminal or a pipe has no letter for is written as its number.
        sys.stdout.reconfigure(errors="backslashreplace")
    app(prog_name="memory-proxy")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"memory-proxy {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Say which release this is."
        ),
    ] = False,
) -> None:
    """Options before any command."""


@app.command("serve")
def serve_command(
    config: Config = None,
    host: Host = None,
    port: Port = None,
    upstream: Upstream = None,
    store: Store = None,
    workers: Workers = None,
    log_level: LogLevel = None,
) -> None:
    """Start the proxy and serve until Ctrl-C or SIGTERM.

    What no option says comes from variables (MEMORY_PROXY_PORT, ...), the file, the defaults.
    """
    settings = _settings(config, _overrides(host, port, upstream, store, workers, log_level))
    problem = preflight.startable(settings)
    if problem is not None:
        _fail(problem)
    hopeless = preflight.hopeless(settings)
    if hopeless is not None:
        _fail(hopeless, status=USAGE)

    def bound(address: str) -> None:
        _banner(settings, address)
        # Not before: where the port is taken, an older release may be at work on the file.
        preflight.bring_up_to_date(settings)

    try:
        with _upstream_there(settings) as reached:
            server.run(reached, partial(factory.application, reached), bound)
    except server.ServerError as error:
        _fail(str(error))


@app.command("check")
def check_command(
    config: Config = None,
    host: Host = None,
    port: Port = None,
    upstream: Upstream = None,
    store: Store = None,
    workers: Workers = None,
    log_level: LogLevel = None,
    as_json: AsJson = False,
) -> None:
    """Check the configuration, try store, spool and upstream, print the effective settings.

    Ends with 0 if all is well or there are warnings only, with 1 if anything fails, with 2 if the
    configuration is wrong.
    """
    settings = _settings(config, _overrides(host, port, upstream, store, workers, log_level))
    if not as_json:
        _print_settings(settings)
    found = asyncio.run(check.findings(settings))
    well = all(finding.grade != "problem" for finding in found)
    if as_json:
        told = [asdict(finding) for finding in found]
        typer.echo(
            json.dumps({"ok": well, "settings": dict(effective(settings)), "findings": told})
        )
    else:
        _print_findings(found)
    if not well:
        raise typer.Exit(1)


@app.command("demo")
def demo_command() -> None:
    """Play a short conversation through the real proxy: no key, no network."""
    demo.run(Console())


app.command("init")(init)


@tenants.command("move")
def move_command(
    old: Annotated[str, typer.Argument(help="The tenant that has the memory.")],
    new: Annotated[str, typer.Argument(help="The tenant that shall have it.")],
    config: Config = None,
    store: Store = None,
) -> None:
    """Hand all sessions of one tenant to another, because a key changed.

    A tenant is a client's name, or the SHA-256 of a key: printf %s "$KEY" | sha256sum
    """
    if not old or not new or old == new:
        _fail("OLD and NEW are two names of tenants", status=USAGE)
    settings = _settings(config, {"store.url": store})
    doubt(settings, new)
    with _store_there(settings):
        moved = _move(settings, old, new)
    if moved.waiting:
        _fail(
            f"nothing is moved: the spool has {_counted(moved.waiting, 'exchange')} of {old}."
            " Let the proxy run until all is written, then move"
        )
    if not moved.known:
        _fail(f"{old} has no memory in this store", status=NOT_FOUND)
    typer.echo(f"{_counted(moved.sessions, 'session')} moved")
    if moved.stayed:
        typer.echo(f"{_counted(moved.stayed, 'session')} stayed: {new} has one of the same id")


def _move(settings: Settings, old: str, new: str) -> maintenance.Moved:
    """Whatever cuts it short, it is said how far it came."""
    with counting() as progress:
        tell = telling(progress, "sessions")
        try:
            return asyncio.run(maintenance.move(settings, old, new, tell))
        except (KeyboardInterrupt, SystemExit, StoreError):
            moved = _counted(int(progress.tasks[0].completed), "session")
            typer.echo(f"memory-proxy: {moved} moved; run it again to go on", err=True)
            raise


@app.command("backup")
def backup_command(
    file: Annotated[Path, typer.Argument(help="The copy; it has this name once it is whole.")],
    config: Config = None,
    store: Store = None,
) -> None:
    """Copy the whole SQLite database to a file, while a proxy may go on serving."""
    settings = _settings(config, {"store.url": store})
    with ending(), counting() as progress:
        size = backup.back_up(settings, file, telling(progress, "pages"))
    typer.echo(f"{file}: {size} bytes")


@app.command("restore")
def restore_command(
    file: Annotated[Path, typer.Argument(help="A backup; it stays where it is.")],
    config: Config = None,
    store: Store = None,
) -> None:
    """Put a backup in the place of the SQLite database, which is kept; no proxy may be running."""
    settings = _settings(config, {"store.url": store})
    with ending(), counting() as progress:
        restored = restore.restore(settings, file, progress)
    typer.echo(f"{restored.path}: {_counted(restored.sessions, 'session')}")
    for note in restore.notes(settings, restored):
        typer.echo(f"note: {note}")


@app.command("reindex")
def reindex_command(
    tenant: Annotated[str | None, typer.Option(help="Only this tenant's sessions.")] = None,
    user: Annotated[str | None, typer.Option(help="Only this user's; needs --tenant.")] = None,
    config: Config = None,
    store: Store = None,
) -> None:
    """Make recall's indexes anew from the history, while a proxy may go on serving.

    For what was recorded before there was recall, and after its settings for vectors changed.
    """
    if user is not None and tenant is None:
        _fail("--user needs --tenant: the same user id may exist at several tenants", status=USAGE)
    if "" in (tenant, user):
        _fail("--tenant and --user need a name", status=USAGE)
    settings = _settings(config, {"store.url": store})
    if tenant is not None:
        doubt(settings, tenant)
    with _store_there(settings), counting() as progress:
        tell = telling(progress, "sessions")
        messages = asyncio.run(maintenance.reindex(settings, tenant, user, tell))
    typer.echo(f"{_counted(messages, 'message')} indexed")


# After those that run the proxy: help lists commands in this order.
command(app, "context")(context)
command(app, "stats")(stats)


@app.command("version")
def version_command() -> None:
    """Say which release this is."""
    _version(True)


@contextmanager
def _upstream_there(settings: Settings) -> Iterator[Settings]:
    """The settings; where their upstream is the demo's it is served meanwhile."""
    if settings.upstream.url != DEMO:
        yield settings
        return
    with demo.standing_in(settings) as reached:
        yield reached


@contextmanager
def _store_there(settings: Settings) -> Iterator[None]:
    """Ends the program where the store is not there, or does not work."""
    with ending():
        local.look_for(settings)
        try:
            yield
        except StoreError as error:
            raise CommandError(f"the store does not work: {error}") from error
        except SpoolError as error:
            raise CommandError(str(error)) from error


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _overrides(
    host: str | None,
    port: str | None,
    upstream: str | None,
    store: str | None,
    workers: str | None,
    log_level: str | None,
) -> dict[str, object]:
    return {
        "server.host": host,
        "server.port": port,
        "server.workers": workers,
        "server.log_level": log_level,
        "upstream.url": upstream,
        "store.url": store,
    }


def _settings(config: Path | None, overrides: dict[str, object]) -> Settings:
    """The settings of this start; ends the program where they are wrong."""
    try:
        settings = load(config, overrides, os.environ)
    except SettingsError as error:
        _fail(*error.problems, status=2)
    problems = tuple(preflight.unreadable(settings))
    if problems:
        _fail(*problems, status=2)
    return settings


def _fail(*sentences: str, status: int = 1) -> NoReturn:
    for sentence in sentences:
        typer.echo(f"memory-proxy: {sentence}", err=True)
    raise typer.Exit(status)


def _banner(settings: Settings, address: str) -> None:
    """For people only: programs that read the output have the log."""
    if settings.server.log_format == "json":
        return
    local, shown = server.here(address), settings.upstream.url == DEMO
    url = "demo: no model, no network" if shown else without_credentials(settings.upstream.url)
    lines = {
        "memory-proxy": __version__,
        "upstream": url,
        **{f"upstream {each.name}": without_credentials(each.url) for each in settings.upstreams},
        "store": without_credentials(settings.store.url),
        "listening on": address,
        "use it": f'base_url="{local}/v1" and the header X-Session-Id',
        "look at it": f"{local}/memory/",
        "try it": _trial(local, key=not shown),
    }
    console = Console(highlight=False, soft_wrap=True)
    for name, value in lines.items():
        console.print(Text.assemble((f"{name:>14}  ", "cyan"), value))


def _trial(address: str, *, key: bool) -> str:
    """A line to copy; ``key``: the upstream wants one."""
    headers = ["Content-Type: application/json", "X-Session-Id: hello"]
    if key:
        headers.insert(0, "Authorization: Bearer $OPENAI_API_KEY")
    body = (
        '{"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Hi, my name is Kai."}]}'
    )
    given = " ".join(f'-H "{header}"' for header in headers)
    return f"curl {address}/v1/chat/completions {given} -d '{body}'"


def _print_settings(settings: Settings) -> None:
    rows = effective(settings)
    width = max(len(name) for name, _ in rows)
    console = Console(highlight=False)
    console.print(Text(f"{'setting':<{width}}  value", style="bold"), soft_wrap=True)
    for name, value in rows:
        console.print(Text(f"{name:<{width}}  {value}"), soft_wrap=True)


def _print_findings(found: Sequence[check.Finding]) -> None:
    """A line each, however long: what is piped is searched by lines."""
    console = Console(highlight=False)
    for finding in found:
        mark, style = _MARKS[finding.grade]
        text = Text.assemble((f"{mark:<5}", style), f"{finding.part}: {finding.text}")
        console.print(text, soft_wrap=True)
