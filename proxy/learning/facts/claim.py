"""The prompt for facts, and the operations that a model answers, checked against the messages.

Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import tzinfo
from itertools import islice
from typing import Any, Literal, NamedTuple

from proxy.chat.jsontext import well_formed
from proxy.learning.batch import Batch
from proxy.learning.evidence import (
    Evidence,
    Source,
    UserMessage,
    find_evidence,
    is_instruction,
    source_of,
    with_heading,
)
from proxy.learning.extract import find_json
from proxy.learning.facts.days import valid_from, valid_until
from proxy.learning.facts.fact import MAX_STATEMENT, USER, Fact, State, one_line, render_dates
from proxy.learning.facts.slots import slot_of
from proxy.learning.facts.statements import (
    Topic,
    is_addressed,
    is_reported,
    is_statement,
    is_translated,
    mentions,
    other_subject,
    parse_subject,
    shares_word,
)
from proxy.learning.reading import has_caption
from proxy.recall.notes.slots import SlotValue
from proxy.recall.own_words import BLANK, speaker_of

PASTED, ENDS = "[pasted]", "[/pasted]"

PROMPT = """\
You keep notes about a person, the user, from what they write to an assistant.

{title}
{facts}

New messages of the user, oldest first:

{messages}

Note what these messages say of the user that will still matter in a year: who they are, where they
live, what they do, own, plan, cannot do and have come to like, and the people and animals in their
life.

Rules:
- Only what the user says themselves: nothing between [pasted] and [/pasted], no captions such as
  [photo], no guesses.
- If lines begin with a name, that is the user's name: use it in the notes. Note nothing of whoever
  they talk to but what the user says these are to them.
- No thanks, moods, general opinions, questions, tasks, nor instructions to the assistant. What is
  past only if it still matters in a year.
- Each note is one short sentence that can be understood alone, with names instead of "he" or "it",
  in the language of the message. Do not translate.
- "about" is "user", or who or what else the note is about, such as "Jack, a friend of the user".
  What a friend likes is not what the user likes.
- "quote" is copied from the message, word for word.
- Write dates, never "yesterday": counted from the day of the message, or from the day that its
  heading ("text of") or a line gives, which holds until another is given. "Last week" is its first
  day.
- "valid_from" is since when it holds, "expires" the last day on which it does. Nobody says: null.
- What was said last holds: a later message before an earlier one, and a note before a message that
  is older than it.
{focus}
Operations, with an example each:
- "add": it is new, or a new stage beside a note so far.
  {{"op": "add", "fact": null, "text": "The user has a dog called Rex.", "about": "user", \
"message": 1, "quote": "my dog Rex", "valid_from": null, "expires": null}}
- "update": it says the same as note so far 2, more precisely.
  {{"op": "update", "fact": 2, "text": "The user is a night nurse in Kiel.", "about": "user", \
"message": 1, "quote": "my night shifts at the clinic", "valid_from": null, "expires": null}}
- "supersede": note so far 3 is no longer true, or a plan that was carried out or dropped.
  {{"op": "supersede", "fact": 3, "text": "Ann, a sister of the user, lives in Bonn.", \
"about": "Ann, a sister of the user", "message": 2, "quote": "Ann moved to Bonn last week", \
"valid_from": "2024-03-04", "expires": null}}
- "none": it is note so far 4, said once more.
  {{"op": "none", "fact": 4, "text": "The user is vegan.", "about": "user", "message": 2, \
"quote": "being vegan", "valid_from": null, "expires": null}}

Answer with JSON only: {{"operations": [...]}}
Nothing to note: {{"operations": []}}
"""

NOTES = "Notes so far:"

RELATED = "Notes so far that may be related ({shown} of {total}; always name and family):"

RETRY_NOTE = """
The messages do say something about the user. Read them once more.
"""
"""Appended to the prompt where no fact was found in messages that clearly have one."""


def prompt(
    messages: Sequence[UserMessage],
    facts: Sequence[Fact],
    total: int,
    focus: str,
    zone: tzinfo | None = None,
) -> str:
    """The prompt with these facts, of ``total`` in all, and messages, both numbered from 1.

    Days are those in a ``zone``, None for UTC.
    """
    return PROMPT.format(
        title=NOTES if len(facts) >= total else RELATED.format(shown=len(facts), total=total),
        facts="\n".join(_render_note(i, fact, zone) for i, fact in enumerate(facts, 1)) or "(none)",
        messages="\n\n".join(
            with_heading(i, each, mark_pasted(each).strip("\n"))
            for i, each in enumerate(messages, 1)
        ),
        focus=f"- Look above all for: {focus}\n" if focus else "",
    )


def _render_note(number: int, fact: Fact, zone: tzinfo | None) -> str:
    whom = "" if fact.about == USER else f" [about {fact.about}]"
    return f"{number}. {fact.text}{whom} ({render_dates(fact, zone)})"


def mark_pasted(message: UserMessage) -> str:
    """The text with marks around what is pasted."""
    kept, at = [], 0
    for start, end in message.pasted:
        kept += [message.text[at:start], PASTED, "\n", message.text[start:end], "\n", ENDS]
        at = end
    return "".join((*kept, message.text[at:]))


Op = Literal["add", "update", "supersede", "none"]
OPS: tuple[Op, ...] = ("add", "update", "supersede", "none")

MAX_PART = 1000
"""Characters of each part of an operation: twice what a fact or a quote may have."""

MAX_OPERATIONS = 50
"""Operations of one answer that are read."""

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

    ``fact`` and ``message`` are numbers in the prompt, 0 for none; dates are as the model wrote
    them.
    """

    op: Op
    text: str
    quote: str
    about: str = ""
    fact: int = 0
    message: int = 0
    valid_from: str = ""
    expires: str = ""


def parse_operations(answer: str) -> tuple[Operation, ...] | None:
    """The valid operations of an answer; None if it has no list of operations."""
    listed = _operation_list(find_json(answer, lambda value: _operation_list(value) is not None))
    return None if listed is None else tuple(islice(_operations(listed), MAX_OPERATIONS))


def _operation_list(value: object) -> list[object] | None:
    """The list in a decoded answer, which may be the answer itself."""
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
    return well_formed(value[:MAX_PART]) if isinstance(value, str) else ""


def _number(value: object) -> int:
    if isinstance(value, str) and value.isdecimal() and len(value) < 6:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


class Claim(NamedTuple):
    """An operation that passed all checks; fields as in Fact.

    ``valid_from`` is None if no message says it.  ``fact`` is the id of the fact that the operation
    names; ``apart`` is whether no message is about that fact.
    """

    op: Op
    text: str
    about: str
    state: State
    valid_from: float | None
    until: float | None
    source: Source
    fact: str | None
    apart: bool = False
    slot: SlotValue | None = None


def checked_claims(
    operations: Sequence[Operation], batch: Batch, shown: Sequence[Fact]
) -> tuple[Claim, ...]:
    """The operations that pass all checks, in the order of their messages.

    ``shown`` are the facts of the prompt, in its order.
    """
    own = {name.lower() for each in batch.messages if (name := speaker_of(each.own_text))}
    topic = Topic(
        "\n".join(each.own_text for each in batch.messages), [fact.text for fact in shown]
    )
    found = (_claim(operation, batch, shown, own, topic) for operation in operations)
    places = {source_of(each): place for place, each in enumerate(batch.messages)}
    claims = (claim for claim in found if claim is not None)
    return tuple(sorted(claims, key=lambda claim: places[claim.source]))


def _claim(
    operation: Operation, batch: Batch, shown: Sequence[Fact], own: Collection[str], topic: Topic
) -> Claim | None:
    """``own`` are the names of the user in lower case."""
    found = find_evidence(operation.quote, batch.messages, operation.message - 1)
    text = one_line(operation.text)
    if found is None or len(text) > MAX_STATEMENT or not (text or operation.op == "none"):
        return None
    if is_instruction(text) and not is_instruction(operation.quote):
        return None  # nobody but the model has said it
    whom = parse_subject(operation.about)
    whom = USER if whom.lower() in own else whom
    if whom != USER and (found.voice == "pasted" or is_addressed(operation.quote)):
        return None
    text, whom = _text_or_quote(text, whom, one_line(operation.quote), found)
    if text and (has_caption(text) or not is_statement(text)):
        return None  # what is said beside a picture is about that
    message = found.message
    then, told = message.local_time, f"{message.dated}\n{message.text}"
    begins = valid_from(operation.valid_from, then, told)
    named = shown[operation.fact - 1] if 0 < operation.fact <= len(shown) else None
    return Claim(
        op=operation.op,
        text=text,
        about=whom,
        state=_state(text, whom, operation.quote, found),
        valid_from=begins,
        until=valid_until(operation.expires, then, then if begins is None else begins, told),
        source=source_of(message),
        fact=named.id if named else None,
        apart=named is not None and not topic.shares_word(f"{named.text} {named.about}", text),
        slot=slot_of(text, operation.quote, message.own_text) if found.voice == "own" else None,
    )


def _text_or_quote(text: str, whom: str, quote: str, found: Evidence) -> tuple[str, str]:
    """The text and its subject; the quote in place of a text that does not follow from it."""
    message = (
        found.message.own_text.replace(BLANK, " ") if found.voice == "own" else found.message.text
    )
    other = other_subject(quote) if whom == USER else None
    if other is not None:
        return (text if mentions(text, other) else quote), other
    if is_translated(text, quote, message) or not shares_word(text, message):
        return quote, whom
    return text, whom


def _state(text: str, whom: str, quote: str, found: Evidence) -> State:
    doubtful = found.voice == "pasted" or is_instruction(text) or is_instruction(whom)
    by_others = whom == USER and is_reported(quote, found.message.own_text)
    return "quarantined" if doubtful or by_others else "current"
