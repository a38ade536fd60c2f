"""Google's Agent Development Kit, over LiteLLM."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from application import KEY, MODEL, Place, serve, weather
from google.adk.agents import Agent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.genai import types


class Conversation:
    """An agent with one session of its own."""

    def __init__(self, place: Place) -> None:
        model = LiteLlm(
            model=f"openai/{MODEL}",
            api_base=place.url,
            api_key=KEY,
            extra_headers=place.headers,
        )
        self._runner = InMemoryRunner(Agent(name="assistant", model=model, tools=[weather]))
        self._session: Any = None

    async def ask(self, text: str, streamed: bool = False) -> AsyncIterator[Any]:
        if self._session is None:
            self._session = await self._runner.session_service.create_session(
                app_name=self._runner.app_name, user_id="kai"
            )
        mode = StreamingMode.SSE if streamed else StreamingMode.NONE
        async for event in self._runner.run_async(
            user_id="kai",
            session_id=self._session.id,
            new_message=types.Content(role="user", parts=[types.Part(text=text)]),
            run_config=RunConfig(streaming_mode=mode),
        ):
            if event.error_message:
                raise RuntimeError(event.error_message)
            yield event


def text_of(event: Any) -> str:
    parts = event.content.parts if event.content and event.content.parts else []
    return "".join(part.text or "" for part in parts)


async def say(place: Place, text: str) -> str:
    (answer,) = await converse(place, [text], False)
    return answer


async def stream(place: Place, text: str) -> AsyncIterator[str]:
    async for event in Conversation(place).ask(text, True):
        if event.partial:
            yield text_of(event)


async def tools(place: Place, text: str, streamed: bool) -> str:
    (answer,) = await converse(place, [text], streamed)
    return answer


async def converse(place: Place, texts: list[str], streamed: bool) -> list[str]:
    kept = Conversation(place)
    answers = []
    for text in texts:
        told = [text_of(event) async for event in kept.ask(text, streamed) if not event.partial]
        answers.append(told[-1])
    return answers


serve(say, stream, tools, converse)
