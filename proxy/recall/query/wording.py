"""How the wording of a message tells what it asks for, beside its topic: patterns.  Pure."""

from __future__ import annotations

from proxy.recall.lexicon.cues import Cue
from proxy.recall.lexicon.loader import any_of, told

HOW_ARE_YOU = Cue(any_of(lambda each: each.small_talk.how_are_you))
ASKING = Cue(told(lambda each: each.small_talk.asking))
USER = Cue(told(lambda each: each.question.about_user))
ASSISTANT = Cue(told(lambda each: each.question.about_assistant))
WHEN = Cue(told(lambda each: each.question.when))
ORDERS = Cue(told(lambda each: each.question.orders))
LISTS = Cue(told(lambda each: each.question.lists))
GENERAL = Cue(
    rf"^\W*(?:{any_of(lambda each: each.own_words.please)}\W*)*"
    f"{told(lambda each: each.question.general)}"
)
OWN = Cue(told(lambda each: each.facts.own))
POINTS_BACK = Cue(told(lambda each: each.question.points_back))

CUES = (HOW_ARE_YOU, ASKING, USER, ASSISTANT, WHEN, ORDERS, LISTS, GENERAL, OWN, POINTS_BACK)
