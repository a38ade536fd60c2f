"""OpenAI's own client, unchanged, in each of its ways to ask for a response."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from openai import AsyncOpenAI
from pydantic import BaseModel

from tests.support.rig import KEY, Rig
from tests.support.talk.responding import ItemTalk
from tests.support.upstream import items

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def talk(one: Rig) -> ItemTalk:
    return ItemTalk.of(one)


@pytest_asyncio.fixture(loop_scope="session")
async def client(talk: ItemTalk) -> AsyncIterator[AsyncOpenAI]:
    session = {"X-Session-Id": talk.session}
    async with AsyncOpenAI(
        base_url=f"{talk.rig.proxy.url}/v1", api_key=KEY, default_headers=session, max_retries=0
    ) as client:
        yield client
        assert not talk.upstream.refused


async def test_what_is_new_is_enough(client: AsyncOpenAI, talk: ItemTalk) -> None:
    first = await client.responses.create(model="gpt-5", input="Hi, I am Kai.")
    assert first.output_text == "reply 1: Hi, I am Kai."
    await client.responses.create(model="gpt-5", input="Who am I?", instructions="Be brief.")
    assert talk.sent == "Hi, I am Kai. reply 1: Hi, I am Kai. Who am I?"


async def test_a_stream_and_its_helper(client: AsyncOpenAI, talk: ItemTalk) -> None:
    stream = await client.responses.create(model="gpt-5", input="u1", stream=True)
    kinds = [event.type async for event in stream]
    assert kinds[-1] == "response.completed"
    async with client.responses.stream(model="gpt-5", input="u2") as helper:
        final = await helper.get_final_response()
    assert final.output_text == "reply 2: u2"
    assert await talk.log() == "u1 reply 1: u1 u2 reply 2: u2"


async def test_the_output_is_appended_to_the_input(client: AsyncOpenAI, talk: ItemTalk) -> None:
    talk.upstream.reply(items.thought(), items.calls("look", '{"at": "it"}', "call_1"))
    tools = [{"type": "function", "name": "look", "parameters": {}, "strict": False}]
    said: list[object] = [{"role": "user", "content": "Look."}]
    first = await client.responses.create(model="gpt-5", input=said, tools=tools)  # type: ignore[arg-type]
    said += first.output
    said.append({"type": "function_call_output", "call_id": "call_1", "output": "42"})
    second = await client.responses.create(model="gpt-5", input=said, tools=tools)  # type: ignore[arg-type]
    assert second.output_text == "reply 1: Look."
    said += second.output
    said.append({"role": "user", "content": "Thanks."})
    await client.responses.create(model="gpt-5", input=said, tools=tools)  # type: ignore[arg-type]
    assert len(talk.input) == len(said)
    assert [m["role"] for m in await talk.bodies()] == [
        *("user", "assistant", "tool", "assistant"),
        *("user", "assistant"),
    ]


async def test_only_the_results_are_sent(client: AsyncOpenAI, talk: ItemTalk) -> None:
    talk.upstream.reply(items.thought(), items.calls("look", "{}", "call_1"))
    await client.responses.create(model="gpt-5", input="Look.")
    result = {"type": "function_call_output", "call_id": "call_1", "output": "42"}
    await client.responses.create(model="gpt-5", input=[result])  # type: ignore[list-item]
    assert [item.get("type") for item in talk.input] == [
        *(None, "reasoning", "function_call", "function_call_output")
    ]


async def test_each_response_goes_on_from_the_one_before(
    client: AsyncOpenAI, talk: ItemTalk
) -> None:
    previous = None
    for text in ("u1", "u2", "u3"):
        answered = await client.responses.create(
            model="gpt-5", input=text, previous_response_id=previous
        )
        previous = answered.id
    assert talk.sent == "u3"
    assert await talk.log() == "u1 reply 1: u1 u2 reply 2: u2 u3 reply 3: u3"


async def test_structure_is_parsed(client: AsyncOpenAI, talk: ItemTalk) -> None:
    class Person(BaseModel):
        name: str

    talk.upstream.reply(items.said(json.dumps({"name": "Kai"})))
    parsed = await client.responses.parse(model="gpt-5", input="Kai.", text_format=Person)
    assert parsed.output_parsed == Person(name="Kai")
    await client.responses.create(model="gpt-5", input="Thanks.")
    assert talk.sent == 'Kai. {"name": "Kai"} Thanks.'


async def test_tokens_are_counted(client: AsyncOpenAI, talk: ItemTalk) -> None:
    await client.responses.create(model="gpt-5", input="u1")
    await client.responses.input_tokens.count(model="gpt-5", input="u2")
    assert talk.sent == "u1 reply 1: u1 u2"
