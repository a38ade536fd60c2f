"""Thoughts go back to the upstreams that demand them, and to nobody else."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from proxy.memory.store import StoreError
from tests.support.rig import Rig, Talk, rig
from tests.support.talk.words import messages
from tests.support.upstream.answers import chat_completion, error_answer, json_answer, tool_call
from tests.support.upstream.thinking import MUST_GO_BACK, Thinker

pytestmark = pytest.mark.asyncio(loop_scope="session")

THOUGHTS = "They ask for rain, so I look outside."
TOO_LONG = "context_length_exceeded"
C1, C2 = (tool_call("look", '{"where": "outside"}', id) for id in ("c1", "c2"))


class Thinking:
    """A conversation with a model that nobody else has asked."""

    def __init__(self, rig: Rig, up: Thinker, talk: Talk | None = None) -> None:
        self.rig, self.up, self.talk = rig, up, talk or rig.talk()
        self.model = f"thinker-{uuid.uuid4().hex}"
        rig.up.always(up)

    async def ask(self, sent: str | Sequence[dict[str, Any]], **more: Any) -> int:
        """Send messages, in shorthand or not; how often the upstream was asked."""
        before = len(self.rig.up.requests)
        said = messages(sent) if isinstance(sent, str) else sent
        answer = await self.talk.ask(said, model=self.model, **more)
        assert answer.status_code == 200, answer.text
        assert not self.rig.up.refused
        return len(self.rig.up.requests) - before

    @property
    def thoughts(self) -> list[str | None]:
        """Those of the answers in what the upstream got last; None for those without."""
        sent = self.rig.up.requests[-1].messages
        return [each.get("reasoning_content") for each in sent if each["role"] == "assistant"]


@pytest.mark.parametrize("stream", [False, True])
async def test_an_app_that_sends_what_is_new_goes_on_behind_a_call(
    every: Rig, stream: bool
) -> None:
    up = Thinker()
    mine = Thinking(every, up)
    up.says(None, THOUGHTS, [C1])
    assert await mine.ask("u1", stream=stream) == 1
    up.says("It rains.", "Wet.")
    assert await mine.ask("t1:c1", stream=stream) == 2
    assert mine.thoughts == [THOUGHTS]
    up.says(None, "", [C2])
    assert await mine.ask("u2", stream=stream) == 1
    assert mine.thoughts == [THOUGHTS, ""]
    up.says("Still.")
    assert await mine.ask("t2:c2", stream=stream) == 1
    assert mine.thoughts == [THOUGHTS, "", ""]
    assert up.refused == 1
    assert "reasoning_content" not in json.dumps(await mine.talk.bodies())


@pytest.mark.parametrize("stream", [False, True])
async def test_an_app_that_sends_all_of_it_without_thoughts_goes_on_as_well(
    one: Rig, stream: bool
) -> None:
    up = Thinker()
    mine = Thinking(one, up)
    said = messages("u1")
    up.says("Let me see.", THOUGHTS, [C1])
    await mine.ask(said, stream=stream)
    again = {**C1, "function": {"name": "look", "arguments": '{"where":"outside"}'}}
    answer = {"role": "assistant", "content": "Let me see.", "tool_calls": [again]}
    said += [answer, *messages("t1:c1")]
    up.says("It rains.")
    assert await mine.ask(said, stream=stream) == 2
    assert mine.thoughts == [THOUGHTS]
    said += [{"role": "assistant", "content": "It rains."}, *messages("u2")]
    up.says("Still.")
    assert await mine.ask(said, stream=stream) == 1
    assert mine.thoughts == [THOUGHTS, ""]


async def test_what_an_app_sends_itself_is_kept(one: Rig) -> None:
    up = Thinker()
    mine = Thinking(one, up)
    up.says(None, THOUGHTS, [C1])
    await mine.ask("u1")
    own = {"role": "assistant", "content": None, "tool_calls": [C1], "reasoning_content": "mine"}
    said = [*messages("u1"), own, *messages("t1:c1")]
    up.says("It rains.")
    assert await mine.ask(said) == 1
    assert mine.thoughts == ["mine"]


async def test_calls_of_which_nobody_knows_the_thoughts_go_with_none(one: Rig) -> None:
    up = Thinker()
    mine = Thinking(one, up)
    up.says("It rains.")
    assert await mine.ask("u1 a1(c1) t1:c1") == 2
    assert mine.thoughts == [""]


async def test_an_upstream_that_wants_them_in_every_answer_gets_them_there(one: Rig) -> None:
    up = Thinker(everywhere=True)
    mine = Thinking(one, up)
    up.says("Hello.", "A greeting.")
    await mine.ask("u1")
    up.says(None, THOUGHTS, [C1])
    assert await mine.ask("u2") == 2
    assert mine.thoughts == [""]
    up.says("It rains.")
    assert await mine.ask("t1:c1") == 1
    assert mine.thoughts == ["", THOUGHTS]


async def test_thoughts_outlive_the_proxy(tmp_path: Path) -> None:
    up = Thinker()
    up.says(None, THOUGHTS, [C1])
    up.says("It rains.")
    async with rig(tmp_path) as first:
        mine = Thinking(first, up)
        await mine.ask("u1")
        session = mine.talk.session
    async with rig(tmp_path) as second:
        mine = Thinking(second, up, Talk(second, session))
        assert await mine.ask("t1:c1") == 2
        assert mine.thoughts == [THOUGHTS]


async def test_an_id_that_several_calls_have_tells_nothing(one: Rig) -> None:
    up = Thinker()
    mine = Thinking(one, up)
    for thoughts in ("One.", "Two."):
        up.says(None, thoughts, [C1])
        await mine.ask("u1")
        up.says("It rains.")
        await mine.ask("t1:c1")
    up.says("Still.")
    await mine.ask("u2")
    assert mine.thoughts == ["", "", "", ""]


@pytest.mark.parametrize(
    ("ids", "told"),
    [
        pytest.param(("c1", "c2"), False, id="the-result-alone"),
        pytest.param(("c1", "c2"), True, id="all-is-resent"),
        pytest.param(("c1", "c1"), True, id="all-is-resent-and-the-ids-are-the-same"),
    ],
)
async def test_the_thoughts_of_another_choice_go_back_with_its_call(
    every: Rig, ids: tuple[str, str], told: bool
) -> None:
    up = Thinker()
    mine = Thinking(every, up)
    said = [
        {"role": "assistant", "content": None, "tool_calls": [tool_call("look", where, id)]}
        for where, id in zip(('{"where": "outside"}', '{"where": "up"}'), ids, strict=True)
    ]
    choices = [
        {"index": n, "message": each | {"reasoning_content": f"{n}"}, "finish_reason": "tool_calls"}
        for n, each in enumerate(said)
    ]
    every.up.reply(json_answer(chat_completion("") | {"choices": choices}))
    await mine.ask("u1", n=2)
    result = {"role": "tool", "tool_call_id": ids[1], "content": "Rain."}
    up.says("It rains.")
    assert await mine.ask([*messages("u1"), said[1], result] if told else [result]) == 2
    assert mine.thoughts == ["1"]
    up.says("Still.")
    await mine.ask("u2")
    assert mine.thoughts == ["1", ""]


async def test_more_thoughts_than_there_is_room_for_are_left_out_from_the_oldest(
    one: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.gateway.asking.reasoning.MAX_BYTES", 12)
    monkeypatch.setattr("proxy.gateway.asking.reasoning.BATCH", 1)
    up = Thinker()
    mine = Thinking(one, up)
    up.says(None, "One, one.", [C1])
    await mine.ask("u1")
    up.says(None, "Two.", [C2])
    await mine.ask("t1:c1")
    assert mine.thoughts == ["One, one."]
    up.says("It rains.")
    await mine.ask("t2:c2")
    assert mine.thoughts == ["", "Two."]


async def test_a_context_that_is_too_long_loses_its_thoughts_first(one: Rig) -> None:
    mine = await known_to_want_thoughts(one)
    one.up.reply(error_answer(400, "This model's maximum context length is 9 tokens.", TOO_LONG))
    mine.up.says("Still.")
    assert await mine.ask("u2") == 2
    assert mine.thoughts == ["", ""]
    assert len(one.up.requests[-1].messages) == 5


async def test_a_store_that_fails_leaves_the_thoughts_out(
    one: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def wires(*_: object) -> None:
        raise StoreError("away")

    monkeypatch.setattr(one.store, "wires", wires, raising=False)
    up = Thinker()
    mine = Thinking(one, up)
    up.says(None, THOUGHTS, [C1])
    await mine.ask("u1")
    up.says("It rains.")
    assert await mine.ask("t1:c1") == 2
    assert mine.thoughts == [""]


async def test_an_upstream_that_takes_none_never_sees_any(one: Rig) -> None:
    up = Thinker(takes_none=True)
    mine = Thinking(one, up)
    up.says(None, THOUGHTS, [C1])
    await mine.ask("u1")
    up.says("It rains.", "Wet.")
    assert await mine.ask("t1:c1") == 1
    up.says("Still.")
    assert await mine.ask("u2") == 1
    assert up.refused == 0


async def known_to_want_thoughts(rig: Rig) -> Thinking:
    up = Thinker()
    mine = Thinking(rig, up)
    up.says(None, THOUGHTS, [C1])
    await mine.ask("u1")
    up.says("It rains.")
    assert await mine.ask("t1:c1") == 2
    return mine


async def test_an_upstream_that_takes_them_no_more_is_asked_without(one: Rig) -> None:
    mine = await known_to_want_thoughts(one)
    mine.up.takes_none = True
    mine.up.says("Still.")
    assert await mine.ask("u2") == 2
    assert mine.thoughts == [None, None]
    mine.up.says("Yes.")
    assert await mine.ask("u3") == 1


async def test_an_upstream_that_takes_nothing_is_asked_twice_at_most(one: Rig) -> None:
    mine = await known_to_want_thoughts(one)
    mine.up.takes_none, mine.up.refused, before = True, 0, len(one.up.requests)
    one.up.always(lambda request: _contrary(mine.up, request))
    for _ in range(2):
        answer = await mine.talk.ask(messages("u2"), model=mine.model)
        assert answer.status_code == 400
    assert len(one.up.requests) - before == 4


def _contrary(up: Thinker, request: Any) -> Any:
    """Wants thoughts where there are none, and takes none where there are."""
    up.takes_none = b"reasoning_content" in request.body
    return up(request)


async def test_models_and_requests_without_calls_are_told_apart(one: Rig) -> None:
    mine = await known_to_want_thoughts(one)
    other = Thinking(one, mine.up)
    other.model = mine.model
    for sent in ("u1", "u2"):
        mine.up.says("Hello.", "A greeting.")
        assert await other.ask(sent) == 1
        assert set(other.thoughts) <= {None}
    third = Thinking(one, mine.up)
    mine.up.says(None, THOUGHTS, [C2])
    await third.ask("u1")
    mine.up.says("It rains.")
    assert await third.ask("t2:c2") == 2


async def test_where_memory_adds_nothing_a_refusal_is_the_clients(one: Rig) -> None:
    up = Thinker()
    mine = Thinking(one, up)
    for mode in ("write", "off"):
        answer = await mine.talk.ask(
            messages("u1 a1(c1) t1:c1"), model=mine.model, x_memory_mode=mode
        )
        assert (answer.status_code, answer.json()["error"]["message"]) == (400, MUST_GO_BACK)
    assert up.refused == 2
