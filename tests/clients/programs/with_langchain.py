"""langchain-openai, with LangChain's agent and LangGraph's checkpointer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from application import KEY, MODEL, RESPONSES, Place, serve, weather
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel


class Person(BaseModel):
    """A person."""

    name: str


def model(place: Place) -> ChatOpenAI:
    return ChatOpenAI(
        model=MODEL,
        base_url=place.url,
        api_key=KEY,
        default_headers=place.headers,
        use_responses_api=RESPONSES,
    )


def say(place: Place, text: str) -> Any:
    return model(place).invoke(text).text


def stream(place: Place, text: str) -> Iterator[Any]:
    for chunk in model(place).stream(text):
        yield chunk.content


def agent(place: Place) -> Any:
    return create_agent(model(place), [weather], checkpointer=InMemorySaver())


def asked(agent: Any, text: str, streamed: bool) -> Any:
    question: Any = {"messages": [("user", text)]}
    thread: Any = {"configurable": {"thread_id": "one"}}
    if not streamed:
        return agent.invoke(question, thread)["messages"][-1].text
    # The mode in which the model is asked for a stream.
    for _ in agent.stream(question, thread, stream_mode="messages"):
        pass
    return agent.get_state(thread).values["messages"][-1].text


def tools(place: Place, text: str, streamed: bool) -> Any:
    return asked(agent(place), text, streamed)


def converse(place: Place, texts: list[str], streamed: bool) -> list[Any]:
    kept = agent(place)
    return [asked(kept, text, streamed) for text in texts]


def extract(place: Place, text: str) -> Any:
    structured = model(place).with_structured_output(Person, method="function_calling")
    return structured.invoke(text).model_dump()


def headers(place: Place, text: str) -> Any:
    chat = model(place).model_copy(update={"include_response_headers": True})
    return chat.invoke(text).response_metadata["headers"]


serve(say, stream, tools, converse, extract, headers)
