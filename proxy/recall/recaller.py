"""From a question to what is recalled: three round trips to the store, and pure ranking between.

What is found in the index is looked up in history before it is used: that says whose a message is,
whether it is still active, and what it says now.
"""

from __future__ import annotations

from collections.abc import Callable

from proxy.recall.follower import Follower
from proxy.recall.found import Found, Recollection
from proxy.recall.history import History
from proxy.recall.index import Index
from proxy.recall.nearness import Asked, Nearness
from proxy.recall.question import Question, read
from proxy.recall.state import read_state
from proxy.recall.trail import Beginning, Messages, Shortlist, again, arrive, begin, follow, wishes
from proxy.recall.vectors import NOTHING_NEAR
from proxy.recall.wanted import Wanted

NEWEST = 5_000
"""Postings of a term that are looked at: enough for what is rare, and bounded for what is not."""


class Recaller:
    """Finds; ``text_of`` gives the text of a message's JSON.

    ``nearness`` finds by meaning what words do not; None: words alone.
    """

    def __init__(
        self,
        index: Index,
        history: History,
        follower: Follower,
        text_of: Callable[[bytes], str],
        clock: Callable[[], float],
        nearness: Nearness | None = None,
    ) -> None:
        self._index, self._history, self._follower = index, history, follower
        self._text_of, self._clock, self._nearness = text_of, clock, nearness

    async def recall(self, wanted: Wanted) -> Recollection:
        """What belongs into a prompt.  Raises StoreError."""
        shortlist = await self._shortlist(wanted)
        if shortlist is None:
            return Recollection()
        return arrive(shortlist, await self._messages(shortlist), self._text_of)

    async def wishes(self, wanted: Wanted) -> tuple[Found, ...]:
        """The standing wishes in force, newest first.  Raises StoreError."""
        shortlist = await self._shortlist(wanted)
        if shortlist is None:
            return ()
        return wishes(shortlist, await self._messages(shortlist), self._text_of)

    async def _shortlist(self, wanted: Wanted) -> Shortlist | None:
        """What is worth looking up in history; None where there is nothing."""
        self._follower.heard_of(wanted.owner)
        if wanted.again == ():
            return None
        beginning = await self._begin(wanted)
        if beginning is None or not beginning.all:
            return None
        if wanted.again is not None:
            return again(beginning, wanted.again)
        rows = await self._index.rows(wanted.owner, beginning.all)
        return follow(beginning, rows)

    async def _begin(self, wanted: Wanted) -> Beginning | None:
        now = self._clock()
        question = read(wanted.text, wanted.before, now)
        asked = self._asked(wanted, question)
        session = wanted.key.session
        look = await self._index.look(wanted.owner, question.terms, NEWEST, session=session)
        state = read_state(look.state)
        if state is None:
            self._follower.stale(wanted.owner)
            return None
        if not look.revision or (wanted.owner.user and not state.caught_up):
            self._follower.missing(wanted.owner)
        near = NOTHING_NEAR
        if self._nearness and asked:
            near = await self._nearness.near(asked, wanted.owner, state)
        return begin(wanted, question, look, state, now, near)

    def _asked(self, wanted: Wanted, question: Question) -> Asked | None:
        if self._nearness is None or question.empty or wanted.again is not None:
            return None
        return self._nearness.ask(question.text)

    async def _messages(self, shortlist: Shortlist) -> Messages:
        seqs = shortlist.seqs()
        if not seqs:
            return {}
        wanted = shortlist.wanted
        return await self._history.passages(wanted.key.tenant, wanted.reader, seqs)
