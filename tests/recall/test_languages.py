"""What is said in a language is found by a question in it, inflected or not."""

from __future__ import annotations

import pytest

from proxy.recall.query.words import guess_language, plausible_languages, words
from tests.support.store.remembering import Said, person

CASES = [
    pytest.param(
        "My sister adopted two kittens last winter.",
        "When did I mention adopting a kitten?",
        id="english",
    ),
    pytest.param(
        "Ich habe mir gestern ein neues Fahrrad gekauft, weil das alte kaputt war.",
        "Welche Fahrräder habe ich mir angesehen?",
        id="german",
    ),
    pytest.param(
        "Mi hermana trabaja como enfermera en el hospital de Sevilla.",
        "¿Dónde trabajaba mi hermana?",
        id="spanish",
    ),
    pytest.param(
        "Nous avons planté des tomates et des courgettes dans le jardin.",
        "Qu'est-ce que j'ai planté au jardin ?",
        id="french",
    ),
    pytest.param("أختي تعمل طبيبة في مستشفى كبير في القاهرة", "أين تعمل أختي؟", id="arabic"),
    pytest.param("我上个月在杭州买了一辆自行车。", "我的自行车是在哪里买的？", id="chinese"),
    pytest.param(
        "来月から大阪の水族館で働くことになりました。", "水族館の仕事はどこですか？", id="japanese"
    ),
    pytest.param("지난주에 부산에서 기타를 샀어요.", "기타는 어디에서 샀지?", id="korean"),
    pytest.param("Моя сестра работает врачом в Казани.", "Где работала моя сестра?", id="russian"),
    pytest.param("मेरी बहन दिल्ली में डॉक्टर है।", "मेरी बहन कहाँ डॉक्टर है?", id="hindi"),
    pytest.param("พี่สาวของฉันทำงานที่โรงพยาบาล", "พี่สาวทำงานที่ไหน", id="thai"),
]


@pytest.mark.parametrize(("said", "asked"), CASES)
def test_a_message_is_found_in_its_language(said: str, asked: str) -> None:
    assert person(Said(said)).recall(asked)[0] == said


def test_a_name_in_another_script_is_found_in_a_mixed_question() -> None:
    said = "我昨天把 Kubernetes 集群升级到了新版本。"
    assert person(Said(said)).recall("Which Kubernetes upgrade did I do?")[0] == said


def test_an_english_word_in_a_german_message_is_found() -> None:
    said = "Ich habe das Deployment heute verschoben, weil die Pipeline nicht läuft."
    assert person(Said(said)).recall("Where are my deployments?")[0] == said


def test_a_question_without_function_words_is_stemmed_in_all_plausible_languages() -> None:
    said = "Ich habe mir gestern zwei neue Wanderschuhe gekauft, und sie sind sehr bequem."
    assert plausible_languages(["wanderschuhen"]) == ()
    assert person(Said(said)).recall("Wanderschuhen?")[0] == said


def test_compounds_and_derived_words_are_found_by_their_beginning() -> None:
    said = "Die Fahrradtour war lang, aber schön."
    assert person(Said(said)).recall("Wie war es mit dem Fahrrad?")[0] == said
    said = "The photographer charged us four hundred euros."
    assert person(Said(said)).recall("And the photography?")[0] == said


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("I went to the market and it was closed", "english"),
        ("Ich war auf dem Markt und er war geschlossen", "german"),
        ("Fui al mercado pero no había nada de lo que quería", "spanish"),
        ("今日は市場に行きました", "japanese"),
        ("我今天去了市场", "chinese"),
        ("ذهبت إلى السوق في الصباح", "arabic"),
        ("42", ""),
    ],
)
def test_the_language_is_guessed_from_small_words_and_script(text: str, language: str) -> None:
    assert guess_language([word.text for word in words(text)]) == language


def test_width_case_and_arabic_points_do_not_matter() -> None:
    said = "The ＷＩＦＩ password is on the fridge."
    assert person(Said(said)).recall("wifi password?")[0] == said
    said = "الكِتابُ على الطاولة"
    assert person(Said(said)).recall("أين الكتاب؟")[0] == said


def test_digit_groups_are_one_number() -> None:
    said = "The kitchen came to $12,500 in the end."
    assert person(Said(said)).recall("12500 dollars?")[0] == said
