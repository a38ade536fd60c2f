"""The bench of what a model writes runs from end to end, and its writers do what they are asked."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import pytest

from bench.__main__ import run_writing
from bench.writing.plan import QUICK, Plan
from bench.writing.player import ADVICE, WRITERS, written
from bench.writing.spent import ROWS, since
from bench.writing.table import report
from bench.writing.upstream import Script, Tally
from bench.writing.words import ASKS, MAX_WORDS, MIN_WORDS, PLEASED, TELLS, THANKS, Speaker, Telling
from proxy.chat.blocks import block
from proxy.chat.models.tokens import Tokenizers
from proxy.learning.episodes.extract import Pair, parse_good_pairs, seems_pleased
from proxy.learning.episodes.extract import prompt as episode_prompt
from proxy.learning.evidence import UserMessage, find_evidence, is_instruction
from proxy.learning.facts.claim import parse_operations
from proxy.learning.facts.claim import prompt as fact_prompt
from proxy.learning.instructions.document import find_doubts
from proxy.learning.instructions.improve import parse_improved
from proxy.learning.instructions.improve import prompt as instructions_prompt
from proxy.learning.profile.document import Schema
from proxy.learning.profile.extract import prompt as profile_prompt
from proxy.learning.profile.proposal import parse_proposal
from proxy.learning.profile.proposal_check import ReviewContext, accept_proposal
from proxy.memory.model import SessionKey
from proxy.recall.own_words import pasted_spans
from proxy.settings import ProfileSettings
from proxy.settings.learned import SummarySettings
from proxy.summary.lines import fill_template
from proxy.summary.writer import check_summary

pytestmark = pytest.mark.release

TINY = Plan(history=3, compared=3, turns=5, people=2, exchanges=4, rounds=1, redis=False)
NUMBER = re.compile(r"-?[\d,]+(\.\d+)?( / [\d.]+)?")
TURNS = range(30)

count = Tokenizers().counter_for(None).count_text


@pytest.mark.slow
def test_a_tiny_run_fills_all_tables(capfd: pytest.CaptureFixture[str]) -> None:
    results = run_writing(TINY)
    _, requests, _, spent, _, rates, _ = report(TINY, results).split("\n\n")
    assert all(NUMBER.fullmatch(cells[1]) for cells in _rows(requests))
    assert [cells[0].partition(":")[0] for cells in _rows(spent)] == [row.name for row in ROWS]
    assert all(NUMBER.fullmatch(cell) for cells in _rows(spent) for cell in cells[1:])
    assert all(NUMBER.fullmatch(cells[1]) for cells in _rows(rates))
    used = {each.row.profile.name: each.used for each in results[0].spent}
    assert used["facts"].calls == used["profile"].calls == 1
    assert 0 < used["running"].calls <= TINY.turns  # a busy machine tells of several in one
    assert not any(each.failed for each in used.values())
    assert "sqlite: exchanges a second" in capfd.readouterr().err


def _rows(table: str) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]
    ]


def test_the_quick_plan_measures_the_same_with_less() -> None:
    assert QUICK.back_ends == Plan().back_ends == ("sqlite", "redis")
    assert QUICK.turns < Plan().turns
    assert QUICK.people == Plan().people


def test_there_is_a_writer_for_each_part_that_a_model_writes() -> None:
    assert list(WRITERS) == list(ProfileSettings().writers)


def test_the_same_seed_says_the_same() -> None:
    said = [Speaker(3).turn(4), Speaker(3).turn(4), Speaker(4).turn(4)]
    assert said[0] == said[1] != said[2]


def test_turns_have_twenty_to_sixty_words_of_the_persons_own() -> None:
    speaker = Speaker(3)
    texts = [speaker.turn(number) for number in TURNS]
    assert all(MIN_WORDS <= len(text.split()) <= MAX_WORDS for text in texts)
    assert not any(map(pasted_spans, texts))
    assert not any(seems_pleased(said) for said in _said(texts) if THANKS not in said.text)
    assert not any(is_instruction(speaker.telling().noted) for _ in TURNS)


def test_every_so_many_turns_a_person_tells_thanks_and_asks() -> None:
    speaker = Speaker(3)
    texts = [speaker.turn(number) for number in TURNS]
    told = {number for number in TURNS if " with my " in texts[number]}
    assert told == {number for number in TURNS if number % TELLS[0] == TELLS[1]}
    assert [THANKS in text for text in texts] == [n % PLEASED[0] == PLEASED[1] for n in TURNS]
    assert ["?" in text for text in texts] == [n % ASKS[0] == ASKS[1] for n in TURNS]


def _said(texts: Sequence[str]) -> list[UserMessage]:
    return [
        UserMessage(f"ex.{at}", "ex", at, text, 1_700_000_000.0) for at, text in enumerate(texts)
    ]


def _turns(seed: int, turns: int) -> list[str]:
    speaker = Speaker(seed)
    return [speaker.turn(number) for number in range(turns)]


def test_a_summary_of_a_summary_is_one_too_and_not_too_long() -> None:
    settings, summary = SummarySettings(max_tokens=200), ""
    for seed in range(8):
        lines = "\n".join(f"Human: {text}" for text in _turns(seed, 12))
        found = written("summary", fill_template(settings, summary, lines))
        verdict = check_summary(found, settings.prompt, settings.max_tokens, count)
        assert verdict.fault is None
        assert verdict.tokens > len(summary) / 20
        summary = verdict.text


def test_facts_are_what_was_told_with_quotes_that_are_there() -> None:
    said = _said(_turns(5, 10))
    found = parse_operations(written("facts", fact_prompt(said, [], 0, "")))
    assert found is not None
    assert [(each.op, each.message) for each in found] == [("add", 2), ("add", 5), ("add", 8)]
    for each in found:
        there = find_evidence(each.quote, said)
        assert there is not None
        assert there.message is said[each.message - 1]


def test_a_profile_gets_a_member_for_what_was_told() -> None:
    said = _said(["I rent clocks with my aunt Rita. It is late.", "I sell maps with my aunt Eda."])
    found = parse_proposal(written("profile", profile_prompt({}, Schema(), said, "")))
    assert found is not None
    made = accept_proposal(found, {}, ReviewContext(said, Schema(), {}))
    assert made.document == {"aunt": "Eda, sell maps"}
    assert len(made.patch) == 2


def test_an_answer_is_good_that_somebody_gave_thanks_for() -> None:
    thanks, other = _said([f"{THANKS} And now?", "Something else."])
    assert seems_pleased(thanks)
    key = SessionKey("t", "s")
    pairs = [Pair(key, "How?", "ex.0", other), Pair(key, "Why?", "ex.1", thanks)]
    assert parse_good_pairs(written("episodes", episode_prompt(pairs)), pairs) == pairs[1:]


def test_instructions_are_new_short_and_without_doubts() -> None:
    first = parse_improved(written("instructions", instructions_prompt("", [], "", 300)))
    assert first is not None
    assert 0 < count(first.text) <= 300
    assert find_doubts(first.text, "", []) == ()
    assert sorted(first.text) == sorted(" ".join(ADVICE))


def _body(content: str, *, tools: bool = False) -> bytes:
    body: dict[str, object] = {
        "model": "mock",
        "messages": [
            {"role": "system", "content": block("facts", "Notes.", "- x")},
            {"role": "user", "content": content},
        ],
    }
    return json.dumps({**body, "tools": [{"type": "function"}]} if tools else body).encode()


def test_a_chat_is_answered_the_same_way_each_time_and_tallied() -> None:
    script, facts = Script(count), json.loads(_body(""))["messages"][0]["content"]
    first, second = (script.answer(_body("Hello there.")) for _ in range(2))
    assert first == second
    assert len(json.loads(first)["choices"][0]["message"]["content"].split()) > MIN_WORDS
    assert script.tally.chats == 2
    assert script.tally.blocks == {"facts": 2 * count(facts)}


def test_memorys_tools_are_called_where_there_is_reason_to() -> None:
    script, telling = Script(count), Telling("rent", "maps", "aunt", "Ada")
    recalled = block("recall", "Said before.", "I sell kites with my aunt Eda.")
    body = _body(f"{recalled}\n\n{telling.said}", tools=True)
    (answer,) = json.loads(script.answer(body))["choices"]
    (call,) = answer["message"]["tool_calls"]
    assert answer["finish_reason"] == "tool_calls"
    assert call["function"]["name"] == "memory_save"
    assert json.loads(call["function"]["arguments"]) == {"text": telling.noted}
    assert script.tally.calls_made == 1
    assert "tool_calls" not in json.loads(script.answer(_body("Hello.", tools=True)))["choices"][0]


def test_what_came_between_two_tallies_is_their_difference() -> None:
    before = Tally(chats=1, prompt=10, blocks={"facts": 3})
    now = Tally(chats=3, prompt=15, blocks={"facts": 3, "profile": 2})
    assert since(now, before) == Tally(chats=2, prompt=5, blocks={"profile": 2})
