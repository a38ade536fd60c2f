"""``memory-proxy tenants``: whose memory there is."""

from __future__ import annotations

import typer

from proxy.commands.command import Desk, command

tenants = typer.Typer(help="Whose memory it is.", no_args_is_help=True)


@command(tenants, "list", of_all=True)
def list_(desk: Desk) -> None:
    """All that have sessions or are named clients, for administrators."""
    if not desk.out.many(desk.api.ask("GET", "/tenants")["data"], {"id": "id"}):
        desk.out.say("There are no tenants.")
