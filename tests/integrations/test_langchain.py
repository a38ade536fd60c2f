"""LangChain's chat message history over the proxy."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import httpx
import pytest
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables.history import RunnableWithMessageHistory

from proxy.integrations import langchain
from proxy.integrations.langchain import MemoryProxyChatMessageHistory, MemoryProxyError
from tests.integrations.conftest import ADMIN_KEY, Served

Open = Callable[..., MemoryProxyChatMessageHistory]

PNG = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
TALK = [
    SystemMessage("You are short."),
    HumanMessage([{"type": "text", "text": "What is it?"}, PNG], name="Kim"),
    AIMessage(
        "",
        tool_calls=[
            {"name": "look", "args": {"at": "é", "n": 1}, "id": "c1", "type": "tool_call"},
            {"name": "look", "args": {}, "id": "c2", "type": "tool_call"},
        ],
    ),
    ToolMessage("a dot", tool_call_id="c1", name="look"),
    ToolMessage("", tool_call_id="c2"),
    AIMessage("A dot."),
    HumanMessage("Thanks."),
]


@pytest.fixture
def open_history(served: Served, http: httpx.Client, key: str) -> Open:
    """Histories of one tenant."""

    def opened(session: str = "s", **more: Any) -> MemoryProxyChatMessageHistory:
        return MemoryProxyChatMessageHistory(session, served.url, key, client=http, **more)

    return opened


@pytest.fixture
def history(open_history: Open) -> MemoryProxyChatMessageHistory:
    return open_history()


def texts(messages: Sequence[BaseMessage]) -> list[str]:
    return [message.text for message in messages]


def test_messages_come_back_as_they_were(open_history: Open) -> None:
    own = InMemoryChatMessageHistory.model_construct(messages=[])
    for each in (own, open_history()):
        each.add_messages(TALK[:3])
        each.add_message(TALK[3])
        each.add_messages([])
        each.add_messages(TALK[4:])
    assert open_history().messages == own.messages == TALK
    assert str(open_history()) == str(own)


def test_a_tenant_that_has_nothing_yet_is_empty_to_the_administrator(
    served: Served, http: httpx.Client
) -> None:
    history = MemoryProxyChatMessageHistory("s", served.url, ADMIN_KEY, "brand-new", client=http)
    history.clear()
    assert history.messages == []
    history.add_messages(TALK[:2])
    assert history.messages == TALK[:2]


async def test_every_method_has_its_asynchronous_twin(
    history: MemoryProxyChatMessageHistory,
) -> None:
    await history.aadd_messages(TALK)
    assert await history.aget_messages() == TALK
    await history.aclear()
    assert await history.aget_messages() == []


def test_a_history_longer_than_a_page_is_read_page_by_page(
    history: MemoryProxyChatMessageHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = [HumanMessage(str(n)) for n in range(1001)]
    history.add_messages(messages)
    assert history.messages == messages
    monkeypatch.setattr(langchain, "PAGE", "400")
    assert history.messages == messages


def test_an_unknown_session_is_empty_and_clearing_makes_it_so_again(
    history: MemoryProxyChatMessageHistory,
) -> None:
    assert history.messages == []
    history.clear()
    history.add_messages(TALK)
    history.clear()
    assert history.messages == []
    history.add_user_message("Hello.")
    assert history.messages == [HumanMessage("Hello.")]


@pytest.mark.parametrize("session", ["a/b", "..x", "a%2Fb", "?#&=+", "a.b:c@d", "messages"])
def test_any_session_id_of_the_proxy_is_taken(
    served: Served, http: httpx.Client, key: str, open_history: Open, session: str
) -> None:
    open_history(session).add_user_message("Hello.")
    assert texts(open_history(session).messages) == ["Hello."]
    headers = {"authorization": f"Bearer {key}"}
    listed = http.get(f"{served.url}/memory/v1/sessions", headers=headers).json()["data"]
    assert [found["id"] for found in listed] == [session]


@pytest.mark.parametrize("session", [".", "..", "é", "a b"])
def test_other_session_ids_are_refused(open_history: Open, session: str) -> None:
    with pytest.raises(MemoryProxyError) as caught:
        open_history(session).clear()
    assert (caught.value.status, caught.value.code) == (400, "invalid_session_id")


# System messages


def test_system_messages_that_are_added_later_take_the_place_of_the_earlier_ones(
    history: MemoryProxyChatMessageHistory,
) -> None:
    developer = SystemMessage("Be kind.", additional_kwargs={"__openai_role__": "developer"})
    history.add_messages([SystemMessage("Be short."), developer])
    assert history.messages == [SystemMessage("Be short."), developer]
    history.add_messages([SystemMessage("Be long."), HumanMessage("Hello.")])
    history.add_messages([SystemMessage("Be long."), AIMessage("Hi.")])
    assert texts(history.messages) == ["Be long.", "Hello.", "Hi."]


def test_a_system_message_behind_another_one_is_refused_before_anything_is_sent(
    history: MemoryProxyChatMessageHistory,
) -> None:
    with pytest.raises(ValueError, match="System messages come before all others"):
        history.add_messages([HumanMessage("Hello."), SystemMessage("Be short.")])
    assert history.messages == []


# Chats of the proxy


def test_chats_through_the_proxy_are_in_the_history_and_the_history_in_the_chats(
    served: Served, http: httpx.Client, key: str, history: MemoryProxyChatMessageHistory
) -> None:
    history.add_messages([SystemMessage("Be short."), HumanMessage("I am Kim."), AIMessage("Hi.")])
    body = {"model": "m", "messages": [{"role": "user", "content": "Who am I?"}]}
    headers = {"authorization": f"Bearer {key}", "x-session-id": "s"}
    chat = http.post(f"{served.url}/v1/chat/completions", json=body, headers=headers).json()
    asked = [message["content"] for message in served.up.requests[-1].messages]
    assert asked == ["Be short.", "I am Kim.", "Hi.", "Who am I?"]
    assert texts(history.messages) == [*asked, chat["choices"][0]["message"]["content"]]


FUNCTION = {"name": "look", "arguments": '{"at": 1}'}


@pytest.mark.parametrize(
    ("wire", "expected"),
    [
        pytest.param(
            {
                "role": "assistant",
                "tool_calls": [{"type": "function", "id": "c", "function": FUNCTION}],
            },
            AIMessage("", tool_calls=[{"name": "look", "args": {"at": 1}, "id": "c"}]),
            id="no content",
        ),
        pytest.param(
            {"role": "assistant", "content": None, "function_call": FUNCTION},
            AIMessage("", additional_kwargs={"function_call": FUNCTION}),
            id="the old kind of call",
        ),
        pytest.param(
            {"role": "function", "name": "look", "content": "a dot"},
            FunctionMessage(content="a dot", name="look"),
            id="and its result",
        ),
        pytest.param(
            {"role": "tool", "content": "?"}, ToolMessage("?", tool_call_id=""), id="no id"
        ),
    ],
)
def test_messages_of_others_can_be_read(
    served: Served,
    http: httpx.Client,
    key: str,
    history: MemoryProxyChatMessageHistory,
    wire: dict[str, Any],
    expected: BaseMessage,
) -> None:
    imported(served, http, key, wire)
    assert history.messages == [expected]
    history.clear()
    history.add_messages([expected])
    assert history.messages == [expected]


def imported(served: Served, http: httpx.Client, key: str, *wires: dict[str, Any]) -> None:
    url, headers = f"{served.url}/memory/v1/sessions/s/messages", {"authorization": f"Bearer {key}"}
    assert http.post(url, json={"messages": wires}, headers=headers).status_code == 200


def test_fields_that_langchain_does_not_know_can_be_read(
    served: Served, http: httpx.Client, key: str, history: MemoryProxyChatMessageHistory
) -> None:
    fields = {"refusal": "No.", "reasoning_content": "Hm."}
    imported(served, http, key, {"role": "assistant", "content": None, **fields})
    assert history.messages == [AIMessage("", additional_kwargs=fields)]


@pytest.mark.parametrize("arguments", ['{"at": ', "[]", "null", ""])
def test_calls_with_arguments_that_are_no_object_are_invalid_calls(
    served: Served,
    http: httpx.Client,
    key: str,
    history: MemoryProxyChatMessageHistory,
    arguments: str,
) -> None:
    broken = {"type": "function", "id": "c1", "function": {"name": "f", "arguments": arguments}}
    good = {"type": "function", "id": "c2", "function": FUNCTION}
    wire = {"role": "assistant", "content": "", "tool_calls": [broken, good]}
    imported(served, http, key, wire)
    (message,) = history.messages
    assert isinstance(message, AIMessage)
    assert [call["id"] for call in message.tool_calls] == ["c2"]
    (invalid,) = message.invalid_tool_calls
    assert (invalid["id"], invalid["name"], invalid["args"]) == ("c1", "f", arguments)
    history.clear()
    history.add_messages([message])
    assert history.messages == [message]


def test_a_session_belongs_to_the_user_it_began_with(open_history: Open) -> None:
    open_history(user_id="kim").add_user_message("Hello.")
    with pytest.raises(MemoryProxyError) as caught:
        open_history(user_id="lee").add_user_message("Hello.")
    assert (caught.value.status, caught.value.code) == (403, "session_owner_mismatch")
    assert texts(open_history().messages) == ["Hello."]


# A runnable


def numbered() -> GenericFakeChatModel:
    answers = (AIMessage(f"Answer {n}.") for n in itertools.count(1))
    return GenericFakeChatModel(messages=answers)


@pytest.mark.filterwarnings("ignore:RunnableWithMessageHistory is deprecated")
async def test_a_runnable_with_message_history_goes_on_where_it_was(open_history: Open) -> None:
    seen: list[list[str]] = []

    def noted(prompt: Any) -> Any:
        seen.append(texts(prompt.to_messages()))
        return prompt

    prompt = ChatPromptTemplate.from_messages(
        [("system", "Be short."), MessagesPlaceholder("history"), ("human", "{said}")]
    )
    chain = RunnableWithMessageHistory(
        prompt | noted | numbered(),
        open_history,
        input_messages_key="said",
        history_messages_key="history",
    )
    kim: Any = {"configurable": {"session_id": "kim"}}
    await chain.ainvoke({"said": "One."}, kim)
    await chain.ainvoke({"said": "Else."}, {"configurable": {"session_id": "lee"}})
    await chain.ainvoke({"said": "Two."}, kim)
    assert seen[-1] == ["Be short.", "One.", "Answer 1.", "Two."]
    assert texts(open_history("kim").messages) == ["One.", "Answer 1.", "Two.", "Answer 3."]
    assert texts(open_history("lee").messages) == ["Else.", "Answer 2."]
