"""Conversations that the proxy keeps for an upstream that has none, by OpenAI's own client."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence

import pytest
import pytest_asyncio
from openai import APIStatusError, AsyncOpenAI, BadRequestError, NotFoundError

from proxy.memory.items import Change, ItemOwner
from proxy.memory.model import SessionKey
from proxy.memory.naming import reference_of, reference_place
from proxy.tenancy import digest_of
from tests.support.rig import KEY, Rig
from tests.support.store.commits import chat
from tests.support.talk.keeping import Keeping, asks
from tests.support.upstream import items

pytestmark = pytest.mark.asyncio(loop_scope="session")

SAID = {"type": "message", "role": "user", "content": "u1"}


@pytest.fixture
def keeping(every: Rig) -> Keeping:
    return Keeping(every)


@pytest_asyncio.fixture(loop_scope="session")
async def client(keeping: Keeping) -> AsyncIterator[AsyncOpenAI]:
    async with keeping.client() as client:
        yield client


async def all_of(client: AsyncOpenAI, conversation: str, **how: str) -> list[str]:
    found = client.conversations.items.list(conversation, **how)  # type: ignore[arg-type]
    return [said(item) async for item in found]


def said(item: object) -> str:
    content = getattr(item, "content", None) or ()
    return " ".join(part.text for part in content) or str(getattr(item, "type", ""))


async def test_it_begins_with_items_and_goes_on(client: AsyncOpenAI, keeping: Keeping) -> None:
    begun = await client.conversations.create(items=[SAID], metadata={"topic": "x"})  # type: ignore[list-item]
    assert (begun.object, begun.metadata) == ("conversation", {"topic": "x"})
    first = await asks(client, "u2", conversation=begun.id)
    assert keeping.sent == "u1 u2"
    second = await asks(client, "u3", conversation={"id": begun.id})
    assert keeping.sent == "u1 u2 reply 1: u2 u3"
    assert second.conversation is not None and second.conversation.id == begun.id
    assert (await client.responses.retrieve(first.id)).conversation == first.conversation
    assert await all_of(client, begun.id, order="asc") == [
        *("u1", "u2", "reply 1: u2", "u3", "reply 2: u3")
    ]


async def test_it_may_begin_with_nothing(client: AsyncOpenAI, keeping: Keeping) -> None:
    begun = await client.conversations.create()
    assert (await client.conversations.retrieve(begun.id)) == begun
    assert await all_of(client, begun.id) == []
    await asks(client, "u1", conversation=begun.id)
    await asks(client, "u2", conversation=begun.id)
    assert keeping.sent == "u1 reply 1: u1 u2"


async def test_what_it_has_may_be_all_that_is_asked(client: AsyncOpenAI, keeping: Keeping) -> None:
    begun = await client.conversations.create(items=[SAID])  # type: ignore[list-item]
    first = await client.responses.create(model="gpt-5", conversation=begun.id)
    assert (first.output_text, keeping.sent) == ("reply 1: u1", "u1")
    second = await client.responses.create(model="gpt-5", previous_response_id=first.id)
    assert (second.output_text, keeping.sent) == ("reply 2: u1", "u1 reply 1: u1")
    assert not (await client.responses.input_items.list(second.id)).data
    assert await all_of(client, begun.id, order="asc") == ["u1", "reply 1: u1", "reply 2: u1"]


async def test_its_metadata_change(client: AsyncOpenAI) -> None:
    begun = await client.conversations.create(metadata={"a": "1"})
    changed = await client.conversations.update(begun.id, metadata={"b": "2"})
    assert changed.metadata == {"b": "2"}
    assert (await client.conversations.retrieve(begun.id)).metadata == {"b": "2"}
    for wrong in ({"a": 1}, {"a" * 65: "1"}, {"a": "1" * 513}, {str(n): "" for n in range(17)}):
        with pytest.raises(BadRequestError):
            await client.conversations.update(begun.id, metadata=wrong)  # type: ignore[arg-type]


async def test_its_items_are_paged_both_ways(client: AsyncOpenAI) -> None:
    begun = await client.conversations.create()
    for n in range(4):
        await asks(client, f"u{n}", conversation=begun.id)
    forth = await all_of(client, begun.id, order="asc")
    assert forth[:3] == ["u0", forth[1], "u1"] and len(forth) == 8
    assert await all_of(client, begun.id) == forth[::-1]
    assert await all_of(client, begun.id, limit="3") == forth[::-1]  # page after page
    page = await client.conversations.items.list(begun.id, limit=3, order="asc")
    assert ([said(item) for item in page.data], page.has_more) == (forth[:3], True)


async def test_items_come_and_go_one_by_one(client: AsyncOpenAI, keeping: Keeping) -> None:
    begun = await client.conversations.create(items=[{"role": "developer", "content": "Brief."}])
    added = await client.conversations.items.create(
        begun.id,
        items=[SAID, {"role": "assistant", "content": "a1"}, {"role": "user", "content": "u2"}],  # type: ignore[list-item]
    )
    assert [said(item) for item in added.data] == ["u1", "a1", "u2"]
    assert await all_of(client, begun.id, order="asc") == ["Brief.", "u1", "a1", "u2"]
    last = added.data[-1].id or ""
    assert (
        await client.conversations.items.retrieve(last, conversation_id=begun.id) == added.data[-1]
    )
    after = await client.conversations.items.delete(last, conversation_id=begun.id)
    assert after.id == begun.id
    with pytest.raises(NotFoundError) as refused:
        await client.conversations.items.retrieve(last, conversation_id=begun.id)
    assert refused.value.code == "item_not_found"
    await asks(client, "u3", conversation=begun.id)
    assert keeping.sent == "Brief. u1 a1 u3"
    (first, *_) = (await client.conversations.items.list(begun.id, order="asc")).data
    await client.conversations.items.delete(first.id or "", conversation_id=begun.id)
    assert (await all_of(client, begun.id, order="asc"))[:2] == ["u1", "a1"]


async def test_with_a_call_its_results_go(client: AsyncOpenAI, keeping: Keeping) -> None:
    begun = await client.conversations.create()
    keeping.upstream.reply(items.thought(), items.calls("look", "{}", "call_1"))
    await asks(client, "Look.", conversation=begun.id)
    result = {"type": "function_call_output", "call_id": "call_1", "output": "42"}
    await client.responses.create(model="gpt-5", input=[result], conversation=begun.id)  # type: ignore[list-item]
    kinds = [item.type async for item in client.conversations.items.list(begun.id, order="asc")]
    assert kinds == ["message", "reasoning", "function_call", "function_call_output", "message"]
    call = [i async for i in client.conversations.items.list(begun.id) if i.type == "function_call"]
    await client.conversations.items.delete(call[0].id or "", conversation_id=begun.id)
    kinds = [item.type async for item in client.conversations.items.list(begun.id, order="asc")]
    assert kinds == ["message", "message"]
    await asks(client, "u2", conversation=begun.id)


async def test_a_deleted_one_is_gone_with_all_that_was_said(
    client: AsyncOpenAI, keeping: Keeping
) -> None:
    begun = await client.conversations.create(items=[SAID])  # type: ignore[list-item]
    answered = await asks(client, "u2", conversation=begun.id)
    deleted = await client.conversations.delete(begun.id)
    assert (deleted.deleted, deleted.object) == (True, "conversation.deleted")
    for asking in (
        client.conversations.retrieve(begun.id),
        client.conversations.delete(begun.id),
        client.conversations.update(begun.id, metadata={}),
        client.conversations.items.create(begun.id, items=[SAID]),  # type: ignore[list-item]
        client.conversations.items.retrieve("msg_1", conversation_id=begun.id),
        asks(client, "u3", conversation=begun.id),
        client.responses.retrieve(answered.id),
        asks(client, "u3", answered),
    ):
        with pytest.raises(NotFoundError):
            await asking
    assert await keeping.log(begun.id) == ""


async def test_a_session_in_the_headers_is_the_conversation(keeping: Keeping) -> None:
    session = keeping.rig.talk().session
    async with keeping.client(X_Session_Id=session) as mine, keeping.client() as bare:
        await asks(mine, "u1")
        begun = await mine.conversations.create(metadata={"a": "b"})
        assert await all_of(bare, begun.id, order="asc") == ["u1", "reply 1: u1"]
        await asks(bare, "u2", conversation=begun.id)
        assert keeping.sent == "u1 reply 1: u1 u2"
        await bare.conversations.delete(begun.id)
        with pytest.raises(NotFoundError):
            await bare.conversations.retrieve(begun.id)
    assert await keeping.log(session) == ""
    assert session not in begun.id


@pytest.mark.parametrize("erased", ["session", "user"])
async def test_with_a_session_goes_what_leads_to_it(keeping: Keeping, erased: str) -> None:
    one, session = keeping.rig, keeping.rig.talk().session
    user = f"user-of-{session}"
    async with keeping.client(X_Session_Id=session, X_User_Id=user) as client:
        await asks(client, "u1")
    place, owner = reference_place(reference_of(session)), ItemOwner(digest_of(KEY.encode()))
    assert await one.store.items_at(owner, [place])
    path = f"sessions/{session}" if erased == "session" else f"users/{user}"
    headers = {"authorization": f"Bearer {KEY}"}
    answered = await one.client.delete(f"/memory/v1/{path}", headers=headers)
    assert answered.status_code == 200, answered.text
    assert not await one.store.items_at(owner, [place])


@pytest.mark.parametrize(
    ("turns", "others"), [(1, 0), (2, 0), (2, 1)], ids=["new", "gone", "begun-anew"]
)
async def test_where_a_store_has_lost_a_session_and_its_name_both_come_again(
    keeping: Keeping, turns: int, others: int
) -> None:
    store, session = keeping.rig.store, keeping.rig.talk().session
    tenant = digest_of(KEY.encode())
    place = reference_place(reference_of(session))
    lost = Change(namespace=place.namespace, key=place.key, value=None)
    async with keeping.client(X_Session_Id=session) as mine, keeping.client() as bare:
        for _ in range(turns):
            await asks(mine, "u1")
        await store.delete(SessionKey(tenant, session))
        await store.change_items(ItemOwner(tenant), [lost])
        for n in range(others):
            await store.commit(SessionKey(tenant, session), chat(f"other-{n}", time.time()))
        answered = await asks(mine, "u2")
        again = await asks(bare, "u3", answered)
    assert again.previous_response_id == answered.id


async def test_a_name_is_written_once_for_all_turns_of_a_while(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, real = list[ItemOwner](), keeping.rig.store.change_items

    async def noted(owner: ItemOwner, changes: Sequence[Change]) -> object:
        written.append(owner)
        return await real(owner, changes)

    monkeypatch.setattr(keeping.rig.store, "change_items", noted, raising=False)
    async with keeping.client(X_Session_Id=keeping.rig.talk().session) as mine:
        for n in range(3):
            await asks(mine, f"u{n}")
    assert len(written) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"items": "u1"},
        {"items": [1]},
        {"items": [{"role": "user", "content": "u"}] * 21},
        {"items": [{"type": "item_reference", "id": "msg_1"}]},
        {"metadata": []},
        {"metadata": "x"},
    ],
)
async def test_what_cannot_be_kept_is_refused(
    client: AsyncOpenAI, wrong: dict[str, object]
) -> None:
    with pytest.raises(APIStatusError) as refused:
        await client.post("/conversations", body=wrong, cast_to=object)
    assert (refused.value.status_code, refused.value.code) == (400, "invalid_value")


async def test_one_goes_on_from_a_response_or_in_a_conversation(client: AsyncOpenAI) -> None:
    begun = await client.conversations.create()
    answered = await asks(client, "u1", conversation=begun.id)
    with pytest.raises(BadRequestError):
        await asks(client, "u2", answered, conversation=begun.id)


async def test_tokens_are_counted_with_all_of_it(client: AsyncOpenAI, keeping: Keeping) -> None:
    begun = await client.conversations.create(items=[SAID])  # type: ignore[list-item]
    await client.responses.input_tokens.count(model="gpt-5", input="u2", conversation=begun.id)
    assert keeping.sent == "u1 u2"
    assert await keeping.log(begun.id) == "u1"
