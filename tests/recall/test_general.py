"""What anybody might ask recalls a few passages of a person's talk, unless it means them."""

from __future__ import annotations

import pytest

from proxy.recall.query.question import read_question
from proxy.recall.ranking.select import FEW_TOKENS, allotted_tokens
from tests.support.store.remembering import NOW, Person, Said, person

TALK = (
    ("Work was long today, my boss moved the meeting to Monday again.", "That sounds tiring."),
    (
        "I want to write a letter to my aunt, she is ten years older than dad.",
        "Start with a memory.",
    ),
    ("My morning walk at work gives me ideas for names.", "Keep a list of the names."),
    ("We had a quick talk at work about the new team, all good friends.", "Good for morale!"),
    (
        "The cat sleeps on my work desk every morning, she is five years old.",
        "Old cats love desks.",
    ),
    ("At night I read, in the morning I go to work by tram, five stops.", "A calm way to work."),
    ("Next week the plumber comes, the boiler works only at night.", "Ask him about the pump."),
    ("I cook eggs for the kids when I work late, ten minutes each.", "Quick and good."),
    ("An email from school: no school on Friday, the kids are glad.", "A long weekend, then!"),
    ("I write a diary every night, three sentences about work and the day.", "A good habit."),
    ("My sister works as a junior nurse, her first year of night work.", "Night work is hard."),
    ("The leaves in the yard took two hours of work this autumn.", "Leaves make good compost."),
    ("Dad told a joke at dinner, a good one, ten out of ten.", "What was the joke?"),
    ("I go to Rome next year, it is time to see the difference to Naples.", "Rome is worth it."),
    ("Give the dog five minutes, then he works out every lock.", "A clever dog."),
)
TASKS = (
    "Write me a haiku about autumn leaves.",
    "Explain photosynthesis to a ten year old",
    "Translate 'good morning' into Japanese",
    "Fix the grammar: he go to school every days",
    "Give me a name for a cat café",
    "Write a SQL query that finds duplicate emails",
    "Draft a polite email declining a meeting invitation",
    "How long do I boil an egg?",
    "How do I reverse a list in Python?",
    "What is the difference between TCP and UDP?",
    "how do magnets work",
    "Why is the sky blue?",
    "Proofread: I has two apples",
    "what time is it in Tokyo",
    "Please summarise the plot of Hamlet in three sentences",
)


THINGS = (
    *("boiler", "garden", "violin", "bicycle", "kitchen", "balcony", "choir", "exam", "passport"),
    *("tent", "canoe", "oven", "sofa", "lamp", "piano", "cellar", "fence", "roof", "camera"),
    "printer",
)
WEEKS = (
    "The {0} took me five hours of work this year, and {1} is next.",
    "Good to know that the {0} works; the old {1} was different, ten years old.",
    "I go to write the list for the {0} in the morning, the meeting about the {1} is at night.",
)


def somebody() -> Person:
    """Who talked about their days, in 45 sessions."""
    told = [WEEKS[n % 3].format(thing, THINGS[n - 7]) for n, thing in enumerate(THINGS)]
    more = [WEEKS[(n + 1) % 3].format(thing, THINGS[n - 3]) for n, thing in enumerate(THINGS)]
    exchanges = [*TALK, *((text, f"The {text.split()[-2]}, I see.") for text in told + more)]
    return Person(
        [
            Said(text, role, session)
            for session, texts in enumerate(exchanges, 1)
            for role, text in zip(("user", "assistant"), texts, strict=True)
        ]
    )


SOMEBODY = somebody()


def tokens(text: str) -> int:
    return sum(len(said) // 4 for said in SOMEBODY.recall(text, budget=1500))


@pytest.mark.parametrize("text", TASKS)
def test_what_has_nothing_to_do_with_a_person_recalls_a_few_passages(text: str) -> None:
    assert tokens(text) < FEW_TOKENS


def test_what_a_person_asks_of_their_own_gets_all_the_room() -> None:
    assert tokens("Why did my work take so long in the morning?") > 2 * FEW_TOKENS


def test_all_that_is_known_of_somebody_gets_all_the_room() -> None:
    told = SOMEBODY.matches(read_question("Tell me everything about the plumber", (), NOW))
    assert allotted_tokens(told, 1500) > 3 * FEW_TOKENS


def test_a_general_question_whose_words_were_said_gets_all_the_room() -> None:
    asked = read_question("Write about the boiler and the old piano", (), NOW)
    assert allotted_tokens(SOMEBODY.matches(asked), 1500) > FEW_TOKENS


@pytest.mark.parametrize(
    "text", ["Give me three synonyms for glad", "Please give me a synonym", "Gib mir ein Synonym"]
)
def test_the_verb_of_what_anybody_might_ask_finds_nothing(text: str) -> None:
    said = Said("The doctor gave me an ointment; then I wrote it down to explain it.")
    german = Said("Der Arzt hat mir eine Salbe gegeben.", session=2)
    assert person(said, german).recall(text) == []


@pytest.mark.parametrize("text", ["Explain ", "Write:", "帮我写"])
def test_a_verb_alone_is_what_is_asked(text: str) -> None:
    assert read_question(text, (), NOW).words


def test_what_stands_beside_the_verb_is_asked_without_spaces_too() -> None:
    asked = read_question("写一个带超时的 HTTP 例子", (), NOW)
    known = {term for word in asked.words for term in word.terms}
    assert known & {term for word in read_question("超时", (), NOW).words for term in word.terms}


def test_the_surer_it_is_that_something_is_meant_the_more_room_there_is() -> None:
    matches = SOMEBODY.matches(read_question("how do magnets work", (), NOW))
    covers = (0, 0.5, 0.6, 0.7, 0.8)
    surer = [matches.best_cover._replace(strict=cover) for cover in covers]
    given = [allotted_tokens(matches._replace(best_cover=each), 1500) for each in surer]
    assert given == sorted(given)
    assert (given[0], given[1], given[-1]) == (FEW_TOKENS, FEW_TOKENS, 1500)
    assert allotted_tokens(matches, 100) == 100


@pytest.mark.parametrize(
    ("text", "general"),
    [
        ("How do I clean a boiler?", True),
        ("How do I clean my boiler?", False),
        ("Can you write a poem about the sea?", True),
        ("Write a mail to our landlord.", False),
        ("Which poem did she write?", False),
        ("Give me a quick dinner idea", True),
        ("Give me the recipe", False),
        ("Explain what you suggested", False),
        ("Proofread: I has two apples", True),
        ("Fix this:\nmy dog are old", True),
        ("Translate 'I love my dog' into French", True),
        ("Translate what I wrote: the dog is old", False),
        ("Why is the sky blue?", True),
        ("Why is it blue?", False),
        ("Why do I cough?", False),
        ("Write me a short bio: use my job and my beagle", False),
        ("Why are some of the floor pieces gone?", False),
        ("Schreib mir ein Gedicht", True),
        ("Schreib meiner Tante", False),
        ("¿Cómo se escribe una carta?", True),
        ("¿Cómo se llama el perro?", False),
        ("Écris un poème", True),
        ("Scrivimi una poesia", True),
        ("Escreve um poema", True),
        ("帮我写一首诗", True),
        ("帮我写一首我喜欢的诗", False),
    ],
)
def test_what_anybody_might_ask_is_told_by_how_it_begins(text: str, general: bool) -> None:
    assert read_question(text, (), NOW).is_general == general
