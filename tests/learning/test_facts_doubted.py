"""What a model gives away, checked against what was said."""

from __future__ import annotations

from proxy.learning.facts.statements import Matter
from tests.support.learning.harness import KAI, Harness, answer, operation


async def test_a_note_that_nothing_was_said_of_stays_with_a_mark(harness: Harness) -> None:
    """A model that takes all notes back for whatever it read, in its words or the user's."""
    known = ("I am allergic to celery.", "I drive a red van.")
    await harness.say(*known)
    harness.model.answers = [
        answer(*(operation(text=text, quote=text, message=n) for n, text in enumerate(known, 1)))
    ]
    await harness.learn()
    await harness.say("Good evening, I sold that van yesterday.")
    wrong = {"quote": "Good evening, I sold", "valid_from": "1999-01-01", "expires": "1999-01-02"}
    harness.model.answers = [
        answer(
            *(
                operation("supersede", fact=n, text="The user lives on the moon.", **wrong)
                for n in (1, 2)
            )
        )
    ]
    await harness.learn()
    facts = {fact.text: fact for fact in await harness.facts()}
    allergic, van, news = (facts[text] for text in (*known, wrong["quote"]))
    assert (allergic.state, allergic.doubted_by) == ("current", news.id)
    assert (van.state, van.superseded_by) == ("superseded", news.id)
    assert not news.known_since and news.until is None
    await harness.forgetting.forget(KAI, "s", "ex_3", False)
    assert {(fact.state, fact.doubted_by) for fact in await harness.facts()} == {("current", None)}


def test_a_word_of_most_notes_or_another_language_tells_nothing() -> None:
    notes = [f"Dana has a {thing}." for thing in ("boat", "harp", "kiln", "goat", "sled")]
    matter = Matter("I am Dana and I sold the harp", notes)
    assert [matter.has(note, "Dana is rich.") for note in notes] == [False, True, *[False] * 3]
    assert matter.has("Dana wohnt mit dem Hund in der Stadt.", "Dana is rich.")
