"""How much of a session a load shows, on every back end."""

from __future__ import annotations

import pytest

from proxy.memory.model import LoadOptions, Position, SessionKey, Snapshot, State, WindowMove
from proxy.memory.store import Store
from tests.support.store.commits import TOKENS, chat, draft, record


def ids(snapshot: Snapshot) -> list[str]:
    return [entry.card.id for entry in snapshot.log]


def turns(snapshot: Snapshot) -> list[str]:
    """The exchanges whose messages are in the log, each once."""
    return list(dict.fromkeys(entry.card.exchange for entry in snapshot.log))


async def five_turns(store: Store, key: SessionKey) -> None:
    for n in range(1, 6):
        await store.commit(key, chat(f"x{n}"))


@pytest.mark.parametrize(
    ("messages", "tokens", "first"),
    [
        pytest.param(None, None, 1, id="no-bounds"),
        pytest.param(0, None, 5, id="the-newest-turn-always"),
        pytest.param(1, None, 5, id="one-message-is-exceeded-by-a-turn"),
        pytest.param(2, None, 4, id="two-messages-are-exceeded-by-the-third"),
        pytest.param(3, None, 4, id="whole-turns"),
        pytest.param(9, None, 1, id="nine-of-ten"),
        pytest.param(10, None, 1, id="all-fit"),
        pytest.param(None, 0, 5, id="no-tokens"),
        pytest.param(None, 2 * TOKENS, 4, id="tokens-of-one-turn"),
        pytest.param(None, 2 * TOKENS - 1, 5, id="tokens-of-less-than-a-turn"),
        pytest.param(None, 10 * TOKENS, 1, id="all-tokens-fit"),
        pytest.param(4, 2 * TOKENS, 4, id="the-narrower-bound-counts"),
        pytest.param(2, 6 * TOKENS, 4, id="whichever-it-is"),
    ],
)
@pytest.mark.parametrize("whole", [False, True], ids=["bounded", "whole"])
async def test_the_bounds_say_how_far_back_a_load_reaches(
    store: Store, key: SessionKey, messages: int | None, tokens: int | None, first: int, whole: bool
) -> None:
    await five_turns(store, key)
    options = LoadOptions(profile="default", whole=whole, max_messages=messages, max_tokens=tokens)
    seen = await store.load(key, options)
    window = [f"x{n}.{m}" for n in range(first, 6) for m in (0, 1)]
    assert list(seen.bodies) == window
    assert ids(seen) == ([f"x{n}.{m}" for n in range(1, 6) for m in (0, 1)] if whole else window)
    assert seen.whole is whole
    assert (seen.messages, seen.tokens) == (10, 10 * TOKENS)


async def test_a_stored_start_is_where_the_log_begins(store: Store, key: SessionKey) -> None:
    await five_turns(store, key)
    move = WindowMove(profile="p", start="x3.1")
    await store.commit(key, chat("x6", window=move))
    seen = await store.load(key, LoadOptions(profile="p", max_messages=0, max_tokens=0))
    assert seen.start == Position(5, 6)
    assert turns(seen) == ["x3", "x4", "x5", "x6"] and len(seen.log) == 8
    assert turns(await store.load(key, LoadOptions(profile="q", max_messages=0))) == ["x6"]


async def test_a_start_behind_everything_leaves_the_newest_turn(
    store: Store, key: SessionKey
) -> None:
    await five_turns(store, key)
    move = WindowMove(profile="p", start="x5.0")
    gone = ("x5.0", "x5.1")
    await store.commit(key, record("x6", superseded=gone, window=move))
    seen = await store.load(key, LoadOptions(profile="p"))
    assert seen.start == Position(9, 9)
    assert ids(seen) == ["x4.0", "x4.1"]


async def test_a_window_may_start_at_a_message_of_the_same_commit(
    store: Store, key: SessionKey
) -> None:
    await five_turns(store, key)
    await store.commit(key, chat("x6", window=WindowMove(profile="p", start="x6.0")))
    seen = await store.load(key, LoadOptions(profile="p"))
    assert seen.start == Position(11, 11) and ids(seen) == ["x6.0", "x6.1"]


async def test_the_turn_of_the_last_exchange_is_shown_though_it_is_old(
    store: Store, key: SessionKey
) -> None:
    await five_turns(store, key)
    late = draft("x6", 0, "tool", turn="x2.0")
    answer = draft("x6", 1, "assistant", turn="x2.0")
    await store.commit(key, record("x6", late, answer))
    seen = await store.load(key, LoadOptions(profile="default", max_messages=0))
    assert ids(seen) == ["x2.0", "x2.1", "x6.0", "x6.1", "x5.0", "x5.1"]
    assert list(seen.bodies) == ids(seen)
    whole = await store.load(key, LoadOptions(profile="default", max_messages=0, whole=True))
    assert list(whole.bodies) == list(seen.bodies) and len(whole.log) == 12
    await store.commit(key, chat("x7"))
    assert turns(await store.load(key, LoadOptions(profile="default", max_messages=0))) == ["x7"]


async def test_a_log_whose_messages_are_all_superseded_is_empty(
    store: Store, key: SessionKey
) -> None:
    await store.commit(key, chat("x1"))
    everything = ("x1.0", "x1.1")
    move = WindowMove(profile="default", start="x1.1")
    await store.commit(key, record("x2", superseded=everything, window=move))
    for whole in (False, True):
        seen = await store.load(key, LoadOptions(profile="default", whole=whole))
        assert seen.exists and seen.log == () and not seen.bodies
        assert (seen.messages, seen.tokens) == (0, 0)
        assert seen.start == Position(1, 2)


async def test_alternates_are_the_inactive_choices_of_a_reply(
    store: Store, key: SessionKey
) -> None:
    question = draft("x1", 0)
    first = draft("x1", 1, "assistant")
    second = draft("x1", 2, "assistant", choice=1, state="superseded")
    await store.commit(key, record("x1", question, first, second, reserved=1))
    await store.commit(key, chat("x2"))
    await store.commit(key, chat("x3", superseded=("x2.0", "x2.1")))
    seen = await store.load(key, LoadOptions(profile="default", whole=True))
    assert [entry.card.id for entry in seen.alternates["x1"]] == ["x1.2"]
    assert seen.alternates["x1"][0].position == Position(1, 3)
    assert list(seen.alternates) == ["x1"]
    chosen = chat("x4", superseded=("x1.0", "x1.1"), activated=("x1.2",))
    await store.commit(key, chosen)
    seen = await store.load(key, LoadOptions(profile="default", whole=True))
    assert [entry.card.id for entry in seen.alternates["x1"]] == ["x1.1"]
    assert ids(seen) == ["x1.2", "x3.0", "x3.1", "x4.0", "x4.1"]
    assert not (await store.load(key, LoadOptions(profile="default"))).alternates


async def test_bodies_are_found_whatever_their_state(store: Store, key: SessionKey) -> None:
    kept = chat("x1", reserved=1)
    await store.commit(key, kept)
    await store.commit(key, chat("x2", superseded=("x1.1",)))
    wanted = ["x1.0", "x1.1", "x1.2", "x1.3", "x9.0", "nonsense", "x1.00"]
    found = await store.bodies(key, wanted)
    assert found == {"x1.0": kept.drafts[0].body, "x1.1": kept.drafts[1].body}
    assert await store.bodies(key, []) == {}
    assert await store.bodies(SessionKey(key.tenant, "other"), ["x1.0"]) == {}


async def test_what_came_is_found_where_it_is_more_than_what_is_carried_back(
    store: Store, key: SessionKey
) -> None:
    await store.commit(key, record("x1", draft("x1", 0), draft("x1", 1, wire=b"\x00wire")))
    await store.commit(key, chat("x2", superseded=("x1.1",)))
    wanted = ["x1.0", "x1.1", "x1.2", "x9.0", "nonsense"]
    assert await store.wires(key, wanted) == {"x1.1": b"\x00wire"}
    assert await store.wires(key, []) == {}
    assert await store.wires(SessionKey(key.tenant, "other"), ["x1.1"]) == {}


async def test_any_bytes_and_any_length_come_back_as_they_went(
    store: Store, key: SessionKey
) -> None:
    body = bytes(range(256)) * 1000
    question = draft("x1", 0, wire=b"\x00wire")
    await store.commit(key, record("x1", question))
    long = draft("x2", 0)
    odd = type(long)(card=long.card, turn=long.turn, body=body, wire=b"")
    await store.commit(key, record("x2", odd, system=b"[\x00\xff]"))
    seen = await store.load(key, LoadOptions(profile="default"))
    assert seen.bodies == {"x1.0": question.body, "x2.0": body}
    assert seen.system == b"[\x00\xff]"
    states: tuple[State, ...] = ("active",)
    rows = (await store.messages(key, states, 0, 10)).items
    assert [row.wire for row in rows] == [b"\x00wire", b""]
