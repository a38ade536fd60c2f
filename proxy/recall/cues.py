"""What the wording of a message tells beside its topic: whom it is about, "when".

Pure.  Each cue is a list of words or a pattern in the languages that recall is tested with; a
language without cues still recalls, only with less finesse.  All texts are folded ones.
"""

from __future__ import annotations

import re

READ = 2048
"""Characters of a message that are read as a question; what follows is material."""

_USER = re.compile(
    r"\b(?:i|me|my|mine|i'm|i've|ich|mir|mich|mein\w*|yo|mí?s?|mío|je|j|mon|mes|moi|io|mi[oae]|miei"
    r"|eu|meus?|minhas?|ik|mijn|jag|mina?|mitt|я|мне|мой|моя|мо[её]|меня|أنا|لي|لدي)\b|我|私|僕|俺|저|나는|내가|제가",
)

_ASSISTANT = re.compile(
    r"\b(?:(?:did|have|had|were|was) you|you (?:\w+ )?(?:said|told|gave|wrote|mention\w*|suggest\w*"
    r"|recommend\w*|propos\w*|explain\w*|advis\w*|list\w*|describ\w*)"
    r"|your (?:\w+ )?(?:suggest\w*|recommend\w*|advice|answer|reply|explanation|list)"
    r"|(?:hast|hattest) du|du (?:mir|hast|hattest)|me (?:has |hab[ií]as )?"
    r"(?:recomendaste|dijiste|diste|sugeriste|explicaste|recomendado|dicho|sugerido)|tu m'?as)\b"
    r"|(?<![和给跟向对])[你您](?:曾经?|之前|上次|还|都|有)*(?:给|向|跟|对|为|帮)?我?"
    r"(?:推荐|建议|说|讲|告诉|介绍|分享|提到|提供|过)"
    r"|(?:教えてくれた|言った|勧め|おすすめし|提案し)|(?:추천해|말해|알려) ?(?:준|줬)",
)

_WHEN = re.compile(
    r"\b(?:when|(?:what|which) (?:date|day|month|year|time)|how long|wann|wie lange|seit wann"
    r"|cu[aá]ndo|cu[aá]nto tiempo|quand|combien de temps|quando|wanneer|när|kiedy|когда|متى)\b"
    r"|什么时候|何时|哪天|哪一天|哪年|几月|几号|多久|いつ|何日|何月|どのくらい|언제|며칠",
)

_FOLLOW_UP = re.compile(
    r"^\W*(?:and|but|so|or|und|aber|oder|y|pero|et|mais|e|ma|mas|en|och|i|а|и|но|و)\b|^(?:还有|그리고|それで)"
    r"|\b(?:it|its|that|this|these|those|they|them|their|he|him|his|she|her|one|ones|other|another|same"
    r"|else|instead|too|more|again|there|then|former|latter|es|das|dies\w*|er|sie|ihn|ihm|ihr|ander\w+|dort|damit|darüber"
    r"|él|ella|ellos|ellas|eso|esa|ese|otr[oa]s?|allí|mism[oa]|il|elle|ils|elles|lui|ça|cela|autres?|là|altr[oaie]|quello|quella|lei|ele|ela|outr[oa]s?|isso"
    r"|ذلك|هو|هي|هذا|هذه|الآخر|الأخرى|это|он|она|они|его|её|другой|другая|там)\b|那|这|另|其他|其它|它|他|她|それ|これ|あれ|他の|もう一|그|다른",
)


def about_user(text: str) -> bool:
    """Whether a message speaks of the one who writes it."""
    return _USER.search(text) is not None


def about_assistant(text: str) -> bool:
    """Whether a message asks for what the assistant said."""
    return _ASSISTANT.search(text) is not None


def asks(text: str) -> bool:
    """Whether a message has a question mark."""
    return any(mark in text for mark in "?؟")


def asks_when(text: str) -> bool:
    """Whether a message asks for a time."""
    return _WHEN.search(text) is not None


def points_back(text: str) -> bool:
    """Whether a message has words that stand for something said before."""
    return _FOLLOW_UP.search(text) is not None
