"""LangGraph's agent, which keeps the conversation in a checkpointer."""

from __future__ import annotations

import warnings
from typing import Any

from application import KEY, MODEL, Place, serve, weather
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.prebuilt import create_react_agent

warnings.simplefilter("ignore", DeprecationWarning)


def agent(place: Place) -> Any:
    model = ChatOpenAI(model=MODEL, base_url=place.url, api_key=KEY, default_headers=place.headers)
    return create_react_agent(model, [weather], checkpointer=InMemorySaver())


async def asked(agent: Any, text: str, streamed: bool) -> Any:
    question: Any = {"messages": [("user", text)]}
    thread: Any = {"configurable": {"thread_id": "one"}}
    if not streamed:
        return (await agent.ainvoke(question, thread))["messages"][-1].content
    async for _ in agent.astream(question, thread, stream_mode="messages"):
        pass
    return agent.get_state(thread).values["messages"][-1].content


async def say(place: Place, text: str) -> Any:
    return await asked(agent(place), text, False)


async def tools(place: Place, text: str, streamed: bool) -> Any:
    return await asked(agent(place), text, streamed)


async def converse(place: Place, texts: list[str], streamed: bool) -> list[Any]:
    kept = agent(place)
    return [await asked(kept, text, streamed) for text in texts]


serve(say, tools, converse)
