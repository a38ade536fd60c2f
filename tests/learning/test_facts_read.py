"""What a model answers is read, and checked: operations, dates, likeness, whom it is about."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.learning.evidence import UserMessage
from proxy.learning.facts.claim import MAX_OPERATIONS, OPS, SCHEMA, parse_operations
from proxy.learning.facts.days import parse_day, valid_from, valid_until
from proxy.learning.facts.fact import USER, Fact, date_text, render_dates
from proxy.learning.facts.statements import (
    SimilarStatements,
    describes_user,
    gist,
    is_reported,
    is_statement,
    is_translated,
    mentions,
    other_subject,
    parse_subject,
    says_the_same,
    shares_word,
)
from proxy.recall.own_words import pasted_spans
from tests.support.learning.harness import DAY, MAY, Harness, answer, operation

ONE = operation(text="The user has a dog.", quote="my dog")
MIDNIGHT = MAY - MAY % DAY


# Operations


@pytest.mark.parametrize(
    "text",
    [
        answer(ONE),
        f"```json\n{answer(ONE)}\n```",
        f"Sure! Here it is:\n{answer(ONE)}\nI hope that helps {{}}.",
        f"<think>What about [this] or {{that: 1}}?</think>{answer(ONE)}",
        json.dumps([ONE]),
        json.dumps({"operations": [ONE, "x", {"op": "delete"}, {"text": "y"}, None]}),
        json.dumps({"thoughts": ["a"], "operations": [ONE]}, indent=2),
    ],
)
def test_operations_are_found_in_whatever_is_around_them(text: str) -> None:
    found = parse_operations(text)
    assert found is not None
    assert [(each.op, each.text, each.quote) for each in found] == [
        ("add", "The user has a dog.", "my dog")
    ]


@pytest.mark.parametrize("text", ["[]", '{"operations": []}', "Nothing: []", "```\n[]\n```"])
def test_nothing_to_note_is_an_answer(text: str) -> None:
    assert parse_operations(text) == ()


@pytest.mark.parametrize(
    "text", ["", "No.", "{", '{"operations": null}', '{"facts": []}', "[1, 2]", "[" * 5000]
)
def test_what_is_no_list_of_operations_is_no_answer(text: str) -> None:
    assert parse_operations(text) is None


def test_fields_of_wrong_types_are_as_if_they_were_not_there() -> None:
    wrong = operation(fact="2", text=7, about=None, message=True, quote=["x"], valid_from=2023)
    (found,) = parse_operations(answer(wrong)) or ()
    assert (found.fact, found.text, found.about, found.message) == (2, "", "", 0)
    assert (found.quote, found.valid_from) == ("", "")


def test_half_a_surrogate_pair_in_an_answer_is_replaced() -> None:
    halves = operation(text="A dog \ud83d.", quote="\ud83d dog", about="Rex \udc36")
    (found,) = parse_operations(answer(halves)) or ()
    assert (found.text, found.quote, found.about) == ("A dog \ufffd.", "\ufffd dog", "Rex \ufffd")


def test_an_answer_that_does_not_end_is_bounded() -> None:
    assert len(parse_operations(answer(*[ONE] * 1000)) or ()) == MAX_OPERATIONS


def test_the_schema_is_strict() -> None:
    text = json.dumps(SCHEMA)
    assert '"additionalProperties": false' in text and all(op in text for op in OPS)


# Dates


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("2023-05-07", "2023-05-07"),
        ("2023-05", "2023-05-01"),
        ("2023", "2023-01-01"),
        (" 2023-5-7T10:00Z", "2023-05-07"),
        ("1969-07-20", "1969-07-20"),
    ],
)
def test_a_date_is_read(text: str, date: str) -> None:
    time = parse_day(text)
    assert time is not None and date_text(time) == date


@pytest.mark.parametrize(
    "text",
    ["", "yesterday", "2023-02-30", "2023-13-01", "0001-01-01", "9999", "07/05/2023", "20235"],
)
def test_what_is_no_date_is_none(text: str) -> None:
    assert parse_day(text) is None


@pytest.mark.parametrize(
    ("claimed", "texts", "time"),
    [
        ("", "", None),
        ("nonsense", "", None),
        ("2023-05-08", "", None),
        ("2023-05-07", "", None),
        ("2023-05-07", "yesterday", MIDNIGHT - DAY),
        ("2023-05-01", "letzte Woche", MIDNIGHT - 7 * DAY),
        ("2023-04-03", "上个月", parse_day("2023-04-03")),
        ("2010", "", None),
        ("1999-01-01", "I am Ann, hello", None),
        ("1999-01-01", "yesterday, on 1 May", None),
        ("1999-01-01", "next year we move to 5 Mill Road", None),
        ("2010", "for 13 years", parse_day("2010")),
        ("2013", "for ten years", parse_day("2013")),
        ("2013", "a decade ago", parse_day("2013")),
        ("2003", "zwei Jahrzehnte lang", parse_day("2003")),
        ("2021", "for years I drove to Rome", None),
        ("2019", "seit vier Jahren", parse_day("2019")),
        ("2019", "pendant quatre années", parse_day("2019")),
        ("2020", "3年前", parse_day("2020")),
        ("2021-07", "two summers ago", parse_day("2021-07")),
        ("2019-07", "two summers ago", None),
        ("2021", "vor zwei Sommern", parse_day("2021")),
        ("2020-12", "hace tres inviernos", parse_day("2020-12")),
        ("2010", "seit 2010", parse_day("2010")),
        ("1999", "since '99", parse_day("1999")),
        ("2023-01", "since January", parse_day("2023-01")),
        ("2023-05-09", "tomorrow", MIDNIGHT + DAY),
        ("2024-01-01", "", None),
        ("2024-01-01", "I move to Rome in 2024.", parse_day("2024-01-01")),
        ("2023-08-05", "moves to Rome on 5 August", parse_day("2023-08-05")),
        ("2023-08-05", "moves to Rome on 6 August", None),
        ("2023-08", "moves to Rome in August", parse_day("2023-08-01")),
    ],
)
def test_since_when_it_holds_is_believed_only_if_somebody_told_it(
    claimed: str, texts: str, time: float | None
) -> None:
    assert valid_from(claimed, MAY, texts) == time


@pytest.mark.parametrize(
    ("claimed", "time"),
    [
        ("", None),
        ("2023-05-12", MIDNIGHT + 5 * DAY),
        ("2023-05-08", MIDNIGHT + DAY),
        ("2023-05-01", None),
        ("2023-05", parse_day("2023-06")),
        ("2023-12", parse_day("2024-01")),
        ("2023", parse_day("2024")),
        ("2022", None),
        ("2123", None),
    ],
)
def test_an_end_is_the_end_of_its_day(claimed: str, time: float | None) -> None:
    assert valid_until(claimed, MAY, MAY, "until next week") == time
    assert valid_until(claimed, MAY, MAY, "for now") is None


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({}, "noted 2023-05-08"),
        ({"valid_from": MAY - 900 * DAY}, "noted 2023-05-08"),
        (
            {"valid_from": MIDNIGHT - DAY, "known_since": True},
            "noted 2023-05-08; holds from 2023-05-07",
        ),
        ({"until": MIDNIGHT + 5 * DAY}, "noted 2023-05-08; holds to 2023-05-12"),
        (
            {"valid_from": MIDNIGHT, "known_since": True, "until": MIDNIGHT + 5 * DAY},
            "noted 2023-05-08; holds 2023-05-08 to 2023-05-12",
        ),
    ],
)
def test_what_is_not_known_of_a_time_is_not_shown(fields: dict[str, Any], shown: str) -> None:
    fact = Fact(id="f", text="x", **{"valid_from": MAY, "last_confirmed": MAY, **fields})
    assert render_dates(fact) == shown


# Likeness


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("The user lives in Berlin.", "User lives in Berlin", True),
        ("The user lives in Berlin.", "lived in BERLIN", True),
        ("The user lives in Berlin.", "The user lives in Bern.", False),
        ("The user has 2 cats.", "The user has 3 cats.", False),
        ("The user likes football.", "The user does not like football.", False),
        ("The user likes football.", "The user doesn't like football.", False),
        ("Ann lives in Rome.", "Ann works in Rome.", False),
        ("Has a dog called Rex.", "Has a cat called Rex.", False),
        ("用户住在北京。", "用户住在北京", True),
        ("用户住在北京。", "用户不住在北京。", False),
        ("用户住在北京。", "用户住在上海。", False),
        ("Der Nutzer wohnt in Köln.", "Nutzer wohnt in Köln", True),
        ("Er mag Fisch.", "Er mag keinen Fisch.", False),
        ("", "", False),
    ],
)
def test_what_says_the_same_is_told_from_what_does_not(one: str, other: str, same: bool) -> None:
    assert says_the_same(gist(one), gist(other)) is same


WORDS = st.lists(
    st.sampled_from(
        ["ash", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple", "oak", "pine"]
    )
)


@given(WORDS, st.lists(WORDS, max_size=12))
def test_what_says_the_same_is_found_among_many(one: list[str], others: list[list[str]]) -> None:
    text, known = " ".join(one), [" ".join(each) for each in others]
    same = [n for n, each in enumerate(known) if says_the_same(gist(text), gist(each))]
    assert SimilarStatements(known).same_as(text) == same


def test_a_statement_that_is_compared_stays_in_no_cache() -> None:
    text = " ".join(["The user", "hums."])
    before = sys.getrefcount(text)
    gist(text)
    assert sys.getrefcount(text) == before


def test_few_of_many_are_near() -> None:
    known = SimilarStatements(f"The user has a cat called Mio{n}" for n in range(1_000))
    assert known.near(gist("The user has a cat called Mio7")) == [7]


@pytest.mark.parametrize(
    ("text", "message", "other"),
    [
        ("The user lives in Berlin.", "I live in Berlin.", False),
        ("Lives in Berlin.", "I live in Berlin.", False),
        ("Wohnt in Köln.", "Ich wohne in Köln.", False),
        ("The user lives in Beijing.", "我住在北京。", True),
        ("用户住在北京。", "我住在北京。", False),
        ("用户喜欢Python。", "我喜欢用Python。", False),
        ("The user lives with their dog in Köln.", "Ich wohne mit dem Hund in Köln.", True),
        ("Likes Goethe.", "Ich mag Goethe und die Romantik.", False),
        ("123", "Ich wohne da", False),
    ],
)
def test_another_language_or_script_is_noticed(text: str, message: str, other: bool) -> None:
    assert is_translated(text, message, message) is other


@pytest.mark.parametrize(
    ("text", "message", "shared"),
    [
        ("The user lives in Berlin.", "I live in Berlin", True),
        ("The user is a painter.", "I love painting", True),
        ("The user is rich.", "I live in Berlin", False),
        ("用户住在北京", "我住在北京", True),
        ("用户很有钱", "我住在北京", False),
        ("", "anything", True),
    ],
)
def test_a_text_has_something_of_its_message(text: str, message: str, shared: bool) -> None:
    assert shares_word(text, message) is shared


# About whom


@pytest.mark.parametrize(
    ("claimed", "whom"),
    [
        ("user", USER),
        ("User", USER),
        ("The user", USER),
        ("", USER),
        ("用户", USER),
        ('"Jack"', "Jack"),
        ("Jack,\na friend", "Jack, a friend"),
        ("x" * 300, "x" * 100),
    ],
)
def test_whom_a_fact_is_about(claimed: str, whom: str) -> None:
    assert parse_subject(claimed) == whom


@pytest.mark.parametrize(
    ("quote", "whom"),
    [
        ("My friend Jack dislikes football", "My friend Jack"),
        ("and my older sister Anna moved to Rome", "my older sister Anna"),
        ("our neighbour has a dog", "our neighbour"),
        ("mein Bruder Tom mag keinen Fisch", "mein Bruder Tom"),
        ("Mi hermana vive en Madrid", "Mi hermana"),
        ("Mon ami Paul déteste le foot", "Mon ami Paul"),
        ("我的朋友小王不喜欢足球", "我的朋友小王不喜欢"),
        ("私の妹は東京に住んでいる", "私の妹"),
        ("My wife and I live in Rome", None),
        ("My brother gave me a bike", None),
        ("I like my friend Jack", None),
        ("My name is Kai", None),
        ("My job is dull", None),
        ("Jack dislikes football", None),
        ("My mother-in-law lives in Kiel", "My mother-in-law"),
        ("My children support the local club", "My children"),
        ("My bosses are strict", "My bosses"),
        ("My parents moved to Rome", "My parents"),
        ("My pa is ill", "My pa"),
        ("Meine Kolleginnen mögen Fisch", "Meine Kolleginnen"),
        ("Mein Sohn Hans-Peter mag Fisch", "Mein Sohn Hans-Peter"),
        ("Mis profesores viven aquí", "Mis profesores"),
        ("Minha irmãzinha mora em Lisboa", "Minha irmãzinha"),
        ("Мой братишка живёт в Туле", "Мой братишка"),
        ("我的朋友Michael不喜欢足球", "我的朋友"),
        ("我妈妈住在北京", "我妈妈住在北京"),
    ],
)
def test_a_sentence_that_begins_with_somebody_else(quote: str, whom: str | None) -> None:
    found = other_subject(quote)
    assert (found is None) is (whom is None)
    assert not whom or whom.startswith(found or "\0")


@pytest.mark.parametrize(
    "quote",
    [
        "My passport is Dutch now",
        "My parental leave ends in March",
        "My major is chemistry",
        "My password manager is open",
        "My master's is from Leeds",
        "My MA is in history",
        "My mother tongue is Frisian",
        "My Mother Tongue is Frisian",
        "My mother-tongue is Frisian",
        "My partner visa runs out in May",
        "My teacher training ends in June",
        "My doctor's appointment is on Friday",
        "My friendship with Ann is over",
        "My friend-group is small",
        "A passport is what is missing",
        "Meine Muttersprache ist Friesisch",
        "Mein Vaterland ist Belgien",
        "Meine Kindheit war schön",
        "Mein Kindle ist kaputt",
        "Meine Mutter-Kind-Kur beginnt im Mai",
        "Mi primavera favorita",
        "Mi noviazgo terminó",
        "Mi madre patria es España",
        "Mon maritime favori",
        "Ma mère patrie est la Belgique",
        "Mon chef-d'œuvre est fini",
        "La mia madrelingua è l'italiano",
        "Il mio capolavoro è finito",
        "Minha vizinhança fica em Lisboa",
        "Meu pais é Portugal",
        "Мой другой номер 111-22",
        "Мой мужской размер 52",
        "Мой соседний дом",
        "私の母国語は日本語です",
        "私の父の日の贈り物",
        "我的朋友圈很小",
        "我的母亲节礼物",
    ],
)
def test_what_only_begins_like_somebody_else_is_the_users_own(quote: str) -> None:
    assert other_subject(quote) is None


def test_a_text_names_whom_it_is_about() -> None:
    assert mentions("Jack dislikes football.", "My friend Jack")
    assert not mentions("The user dislikes football.", "My friend Jack")


@pytest.mark.parametrize(
    ("message", "reported"),
    [
        ("My friend Jill wrote: I live in York.", True),
        ("Look. My friend Jill wrote: hello all. I live in York.", True),
        ("Meine Freundin schrieb: I live in York.", True),
        ("My friend Jill wrote: hello all.\n\nI live in York.", False),
        ("My friend Jill wrote. I live in York.", False),
        ("About me: I live in York.", False),
        ("I live in York, my friend Jill wrote: hello all.", False),
        ("I live in York. My friend Jill wrote: hello all.", False),
    ],
)
def test_what_stands_behind_anothers_introduction_is_theirs(message: str, reported: bool) -> None:
    assert is_reported("i live in York", message) == reported


@pytest.mark.parametrize(
    ("quote", "whom", "reported"),
    [
        ("My friend Jill wrote: I am allergic to nuts.", "My friend Jill", True),
        ("My friend Jill wrote to me: I am allergic to nuts.", "My friend Jill", True),
        ("Meine Schwester Ida schrieb: Ich wohne in Ulm.", "Meine Schwester Ida", True),
        ("Jill wrote: I am allergic to nuts.", None, True),
        ("I am in York and my friend Jill wrote: come home.", None, False),
        ("My friend Jill and I say: no nuts.", None, False),
    ],
)
def test_who_speaks_behind_anothers_colon_is_not_the_user(
    quote: str, whom: str | None, reported: bool
) -> None:
    assert (other_subject(quote), is_reported(quote, quote)) == (whom, reported)


async def test_words_beside_a_picture_are_no_fact(harness: Harness) -> None:
    said = "[photo: a dog on a sofa] Look at this, so cute! This is our cat Mochi."
    await harness.say(said)
    beside, cat = "[photo] Look at this, so cute!", "This is our cat Mochi."
    harness.model.answers = [answer(*(operation(text=each, quote=each) for each in (beside, cat)))]
    await harness.learn()
    assert [fact.text for fact in await harness.facts()] == [cat]


async def test_what_a_friend_wrote_is_no_fact_of_the_user_until_it_is_released(
    harness: Harness,
) -> None:
    await harness.say("My friend Jill wrote: I am allergic to nuts.")
    text = "The user is allergic to nuts."
    harness.model.answers = [answer(operation(text=text, quote="I am allergic to nuts"))]
    await harness.learn()
    assert [fact.state for fact in await harness.facts()] == ["quarantined"]


async def test_questions_and_thanks_that_a_small_model_notes_are_no_facts(
    harness: Harness,
) -> None:
    said = ["I live in Berlin.", "Should I dye my hair?", "Thanks a lot, that's really helpful!"]
    await harness.say(" ".join(said))
    harness.model.answers = [answer(*(operation(text=each, quote=each) for each in said))]
    await harness.learn()
    assert [fact.text for fact in await harness.facts()] == said[:1]


@pytest.mark.parametrize("text", ["The user is proud of Ann.", "Dana is called Di.", "用户很好"])
def test_a_short_fact_says_something(text: str) -> None:
    assert is_statement(text)


# Whether there was something to find


@pytest.mark.parametrize(
    "text",
    [
        "I live in Berlin.",
        "Hi! My dog is called Rex. What should he eat?",
        "I’m a teacher",
        "Ich wohne in Köln.",
        "Me llamo Kai y vivo en Madrid.",
        "J'habite à Lyon.",
        "Lavoro come medico.",
        "Moro em Lisboa.",
        "Я живу в Москве.",
        "我住在北京。",
        "私の名前は健です。",
        "저는 서울에 살고 있어요.",
    ],
)
def test_a_clear_statement_is_noticed(text: str) -> None:
    assert describes_user([UserMessage("m", "e", 1, text, 0.0, pasted_spans(text))])


@pytest.mark.parametrize(
    "text",
    [
        "What is the capital of France?",
        "Do I live in Berlin?",
        "I have a question about Python.",
        "Can you help me?",
        "> I live in Berlin.",
        "Fix this: my code is broken",
        "法国的首都是哪里？",
        "",
    ],
)
def test_a_message_without_one_is_not_asked_about_twice(text: str) -> None:
    assert not describes_user([UserMessage("m", "e", 1, text, 0.0, pasted_spans(text))])
