"""Standing wishes in Dutch and Polish, and what only looks so."""

from __future__ import annotations

import pytest

from proxy.recall.standing.in_force import instructions_in_force
from proxy.recall.standing.standing import find_instructions

INSTRUCTIONS = """
Antwoord voortaan in het Engels.
Gebruik altijd metrische eenheden.
Gebruik nooit emoji's.
Geen emoji's, alsjeblieft.
Vanaf nu antwoord je graag kort.
Noem me Kees.
Als ik om code vraag, gebruik Python.
Als je een boek aanraadt, vermeld het aantal pagina's.
Zawsze używaj jednostek metrycznych.
Nigdy nie używaj emoji.
Od teraz odpowiadaj po angielsku.
Odpowiadaj od teraz krótko.
Mów mi Kasia.
Nie używaj emoji.
Gdy polecasz książkę, podawaj liczbę stron.
Als je me code laat zien, gebruik Julia.
Als je antwoordt, hou het kort.
Gdy pokazujesz mi kod, używaj Julii.
Kiedy odpowiadasz, pisz krótko.
Antwoord altijd in het Nederlands.
Odpowiadaj zawsze po polsku.
"""

PREFERENCES = """
Ik ben allergisch voor pinda's.
Ik heb een notenallergie.
Ik heb een allergie voor schaaldieren.
Ik heb coeliakie.
Ik ben lactose-intolerant.
Ik ben veganist.
We zijn allebei vegetariërs.
Ik heb liever korte antwoorden.
Ik eet nooit vis.
Wij drinken geen alcohol.
Mam alergię na orzechy.
Mam celiakię.
Jestem weganinem.
Jestem uczulona na gluten.
Jesteśmy wegetarianami.
Wolę krótkie odpowiedzi.
Nie piję alkoholu.
My nie jemy wieprzowiny.
Mięsa nie jemy.
We eten geen vlees.
Ik eet geen vlees.
Ik eet geen vlees meer.
We eten geen vlees meer.
Nie jemy mięsa.
Nie jem mięsa.
Nie jem już mięsa.
Ik ben allergisch voor noten.
Jestem uczulony na orzechy.
Ik ben vegetariër.
Jestem wegetarianką.
"""

WITHDRAWALS = """
Ik ben niet meer allergisch voor noten.
Vergeet wat ik over emoji's zei.
Je mag weer emoji's gebruiken.
Vergeet dat maar.
Nie jestem już weganinem.
Nie mam już alergii na orzechy.
Znowu jemy mięso.
Zapomnij o tym.
Możesz znowu używać emoji.
"""

NOTHING = """
Ik gebruik altijd mijn fiets.
Ik heb altijd honger.
Altijd leuk om met je te praten!
Waarom antwoord je altijd in het Engels?
Zeg nooit nooit.
Zeg nooit meer zoiets.
Mijn vader is allergisch voor noten.
Is mijn hond allergisch voor kip?
Ben ik allergisch voor noten?
Hij is vegetariër.
Als ik vegetariër ben, wat kan ik dan eten?
Stel dat ik allergisch ben voor melk.
Mijn moeder zegt: ik ben allergisch voor noten.
De dokter vroeg of ik allergisch ben voor noten.
Ze zei dat ik allergisch ben voor onzin.
Schrijf een verhaal waarin iemand zegt: ik eet geen vlees.
Gebruik in deze brief nooit het woord ik.
Schrijf een brief en gebruik altijd u.
Ik eet geen vlees vandaag.
We eten geen vlees tijdens de vasten.
Eten jullie geen vlees?
Als je antwoord hebt, bel me.
Als je morgen komt, neem geld mee.
Als je haar schrijft, gebruik een pen.
Als je hem een brief schrijft, wees beleefd.
Wat bedoelt hij als hij schrijft, geef nooit op?
Noem me een goede film.
Noem me drie steden.
Ik heb liever deze.
Ik ben niet allergisch.
Ik wil altijd gezond eten.
Mijn vriend wil dat ik altijd antwoord.
Leg uit wat altijd betekent.
Vergeet je sleutels niet.
Je mag weer naar huis.
Het regent weer.
Geef nooit op!
Wees altijd jezelf, zegt mijn oma.
Zij eten weer vlees.
In het lied: als je me schrijft, gebruik rode inkt.
Zawsze zapominam kluczy.
Nigdy nie mów nigdy.
Zawsze miło z tobą rozmawiać.
Dlaczego zawsze odpowiadasz po angielsku?
Mój ojciec jest uczulony na orzechy.
Czy jestem uczulony na orzechy?
On jest wegetarianinem.
Jeśli jestem wegetarianinem, co mogę jeść?
Mama mówi: jestem uczulona na orzechy.
Lekarz zapytał, czy jestem uczulony na orzechy.
Napisz opowiadanie, w którym ktoś mówi: nie jem mięsa.
Napisz list i zawsze używaj formy pan.
Nie jem dzisiaj mięsa.
Nie jemy mięsa w piątki.
Nie jemy mięsa przed świętami.
Gdy piszesz do niej, używaj pióra.
Kiedy piszesz jej list, używaj pióra.
Gdy dzwonisz, mów głośno.
Kiedy odpowiadasz, zawsze się uśmiechasz.
Przetłumacz: jestem wegetarianką.
Popraw zdanie: Odpowiadaj zawsze po polsku.
Wolę tę.
Wolę nie mówić.
Znowu pada deszcz.
On znowu je mięso.
Oni nie jedzą mięsa.
Możesz znowu spróbować?
Zapomnij o kluczach.
Nie jestem uczulony.
Mów głośniej.
Mów mi prawdę.
Babcia powtarzała: pisz zawsze prawdę.
Zawsze pisz z sercem, mówiła babcia.
Co to znaczy "od teraz"?
Als je klaar bent, laat het me weten.
Als je tijd hebt, schrijf me.
Als je me code laat zien, begrijp ik er niets van.
We eten geen vlees op vrijdag.
We eten vanavond geen vlees.
Mijn zus eet geen vlees.
Mijn zus zegt dat we geen vlees eten.
Waarom eten we geen vlees op vrijdag?
Hoe zeg je in het Frans: ik eet geen vlees?
Vertaal naar het Engels: ik ben allergisch voor noten.
Ik eet geen ontbijt.
Gdy skończysz, daj mi znać.
Kiedy masz czas, napisz do mnie.
Moja siostra nie je mięsa.
W piątki nie jemy mięsa.
Dlaczego nie jemy mięsa w piątek?
Jak powiedzieć po angielsku: nie jem mięsa?
Nie jem śniadania.
"""

ENDED = """
Ik eet geen vlees. | Ik eet weer vlees.
Ik ben vegetariër. | Ik ben geen vegetariër meer.
Ik ben vegetariër. | Ik eet weer vlees.
Ik ben allergisch voor noten. | Ik ben niet meer allergisch voor noten.
Gebruik nooit emoji's. | Je mag weer emoji's gebruiken.
Noem me Kees. | Vergeet dat.
Nie jem mięsa. | Znowu jem mięso.
Jestem wegetarianką. | Nie jestem już wegetarianką.
Jestem wegetarianką. | Znów jem mięso.
Jestem uczulona na orzechy. | Nie jestem już uczulona na orzechy.
Nigdy nie używaj emoji. | Możesz znowu używać emoji.
"""


def rows(table: str) -> list[str]:
    return table.strip().splitlines()


def kinds_of(table: str, kind: str) -> list[tuple[str, str]]:
    return [(text, kind) for text in rows(table)]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        *kinds_of(INSTRUCTIONS, "instruction"),
        *kinds_of(PREFERENCES, "preference"),
        *kinds_of(WITHDRAWALS, "withdrawal"),
    ],
)
def test_what_is_wished_or_told_for_good_is_noticed(text: str, kind: str) -> None:
    assert [(each.kind, each.text) for each in find_instructions(text)] == [(kind, text)]


@pytest.mark.parametrize("text", rows(NOTHING))
def test_what_only_looks_so_is_not(text: str) -> None:
    assert find_instructions(text) == ()


@pytest.mark.parametrize(("old", "new"), [row.split(" | ") for row in rows(ENDED)])
def test_what_is_taken_back_or_has_ended_holds_no_longer(old: str, new: str) -> None:
    found = [each for text in (old, new) for each in find_instructions(text)]
    assert [each.text for each in found] == [old, new]
    assert instructions_in_force(found[::-1]) == ()
