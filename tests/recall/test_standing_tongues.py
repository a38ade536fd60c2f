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
他又开始吃肉了。
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
