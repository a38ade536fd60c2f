"""``memory-proxy init``: a configuration file with what most people set."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Annotated

import typer

from proxy.commands.command import at_terminal, ending
from proxy.commands.failure import CONFLICT, USAGE, CommandError
from proxy.settings import Settings, SettingsError, load
from proxy.settings.file import comments, render_file

HEAD = """\
# memory-proxy serve --config {file}
# What is not here has its default; memory-proxy check --config {file} prints all there is.

"""


def init(
    file: Annotated[Path, typer.Argument(help="The file to write.")] = Path("proxy.toml"),
    upstream: Annotated[
        str | None, typer.Option(metavar="URL", help="The API to forward to; demo needs no key.")
    ] = None,
    store: Annotated[
        str | None, typer.Option(metavar="URL", help="Where memory is stored.")
    ] = None,
    port: Annotated[str | None, typer.Option(metavar="PORT", help="The port to listen on.")] = None,
    tenancy: Annotated[
        str | None, typer.Option(metavar="MODE", help="Whose memory: one for each key, or single.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file.")] = False,
) -> None:
    """Write a configuration file; what no option says is asked in a terminal, else the default."""
    given = {
        "upstream.url": upstream,
        "store.url": store,
        "server.port": port,
        "tenancy.mode": tenancy,
    }
    with ending():
        if file.exists() and not force:
            raise CommandError(f"{file} is there already: --force replaces it", CONFLICT)
        settings = _settings(_prompt_for_missing(given) if at_terminal() else given)
        with file.open("w" if force else "x", encoding="utf-8") as written:
            written.write(HEAD.format(file=file) + render_file(settings, [*given]))
    typer.echo(f"{file}: start it with  memory-proxy serve --config {file}")


def _settings(given: Mapping[str, str | None]) -> Settings:
    try:
        return load(None, dict(given), {})
    except SettingsError as error:
        raise CommandError(str(error), USAGE) from error


def _prompt_for_missing(given: Mapping[str, str | None]) -> dict[str, str | None]:
    """The values, with those that are missing as entered at the terminal, asked until valid."""
    said, defaults = comments(), Settings()
    return {
        name: value
        if value is not None
        else typer.prompt(
            said[name].replace("# ", "").strip() + f"\n{name}",
            default=str(attrgetter(name)(defaults)),
            value_proc=partial(_checked_value, name),
            err=True,
        )
        for name, value in given.items()
    }


def _checked_value(name: str, value: str) -> str:
    try:
        _settings({name: value})
    except CommandError as error:
        raise typer.BadParameter(str(error)) from error
    return value
