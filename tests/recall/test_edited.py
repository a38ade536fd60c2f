"""Messages that were edited or removed: found by their new words, never by the old ones."""

from __future__ import annotations

import json

import msgspec
import pytest

from proxy.chat.message import read_stored
from proxy.memory.archive import Revision
from proxy.memory.model import MessageEdit, SessionKey
from proxy.memory.store import StoreError
from proxy.recall.index import IndexBatch, Owner
from proxy.recall.indexing.indexer import TRIES
from tests.support.store.passages import KAI, TENANT, Memory, ids, said

BOAT, CAT = "My boat is red.", "My cat is black."
A = SessionKey(TENANT, "a")
ABOUT_BOAT, ABOUT_CAT = "Which boat?", "Which cat?"
WISH = "Always answer in French."


async def edit(remembering: Memory, message: str, text: str) -> None:
    """Put another text in a message's place, as the memory API does; not indexed yet."""
    line = await remembering.store.message(A, message)
    assert line is not None
    body = json.dumps({"role": line.card.role, "content": text}).encode()
    card = msgspec.structs.replace(line.card, digest=read_stored(body).digest)
    edited = MessageEdit(card=card, body=body, replaced_wire=line.body)
    assert await remembering.store.revise(A, Revision(edited=(edited,)))


async def indexed(remembering: Memory, owner: Owner) -> list[tuple[str, int]]:
    """Passages by session and seq, without the rows of none."""
    return [place for place in await remembering.indexed(owner) if place != ("", 0)]


async def test_the_old_words_find_nothing_from_the_edit_on(remembering: Memory) -> None:
    await remembering.commit("a", said("x1", BOAT, user="kai"))
    assert ids(await remembering.recall(ABOUT_BOAT)) == ["x1.0"]
    await edit(remembering, "x1.0", CAT)
    assert ids(await remembering.recall(ABOUT_BOAT)) == []


async def test_the_new_words_find_it_once_it_is_indexed_again(remembering: Memory) -> None:
    await remembering.commit("a", said("x1", BOAT, user="kai"))
    await edit(remembering, "x1.0", CAT)
    assert await remembering.indexer.index_edited(A, 1) == 1
    found = await remembering.recall(ABOUT_CAT)
    assert [(one.id, one.text) for one in found.all] == [("x1.0", CAT)]
    assert ids(await remembering.recall(ABOUT_BOAT)) == []


async def test_the_words_of_what_was_said_around_it_do_not_find_it_either(
    remembering: Memory,
) -> None:
    """It is the newest of the index, and by its number next to what came last before."""
    await remembering.commit("a", said("x1", "Soup for lunch.", "Bread.", BOAT, user="kai"))
    await edit(remembering, "x1.0", CAT)
    await remembering.indexer.index_edited(A, 1)
    await remembering.commit("a", said("x2", "My tent is green.", user="kai"))
    assert "x1.0" not in ids(await remembering.recall(ABOUT_BOAT))
    assert "x1.0" not in ids(await remembering.recall("Which tent?"))
    assert "x1.0" in ids(await remembering.recall(ABOUT_CAT))


async def test_an_edit_back_is_found_again(remembering: Memory) -> None:
    await remembering.commit("a", said("x1", BOAT, user="kai"))
    for text in (CAT, BOAT):
        await edit(remembering, "x1.0", text)
        await remembering.indexer.index_edited(A, 1)
    assert ids(await remembering.recall(ABOUT_BOAT)) == ["x1.0"]
    assert ids(await remembering.recall(ABOUT_CAT)) == []


async def test_an_index_goes_on_behind_an_edited_message(remembering: Memory) -> None:
    await remembering.commit("a", said("x1", BOAT, user="kai"))
    await edit(remembering, "x1.0", CAT)
    await remembering.indexer.index_edited(A, 1)
    await remembering.commit("a", said("x2", "My tent is green.", user="kai"))
    assert await indexed(remembering, KAI) == [("a", 1), ("a", 1), ("a", 2)]
    assert "x2.0" in ids(await remembering.recall("Which tent?"))


async def test_what_was_not_indexed_before_the_edit_is_indexed_once(remembering: Memory) -> None:
    await remembering.commit("a", said("x1", BOAT, user="kai"), indexed=False)
    await edit(remembering, "x1.0", CAT)
    assert await remembering.indexer.index_edited(A, 1) == 1
    assert await remembering.indexed(KAI) == [("a", 1)]
    assert await remembering.indexer.index_session(A) == 0


async def test_an_index_made_anew_has_the_new_words_alone(remembering: Memory) -> None:
    await remembering.commit("a", said("x1", BOAT, user="kai"))
    await edit(remembering, "x1.0", CAT)
    await remembering.indexer.rebuild(KAI)
    assert ids(await remembering.recall(ABOUT_CAT)) == ["x1.0"]
    assert await remembering.indexed(KAI) == [("a", 1)]


async def test_a_wish_follows_the_edit_of_its_message(remembering: Memory) -> None:
    await remembering.commit("a", said("x1", WISH, user="kai"))
    assert [one.text for one in (await remembering.recall("Hello")).standing] == [WISH]
    await edit(remembering, "x1.0", "Always answer in German.")
    assert (await remembering.recall("Hello")).standing == ()
    await remembering.indexer.index_edited(A, 1)
    wishes = (await remembering.recall("Hello")).standing
    assert [one.text for one in wishes] == ["Always answer in German."]
    await edit(remembering, "x1.0", BOAT)
    await remembering.indexer.index_edited(A, 1)
    assert (await remembering.recall("Hello")).standing == ()


async def test_a_removed_message_is_not_recalled(remembering: Memory) -> None:
    await remembering.commit("a", said("x1", BOAT, user="kai"))
    assert await remembering.store.revise(A, Revision(removed=("x1.0",)))
    assert ids(await remembering.recall(ABOUT_BOAT)) == []


async def test_what_follows_a_removed_last_message_is_indexed(remembering: Memory) -> None:
    await remembering.commit("a", said("x1", BOAT, "Fine.", user="kai"))
    assert await remembering.store.revise(A, Revision(removed=("x1.1",)))
    await remembering.commit("a", said("x2", "Soup for lunch.", CAT, user="kai"))
    assert "x2.1" in ids(await remembering.recall(ABOUT_CAT))
    assert "x1.0" in ids(await remembering.recall(ABOUT_BOAT))


async def test_a_message_that_is_gone_before_it_is_indexed_again_is_no_work(
    remembering: Memory,
) -> None:
    await remembering.commit("a", said("x1", BOAT, CAT, user="kai"))
    await edit(remembering, "x1.0", "My tent is green.")
    assert await remembering.store.revise(A, Revision(removed=("x1.0",)))
    assert await remembering.indexer.index_edited(A, 1) == 0
    await remembering.store.delete(A)
    assert await remembering.indexer.index_edited(A, 1) == 0


async def test_an_index_of_another_format_is_made_anew_instead(remembering: Memory) -> None:
    await remembering.commit("a", said("x1", BOAT, user="kai"))
    lookup = await remembering.store.lookup(KAI, (), 0)
    old = IndexBatch(lookup.revision, b"[1]", "", None, first=1)
    assert await remembering.store.write(KAI, old)
    await edit(remembering, "x1.0", CAT)
    await remembering.indexer.index_edited(A, 1)
    assert ids(await remembering.recall(ABOUT_CAT)) == ["x1.0"]


async def test_a_session_of_nobody_s_is_indexed_again_in_its_own_index(
    remembering: Memory,
) -> None:
    await remembering.commit("a", said("x1", BOAT))
    await edit(remembering, "x1.0", CAT)
    assert await remembering.indexer.index_edited(A, 1) == 1
    assert await indexed(remembering, Owner(TENANT, session="a")) == [("a", 1), ("a", 1)]


async def test_against_others_who_write_it_gives_up_in_the_end(
    remembering: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    await remembering.commit("a", said("x1", BOAT, user="kai"))
    tries = 0

    async def never(owner: Owner, batch: IndexBatch) -> bool:
        nonlocal tries
        tries += 1
        return False

    monkeypatch.setattr(remembering.store, "write", never)
    with pytest.raises(StoreError, match="too many"):
        await remembering.indexer.index_edited(A, 1)
    assert tries == TRIES
