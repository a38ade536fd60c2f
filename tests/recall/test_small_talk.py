"""Thanks, greetings, assent and laughter ask for nothing; a question made of plain words does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.recall.query.question import read_question
from proxy.recall.query.small_talk import POLITE, SMALL_TALK, is_filler
from tests.support.store.remembering import NOW

BEFORE = ("Which plants survive a dry balcony?", "Sedum and lavender.")

QUIET = (
    "Thanks, Anna! 😊", "Good night, Peter 🌙", "Anna, thank you!", "Caroline: Thanks, Mel!",
    "Thanks again, Dr. Smith!", "Thank you, Claude", "Hi Anna", "You're the best", "thaaanks!!!",
    "hahahaha that's so funny", "lol 😂", "sooo good", "yesss", "10/10", "OK 👌", "How nice!",
    "That's all for today, thanks!", "See you tomorrow!", "Have a nice weekend!", "got it, thanks",
    "Hello, how are you?", "How are you today?", "How's it going?", "I really appreciate it",
    "Vielen Dank, gute Nacht!", "Alles klar, super", "Gute Nacht, Reinhard!",
    "Danke für die Hilfe",
    "Gute Nacht und bis morgen", "Das war's für heute, danke!", "Wie geht's?",
    "Schönes Wochenende!",
    "Muchas gracias, Elena 🙏", "¡Buenas noches!", "hasta mañana", "jajaja", "¿Qué tal?",
    "Merci beaucoup !", "Bonne nuit, à demain", "super, merci Paul", "Grazie mille!",
    "Perfetto, grazie Luca", "muito obrigada pela ajuda", "kkkk", "Bedankt en welterusten",
    "Tack så mycket!", "Dziękuję bardzo!", "iyi geceler", "Terima kasih banyak",
    "Спокойной ночи, Аня!", "хахаха", "تصبح على خير", "مساء الخير يا أحمد", "ههههه",
    "बहुत धन्यवाद",
    "哈哈，谢谢你", "谢谢你，小明！", "非常感谢你的帮助", "晚安，明天见", "谢谢，王老师！",
    "你好吗？",
    "ありがとうございます", "ありがとう！助かりました", "田中さん、ありがとうございます",
    "なるほど、そうなんですね", "おやすみなさい", "ㅋㅋㅋㅋ 감사합니다", "잘 자요", "ขอบคุณมากครับ",
)  # fmt: skip

ASKING = (
    "When do I start work?", "What do I take at night?", "what do I love",
    "Thanks. What about Anna?",
    "and last week?", "what did I do yesterday?", "What did we plan for tomorrow?", "Anna?",
    "Anna",
    "Super, Berlin", "Good morning routine ideas", "continue with the budget",
    "hello world in Rust",
    "Danke, jetzt der Mietvertrag", "Wer ist Anna?", "Gracias, ¿y la caldera?",
    "谢谢，那小明呢？", "小明", "我的狗叫什么", "昨天呢？", "田中さんの旦那さん",
    "ありがとう、次は水族館", "안녕, 기타는?",
)  # fmt: skip


@pytest.mark.parametrize("text", QUIET)
def test_small_talk_asks_for_nothing_in_any_language(text: str) -> None:
    assert read_question(text, BEFORE, NOW).is_empty


@pytest.mark.parametrize("text", ASKING)
def test_what_asks_in_plain_words_asks(text: str) -> None:
    assert not read_question(text, (), NOW).is_empty


@given(st.lists(st.sampled_from(sorted(POLITE)), min_size=1, max_size=4).map(" ".join))
def test_politeness_in_any_order_asks_for_nothing(text: str) -> None:
    assert read_question(f"{text}!", BEFORE, NOW).is_empty


@given(st.lists(st.sampled_from(sorted(SMALL_TALK)), max_size=6).map(" ".join))
def test_one_word_of_substance_is_enough_to_ask(text: str) -> None:
    assert not read_question(f"{text} kubernetes", (), NOW).is_empty


FILLER = (
    "Thanks a lot, that means so much to me!", "Wow, that's great news! Congrats, Ann!", "Hello.",
    "Caroline: Hey Mel, great to see you!", "Das freut mich sehr, Anna!", "Herzlichen Glückwunsch!",
    "¡Enhorabuena! Me alegro mucho.", "Félicitations, bravo !", "Complimenti, bravissimo!",
    "Parabéns, que incrível!", "Поздравляю, молодец!", "恭喜你！加油！", "おめでとう！すごい！",
    "축하해요!",
)  # fmt: skip

TELLING = (
    "Yes, in Paris.", "I love Berlin.", "Congrats on the new job!", "How are you?", "Thirty-four.",
    "Danke, wir nehmen den Zug.", "太好了，我们去了北京。", "おめでとう！京都で会いましょう。",
    "Wow, I adopted a dog!", "¡Enhorabuena por la casa!",
)  # fmt: skip


@pytest.mark.parametrize("text", FILLER)
def test_politeness_is_nothing_to_recall(text: str) -> None:
    assert is_filler(text)


@pytest.mark.parametrize("text", TELLING)
def test_what_tells_something_is(text: str) -> None:
    assert not is_filler(text)


def test_time_grows_with_length_alone() -> None:
    assert not is_filler("Wow! " * 100_000)
