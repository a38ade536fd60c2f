"""How a command is made: what all have in common is added to its own arguments.

A command is a function of a :class:`Desk` and of what its own command line says.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from proxy.commands.failure import INTERRUPTED, USAGE, CommandError, told
from proxy.commands.output import Object, Output, abandon
from proxy.commands.reach import Reach
from proxy.integrations.api import MemoryApi, MemoryProxyError

PAGE = 200

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
    Path | None, typer.Option("--config", metavar="FILE", help="The proxy's TOML file; as --store.")
]
AsJson = Annotated[bool, typer.Option("--json", help="JSON, an object a line, for programs.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

_COMMON: dict[str, Any] = {
    "url": Url,
    "store": Store,
    "tenant": Tenant,
    "config": Config,
    "as_json": AsJson,
}


@dataclass(frozen=True, slots=True)
class Desk:
    """What a command works with."""

    api: MemoryApi
    out: Output

    def pages(self, path: str, limit: int | None = None, **params: str | None) -> Iterator[Object]:
        """The objects of a list, as many as there are or ``limit``."""
        given = [(name, value) for name, value in params.items() if value is not None]
        after: str | None = None
        left = limit
        while left is None or left > 0:
            size = PAGE if left is None else min(left, PAGE)
            cursor = [("after", after)] if after is not None else []
            page = self.api.ask("GET", path, [*given, ("limit", str(size)), *cursor])
            after = page["next"]
            yield from page["data"]
            left = None if left is None else left - len(page["data"])
            if after is None:
                return

    def confirm(self, question: str, *, yes: bool) -> None:
        """Ask, unless ``yes``.  Raises CommandError where nobody can answer or the answer is no.

        On standard error: what standard output has is for those who read the result.
        """
        if yes:
            return
        if sys.stdin is None or not sys.stdin.isatty():
            raise CommandError(f"{question} Say --yes to do it without being asked.", USAGE)
        typer.echo(f"{question} [y/N]: ", nl=False, err=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise CommandError("Nothing was done.")


def command(group: typer.Typer, name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function of a Desk a command of the group."""

    def register(work: Callable[..., None]) -> Callable[..., None]:
        run = _run(work)
        own = list(inspect.signature(work, eval_str=True).parameters.values())[1:]
        given = {parameter.name for parameter in own}
        common = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=False if name == "as_json" else None,
                annotation=kind,
            )
            for name, kind in _COMMON.items()
            if name not in given
        ]
        own = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
        signature = inspect.Signature([*own, *common])
        run.__signature__ = signature  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()}
        group.command(name)(run)
        return work

    return register


def _run(work: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(work)
    def run(
        *,
        url: str | None,
        store: str | None,
        tenant: str | None,
        config: Path | None,
        as_json: bool,
        **own: Any,
    ) -> None:
        with ending(), Reach(url, store, tenant, config).api() as api:
            work(Desk(api, Output(as_json=as_json)), **own)

    del run.__wrapped__
    return run


@contextmanager
def ending() -> Iterator[None]:
    """Whatever a command fails at becomes a sentence and an exit status."""
    try:
        yield
    except MemoryProxyError as error:
        _end(told(error))
    except CommandError as error:
        _end(error)
    except UnicodeEncodeError:
        # What the shell hands over may be any bytes; a file may be called so, an id may not.
        _end(CommandError("The command line has bytes that are not UTF-8.", USAGE))
    except BrokenPipeError:
        # Who read the output has seen enough.
        abandon()
        raise typer.Exit(0) from None
    except OSError as error:
        abandon()
        _end(CommandError(f"Reading or writing failed: {error.strerror or error}"))
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


def _end(error: CommandError) -> NoReturn:
    for sentence in error.sentence.splitlines():
        typer.echo(f"memory-proxy: {sentence}", err=True)
    raise typer.Exit(error.status)
