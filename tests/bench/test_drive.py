"""The bench sees what the running proxy sends, and nothing of what the client sent itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.recall.__main__ import main
from bench.recall.drive import Asked, Options, injected_texts, run
from bench.recall.people import Collection, Person, Question, Session, Turn

SAID = "My grandmother keeps eleven beehives behind the railway station in Oldenburg."


def message(text: object) -> dict[str, Any]:
    return {"role": "user", "content": text}


@pytest.mark.parametrize(
    ("prompt", "injected"),
    [
        pytest.param([message("why?")], [], id="nothing"),
        pytest.param([message("block\n\nwhy?")], ["block\n\n"], id="in-the-message"),
        pytest.param([message("old"), message("why?")], ["old"], id="messages-before"),
        pytest.param([message("why? old\n\nwhy?")], ["why? old\n\n"], id="the-question-recalled"),
        pytest.param(
            [message([{"type": "text", "text": "block"}, {"type": "text", "text": "why?"}])],
            ["block\n"],
            id="in-parts",
        ),
    ],
)
def test_injected_is_all_but_the_clients_own(
    prompt: list[dict[str, Any]], injected: list[str]
) -> None:
    assert injected_texts(prompt, ["why?"]) == injected


def test_earlier_messages_of_the_client_are_its_own_too() -> None:
    prompt = [message("old"), message("so"), message("block so why?")]
    assert injected_texts(prompt, ["so", "why?"]) == ["old", "block so "]


def test_a_question_that_did_not_arrive_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="did not reach"):
        injected_texts([message("other")], ["why?"])


def test_over_budget_scores_nothing_and_small_talk_wants_quiet() -> None:
    question = Question("q", "k", "?")

    def asked(tokens: int, recall: float | None, quiet: bool = False) -> Asked:
        return Asked("p", question, 100, tokens, recall, quiet, 0.0)

    assert asked(110, 0.5).score == 0.5
    assert asked(111, 0.5).score == 0.0
    assert [asked(50, None, quiet).score for quiet in (False, True)] == [0.0, 1.0]


def collection() -> Collection:
    talk = (Turn("1", "u", SAID), Turn("2", "a", "Eleven is a lot. Do they give much honey?"))
    more = (Turn("3", "u", "Not this year, it rained all through the lime blossom."),)
    questions = (
        Question("q1", "single fact", "How many beehives has my grandmother?", ("1",)),
        Question("q2", "small talk", "Thanks!"),
        Question("q3", "follow-up", "And where?", ("1",), before=("Whose beehives?", "Hers.")),
    )
    return Collection("tiny", (Person("p/人", (Session("s", "", (*talk, *more)),), questions),))


@pytest.mark.slow
@pytest.mark.parametrize("client", ["last", "full"])
async def test_what_was_said_is_found_through_the_running_proxy(
    tmp_path: Path, client: Any
) -> None:
    replayed: list[None] = []
    asked: list[None] = []
    options = Options("memory://", (500, 1000), client, len)
    found = await run(
        collection(),
        options,
        tmp_path,
        lambda: replayed.append(None),
        lambda: asked.append(None),
    )
    assert (len(replayed), len(asked)) == (2, 6)
    scores = {(one.question.id, one.budget): one.score for one in found}
    assert scores[("q1", 500)] == scores[("q1", 1000)] == 1.0
    assert scores[("q2", 500)] == 1.0
    assert all(one.tokens < len(SAID) * 12 and not one.late for one in found)


def test_a_file_that_cannot_be_read_ends_it_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="memory-proxy: .*nowhere.json"):
        main([str(tmp_path / "nowhere.json")])
