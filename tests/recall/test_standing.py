"""What is noticed as standing, in eleven languages."""

from __future__ import annotations

import pytest

from proxy.recall.standing.in_force import instructions_in_force
from proxy.recall.standing.standing import find_instructions, has_instruction

INSTRUCTIONS = [
    "Always answer in French.",
    "always use metric units please",
    "Never use emojis.",
    "Don't ever call me sir.",
    "Please never apologize.",
    "Can you always include sources?",
    "I want you to always answer briefly.",
    "From now on, answer in German.",
    "from now on please keep it short",
    "Answer in Spanish from now on.",
    "Going forward, no emojis in your answers.",
    "Please use SI units whenever you give a measurement.",
    "When I ask about recipes, list the calories.",
    "Every time I ask about code, explain it step by step.",
    "Always include the price when I ask about hotels.",
    "If I ask for a translation, please give me two versions.",
    "Remember to cite your sources.",
    "Please remember that I prefer window seats.",
    "Call me Sam.",
    "Please stop using bullet points.",
    "Thanks! One more thing: always show both currencies.",
    "Don't use tables again.",
    "When I say 'deploy', I mean staging.",
    "Whenever I mention the office, I mean the one in Lyon.",
    "跟代码有关的回答请都用 Go 写，注释用英文",
    "邮件请一律用英文写",
    "我说“公司”的时候，指的是深圳的那家",
    "コードに関する回答はすべてGoで書いてください",
    "Wenn ich 'die Firma' sage, meine ich die Schreinerei.",
    "ponme siempre los precios en euros",
    "avísame siempre antes de borrar algo",
    "Cuando digo 'la casa', me refiero a la de Cádiz.",
    "Quand je dis « le bureau », je parle de celui de Lyon.",
    "Quando dico 'il cliente', intendo Rossi.",
    "Когда я говорю «база», я имею в виду Postgres.",
    "请总是用中文回答。",
    "从现在起都用英文回答我",
    "以后请简短回答",
    "今后不要用表情符号。",
    "不要再用表格了",
    "當我問到食譜時，請列出熱量",
    "记住，我不吃辣。",
    "以后叫我小林就好",
    "每次回答都要附上来源",
    "いつも日本語で答えてください。",
    "これからは敬語を使わないでください。",
    "レシピについて聞いたら、カロリーも教えてください。",
    "必ず出典を示してください。",
    "Antworte ab jetzt immer auf Deutsch.",
    "Ab sofort bitte nur kurze Antworten.",
    "Verwende niemals Emojis.",
    "Bitte duze mich immer.",
    "Wenn ich nach Rezepten frage, nenne die Kalorien.",
    "Responde siempre en español.",
    "A partir de ahora, usa el sistema métrico.",
    "Nunca uses emojis.",
    "Cuando te pregunte por recetas, incluye las calorías.",
    "Réponds toujours en français.",
    "Désormais, tutoie-moi.",
    "N'utilise jamais d'émojis.",
    "Quand je te demande une recette, donne les calories.",
    "Responda sempre em português.",
    "A partir de agora, use o sistema métrico.",
    "Nunca use emojis, por favor.",
    "Quando eu perguntar sobre receitas, inclua as calorias.",
    "Rispondi sempre in italiano.",
    "D'ora in poi dammi del tu.",
    "Non usare mai le emoji.",
    "Всегда отвечай по-русски.",
    "С этого момента пиши кратко.",
    "Никогда не используй эмодзи.",
    "أجب دائما بالعربية.",
    "من الآن فصاعدا، استخدم النظام المتري.",
    "لا تستخدم الرموز التعبيرية أبدا.",
    "항상 한국어로 대답해 주세요.",
    "앞으로는 존댓말을 쓰지 마세요.",
    "절대 이모지를 쓰지 말아 줘.",
    "please always respond in bullet points",
    "always give me the metric conversions",
    "In all your answers, use British spelling.",
    "I'd like you to always end with a summary",
    "Make sure to always double check your math",
    "could you please always cite papers?",
    "Going forward please only use TypeScript",
    "From this point on, speak to me in Portuguese",
    "whenever I ask for a recipe, make it vegetarian",
    "Never suggest pork dishes.",
    "Don't ever recommend horror movies to me.",
    "Never include spoilers.",
    "No emojis from now on please.",
    "Please no emojis from now on",
    "You should always ask me before deleting files.",
    "Always respond as if I were a beginner",
    "I want short answers from now on",
    "Please address me as Dr. Lee.",
    "My name is Tom, please call me Tommy.",
    "Use kilometers instead of miles from now on.",
    "Keep your answers under 100 words from now on.",
    "Keep answers short going forward.",
    "Stop calling me bro.",
    'Do not use the word "delve" ever again.',
    "Always assume I'm using Linux.",
    "If I ask about medication, remind me to check with my doctor.",
    "Remember I prefer metric.",
    "请以后回答都用繁体字",
    "以后推荐餐厅的时候不要推荐辣的",
    "我问代码的时候请用Python",
    "以后别叫我先生",
    "从今天起请用简体中文",
    "每次回答前先给一个总结",
    "今後は箇条書きで答えて",
    "私のことは健と呼んでください",
    "Bitte antworte in Zukunft kürzer.",
    "Ich möchte, dass du immer Quellen angibst.",
    "Nenn mich ab jetzt Max.",
    "Por favor, respóndeme siempre con ejemplos",
    "No uses emojis nunca más",
    "À l'avenir, réponds plus brièvement",
    "Appelle-moi toujours par mon prénom",
    "Parlami sempre in dialetto",
    "Всегда указывай источники",
    "Теперь отвечай только на английском",
    "Пожалуйста, впредь отвечай короче",
    "من فضلك أجب دائمًا باختصار",
    "앞으로 반말로 말해 줘",
    "항상 출처를 알려 주세요",
]

PREFERENCES = [
    "We don't eat meat.",
    "We never eat pork or fish.",
    "I prefer short answers.",
    "I'm planning a trip and I prefer trains over planes.",
    "I usually prefer working in the morning, how can I plan that?",
    "I like my code with comments.",
    "I like it when you give examples.",
    "I'm allergic to peanuts.",
    "我更喜欢坐火车。",
    "我偏好简洁的设计",
    "我比較喜歡喝茶",
    "我对花生过敏",
    "私は短い説明のほうが好きです。",
    "コーヒーより紅茶のほうが好きです。",
    "Ich bevorzuge kurze Antworten.",
    "Ich ziehe den Zug dem Flugzeug vor.",
    "Mir sind kurze Texte lieber.",
    "Prefiero los trenes a los aviones.",
    "Je préfère le train à l'avion.",
    "Prefiro o comboio ao avião.",
    "Preferisco il treno all'aereo.",
    "Я предпочитаю поезда самолётам.",
    "أنا أفضل القطار على الطائرة.",
    "저는 비행기보다 기차를 더 좋아해요.",
    "짧은 답변을 선호합니다.",
    "For future reference, I prefer tabs over spaces",
    "Just so you know, I prefer dark roast coffee.",
    "I generally prefer aisle seats.",
    "my preference is window seats",
    "I like concise answers.",
    "I only drink decaf.",
    "Remember that I'm lactose intolerant.",
    "我更倾向于早上锻炼",
    "私は朝に運動する方が好きです",
    "Ich bevorzuge vegetarische Rezepte",
    "Prefiero que me hables de tú",
    "Je préfère les réponses courtes",
    "Prefiro respostas curtas",
    "Preferisco risposte brevi",
]

LEANINGS = [
    "I'd prefer if you answered in Italian",
    "I would rather have short answers.",
    "I'd like to keep it simple.",
    "I want to avoid crowded places.",
    "I'm more comfortable with written plans.",
    "I'm looking for hotels with a garden.",
    "我想避免人多的地方。",
    "Ich hätte lieber kurze Antworten.",
    "Ich möchte Umwege vermeiden.",
    "Preferiría respuestas cortas.",
    "Quiero evitar los atascos.",
    "Je préférerais que tu me tutoies.",
    "Je voudrais éviter les bouchons.",
    "Preferirei risposte brevi.",
    "Preferiria respostas curtas.",
    "Я бы предпочёл короткие ответы.",
]

WITHDRAWALS = [
    "Forget what I said about emojis.",
    "You don't need to answer in French any more.",
    "Ignore my earlier instructions.",
    "不用再用英文回答了",
    "忘掉我之前说的格式要求",
    "もう英語で答えなくていいです。",
    "Vergiss, was ich über Emojis gesagt habe.",
    "Olvida lo que dije sobre los emojis.",
    "Oublie ce que j'ai dit sur les émojis.",
    "Dimentica quello che ho detto sulle emoji.",
    "Esqueça o que eu disse sobre emojis.",
    "Забудь, что я говорил про эмодзи.",
    "이제 영어로 대답하지 않아도 돼요.",
]


@pytest.mark.parametrize("text", INSTRUCTIONS)
def test_an_instruction_is_noticed(text: str) -> None:
    assert [(s.kind, s.text) for s in find_instructions(text)][-1:] == [
        ("instruction", notice_text(text))
    ]


def notice_text(text: str) -> str:
    """The sentence of the examples: all but a first "Thanks!"."""
    return text.removeprefix("Thanks! ")


@pytest.mark.parametrize("text", PREFERENCES)
def test_a_preference_is_noticed(text: str) -> None:
    assert [(s.kind, s.text) for s in find_instructions(text)] == [("preference", text)]


@pytest.mark.parametrize("text", LEANINGS)
def test_a_preference_said_softly_is_a_leaning(text: str) -> None:
    assert [(s.kind, s.text) for s in find_instructions(text)] == [("leaning", text)]


@pytest.mark.parametrize("text", WITHDRAWALS)
def test_a_withdrawal_is_noticed(text: str) -> None:
    assert [(s.kind, s.text) for s in find_instructions(text)] == [("withdrawal", text)]


@pytest.mark.parametrize("text", [*INSTRUCTIONS, *PREFERENCES, *LEANINGS, *WITHDRAWALS])
def test_a_message_that_holds_any_is_flagged(text: str) -> None:
    assert has_instruction(text)


def test_two_messages_that_say_the_same_are_two_instructions() -> None:
    (older,), (newer,) = (
        find_instructions("Always answer in French."),
        find_instructions("Always answer in French."),
    )
    assert older == newer and older is not newer
    assert instructions_in_force([newer, older]) == (newer,)
