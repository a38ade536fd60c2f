"""What was said later against what was said before, told where that is sure."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from proxy.recall.notes.notes import with_notes
from proxy.recall.notes.slots import MAX_MESSAGE, replacing_values, slot_values
from proxy.recall.query.words import TokenizedText
from proxy.recall.ranking.packing import FILLS_SLOT
from proxy.recall.results import RecallHit

AGAINST = [
    ("My dog is called Rex.", "My dog is called Bruno.", "Bruno"),
    ("By the way, my cat's name is Tom and she is old.", "Actually, my cat is named Ada.", "Ada"),
    ("My boss is Anna.", "My new boss is Marcus.", "Marcus"),
    ("My boss is called Anna.", "My new boss is Marcus.", "Marcus"),
    ("Mi jefe es Pedro.", "Mi nueva jefa es Ana.", "Ana"),
    ("Mi jefe se llama Pedro.", "Ahora mi jefa es Ana.", "Ana"),
    ("Mi doctora es Eva.", "Mi nuevo doctor se llama Luis.", "Luis"),
    ("Mein Chef heißt Paul.", "Meine neue Chefin heißt Eva.", "Eva"),
    ("My boss is Ian.", "My new boss is Julian.", "Julian"),
    ("My boss is Bruno.", "My boss is Priya now.", "Priya"),
    ("My boss is called Bruno.", "My boss is now Priya.", "Priya"),
    ("My dentist is Dr Weber.", "My new dentist is Dr. Sato.", "Dr. Sato"),
    ("Meine Ärztin heißt Frau Weber.", "Meine Ärztin heißt Frau Sato.", "Frau Sato"),
    ("My boss is Anna.", "My new boss is called Irish.", "Irish"),
    ("Meine Chefin heißt Anna.", "Meine neue Chefin heißt Bea.", "Bea"),
    ("Mon chef s'appelle Paul.", "Ma nouvelle cheffe s'appelle Eva.", "Eva"),
    ("Il mio capo si chiama Marco.", "Il mio nuovo capo si chiama Luca.", "Luca"),
    ("A minha chefe chama-se Ana.", "O meu novo chefe se chama Bruno.", "Bruno"),
    ("Il mio capo è Marco.", "Il mio nuovo capo è Luca.", "Luca"),
    ("Il mio capo si chiama Marco.", "Ora il mio capo è Luca.", "Luca"),
    ("Mon chef est Paul.", "Ma nouvelle cheffe est Eva.", "Eva"),
    ("Mon chef est Paul.", "Mon chef est maintenant Marc.", "Marc"),
    ("O meu chefe é o Bruno.", "A minha nova chefe é a Ana.", "Ana"),
    ("Mein Chef ist Marco.", "Meine neue Chefin ist Anna.", "Anna"),
    ("Mein Chef ist Herr Weber.", "Mein Chef ist jetzt Paul.", "Paul"),
    ("Mijn baas is Eva.", "Mijn nieuwe baas is Jan.", "Jan"),
    ("Mijn baas heet Eva.", "Mijn nieuwe baas heet Jan.", "Jan"),
    ("Mijn hond heet Rex.", "Trouwens, mijn hond heet Bruno.", "Bruno"),
    ("Ik woon in Utrecht.", "We zijn van Utrecht naar Gent verhuisd.", "Gent"),
    ("Ik werk bij Acme.", "Ik werk niet meer bij Acme.", "no more"),
    ("我的老板叫李明。", "我的新老板叫王芳。", "王芳"),
    ("I live in Oslo.", "We moved from Oslo to Bergen last month.", "Bergen"),
    ("I live in Oslo, near the harbour.", "I now live in Bergen.", "Bergen"),
    ("I live in Oslo.", "I don't live in Oslo any more.", "no more"),
    ("I work at Acme as a cook.", "I just started a new job at Globex!", "Globex"),
    ("I work for Acme.", "I no longer work for Acme.", "no more"),
    ("My phone number is 555 12 34.", "My phone number is now 555 98 76.", "555 98 76"),
    ("My email is kai@old.example.", "My new email is kai@new.example.", "kai@new.example"),
    ("My favourite colour is red.", "My favourite colour is now blue.", "blue"),
    ("Mein Hund heißt Rex.", "Übrigens, mein Hund heißt Bruno.", "Bruno"),
    ("Ich wohne in Oslo.", "Wir sind von Oslo nach Bergen gezogen.", "Bergen"),
    ("Ich arbeite bei Acme.", "Ich arbeite nicht mehr bei Acme.", "no more"),
    ("Mon chien s'appelle Rex.", "En fait, mon chien s'appelle Bruno.", "Bruno"),
    ("J'habite à Lyon.", "Nous avons déménagé de Lyon à Nantes.", "Nantes"),
    ("Vivo en Lima.", "Ahora vivo en Quito.", "Quito"),
    ("Mi perro se llama Toby.", "Mi perro se llama Max.", "Max"),
    ("Vivo a Torino.", "Ci siamo trasferiti da Torino a Bari.", "Bari"),
    ("Moro em Lisboa.", "Não moro mais em Lisboa.", "no more"),
    ("Мою собаку зовут Рекс.", "Мою собаку зовут Бобик.", "Бобик"),
    ("Я живу в Москве.", "Мы переехали из Москвы в Казань.", "Казань"),
    ("我的狗叫豆豆。", "其实，我的狗叫旺财。", "旺财"),
    ("我住在北京。", "我们从北京搬到上海了。", "上海"),
    ("我的手机号是13800000000。", "我的新手机号是13911111111。", "13911111111"),
    ("私の犬の名前はポチです。", "実は、私の犬の名前はハチです。", "ハチ"),
    ("大阪に住んでいます。", "大阪から東京に引っ越しました。", "東京"),
    ("우리 강아지 이름은 초코예요.", "우리 강아지 이름은 보리예요.", "보리"),
    ("저는 부산에 살아요.", "부산에서 서울로 이사했어요.", "서울"),
    # One's own name: that it has changed, or was wrong.
    ("My name is Anna.", "I legally changed my name to Bea.", "Bea"),
    ("My name is Anna.", "Actually, my name is Bea.", "Bea"),
    ("My name is Anna.", "My name isn't Anna, it's Bea.", "Bea"),
    ("Ich heiße Anna.", "Mein Name ist nicht Anna, sondern Bea.", "Bea"),
    ("Mein Name ist Anna.", "Ich heiße jetzt Bea.", "Bea"),
    ("Me llamo Ana.", "Ahora me llamo Bea.", "Bea"),
    ("Je m'appelle Anne.", "En fait, je m'appelle Béa.", "Béa"),
    ("Mi chiamo Anna.", "Ho cambiato nome in Bea.", "Bea"),
    ("Meu nome é Ana.", "Mudei meu nome para Bea.", "Bea"),
    ("Меня зовут Анна.", "Теперь меня зовут Белла.", "Белла"),
    ("我叫李明。", "我改名叫王强了。", "王强"),
    ("私の名前は健です。", "翔に改名しました。", "翔"),
    ("제 이름은 민수예요.", "제 이름은 이제 지훈이에요.", "지훈"),
]
"""What was said, what was said later, and what the first is told to be now."""

NOT_AGAINST = [
    # The same again, or more exactly.
    ("My dog is called Rex.", "My dog is called Rex and he is old."),
    ("My name is Anna.", "My name is Anna Berg."),
    ("I live in Oslo.", "I now live in Oslo near the park."),
    ("My favourite food is pizza.", "My favourite food is pizza with olives."),
    ("Ich wohne in Oslo.", "Ich wohne jetzt in Oslo-Nord."),
    ("Я живу в Москве.", "Теперь я живу в Москве."),
    ("我住在北京。", "我现在住在北京朝阳。"),
    ("My phone number is 555 12 34.", "My phone number is 5551234."),
    # Another's, or another thing.
    ("My dog is called Rex.", "My cat is called Bruno."),
    ("My dog is called Rex.", "My other dog is called Bruno."),
    ("My dog is called Rex.", "Her dog is called Bruno."),
    ("My dog is called Rex.", "My sister's dog is called Bruno."),
    ("I live in Oslo.", "My sister now lives in Bergen."),
    ("My work phone is 555 12 34.", "My private phone is 555 98 76."),
    ("My favourite colour is red.", "My favourite food is soup."),
    ("My favourite colour is red.", "His favourite colour is blue."),
    ("Mein Hund heißt Rex.", "Mein anderer Hund heißt Bruno."),
    ("Mi perro se llama Toby.", "El perro de Ana se llama Max."),
    ("J'habite à Lyon.", "Ma sœur habite maintenant à Nantes."),
    ("私の犬の名前はポチです。", "友達の犬の名前はハチです。"),
    ("大阪に住んでいます。", "友達は東京に引っ越しました。"),
    ("저는 부산에 살아요.", "제 친구는 서울로 이사했어요."),
    ("我的狗叫豆豆。", "我朋友的狗叫旺财。"),
    ("Мою собаку зовут Рекс.", "Собаку друга зовут Бобик."),
    # There may be several, or it says nothing of before.
    ("I live in Norway.", "I live in Oslo."),
    ("I work at Acme.", "I work for Globex."),
    ("My friend is called Rex.", "My friend is called Bruno."),
    ("My brother is called Rex.", "My brother is called Bruno."),
    ("Vivo en Lima.", "Vivo en Miraflores."),
    ("我住在中国。", "我住在北京。"),
    ("My boss is Anna.", "My boss is Berta."),
    ("Mi jefe es Pedro.", "Mi nueva jefa es Alemana."),
    ("Il mio capo è Marco.", "Il mio nuovo capo è molto gentile."),
    ("Il mio capo è Marco.", "Il mio nuovo medico è Luca."),
    ("Mon chef est Paul.", "Mon nouveau chef est Américain."),
    ("Mon chef est Paul.", "Mon nouveau chef est en vacances."),
    ("O meu chefe é o Bruno.", "O meu novo chefe é simpático."),
    ("Mein Chef ist Marco.", "Mein neuer Chef ist Vegetarier."),
    ("Mein Chef ist Marco.", "Mein neuer Chef ist Klasse."),
    ("Mein Chef ist Marco.", "Mein neuer Chef ist Montag krank."),
    ("Mein Chef ist Marco.", "Mein neuer Chef ist Arzt."),
    ("Mein Chef ist Jurist.", "Mein neuer Chef heißt Paul."),
    ("Mein Chef ist Marco.", "Ist mein neuer Chef Paul?"),
    ("Mein Chef ist Marco.", "Mein Chef ist Paul."),
    ("Mijn baas is Eva.", "Mijn nieuwe baas is Nederlander."),
    ("Mijn baas is Eva.", "Mijn nieuwe tandarts is Jan."),
    ("Mijn baas is Eva.", "Mijn baas is Jan."),
    ("Mijn baas is Eva.", "Mijn nieuwe baas is erg aardig."),
    ("Ik woon in Utrecht.", "Als ik nu in Gent woon, wat dan?"),
    ("Mein Chef ist Marco.", "Vielleicht ist mein neuer Chef Paul."),
    ("Mon chef est Paul.", "Mon nouveau médecin est Marc."),
    ("O meu chefe é o Bruno.", "O meu novo dentista é o Caio."),
    ("Il mio capo è Marco.", "Forse il mio nuovo capo è Luca."),
    ("Mijn baas is Eva.", "Misschien is mijn nieuwe baas Jan."),
    ("Ik woon in Utrecht.", "Mijn zus woont nu in Gent."),
        ("Mi jefe es Pedro.", "Mi nueva jefa es muy amable."),
    ("Mon chien s'appelle Rex.", "Mon nouveau chien s'appelle Bob."),
    ("Mon chef s'appelle Paul.", "Mon nouveau médecin s'appelle Blanc."),
    ("Mon chef s'appelle Paul.", "Ma nouvelle cheffe s'appelle Eva ?"),
    ("Il mio capo si chiama Marco.", "Il mio nuovo medico si chiama Luca."),
    ("Il mio capo si chiama Marco.", "Il mio nuovo capo si chiama Marco Rossi."),
    ("Meu chefe se chama Bruno.", "O meu novo dentista se chama Caio."),
    ("Meu chefe se chama Bruno.", "Talvez o meu novo chefe se chame Caio."),
    ("我的老板叫李明。", "我的新医生叫王芳。"),
    ("我的老板叫李明。", "我的新老板叫我加班。"),
    ("Mi jefe es Pedro.", "Mi nuevo médico es Luis."),
    ("Mi jefe es Pedro.", "Mi otra jefa ahora es Ana."),
    ("Mi jefe es Pedro.", "Mi jefe es Luis."),
    ("Mi jefe es Pedro.", "¿Mi nueva jefa es Ana?"),
    ("Mi jefe es Pedro.", "Quizá mi nueva jefa es Ana."),
    ("Mein Chef heißt Paul.", "Meine neue Lehrerin heißt Eva."),
    ("My boss is Anna.", "My new doctor is Marcus."),
    ("My boss is Anna.", "My new boss is Italian."),
    ("My boss is Anna.", "My new boss is Egyptian."),
    ("My boss is Ian.", "My new boss is Brazilian."),
    ("My boss is Ian.", "My boss is now Brazilian."),
    ("My boss is Anna.", "My boss is nice now."),
    ("My boss is Anna.", "My boss is now on holiday."),
    ("My boss is Anna.", "Is my boss now Priya?"),
    ("My boss is Anna.", "Maybe my boss is now Priya."),
    ("My boss is Anna.", "Her boss is now Priya."),
    ("My boss is Anna.", "My doctor is now Marcus."),
    ("Meine Ärztin heißt Frau Weber.", "Meine Ärztin heißt Dr. Weber."),
    ("My dentist is Dr Weber.", "My new dentist is Mrs Weber."),
    ("My boss is Italian.", "My new boss is Brian."),
    ("My boss is Ian.", "My new doctor is Julian."),
    ("My boss is French.", "My new boss is Marcus."),
    ("My boss is Anna.", "My new boss is a nightmare."),
    # Not moved, or not there.
    ("I live in Oslo.", "I moved from MySQL to Postgres."),
    ("I moved from MySQL to Postgres.", "I now live in Bergen."),
    ("I live in Oslo.", "I never moved from Oslo to Bergen."),
    ("I live in Oslo.", "I might have moved from Oslo to Bergen."),
    ("I live in Oslo.", "I don't live in Bergen any more."),
    ("I live in Oslo.", "I now live in a small flat."),
    ("I live in Oslo.", "If I now live in Bergen, what changes?"),
    ("I live in Oslo.", "I now live in Bergen, but only until May."),
    ("Ich wohne in Oslo.", "Ich wohne jetzt in einer großen Wohnung."),
    ("Moro em Lisboa.", "Agora moro em uma casa."),
    # Of another time, asked, imagined, or another's words.
    ("I live in Oslo.", "When I was ten I lived in Bergen."),
    ("My dog is called Rex.", "My dog is called Bruno?"),
    ("My dog is called Rex.", "My first dog was called Bruno."),
    ("My dog is called Rex.", "In a story my dog is called Bruno."),
    ("My dog is called Rex.", "She wrote: \"My dog is called Bruno.\""),
    ("My dog is called Rex.", "> My dog is called Bruno."),
    ("My dog is called Rex.", "Translate this: My dog is called Bruno."),
    ("My dog is called Rex.", "My dog is called every evening."),
    ("我的狗叫豆豆。", "我的狗叫了一晚上。"),
    ("我住在北京。", "小时候我们从北京搬到上海。"),
    ("Vivo a Torino.", "Quando ero piccolo vivevo a Bari."),
    ("Я живу в Москве.", "Раньше я жил в Казани."),
    # A shorter name, or one in a game or a story.
    ("My name is Lukas.", "My name is Thorbek and I seek the lost hammer."),
    ("My name is Lukas.", "My name is Ishmael."),
    ("My name is Lukas.", "Call me Ishmael."),
    ("My name is Katherine.", "My name is Kate, short for Katherine."),
    ("My name is William.", "My name is Bill."),
    ("My name is Lukas.", "In the game my name is now Thorbek."),
    ("Mein Name ist Lukas.", "Mein Name ist Grimbart."),
    ("Ich heiße Lukas.", "Ich heiße Grimbart."),
    ("Me llamo Lucas.", "Me llamo Torvaldo."),
    ("Je m'appelle Lucas.", "Je m'appelle Gandalf."),
    ("Меня зовут Лукас.", "Меня зовут Гэндальф."),
    ("我叫李明。", "我叫青玄子，来自昆仑。"),
    ("我叫李明。", "我叫了外卖。"),
    ("私の名前は健です。", "私の名前は魔王です。"),
    ("제 이름은 민수예요.", "제 이름은 마왕이에요."),
    ("Mi chiamo Luca.", "Mi chiamo Gandalf."),
    ("Il mio nome è Luca.", "Il mio nome è Luca Rossi."),
    ("Me chamo Lucas.", "Meu nome é Gandalf."),
    ("Mi nombre es Lucas.", "Mi nombre es Lucas Gil."),
    ("Mon nom est Lucas.", "Mon nom est Gandalf."),
    ("Ich heiße Katharina.", "Ich heiße Kathi."),
    ("My name is Lukas.", "Actually, my dog's name is Thorbek."),
    ("My name is Lukas.", "If I changed my name to Thorbek, who would know?"),
    ("My name is Lukas.", "I never changed my name to Thorbek."),
    ("My name is Lukas.", "She wrote: \"I changed my name to Thorbek.\""),
    ("My name is Lukas.", "I changed my name to my nickname."),
    # Other talk with the same words.
    ("My favourite colour is red.", "My favourite part is the end."),
    ("My number is 7.", "My phone number is 555 98 76."),
    ("I work at Acme.", "I work from home now."),
    ("I live in Oslo.", "The show is live in Bergen."),
    ("Mein Name ist Anna.", "Mein Hund heißt Bruno."),
]  # fmt: skip
"""What was said, and what was said later that is nothing against it."""

SAID = RecallHit("passage", "", "x1.0", "s", 1, "user", 10, 1000.0, flags=FILLS_SLOT)


def notes(*texts: str) -> list[str]:
    """What is noted on each, said in this order; the newest comes first, as the best may."""
    found = [replace(SAID, text=text, seq=seq) for seq, text in enumerate(texts)]
    return [each.note for each in with_notes(found[::-1], 0.0)][::-1]


@pytest.mark.parametrize(("before", "after", "value"), AGAINST)
def test_what_was_said_later_is_told(before: str, after: str, value: str) -> None:
    assert notes(before, after) == [f"later: {value}", ""]
    assert all(slot_values(TokenizedText(text)) for text in (before, after))


@pytest.mark.parametrize(("before", "after"), NOT_AGAINST)
def test_what_is_nothing_against_it_is_not(before: str, after: str) -> None:
    assert notes(before, after) == ["", ""]


def test_the_table_is_large_enough_and_mostly_of_what_is_none() -> None:
    assert len(AGAINST) + len(NOT_AGAINST) >= 60
    assert len(NOT_AGAINST) >= 2 * len(AGAINST)


def test_the_newest_counts_and_what_is_so_again_is_so() -> None:
    said = "I live in Oslo.", "I now live in Bergen.", "I now live in Oslo."
    assert notes(*said) == ["", "later: Oslo", ""]
    names = "My dog is called Rex.", "My dog is called Bruno.", "My dog is called Ada."
    assert notes(*names) == ["later: Ada", "later: Ada", ""]


def test_who_speaks_is_told_apart() -> None:
    said = "Anna: My dog is called Rex.", "Ben: My dog is called Bruno."
    assert notes(*said) == ["", ""]
    assert notes(said[0], "Anna: My dog is called Bruno.") == ["later: Bruno", ""]


def test_only_what_is_flagged_is_read() -> None:
    found = [replace(SAID, text=text, flags=0) for text, *_ in AGAINST]
    assert with_notes(found, 0.0) == found


def test_long_messages_are_not_read() -> None:
    text = "My dog is called Rex. "
    assert slot_values(TokenizedText(text)) and not slot_values(
        TokenizedText(text + "x" * MAX_MESSAGE)
    )


def test_nothing_is_later_than_nothing() -> None:
    assert replacing_values(()) == []
