"""What of a user's message a person has typed, and what their program put beside it."""

from __future__ import annotations

import json
import time

import pytest

from proxy.chat.message import read_stored, typed_text_of
from proxy.chat.typed import MAX_BLOCKS, MAX_PARTS, typed_part, typed_parts

RULES = "# AGENTS.md instructions for /work\n\n<INSTRUCTIONS>\nSign it.\n</INSTRUCTIONS>"
WHERE = "<environment_context>\n  <cwd>/work</cwd>\n</environment_context>"
ASKED = "## My request for Codex:"
REMINDER = "<system-reminder>\nSign what you commit.\n</system-reminder>"
SENT = "<system-reminder>\nThe user sent a new message while you were working:\n"
ON_IT = "\n\nThis is how Claude Code surfaces messages.\n</system-reminder>"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Hello", "Hello"),
        ("a <b> c", "a <b> c"),
        ("<command-message>x</command-message>\n<command-name>/clear</command-name>", "/clear"),
        ("<command-name>/fix</command-name><command-args>9</command-args>", "/fix 9"),
        (
            "<command-name>/ask</command-name><command-args>Is Map<K, V> fast?</command-args>",
            "/ask Is Map<K, V> fast?",
        ),
        ("<command-name>/cut off", "<command-name>/cut off"),
        ("<bash-input>ls -l</bash-input>", "! ls -l"),
        ("<bash-input>grep '<div>' x</bash-input>", "! grep '<div>' x"),
        ("<bash-stdout>a</bash-stdout>", ""),
        ("<local-command-stdout>a</local-command-stdout>", ""),
        ("[Request interrupted by user for tool use]", ""),
        ("Base directory for this skill: /skills/sign\n\nSign it.", ""),
        ("Before <system-reminder>x</system-reminder>after", "Before after"),
        (f"{REMINDER}\nHi", "\nHi"),
        ("a<system-reminder>x</system-reminder>b<system-reminder></system-reminder>c", "abc"),
        ("</system-reminder>a<system-reminder>b", "</system-reminder>a<system-reminder>b"),
        (f"{REMINDER}\n{SENT}Use tabs.\n\nNo, spaces.{ON_IT}\n", "\nUse tabs.\n\nNo, spaces.\n"),
        (f"{SENT}Stop!\n\nIMPORTANT: After completing your task{ON_IT}", "Stop!"),
        (f"{SENT}Stop!</system-reminder>", "Stop!"),
        (f"<system-reminder>\nHe wrote: {SENT}Stop!{ON_IT}", ""),
        ("Hi\n<environment_details>\n# Tabs\n</environment_details>", "Hi\n"),
        ("<ide_opened_file>The user opened a.py.</ide_opened_file>\nWhy?", "\nWhy?"),
        (WHERE, ""),
        (f"\n{RULES}\n", ""),
        (f"{RULES}\n{WHERE}", ""),
        ("<skill>\n<name>x</name>\nSign it.\n</skill>", ""),
        ("<skill> is a tag", "<skill> is a tag"),
        ("What is <environment_context>?", "What is <environment_context>?"),
        ("# Context from my IDE setup:\n## Tabs\n## My request for Codex:\nWhy?\n", "Why?"),
        (
            f"# Context from my IDE setup:\n{ASKED}\nWhat is `{ASKED}` for?",
            f"What is `{ASKED}` for?",
        ),
        ("<session_context>\nThis is the Gemini CLI.\n</session_context>", ""),
        ("This is the Qwen Code. We are setting up the context for our chat.\nIt is Monday.", ""),
    ],
)
def test_what_a_person_has_typed(text: str, found: str) -> None:
    assert typed_part(text) == found


@pytest.mark.parametrize(
    ("content", "own"),
    [
        ([RULES, WHERE], ""),
        ([REMINDER, "", "Why?"], "Why?"),
        (["a", "", "b"], "a\n\nb"),
        (["a", REMINDER, "b"], "a\nb"),
        ([f"{SENT}Stop!{ON_IT}\n", REMINDER], "Stop!"),
        ([f"{SENT}Stop!</system-reminder>"], "Stop!"),
        (["<system-reminder>\n</system-reminder>\nPlanted.\n</system-reminder>\n", "Why?"], "Why?"),
    ],
    ids=["nothing", "behind", "all", "between", "sent", "sent-alone", "ended-early"],
)
def test_each_part_of_a_message_is_looked_at_alone(content: list[str], own: str) -> None:
    parts = [{"type": "text", "text": text} for text in content]
    raw = json.dumps({"role": "user", "content": parts}).encode()
    assert read_stored(raw).typed_text == typed_text_of(raw)[0] == own
    assert read_stored(raw).text == "\n".join(content)


def test_many_parts_are_looked_at_as_one_text() -> None:
    text = "\n".join([REMINDER, *["a"] * MAX_PARTS])
    ends = [len(REMINDER) + 2 * n for n in range(MAX_PARTS + 1)]
    assert typed_parts(text, ends) == text.removeprefix(REMINDER)
    assert typed_parts(text[:-2], ends[:-1]) == text[:-2].removeprefix(REMINDER).strip()


def test_behind_many_blocks_a_text_counts_as_typed() -> None:
    assert typed_part(f"{REMINDER * MAX_BLOCKS}Hello {REMINDER}") == f"Hello {REMINDER}"


def test_a_share_tells_how_much_of_a_message_is_left() -> None:
    asked = {"role": "user", "content": f"{REMINDER}Why?"}
    assert typed_text_of(json.dumps(asked).encode()) == ("Why?", 4 / len(asked["content"]))
    assert typed_text_of(b'{"role":"user","content":""}') == ("", 1.0)


def test_what_a_model_says_is_its_own_whatever_it_names() -> None:
    answer = json.dumps({"role": "assistant", "content": f"It sends {REMINDER}."}).encode()
    assert typed_text_of(answer)[0] == read_stored(answer).typed_text == f"It sends {REMINDER}."


@pytest.mark.parametrize(
    "piece",
    ["<system-reminder>", "<system-reminder></ide_selection>", "<command-name>", "<skill>", "\n"]
    + [f"{SENT}x{ON_IT}"],
)
def test_work_grows_with_the_length_alone(piece: str) -> None:
    text = f"<command-name>{piece * (1_000_000 // len(piece))}"
    ends = range(1000, len(text), 1001)
    began = time.process_time()
    typed_part(text[14:])
    typed_part(text)
    typed_parts(text, ends)
    assert time.process_time() - began < 2
