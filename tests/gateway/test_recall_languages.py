"""The right old message is recalled whatever language it is in."""

from __future__ import annotations

import pytest

from tests.support.rig import Rig
from tests.support.talk.recalling import somebody

pytestmark = pytest.mark.asyncio(loop_scope="session")

DISTRACTORS = [
    "I watered the plants this morning before work.",
    "The train to Munich was forty minutes late again.",
    "Could you compare these two laptops for me?",
    "We repainted the kitchen walls in light yellow.",
    "我昨天去看了一场电影，很有意思。",
    "公司下个月要搬到新的办公楼。",
    "昨日は友達とラーメンを食べました。",
    "新しい自転車を買おうと思っています。",
    "Gestern habe ich einen Kuchen gebacken.",
    "Der Zug nach Hamburg hatte Verspätung.",
    "Ayer compré unas zapatillas nuevas.",
    "El partido de fútbol terminó en empate.",
    "ذهبت أمس إلى السوق واشتريت الخضار.",
    "الجو اليوم بارد جدا في المدينة.",
    "How do I sort a list of tuples in Python?",
    "Mein Nachbar spielt jeden Abend Klavier.",
    "La reunión se ha movido al jueves.",
    "我想学习如何做面包。",
    "会議は三時に始まります。",
    "My phone battery dies before noon.",
]

SAID = {
    "chinese": ("我对花生过敏，请记住。", "我对什么食物过敏？", "花生"),
    "chinese-name": ("我的妹妹叫林晓梅，住在成都。", "我妹妹住在哪里？", "成都"),
    "japanese": ("私の犬の名前はポチで、柴犬です。", "私の犬の名前は何ですか？", "ポチ"),
    "english": (
        "My sister Anna keeps two parrots in Lisbon.",
        "Where do the parrots live?",
        "Lisbon",
    ),
    "english-inflected": ("We were married in Cardiff.", "Where did I marry?", "Cardiff"),
    "german": (
        "Meine Tochter studiert Medizin in Heidelberg.",
        "Wo studieren meine Töchter?",
        "Heidelberg",
    ),
    "spanish": (
        "Mi abuela nació en un pueblo cerca de Granada.",
        "¿Dónde nacieron mis abuelas?",
        "Granada",
    ),
    "arabic": ("اسم قطتي لولو وعمرها ثلاث سنوات.", "ما اسم قطتي؟", "لولو"),
    "chinese-with-english": (
        "我在用 Kubernetes 部署我们的支付服务。",
        "Kubernetes 上部署的是什么服务？",
        "支付",
    ),
    "english-with-japanese": (
        "My favourite shop in 神保町 sells old maps.",
        "神保町のお店は何を売っていますか？",
        "old maps",
    ),
    "german-with-english": (
        "Das Release von Projekt Falkenhorst ist am Freitag.",
        "When is the release of Falkenhorst?",
        "Freitag",
    ),
}


@pytest.mark.parametrize("language", SAID)
async def test_it_is_recalled_among_twenty_others_in_a_new_session(one: Rig, language: str) -> None:
    said, question, answer = SAID[language]
    person = somebody(one)
    half = len(DISTRACTORS) // 2
    await person.tells(*DISTRACTORS[:half])
    talk = await person.tells(said)
    await person.tells(*DISTRACTORS[half:])
    found = await person.asks(question)
    assert answer in "\n".join(found.values())
    sources = one.store.commits[-1].exchange.memory.all_recalled()
    assert talk.session in [source.session for source in sources]
