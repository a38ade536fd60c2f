"""From a question to what is recalled: three round trips to the store, two where the rows are
known, and pure ranking between; more only for what changed later of what was found.

``Recaller.recall`` is the whole way: ``_select`` reads the question and asks the index for its
terms, ``_shortlist`` for the rows of what matched, ``_messages`` asks history for the messages
themselves.  What is found in the index is looked up there before it is used: that says whose a
message is, whether it is still active, and what it says now.  What is decided between is in
``pipeline`` and ``recollection``.
"""

from __future__ import annotations

from collections.abc import Callable

from cachetools import LRUCache

from proxy.memory.model import SessionKey
from proxy.recall.index import Look, Owner, OwnOf, PassageHistory
from proxy.recall.indexing.index_updater import IndexUpdater
from proxy.recall.indexing.indexer import Indexer
from proxy.recall.indexing.state import State
from proxy.recall.known_index import KnownIndex, Looked
from proxy.recall.pipeline import (
    Selection,
    Shortlist,
    changed,
    matched,
    rank,
    replay,
    select,
    together,
)
from proxy.recall.query.query import RecallOptions, RecallQuery
from proxy.recall.query.question import Question, expand, read_question
from proxy.recall.ranking.match import Matches
from proxy.recall.ranking.select import needs_expansion
from proxy.recall.recollection import Messages, in_force, resolve, told_best
from proxy.recall.results import Found, Recollection
from proxy.recall.semantic.vectors import NOTHING_NEAR, Asked, Nearness

REMEMBERED = 10_000
"""People that a process remembers to have several sessions."""


AHEAD = 32
"""A session of nobody rests where so many messages behind the last that is hidden are indexed."""


class Recaller:
    """Finds; ``own_of`` gives what is its writer's own of a message's JSON.

    ``nearness`` finds by meaning what words do not; None: words alone.
    """

    def __init__(
        self,
        index: KnownIndex,
        history: PassageHistory,
        index_updater: IndexUpdater,
        own_of: OwnOf,
        clock: Callable[[], float],
        nearness: Nearness | None = None,
    ) -> None:
        self._index, self._history = index, history
        self._index_updater = index_updater
        self._own_of, self._clock, self._nearness = own_of, clock, nearness
        self._several: LRUCache[Owner, None] = LRUCache(REMEMBERED)

    def noticed(self, query: RecallQuery) -> None:
        """Somebody asks: what is recorded of this session is indexed soon, or later where all of it
        is in sight and nobody else can ask for it."""
        owner = query.owner
        if owner.user:
            self._index_updater.asked(query.key, owner)
        elif query.nothing_hidden:
            self._index_updater.rests(query.key, owner)

    async def recall(self, query: RecallQuery) -> Recollection:
        """What belongs into a prompt.  Raises StoreError."""
        shortlist = await self._shortlist(query)
        if shortlist is None:
            return Recollection()
        messages = await self._messages(shortlist)
        more = await self._changed(shortlist, messages)
        if more is not None:
            messages = {**messages, **await self._messages(more)}
            shortlist = together(shortlist, more)
        return resolve(shortlist, messages, self._own_of)

    async def _changed(self, shortlist: Shortlist, messages: Messages) -> Shortlist | None:
        """What the user said later of what was found; None where there is nothing.

        No look at the store where words and rows are known.
        """
        best, selection = told_best(shortlist, messages, self._own_of), shortlist.open
        if best is None or selection is None:
            return None
        owner, session = shortlist.query.owner, shortlist.query.key.session
        look, state = await self._index.look(owner, best.terms, session, selection.look)
        numbers = best.later(look.postings)
        if state is None or not numbers.size:
            return None
        rows = await self._index.rows(owner, numbers, state, look.revision)
        more = changed(shortlist, selection, numbers, rows)
        return more if more.places else None

    async def standing(self, query: RecallQuery) -> tuple[Found, ...]:
        """The standing instructions in force, newest first.  Raises StoreError."""
        shortlist = await self._shortlist(query)
        if shortlist is None:
            return ()
        return in_force(shortlist, await self._messages(shortlist), self._own_of)

    async def _shortlist(self, query: RecallQuery) -> Shortlist | None:
        """What is worth looking up in history; None where there is nothing."""
        owner = query.owner
        self.noticed(query)
        if query.replayed == () or query.has_nowhere_to_look:
            return None
        if owner.user:
            own = query.key if query.newest_hidden_seq is not None else None
            await self._index_updater.settled(owner, but=own)
            if query.nothing_hidden and await self._is_only_session(query):
                return None
        selection = await self._select(query)
        if selection is None:
            return None
        numbers = selection.all
        if not numbers.size:
            return None
        if query.replayed is not None:
            return replay(selection, query.replayed)
        state, revision = selection.state, selection.look.revision
        rows = await self._index.rows(query.owner, numbers, state, revision)
        return rank(selection, rows)

    async def _is_only_session(self, query: RecallQuery) -> bool:
        """Whether the index has no other session of this person, so that there is nothing to find.

        One who has several is not likely to have one again.
        """
        owner = query.owner
        if owner in self._several:
            return False
        look, state = self._checked(query, await self._index.look(owner, (), query.key.session))
        if state is None or state.sessions <= (1 if look.mark else 0):
            return state is not None
        self._several[owner] = None
        return False

    def _checked(self, query: RecallQuery, seen: Looked) -> Looked:
        """The same look.  An index that is missing, or of another format, is asked to be made."""
        owner, state = query.owner, seen.state
        if state is None:
            self._index_updater.stale(owner)
        elif not seen.look.revision or (owner.user and state.caught_up <= 0):
            self._index_updater.missing(owner)
        return seen

    async def _look(self, query: RecallQuery, question: Question) -> Looked:
        """A look at the index once it has what of this session is recorded, but not shown."""
        key, owner, terms = query.key, query.owner, question.terms
        seen = await self._index.look(owner, terms, key.session)
        indexed = seen.look.mark.seq if seen.look.mark else 0
        lacks = self._lacks if owner.user else self._nobodys_lacks
        if not lacks(query, indexed):
            return seen
        await self._index_updater.settled(owner)
        return await self._index.look(owner, terms, key.session)

    def _lacks(self, query: RecallQuery, indexed: int) -> bool:
        """Whether something that could be found in this session is not indexed, for all that this
        process knows."""
        hidden = query.newest_hidden_seq or 0
        return hidden > indexed and self._index_updater.late(query.key)

    def _nobodys_lacks(self, query: RecallQuery, indexed: int) -> bool:
        """The same of a session that is its only owner: nothing else catches up with its index, and
        whoever recorded it may have let it rest."""
        key, hidden = query.key, query.newest_hidden_seq
        if hidden is not None and hidden + AHEAD <= indexed:
            self._index_updater.rests(key, query.owner)
            return False
        self._index_updater.asked(key, query.owner)
        if hidden is not None and hidden <= indexed:
            return False
        self._index_updater.recorded(key)
        return True

    async def _select(self, query: RecallQuery) -> Selection | None:
        """Which passages' rows to read; None where there is no index."""
        now = self._clock()
        question = read_question(query.text, query.previous_texts, now, query.options.zone)
        asked = self._asked(query, question)
        look, state = self._checked(query, await self._look(query, question))
        if state is None:
            return None
        matches = matched(question, look, state)
        if query.replayed is None and needs_expansion(matches):
            look, state, matches = await self._expanded(query, matches, look, state)
        near = NOTHING_NEAR
        if self._nearness and asked:
            near = await self._nearness.near(asked, query.owner, state)
        return select(query, matches, look, state, now, near)

    async def _expanded(
        self, query: RecallQuery, matches: Matches, look: Look, state: State
    ) -> tuple[Look, State, Matches]:
        """A look for words near in meaning too; what there is where none are known."""
        question = expand(matches.question)
        if question is not matches.question:
            again = await self._index.look(query.owner, question.terms, query.key.session, look)
            if again.state is not None:
                look, state = again.look, again.state
                matches = matched(question, look, state)
        return look, state, matches

    def _asked(self, query: RecallQuery, question: Question) -> Asked | None:
        """The question on its way to the embedder, while words are looked for; None without one."""
        if self._nearness is None or question.is_empty or query.replayed is not None:
            return None
        return self._nearness.ask(question.text)

    async def _messages(self, shortlist: Shortlist) -> Messages:
        """The messages on a shortlist, as history has them now, by session and seq."""
        seqs = shortlist.seqs()
        if not seqs:
            return {}
        query = shortlist.query
        return await self._history.passages(query.key.tenant, query.reader, seqs)


ROOM = 1_000_000
"""Tokens: a budget that bounds nothing."""


class RecallAdmin:
    """All methods raise StoreError."""

    def __init__(self, recaller: Recaller, indexer: Indexer) -> None:
        self._recaller, self._indexer = recaller, indexer

    async def search(self, owner: Owner, query: str) -> list[Found]:
        """What a person said or was told, best first, after standing instructions it touches."""
        found = await self._recaller.recall(_query(owner, query))
        return list(found.all)

    async def standing(self, owner: Owner) -> tuple[Found, ...]:
        """The standing instructions in force, newest first."""
        return await self._recaller.standing(_query(owner, ""))

    async def dismiss(self, owner: Owner, *instructions: str) -> None:
        """Never pin standing instructions again."""
        await self._indexer.dismiss(owner, *instructions)

    async def look_again(self, owner: Owner) -> None:
        """Sessions come back that are older than what is indexed: let none be missed."""
        await self._indexer.look_again(owner)

    async def dismissed(self, owner: Owner) -> tuple[str, ...]:
        """The ids of the standing instructions that were dismissed, the newest last."""
        return await self._indexer.dismissed(owner)


def _query(owner: Owner, text: str) -> RecallQuery:
    return RecallQuery(
        key=SessionKey(owner.tenant, owner.session),
        user=owner.user,
        session_owner=None,
        text=text,
        budget=ROOM,
        count=len,
        is_search=True,
        options=RecallOptions(standing_max_tokens=ROOM),
    )
