"""From a question to what is recalled, over history as it is at that moment."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from proxy.chat.message import text_of
from proxy.memory.model import SessionKey
from proxy.memory.store import StoreError
from proxy.recall.index import IndexBatch, IndexLookup, Owner
from proxy.recall.index_cache import IndexCache
from proxy.recall.indexing.index_updater import DEFERRED_EXCHANGES
from proxy.recall.indexing.indexer import Indexer
from proxy.recall.query.query import RecallOptions
from proxy.recall.recaller import MIN_AHEAD, Recaller
from tests.support.store.passages import KAI, TENANT, Memory, ids, said

BOAT = "My boat is red."
THREE = "Three of us sail: Ann, Bob and I, on Sundays mostly, whenever the wind is good enough."
ASKED = "Is my boat red?"
NOBODYS = Owner(TENANT, session="a")


async def test_a_passage_leads_back_to_its_message(remembering: Memory) -> None:
    await remembering.commit("a", said("x1", BOAT, "Fine.", user="kai"))
    found = await remembering.recall(ASKED)
    (boat,) = [one for one in found.passages if one.message == "x1.0"]
    assert (boat.kind, boat.text, boat.session, boat.seq) == ("passage", BOAT, "a", 1)
    assert (boat.role, boat.created_at) == ("user", 1000.5)
    assert boat.score > 0 and boat.parts["lexical"] != 0


@pytest.mark.parametrize("state", ["superseded", "deleted", "expired"])
async def test_what_is_gone_from_history_is_gone_at_once(remembering: Memory, state: str) -> None:
    ttl = 60 if state == "expired" else 0
    key = await remembering.commit("a", said("x1", BOAT, "Fine.", user="kai", ttl=ttl))
    await remembering.commit("b", said("x9", "My boat has oars.", user="kai"))
    assert "x1.0" in ids(await remembering.recall(ASKED))
    if state == "superseded":
        gone = ("x1.0", "x1.1")
        await remembering.commit("a", said("x2", "No.", superseded=gone), indexed=False)
    elif state == "deleted":
        await remembering.store.delete(key)
    else:
        remembering.clock.now += 61
    assert ids(await remembering.recall(ASKED)) in (["x9.0"], ["x2.0", "x9.0"])


async def test_another_message_at_the_same_place_is_not_taken_for_it(remembering: Memory) -> None:
    """A session begun anew, before the index has heard of it."""
    key = await remembering.commit("a", said("x1", BOAT, user="kai"))
    lookup = await remembering.store.lookup(KAI, (), 0, "a")
    await remembering.store.delete(key)
    back = await remembering.store.lookup(KAI, (), 0)
    passages = (await remembering.state(KAI)).passages
    assert await remembering.store.write(
        KAI, IndexBatch(back.revision, back.state, "a", lookup.mark, first=passages)
    )
    await remembering.commit("a", said("x2", "I had soup.", user="kai"), indexed=False)
    assert ids(await remembering.recall(ASKED)) == []


async def test_messages_shown_said_or_about_to_go_are_not_recalled(remembering: Memory) -> None:
    await remembering.commit("a", said("x1", BOAT, "A boat!", "The boat has oars.", user="kai"))
    key = SessionKey(TENANT, "a")
    assert ids(await remembering.recall(ASKED, key=key)) == ["x1.0", "x1.1", "x1.2"]
    assert ids(await remembering.recall(ASKED, key=key, shown_seqs={1})) == ["x1.1", "x1.2"]
    assert ids(await remembering.recall(ASKED, shown_seqs={1})) == ["x1.0", "x1.1", "x1.2"]
    assert ids(await remembering.recall(ASKED, shown_digests={"assistant-x1-1"})) == [
        "x1.0",
        "x1.2",
    ]
    assert ids(await remembering.recall(ASKED, superseded_ids={"x1.0", "x1.2"})) == ["x1.1"]


@pytest.mark.parametrize("texts", [("My boat.", BOAT), (" ", BOAT)])
async def test_tool_and_system_messages_are_nobodys_memory(
    remembering: Memory, texts: tuple[str, str]
) -> None:
    await remembering.commit("a", said("x1", *texts, roles="st", user="kai"))
    assert ids(await remembering.recall(ASKED)) == []


async def test_what_a_program_put_into_a_message_is_nobodys_memory(remembering: Memory) -> None:
    rules = f"<system-reminder>\n{BOAT} Always answer in French.\n</system-reminder>\n"
    await remembering.commit("a", said("x1", rules, "Fine.", f"{rules}I sail.", user="kai"))
    assert await remembering.indexed(KAI) == [("a", 2), ("a", 3)]
    assert ids(await remembering.recall(ASKED)) == []
    (found,) = (await remembering.recall("Do I sail?")).all
    assert found.text == "I sail."


async def test_what_is_left_of_a_message_costs_its_share_of_it(remembering: Memory) -> None:
    rules = f"<system-reminder>\n{BOAT * 500}\n</system-reminder>"
    commit = said("x1", f"{rules}{THREE}", user="kai")
    (only,) = commit.drafts
    card = msgspec.structs.replace(only.card, tokens=3000)
    drafts = (msgspec.structs.replace(only, card=card),)
    await remembering.commit("a", msgspec.structs.replace(commit, drafts=drafts))
    (found,) = (await remembering.recall("Who sails with me?")).passages
    assert (found.text, found.tokens < 50) == (THREE, True)


async def test_an_index_of_what_programs_put_in_leads_to_what_was_typed(
    remembering: Memory,
) -> None:
    """As older releases have made it."""
    rules = f"<system-reminder>\n{BOAT} Always answer in French.\n</system-reminder>"
    commit = said("x1", rules, "Fine.", f"{rules}I sail.", user="kai")
    key = await remembering.commit("a", commit, indexed=False)
    store = remembering.store
    older = Indexer(store, store, lambda wire: (text_of(wire), 1.0), remembering.clock)
    await older.index_session(key)
    assert len(await remembering.indexed(KAI)) == 3
    assert [found.text for found in (await remembering.recall(ASKED)).all] == ["I sail."]
    await remembering.indexer.rebuild(KAI)
    assert ids(await remembering.recall(ASKED)) == []


async def test_only_the_wanted_roles_are_recalled(remembering: Memory) -> None:
    await remembering.commit("a", said("x1", BOAT, "The boat is red?", user="kai"))
    for roles, expected in [(("user",), ["x1.0"]), (("assistant",), ["x1.1"])]:
        assert (
            ids(await remembering.recall(ASKED, options=RecallOptions(roles=roles, min_score=0)))
            == expected
        )


async def test_whose_memory_it_is(remembering: Memory) -> None:
    await remembering.commit("a", said("x1", BOAT, user="kai"))
    await remembering.commit("b", said("x2", "My boat has oars.", user="eve"))
    await remembering.commit("c", said("x3", "My boat has bells."))
    assert ids(await remembering.recall(ASKED)) == ["x1.0"]
    assert ids(await remembering.recall(ASKED, user="eve")) == ["x2.0"]
    assert ids(await remembering.recall(ASKED, user="nobody")) == []
    for session, owner, expected in [("a", "kai", ["x1.0"]), ("b", "eve", ["x2.0"])]:
        key = SessionKey(TENANT, session)
        mine = await remembering.recall(ASKED, user=None, session_owner=owner, key=key)
        assert ids(mine) == expected
    own = await remembering.recall(ASKED, user=None, key=SessionKey(TENANT, "c"))
    assert ids(own) == ["x3.0"]
    elsewhere = SessionKey("another", "a")
    assert ids(await remembering.recall(ASKED, key=elsewhere)) == []


async def test_a_session_alone_is_searched_where_that_is_wanted(remembering: Memory) -> None:
    await remembering.commit("a", said("x1", BOAT, user="kai"))
    await remembering.commit("b", said("x2", "My boat has oars.", user="kai"))
    own, any_ = RecallOptions(own_session_only=True, min_score=0), RecallOptions(min_score=0)
    for options, user in [(own, "kai"), (any_, None)]:
        found = await remembering.recall(
            ASKED, options=options, user=user, session_owner="kai", key=SessionKey(TENANT, "a")
        )
        assert ids(found) == ["x1.0"]
        none = await remembering.recall(ASKED, options=options, user=user, session_owner="kai")
        assert ids(none) == []


async def test_the_same_again_whatever_was_said_since(remembering: Memory) -> None:
    await remembering.commit("a", said("x1", BOAT, "Fine.", user="kai"))
    await remembering.commit("b", said("x2", "Always answer in French.", user="kai"))
    first = await remembering.recall(ASKED)
    refs = tuple([one.recalled for one in first.all])
    for n in range(5):
        more = said(f"y{n}", f"My boat {n} is red, a red boat! Never answer in {n}.", user="kai")
        await remembering.commit("c", more)
    assert ids(await remembering.recall(ASKED)) != ids(first)
    assert await remembering.recall(ASKED, replayed=refs) == first
    await remembering.store.delete(SessionKey(TENANT, "a"))
    assert ids(await remembering.recall(ASKED, replayed=refs)) == ["x2.0:0"]
    assert not await remembering.recall(ASKED, replayed=())


async def test_what_days_and_values_mean_is_told_and_again_the_same(remembering: Memory) -> None:
    remembering.clock.now = 9e6
    await remembering.commit("a", said("x1", "My boat came yesterday.", user="kai"))
    await remembering.commit("b", said("x2", "My boat is called Ida.", user="kai"))
    await remembering.commit("c", said("x3", "My boat is called Ada.", user="kai"))
    first = await remembering.recall("What is my boat called?")
    assert {one.text: one.note for one in first.passages} == {
        "My boat came yesterday.": "yesterday = 1969-12-31",
        "My boat is called Ida.": "later: Ada",
        "My boat is called Ada.": "",
    }
    refs = tuple([one.recalled for one in first.all])
    assert await remembering.recall("What is my boat called?", replayed=refs) == first


async def test_the_budget_bounds_what_is_recalled(remembering: Memory) -> None:
    for n, thing in enumerate(["oars", "bells", "flags", "lamps", "masts", "soup", "cats"]):
        await remembering.commit("a", said(f"x{n}", f"My boat carries {thing}.", user="kai"))
    sizes = [
        len((await remembering.recall("What does my boat carry?", budget=budget)).passages)
        for budget in (1, 40, 60, 120, 1000)
    ]
    assert sizes == sorted(sizes)
    assert sizes[0] == 0 < sizes[2] < sizes[-1] == 7


@pytest.mark.parametrize("text", ["", "thanks!", "ok", "🙂", "谢谢"])
async def test_what_asks_for_nothing_gets_nothing(remembering: Memory, text: str) -> None:
    await remembering.commit("a", said("x1", BOAT, "Thanks, ok!", user="kai"))
    assert not await remembering.recall(text)


async def test_an_owner_that_asks_is_heard_of(remembering: Memory) -> None:
    await remembering.commit("a", said("x1", BOAT, user="kai"), indexed=False)
    assert not await remembering.recall(ASKED)
    remembering.index_updater.open()
    await remembering.index_updater.close(5)
    assert ids(await remembering.recall(ASKED)) == ["x1.0"]


async def test_an_index_that_was_dropped_is_made_anew_though_its_owner_was_heard_of(
    remembering: Memory,
) -> None:
    """A tenant's move drops it; what is said next has begun another when somebody asks."""
    await remembering.commit("a", said("x1", BOAT, user="kai"))
    await remembering.recall(ASKED)
    await remembering.index_updater._drain()
    await remembering.store.drop(KAI)
    await remembering.commit("b", said("x2", "I had soup.", user="kai"))
    await remembering.recall(ASKED)
    await remembering.index_updater._drain()
    assert ids(await remembering.recall(ASKED)) == ["x1.0"]


async def test_an_index_of_another_format_recalls_nothing_and_is_made_anew(
    remembering: Memory,
) -> None:
    await remembering.commit("a", said("x1", BOAT, user="kai"))
    lookup = await remembering.store.lookup(KAI, (), 0)
    assert await remembering.store.write(
        KAI, IndexBatch(lookup.revision, b"[999]", "", None, first=1)
    )
    assert not await remembering.recall(ASKED)
    remembering.index_updater.open()
    await remembering.index_updater.close(5)
    assert ids(await remembering.recall(ASKED)) == ["x1.0"]


@pytest.mark.parametrize("call", ["lookup", "rows", "passages"])
async def test_errors_of_the_store_are_the_callers(
    remembering: Memory, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    await remembering.commit("a", said("x1", BOAT, user="kai"))

    async def fail(*arguments: object, **named: object) -> None:
        raise StoreError("down")

    monkeypatch.setattr(remembering.store, call, fail)
    with pytest.raises(StoreError):
        await remembering.recall(ASKED)


async def test_a_question_costs_three_looks_at_the_store_and_two_where_rows_are_known(
    remembering: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(30):
        await remembering.commit(f"s{n}", said(f"x{n}", f"My boat {n} is red.", user="kai"))
    asked: list[str] = []

    class Watching:
        def __getattr__(self, name: str) -> object:
            asked.append(name)
            return getattr(remembering.store, name)

    store: object = Watching()
    recaller = remembering.recaller
    monkeypatch.setattr(recaller, "_index", IndexCache(store))  # type: ignore[arg-type]
    monkeypatch.setattr(recaller, "_history", store)
    assert isinstance(recaller, Recaller)
    assert await remembering.recall(ASKED)
    assert sorted(asked) == ["lookup", "passages", "rows"]
    asked.clear()
    assert await remembering.recall(ASKED)
    assert sorted(asked) == ["lookup", "passages"]


# What need not be searched, and what is indexed first


class Looks:
    """Counts the looks at an index."""

    def __init__(self, remembering: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
        self.terms: list[int] = []
        lookup = remembering.store.lookup

        async def counted(
            owner: Owner, terms: Sequence[bytes], newest: int, session: str = ""
        ) -> IndexLookup:
            self.terms.append(len(terms))
            return await lookup(owner, terms, newest, session=session)

        monkeypatch.setattr(remembering.store, "lookup", counted)


async def test_a_session_of_nobody_that_is_shown_as_a_whole_is_not_searched(
    remembering: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = await remembering.commit("a", said("x1", BOAT))
    looks = Looks(remembering, monkeypatch)
    assert not await remembering.recall(ASKED, key=key, user=None, newest_hidden_seq=0)
    assert looks.terms == []
    assert await remembering.recall(ASKED, key=key, user=None, newest_hidden_seq=1)


async def test_a_short_session_of_nobody_is_indexed_when_something_of_it_is_to_be_found(
    remembering: Memory,
) -> None:
    key = SessionKey(TENANT, "a")
    for number, text in enumerate((BOAT, "I had soup.", "It rains.")):
        shown = frozenset(range(1, number + 1))
        assert not await remembering.recall(
            ASKED, key=key, user=None, newest_hidden_seq=0, shown_seqs=shown
        )
        await remembering.commit("a", said(f"x{number}", text), indexed=False)
        remembering.index_updater.on_recorded(key)
    await remembering.index_updater._drain()
    assert (await remembering.store.lookup(NOBODYS, (), 0)).revision == 0
    last = frozenset([3])
    found = await remembering.recall(
        ASKED, key=key, user=None, newest_hidden_seq=2, shown_seqs=last
    )
    assert ids(found)[0] == "x0.0"
    await remembering.commit("a", said("x3", BOAT), indexed=False)
    remembering.index_updater.on_recorded(key)
    await remembering.index_updater._drain()
    assert await remembering.indexed(NOBODYS) == [("a", seq) for seq in range(1, 5)]


async def test_a_longer_session_of_nobody_is_indexed_before_anything_is_hidden(
    remembering: Memory,
) -> None:
    key = SessionKey(TENANT, "a")
    for number in range(DEFERRED_EXCHANGES):
        shown = frozenset(range(1, number + 1))
        assert not await remembering.recall(
            ASKED, key=key, user=None, newest_hidden_seq=0, shown_seqs=shown
        )
        await remembering.index_updater._drain()
        assert (await remembering.store.lookup(NOBODYS, (), 0)).revision == 0
        await remembering.commit("a", said(f"x{number}", BOAT), indexed=False)
        remembering.index_updater.on_recorded(key)
    await remembering.index_updater._drain()
    assert await remembering.indexed(NOBODYS) == [
        ("a", seq + 1) for seq in range(DEFERRED_EXCHANGES)
    ]


async def test_a_session_of_nobody_whose_index_is_far_ahead_of_what_is_hidden_rests(
    remembering: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its index is written once for several turns, and before any of them is hidden."""
    said_before = ["My boat is red.", *["I had soup."] * MIN_AHEAD]
    key = await remembering.commit("a", said("x", *said_before))
    level, steps = remembering.indexer.index_session, 0

    async def counted(of: SessionKey) -> int:
        nonlocal steps
        steps += 1
        return await level(of)

    monkeypatch.setattr(remembering.indexer, "index_session", counted)
    for number in range(DEFERRED_EXCHANGES + 2):
        shown = frozenset(range(2, MIN_AHEAD + number + 2))
        found = await remembering.recall(
            ASKED, key=key, user=None, newest_hidden_seq=1, shown_seqs=shown
        )
        assert ids(found) == ["x.0"]
        await remembering.commit("a", said(f"y{number}", "It rains."), indexed=False)
        remembering.index_updater.on_recorded(key)
        await remembering.index_updater._drain()
        assert steps == (number + 1) // DEFERRED_EXCHANGES
    later = len(said_before) + DEFERRED_EXCHANGES + 2
    await remembering.recall("Does it rain?", key=key, user=None, newest_hidden_seq=later)
    assert len(await remembering.indexed(NOBODYS)) == later


@pytest.mark.parametrize("hidden", [None, 2])
async def test_what_another_process_has_let_rest_is_found(
    remembering: Memory, hidden: int | None
) -> None:
    key = await remembering.commit("a", said("x1", "I had soup."))
    await remembering.commit("a", said("x2", BOAT), indexed=False)
    found = await remembering.recall(ASKED, key=key, user=None, newest_hidden_seq=hidden)
    assert "x2.0" in ids(found)


async def test_who_searches_a_session_of_nobody_has_its_index_made(remembering: Memory) -> None:
    """Another process has recorded it, and did not index it."""
    await remembering.commit("a", said("x1", BOAT), indexed=False)
    key = SessionKey(TENANT, "a")
    assert ids(await remembering.recall(ASKED, key=key, user=None)) == ["x1.0"]
    assert not await remembering.recall(ASKED, key=SessionKey(TENANT, "none"), user=None)


async def test_the_only_session_of_a_person_shown_as_a_whole_is_not_searched(
    remembering: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = await remembering.commit("a", said("x1", BOAT, user="kai"))
    looks = Looks(remembering, monkeypatch)
    shown = {"key": key, "newest_hidden_seq": 0, "shown_seqs": frozenset([1])}
    assert not await remembering.recall(ASKED, **shown)
    assert looks.terms == [0]
    await remembering.commit("b", said("x2", BOAT, user="kai"))
    assert ids(await remembering.recall(ASKED, **shown)) == ["x2.0"]
    looks.terms.clear()
    assert ids(await remembering.recall(ASKED, **shown)) == ["x2.0"]
    assert looks.terms == [0]  # what its words find is known


async def test_what_was_said_in_another_session_is_found_at_once(remembering: Memory) -> None:
    await remembering.recall(ASKED, key=SessionKey(TENANT, "a"))
    key = await remembering.commit("a", said("x1", BOAT, user="kai"), indexed=False)
    remembering.index_updater.on_recorded(key)
    assert ids(await remembering.recall(ASKED, newest_hidden_seq=0)) == ["x1.0"]


async def test_what_is_not_shown_of_the_own_session_is_found_at_once(remembering: Memory) -> None:
    key = SessionKey(TENANT, "a")
    await remembering.commit("a", said("x1", "I had soup.", user="kai"))
    await remembering.recall(ASKED, key=key, newest_hidden_seq=1)
    await remembering.commit("a", said("x2", BOAT, user="kai"), indexed=False)
    remembering.index_updater.on_recorded(key)
    assert not await remembering.recall(
        ASKED, key=key, newest_hidden_seq=1, shown_seqs=frozenset([2])
    )
    assert "x2.0" in ids(await remembering.recall(ASKED, key=key, newest_hidden_seq=2))
