"""What people tell of themselves is found by who asks for it, in whatever words and language."""

from __future__ import annotations

import pytest

from proxy.recall.query.question import EMPTY_QUESTION, read_question
from proxy.recall.query.self_statements import asked_trait_terms, told_trait_terms
from proxy.recall.query.words import tokenize
from tests.support.store.remembering import FILLER, NOW, Said, person

TALKS: dict[str, tuple[tuple[str, ...], tuple[tuple[str, ...], ...], str]] = {
    "en": (
        ("My name is Lukas.", "I live in Graz.", "I work as a carpenter.", "I'm 34."),
        (
            ("What am I called?", "who am i", "Do you remember my name?"),
            ("Where am I from?", "Which city do I live in?", "What’s my address?"),
            ("What's my job?", "What do I do for a living?"),
            ("How old am I?", "When is my birthday?"),
        ),
        "What do you know about me?",
    ),
    "de": (
        ("Mein Name ist Lukas.", "Ich wohne in Graz.", "Ich bin Tischler.", "Ich werde morgen 34."),
        (
            ("Wie heiße ich?", "Weißt du noch, wie ich heiße?"),
            ("Wo lebe ich?", "Woher komme ich?"),
            ("Was ist mein Beruf?", "Was mache ich beruflich?"),
            ("Wie alt bin ich?", "Wann habe ich Geburtstag?"),
        ),
        "Was weißt du über mich?",
    ),
    "es": (
        ("Me llamo Lucas.", "Vivo en Graz.", "Trabajo de carpintero.", "Tengo 34 años."),
        (
            ("¿Cuál es mi nombre?", "¿Quién soy?"),
            ("¿Dónde resido?", "¿En qué ciudad vivo?"),
            ("¿A qué me dedico?", "¿Cuál es mi profesión?"),
            ("¿Qué edad tengo?", "¿Cuándo es mi cumpleaños?"),
        ),
        "¿Qué sabes de mí?",
    ),
    "fr": (
        ("Je m'appelle Lucas.", "J'habite à Graz.", "Je suis menuisier.", "J'ai 34 ans."),
        (
            ("Quel est mon nom ?", "Qui suis-je ?"),
            ("Où est-ce que je vis ?", "Quelle est mon adresse ?"),
            ("Quel est mon métier ?", "Qu'est-ce que je fais dans la vie ?"),
            ("Quel âge j'ai ?", "C'est quand mon anniversaire ?"),
        ),
        "Que sais-tu de moi ?",
    ),
    "it": (
        ("Mi chiamo Luca.", "Abito a Graz.", "Faccio il falegname.", "Ho 34 anni."),
        (
            ("Qual è il mio nome?",),
            ("Dove vivo?",),
            ("Che lavoro faccio?",),
            ("Qual è la mia età?",),
        ),
        "Cosa sai di me?",
    ),
    "pt": (
        ("Me chamo Lucas.", "Moro em Graz.", "Trabalho como carpinteiro.", "Tenho 34 anos."),
        (
            ("Qual é o meu nome?",),
            ("Onde eu vivo?",),
            ("Qual é a minha profissão?",),
            ("Que idade eu tenho?",),
        ),
        "O que você sabe sobre mim?",
    ),
    "nl": (
        ("Ik heet Lukas.", "Ik woon in Graz.", "Ik werk als timmerman.", "Ik ben 34 jaar."),
        (
            ("Wat is mijn naam?",),
            ("Wat is mijn adres?",),
            ("Wat is mijn beroep?",),
            ("Wanneer ben ik jarig?",),
        ),
        "Wat weet je over mij?",
    ),
    "ru": (
        ("Моё имя Лукас.", "Я живу в Граце.", "Я по профессии столяр.", "Мне 34."),
        (("Как меня зовут?",), ("Откуда я?",), ("Кем я работаю?",), ("Сколько мне лет?",)),
        "Что ты обо мне знаешь?",
    ),
    "ar": (
        ("اسمي خالد.", "أسكن في جدة.", "أعمل نجارا.", "عمري 34 سنة."),
        (("من أنا؟", "ما اسمي؟"), ("أين أعيش؟",), ("ما هي مهنتي؟",), ("متى ولدت؟",)),
        "ماذا تعرف عني؟",
    ),
    "zh": (
        ("我叫李明", "我住在格拉茨", "我是一名木匠", "今年34岁"),
        (
            ("我的名字是什么？", "你知道我的名字吗？"),
            ("我家在哪里？",),
            ("我的职业是什么？",),
            ("我多大了？",),
        ),
        "你知道我什么？",
    ),
    "ja": (
        (
            "ルーカスと申します。",
            "グラーツに住んでいます。",
            "大工として働いています。",
            "34歳です。",
        ),
        (
            ("私の名前は何ですか。",),
            ("私の家はどこですか。",),
            ("私の仕事は何ですか。",),
            ("私は何歳ですか。",),
        ),
        "私について何を知っていますか。",
    ),
    "ko": (
        ("제 이름은 민수예요.", "저는 그라츠에 살아요.", "공방에서 일해요.", "34살이에요."),
        (
            ("제가 누구예요?",),
            ("제 집은 어디예요?",),
            ("제 직업이 뭐예요?",),
            ("제 나이가 몇이에요?",),
        ),
        "나에 대해 뭐 알아?",
    ),
}
"""By language what somebody tells of name, home, work and age, each on a day of its own; questions
for each of them; and one for all."""

ASKED = [
    (code, said, question)
    for code, (told_, asks, _) in TALKS.items()
    for said, questions in zip(told_, asks, strict=True)
    for question in questions
]


def among_others(*texts: str) -> list[str]:
    """What is recalled for the last of some texts, where the others were said in their sessions."""
    said = (Said(text, session=number) for number, text in enumerate(texts[:-1], 1))
    return person(*FILLER, *said).recall(texts[-1])


@pytest.mark.parametrize(("code", "said", "question"), ASKED)
def test_a_question_about_oneself_finds_what_was_told(code: str, said: str, question: str) -> None:
    assert said in among_others(*TALKS[code][0], question)[:2]


@pytest.mark.parametrize("code", TALKS)
def test_who_asks_for_everything_gets_all_that_was_told(code: str) -> None:
    said, _, question = TALKS[code]
    assert set(said) <= set(among_others(*said, question))


@pytest.mark.parametrize("question", ["Wie heiße ich?", "¿Cuál es mi nombre?", "我叫什么？"])
def test_it_was_told_in_another_language(question: str) -> None:
    assert among_others("My name is Lukas.", question) == ["My name is Lukas."]


def test_a_question_tells_nothing_of_the_one_who_asks() -> None:
    assert [each for *_, each in ASKED if told_trait_terms(tokenize(each))] == []


@pytest.mark.parametrize(
    "text",
    [
        "What is my daughter's name?", "Where is my book?", "What do you know about my dog?",
        "How old is my car?", "Wie heißt meine Katze?", "Was weißt du über Graz?",
        "¿Qué sabes de mi hija?", "我的狗叫什么？", "My name is Lukas.", "I live in Graz.",
    ],
)  # fmt: skip
def test_what_is_asked_of_others_is_not_of_oneself(text: str) -> None:
    assert asked_trait_terms(tokenize(text)) == ()


@pytest.mark.parametrize(
    "text", ["I like soup.", "Fix the bug in my code.", "妈妈叫我回家", "He is 34."]
)
def test_other_talk_tells_nothing_of_oneself(text: str) -> None:
    assert told_trait_terms(tokenize(text)) == ()


def test_what_the_assistant_says_of_itself_is_not_the_users() -> None:
    other = Said("My name is Ada and I live in a cloud.", "assistant")
    assert person(*FILLER, other).recall("Who am I?") == []


def test_a_question_of_function_words_alone_asks_for_something() -> None:
    assert read_question("Who am I?", (), NOW) != EMPTY_QUESTION
