"""How models chat where they should write: openings, and questions back.  Pure.

Openings are matched at the very beginning only, and so that a summary about the same is none: "I'm
sorry" opens a refusal, "Anna is sorry" a summary.
"""

from __future__ import annotations

import re

_ENGLISH = (
    r"(?:i(?:'m| am) )?(?:(?:so|very|really|truly) )?sorry(?:[,.!;:]| but\b| for\b| i\b| to\b)",
    r"i(?:'m| am) (?:\w+ )?"
    r"(?:sorry|afraid|unable|not able|here to|happy to|glad to|ready to|an? ai)\b",
    r"(?:i|my|please accept my) (?:\w+ )?(?:apologi[sz]e|apologies)\b",
    r"apologies(?:[,.!]| but\b)",
    r"unfortunately,? i\b",
    r"i (?:can(?:'t|not| not)?|could(?:n't| not)|won't|will not|do(?:n't| not)) ",
    r"i(?:'d| would)(?: be)? (?:happy|glad|love|like|need)\b",
    r"i(?:'ll| will| can) (?:help|summari|be happy|do my best|now|try)",
    r"i (?:need|see|understand|notice)(?: that)? (?:more|the|you|no)\b",
    r"as an? (?:\w+ )?(?:ai|artificial intelligence|assistant)"
    r"(?: (?:language )?model| assistant)?,? (?:i|my|it is)\b",
    r"as an? (?:ai |large )?language model\b",
    r"(?:hello|hi|hey|good (?:morning|evening|afternoon))(?: there| again)?[!.](?:\s|$)",
    r"(?:hello|hi|hey)(?: there| again)?,? (?:how|i|what can|welcome|thanks?|nice)\b",
    r"(?:how|what) (?:can|may) i (?:help|assist|do)",
    r"(?:sure|certainly|of course|absolutely|gladly|great|no problem|you're welcome|thanks?)"
    r"(?: thing| you)?[!.]",
    r"(?:sure|certainly|of course|absolutely)(?: thing)?, (?:i|here|let|what|please)\b",
    r"thank(?:s| you) for (?:your|the|sharing|providing|asking|letting)\b",
    r"(?:that's|what) an? (?:great|good|interesting) (?:question|idea)",
    r"it (?:sounds|looks|seems|appears) like you\b",
    r"(?:please|kindly) (?:provide|share|paste|send|let me|tell me|give me|specify|clarify)\b",
    r"(?:could|can|would|will) you (?:please|kindly|provide|share|tell|clarify|like)\b",
    r"(?:what|which|how|when|where|is|are|do|would|did) "
    r"[^.!:\n\"“„«]{0,80}\b(?:you|your)\b[^.!:\n\"“„«]{0,80}\?",
    r"let me (?:know|help|summari|see|think)\b",
    r"(?:feel free|if you have|if you need|if you'd like|is there anything)\b",
    r"there (?:is|are) no(?:t any)? (?:\w+ ){0,3}(?:conversation|lines|messages)\b",
    r"no (?:new )?(?:conversation|lines|messages|text)(?: of conversation)? "
    r"(?:was|were|is|are|to|has|have)\b",
    r"(?:ok(?:ay)?|yes|no|understood|got it|noted|done|alright)[.!]?\s*\Z",
)

_GERMAN = (
    r"(?:es tut mir|tut mir)(?: \w+)? leid\b",
    r"(?:entschuldigung|entschuldige|verzeihung|entschuldigen sie)[,.!]",
    r"leider (?:kann|konnte|darf|habe|bin|ist es mir)\b",
    r"ich (?:kann|könnte|darf|werde|helfe|bin|verstehe|habe|brauche|benötige) "
    r"(?:\w+ ){0,3}(?:nicht|kein\w*|dir|ihnen|euch|gerne?|leider|helfen|ein ki\w*)\b",
    r"als (?:ki|künstliche intelligenz|(?:ein )?(?:ki-?)?sprachmodell|ki-\w+),? "
    r"(?:kann|habe|bin|darf|ist es mir|möchte)\b",
    r"(?:gerne?|natürlich|klar|selbstverständlich|sicher)(?: doch)?[!.]",
    r"(?:hallo|guten (?:tag|morgen|abend)|hi)(?: \w+)?[!,.]",
    r"(?:wie|womit|kann) (?:kann )?ich (?:dir|ihnen|euch)\b",
    r"bitte (?:geben|gib|teile|teilen|stelle|stellen|sende|senden|nenne|nennen|sag)\b",
    r"(?:danke|vielen dank)(?:[!.,]| für (?:deine?n?|ihre?n?|die|das)\b)",
)

_FRENCH = (
    r"(?:je suis |vraiment )?(?:sincèrement )?désolée?(?:[,.!]| mais\b| je\b)",
    r"je (?:suis|serais) (?:vraiment |sincèrement )?(?:désolée?|ravie?|heureux|une? ia)\b",
    r"(?:je m'excuse|je vous prie|toutes mes excuses|pardon[,.!])",
    r"malheureusement,? je\b",
    r"je (?:ne peux|ne suis|ne dispose|n'ai|peux vous|peux t'|vais vous)\b",
    r"en tant (?:qu'ia|qu'intelligence|qu'assistante?|que modèle|que grand modèle)\b",
    r"(?:bien sûr|avec plaisir|certainement|d'accord|bonjour|salut|bonsoir) ?[!,.]",
    r"(?:comment|en quoi|que) puis-je\b|puis-je vous\b",
    r"(?:veuillez|merci de|merci pour)\b",
    r"(?:pouvez-vous|pourriez-vous|peux-tu|souhaitez-vous|voulez-vous)\b",
)

_SPANISH = (
    r"lo (?:siento|lamento)\b",
    r"(?:lamento|disculpa|disculpe|perdona|perdón|mis disculpas)(?: \w+)?[,.!]",
    r"lamento (?:no|mucho|la|el|que)\b",
    r"(?:lamentablemente|desafortunadamente|desgraciadamente),? no (?:puedo|tengo)\b",
    r"(?:yo )?no (?:puedo|tengo|soy capaz)\b",
    r"como (?:una? )?(?:ia|inteligencia artificial|modelo de lenguaje|asistente de ia),? ",
    r"¡?(?:claro|por supuesto|hola|con gusto|desde luego)(?: que sí)?[!,.]",
    r"¿(?:en qué|cómo|qué|puedo|podrías|puedes|podría|te|le|hay)\b",
    r"(?:por favor,? (?:proporcion|compart|indic|env|dime|díg))",
    r"gracias por (?:tu|su|compartir|la|el)\b",
    r"(?:estoy aquí|puedo ayudarte|estaré encantad)\b",
)

_CHINESE = (
    r"(?:很|非常|真的|十分)?(?:抱歉|对不起|對不起|不好意思|遗憾|遺憾)",
    r"(?:作为|作為)(?:一个|一個|一名|一款)?(?:ai|人工智能|人工智慧|大?语言模型|大?語言模型|智能助手)",
    r"我(?:无法|無法|不能|没有办法|沒有辦法|很乐意|很樂意|可以帮|可以幫|是一个|是一個|来帮|來幫)",
    r"(?:当然|當然|好的|没问题|沒問題|您好|你好|可以的?)(?:可以)?[，,！!。]",
    r"(?:请|請)(?:您|你)?(?:提供|告诉|告訴|问|問|分享|输入|輸入|说明|說明)",
    r"(?:有|还有|還有)?什么(?:可以|能)|(?:需要|要)我(?:帮|幫)",
    r"(?:谢谢|謝謝|感谢|感謝)(?:您|你)",
)

_JAPANESE = (
    r"(?:大変|誠に)?(?:申し訳|すみません|ごめんなさい|恐れ入りますが|残念ながら、?私)",
    r"(?:私は)?(?:ai|人工知能|言語モデル)(?:アシスタント)?(?:として|である|なので|です)",
    r"(?:こんにちは|こんばんは|はい|もちろん|承知|かしこまり|了解)(?:です|しました|いたしました|ました)?"
    r"[、。！!]",
    r"(?:何か|どのような|ほかに|他に)(?:お手伝い|ご質問|お困り|ご用件|ご要望)",
    r"(?:お手伝い(?:でき|いたし|し)|ご質問(?:があれば|は))",
    r"(?:要約する|会話の?)?(?:内容|テキスト|会話)を(?:提供|教えて|入力|お送り)",
)

_OTHERS = (
    # Portuguese, Italian, Dutch, Russian, Korean
    r"(?:sinto muito|desculpe|lamento|infelizmente,? (?:eu )?não posso)\b",
    r"(?:mi dispiace|purtroppo,? non posso|scusa|certo!|ciao!|come posso)",
    r"(?:het spijt me|sorry,|helaas kan ik|als ai(?:-\w+)?,? (?:kan|heb|ben))",
    r"(?:извините|простите|к сожалению, я|как (?:ии|языковая модель)|здравствуйте|конечно[!,])",
    r"(?:죄송합니다|죄송하지만|안녕하세요|물론입니다|저는 (?:ai|인공지능)|ai로서)",
)

_LANGUAGES = (_ENGLISH, _GERMAN, _FRENCH, _SPANISH, _CHINESE, _JAPANESE, _OTHERS)

_OPENING = re.compile(
    "|".join(opening for language in _LANGUAGES for opening in language), re.IGNORECASE
)

_SECOND_PERSON = re.compile(
    r"\b(?:you|your|du|dir|dich|dein\w*|(?-i:Sie|Ihnen|Ihr\w*)|vous|votre|vos|tu|toi|te|tú|usted)\b"
    r"|[您你]|あなた|でしょうか|ますか|당신",
    re.IGNORECASE,
)
_LAST_SENTENCE = re.compile(r"[^.!?。！？\n]*[?？]\Z")
_REPORTED = re.compile(r"[:：\"“”„«»「」『』]")

_LONGEST_QUESTION = 300
"""Characters."""


def opens_like_chat(text: str) -> bool:
    """Does it begin as answers to people begin: an apology, a greeting, an offer, a question?"""
    return _OPENING.match(text.lstrip("*_# ").replace("’", "'")) is not None


def asks_back(text: str) -> bool:
    """Does it end with a question to the reader, one that it does not report?"""
    last = _LAST_SENTENCE.search(text.rstrip("*_ \n")[-_LONGEST_QUESTION:])
    return (
        last is not None
        and _REPORTED.search(last[0]) is None
        and _SECOND_PERSON.search(last[0]) is not None
    )
