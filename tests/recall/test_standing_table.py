"""Wishes as people type them, and sentences like them that are of one task, of today or of others.

Half of the table is to be noticed, half is not: what is noticed wrongly stands in every later
prompt.
"""

from __future__ import annotations

import pytest

from proxy.recall.standing.standing import find_instructions

WISHES = """
Hi! im allergic to shellfish btw
I'm severely allergic to bee stings.
I have a tree nut allergy
I'm coeliac, so no wheat please
I have been vegetarian since January, by the way, but I eat fish.
I went vegan in March
I went vegan starting in May
Nous sommes végétariens
Siamo tutti vegani
I'm now vegan
I stopped eating meat
I no longer eat pork
I quit eating meat
I gave up meat two years ago
I've stopped eating meat
I've given up dairy.
We are vegetarians
We're both vegan, what can we cook?
My doctor said I have diabetes
I was diagnosed with coeliac disease
I just found out that I have celiac disease
My doctor says I'm allergic to penicillin
i cant eat gluten
I dont eat beef
i'm a strict vegetarian
Im type 1 diabetic
Please call me Priya.
I go by Max
My pronouns are she/her.
No emojis, please.
dont ever use emojis
stop apologizing so much
Stop being so formal with me
Please stop replying in Spanish
Whenever you recommend a book, mention its length.
When you show me code, please use Julia and not Python.
When you answer, keep it short.
Address me by my first name
id prefer if you answered in short sentences
I'd rather you skipped the small talk in your answers
From now on, write dates as DD.MM.YYYY
from tomorrow on answer in Italian
Always put the code first, then the explanation
Never recommend restaurants with loud music
Always convert prices to euros when I ask about hotels
Ich bin allergisch gegen Haselnüsse.
bin allergisch auf Katzenhaare
Ich bin Veganer.
Ich bin seit Jahren Vegetarierin
Ich habe Zöliakie.
ich esse kein Fleisch
Ich vertrage keine Milch
Ich bin seit zwei Jahren Vegetarier
Ich esse seit Januar kein Fleisch mehr
Ich reagiere allergisch auf Nüsse
Ich reagiere auf Haselnüsse allergisch
Auf Bienenstiche reagiere ich stark allergisch
Wir sind beide Vegetarier
Wir sind Vegetarier und haben zwei Kinder
Wir sind vegan seit 2010
Wir leben vegan.
Ich darf keine Nüsse essen
Ich ernähre mich vegan
Bei mir wurde Zöliakie festgestellt
Nenn mich Jo.
Nenne mich bitte ab jetzt Dr. Weber
Bitte sieze mich.
Bitte keine Emojis
Verwende bitte keine Tabellen
Kannst du mir künftig Quellen nennen?
Antworte kuenftig kuerzer.
Soy alergica al polen
Soy celíaca.
No como cerdo
Tengo alergia a los gatos
Llamame Lola
Llámame Javi, por favor.
No uses emojis
Háblame siempre de usted
Ich bin gegen Pollen und Gräser allergisch
Ich bin Pescetarierin
Je suis allergique au pollen.
je suis vegetarienne
Je suis devenue végétarienne
Somos vegetarianos
Somos veganos y vivimos en Lima
Me hice vegana
Sono diventata vegetariana
Non mangio più carne
Não como mais carne
Я больше не ем мясо
Je ne mange pas de porc.
Je ne bois pas d'alcool
Appelle-moi Léa
Tutoie-moi, s'il te plaît
Pas d'emojis stp
Reponds toujours en anglais
Sono allergica alle fragole.
sono vegano
Non mangio carne.
Chiamami Gianni
Niente emoji, per favore
Sou alérgica a camarão
sou vegetariano
Não como carne
Me chame de Duda
У меня аллергия на кошек
Я веган
Я не ем свинину
Зови меня Лёша
我对海鲜过敏
我是素食者
我不吃牛肉
叫我阿明
以后回答别超过一百字
别再叫我老师
私は卵アレルギーです
豚肉は食べません
健太と呼んでください
저는 땅콩 알레르기가 있어요
돼지고기는 안 먹어요
أنا نباتية
لدي حساسية من الغبار
نادني سلمى
انا نباتي
لا آكل السمك
Schreib mir die Antworten immer auf Deutsch und kurz
Dame los precios siempre en euros
Keep your answers under 100 words please
keep answers short
pls no emojis
别用表情符号
I've got a nut allergy
i have type 2 diabetes
Hi, I have celiac disease, so no wheat
Remember me? I got a kiwi allergy
Jonas is allergic to peanuts, so whenever we talk about snacks keep that in mind
у меня кот Барсик и аллергия на орехи
Write the summary, and from now on, always use kilometers
About your answers: always keep them short
Bitte siezen Sie mich
Bitte duz mich
Seit zwei Jahren bin ich gegen Nüsse allergisch
Übrigens bin ich Vegetarierin
Seit 2020 esse ich kein Fleisch
J'ai la maladie coeliaque
J'ai la maladie cœliaque.
Tengo celiaquía
Tengo la enfermedad celíaca
Ho la celiachia
Tenho doença celíaca
У меня целиакия
叫我小王。
敬語を使わないでください
写一封信给房东，以后都用正式的语气
"""

NONE = """
About the kids: always keep them busy
About my nails: I always keep them short
Seit wann bin ich allergisch gegen Nüsse?
Seit gestern bin ich in Berlin.
Mon fils a la maladie cœliaque
No tengo celiaquía
¿Tengo celiaquía?
J'ai la maladie cœliaque ?
Ho la celiachia?
У меня целиакия?
Non ho la celiachia
Mia figlia dice che ho la celiachia
У моего сына целиакия
叫我起床。
你能叫我小王吗？
この手紙では敬語を使わないでください
敬語を使わない人が多い
How do I keep answers short in an exam?
How short should answers be?
Wie kurz sollen Antworten sein?
Come si cucina con la celiachia?
¿Qué es la celiaquía?
What did he mean by no emojis?
In this essay never use contractions
For the next answer, always use rhymes.
In my speech, never mention the divorce
Please never mention the price in the invitation
Never use the lift today, it's being repaired
For now always use the staging server
The parser must never crash, always return None
This function should always sort its input, never mutate the list
Never return null here
Write a limerick. Always end the line with a colour.
Draft a letter to my bank. Never mention the loan.
Can you write me a story? Always call the hero Bo.
Let's play a game: always answer with a riddle
I prefer Friday for the meeting
I prefer the red one
I don't eat lunch before noon
I don't eat meat on Fridays
I don't eat meat during Lent
When you give the dog water, add salt.
When you send him the letter, add my address.
When you answer the phone, say hello.
I don't eat out often, where should we go?
I only use it on weekends
I only eat at home these days
I went vegan for a month
I went vegan shopping yesterday
I went vegetarian food hunting
I gave up meat for Lent
I stopped eating meat for a week
The cookies were vegan
I gave up fish farming
We are vegetarians in this game
Are we vegan?
We are vegan-friendly
The character said I have diabetes
Ich reagiere allergisch auf Kritik
Ich reagiere allergisch auf dumme Fragen
Wir sind Vegetarier Nummer eins
Ich kann keine Suppe essen, wenn sie heiß ist
No somos veganos
I've been vegetarian before
Suppose I went vegan, what would I miss?
I became vegan once
I have never been vegan
I stopped eating out
The doctor said: I'm allergic to mornings
My colleague says I'm allergic to penicillin
I'm allergic to Mondays
How do I know if I'm allergic to cats?
Do I have a nut allergy?
I'm not allergic to anything
What do I do if I'm on a gluten-free diet?
I eat sugar-free gum
Is this bread gluten-free?
Bin ich laktoseintolerant?
Mein Sohn ist Nussallergiker
Ich bin gegen Pollen nicht allergisch
Mein Sohn ist gegen Pollen allergisch
Ho un'amica intollerante al lattosio
My wife is vegan
I'm vegan-friendly, I think
Call me tomorrow.
Call me crazy, but I like rain
Don't call me names
I go by train
Don't ever say that again
I hate it when you have to queue for hours
Don't forget that I always lose my keys
Never again!
No tables left at the restaurant
Stop writing to me, he said
He told me: never use emojis
Nenn mich ruhig verrückt
Nenn mir drei Städte in Italien
Ich bin nicht allergisch gegen Katzen
Ich bin keine Veganerin
Ich esse keine Zeitung, haha heute
Ich darf keine Zeit verlieren
Ich kann heute kein Fleisch essen
Ich lebe nicht vegan
Heute esse ich kein Fleisch
Schreib in diesem Brief immer Sie
Verwende in der nächsten Antwort keine Tabellen
Schreib mir ein Gedicht. Beginne immer mit einem Vokal.
Die Funktion soll immer None liefern
Ich bevorzuge die zweite Variante
Meine Schwester ist Vegetarierin
No soy alérgica a nada
No sé si soy celíaco
En esta carta no menciones nunca a mi jefe
Escribe un poema. Usa siempre versos cortos.
Llámame mañana
Mi hermano es vegano
No como mucho por la noche
Hoy no como carne
Je ne suis pas allergique aux chats
Dans cette lettre, ne parle jamais de mon frère
Appelle-moi demain
Écris un conte. Commence toujours par un animal.
Mon fils est allergique aux noix
Je ne mange pas beaucoup le soir
Non sono vegetariano
In questa lettera non nominare mai mio padre
Chiamami domani
Não sou vegano
Me chame amanhã
Nesta carta, nunca use gírias
В этом письме никогда не упоминай брата
У меня нет аллергии на кошек
Позови меня завтра
Мой брат веган
我对猫不过敏
我没有对花生过敏
这封信里永远不要提到我哥哥
我今天不吃牛肉
帮我写一首诗，每次都要用秋天开头
我不吃了
叫我起床
この手紙では絶対に兄のことを書かないでください
私はアレルギーはありません
今日は肉は食べません
이 편지에서는 절대 형 이야기를 하지 마세요
저는 알레르기가 없어요
في هذه الرسالة لا تذكر أخي أبدا
ليس لدي حساسية من القطط
أنا لست نباتيا
How do I keep answers short?
Keep answers in a separate file
Keep your answers short in this quiz
Do you think I have diabetes?
Can I have type 2 diabetes and not know it?
What if I've got a nut allergy?
У мужа кот и аллергия на орехи
У меня нет кота и аллергии
Whenever we talk about snacks she gets hungry
你别用表情看我
Write a poem about autumn, always start lines with a vowel
Generate a product description, never mention the price, always end with a question
Help me write an email, and please never use emojis
Schreib mir einen Newsletter, verwende nie das Wort Rabatt
Schreib eine Mail an den Chef und benutze immer die Sie-Form
Écris-moi une newsletter pour Noël, n'utilise jamais le mot 'promotion' dedans
Écris un poème sur l'automne et utilise toujours des rimes
Escríbeme un correo para el jefe, usa siempre un tono formal
Scrivi una risposta a una recensione cattiva, usa sempre un tono molto formale
Escreva um e-mail ao cliente, nunca use a palavra desconto
Напиши письмо директору, всегда используй формальный тон
写一封信给房东，永远用正式的语气
手紙を書いて、必ず敬語を使って
편지를 써 줘, 항상 존댓말을 써 주세요
اكتب رسالة للمدير، استخدم دائما أسلوبا رسميا
"""


def _lines(table: str) -> list[str]:
    return table.strip().split("\n")


@pytest.mark.parametrize("text", _lines(WISHES))
def test_what_is_to_last_is_noticed(text: str) -> None:
    assert [each.kind for each in find_instructions(text)] not in ([], ["withdrawal"])


@pytest.mark.parametrize("text", _lines(NONE))
def test_what_is_of_one_task_or_of_others_is_not(text: str) -> None:
    assert [each for each in find_instructions(text) if each.kind != "withdrawal"] == []


def test_half_of_the_table_is_none() -> None:
    assert len(set(_lines(WISHES))) >= 80 <= len(set(_lines(NONE)))
