"""What is lifted of allergies, illnesses and diets: only what the user states to be over.

A pin that stays a while too long costs a line of a prompt; one that is lost may cost a life.
"""

from __future__ import annotations

import pytest

from proxy.recall.standing.in_force import instructions_in_force
from proxy.recall.standing.standing import find_instructions


def holding(*messages: str) -> list[str]:
    """What messages, oldest first, leave standing: newest first."""
    said = [each for message in reversed(messages) for each in reversed(find_instructions(message))]
    return [standing.text for standing in instructions_in_force(said)]


@pytest.mark.parametrize(
    ("old", "asked"),
    [
        ("I have celiac disease.", "How do I know that I don't have celiac disease?"),
        ("I have a nut allergy.", "how do i know i dont have a nut allergy"),
        ("I have a nut allergy.", "I don't have a nut allergy, do I?"),
        ("I don't eat nuts.", "can i eat nuts again"),
        ("I'm allergic to walnuts.", "Do you think I'm no longer allergic to walnuts?"),
        ("I have a nut allergy.", "Has my doctor said that I no longer have a nut allergy?"),
        ("I have a nut allergy.", "If the tests show I no longer have a nut allergy, I eat some."),
        ("I have type 2 diabetes.", "Imagine I no longer have diabetes: what could I eat?"),
        ("I have type 2 diabetes.", "Last night I dreamed that I no longer have diabetes."),
        ("Ich habe Zöliakie.", "Glaubst du, ich habe keine Zöliakie?"),
        ("Ich habe eine Nussallergie.", "Woher weiß ich das, ich habe keine Nussallergie?"),
        ("J'ai une allergie aux noix.", "Comment savoir si je n'ai plus d'allergie aux noix ?"),
        ("Je suis allergique aux noix.", "Tu crois que je ne suis plus allergique aux noix ?"),
        ("Tengo alergia a las nueces.", "¿Cómo sé si ya no tengo alergia a las nueces?"),
        ("Soy alérgico a las nueces.", "¿Crees que ya no soy alérgico a las nueces?"),
        ("Ho un'allergia alle noci.", "Come capisco se non ho più un'allergia alle noci?"),
        ("Tenho alergia a nozes.", "Como sei se não tenho mais alergia a nozes?"),
        ("У меня аллергия на орехи.", "Как узнать, что у меня больше нет аллергии на орехи?"),
        ("我乳糖不耐。", "怎么知道我没有乳糖不耐？"),
        ("我对核桃过敏。", "我对核桃不过敏了吗"),
        ("私はくるみアレルギーです。", "もうくるみアレルギーではありませんか？"),
        ("I'm allergic to nuts.", "Say I'm no longer allergic to nuts, what would you cook?"),
        ("I'm allergic to nuts.", "Let's say, I'm no longer allergic to nuts."),
        ("I'm allergic to nuts.", "A story that starts with: I'm not allergic to nuts anymore"),
        ("I'm allergic to nuts.", "A poem in two lines: I'm no longer allergic to nuts"),
        ("Ich habe eine Nussallergie.", "Der erste Satz: ich habe keine Nussallergie mehr."),
        ("Je suis allergique aux noix.", "Disons que je ne suis plus allergique aux noix."),
        ("No como cerdo.", "¿Puedo volver a comer cerdo?"),
        ("No como cerdo.", "Cuando vuelvo a comer cerdo me siento mal."),
    ],
)
def test_what_is_asked_supposed_or_dreamt_lifts_nothing(old: str, asked: str) -> None:
    assert holding(old, asked) == [old]


@pytest.mark.parametrize(
    ("old", "opinion"),
    [
        ("I have a nut allergy.", "My doctor is not sure that I don't have a nut allergy."),
        ("I have a nut allergy.", "My doctor has not said that I no longer have a nut allergy."),
        ("I have a nut allergy.", "I don't have a nut allergy, my boss said."),
        ("I have type 2 diabetes.", "My neighbour thinks I don't have diabetes."),
        ("I have type 2 diabetes.", "Everybody at work acts as if I don't have diabetes."),
        ("Ich habe Zöliakie.", "Mein Chef meint, ich habe keine Zöliakie."),
        ("Je suis allergique aux noix.", "Mon chef pense que je ne suis plus allergique aux noix."),
        ("Tengo alergia a las nueces.", "Mi jefe cree que ya no tengo alergia a las nueces."),
        ("Ho un'allergia alle noci.", "Il mio capo pensa che non ho più un'allergia alle noci."),
        ("Tenho alergia a nozes.", "Meu chefe acha que não tenho mais alergia a nozes."),
        ("У меня аллергия на орехи.", "Врач думает, что у меня нет аллергии на орехи."),
        ("我对花生过敏", "老板说我对花生不过敏"),
        ("我对花生过敏", "据说我对花生不过敏了"),
        ("I'm allergic to nuts.", "Supposedly I'm no longer allergic to nuts."),
        ("I'm allergic to nuts.", "I'm no longer allergic to nuts, I think."),
        ("I'm allergic to nuts.", "A false test showed I'm no longer allergic to nuts."),
        ("Ich habe eine Nussallergie.", "Angeblich: ich habe keine Nussallergie mehr."),
        ("Ich habe eine Nussallergie.", "Ich habe keine Nussallergie mehr, glaube ich."),
        ("Ich habe eine Nussallergie.", "Ein falscher Test ergab, ich habe keine Nussallergie."),
        ("Je suis allergique aux noix.", "Apparemment, je ne suis plus allergique aux noix."),
        ("Soy alérgico al polen.", "Una prueba errónea dice que ya no soy alérgico al polen."),
        ("Sono allergico alle noci.", "A quanto pare non sono più allergico alle noci."),
        ("Sou alérgico a nozes.", "Já não sou alérgico a nozes, acho."),
        ("У меня аллергия на орехи.", "У меня якобы больше нет аллергии на орехи."),
        ("У меня целиакия.", "Ложный тест показал, что у меня нет целиакии."),
    ],
)
def test_what_others_think_lifts_nothing(old: str, opinion: str) -> None:
    assert holding(old, opinion) == [old]


@pytest.mark.parametrize(
    ("old", "put_right"),
    [
        ("I have a nut allergy.", "I don't have a mild nut allergy, it's a severe one."),
        ("I have a nut allergy.", "I don't have only a nut allergy."),
        (
            "I have a nut allergy.",
            "I don't have a nut allergy and an egg allergy, just the nut one.",
        ),
        ("I'm allergic to milk.", "I don't have a milk intolerance, it's a real allergy."),
        ("I'm diabetic.", "I don't have type 1 diabetes, it's type 2."),
        ("I have type 2 diabetes.", "I do not have diabetes type 1."),
        ("I'm allergic to nuts.", "I'm no longer vegan and I'm still allergic to nuts."),
        ("I'm allergic to nuts.", "I'm no longer vegan, I'm still allergic to nuts."),
        ("Ich bin Diabetikerin.", "Ich bin keine Diabetikerin vom Typ 1."),
        ("Ich habe eine Milchallergie.", "Ich habe keine Milchallergie, sondern eine schwere."),
        ("Ich habe eine Nussallergie.", "Ich bin nicht mehr vegan und habe eine Nussallergie."),
        ("Je suis diabétique.", "Je ne suis plus diabétique de type 1 mais de type 2."),
        ("Soy alérgico a las nueces.", "Ya no soy vegano, sigo siendo alérgico a las nueces."),
        ("Tengo alergia a las nueces.", "Ya no tengo una alergia leve a las nueces, es grave."),
        ("Ho un'allergia alle noci.", "Non ho più un'allergia lieve alle noci, è grave."),
        ("Tenho alergia a nozes.", "Não tenho mais alergia leve a nozes, é grave."),
        ("У меня аллергия на орехи.", "У меня нет аллергии на орехи и яйца, только на орехи."),
        ("我对花生过敏", "我对花生不过敏，只是对核桃过敏"),
    ],
)
def test_what_is_put_right_lifts_nothing(old: str, put_right: str) -> None:
    assert old in holding(old, put_right)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I have a nut allergy.", "I do not have just a nut allergy, I have a fish allergy too."),
        ("I'm lactose intolerant.", "I'm not lactose intolerant, I'm allergic to milk."),
        ("I'm vegetarian.", "I'm no longer vegetarian, I'm vegan."),
        ("Ich bin Veganer.", "Ich bin nicht mehr vegan, ich bin Vegetarier."),
        ("Je suis végane.", "Je ne suis plus végane, je suis végétarienne."),
        ("Soy vegano.", "Ya no soy vegano, soy vegetariano."),
        ("Sono vegano.", "Non sono più vegano, sono vegetariano."),
        ("Sou vegano.", "Já não sou vegano, sou vegetariano."),
        ("Я веган", "Я больше не веган, я вегетарианец"),
    ],
)
def test_who_tells_what_it_is_instead_is_pinned_with_all_of_it(old: str, new: str) -> None:
    assert holding(old, new) == [new]


@pytest.mark.parametrize(
    ("old", "thing"),
    [
        ("I'm lactose intolerant.", "I don't eat lactose-free yoghurt, it's too sweet."),
        ("I'm allergic to gluten.", "I don't eat gluten-free pasta, I prefer rice."),
        ("I'm allergic to gluten.", "I can't eat gluten-free bread."),
        ("I'm gluten intolerant.", "I prefer gluten-free beer."),
        ("I eat gluten-free.", "I don't need to eat gluten-free bread every day."),
        ("I'm on a gluten-free diet.", "I don't eat gluten-free at restaurants I don't trust."),
        ("I have type 2 diabetes.", "I no longer have diabetes test strips."),
        ("Ich esse glutenfrei.", "Ich esse nicht mehr glutenfrei als nötig."),
    ],
)
def test_who_does_not_like_one_thing_without_it_tolerates_it_no_better(
    old: str, thing: str
) -> None:
    assert old in holding(old, thing)


@pytest.mark.parametrize(
    ("old", "other"),
    [
        ("Ich vertrage keine Nüsse.", "Ich vertrage wieder Kaffee."),
        ("Ich trinke keinen Alkohol.", "Ich trinke wieder Kaffee."),
        ("Ich esse kein Schweinefleisch.", "Ich esse wieder mehr."),
        ("I eat gluten-free.", "I no longer eat sugar-free."),
        ("I eat gluten-free because of celiac disease.", "I no longer eat dairy-free."),
        ("I don't eat pork.", "I can eat bread again."),
    ],
)
def test_who_eats_one_food_again_says_nothing_of_others(old: str, other: str) -> None:
    assert holding(old, other) == [old]


@pytest.mark.parametrize(
    ("old", "narrower"),
    [
        ("I'm allergic to nuts.", "I'm no longer allergic to pine nuts."),
        ("I'm allergic to nuts.", "I'm no longer allergic to pine nuts, so which nuts are fine?"),
        ("I'm allergic to tree nuts.", "I'm no longer allergic to pine nuts."),
        ("I'm allergic to milk.", "I'm no longer allergic to milk chocolate."),
        ("I have a nut allergy.", "I no longer have a pine nut allergy."),
        ("I'm allergic to nuts and eggs.", "I'm no longer allergic to pine nuts."),
        ("I don't eat pork.", "I eat pork sausages again."),
        ("Ich bin gegen Milch allergisch.", "Ich bin nicht mehr gegen rohe Milch allergisch."),
        ("Ich habe eine Nussallergie.", "Ich habe keine Erdnussallergie mehr."),
        ("Je suis allergique aux noix.", "Je ne suis plus allergique aux noix de coco."),
        ("Soy alérgico a las nueces.", "Ya no soy alérgico a las nueces de macadamia."),
        ("Tengo alergia a las nueces.", "Ya no tengo alergia a las nueces pecanas."),
        ("Sono allergica alle noci.", "Non sono più allergica alle noci di cocco."),
        ("Tenho alergia a nozes.", "Não tenho mais alergia a nozes pecã."),
        ("У меня аллергия на орехи.", "У меня больше нет аллергии на кедровые орехи."),
        ("我对花生过敏", "我对花生油不过敏了"),
        ("我对坚果过敏", "我对松子坚果不过敏了"),
        ("私は卵アレルギーです。", "もうくるみアレルギーではありません。"),
        (
            "Seit zwei Jahren bin ich gegen Nüsse allergisch.",
            "Ich bin seit zwei Jahren nicht mehr allergisch gegen Pollen.",
        ),
    ],
)
def test_what_is_narrower_lifts_nothing_wider(old: str, narrower: str) -> None:
    assert old in holding(old, narrower)


def test_a_wider_allergy_holds_beside_a_narrower_one_that_is_told_later() -> None:
    wide, narrow = "I'm allergic to nuts.", "I'm allergic to pine nuts."
    assert holding(wide, narrow) == [narrow, wide]


@pytest.mark.parametrize(
    ("old", "how"),
    [
        ("I'm a vegetarian.", "I'm not a vegetarian for religious reasons."),
        ("I'm vegan.", "I'm not vegan because it is in fashion."),
        ("I'm vegan.", "I'm not vegan by choice."),
        ("I'm diabetic.", "I'm not diabetic enough to need insulin."),
        ("I'm lactose intolerant.", "I'm not lactose intolerant by birth."),
        ("I'm on a gluten-free diet.", "I'm not on a gluten-free diet for fun."),
        ("Ich bin Vegetarier.", "Ich bin kein Vegetarier aus Überzeugung."),
        ("Ich habe Zöliakie.", "Ich habe keine Zöliakie in der schweren Form."),
        ("Je suis végétarien.", "Je ne suis pas végétarien par conviction."),
        ("Je suis végane.", "Je ne suis pas végane depuis longtemps."),
        ("Soy vegana.", "No soy vegana por moda."),
        ("Soy celíaca.", "No soy celíaca grave."),
        ("Sono celiaca.", "Non sono celiaca dalla nascita."),
    ],
)
def test_who_tells_why_or_how_much_has_not_given_it_up(old: str, how: str) -> None:
    assert holding(old, how) == [old]


@pytest.mark.parametrize(
    ("old", "over"),
    [
        ("I'm vegan.", "I'm not vegan anymore."),
        ("I'm vegan.", "I'm not vegan at all!"),
        ("I'm vegan.", "I'm not vegan, I eat fish."),
        ("I'm vegan.", "I'm no longer vegan because of my iron."),
        ("I'm on a gluten-free diet.", "I'm not on a gluten-free diet any more."),
        ("Je suis végétarienne.", "Je ne suis plus végétarienne depuis un an."),
        ("Ich bin vegan.", "Ich bin nicht mehr vegan aus Gesundheitsgründen."),
        ("Soy vegana.", "No soy vegana, me equivoqué."),
        ("Ich bin Vegetarier.", "Ich bin kein Vegetarier mehr."),
        ("I have a nut allergy.", "The doctor says I no longer have a nut allergy."),
        ("I have a nut allergy.", "My allergist told me that I no longer have a nut allergy."),
        ("I have a nut allergy.", "I no longer have a nut allergy, the doctor said so."),
        ("I have a nut allergy.", "I no longer have a nut allergy, so which nuts go into a cake?"),
        ("I have a nut allergy.", "Turns out that I don't have a nut allergy!"),
        ("I have celiac disease.", "I don't have celiac disease, it was a mistake."),
        ("I have type 2 diabetes.", "I no longer have type 2 diabetes."),
        ("I eat gluten-free.", "I don't eat gluten-free anymore."),
        ("I'm vegan.", "Please note that I'm no longer vegan."),
        ("I don't eat pork.", "I eat pork again."),
        ("Ich habe eine Nussallergie.", "Der Arzt sagt, ich habe keine Nussallergie mehr."),
        ("Ich habe eine Nussallergie.", "Ich habe keine Nussallergie mehr, was backe ich jetzt?"),
        ("Ich bin Pescetarierin.", "Ich bin keine Pescetarierin mehr."),
        ("Ich bin gegen Nüsse allergisch.", "Ich bin gegen Nüsse nicht mehr allergisch."),
        ("Ich bin gegen Nüsse allergisch.", "Ich bin nicht mehr gegen Nüsse allergisch."),
        ("Ich trinke keine Milch.", "Ich trinke wieder Milch."),
        ("Je suis allergique aux noix.", "Le médecin dit que je ne suis plus allergique aux noix."),
        ("Tengo alergia a las nueces.", "El médico dice que ya no tengo alergia a las nueces."),
        ("Ho un'allergia alle noci.", "Il medico dice che non ho più un'allergia alle noci."),
        ("Tenho alergia a nozes.", "O médico disse que não tenho mais alergia a nozes."),
        ("У меня аллергия на орехи.", "Врач сказал, что у меня больше нет аллергии на орехи."),
        ("我对花生过敏", "医生说我对花生不过敏了"),
        ("我对花生过敏", "我不再对花生过敏了"),
        ("我对花生过敏", "我对花生已经不过敏了"),
        ("I'm allergic to nuts.", "I'm finally no longer allergic to any nuts, thankfully!"),
        ("I'm celiac.", "I don't have celiac disease after all."),
        ("I don't eat pork.", "I can finally eat pork again."),
        ("I'm allergic to nuts.", "Good news: I'm no longer allergic to nuts."),
        ("I'm allergic to nuts.", "The diagnosis was wrong, I'm no longer allergic to nuts."),
        ("Seit zwei Jahren bin ich Veganer.", "Ich bin nicht mehr vegan."),
        ("Je ne mange pas de porc.", "Je mange de nouveau du porc."),
        ("Je suis allergique au lait.", "Je ne suis plus du tout allergique au lait."),
        ("Je suis allergique au lait.", "Je ne suis plus allergique au lait depuis un an."),
        ("Je suis cœliaque.", "Je ne suis plus coeliaque."),
        ("Soy celíaca.", "No soy celíaca."),
        ("Tengo celiaquía.", "Ya no tengo celiaquía."),
        ("No como cerdo.", "Vuelvo a comer cerdo."),
        ("No como cerdo.", "Como cerdo otra vez."),
        ("Sono celiaca.", "Non sono celiaca."),
        ("Ho la celiachia.", "Non ho più la celiachia."),
        ("Non mangio carne.", "Mangio di nuovo la carne."),
        ("Sono allergica agli arachidi.", "Non sono più allergica agli arachidi da un anno."),
        ("Não como carne.", "Voltei a comer carne."),
        ("Sou alérgica a camarão.", "Já não sou alérgica ao camarão."),
        ("Я не ем свинину.", "Я снова ем свинину."),
        ("У меня целиакия.", "У меня больше нет целиакии."),
        ("私は卵アレルギーです。", "もう卵アレルギーはありません。"),
    ],
)
def test_what_the_user_states_or_a_doctor_says_is_lifted(old: str, over: str) -> None:
    assert holding(old) == [old]
    assert holding(old, over) == []
