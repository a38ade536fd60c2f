"""What the models write that are asked for memory: always the same to the same prompt.  Pure.

They read the prompts as the proxy writes them, and answer what these ask for, at a plausible
length: nothing here is understood.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from zlib import crc32

from bench.writing.words import THANKS, Telling, tellings_in
from proxy.summary.lines import NO_SUMMARY

KEPT = 0.25
"""Of the words that are summarised."""

OPENING = "So far: "
"""Random words may begin as chat does, which is no summary."""

_MESSAGE = re.compile(r"^Message (\d+), [^\n]*:\n", re.MULTILINE)
_NOTE = re.compile(r"^(\d+)\. (.*?)(?: \[about [^\n]*)?(?: \(noted [^\n]*)$", re.MULTILINE)
_SUMMARISED = re.compile(
    r"Summary so far:\n(.*?)\n\nNew lines of the conversation, oldest first:\n(.*?)\n\n"
    r"Write the new summary:.*? at most\s(\d+) words",
    re.DOTALL,
)
_SPEAKER = re.compile(r"^(?:(?:Human|AI): |\[.*\]$)", re.MULTILINE)
_DOCUMENT = re.compile(r"^The document now:\n(.*)$", re.MULTILINE)
_PAIR = re.compile(r"^\[(\d+)\] Request: .*\nAfterwards: (.*)$", re.MULTILINE)
_MAX_WORDS = re.compile(r"At most (\d+) words")

ADVICE = (
    "Begin with the result, and give the reason after it.",
    "Prefer short sentences and common words.",
    "Where numbers matter, give them with their units.",
    "Say which part of an answer is uncertain.",
    "Offer one next step, and only if there is a useful one.",
    "Give an example where a rule alone would be hard to follow.",
    "Leave out praise and apologies.",
    "Ask back only when a sensible answer is not possible otherwise.",
)


def written(feature: str, prompt: str) -> str:
    """What the model of a feature answers.  Raises KeyError for a feature that has none."""
    return WRITERS[feature](prompt)


def _summary(prompt: str) -> str:
    """The summary so far and a part of what is new; the newest of it where that gets too long."""
    found = _SUMMARISED.search(prompt)
    if found is None:
        raise ValueError("this is no prompt for a summary")
    before, lines, most = found.groups()
    sentences = re.split(r"(?<=[.?]) ", _SPEAKER.sub("", lines).replace("\n", " "))
    taken = [each for each in sentences[:: round(1 / KEPT)] if not each.endswith("?")]
    so_far = before.removeprefix(NO_SUMMARY).removeprefix(OPENING)
    said = " ".join([so_far, *taken]).split()
    return OPENING + " ".join(said[-int(most) :])


def _facts(prompt: str) -> str:
    known = {text: int(number) for number, text in _NOTE.findall(prompt)}
    operations = [
        _operation(number, telling, known.get(telling.noted))
        for number, telling in _tellings(prompt)
    ]
    return json.dumps({"operations": operations})


def _operation(message: int, telling: Telling, fact: int | None) -> dict[str, object]:
    return {
        "op": "none" if fact else "add",
        "fact": fact,
        "text": telling.noted,
        "about": "user",
        "message": message,
        "quote": telling.said,
        "valid_from": None,
        "expires": None,
    }


def _profile(prompt: str) -> str:
    """A member for each relation, with what is done with them."""
    document = _DOCUMENT.search(prompt)
    known = json.loads(document[1]) if document else {}
    changes = []
    for _, telling in _tellings(prompt):
        value = f"{telling.name}, {telling.verb} {telling.thing}"
        if known.get(telling.relation) != value:
            changes.append({"key": telling.relation, "value": value, "quote": telling.said})
            known[telling.relation] = value
    return json.dumps({"set": changes, "append": [], "remove": []})


def _episodes(prompt: str) -> str:
    pleased = [int(number) for number, after in _PAIR.findall(prompt) if THANKS in after]
    return json.dumps({"good": [{"number": number, "quote": THANKS} for number in pleased]})


def _instructions(prompt: str) -> str:
    """Advice in an order that depends on the prompt: each time something new."""
    most, first = _MAX_WORDS.search(prompt), crc32(prompt.encode()) % len(ADVICE)
    text = " ".join((*ADVICE[first:], *ADVICE[:first])).split()
    chosen = " ".join(text[: int(most[1]) if most else None])
    return json.dumps({"instructions": chosen, "why": "What people found bad was too long."})


def _tellings(prompt: str) -> Iterator[tuple[int, Telling]]:
    """What the messages of a prompt tell, with their numbers."""
    _, *parts = _MESSAGE.split(prompt)
    for number, text in zip(parts[::2], parts[1::2], strict=True):
        for telling in tellings_in(text):
            yield int(number), telling


WRITERS: dict[str, Callable[[str], str]] = {
    "summary": _summary,
    "facts": _facts,
    "profile": _profile,
    "episodes": _episodes,
    "instructions": _instructions,
}
