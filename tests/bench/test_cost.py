"""The bench of recall's cost runs from end to end, and its text is like talk."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from bench.__main__ import run_recall
from bench.cost.plan import QUICK, Plan
from bench.cost.table import report
from bench.cost.text import FUNCTION, MAX_CHARACTERS, Talk

TINY = Plan(passages=230, users=22, each=10, chat=120, asked=5, exchanges=3, pairs=3, redis=False)
NUMBER = re.compile(r"[\d,]+(\.\d+)?|-\d+\.\d+")


@pytest.mark.slow
@pytest.mark.release
def test_a_tiny_run_fills_the_whole_table(capfd: pytest.CaptureFixture[str]) -> None:
    results = run_recall(TINY)
    head, _, *lines = report(TINY, results).split("\n\n")[0].splitlines()
    assert head == "|  | SQLite | aim |"
    assert len(lines) == 13
    assert all(NUMBER.fullmatch(line.split("|")[2].strip()) for line in lines)
    assert results[0].index > 0
    assert "sqlite: chatting" in capfd.readouterr().err


def test_the_quick_plan_measures_the_same_with_less() -> None:
    assert QUICK.back_ends == Plan().back_ends == ("sqlite", "redis")
    assert QUICK.passages < Plan().passages
    assert QUICK.chat == Plan().chat


def test_the_same_seed_makes_the_same_text() -> None:
    assert Talk(3).session(20) == Talk(3).session(20) != Talk(4).session(20)


def test_few_words_are_frequent_and_most_are_rare() -> None:
    talk = Talk(3)
    texts = [text for _ in range(40) for text in talk.session(100)]
    counts = Counter(word for text in texts for word in text.split())
    total = counts.total()
    assert sum(counts[word] for word in FUNCTION) > 0.25 * total
    assert sum(1 for count in counts.values() if count == 1) > 0.25 * len(counts)
    lengths = sorted(len(text.split()) for text in texts)
    assert lengths[len(lengths) // 2] in range(15, 22)
    assert lengths[-1] in range(100, MAX_CHARACTERS + 1)


def test_a_question_is_of_words_that_say_something() -> None:
    talk = Talk(3)
    (text,) = talk.session(1)
    asked = talk.question(text).removeprefix("What did I tell you about ").rstrip("?").split()
    assert set(asked) <= set(text.split()) - set(FUNCTION)
