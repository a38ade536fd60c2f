"""The last pass over a prompt: calls and results that belong together."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from proxy.memory.prompt.validity import valid


@dataclass(frozen=True)
class Said:
    name: str
    role: str = "user"
    calls: tuple[str, ...] = ()
    answers: str | None = None
    stored: bool = True
    in_words: Said | None = None


def call(*ids: str, stored: bool = True) -> Said:
    return Said("c", "assistant", ids, stored=stored)


def result(name: str, id: str, stored: bool = True) -> Said:
    return Said(name, "tool", answers=id, stored=stored)


QUESTION, NEXT = Said("u1"), Said("u2", stored=False)


@pytest.mark.parametrize(
    ("messages", "kept"),
    [
        pytest.param([call("a", "b"), result("t1", "a"), result("t2", "b")], "c t1 t2", id="two"),
        pytest.param([call("a", "b"), result("t1", "a")], "", id="one-is-missing"),
        pytest.param([call("", ""), result("t1", ""), result("t2", "")], "c t1 t2", id="no-ids"),
        pytest.param([call("", ""), result("t1", "")], "", id="no-ids-and-one-is-missing"),
        pytest.param([call("a"), result("t1", "a"), result("t2", "a")], "c t1", id="one-too-many"),
        pytest.param(
            [call("", ""), result("t1", ""), result("t2", "", stored=False)],
            "c t1 t2",
            id="no-ids-and-the-client-sends-the-second",
        ),
        pytest.param(
            [call("a"), result("t1", "a"), result("t2", "a", stored=False)],
            "c t2",
            id="the-clients-result-in-place-of-the-stored",
        ),
        pytest.param(
            [call("a", "b"), result("t1", "a", stored=False)], "c t1", id="the-client-knows"
        ),
    ],
)
def test_each_call_of_the_prompt_is_answered_once(messages: list[Said], kept: str) -> None:
    found = valid([QUESTION, *messages, NEXT])
    assert [each.name for each in found] == ["u1", *kept.split(), "u2"]


def answer(name: str, stored: bool = True) -> Said:
    return Said(name, "assistant", stored=stored)


@pytest.mark.parametrize(
    ("messages", "sent"),
    [
        pytest.param(
            [call("a", "b"), result("t1", "a"), answer("a2"), result("t2", "b", stored=False)],
            "c t1 t2",
            id="the-running-turn",
        ),
        pytest.param(
            [
                call("a", "b"),
                result("t1", "a"),
                answer("a2"),
                result("t2", "b"),
                answer("a3"),
                NEXT,
            ],
            "c t1 t2 a2 a3 u2",
            id="an-earlier-turn",
        ),
        pytest.param(
            [
                call("a", "b", "d"),
                *(x for n, id in enumerate("abd") for x in (result(f"t{n}", id), answer(f"a{n}"))),
                NEXT,
            ],
            "c t0 t1 t2 a0 a1 a2 u2",
            id="one-by-one",
        ),
        pytest.param(
            [call("a"), result("t1", "a"), answer("a2"), result("t9", "z"), NEXT],
            "c t1 a2 u2",
            id="of-no-call",
        ),
        pytest.param(
            [
                call("a", "b"),
                result("t1", "a"),
                answer("x", stored=False),
                result("t2", "b", stored=False),
            ],
            "x t2",
            id="as-the-client-has-it",
        ),
    ],
)
def test_results_that_came_one_after_the_other_stand_together(
    messages: list[Said], sent: str
) -> None:
    found = valid([QUESTION, *messages])
    assert " ".join(each.name for each in found) == f"u1 {sent}"
