"""What a model is asked about facts, and what it proposes, checked against what was said.  Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import tzinfo
from itertools import islice
from typing import Any, Literal, NamedTuple

from proxy.chat.jsontext import well_formed
from proxy.learning.batch import Batch
from proxy.learning.evidence import (
    Evidence,
    Said,
    Source,
    evidence,
    headed,
    is_instruction,
    source_of,
)
from proxy.learning.extract import json_in
from proxy.learning.facts.days import holds_from, holds_until
from proxy.learning.facts.fact import MOST_CHARACTERS, USER, Fact, State, dates_of, one_line
from proxy.learning.facts.slots import slot_of
from proxy.learning.facts.statements import (
    Matter,
    about,
    in_other_words,
    is_addressed,
    is_reported,
    names,
    others,
    says_something,
    speaks_of,
)
from proxy.learning.reading import shows_picture
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

RELATED = "Notes so far that may be related ({shown} of {held}; always name and family):"

AGAIN = """
The messages do say something about the user. Read them once more.
"""
"""Added where nothing was found in messages that clearly tell something."""


def prompt(
    said: Sequence[Said],
    facts: Sequence[Fact],
    held: int,
    focus: str,
    zone: tzinfo | None = None,
) -> str:
    """``facts`` of the ``held`` ones are numbered from 1 in this order, and so are the messages.

    Days are told in a ``zone``, None for UTC.
    """
    return PROMPT.format(
        title=NOTES if len(facts) >= held else RELATED.format(shown=len(facts), held=held),
        facts="\n".join(_noted(i, fact, zone) for i, fact in enumerate(facts, 1)) or "(none)",
        messages="\n\n".join(
            headed(i, each, marked(each).strip("\n")) for i, each in enumerate(said, 1)
        ),
        focus=f"- Look above all for: {focus}\n" if focus else "",
    )


def _noted(number: int, fact: Fact, zone: tzinfo | None) -> str:
    whom = "" if fact.about == USER else f" [about {fact.about}]"
    return f"{number}. {fact.text}{whom} ({dates_of(fact, zone)})"


def marked(said: Said) -> str:
    """The text with marks around what is pasted."""
    kept, at = [], 0
    for start, end in said.pasted:
        kept += [said.text[at:start], PASTED, "\n", said.text[start:end], "\n", ENDS]
        at = end
    return "".join((*kept, said.text[at:]))


Op = Literal["add", "update", "supersede", "none"]
OPS: tuple[Op, ...] = ("add", "update", "supersede", "none")

MOST_WRITTEN = 1000
"""Characters of each part of an operation: twice what a fact or a quote may have."""

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
    return None if listed is None else tuple(islice(_operations(listed), MOST))


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
    return well_formed(value[:MOST_WRITTEN]) if isinstance(value, str) else ""


def _number(value: object) -> int:
    if isinstance(value, str) and value.isdecimal() and len(value) < 6:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


class Claim(NamedTuple):
    """A proposal that stands up to the evidence; see Fact.  ``valid_from`` is None where nobody has
    said that.  ``fact``: the id it goes with; ``apart``: nothing that was said is about that.
    ``slot``: what it tells of what has one value at a time.
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


def claims(
    operations: Sequence[Operation], batch: Batch, shown: Sequence[Fact]
) -> tuple[Claim, ...]:
    """Those of the operations that hold, in the order in which the messages were said.

    ``shown`` are the facts by their number.
    """
    own = {name.lower() for each in batch.said if (name := speaker_of(each.own))}
    matter = Matter("\n".join(each.own for each in batch.said), [fact.text for fact in shown])
    found = (_claim(operation, batch, shown, own, matter) for operation in operations)
    places = {source_of(each): place for place, each in enumerate(batch.said)}
    held = (claim for claim in found if claim is not None)
    return tuple(sorted(held, key=lambda claim: places[claim.source]))


def _claim(
    operation: Operation,
    batch: Batch,
    shown: Sequence[Fact],
    own: Collection[str],
    matter: Matter,
) -> Claim | None:
    """``own`` are the names, in small letters, that the user goes by."""
    found = evidence(operation.quote, batch.said, operation.message - 1)
    text = one_line(operation.text)
    if found is None or len(text) > MOST_CHARACTERS or not (text or operation.op == "none"):
        return None
    if is_instruction(text) and not is_instruction(operation.quote):
        return None  # nobody but the model has said it
    whom = about(operation.about)
    whom = USER if whom.lower() in own else whom
    if whom != USER and (found.voice == "pasted" or is_addressed(operation.quote)):
        return None
    text, whom = _in_their_words(text, whom, one_line(operation.quote), found)
    if text and (shows_picture(text) or not says_something(text)):
        return None  # what is said beside a picture is about that
    said = found.said
    then, told = said.on_the_wall, f"{said.dated}\n{said.text}"
    begins = holds_from(operation.valid_from, then, told)
    goes_with = shown[operation.fact - 1] if 0 < operation.fact <= len(shown) else None
    return Claim(
        op=operation.op,
        text=text,
        about=whom,
        state=_state(text, whom, operation.quote, found),
        valid_from=begins,
        until=holds_until(operation.expires, then, then if begins is None else begins, told),
        source=source_of(said),
        fact=goes_with.id if goes_with else None,
        apart=goes_with is not None and not matter.has(f"{goes_with.text} {goes_with.about}", text),
        slot=slot_of(text, operation.quote, said.own) if found.voice == "own" else None,
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


def _state(text: str, whom: str, quote: str, found: Evidence) -> State:
    told = found.voice == "pasted" or is_instruction(text) or is_instruction(whom)
    by_others = whom == USER and is_reported(quote, found.said.own)
    return "quarantined" if told or by_others else "current"
