"""A small application behind the real server, run as a process of its own: ``python -m`` this.

``/`` answers with the worker's process id and is counted, ``/metrics`` with the counts,
``/hold?port=N`` begins an answer and ends it once somebody on that port of this host says so.
Arguments are settings, ``server.workers=2``; the address is printed once it is bound.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from proxy import server
from proxy.settings import Settings, load
from proxy.telemetry import Telemetry


class Factory:
    """Makes the application, or fails where the settings say port 1 of the upstream."""

    def __init__(self, settings: Settings) -> None:
        self._broken = settings.upstream.url == "http://127.0.0.1:1"

    def __call__(self) -> Starlette:
        if self._broken:
            raise OSError("the disk is gone")
        telemetry = Telemetry()

        async def root(request: Request) -> Response:
            telemetry.count_request("other", 200, "none")
            return Response(str(os.getpid()))

        async def metrics(request: Request) -> Response:
            return Response(telemetry.render())

        async def hold(request: Request) -> Response:
            return StreamingResponse(_held(int(request.query_params["port"])))

        routes = [Route("/", root), Route("/metrics", metrics), Route("/hold", hold)]
        return Starlette(routes=routes)


async def _held(port: int) -> AsyncIterator[bytes]:
    yield b"begun "
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    await reader.read(1)
    writer.close()
    yield b"ended"


def main(arguments: list[str]) -> None:
    overrides = dict(argument.split("=", 1) for argument in arguments)
    settings = load(None, {"server.port": "0", **overrides})
    try:
        server.run(settings, Factory(settings), lambda address: print(address, flush=True))
    except server.ServerError as error:
        sys.exit(f"ServerError: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
