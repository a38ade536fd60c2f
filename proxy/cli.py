"""The command line: runs the proxy, and the commands that manage memory (``proxy.commands``).

Knows flags, exit statuses and terminal output; all else is done elsewhere.
Exit statuses: 0 success, 1 failure, 2 the command line or configuration is wrong; those of the
commands for memory are in :mod:`proxy.commands.failure`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec.structs import asdict
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from proxy import __version__, factory
from proxy.commands.api_location import settings_of, warn_of_unknown_tenant
from proxy.commands.command import (
    AsJson,
    command,
    ending,
    failing,
    option,
    own_options,
    with_options,
)
from proxy.commands.context import context
from proxy.commands.failure import NOT_FOUND, USAGE, CommandError
from proxy.commands.init import init
from proxy.commands.memories import memories
from proxy.commands.output import count_of
from proxy.commands.sessions import sessions
from proxy.commands.stats import stats, tenants
from proxy.commands.transfer import counting, progress_callback
from proxy.commands.users import users
from proxy.lazy import lazy_import
from proxy.memory.recording.spool import SpoolError
from proxy.memory.store import StoreError
from proxy.settings import DEMO, Settings, effective, without_credentials

if TYPE_CHECKING:
    from proxy import check, demo, maintenance, preflight, server
    from proxy.commands import backup, local, restore
else:
    check, demo, maintenance, preflight, server, backup, local, restore = (
        lazy_import(f"proxy.{name}")
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


class _CommandLine(TyperGroup):
    """The whole command line, whose errors end as those of commands do, help and version too."""

    def make_context(self, *arguments: Any, **more: Any) -> Any:
        with failing():
            return super().make_context(*arguments, **more)

    def invoke(self, ctx: Any) -> Any:
        with failing():
            return super().invoke(ctx)


app = typer.Typer(
    name="memory-proxy",
    cls=_CommandLine,
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
    Path | None,
    # What cannot be read is told with all other mistakes.
    typer.Option("--config", metavar="FILE", readable=False, help="TOML file; init writes one."),
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

_FLAGS: Mapping[str, tuple[str, Any]] = {
    "host": ("server.host", Host),
    "port": ("server.port", Port),
    "upstream": ("upstream.url", Upstream),
    "store": ("store.url", Store),
    "workers": ("server.workers", Workers),
    "log_level": ("server.log_level", LogLevel),
}
"""The flags of serve and check: the setting and the option of each."""

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


def _start_command(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function of the settings as a command with these flags."""

    def register(work: Callable[..., None]) -> Callable[..., None]:
        def run(*, config: Path | None, **given: Any) -> None:
            flags = {setting: given.pop(flag) for flag, (setting, _) in _FLAGS.items()}
            work(settings_of(config, flags), **given)

        run.__doc__ = work.__doc__
        kinds = {"config": Config, **{flag: kind for flag, (_, kind) in _FLAGS.items()}}
        options = [option(flag, kind) for flag, kind in kinds.items()]
        app.command(name)(with_options(run, [*options, *own_options(work)]))
        return work

    return register


@_start_command("serve")
def serve_command(settings: Settings) -> None:
    """Start the proxy and serve until Ctrl-C or SIGTERM.

    What no option says comes from variables (MEMORY_PROXY_PORT, ...), the file, the defaults.
    """
    if problem := preflight.start_problem(settings):
        raise CommandError(problem)
    if hopeless := preflight.schema_problem(settings):
        raise CommandError(hopeless, USAGE)

    def bound(address: str) -> None:
        _banner(settings, address)
        # Not before: where the port is taken, an older release may be at work on the file.
        preflight.migrate_store(settings)

    try:
        with _demo_upstream(settings) as reached:
            server.run(reached, partial(factory.application, reached), bound)
    except server.ServerError as error:
        raise CommandError(str(error)) from error


@_start_command("check")
def check_command(settings: Settings, as_json: AsJson = False) -> None:
    """Check the configuration, try store, spool and upstream, print the effective settings.

    Ends with 0 if all is well or there are warnings only, with 1 if anything fails, with 2 if the
    configuration is wrong.
    """
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
        raise CommandError("OLD and NEW are two names of tenants", USAGE)
    settings = settings_of(config, {"store.url": store})
    warn_of_unknown_tenant(settings, new)
    with _working_store(settings):
        moved = _move_tenant(settings, old, new)
    if moved.waiting:
        raise CommandError(
            f"nothing is moved: the spool has {count_of(moved.waiting, 'exchanges')} of {old}."
            " Let the proxy run until all is written, then move"
        )
    if not moved.known:
        raise CommandError(f"{old} has no memory in this store", NOT_FOUND)
    typer.echo(f"{count_of(moved.sessions, 'sessions')} moved")
    if moved.stayed:
        typer.echo(f"{count_of(moved.stayed, 'sessions')} stayed: {new} has one of the same id")


def _move_tenant(settings: Settings, old: str, new: str) -> maintenance.Moved:
    """Move, and if that is interrupted, say how many sessions were moved."""
    with counting() as progress:
        tell = progress_callback(progress, "sessions")
        try:
            return asyncio.run(maintenance.move(settings, old, new, tell))
        except (KeyboardInterrupt, SystemExit, StoreError):
            moved = count_of(int(progress.tasks[0].completed), "sessions")
            typer.echo(f"memory-proxy: {moved} moved; run it again to go on", err=True)
            raise


@app.command("backup")
def backup_command(
    file: Annotated[Path, typer.Argument(help="The copy; it has this name once it is whole.")],
    config: Config = None,
    store: Store = None,
) -> None:
    """Copy the whole SQLite database to a file, while a proxy may go on serving."""
    settings = settings_of(config, {"store.url": store})
    with ending(), counting() as progress:
        size = backup.back_up(settings, file, progress_callback(progress, "pages"))
    typer.echo(f"{file}: {size} bytes")


@app.command("restore")
def restore_command(
    file: Annotated[Path, typer.Argument(help="A backup; it stays where it is.")],
    config: Config = None,
    store: Store = None,
) -> None:
    """Put a backup in the place of the SQLite database, which is kept; no proxy may be running."""
    settings = settings_of(config, {"store.url": store})
    with ending(), counting() as progress:
        restored = restore.restore(settings, file, progress)
    typer.echo(f"{restored.path}: {count_of(restored.sessions, 'sessions')}")
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
        sentence = "--user needs --tenant: the same user id may exist at several tenants"
        raise CommandError(sentence, USAGE)
    if "" in (tenant, user):
        raise CommandError("--tenant and --user need a name", USAGE)
    settings = settings_of(config, {"store.url": store})
    if tenant is not None:
        warn_of_unknown_tenant(settings, tenant)
    with _working_store(settings), counting() as progress:
        tell = progress_callback(progress, "sessions")
        messages = asyncio.run(maintenance.reindex(settings, tenant, user, tell))
    typer.echo(f"{count_of(messages, 'messages')} indexed")


# After those that run the proxy: help lists commands in this order.
command(app, "context")(context)
command(app, "stats")(stats)


@app.command("version")
def version_command() -> None:
    """Say which release this is."""
    _version(True)


@contextmanager
def _demo_upstream(settings: Settings) -> Iterator[Settings]:
    """The settings; the demo's upstream is served while the block runs, if they name that."""
    if settings.upstream.url != DEMO:
        yield settings
        return
    with demo.standing_in(settings) as reached:
        yield reached


@contextmanager
def _working_store(settings: Settings) -> Iterator[None]:
    """End the program with an error if the store does not exist or fails."""
    with ending():
        local.check_exists(settings)
        try:
            yield
        except StoreError as error:
            raise CommandError(f"the store does not work: {error}") from error
        except SpoolError as error:
            raise CommandError(str(error)) from error


def _banner(settings: Settings, address: str) -> None:
    """Print how to reach the proxy, for people at a terminal only."""
    if settings.server.log_format == "json":
        return
    local, shown = server.loopback_address(address), settings.upstream.url == DEMO
    url = "demo: no model, no network" if shown else without_credentials(settings.upstream.url)
    lines = {
        "memory-proxy": __version__,
        "upstream": url,
        **{f"upstream {each.name}": without_credentials(each.url) for each in settings.upstreams},
        "store": without_credentials(settings.store.url),
        "listening on": address,
        "use it": f'base_url="{local}/v1" and the header X-Session-Id',
        "look at it": f"{local}/memory/",
        "try it": _example_request(local, key=not shown),
    }
    console = Console(highlight=False, soft_wrap=True)
    for name, value in lines.items():
        console.print(Text.assemble((f"{name:>14}  ", "cyan"), value))


def _example_request(address: str, *, key: bool) -> str:
    """A curl command for a first request; ``key``: the upstream needs one."""
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
    """Print one line for each finding, however long, so that output can be searched by line."""
    console = Console(highlight=False)
    for finding in found:
        mark, style = _MARKS[finding.grade]
        text = Text.assemble((f"{mark:<5}", style), f"{finding.part}: {finding.text}")
        console.print(text, soft_wrap=True)
