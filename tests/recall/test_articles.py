"""Articles that are written together with their words: an Arabic word is found with and without
its own, and with what stands before that."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.recall.lexicon.folding import fold
from proxy.recall.lexicon.stop_words import STOP_WORDS
from proxy.recall.query.question import read_question
from proxy.recall.query.stemming import stem, stems
from proxy.recall.query.words import analyse
from proxy.recall.ranking.packing import term_of
from tests.support.store.remembering import NOW, Said, person

SAID = (
    ("انتقلنا إلى شقة جديدة والإيجار 400 دينار في الشهر.", "كم الإيجار؟"),
    ("الدراسة صعبة هذه السنة والامتحان يوم الأحد.", "متى الامتحان؟"),
    ("وضعت المحفظة في الدرج والمفتاح تحت السجادة.", "أين المفتاح؟"),
    ("الممرضة لطيفة والطبيب يدعى حسن.", "ما اسم الطبيب؟"),
    ("العمل ممتع والراتب 900 دينار.", "كم الراتب؟"),
    ("اشترينا بيتا جديدا والمدرسة قريبة جدا في شارع النيل.", "أين المدرسة؟"),
    ("تركت الكلب عند أمي والقطة عند جارتنا سلمى.", "أين القطة؟"),
    ("عندي قطة اسمها لولو.", "ما اسم القطة؟"),
    ("اسم القطة لولو.", "هل عندي قطة؟"),
    ("حجزت لنا في فندق صغير قرب البحر.", "أين الفندق؟"),
    ("تأخرنا عن الموعد، فالقطار لم يصل.", "ماذا حدث مع القطار؟"),
    ("ذهبنا إلى العقبة بالسيارة لأن الطائرة غالية.", "هل عندنا سيارة؟"),
    ("دفعت ثلاثين دينارا للكهربائي قبل يومين.", "كم أخذ الكهربائي؟"),
    ("يعمل أخي كالطبيب في القرية كلها.", "من هو الطبيب في القرية؟"),
    ("نسافر مع الأولاد بالطائرة وبالقطار أيضا.", "متى القطار؟"),
    ("هذه هدية للجدة وللمعلمة الجديدة.", "ماذا اشتريت للمعلمة؟"),
    ("بعت الدراجات والسيارات القديمة كلها.", "أين السيارة القديمة؟"),
    ("الأب في البيت والأم في السوق.", "أين الأم؟"),
)
"""What somebody said, and a question that it answers."""


@pytest.mark.parametrize(("said", "asked"), SAID)
def test_a_word_is_found_whatever_stands_before_its_article(said: str, asked: str) -> None:
    others = [Said(text, session=2 + n) for n, (text, _) in enumerate(SAID) if text != said]
    assert said in person(Said(said), *others).recall(asked)[:3]


@pytest.mark.parametrize(
    "prefix", ["", "ال", "وال", "فال", "بال", "كال", "لل", "وبال", "ولل", "فلل"]
)
@pytest.mark.parametrize("word", ["إيجار", "بيت", "قطة", "مدرسة", "كتاب", "لغة", "فندق"])
def test_a_word_without_article_and_one_with_any_find_each_other(prefix: str, word: str) -> None:
    word, prefixed = fold(word), fold(prefix + word)
    assert stem(prefixed, "arabic") in stems(word, "arabic")
    assert stem(word, "arabic") in stems(prefixed, "arabic")


@pytest.mark.parametrize("asked", ["إيجار", "الإيجار", "والإيجار"])
@pytest.mark.parametrize("kept", ["ايجار", "والايجار", "والإيجار"])
def test_what_older_indexes_have_of_a_word_is_looked_for_too(asked: str, kept: str) -> None:
    (word,) = [each for each in read_question(f"كم {asked}؟", (), NOW).words if each.text]
    assert term_of(kept) in word.terms


@pytest.mark.parametrize("word", ["والدي", "والدها", "والدتك", "والديه", "والده"])
def test_parents_do_not_begin_with_an_article(word: str) -> None:
    assert stem(word, "arabic")[:4] == "والد"


def test_a_function_word_behind_and_is_one_too() -> None:
    assert analyse("وهو في البيت وليس في المدرسة", NOW).length == 2
    assert {"وفي", "ومن", "في"} <= STOP_WORDS["arabic"]
    assert "واز" not in STOP_WORDS["persian"]


@given(st.text(alphabet="والبکكلفیيمدرس", min_size=1, max_size=9), st.sampled_from(["persian", ""]))
def test_languages_that_share_the_script_keep_their_words(word: str, language: str) -> None:
    assert stems(word, language) == (stem(word, language),)


def test_what_only_shares_the_article_is_not_found() -> None:
    assert person(Said("الشقة صغيرة والإيجار مرتفع.")).recall("متى الامتحان؟") == []
