"""Makes commands: adds the options that all have in common, and ends them with an exit status.

A command is a function of a :class:`CommandContext` and of its own options.
"""

from __future__ import annotations

import functools
import inspect
import json
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import msgspec
import typer
from rich.text import Text

from proxy.commands.api_location import KEY, Connection
from proxy.commands.failure import INTERRUPTED, USAGE, CommandError, command_error
from proxy.commands.output import Object, Output, discard_output, plain
from proxy.integrations.terms import MemoryProxyError
from proxy.tenancy import ANONYMOUS

if TYPE_CHECKING:
    from proxy.integrations.api import MemoryApi

PAGE = 200

NO_MATCH = "There are none that match"
NO_FILTERS: Mapping[str, str | None] = MappingProxyType({})

NOT_THERE = ("session_not_found", "memory_not_found", "user_not_found")

_DIGEST = re.compile(r"[0-9a-f]{64}")

Url = Annotated[
    str | None, typer.Option("--url", metavar="URL", help="A running proxy [MEMORY_PROXY_URL].")
]
Store = Annotated[
    str | None, typer.Option("--store", metavar="URL", help="A store, without a running proxy.")
]
Tenant = Annotated[
    str | None, typer.Option("--tenant", metavar="NAME", help="Whose memory, for administrators.")
]
Config = Annotated[
    Path | None,
    # What cannot be read is told with all other mistakes.
    typer.Option(
        "--config", metavar="FILE", readable=False, help="The proxy's TOML file; as --store."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="JSON, an object a line, for programs.")]
User = Annotated[str, typer.Argument(help="The person's id.")]
OnlyUser = Annotated[str | None, typer.Option("--user", metavar="ID", help="Only this person's.")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="How many at most.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

_COMMON: dict[str, Any] = {
    "url": Url,
    "store": Store,
    "tenant": Tenant,
    "config": Config,
    "as_json": AsJson,
}


class CommandContext(msgspec.Struct, frozen=True):
    """The API and the output that a command uses."""

    api: MemoryApi
    out: Output

    def send(
        self, method: str, path: str, fields: Mapping[str, object], *, long: bool = False
    ) -> Object:
        """Send a JSON object of the fields that are not None; returns the answer."""
        said = {name: value for name, value in fields.items() if value is not None}
        return self.api.ask(method, path, body=json.dumps(said).encode(), long=long)

    def pages(self, path: str, limit: int | None = None, **params: str | None) -> Pages:
        """The objects of a list, at most ``limit``."""
        given = [(name, value) for name, value in params.items() if value is not None]
        return Pages(self.api, path, given, limit)

    def listing(
        self,
        path: str,
        columns: Mapping[str, str],
        none: str,
        limit: int | None,
        usual: int,
        filters: Mapping[str, str | None] = NO_FILTERS,
        **params: str | None,
    ) -> None:
        """Print a list, with a note if there are more, or the sentence ``none`` if it is empty.

        Without ``limit`` people get ``usual`` objects, and with --json all are printed.
        ``filters`` are parameters too; with one of them an empty list is a lack of matches.
        """
        most = limit or (None if self.out.as_json else usual)
        found = self.pages(path, most, **filters, **params)
        if not self.out.print_list(found, columns) and not self.out.as_json:
            filtered = any(value is not None for value in filters.values())
            return self.out.note(f"{NO_MATCH if filtered else none} for {self.tenant_in_words()}.")
        if found.more:
            sentence = f"These are {found.count}; there are more: --limit N shows N of them."
            self.out.stderr.print(Text(sentence), soft_wrap=True)

    def with_tenant(self, error: MemoryProxyError) -> MemoryProxyError:
        """The error, with the tenant if something was not found: another key may have it."""
        if error.status != 404 or error.code not in NOT_THERE:
            return error
        sentence = f"{error.message.removesuffix('.')} for {self.tenant_in_words()}."
        return MemoryProxyError(error.status, error.code, sentence)

    def tenant_in_words(self) -> str:
        """The tenant of the requests, for messages."""
        caller = self.api.ask("GET", "/whoami")
        tenant = plain(str(caller["tenant"]))
        name = f"{tenant[:8]}…" if _DIGEST.fullmatch(tenant) else tenant
        if caller["admin"]:
            return f"the tenant {name}"
        if tenant == ANONYMOUS:
            return f"requests without a key (tenant {name}): yours goes into {KEY}"
        return f"this key (tenant {name})"

    def confirm(self, question: str, *, yes: bool) -> None:
        """Ask on standard error, unless ``yes``.  Raises CommandError if the answer is no, or if
        there is no terminal."""
        if yes:
            return
        if not at_terminal():
            raise CommandError(f"{question} Say --yes to do it without being asked.", USAGE)
        typer.echo(f"{question} [y/N]: ", nl=False, err=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise CommandError("Nothing was done.")


def at_terminal() -> bool:
    """Whether standard input is a terminal."""
    return sys.stdin is not None and sys.stdin.isatty()


class Pages(msgspec.Struct):
    """A list, loaded page by page.  At its end ``count`` is the number of objects, and ``more``
    whether there are others."""

    api: MemoryApi
    path: str
    given: Sequence[tuple[str, str]]
    limit: int | None
    count: int = 0
    more: bool = False

    def __iter__(self) -> Iterator[Object]:
        after: str | None = None
        while self.limit is None or self.count < self.limit:
            size = PAGE if self.limit is None else min(self.limit - self.count, PAGE)
            cursor = [("after", after)] if after is not None else []
            page = self.api.ask("GET", self.path, [*self.given, ("limit", str(size)), *cursor])
            after = page["next"]
            self.count += len(page["data"])
            yield from page["data"]
            if after is None:
                return
        self.more = True


def command(
    group: typer.Typer, name: str, *, all_tenants: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function as a command of the group; ``all_tenants``: it is about all tenants."""

    def register(work: Callable[..., None]) -> Callable[..., None]:
        run, own = _run(work, all_tenants=all_tenants), own_options(work)
        given = {parameter.name for parameter in own}
        common = [
            option(name, kind, default=False if name == "as_json" else None)
            for name, kind in _COMMON.items()
            if name not in given and not (all_tenants and name == "tenant")
        ]
        group.command(name)(with_options(run, [*own, *common]))
        return work

    return register


def own_options(work: Callable[..., None]) -> list[inspect.Parameter]:
    """The parameters of a command that are options: all except the first, its context."""
    return [*inspect.signature(work, eval_str=True).parameters.values()][1:]


def option(name: str, kind: Any, default: object = None) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def with_options(
    run: Callable[..., None], options: Sequence[inspect.Parameter]
) -> Callable[..., None]:
    """The function with a signature of these options, which it gets by name."""
    given = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in options]
    run.__signature__ = inspect.Signature(given)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in given}
    return run


def _run(work: Callable[..., None], *, all_tenants: bool) -> Callable[..., None]:
    @functools.wraps(work)
    def run(
        *,
        url: str | None,
        store: str | None,
        config: Path | None,
        as_json: bool,
        tenant: str | None = None,
        **own: Any,
    ) -> None:
        with ending(), Connection(url, store, tenant, config, all_tenants).api() as api:
            context = CommandContext(api, Output(as_json=as_json))
            try:
                work(context, **own)
            except MemoryProxyError as error:
                raise context.with_tenant(error) from error

    del run.__wrapped__
    return run


@contextmanager
def ending() -> Iterator[None]:
    """End the program with a sentence and an exit status on errors and signals of a command."""
    with failing(), _interrupt_on_signals():
        yield


@contextmanager
def failing() -> Iterator[None]:
    """End the program with a sentence and an exit status on errors."""
    try:
        yield
    except MemoryProxyError as error:
        _end(command_error(error))
    except CommandError as error:
        _end(error)
    except UnicodeEncodeError:
        # What the shell hands over may be any bytes; a file may be called so, an id may not.
        _end(CommandError("The command line has bytes that are not UTF-8.", USAGE))
    except BrokenPipeError:
        _output_closed()
    except SystemExit as end:
        # So rich ends a program whose output nobody reads, that of --help among it.
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        _output_closed()
    except OSError as error:
        discard_output()
        named = f" {error.filename}" if error.filename else ""
        _end(CommandError(f"Reading or writing{named} failed: {error.strerror or error}"))
    except (KeyboardInterrupt, typer.Abort):  # Abort: at a question
        raise typer.Exit(INTERRUPTED) from None


def _output_closed() -> NoReturn:
    """End the program without an error, as the reader of its output has closed the pipe."""
    discard_output()
    raise typer.Exit(0) from None


# Windows has no SIGHUP.
_ENDS = tuple(each for each in signal.Signals if each.name in ("SIGTERM", "SIGHUP"))


@contextmanager
def _interrupt_on_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end a command as Ctrl-C does, so that no partial file is left.

    They raise SystemExit, which event loops pass on.  Outside of the main thread, as in a test,
    signals are left alone.
    """
    of_process = threading.current_thread() is threading.main_thread()
    # What nohup has set to be ignored stays so.
    before = {each: signal.getsignal(each) for each in _ENDS if of_process}
    caught = [each for each, handler in before.items() if handler is not signal.SIG_IGN]

    def stop(number: int, _: object) -> None:
        for each in caught:  # a second one is not to end the tidying up
            signal.signal(each, signal.SIG_IGN)
        raise SystemExit(128 + number)

    for each in caught:
        signal.signal(each, stop)
    try:
        yield
    finally:
        for each in caught:
            signal.signal(each, before[each])


def _end(error: CommandError) -> NoReturn:
    for sentence in error.sentence.splitlines():
        typer.echo(f"memory-proxy: {sentence}", err=True)
    raise typer.Exit(error.status)
