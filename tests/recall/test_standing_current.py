"""Which standings hold, and which of them are pinned to a prompt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.recall.standing.in_force import MAX_INSTRUCTIONS, instructions_in_force, pinned
from proxy.recall.standing.standing import StandingInstruction, find_instructions

PLENTY = 10_000


def said(*messages: str) -> list[StandingInstruction]:
    """What messages, oldest first, leave standing: newest first."""
    return [
        standing
        for message in reversed(messages)
        for standing in reversed(find_instructions(message))
    ]


def holding(*messages: str) -> list[str]:
    return [standing.text for standing in instructions_in_force(said(*messages))]


def pins(question: str, budget: int, *messages: str) -> list[str]:
    chosen = pinned(
        question, instructions_in_force(said(*messages)), budget, lambda text: len(text.split())
    )
    return [standing.text for standing in chosen]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Always answer in French.", "From now on, answer in German."),
        ("I prefer answers in French.", "Always answer in English."),
        ("Always use bullet points.", "Never use bullet points."),
        ("Always be concise.", "From now on, give detailed answers."),
        ("Always use Celsius.", "Always use Fahrenheit."),
        ("I prefer tea over coffee.", "I prefer coffee over tea."),
        ("When I ask about hotels, list prices.", "When I ask about hotels, never list prices."),
        ("请总是用中文回答。", "从现在起都用英文回答我"),
        ("いつも日本語で答えてください。", "これからは英語で答えてください。"),
        ("Antworte immer auf Deutsch.", "Antworte ab jetzt immer auf Englisch."),
        ("Responde siempre en español.", "A partir de ahora, responde en inglés."),
        ("Réponds toujours en français.", "Désormais, réponds en anglais."),
        ("Всегда отвечай по-русски.", "Отвечай всегда на английском."),
        ("항상 한국어로 대답해 주세요.", "앞으로는 영어로 대답해 주세요."),
        ("أجب دائما بالعربية.", "من الآن فصاعدا، أجب بالإنجليزية."),
        ("Always use emojis.", "Always use emojis."),
    ],
)
def test_a_newer_one_on_the_same_matter_supersedes(old: str, new: str) -> None:
    assert holding(old, new) == [new]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Always answer in French.", "Never use emojis."),
        ("Always write emails in German.", "Always answer in French."),
        ("I prefer French wine.", "I prefer German beer."),
        ("I prefer short films.", "I prefer long walks."),
        ("When I ask about hotels, list prices.", "When I ask about books, list prices."),
        ("Always answer in French.", "Always answer in German when I ask about travel."),
        ("When I ask about films, list ratings.", "When I ask about films, list subtitles."),
        ("Prefiero los trenes a los aviones.", "Nunca uses emojis."),
        ("以后请简短回答", "不要再用表格了"),
        ("I prefer short answers.", "I would rather have long answers."),
    ],
)
def test_ones_on_other_matters_hold_together(old: str, new: str) -> None:
    assert holding(old, new) == [new, old]


@pytest.mark.parametrize(
    ("old", "withdrawal"),
    [
        ("Never use emojis.", "Forget what I said about emojis."),
        ("Always answer in French.", "You don't need to answer in French any more."),
        ("Always answer in French.", "Ignore all my instructions."),
        ("从现在起都用英文回答我", "不用再用英文回答了"),
        ("いつも英語で答えてください。", "もう英語で答えなくていいです。"),
        ("Verwende niemals Emojis.", "Vergiss, was ich über Emojis gesagt habe."),
        ("Nunca uses emojis.", "Olvida lo que dije sobre los emojis."),
        ("N'utilise jamais d'émojis.", "Oublie ce que j'ai dit sur les émojis."),
    ],
)
def test_what_is_withdrawn_holds_no_longer(old: str, withdrawal: str) -> None:
    assert holding(old, withdrawal) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Please always answer in French.", "You can answer in English again."),
        ("Please always answer in French.", "Forget that."),
        ("Please always answer in French.", "ok, forget that please"),
        ("Please always answer in French.", "Back to English, please."),
        ("I'm vegan, so only suggest vegan recipes.", "I'm no longer vegan."),
        ("im vegan", "im not vegan anymore"),
        ("I've been vegan since January.", "I'm no longer vegan."),
        ("I stopped eating meat.", "I eat meat again."),
        ("I gave up meat.", "I eat meat again."),
        ("We are vegetarians.", "We're no longer vegetarian."),
        ("We're vegan.", "We're not vegan anymore."),
        ("We are vegetarians.", "We aren't vegetarian any more, I eat fish."),
        ("I'm vegan.", "I stopped being vegan last year."),
        ("I stopped eating meat.", "I'm eating meat again."),
        ("I stopped eating meat.", "I've started eating meat again."),
        ("Wir sind vegan.", "Wir sind nicht mehr vegan."),
        ("Ich lebe vegan.", "Ich lebe inzwischen nicht mehr vegan."),
        ("Somos veganos.", "Já não somos veganos."),
        ("Somos veganos.", "Não somos mais veganos."),
        ("Somos todos vegetarianos.", "Nós não somos mais vegetarianos, comemos peixe."),
        ("Sou vegano.", "Não sou vegano."),
        ("Sou vegano.", "Deixei de ser vegano."),
        ("Soy vegano.", "He dejado de ser vegano."),
        ("Somos vegetarianos.", "Dejamos de ser vegetarianos en mayo."),
        ("Soy vegana.", "No soy más vegana."),
        ("Nous sommes végans.", "Nous ne sommes plus végans."),
        ("On est véganes.", "On n'est plus véganes."),
        ("Je suis végane.", "J'ai arrêté d'être végane."),
        ("Siamo vegani.", "Non siamo più vegani."),
        ("Sono vegano.", "Ho smesso di essere vegano."),
        ("We are vegetarians.", "We stopped being vegetarian."),
        ("Мы веганы.", "Мы больше не веганы."),
        ("我们吃素。", "我们不再吃素了。"),
        ("我吃素", "我现在不吃素了"),
        ("我是素食者", "我们不再是素食者"),
        ("私たちはヴィーガンです。", "私たちはもうヴィーガンではありません。"),
        ("私はヴィーガンです。", "もうヴィーガンをやめました。"),
        ("Ich esse seit Januar kein Fleisch mehr.", "Ich esse wieder Fleisch."),
        ("I am allergic to peanuts.", "Turns out I'm not allergic to peanuts after all."),
        ("I'm allergic to peanuts.", "I'm not allergic to peanuts."),
        ("I don't eat meat.", "I eat meat again."),
        ("I'm vegetarian.", "I eat meat again."),
        ("We're vegetarians.", "We eat meat again."),
        ("We don't eat meat.", "We eat meat again."),
        ("I'm a vegan.", "I've started eating red meat again."),
        ("Ich bin Vegetarier.", "Ich esse wieder Fleisch."),
        ("Je suis végétarienne.", "Je remange de la viande."),
        ("Soy vegetariana.", "Vuelvo a comer carne."),
        ("Sono vegetariana.", "Mangio di nuovo la carne."),
        ("Sou vegetariana.", "Voltei a comer carne."),
        ("Never use emojis.", "You can use emojis again."),
        ("Bitte antworte ab jetzt immer auf Englisch.", "Antworte bitte wieder auf Deutsch."),
        ("Verwende niemals Emojis.", "Du darfst wieder Emojis verwenden."),
        ("Ich reagiere allergisch auf Nüsse.", "Ich reagiere nicht mehr allergisch auf Nüsse."),
        ("Wir sind Vegetarier.", "Wir sind keine Vegetarier mehr."),
        ("Somos vegetarianos.", "Ya no somos vegetarianos."),
        ("Ich bin Vegetarierin.", "Ich bin keine Vegetarierin mehr."),
        ("Nenn mich Sam.", "Vergiss das bitte."),
        ("A partir de ahora respóndeme en catalán.", "Vuelve al castellano, por favor."),
        ("Soy vegana.", "Ya no soy vegana."),
        ("Nunca uses emojis.", "Olvídalo."),
        ("Je suis végane.", "Je ne suis plus végane."),
        ("Réponds toujours en anglais.", "Oublie ça."),
        ("Sono vegano.", "Non sono più vegano."),
        ("Всегда отвечай на английском.", "Отвечай снова на русском."),
        ("以后都用英文回答我", "还是用中文吧"),
        ("以后都用英文回答我", "忘了吧"),
        ("我对花生过敏", "我对花生不过敏了"),
    ],
)
def test_what_is_taken_back_in_plain_words_holds_no_longer(old: str, new: str) -> None:
    assert holding(old, new) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("From now on call me Sam.", "Call me Alex from now on."),
        ("From now on call me Sam.", "Stop calling me Sam."),
        ("My name is Tom, please call me Tommy.", "Call me Tom."),
        ("Please always answer in French.", "Stop answering in French, please."),
        ("Always use metric units.", "Use imperial from now on."),
        ("Always keep answers under 50 words.", "Please always answer in detail from now on."),
        ("I'm vegan, so only suggest vegan recipes.", "I'm vegetarian now."),
        ("I'm vegetarian.", "I went vegan in March."),
        ("We're vegetarian.", "We are vegan now."),
        ("Wir sind Vegetarier.", "Wir sind jetzt Veganer."),
        ("Nenn mich Sam.", "Nenn mich bitte Alex."),
        ("Llámame Paco.", "Llámame Francisco."),
        ("Appelle-moi Sam.", "Appelle-moi Alex."),
        ("叫我小林", "叫我阿明"),
    ],
)
def test_a_newer_value_takes_the_place_of_the_one_before(old: str, new: str) -> None:
    assert holding(old, new) == [new]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I'm allergic to peanuts.", "I'm allergic to shellfish."),
        ("I'm allergic to peanuts and shellfish.", "I'm allergic to peanuts."),
        ("I'm vegan.", "I prefer vegan restaurants."),
        ("I'm vegan.", "I'm lactose intolerant."),
    ],
)
def test_of_allergies_and_diets_nothing_is_lost(old: str, new: str) -> None:
    assert holding(old, new) == [new, old]


@pytest.mark.parametrize(
    "other", ["I'm not allergic to cats.", "I'm no longer vegetarian.", "You can use tables again."]
)
def test_to_take_back_one_thing_leaves_the_others(other: str) -> None:
    kept = ["I'm vegan.", "I'm allergic to peanuts."]
    assert holding(*reversed(kept), other) == kept


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I'm lactose-intolerant.", "I'm no longer lactose intolerant."),
        ("I'm intolerant to lactose.", "I'm not intolerant to lactose any more."),
        ("I'm gluten-free.", "I'm no longer gluten-free."),
        ("I have to eat gluten-free.", "I don't have to eat gluten-free any more."),
        ("I'm on a nut-free diet.", "I'm no longer on a nut-free diet."),
        ("I have a nut allergy.", "I don't have a nut allergy any more."),
        ("I have coeliac disease.", "I don't have coeliac disease after all."),
        ("Ich bin laktoseintolerant.", "Ich bin nicht mehr laktoseintolerant."),
        ("Ich bin leider Fruktose-intolerant.", "Ich bin doch nicht fruktoseintolerant."),
        ("Ich bin laktoseintolerant.", "Ich habe keine Laktoseintoleranz mehr."),
        ("Ich habe eine Nussallergie.", "Ich bin doch kein Nussallergiker."),
        ("Ich habe Zöliakie.", "Ich habe doch keine Zöliakie."),
        ("Ich vertrage keine Milch.", "Ich vertrage jetzt wieder Milch."),
        ("Ich esse glutenfrei.", "Ich esse nicht mehr glutenfrei."),
        ("Je suis intolérant au lactose.", "Je ne suis plus intolérant au lactose."),
        ("J'ai une intolérance au gluten.", "Je n'ai plus d'intolérance au gluten."),
        ("Soy intolerante a la lactosa.", "Ya no soy intolerante a la lactosa."),
        ("Tengo alergia a las nueces.", "Ya no tengo alergia a las nueces."),
        ("Sono intollerante al lattosio.", "Non sono più intollerante al lattosio."),
        ("Ho un'allergia alle noci.", "Non ho più un'allergia alle noci."),
        ("Sou intolerante ao glúten.", "Já não sou intolerante ao glúten."),
        ("Tenho alergia a nozes.", "Não tenho mais alergia a nozes."),
        ("Sou vegano.", "Não sou mais vegano."),
        ("У меня непереносимость лактозы.", "У меня больше нет непереносимости лактозы."),
        ("我有乳糖不耐症", "我没有乳糖不耐症了"),
    ],
)
def test_what_is_not_tolerated_is_noticed_and_taken_back_by_its_name(old: str, new: str) -> None:
    assert holding(old) == [old]
    assert holding(old, new) == []


@pytest.mark.parametrize(
    ("old", "other"),
    [
        ("I'm lactose intolerant.", "I'm no longer gluten intolerant."),
        ("I'm gluten-free.", "I'm no longer nut-free."),
        ("I have a nut allergy.", "I don't have any other allergies."),
        ("I have a nut allergy.", "I don't have a severe nut allergy."),
        ("I have a nut allergy.", "I no longer have a nut allergy test kit."),
        ("I have a nut allergy.", "What if I don't have a nut allergy?"),
        ("Ich vertrage keine Milch.", "Ich vertrage wieder keine Milch."),
        ("Ich habe eine Nussallergie.", "Ich habe keine Nussallergie-Tabletten."),
        ("Ich habe eine Nussallergie.", "Ich bin nicht mehr laktoseintolerant."),
        ("Ich bin glutenintolerant.", "Ich bin nicht mehr laktoseintolerant."),
        ("Ich bin allergisch gegen Nüsse.", "Ich bin nicht mehr allergisch gegen Pollen."),
        ("Je suis intolérant au lactose.", "Je ne suis plus intolérant au gluten."),
        ("Soy intolerante a la lactosa.", "Ya no soy intolerante al gluten."),
        ("Sono intollerante al lattosio.", "Non sono più intollerante al glutine."),
        ("Tenho alergia a nozes.", "Já não tenho alergia a camarão."),
        ("У меня аллергия на орехи.", "У меня больше нет аллергии на пыльцу."),
        ("我有乳糖不耐症", "我对花生不过敏了"),
    ],
)
def test_who_tolerates_one_thing_again_says_nothing_of_others(old: str, other: str) -> None:
    assert old in holding(old, other)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I'm allergic to peanuts and kiwi.", "The doctor says I'm no longer allergic to kiwi."),
        ("I'm allergic to cow's milk and goat's milk", "I'm no longer allergic to goat's milk."),
        ("I'm vegetarian and allergic to nuts.", "I'm no longer vegetarian."),
        ("I'm vegan. I'm allergic to nuts.", "I'm no longer vegan."),
        ("I am gluten intolerant and allergic to soy", "I'm not gluten intolerant any more"),
        ("I'm allergic to nuts and kiwi, please call me Sam.", "I'm no longer allergic to kiwi."),
        ("I don't eat meat or fish.", "I eat fish again."),
        ("Always answer in French and don't use emojis.", "You can use emojis again."),
        ("Never use emojis or tables.", "You can use tables again."),
        ("From now on:\n- answer in French\n- never use emojis", "You can use emojis again."),
        (
            "Always use type hints and never give me comments.",
            "Comments are ok again, but keep the type hints.",
        ),
        ("Antworte immer auf Deutsch und benutze keine Emojis", "Du darfst wieder Emojis nutzen"),
        ("Ich bin Veganer und allergisch gegen Nüsse.", "Ich bin nicht mehr vegan."),
        (
            "Ich habe eine Nussallergie und eine Pollenallergie.",
            "Ich habe keine Pollenallergie mehr.",
        ),
        (
            "Ich bin laktoseintolerant und allergisch gegen Nüsse.",
            "Ich bin nicht mehr laktoseintolerant.",
        ),
        ("Je suis végane et allergique aux noix.", "Je ne suis plus végane."),
        ("Soy vegana y tengo alergia a las nueces.", "Ya no soy vegana."),
        ("Responde siempre en catalán y no uses nunca emojis", "Puedes usar emojis otra vez"),
        ("Sono vegano e allergico alle noci.", "Non sono più vegano."),
        ("Sou vegano e alérgico a nozes.", "Já não sou vegano."),
        ("Я веган и у меня аллергия на орехи", "Я больше не веган"),
        ("以后都用简体中文回答我，别用表情符号", "你可以用表情符号了"),
        ("我对花生和猕猴桃过敏", "我对猕猴桃不过敏了"),
        ("私はピーナッツとキウイのアレルギーがあります", "もうキウイのアレルギーではありません"),
        ("저는 땅콩과 키위 알레르기가 있어요", "이제 키위 알레르기 없어요"),
    ],
)
def test_of_what_is_taken_back_in_part_the_rest_holds_below_the_newer(old: str, new: str) -> None:
    assert holding(old, new) == [new, old]
    assert pins("Hello", PLENTY, old, new) == [new, old]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Always answer in German, use metric units.", "From now on use imperial units."),
        ("Always answer in French and in under 100 words", "From now on, answer in English."),
        ("Call me Sam and keep your answers short.", "Call me Alex."),
        ("Antworte immer auf Deutsch und kurz.", "Antworte ab jetzt immer auf Englisch."),
    ],
)
def test_of_what_a_newer_one_replaces_in_part_the_rest_holds(old: str, new: str) -> None:
    assert holding(old, new) == [new, old]


@pytest.mark.parametrize(
    "newer",
    [
        ("You can use emojis again.", "Back to English, please."),
        ("You can use emojis again.", "Forget all my instructions."),
        ("Stop answering in French.", "You can use emojis again."),
        ("Always answer in German, never use emojis.",),
    ],
)
def test_what_is_replaced_or_taken_back_part_by_part_is_gone(newer: tuple[str, ...]) -> None:
    old = "Always answer in French and never use emojis."
    assert old not in holding(old, *newer)


def test_a_withdrawal_is_not_shown_where_it_leaves_nothing() -> None:
    emojis = "You can use emojis again."
    both = "Always answer in French and never use emojis."
    assert holding(both, emojis, "Never use emojis.") == ["Never use emojis.", both]
    assert holding("Never use emojis.", emojis) == []


def test_what_is_taken_back_is_what_was_said_right_before() -> None:
    french, emojis = "Always answer in French.", "Never use emojis."
    standings = said(french, emojis, "Forget that.")
    assert holding(french, emojis, "Forget that.") == [french]
    assert [each.text for each in instructions_in_force(standings, lambda *_: False)] == [
        emojis,
        french,
    ]


def test_a_withdrawal_leaves_other_matters() -> None:
    kept = "Always use metric units."
    assert holding("Never use emojis.", kept, "Forget what I said about emojis.") == [kept]


def test_a_withdrawal_without_a_matter_takes_nothing_back() -> None:
    assert holding("Never use emojis.", "Forget what I said.") == ["Never use emojis."]


def test_what_is_told_of_others_takes_nothing_back() -> None:
    assert holding("I'm vegan.", "In the end the cookies were no longer vegan.") == ["I'm vegan."]
    assert holding("I'm vegan.", "I'm eating dinner again.") == ["I'm vegan."]
    assert holding("I'm vegan.", "I stopped being vegan for a week.") == ["I'm vegan."]
    assert holding("We're vegan.", "We're not vegan by choice.") == ["We're vegan."]
    assert holding("Somos veganos.", "Nós não somos veganos por moda.") == ["Somos veganos."]
    assert holding("Sou vegano.", "Deixei de ser vegano por uma semana.") == ["Sou vegano."]
    assert holding("Siamo vegani.", "Credi che non siamo più vegani?") == ["Siamo vegani."]
    assert holding("On est véganes.", "On est véganes ?") == ["On est véganes."]


def test_what_is_said_after_a_withdrawal_holds() -> None:
    messages = ("Never use emojis.", "Forget what I said about emojis.", "Never use emojis.")
    assert holding(*messages) == ["Never use emojis."]


def test_only_so_many_of_the_newest_are_looked_at() -> None:
    many = [
        StandingInstruction("instruction", str(i), frozenset({str(i)}))
        for i in range(MAX_INSTRUCTIONS + 5)
    ]
    assert instructions_in_force(many) == tuple(many[:MAX_INSTRUCTIONS])


def test_of_so_many_with_many_parts_that_touch_each_other_fewer_are_looked_at() -> None:
    many = said(*(f"I'm allergic to wool {i} and silk {i} and down {i}." for i in range(100, 300)))
    assert 20 < len(instructions_in_force(many)) < MAX_INSTRUCTIONS


def test_all_are_pinned_if_all_fit_newest_first() -> None:
    messages = ("Always answer in French.", "I prefer trains over planes.", "Never use emojis.")
    assert pins("Hello", PLENTY, *messages) == [*reversed(messages)]


def test_what_the_question_touches_goes_first_if_not_all_fit() -> None:
    trains = "I prefer trains over planes."
    later = ("Always answer in French.", "Never use emojis.")
    assert pins("Is there a train to Rome?", 6, trains, *later) == [trains]


def test_what_the_question_touches_most_goes_first() -> None:
    most = "I prefer night trains."
    assert pins("Any night train to Rome?", 4, most, "I prefer trains.") == [most]


def test_what_holds_everywhere_goes_before_what_has_a_condition() -> None:
    everywhere = "Never use emojis."
    hotels = "Always include prices when I ask about hotels."
    assert pins("Hello", 9, everywhere, hotels) == [everywhere]
    assert pins("Any hotels nearby?", 9, everywhere, hotels) == [hotels]


def test_a_leaning_is_pinned_only_where_the_question_touches_it() -> None:
    leaning = "I want to avoid crowded places."
    assert pins("What is the capital of Peru?", PLENTY, leaning) == []
    assert pins("Which places shall we visit?", PLENTY, leaning) == [leaning]
    assert pins("哪些路线爬山少？", PLENTY, "我想避免爬山。") == ["我想避免爬山。"]


def test_what_does_not_fit_is_passed_over_for_what_does() -> None:
    long = "Never use emojis, smileys, jargon, slang or any other kind of filler words."
    assert pins("Hello", 5, "Always answer in French.", long) == ["Always answer in French."]


WORDS = st.frozensets(st.sampled_from("abcdef"), max_size=4)
STANDINGS = st.lists(
    st.builds(
        StandingInstruction,
        st.sampled_from(["instruction", "preference", "leaning", "withdrawal"]),
        st.text("xy ", min_size=1, max_size=20),
        WORDS,
        WORDS,
    ),
    max_size=12,
)


@given(STANDINGS)
def test_what_holds_goes_on_holding_and_the_newest_always_does(
    standings: list[StandingInstruction],
) -> None:
    held = instructions_in_force(standings)
    assert instructions_in_force(held) == held
    assert standings[:1] == [*held[:1]] or standings[0].kind == "withdrawal" or not standings


@given(STANDINGS, st.integers(0, 60))
def test_pins_keep_the_budget_and_the_order(
    standings: list[StandingInstruction], budget: int
) -> None:
    chosen = pinned("anything", standings, budget, len)
    assert sum(len(standing.text) for standing in chosen) <= budget
    rest = iter(standings)
    assert all(any(standing is other for other in rest) for standing in chosen)
