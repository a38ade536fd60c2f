"""``memory-proxy demo``: a short conversation through the real proxy, without a key or a network.

``model``     what the built-in upstream answers; pure
``upstream``  says it over HTTP and remembers what it was asked
``scenes``    the conversation
``stage``     starts both servers and plays the scenes
``screen``    how a scene looks
"""

from __future__ import annotations

from proxy.demo.stage import run

__all__ = ["run"]
