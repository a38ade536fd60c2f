"""The last pass over a prompt: calls and results that belong together."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.memory.prompt.validity import valid_messages


@dataclass(frozen=True)
class Said:
    name: str
    role: str = "user"
    calls: tuple[str, ...] = ()
    answers: str | None = None
    stored: bool = True
    as_text: Said | None = None


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
    found = valid_messages([QUESTION, *messages, NEXT])
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
        pytest.param(
            [call("a", stored=False), answer("a2"), result("t1", "a", stored=False), NEXT],
            "c t1 a2 u2",
            id="an-answer-before-any-of-them",
        ),
        pytest.param(
            [
                call("a", "b", stored=False),
                answer("a2"),
                result("t1", "a", stored=False),
                result("t2", "b", stored=False),
            ],
            "c t1 t2",
            id="all-of-them-at-the-end",
        ),
        pytest.param(
            [call(""), result("t1", ""), call(""), answer("a2"), result("t2", ""), NEXT],
            "c t1 c t2 a2 u2",
            id="of-the-later-of-two-calls-without-ids",
        ),
        pytest.param(
            [call("a"), answer("a2"), Said("u3"), result("t1", "a", stored=False), NEXT],
            "a2 u3 t1 u2",
            id="of-another-turn",
        ),
    ],
)
def test_results_that_came_one_after_the_other_stand_together(
    messages: list[Said], sent: str
) -> None:
    found = valid_messages([QUESTION, *messages])
    assert " ".join(each.name for each in found) == f"u1 {sent}"


def test_a_result_of_the_clients_answers_its_call_though_a_stored_one_is_nearer() -> None:
    told = [call("a", stored=False), QUESTION, call("a"), result("t1", "a", stored=False), NEXT]
    assert [each.name for each in valid_messages(told)] == ["c", "t1", "u1", "u2"]


RESULTS = st.lists(
    st.tuples(st.sampled_from(["", "a", "b"]), st.integers(0, 2), st.booleans()),
    min_size=1,
    max_size=4,
)
"""Of one call: the id of each, how many answers stand before it, and whether it is stored."""


@given(st.lists(st.tuples(RESULTS, st.booleans()), max_size=4))
def test_results_stand_behind_their_own_call_whatever_answers_came_between(
    loops: list[tuple[list[tuple[str, int, bool]], bool]],
) -> None:
    messages, sent = [QUESTION], [QUESTION]
    for number, (results, stored) in enumerate(loops):
        head = Said(f"c{number}", "assistant", tuple(id for id, _, _ in results), stored=stored)
        apart = [
            (
                [answer(f"a{number}{n}{k}") for k in range(answers)],
                Said(f"t{number}{n}", "tool", (), id, kept),
            )
            for n, (id, answers, kept) in enumerate(results)
        ]
        messages += [head, *(x for answers, said in apart for x in (*answers, said))]
        sent += [head, *(said for _, said in apart), *(x for answers, _ in apart for x in answers)]
    assert valid_messages([*messages, NEXT]) == [*sent, NEXT]
