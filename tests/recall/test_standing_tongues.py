"""What people say of themselves in other languages than English, and what only looks so."""

from __future__ import annotations

import pytest

from proxy.recall.standing.in_force import instructions_in_force
from proxy.recall.standing.standing import find_instructions

DIETS = """
We don't eat meat any more.
Wir essen kein Fleisch.
Wir essen kein Fleisch mehr.
Wir essen kein Schweinefleisch und keinen Fisch.
Nous ne mangeons pas de viande.
On mange pas de porc.
Nous ne mangeons plus de viande.
No comemos carne ni pescado.
Ya no comemos carne.
Non mangiamo carne.
Non mangiamo più carne.
Não comemos carne.
Já não comemos carne.
A gente não come carne.
Мы не едим мясо.
Мы больше не едим мясо.
Мы мяса не едим.
我们不吃肉。
我们家不吃猪肉。
我不再吃肉了。
我们已经不吃肉了。
"""

WHEN_YOU = """
Wenn du mir Code zeigst, nimm Julia.
Wenn du mir Code zeigst, verwende Julia.
Wenn du antwortest, sei bitte kurz.
Wenn du mir schreibst, verwende kurze Sätze.
Wenn du mir Rezepte gibst, nenne auch die Kalorien.
Immer wenn du etwas empfiehlst, nenne den Preis.
Wenn Sie mir Code zeigen, verwenden Sie bitte Julia.
Quand tu me montres du code, utilise Julia.
Quand tu réponds, sois bref.
Quand tu me donnes une recette, indique les calories.
Lorsque tu m'expliques quelque chose, donne un exemple.
Chaque fois que tu proposes un restaurant, donne le prix.
Cuando me muestres código, usa Julia.
Cuando me des una receta, incluye las calorías.
Cuando respondas, sé breve.
Cada vez que recomiendes un restaurante, di el precio.
Quando mi mostri del codice, usa Julia.
Quando mi dai una ricetta, indica le calorie.
Quando rispondi, sii breve.
Ogni volta che consigli un ristorante, dimmi il prezzo.
Quando me mostrar código, use Julia.
Quando você responder, seja breve.
Sempre que recomendar um restaurante, diga o preço.
Когда показываешь мне код, используй Julia.
Когда отвечаешь, пиши кратко.
给我看代码的时候，请用Julia。
你给我写代码时，用Julia。
你回答的时候请简短一点。
推荐餐厅的时候请写上价格。
"""

NOTHING = """
Wir essen freitags kein Fleisch.
Wir essen kein Fleisch am Freitag.
Wir essen heute kein Fleisch.
Nehmen wir an, wir essen kein Fleisch mehr.
Meine Eltern sagten: Wir essen kein Fleisch.
Übersetze ins Englische: Wir essen kein Fleisch.
Wir essen kein Mittagessen.
Wir essen kein Fleisch?
Nous ne mangeons pas de viande le vendredi.
Nous ne mangeons pas de viande ce soir.
Comment dit-on en anglais : nous ne mangeons pas de viande ?
Si nous ne mangeons pas de viande, que se passe-t-il ?
No comemos carne los viernes.
¿Por qué no comemos carne?
Mi hermana dice que no comemos carne.
Non mangiamo carne il venerdì.
Se non mangiamo carne, cosa succede?
Não comemos carne às sextas.
Minha irmã diz que não comemos carne.
Мы не едим мясо по пятницам.
Сестра говорит, что мы не едим мясо.
Мама перестала быть вегетарианкой.
Он уже не веган.
Ты думаешь, я уже не веган?
我们星期五不吃肉。
我们今天不吃肉。
为什么我们不吃肉？
我妹妹说我们不吃肉。
Nous ne buvons pas de café après 18 heures.
Wir trinken keinen Alkohol auf der Feier.
Мы не пьём кофе после обеда.
他又开始吃肉了。
Wenn du mir Code zeigst, verstehe ich ihn oft nicht.
Wenn du Zeit hast, zeig mir bitte ein Beispiel.
Wenn du das Dokument liest, sag mir, was fehlt.
Wenn du mir das Rezept gibst, nenne auch die Kalorien.
Wenn du ihm antwortest, sei höflich.
Wenn du deinem Chef schreibst, benutze einen höflichen Ton.
Wie sage ich auf Französisch: Wenn du mir schreibst, benutze kurze Sätze?
In dem Lied heißt es: Wenn du mir schreibst, nimm die rote Tinte.
Wenn du mir schreibst, nimm Tinte, sagte meine Lehrerin.
Quand tu me montres du code, je ne comprends rien.
Quand tu auras fini, dis-moi.
Quand tu parles à mon chef, sois poli.
Quand tu réponds, ne serait-ce que par un mot, je suis content.
Elle m'a dit : quand tu réponds, sois honnête.
Quand tu écris une lettre, utilise un stylo, disait mon prof.
Cuando me muestras código, no lo entiendo.
Cuando termines, avísame.
Cuando le respondas, sé amable.
Corrige esta frase: cuando respondas, sé breve.
Cuando escribas una carta, usa un bolígrafo, decía mi profesor.
Quando hai finito, dimmi.
Quando rispondi a lui, sii gentile.
Quando scrivi, usa sempre il cuore, diceva mia nonna.
Quando der, mostre um exemplo.
Quando terminar, me avise.
Minha chefe disse: quando responder, seja breve.
Когда закончишь, напиши мне.
Когда ты пишешь код, я ничего не понимаю.
Когда отвечаешь ему, пиши вежливо.
Начальник сказал: когда отвечаешь, пиши кратко.
你写完的时候告诉我。
你看这段代码的时候请注意第三行。
你回复他的时候请客气一点。
你写作业的时候用什么笔？
推荐餐厅时要考虑什么？
老师说：你回答的时候请大声一点。
"""

ENDED = """
We don't eat meat any more. | We eat meat again.
Wir essen kein Fleisch. | Wir essen wieder Fleisch.
Nous ne mangeons pas de viande. | Nous mangeons de nouveau de la viande.
On ne mange pas de viande. | On remange de la viande.
No comemos carne. | Volvemos a comer carne.
Non mangiamo carne. | Mangiamo di nuovo carne.
Não comemos carne. | Comemos carne de novo.
Мы не едим мясо. | Мы снова едим мясо.
Я вегетарианец. | Я перестал быть вегетарианцем.
Я вегетарианец. | Я уже не вегетарианец.
Мы вегетарианцы. | Мы перестали быть вегетарианцами.
Я вегетарианка. | Я теперь ем мясо.
我们不吃肉。 | 我们又开始吃肉了。
我吃素。 | 我又开始吃肉了。
我是素食者。 | 我不再吃素了。
我是素食主义者。 | 我不再是素食主义者了。
我是素食者。 | 我现在又吃肉了。
我已经不吃鱼了。 | 我又可以吃鱼了。
"""

NOT_ENDED = """
Ich esse kein Fleisch. | Wir essen wieder Fisch.
Я вегетарианец. | Он перестал быть вегетарианцем.
Мы не едим мясо. | Мы снова едим рыбу.
У меня аллергия на орехи. | Я снова ем мясо.
我们不吃猪肉。 | 我们又开始吃肉了。
我对花生过敏。 | 我又开始吃肉了。
"""


def rows(table: str) -> list[str]:
    return table.strip().splitlines()


def pairs(table: str) -> list[list[str]]:
    return [row.split(" | ") for row in rows(table)]


def in_force(*messages: str) -> list[str]:
    """What holds after these messages, newest first."""
    found = [each for text in messages for each in find_instructions(text)]
    return [each.text for each in instructions_in_force(found[::-1])]


@pytest.mark.parametrize("text", rows(DIETS))
def test_what_one_does_not_eat_is_a_preference(text: str) -> None:
    assert [(each.kind, each.text) for each in find_instructions(text)] == [("preference", text)]


@pytest.mark.parametrize("text", rows(WHEN_YOU))
def test_what_the_assistant_is_to_do_when_it_answers_is_an_instruction(text: str) -> None:
    assert [(each.kind, each.text) for each in find_instructions(text)] == [("instruction", text)]


@pytest.mark.parametrize("text", rows(NOTHING))
def test_what_only_looks_so_is_none(text: str) -> None:
    assert find_instructions(text) == ()


@pytest.mark.parametrize(("old", "new"), pairs(ENDED))
def test_a_diet_that_has_ended_holds_no_longer(old: str, new: str) -> None:
    assert in_force(old) == [old]
    assert in_force(old, new) == []


@pytest.mark.parametrize(("old", "new"), pairs(NOT_ENDED))
def test_one_food_again_leaves_the_others(old: str, new: str) -> None:
    assert old in in_force(old, new)
