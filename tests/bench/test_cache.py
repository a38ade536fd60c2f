"""The simulated caches keep their providers' rules, and the bench runs from end to end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.__main__ import run_cache
from bench.cache.prompt import EACH, prompt_of
from bench.cache.rules import (
    BACK,
    CONSIDERED,
    FREE,
    MAX_MARKS,
    MIN_TOKENS,
    PAID,
    Anthropic,
    Automatic,
    Block,
    Breakpoints,
    Cache,
    Prompt,
    Refused,
    Used,
)
from bench.cache.suite import CLAUDE, DATA, NEWER, ON, ROWS, WITH_MARKS, Plan
from bench.cache.table import report
from bench.cache.talk import ASKS, Client, words_of
from bench.recall.datasets.table import load
from proxy.formats.chat_completions import ChatCompletions
from proxy.formats.format import Format
from proxy.formats.messages.messages import Messages
from proxy.formats.responses.api import Responses

pytestmark = pytest.mark.release

SIZE = MIN_TOKENS


def block(name: str, tokens: int = SIZE, *, marked: bool = False, ends: bool = True) -> Block:
    return Block(name.encode(), tokens, marked, ends)


def prompt(said: str, *, implicit: bool = True, key: str = "") -> Prompt:
    """A letter is a block of the minimum's size, ``!`` marks the one before it; capitals are the
    model's."""
    blocks: list[Block] = []
    for letter in said:
        if letter == "!":
            blocks[-1] = blocks[-1]._replace(marked=True)
        else:
            blocks.append(block(letter, ends=not letter.isupper()))
    return Prompt(blocks, implicit, key)


def used(cache: Cache, *said: str, **more: Any) -> list[tuple[int, int]]:
    """What each prompt reads and writes, in blocks."""
    found = [cache.ask(prompt(each, **more)) for each in said]
    return [(each.read // SIZE, each.written // SIZE) for each in found]


def test_anthropic_caches_up_to_marks_alone() -> None:
    assert used(Anthropic(), "abc", "abc") == [(0, 0), (0, 0)]
    assert used(Anthropic(), "ab!c", "ab!d", "ab!") == [(0, 2), (2, 0), (2, 0)]
    assert used(Anthropic(), "ab!c!", "ab!d!", "abc!") == [(0, 3), (2, 1), (3, 0)]


def test_anthropic_looks_back_from_a_mark_but_not_far() -> None:
    more = "".join(chr(0x4E00 + n) for n in range(BACK))
    assert used(Anthropic(), "a!", f"a{more[:-1]}!") == [(0, 1), (1, BACK - 1)]
    assert used(Anthropic(), "a!", f"a{more}!") == [(0, 1), (0, BACK + 1)]
    assert used(Anthropic(), "a!", f"a!{more}!") == [(0, 1), (1, BACK)]


def test_anthropic_finds_only_what_a_request_has_written() -> None:
    assert used(Anthropic(), "abc!", "abd!") == [(0, 3), (0, 3)]
    assert used(Anthropic(), "ab!c!", "abd!") == [(0, 3), (2, 1)]


def test_anthropic_refuses_a_fifth_mark() -> None:
    Anthropic().ask(prompt("a!b!c!d!"))
    with pytest.raises(Refused, match=str(MAX_MARKS)):
        Anthropic().ask(prompt("a!b!c!d!e!"))


@pytest.mark.parametrize("cache", [Anthropic, Breakpoints, Automatic])
def test_what_is_short_is_not_cached(cache: Callable[[], Cache]) -> None:
    short = Prompt([block("x", MIN_TOKENS - 1, marked=True)])
    one = cache()
    assert [one.ask(short), one.ask(short)] == [Used(MIN_TOKENS - 1)] * 2


def test_openai_writes_at_the_newest_message_and_reads_what_ends_there() -> None:
    assert used(Breakpoints(), "a", "aBc", "aBcDe") == [(0, 1), (1, 2), (3, 2)]
    assert used(Breakpoints(), "ab", "ac", "ad") == [(0, 2), (0, 2), (0, 2)]


def test_openai_reads_at_a_mark_only_where_this_request_has_it_too() -> None:
    only = {"implicit": False}
    assert used(Breakpoints(), "a!b", "a!c", **only) == [(0, 1), (1, 0)]
    assert used(Breakpoints(), "a!b", "aBc!", **only) == [(0, 1), (0, 3)]
    assert used(Breakpoints(), "a!b", "a!Bc!d", **only) == [(0, 1), (1, 2)]
    assert used(Breakpoints(), "ab", "ab", **only) == [(0, 0), (0, 0)]


def test_openai_writes_four_at_most_and_considers_eighty() -> None:
    one = Breakpoints()
    assert used(one, "a!b!c!d!e!", implicit=False) == [(0, 5)]
    assert used(one, "a!", "ab!", implicit=False) == [(0, 1), (2, 0)]
    two = Breakpoints()
    assert used(two, "a!b!c!d!e") == [(0, 5)]
    assert used(two, "a!", "ab!", implicit=False) == [(0, 1), (2, 0)]
    many = "a" + "".join(f"{chr(0x4E00 + n)}!" for n in range(CONSIDERED))
    three = Breakpoints()
    assert used(three, "a!", many, implicit=False)[1][0] == 0
    assert used(three, many.replace("a", "a!", 1)[:-2], implicit=False)[0][0] > 0


def test_openai_refuses_a_mark_on_the_models_words() -> None:
    with pytest.raises(Refused):
        Breakpoints().ask(prompt("aB!c"))


def test_another_key_is_another_cache() -> None:
    one = Breakpoints()
    assert used(one, "a", key="k") == [(0, 1)]
    assert used(one, "a", key="l") == [(0, 1)]
    assert used(one, "a", key="k") == [(1, 0)]


def test_openais_older_models_read_the_same_beginning_in_steps() -> None:
    one = Automatic()
    first = Prompt([block("a", 1000), block("b", 1100), block("c", 50)])
    assert one.ask(first) == Used(2150)
    assert one.ask(Prompt([*first.blocks[:2], block("d")])).read == 2048
    assert one.ask(Prompt([*first.blocks[:1], block("d")])).read == 0


def test_what_is_billed() -> None:
    assert PAID.billed(Used(100, 40, 20)) == pytest.approx(40 + 4 + 25)
    assert FREE.billed(Used(100, 40)) == pytest.approx(64)


def test_a_text_and_a_list_of_one_are_the_same_prompt_marked_or_not() -> None:
    part = {"type": "text", "text": "one two"}
    said = ["one two", [part], [{**part, "cache_control": {"type": "ephemeral"}}]]
    prompts = [
        prompt_of({"messages": [{"role": "user", "content": each}]}, lambda text: len(text.split()))
        for each in said
    ]
    contents = {each.blocks[0].content for each in prompts}
    assert len(contents) == 1
    assert [each.blocks[0].marked for each in prompts] == [False, False, True]
    assert {each.blocks[0].tokens for each in prompts} == {2 + EACH}


def test_tools_and_system_text_come_first() -> None:
    call = {"type": "text", "text": "x"}
    body = {
        "messages": [{"role": "assistant", "content": [call, call]}],
        "system": "s",
        "tools": [{"name": "f"}],
        "prompt_cache_options": {"mode": "explicit"},
        "prompt_cache_key": "k",
    }
    found = prompt_of(body, len)
    assert [each.content.split(b"{")[0] for each in found.blocks] == [
        b"tools",
        b"system True",
        b"assistant True",
        b"assistant False",
    ]
    assert [each.ends for each in found.blocks] == [False, True, False, False]
    assert (found.implicit, found.key) == (False, "k")


@pytest.mark.parametrize(
    "part", [{"type": "text", "text": " "}, {"type": "thinking", "thinking": "x", "signature": "y"}]
)
def test_empty_texts_and_thoughts_take_no_mark(part: dict[str, Any]) -> None:
    marked = {**part, "cache_control": {"type": "ephemeral"}}
    prompt_of({"messages": [{"role": "assistant", "content": [part]}]}, len)
    with pytest.raises(Refused):
        prompt_of({"messages": [{"role": "assistant", "content": [marked]}]}, len)


def test_the_conversation_is_the_same_for_each_client() -> None:
    words = words_of(load(DATA).people[:2], 8)
    assert len(words.said) == len(words.answers) == 8
    assert words.said[ASKS - 1].endswith("?")
    assert words_of(load(DATA).people[:2], 8) == words
    whole = Client("chat", "m", whole=True).body(words, 3)
    newest = Client("chat", "m", whole=False).body(words, 3)
    assert len(whole["messages"]) == 1 + 2 * 3 + 1
    assert newest["messages"] == [whole["messages"][0], whole["messages"][-1]]
    marked = Client("messages", "m", whole=True, marks=True).body(words, 3)
    assert marked["messages"][:-1] == whole["messages"][1:-1]
    assert "cache_control" in marked["messages"][-1]["content"][0]
    with pytest.raises(ValueError, match="too few"):
        words_of(load(DATA).people[:1], 200)


ROUNDS, CALLS = 3, 12


def requests_of(api: str, turns: int) -> Iterator[tuple[dict[str, Any], bool]]:
    """What the upstream gets of a conversation with tool loops: bodies, and does a turn begin?

    Memory's block before the newest question is another in each turn.
    """
    listed, text = ("input", "input_text") if api == "responses" else ("messages", "text")
    kept: list[dict[str, Any]] = [{"role": "user", "content": "The first question."}]
    kept.append({"role": "assistant", "content": "An answer."})
    for turn in range(turns):
        asked = f"Question {turn}?"
        parts = [{"type": text, "text": f"block {turn}"}, {"type": text, "text": asked}]
        loop: list[dict[str, Any]] = []
        for round in range(ROUNDS + 1):
            body = {listed: [*kept, {"role": "user", "content": parts}, *loop]}
            yield {"model": MODELS[api], "max_tokens": 9, **body}, round == 0
            loop += called(api, [f"c{turn}-{round}-{n}" for n in range(CALLS)])
        said = {"role": "assistant", "content": f"Answer {turn}."}
        kept += [{"role": "user", "content": asked}, *loop[: -len(called(api, ["c"] * CALLS))]]
        kept.append(said)


MODELS = {"chat": "gpt-5.6", "responses": "gpt-6", "messages": "m"}
FORMATS: dict[str, Format] = {
    "chat": ChatCompletions(),
    "responses": Responses(),
    "messages": Messages(),
}


def called(api: str, ids: Sequence[str]) -> list[dict[str, Any]]:
    """Calls and their results."""
    if api == "chat":
        function = {"name": "f", "arguments": "{}"}
        calls = [{"id": id, "type": "function", "function": function} for id in ids]
        results = [{"role": "tool", "tool_call_id": id, "content": f"x {id}"} for id in ids]
        return [{"role": "assistant", "content": None, "tool_calls": calls}, *results]
    if api == "responses":
        calls = [{"type": "function_call", "call_id": id, "arguments": "{}"} for id in ids]
        made = [{"type": "function_call_output", "call_id": id, "output": f"x {id}"} for id in ids]
        return [*calls, *made]
    uses = [{"type": "tool_use", "id": id, "name": "f", "input": {}} for id in ids]
    given = [{"type": "tool_result", "tool_use_id": id, "content": f"x {id}"} for id in ids]
    return [{"role": "assistant", "content": uses}, {"role": "user", "content": given}]


@pytest.mark.parametrize("api", FORMATS)
def test_what_a_request_has_written_the_next_one_reads(api: str) -> None:
    cache: Cache = Anthropic() if api == "messages" else Breakpoints()
    steady = written = 0
    for body, begins in requests_of(api, turns=4):
        marked = FORMATS[api].with_cache_marks(json.dumps(body).encode(), body["model"], "k")
        found = cache.ask(prompt_of(json.loads(marked), lambda text: SIZE))
        assert found.read == (steady if begins else written)
        written = found.read + found.written
        if begins:
            steady = written
        assert found.prompt - written <= 3 * (SIZE + EACH)  # what is new: block, question


@pytest.mark.slow
def test_marks_save_what_memory_would_cost(tmp_path: Path) -> None:
    results = run_cache(Plan(turns=12, past=2))
    assert [each.row for each in results] == list(ROWS)
    found = {(each.row.provider.name, each.row.name): each for each in results}
    for provider in (CLAUDE, NEWER):
        assert found[provider.name, WITH_MARKS].total.read > 0
    with_marks, without = found[CLAUDE.name, WITH_MARKS], found[CLAUDE.name, ON]
    assert without.total.read == 0
    assert with_marks.billed < 0.8 * without.billed
    text = report(results)
    assert text.count("\n| ") == 1 + len(ROWS) - 1
    assert "12 turns" in text
