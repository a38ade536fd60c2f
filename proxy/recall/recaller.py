"""Runs a recall query: three round trips to the store, two if the rows are cached, with pure
ranking in between; more only for later updates of what was found.

``Recaller.recall`` is the whole process: ``_select`` parses the question and looks up its terms in
the index, ``_shortlist`` reads the rows of what matched, ``_messages`` reads the messages from
history, which decides who owns a message, whether it is still active, and what its text is now.
The pure steps in between are in ``pipeline`` and ``recollection``.
"""

from __future__ import annotations

from collections.abc import Callable

from cachetools import LRUCache

from proxy.memory.model import SessionKey
from proxy.recall.index import IndexLookup, Owner, OwnTextOf, PassageHistory
from proxy.recall.index_cache import IndexCache, LookupWithState
from proxy.recall.indexing.index_updater import IndexUpdater
from proxy.recall.indexing.indexer import Indexer
from proxy.recall.indexing.state import State
from proxy.recall.pipeline import (
    Selection,
    Shortlist,
    later_changes,
    match_terms,
    merged,
    rank,
    select,
    shortlist_of_recalled,
)
from proxy.recall.query.query import RecallOptions, RecallQuery
from proxy.recall.query.question import Question, expand, read_question
from proxy.recall.ranking.match import Matches
from proxy.recall.ranking.select import needs_expansion
from proxy.recall.recollection import Messages, in_force, new_words_of_best, resolve
from proxy.recall.results import RecallHit, Recollection
from proxy.recall.semantic.vectors import NO_SIMILARITIES, PendingQuestion, VectorSearch

MAX_OWNERS = 10_000
"""Users that are remembered to have several sessions."""


MIN_AHEAD = 32
"""Indexing of a session without user is deferred if so many messages after the last hidden one are
indexed."""


class Recaller:
    """Answers recall queries; ``own_text_of`` returns the author's own text of a message's JSON.

    ``vector_search`` finds passages by meaning in addition; None: by words alone.
    """

    def __init__(
        self,
        index: IndexCache,
        history: PassageHistory,
        index_updater: IndexUpdater,
        own_text_of: OwnTextOf,
        clock: Callable[[], float],
        vector_search: VectorSearch | None = None,
    ) -> None:
        self._index, self._history = index, history
        self._index_updater = index_updater
        self._own_text_of, self._clock, self._vector_search = own_text_of, clock, vector_search
        self._with_several_sessions: LRUCache[Owner, None] = LRUCache(MAX_OWNERS)

    def clear_caches(self, tenant: str) -> None:
        """Drop what is cached of a tenant's texts and questions."""
        self._index.clear_terms(tenant)
        if self._vector_search is not None:
            self._vector_search.clear_caches(tenant)

    def schedule_indexing(self, query: RecallQuery) -> None:
        """Have what is recorded of the query's session indexed soon; later if all of it is in the
        prompt and no other session can find it."""
        owner = query.owner
        if owner.user:
            self._index_updater.on_query(query.key, owner)
        elif query.nothing_hidden:
            self._index_updater.defer(query.key, owner)

    async def recall(self, query: RecallQuery) -> Recollection:
        """The passages and standing instructions for a prompt.  Raises StoreError."""
        shortlist = await self._shortlist(query)
        if shortlist is None:
            return Recollection()
        messages = await self._messages(shortlist)
        more = await self._later_changes(shortlist, messages)
        if more is not None:
            messages = {**messages, **await self._messages(more)}
            shortlist = merged(shortlist, more)
        return resolve(shortlist, messages, self._own_text_of)

    async def _later_changes(self, shortlist: Shortlist, messages: Messages) -> Shortlist | None:
        """Later statements of the user about what was found; None if there are none.

        Needs no round trip if terms and rows are cached.
        """
        best = new_words_of_best(shortlist, messages, self._own_text_of)
        selection = shortlist.selection
        if best is None or selection is None:
            return None
        owner, session = shortlist.query.owner, shortlist.query.key.session
        lookup, state = await self._index.lookup(owner, best.terms, session, selection.lookup)
        numbers = best.later(lookup.postings)
        if state is None or not numbers.size:
            return None
        rows = await self._index.rows(owner, numbers, state, lookup.revision)
        more = later_changes(shortlist, selection, numbers, rows)
        return more if more.places else None

    async def standing(self, query: RecallQuery) -> tuple[RecallHit, ...]:
        """The standing instructions in force, newest first.  Raises StoreError."""
        shortlist = await self._shortlist(query)
        if shortlist is None:
            return ()
        return in_force(shortlist, await self._messages(shortlist), self._own_text_of)

    async def _shortlist(self, query: RecallQuery) -> Shortlist | None:
        """The passages to read from history; None if there are none."""
        owner = query.owner
        self.schedule_indexing(query)
        if query.replayed == () or query.has_nowhere_to_look:
            return None
        if owner.user:
            own = query.key if query.newest_hidden_seq is not None else None
            await self._index_updater.flush(owner, excluding=own)
            if query.nothing_hidden and await self._is_only_session(query):
                return None
        selection = await self._select(query)
        if selection is None:
            return None
        numbers = selection.all_numbers
        if not numbers.size:
            return None
        if query.replayed is not None:
            return shortlist_of_recalled(selection, query.replayed)
        state, revision = selection.state, selection.lookup.revision
        rows = await self._index.rows(query.owner, numbers, state, revision)
        return rank(selection, rows)

    async def _is_only_session(self, query: RecallQuery) -> bool:
        """Whether the index has no other session of this user, so that there is nothing to find.

        Users with several sessions are remembered: they hardly ever have one again.
        """
        owner = query.owner
        if owner in self._with_several_sessions:
            return False
        found = await self._index.lookup(owner, (), query.key.session)
        lookup, state = self._schedule_missing(query, found)
        if state is None or state.sessions <= (1 if lookup.mark else 0):
            return state is not None
        self._with_several_sessions[owner] = None
        return False

    def _schedule_missing(self, query: RecallQuery, found: LookupWithState) -> LookupWithState:
        """Queue an index to be made if it is missing or has another format; returns ``found``."""
        owner, state = query.owner, found.state
        if state is None:
            self._index_updater.on_stale_index(owner)
        elif not found.lookup.revision or (owner.user and state.caught_up_at <= 0):
            self._index_updater.on_missing_index(owner)
        return found

    async def _look_up_question(self, query: RecallQuery, question: Question) -> LookupWithState:
        """Look up the question, after indexing recorded messages of this session that are not in
        the prompt."""
        key, owner, terms = query.key, query.owner, question.terms
        found = await self._index.lookup(owner, terms, key.session)
        indexed = found.lookup.mark.seq if found.lookup.mark else 0
        has_unindexed = self._has_unindexed if owner.user else self._has_unindexed_without_user
        if not has_unindexed(query, indexed):
            return found
        await self._index_updater.flush(owner)
        return await self._index.lookup(owner, terms, key.session)

    def _has_unindexed(self, query: RecallQuery, indexed: int) -> bool:
        """Whether, as far as this process knows, hidden messages of this session are not
        indexed."""
        hidden = query.newest_hidden_seq or 0
        return hidden > indexed and self._index_updater.has_unindexed(query.key)

    def _has_unindexed_without_user(self, query: RecallQuery, indexed: int) -> bool:
        """The same for a session without user: nothing else brings its index up to date, and the
        process that recorded it may have deferred indexing."""
        key, hidden = query.key, query.newest_hidden_seq
        if hidden is not None and hidden + MIN_AHEAD <= indexed:
            self._index_updater.defer(key, query.owner)
            return False
        self._index_updater.on_query(key, query.owner)
        if hidden is not None and hidden <= indexed:
            return False
        self._index_updater.on_recorded(key)
        return True

    async def _select(self, query: RecallQuery) -> Selection | None:
        """The passages whose rows to read; None if there is no index."""
        now = self._clock()
        question = read_question(query.text, query.previous_texts, now, query.options.zone)
        pending = self._start_embedding(query, question)
        lookup, state = self._schedule_missing(query, await self._look_up_question(query, question))
        if state is None:
            return None
        matches = match_terms(question, lookup, state)
        if query.replayed is None and needs_expansion(matches):
            lookup, state, matches = await self._expanded(query, matches, lookup, state)
        near = NO_SIMILARITIES
        if self._vector_search and pending:
            near = await self._vector_search.search(pending, query.owner, state)
        return select(query, matches, lookup, state, now, near)

    async def _expanded(
        self, query: RecallQuery, matches: Matches, lookup: IndexLookup, state: State
    ) -> tuple[IndexLookup, State, Matches]:
        """Repeat the lookup with query expansion; unchanged if the thesaurus has no words."""
        question = expand(matches.question)
        if question is not matches.question:
            again = await self._index.lookup(query.owner, question.terms, query.key.session, lookup)
            if again.state is not None:
                lookup, state = again.lookup, again.state
                matches = match_terms(question, lookup, state)
        return lookup, state, matches

    def _start_embedding(self, query: RecallQuery, question: Question) -> PendingQuestion | None:
        """Start to embed the question while its words are looked up; None without an embedder."""
        if self._vector_search is None or question.is_empty or query.replayed is not None:
            return None
        return self._vector_search.start_embedding(question.text)

    async def _messages(self, shortlist: Shortlist) -> Messages:
        """The messages on a shortlist, as history has them now, by session and seq."""
        seqs = shortlist.seqs()
        if not seqs:
            return {}
        query = shortlist.query
        return await self._history.passages(query.key.tenant, query.reader, seqs)


UNBOUNDED = 1_000_000
"""Tokens: a budget without effect."""


class RecallAdmin:
    """All methods raise StoreError."""

    def __init__(self, recaller: Recaller, indexer: Indexer) -> None:
        self._recaller, self._indexer = recaller, indexer

    async def search(self, owner: Owner, query: str) -> list[RecallHit]:
        """Messages of a user's sessions, best first, after the standing instructions they match."""
        found = await self._recaller.recall(_query(owner, query))
        return list(found.all)

    async def standing(self, owner: Owner) -> tuple[RecallHit, ...]:
        """The standing instructions in force, newest first."""
        return await self._recaller.standing(_query(owner, ""))

    async def dismiss(self, owner: Owner, *instructions: str) -> None:
        """Never pin standing instructions again."""
        await self._indexer.dismiss(owner, *instructions)

    async def recheck_sessions(self, owner: Owner) -> None:
        """Have all sessions checked again: older ones than what is indexed are being restored."""
        await self._indexer.recheck_sessions(owner)

    async def dismissed(self, owner: Owner) -> tuple[str, ...]:
        """The ids of the standing instructions that were dismissed, the newest last."""
        return await self._indexer.dismissed(owner)


def _query(owner: Owner, text: str) -> RecallQuery:
    return RecallQuery(
        key=SessionKey(owner.tenant, owner.session),
        user=owner.user,
        session_owner=None,
        text=text,
        budget=UNBOUNDED,
        count=len,
        is_search=True,
        options=RecallOptions(standing_max_tokens=UNBOUNDED),
    )
