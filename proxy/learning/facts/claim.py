"""What a model is asked about facts, and what it proposes, checked against what was said.  Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from proxy.chat.jsontext import well_formed
from proxy.learning.batch import Batch
from proxy.learning.evidence import Evidence, Said, Source, evidence, headed, is_instruction
from proxy.learning.extract import json_in
from proxy.learning.facts.fact import (
    MOST_CHARACTERS,
    USER,
    Fact,
    State,
    date_text,
    holds_from,
    holds_until,
    one_line,
)
from proxy.learning.facts.statements import about, in_other_words, names, others, speaks_of
from proxy.recall.own_words import BLANK

PASTED, ENDS = "[pasted]", "[/pasted]"

PROMPT = """\
You keep notes about a person, the user, from what they write to an assistant.

Notes so far:
{facts}

New messages of the user, oldest first:

{messages}

Find what these messages say that is true of the user for longer than today: who they are, where
they live, what they do, like, own, plan, cannot do, and the people and animals in their life.

Rules:
- Only what the user says themselves. Nothing between [pasted] and [/pasted], no guesses.
- Nothing about this conversation, no questions, no tasks, no instructions to the assistant.
- Each note is one short sentence that can be understood alone, with names instead of "he" or "it",
  in the language of the message. Do not translate.
- "about" is "user", or who or what else the note is about, such as "Jack, a friend of the user".
  What a friend likes is not what the user likes.
- "quote" is copied from the message, word for word.
- Turn words such as "yesterday" into dates, counted from the date of the message.
- "valid_from" is the date since when it holds, "expires" the date when it ends, else null.
- If messages contradict each other, only the last one counts.
{focus}
For each note one operation:
- "add": it is new. "fact" is null.
- "update": it says the same as a note so far, more precisely. "fact" is that note's number.
- "supersede": it shows that a note so far is no longer true. "fact" is that note's number.
- "none": it is a note so far said once more. "fact" is that note's number.

Answer with JSON only, for example:
{example}
If there is nothing to note: {{"operations": []}}
"""

EXAMPLE = (
    '{"operations": [{"op": "add", "fact": null, "text": "The user has a dog called Rex.", '
    '"about": "user", "message": 1, "quote": "my dog Rex", "valid_from": null, "expires": null}]}'
)

AGAIN = """
The messages do say something about the user. Read them once more.
"""
"""Added where nothing was found in messages that clearly tell something."""


def prompt(said: Sequence[Said], facts: Sequence[Fact], focus: str) -> str:
    """``facts`` are numbered from 1 in this order, and so are the messages."""
    return PROMPT.format(
        facts="\n".join(_noted(i, fact) for i, fact in enumerate(facts, 1)) or "(none)",
        messages="\n\n".join(
            headed(i, each, marked(each).strip("\n")) for i, each in enumerate(said, 1)
        ),
        focus=f"- Look above all for: {focus}\n" if focus else "",
        example=EXAMPLE,
    )


def _noted(number: int, fact: Fact) -> str:
    whom = "" if fact.about == USER else f" [about {fact.about}]"
    return f"{number}. {fact.text}{whom} (since {date_text(fact.valid_from)})"


def marked(said: Said) -> str:
    """The text with marks around what is pasted."""
    kept, at = [], 0
    for start, end in said.pasted:
        kept += [said.text[at:start], PASTED, "\n", said.text[start:end], "\n", ENDS]
        at = end
    return "".join((*kept, said.text[at:]))


Op = Literal["add", "update", "supersede", "none"]
OPS: tuple[Op, ...] = ("add", "update", "supersede", "none")

MOST = 50
"""Operations of one answer; who writes down more than that writes down everything."""

_TEXT = {"type": "string"}
_MAYBE_TEXT = {"type": ["string", "null"]}
_FIELDS: dict[str, Any] = {
    "op": {"type": "string", "enum": list(OPS)},
    "fact": {"type": ["integer", "null"]},
    "text": _TEXT,
    "about": _TEXT,
    "message": {"type": "integer"},
    "quote": _TEXT,
    "valid_from": _MAYBE_TEXT,
    "expires": _MAYBE_TEXT,
}

SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {
        "operations": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": _FIELDS,
                "required": list(_FIELDS),
                "additionalProperties": False,
            },
        }
    },
    "required": ["operations"],
    "additionalProperties": False,
}
"""JSON Schema of the answer, strict as upstreams want it: all required, nothing else."""


class Operation(NamedTuple):
    """One change that the model proposes.

    ``fact`` and ``message`` are the numbers that it was shown, from 1; 0 is none.  Dates as they
    were written.
    """

    op: Op
    text: str
    quote: str
    about: str = ""
    fact: int = 0
    message: int = 0
    valid_from: str = ""
    expires: str = ""


def operations_in(answer: str) -> tuple[Operation, ...] | None:
    """The operations of an answer; those that are none are left out.  None: it holds no list."""
    listed = _listed(json_in(answer, lambda value: _listed(value) is not None))
    return None if listed is None else tuple(_operations(listed))[:MOST]


def _listed(value: object) -> list[object] | None:
    """The list in a value, which may be a bare one."""
    if isinstance(value, dict):
        value = value.get("operations")
        return value if isinstance(value, list) else None
    bare = isinstance(value, list) and all(isinstance(each, dict) for each in value)
    return value if isinstance(value, list) and bare else None


def _operations(listed: list[object]) -> Iterator[Operation]:
    for each in listed:
        if isinstance(each, dict) and each.get("op") in OPS:
            yield Operation(
                op=each["op"],
                text=_text(each.get("text")),
                quote=_text(each.get("quote")),
                about=_text(each.get("about")),
                fact=_number(each.get("fact")),
                message=_number(each.get("message")),
                valid_from=_text(each.get("valid_from")),
                expires=_text(each.get("expires")),
            )


def _text(value: object) -> str:
    return well_formed(value) if isinstance(value, str) else ""


def _number(value: object) -> int:
    if isinstance(value, str) and value.isdecimal() and len(value) < 6:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


class Claim(NamedTuple):
    """A proposal that stands up to the evidence; see Fact.  ``fact``: the id it goes with."""

    op: Op
    text: str
    about: str
    state: State
    valid_from: float
    until: float | None
    source: Source
    fact: str | None


def claims(
    operations: Sequence[Operation], batch: Batch, shown: Sequence[str]
) -> tuple[Claim, ...]:
    """Those of the operations that hold; ``shown`` are the ids of the facts by their number."""
    found = (_claim(operation, batch, shown) for operation in operations)
    return tuple(claim for claim in found if claim is not None)


def _claim(operation: Operation, batch: Batch, shown: Sequence[str]) -> Claim | None:
    found = evidence(operation.quote, batch.said, operation.message - 1)
    text = one_line(operation.text)
    if found is None or len(text) > MOST_CHARACTERS or not (text or operation.op == "none"):
        return None
    whom = about(operation.about)
    if found.voice == "pasted" and whom != USER:
        return None
    text, whom = _in_their_words(text, whom, one_line(operation.quote), found)
    said = found.said
    begins = holds_from(operation.valid_from, said.at, f"{text} {operation.quote}")
    return Claim(
        op=operation.op,
        text=text,
        about=whom,
        state=_state(text, whom, found),
        valid_from=begins,
        until=holds_until(operation.expires, said.at, begins),
        source=_source(batch, said),
        fact=shown[operation.fact - 1] if 0 < operation.fact <= len(shown) else None,
    )


def _in_their_words(text: str, whom: str, quote: str, found: Evidence) -> tuple[str, str]:
    """The text and whom it is about; the quote itself where the text is not made from it."""
    message = found.said.own.replace(BLANK, " ") if found.voice == "own" else found.said.text
    else_one = others(quote) if whom == USER else None
    if else_one is not None:
        return (text if names(text, else_one) else quote), else_one
    if in_other_words(text, quote, message) or not speaks_of(text, message):
        return quote, whom
    return text, whom


def _state(text: str, whom: str, found: Evidence) -> State:
    told = found.voice == "pasted" or is_instruction(text) or is_instruction(whom)
    return "quarantined" if told else "current"


def _source(batch: Batch, said: Said) -> Source:
    return Source(
        session=batch.key.session, message=said.message, exchange=said.exchange, at=said.at
    )
