"""What models put around a text that they were asked for: taken off.  Pure."""

from __future__ import annotations

import re

_WORD = (
    r"(?:summary|zusammenfassung|r[ée]sum[ée]|resumen|resumo|riassunto|sommario|samenvatting|"
    r"резюме|краткое содержание|摘要|總結|总结|概要|要約|まとめ|요약)"
)

_BEFORE = (
    r"(?:(?:the|an?|my|your|new|updated|final|running|current|brief|short|concise|complete|revised|"
    r"conversation|die|der|eine|neue|aktualisierte|laufende|kurze|le|un|nouveau|el|nuevo|il|o|"
    r"nova|novo|nuovo) |更新后的|更新後的|新的|对话|對話|会話の|これまでの|更新された|新しい)"
)
"""Words that stand before it in a title.  Others make a sentence: "Anna asked for a summary:"."""

_CONSENT = (
    r"(?:(?:sure|certainly|of course|absolutely|okay|ok|gerne?|natürlich|klar|bien sûr|claro|"
    r"por supuesto|当然|當然|好的|もちろん|はい|承知しました)(?: thing)? ?[!.,，！。、]\s*)?"
)

_HERE = (
    r"(?:here(?:['’]s| is| are)|below is|this is|hier (?:ist|kommt)|voici|aquí (?:está|tienes?)|"
    r"este es|ecco|aqui está|вот|以下(?:是|は|が)|这是|這是|下面是|これは)"
)

_BOLD = r"(?:\*\*|__)?"
_COLON = rf"{_BOLD}[ \u00a0]?[:：]{_BOLD}"
_TITLE = rf"{_BEFORE}{{0,4}}{_WORD}"
_AFTER = r"(?: [^\s:：]+){0,6}"

_LEAD_IN = re.compile(
    rf"(?:#{{1,6}} |\*\*|__)?{_CONSENT}(?:"
    rf"{_HERE}[^\n:：]{{0,80}}{_WORD}[^\n:：]{{0,60}}{_COLON}\s*"
    rf"|{_HERE}[^\n]{{0,120}}{_COLON}[ \t]*\n+"
    rf"|{_TITLE}{_AFTER}{_COLON}[ \t]*\n+"
    rf"|{_TITLE}{_COLON}\s*)"
    rf"|(?:#{{1,6}} |\*\*|__){_TITLE}{_AFTER}{_BOLD}[ \t]*\n+",
    re.IGNORECASE,
)

_CLOSING = re.compile(
    r"[*_(]*(?:please )?(?:let me know|feel free|i hope (?:this|that)|is there anything|"
    r"(?:would|do) you (?:like|want|need)|if you (?:have|need|want|would)\b|if you['’]d|"
    r"(?:lass|lassen sie) (?:es )?mich wissen|ich hoffe,? |möchte(?:st|n) (?:du|sie)\b|"
    r"n['’]hésite|j['’]espère|souhaitez-vous|espero que|házmelo saber|no dudes en|¿(?:te|le|hay) |"
    r"如果(?:您|你)|希望(?:这|這)|如需|何か(?:他|ほか)|ご質問|お役に立て)",
    re.IGNORECASE,
)

_THOUGHT = re.compile(r"\s*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
_FENCE = re.compile(r"```[\w-]*[ \t]*\n(.*?)\n?```", re.DOTALL)
_TAGS = re.compile(r"<(?P<tag>\w*summary\w*)>(?P<inner>.*)</(?P=tag)>", re.DOTALL | re.IGNORECASE)
_QUOTES = {'"': '"', "'": "'", "“": "”", "„": "“", "«": "»", "「": "」", "『": "』"}

_LAYERS = 5


def unwrapped(text: str) -> str:
    """The text without thoughts, lead-in, fence, tags and quotes around it, and a kind closing."""
    text = _THOUGHT.sub("", text, count=1).strip()
    for _ in range(_LAYERS):
        inner = _without_closing(_unquoted(_without_lead_in(text))).strip()
        if inner == text:
            break
        text = inner
    return text


def _without_lead_in(text: str) -> str:
    lead_in = _LEAD_IN.match(text)
    return text[lead_in.end() :] if lead_in else text


def _unquoted(text: str) -> str:
    if (fenced := _FENCE.fullmatch(text)) is not None:
        return fenced[1]
    if (tagged := _TAGS.fullmatch(text)) is not None:
        return tagged["inner"]
    last, inner = _QUOTES.get(text[:1]), text[1:-1]
    if last and len(text) > 1 and text.endswith(last) and not {text[0], last} & set(inner):
        return inner
    return text


def _without_closing(text: str) -> str:
    """An offer of more on the last line is no part of it."""
    body, line_feed, last = text.rpartition("\n")
    return body if line_feed and _CLOSING.match(last) else text
