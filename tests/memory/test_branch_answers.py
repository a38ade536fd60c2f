"""Only in doubt is a session looked at once more."""

from __future__ import annotations

import pytest

from proxy.memory.reconciliation.branch_answers import DoubtfulAnswer, doubtful_answers
from proxy.memory.reconciliation.match import Intent
from proxy.memory.reconciliation.reconcile import reconcile
from tests.support.talk.shorthand import log, rerendered, talk

STORED = "u1 a1(c1) t1:c1 a2 u3 a3"


@pytest.mark.parametrize(
    "m",
    [
        pytest.param("u1 a1(c1) t1:c1 a2 u3 a3 u4", id="everything"),
        pytest.param("u1 a2 u3 a3 u4", id="without tools"),
        pytest.param("u1 a1(c1) t1:c1 a9 u4", id="an edit behind the calls that are told"),
        pytest.param("u1 a1(c1) t1:c1 a2 u3 a9 u4", id="an edit without calls before it"),
        pytest.param("u1 q", id="a prefill"),
        pytest.param("u1 a9(c9) t9:c9", id="another call"),
        pytest.param("u9 a9 u4", id="nothing in common"),
    ],
)
def test_nothing_is_in_doubt(m: str) -> None:
    h, said = log(STORED), talk(m)
    plan = reconcile(h.snapshot(), said, Intent(), rerendered)
    assert doubtful_answers(h.entries, plan, said) == []


def test_an_answer_told_otherwise_than_one_behind_calls_that_are_not_told_is() -> None:
    h, said = log(STORED), talk("u1 a9 u4")
    plan = reconcile(h.snapshot(), said, Intent(), rerendered)
    assert doubtful_answers(h.entries, plan, said) == [
        DoubtfulAnswer(answer="a9", calls=2, previous="u1", place=1)
    ]
