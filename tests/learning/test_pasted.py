"""What of a message is not its writer's own words."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.learning.evidence import UserMessage
from proxy.recall.own_words import BLANK, pasted_spans

LONG = "a sentence that somebody else has written and that goes on for quite a long while, indeed"


def own(text: str) -> str:
    """What is left of a message, on one line."""
    said = UserMessage("m", "e", 1, text, 0.0, pasted_spans(text))
    assert len(said.own_text) == len(text)
    return " ".join(said.own_text.replace(BLANK, " ").split())


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("I live in Berlin.", "I live in Berlin."),
        ("Why?\n```python\nname = 'Rex'\n```\nI like Python.", "Why? I like Python."),
        ("Why?\n```\nnever closed\nI live in Rome", "Why?"),
        ("~~~\ncode\n~~~\nmine", "mine"),
        ("Why does ```x = 1``` fail? I like Python.", "Why does fail? I like Python."),
        ("Why? ```\nI = 'a king'\n```\nI like Python.", "Why? I like Python."),
        ("Thanks~~~ I live in Seoul.", "Thanks~~~ I live in Seoul."),
        ('"""\nI am a king.\n"""\nIs this good?', "Is this good?"),
        ("<document>\nI am a king.\n</document>\nIs this good?", "Is this good?"),
        ("<system-reminder>\nI am a king.\n</system-reminder>\nIs it?", "Is it?"),
        ("<br>\nI am Kai.", "<br> I am Kai."),
        ("> I am a king\n> and rich\nWhat does he mean?", "What does he mean?"),
        ("&gt; I am a king\nmine", "mine"),
        ("My dog is called “Rex”.", "My dog is called “Rex”."),
        (f'He wrote "{LONG}" to me.', "He wrote to me."),
        (f"He wrote “{LONG}” to me.", "He wrote to me."),
        (f"Er schrieb „{LONG}“ an mich.", "Er schrieb an mich."),
        (f"Il a écrit « {LONG} » hier.", "Il a écrit hier."),
        (f"他写道「{LONG}」吗", "他写道 吗"),
        (
            f'He said "no", and {LONG}, and then "yes".',
            f'He said "no", and {LONG}, and then "yes".',
        ),
        ("See below.\nOn Monday, Ann wrote:\nI am a king.", "See below."),
        ("Siehe unten.\nAm Montag um 8 Uhr schrieb Ann:\nIch bin König.", "Siehe unten."),
        ("FYI\n-----Original Message-----\nI am a king.", "FYI"),
        ("Hier.\nAnfang der weitergeleiteten Nachricht:\nIch bin König.", "Hier."),
        ("FYI\nBegin forwarded message:\n\nI am a king.", "FYI"),
        ("FYI\nFrom: Ann <ann@example.com>\nI am a king.", "FYI"),
        ("User: I am a king\nAssistant: Hello king!\n\nWhat went wrong?", "What went wrong?"),
        ("Ann: I am a king\nBob: Really?\nAnn: Yes.\n\nIs Ann right?", "Is Ann right?"),
        ("Name: Kai\nAge: 41\nCity: Berlin", "Name: Kai Age: 41 City: Berlin"),
        ("Kai: I live in Berlin.", "Kai: I live in Berlin."),
        ("Translate this: I am a king.", "Translate this:"),
        (
            "Can you summarize the following text:\nI am a king.",
            "Can you summarize the following text:",
        ),
        ("翻译：我是国王。", "翻译："),
        ("ترجم: أنا ملك", "ترجم:"),
        ("Correct my text: I am a king.", "Correct my text:"),
        ("Correct: I live in Rome.", "Correct: I live in Rome."),
        ("I translate books: novels mostly.", "I translate books: novels mostly."),
        ("", ""),
    ],
)
def test_only_what_is_not_quoted_or_pasted_is_left(text: str, left: str) -> None:
    assert own(text) == left


@given(st.text(alphabet='ab:.\n`~>"“”«»<x/', max_size=300))
def test_spans_are_in_order_and_within_the_text(text: str) -> None:
    spans = pasted_spans(text)
    ends = [0, *(place for span in spans for place in span), len(text)]
    assert ends == sorted(ends)
    assert all(span.start < span.end for span in spans)


@pytest.mark.parametrize("piece", ['"', "“", "`", "```\n", "> a\n", "A: b\n", "<a>\n", "x: ", "a "])
def test_work_grows_with_the_length_alone(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    began = time.process_time()
    pasted_spans(text)
    assert time.process_time() - began < 10
