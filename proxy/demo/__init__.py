"""``memory-proxy demo``: a short conversation through the real proxy, without a key or a network;
and ``serve --upstream demo``: its model, for anybody's own client.

``model``     what the built-in upstream answers; pure
``upstream``  says it over HTTP
``stage``     starts both servers and plays the scenes
``screen``    the scenes, and how one looks
"""

from __future__ import annotations

from proxy.demo.stage import run
from proxy.demo.upstream import standing_in

__all__ = ["run", "standing_in"]
