"""LangGraph's store over the proxy in event loops and in graphs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, Item

from proxy.integrations.langgraph import MemoryProxyStore


async def test_every_method_has_its_asynchronous_twin(store: MemoryProxyStore) -> None:
    await store.aput(("a", "b"), "k", {"n": 1})
    await asyncio.gather(*(store.aput(("a",), f"k{n}", {"n": n}) for n in range(20)))
    found = await store.aget(("a", "b"), "k")
    assert found is not None
    assert found.value == {"n": 1}
    await store.adelete(("a", "b"), "k")
    assert await store.aget(("a", "b"), "k") is None
    assert len(await store.asearch(("a",), limit=50)) == 20
    assert await store.alist_namespaces() == [("a",)]


def test_one_store_serves_several_event_loops(store: MemoryProxyStore) -> None:
    asyncio.run(store.aput(("a",), "k", {"n": 1}))
    found = asyncio.run(store.aget(("a",), "k"))
    assert found is not None
    assert found.value == {"n": 1}


class State(TypedDict):
    said: str
    answer: str


class Context(TypedDict):
    user: str


def remember(state: State, runtime: Runtime[Context]) -> dict[str, str]:
    assert runtime.store is not None
    runtime.store.put(("users", runtime.context["user"], "said"), state["said"], {"is": "said"})
    return {}


async def aremember(state: State, runtime: Runtime[Context]) -> dict[str, str]:
    assert runtime.store is not None
    namespace = ("users", runtime.context["user"], "said")
    await runtime.store.aput(namespace, state["said"], {"is": "said"})
    return {}


def answer(state: State, runtime: Runtime[Context]) -> dict[str, str]:
    assert runtime.store is not None
    found = runtime.store.search(("users", runtime.context["user"]))
    return {"answer": keys(found)}


async def aanswer(state: State, runtime: Runtime[Context]) -> dict[str, str]:
    assert runtime.store is not None
    found = await runtime.store.asearch(("users", runtime.context["user"]))
    return {"answer": keys(found)}


def keys(found: Iterable[Item]) -> str:
    return " ".join(item.key for item in found)


def graph(store: BaseStore, *nodes: Any) -> Any:
    builder = StateGraph(State, context_schema=Context)
    builder.add_sequence(nodes)
    builder.add_edge(START, nodes[0].__name__)
    builder.add_edge(nodes[-1].__name__, END)
    return builder.compile(store=store)


def test_a_graph_remembers_a_person_from_run_to_run(store: MemoryProxyStore) -> None:
    runs = graph(store, remember, answer)
    for user, said in (("kim", "tea"), ("lee", "milk"), ("kim", "sugar")):
        last = runs.invoke({"said": said}, context={"user": user})
    assert last["answer"] == "sugar tea"


async def test_an_asynchronous_graph_remembers_as_well(store: MemoryProxyStore) -> None:
    runs = graph(store, aremember, aanswer)
    await runs.ainvoke({"said": "tea"}, context={"user": "kim"})
    last = await runs.ainvoke({"said": "sugar"}, context={"user": "kim"})
    assert last["answer"] == "sugar tea"
