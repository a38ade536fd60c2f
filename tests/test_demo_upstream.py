"""``serve --upstream demo``: anybody's own client sees memory at work, without a key."""

from __future__ import annotations

import json
import logging
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from openai import OpenAI
from typer.testing import CliRunner

from proxy.cli import app
from proxy.demo.apis import Json
from proxy.demo.model import MARK, UNKNOWN, WRITE, answer_anybody
from proxy.demo.upstream import PretendedUpstream, standing_in
from proxy.preflight import migrate_store
from proxy.settings import load
from tests.support.processes.program import line, running
from tests.support.waiting import PATIENCE, eventually

BLOCK = (
    '<memory version="1" kind="recall">\nFrom other sessions.\nuser: I work at the harbour.\n'
    f"assistant: {MARK} Noted the harbour work.\n</memory>\n\n"
)


def said(*texts: str) -> str:
    """What it answers to these messages, from the person and itself by turns."""
    roles = ("user", "assistant") * len(texts)
    messages = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=False)]
    return str(answer_anybody(messages)["content"])


@pytest.mark.parametrize(
    ("texts", "answer"),
    [
        (["Hi, my name is Kai."], "Nice to meet you, Kai! I was sent 1 message."),
        (["I like tea."], "Hello! I was sent 1 message."),
        (["My name is Kai.", "Hi", "What is my name?"], "Your name is Kai. I was sent 3 messages."),
        (["What is my name?"], f"{UNKNOWN} I was sent 1 message."),
        (["I live in Oslo. I like tea.", "ok", "Where do I live?"], 'You said: "I live in Oslo."'),
        (["I live in Rome.", "", "I live in Oslo.", "", "Where do I live?"], '"I live in Oslo."'),
        (["I live in Oslo.", "ok", "Which car is mine?"], UNKNOWN),
        (["Do I live in Oslo?", "Live in Oslo.", "Where do I live?"], UNKNOWN),
        ([f"{BLOCK}Where do I work?"], 'You said: "I work at the harbour."'),
        ([f"{BLOCK}I like tea."], "Hello! I was sent 1 message."),
    ],
)
def test_it_answers_from_what_it_is_shown_and_says_what_it_is(
    texts: list[str], answer: str
) -> None:
    told = said(*texts)
    assert told.startswith(f"{MARK} ")
    assert answer in told


def test_contents_in_parts_are_read() -> None:
    parts: list[Json] = [{"type": "text", "text": "My name is Kai."}]
    assert "Kai" in answer_anybody([{"role": "user", "content": parts}])["content"]


def test_a_summary_that_it_writes_has_no_mark() -> None:
    told = answer_anybody([{"role": "user", "content": f"{WRITE}: my name is Kai"}])["content"]
    assert told == "The human said: my name is Kai."


async def answered(path: str, body: Json) -> str:
    """Its answer, without a proxy in front."""
    transport = httpx.ASGITransport(PretendedUpstream(answer_anybody))
    async with httpx.AsyncClient(transport=transport, base_url="http://demo") as client:
        return (await client.post(f"/v1/{path}", json={"model": "any", **body})).text


HELLO: list[Json] = [{"role": "user", "content": "Hello there"}]


async def test_it_says_what_was_used_as_an_upstream_does() -> None:
    chat = json.loads(await answered("chat/completions", {"messages": HELLO}))["usage"]
    assert chat["prompt_tokens"] >= 2
    assert chat["total_tokens"] == chat["prompt_tokens"] + chat["completion_tokens"]
    response = json.loads(await answered("responses", {"input": HELLO}))["usage"]
    message = json.loads(await answered("messages", {"messages": HELLO}))["usage"]
    said = (chat["prompt_tokens"], chat["completion_tokens"])
    assert said == (response["input_tokens"], response["output_tokens"])
    assert said == (message["input_tokens"], message["output_tokens"])


async def test_a_stream_of_it_says_what_was_used_where_that_is_asked() -> None:
    asked = {"messages": HELLO, "stream": True}
    assert "usage" not in await answered("chat/completions", asked)
    wanted = {**asked, "stream_options": {"include_usage": True}}
    *_, last, done = (await answered("chat/completions", wanted)).strip().split("\n\n")
    event = json.loads(last.removeprefix("data: "))
    assert (event["choices"], done) == ([], "data: [DONE]")
    assert event["usage"]["prompt_tokens"] >= 2


@pytest.fixture(scope="module", params=["1", "2"], ids=["one-process", "two-workers"])
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str]]:
    """The address of a proxy in front of it, and its banner."""
    arguments = ["proxy", "serve", "--upstream", "demo", "--port", "0", "--workers", request.param]
    with running(arguments, tmp_path_factory.mktemp("served")) as process:
        upstream = line(process, "upstream")
        address = line(process, "listening on").split()[-1]
        yield address, f"{upstream}\n{line(process, 'look at it')}\n{line(process, 'try it')}"
        process.terminate()
        assert process.wait(PATIENCE) == 0


def test_an_unchanged_client_sees_that_it_is_remembered(served: tuple[str, str]) -> None:
    with OpenAI(
        base_url=f"{served[0]}/v1",
        api_key="none",
        default_headers={"X-Session-Id": "holiday-plans", "X-User-Id": "kai"},
    ) as client:

        def ask(text: str) -> str:
            chat = client.chat.completions
            answer = chat.create(model="any", messages=[{"role": "user", "content": text}])
            return answer.choices[0].message.content or ""

        assert ask("Hi, my name is Kai.") == f"{MARK} Nice to meet you, Kai! I was sent 1 message."
        assert ask("What is my name?") == f"{MARK} Your name is Kai. I was sent 3 messages."
        assert [model.id for model in client.models.list()] == ["pretend-1"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_client_of_the_responses_api_is_remembered(
    served: tuple[str, str], stream: bool, request: pytest.FixtureRequest
) -> None:
    headers = {"X-Session-Id": f"responses-{request.node.callspec.id}"}
    with OpenAI(
        base_url=f"{served[0]}/v1", api_key="none", default_headers=headers, max_retries=0
    ) as client:

        def ask(text: str) -> str:
            if not stream:
                return client.responses.create(model="any", input=text).output_text
            with client.responses.stream(model="any", input=text) as events:
                return events.get_final_response().output_text

        assert ask("Hi, my name is Kai.") == f"{MARK} Nice to meet you, Kai! I was sent 1 message."
        assert ask("What is my name?") == f"{MARK} Your name is Kai. I was sent 3 messages."


def test_a_response_is_gone_on_from_in_its_session(served: tuple[str, str]) -> None:
    headers = {"X-Session-Id": "goes-on"}
    with OpenAI(
        base_url=f"{served[0]}/v1", api_key="none", default_headers=headers, max_retries=0
    ) as client:
        first = client.responses.create(model="any", input="Hi, my name is Kai.")
        client.responses.create(model="any", input="I have a cat.")
        second = client.responses.create(
            model="any", input="What is my name?", previous_response_id=first.id
        )
    assert second.output_text == f"{MARK} Your name is Kai. I was sent 3 messages."


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_client_of_the_messages_api_is_remembered(
    served: tuple[str, str], stream: bool, request: pytest.FixtureRequest
) -> None:
    headers = {"x-session-id": f"messages-{request.node.callspec.id}", "x-api-key": "none"}

    async def ask(client: httpx.AsyncClient, text: str) -> str:
        said = [{"role": "user", "content": [{"type": "text", "text": text}]}]
        body = {"model": "any", "max_tokens": 99, "system": "Be brief.", "messages": said}
        answered = await client.post("/v1/messages", json={**body, "stream": stream})
        if not stream:
            return str(answered.json()["content"][0]["text"])
        lines = (line.removeprefix("data: ") for line in answered.text.splitlines())
        events = [json.loads(line) for line in lines if line.startswith("{")]
        assert [events[0]["type"], events[-1]["type"]] == ["message_start", "message_stop"]
        return "".join(event.get("delta", {}).get("text", "") for event in events)

    async with httpx.AsyncClient(base_url=served[0], headers=headers, timeout=PATIENCE) as client:
        hello = await ask(client, "Hi, my name is Kai.")
        assert hello == f"{MARK} Nice to meet you, Kai! I was sent 2 messages."
        name = await ask(client, "What is my name?")
        assert name == f"{MARK} Your name is Kai. I was sent 4 messages."


async def test_what_another_session_was_told_is_recalled(served: tuple[str, str]) -> None:
    async def ask(session: str, text: str) -> str:
        answered = await client.post(
            f"{served[0]}/v1/chat/completions",
            json={"model": "any", "messages": [{"role": "user", "content": text}]},
            headers={"x-session-id": session, "x-user-id": "mia"},
        )
        return str(answered.json()["choices"][0]["message"]["content"])

    async def recalled() -> bool:
        return 'You said: "I work at the harbour."' in await ask("two", "Where do I work?")

    async with httpx.AsyncClient(timeout=PATIENCE) as client:
        await ask("one", "I work at the harbour.")
        await eventually(recalled)


def test_the_banner_says_demo_names_the_console_and_has_a_line_that_works(
    served: tuple[str, str],
) -> None:
    address, banner = served
    upstream, look, trial = banner.splitlines()
    assert upstream.endswith("demo: no model, no network")
    assert look.endswith(f"{address}/memory/")
    words = shlex.split(trial.partition("try it")[2])
    assert not any("Authorization" in word for word in words)
    out = subprocess.run([*words, "-s"], capture_output=True, text=True, timeout=PATIENCE).stdout
    assert f"{MARK} Nice to meet you, Kai!" in out


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("embeddings", "{}", 404),
        ("chat/completions", "[]", 400),
        ("chat/completions", '{"messages": []}', 400),
        ("chat/completions", '{"messages": [3]}', 400),
        ("responses", '{"input": [3]}', 400),
        ("responses", '{"input": [{"role": "user", "content": [3]}]}', 400),
        ("messages", '{"messages": [{"role": "user"}]}', 400),
    ],
)
def test_what_it_does_not_know_is_an_error_of_the_demo(
    path: str, body: str, status: int, served: tuple[str, str]
) -> None:
    answered = httpx.post(f"{served[0]}/v1/{path}", content=body, timeout=PATIENCE)
    assert (answered.status_code, answered.json()["error"]["code"]) == (status, "demo")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("responses", {"input": "What is my name?", "previous_response_id": "resp_1"}),
        ("responses", {"input": "What is my name?", "conversation": "conv_1"}),
        ("responses/resp_1/cancel", {}),
        ("conversations", {}),
    ],
)
def test_who_goes_on_from_a_response_is_told_what_keeps_it(
    path: str, body: dict[str, str], served: tuple[str, str]
) -> None:
    answered = httpx.post(f"{served[0]}/v1/{path}", json=body, timeout=PATIENCE)
    assert answered.status_code == 404
    assert "MEMORY_PROXY_MEMORY__EMULATE_RESPONSE_STATE=true" in answered.json()["error"]["message"]


def test_its_own_server_is_not_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "uvicorn")
    with standing_in(load()) as settings:
        models = f"{settings.upstream.url}/models"
        assert httpx.get(models, timeout=PATIENCE, trust_env=False).status_code == 200
    assert not [record for record in caplog.records if record.name.startswith("uvicorn")]


def test_check_says_that_it_is_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["check", "--upstream", "demo", "--port", "0"])
    assert result.exit_code == 0
    assert re.search(r"^warn +upstream: demo is no model", result.output, re.MULTILINE)


def test_commands_on_its_store_need_no_upstream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = tmp_path / "proxy.toml"
    config.write_text('[upstream]\nurl = "demo"\n')
    migrate_store(load(config))
    result = CliRunner().invoke(app, ["sessions", "list", "--config", str(config)])
    assert (result.exit_code, "no sessions" in result.output) == (0, True), result.output
