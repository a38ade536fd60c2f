"""What a model is asked about facts: short and plain, for small models too.  Pure."""

from __future__ import annotations

from collections.abc import Sequence

from proxy.learning.fact import USER, Fact
from proxy.learning.fact_dates import date_text
from proxy.learning.lesson import Said, headed

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
