"""Work that follows exchanges in the background.

The queue is as durable as the store, and one for all processes: whoever claims a piece of work
holds it until it is finished, put off, or its lease has run out (the process was killed).  A piece
says where to look and not what to do: what there is to do is seen in the session itself, so that
doing it twice does no harm and asking once too often costs a look.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Kind = Literal["summary", "learning"]


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """An exchange asks for work on its session: due ``at``, and until it has been asked for
    ``after`` times only at ``later``, which moves with each time.  ``profile`` says how to do it.

    Times are Unix seconds.
    """

    kind: Kind
    profile: str
    at: float
    after: int = 1
    later: float = 0.0


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of work as it lies in the queue: one for each session and kind.

    ``asked``: how often since it was last finished.  ``attempts`` have failed.  ``lease`` is a
    token of the claim that holds it, "" while nobody does.
    """

    tenant: str
    session: str
    kind: Kind
    profile: str
    due: float
    asked: int = 1
    attempts: int = 0
    lease: str = ""
