"""What models answer when they are asked for a summary: which of it is one."""

from __future__ import annotations

import pytest

from proxy.summary.writer import check_summary
from tests.support.talk.summarising import words

TEMPLATE = """\
You keep the running summary of a conversation.

Summary so far:
{summary}

New lines of the conversation, oldest first:
{new_lines}

Write the new summary in the language of the conversation,
in the third person. Answer no questions.
"""
GOOD = "Kai lives in Bern and asked for a train to Rome."


def faults(text: str, template: str = TEMPLATE, most: int = 60) -> str | None:
    return check_summary(text, template, most, words).fault


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        "Anna is sorry that she missed the call; the AI offered to help her write an apology.",
        "I'm late, was the name of the play that Tom wanted tickets for.",
        "The user said: I'm sorry, I can't come. The AI suggested Tuesday.",
        "As an AI researcher, Dana works on summaries; she asked for papers.",
        "As a language teacher, Kim wants exercises for beginners.",
        "Hello World programs in three languages were compared.",
        "Unfortunately, the flight was cancelled, and Mia rebooked for Monday.",
        "Sure Start is the programme that Lena applied to; the deadline is 3 May.",
        "Certainty about the diagnosis is still missing; tests follow on Friday.",
        "Of course fees, 300 EUR are still to be paid by Jonas.",
        "Please Please Me was the album that they discussed first.",
        "Thanksgiving dinner is planned for 12 people; Bo brings the pie.",
        "Let It Be was chosen as the wedding song. Open: who plays it?",
        "I, Robot is the book that the human reads; they are at chapter 4.",
        'Open questions: "Can you help me?" was not answered.',
        "Open question: what would you take to Mars?",
        "Kai asked whether they should go by train or by car. Decision open: train or car?",
        "There is no decision yet on the colour; blue and red remain.",
        "There are no open questions. Kai has booked the hotel in Rome.",
        "- Human: likes tea\n- lives in Bern\n- will call back on 3 May",
        "The AI explained user: and assistant: roles.\nKai understood.",
        "What Kai wants: a quiet flat near the lake, at most 1500 a month.",
        "How the engine works was explained to Bo, who thanked the AI.",
        "Kai entschuldigte sich: Es tut mir leid. Die AI schlug einen neuen Termin vor.",
        "Leider fiel der Zug aus; Kai fährt nun am Montag. Offen: Kommt sie mit?",
        "Als KI-Forscherin sucht Dana Daten; die AI nannte drei Quellen.",
        "Ich-Erzähler oder nicht, das war Annas Frage zu ihrem Roman.",
        "Malheureusement, le train a été annulé ; Léa partira lundi.",
        "Désolée d'être en retard, Léa a demandé un nouveau rendez-vous.",
        "Ana lo siente mucho y pidió otra cita; la IA propuso el martes.",
        "Como ingeniera de IA, Ana busca datos sobre el clima.",
        "用户住在伯尔尼，想坐火车去罗马。助手建议周一出发。",
        "小王对迟到表示抱歉，双方改约周二见面。",
        "利用者はベルンに住み、ローマ行きの列車を探している。",
        "田中さんは申し訳ないと言い、会議は火曜日に変更された。",
        "Кай живёт в Берне и ищет поезд до Рима.",
    ],
)
def test_a_summary_is_taken_as_it_is(text: str) -> None:
    verdict = check_summary(text, TEMPLATE, 60, words)
    assert (verdict.fault, verdict.text) == (None, text)
    assert verdict.tokens == words(text)


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.",
        "I\N{RIGHT SINGLE QUOTATION MARK}m sorry, but I cannot summarize this conversation.",
        "Sorry, I don't have access to earlier messages.",
        "I apologize for the confusion. How can I help?",
        "My apologies, I misunderstood your request.",
        "I cannot fulfil this request.",
        "I am unable to assist with that request.",
        "I don't see any conversation to summarize.",
        "As an AI, I have no personal opinions.",
        "As an AI language model, I cannot remember earlier chats.",
        "As a large language model I was trained on text.",
        "Unfortunately, I cannot open the file that you have sent.",
        "Hello! How can I assist you today?",
        "Hi there! What can I do for you?",
        "Sure! I'd be happy to help you plan your trip to Rome.",
        "Of course! What would you like to know?",
        "Certainly, I can do that for you.",
        "I'd be happy to help! Which dates do you prefer?",
        "I'm here to help with whatever you need.",
        "Thank you for sharing the conversation with me.",
        "That's a great question! Rome is lovely in May.",
        "It sounds like you are planning a trip.",
        "Please provide the conversation that you want summarized.",
        "Could you please share the lines?",
        "What would you like me to summarize?",
        "Let me know if you need more details.",
        "There are no new lines to summarize.",
        "No conversation was provided.",
        "Understood.",
        "OK",
        "Kai plans a trip to Rome by train. Which dates do you prefer?",
        "Es tut mir leid, aber dabei kann ich nicht helfen.",
        "Leider kann ich dir dabei nicht helfen.",
        "Als KI-Sprachmodell kann ich das nicht.",
        "Gerne! Wie kann ich Ihnen helfen?",
        "Hallo! Womit kann ich dir helfen?",
        "Bitte geben Sie mir den Text der Unterhaltung.",
        "Kai plant eine Reise nach Rom. Möchtest du mit dem Zug fahren?",
        "Je suis désolé, mais je ne peux pas vous aider.",
        "En tant qu'IA, je n'ai pas de souvenirs.",
        "Bien sûr ! Comment puis-je vous aider ?",
        "Veuillez me fournir la conversation.",
        "Lo siento, no puedo ayudarte con eso.",
        "Como modelo de lenguaje, no tengo recuerdos.",
        "¡Hola! ¿En qué puedo ayudarte?",
        "¡Claro! Puedo ayudarte con el viaje.",
        "很抱歉，我无法提供帮助。",
        "作为一个人工智能语言模型，我没有记忆。",
        "您好！有什么可以帮您的吗？",
        "请提供需要总结的对话。",
        "申し訳ありませんが、お手伝いできません。",
        "AIとして、個人的な意見はありません。",
        "こんにちは！何かお手伝いできますか？",
        "要約する会話を提供してください。",
        "Mi dispiace, non posso aiutarti.",
        "Извините, я не могу помочь.",
        "죄송합니다. 도와드릴 수 없습니다.",
    ],
)
def test_chat_is_no_summary(text: str) -> None:
    assert faults(text) == "chatty"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "empty"),
        (" \n\t", "empty"),
        ("...", "empty"),
        ("Here is the summary:", "empty"),
        ("```\n```", "empty"),
        ("(none)", "empty"),
        ("Summary:\n**None.**", "empty"),
        ("None of the hotels was free.", None),
        ("Human: I live in Bern.\nAI: Nice!", "role_lines"),
        ("User: hello\n\n**Assistant:** hi", "role_lines"),
        ('AI calls weather({"city":"Rome"})\nTool: 31', "role_lines"),
        ("Human (Anna): hello", "role_lines"),
        (TEMPLATE, "echo"),
        (f"You keep the running summary of a conversation.\n{GOOD}", "echo"),
        (f"{GOOD} Summary so far:", None),
        ("New lines of the conversation, oldest first:\n\nHuman: hi", "echo"),
        (f"{GOOD}\n\nSummary so far:\nNothing.", "echo"),
        ("in the third\nperson.  Answer no questions.", "echo"),
        (f"{GOOD} in the third person. Answer no questions.", None),
        (f"Human: hi\nAI: hello\n\n{GOOD}", "role_lines"),
        (f"{GOOD}\n\nHuman (Kai): thanks\nAI: You're welcome!", "role_lines"),
        ("word " * 61, "too_long"),
        ("word " * 60, None),
    ],
)
def test_other_faults_have_a_name(text: str, fault: str | None) -> None:
    assert faults(text) == fault


@pytest.mark.parametrize(
    "written",
    [
        f"Here is the summary:\n\n{GOOD}",
        f"Here\N{RIGHT SINGLE QUOTATION MARK}s the updated summary of the conversation: {GOOD}",
        f"Sure! Here is the new summary:\n{GOOD}",
        f"Certainly! Below is what was said so far:\n\n{GOOD}",
        f"Summary: {GOOD}",
        f"**Summary:** {GOOD}",
        f"**Updated Summary**\n\n{GOOD}",
        f"## Summary of the conversation\n{GOOD}",
        f"New summary:\n{GOOD}",
        f"The new summary is:\n{GOOD}",
        f"Hier ist die Zusammenfassung:\n{GOOD}",
        f"Zusammenfassung: {GOOD}",
        f"Voici le résumé :\n{GOOD}",
        f"Aquí está el resumen actualizado:\n{GOOD}",
        f"以下是更新后的摘要：\n{GOOD}",
        f"好的，以下是对话摘要：\n{GOOD}",
        f"要約：\n{GOOD}",
        f"```\n{GOOD}\n```",
        f"```text\n{GOOD}\n```",
        f'"{GOOD}"',
        f"“{GOOD}”",
        f"<summary>\n{GOOD}\n</summary>",
        f"<new_summary>{GOOD}</new_summary>",
        f"{GOOD}\n\nLet me know if you need anything else!",
        f"{GOOD}\nWould you like me to shorten it?",
        f"  {GOOD}\n\n",
        f"Sure, here is the summary:\n\n```\nSummary: {GOOD}\n```\n\nI hope this helps!",
    ],
)
def test_wrapping_is_taken_off(written: str) -> None:
    verdict = check_summary(written, TEMPLATE, 60, words)
    assert (verdict.text, verdict.fault) == (GOOD, None)


@pytest.mark.parametrize(
    "text",
    [
        "Anna asked for a summary of three books:\nEmma, Ulysses and Dune.",
        '"Emma" is the book that Anna likes, not "Dune"',
        "Kai's words: a quiet place.\nIt's 'home'",
        "```\nx = 1\n```\nwas the code that Kai sent.",
        "The summary that Kai wants has three parts: past, present, future.",
        "Kai chose the hotel.\nIf it rains, they go by car.",
    ],
)
def test_what_is_no_wrapping_stays(text: str) -> None:
    assert check_summary(text, TEMPLATE, 60, words).text == text


def test_half_a_character_is_replaced() -> None:
    assert check_summary("Kai \ud83d lives in Bern.", TEMPLATE, 60, words).text.encode()


def test_headings_that_a_template_asks_for_are_no_echo() -> None:
    headings = "Personal details of the customer:", "Problems reported, and their state:"
    template = "{summary}\n{new_lines}\nUse these headings.\n" + "\n".join(headings)
    text = f"{headings[0]}\nKai, lives in Bern.\n{headings[1]}\nThe train to Rome was late."
    assert faults(text, template) is None


def test_a_template_of_short_lines_is_never_echoed() -> None:
    template = "{summary}\nNew:\n{new_lines}\nShort."
    assert faults("New: Kai lives in Bern. Short.", template) is None


def test_a_long_answer_is_judged_quickly() -> None:
    for text in ("a" * 1_000_000, "Summary:\n" * 100_000, "「" * 300_000):
        check_summary(text, TEMPLATE, 60, words)
