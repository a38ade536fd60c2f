"""Does a message clearly tell something of the one who writes it?  Pure.

Cues in the languages that recall is tested with; a language without any is only never asked about
twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from proxy.learning.lesson import BLANK, Said

READ = 4_000
"""Characters of a message that are looked at."""

_SENTENCE = re.compile(r"[^.!?。！？؟\n\x00]+[.!?。！？؟]?")
_TELLS = re.compile(
    r"\b(?:i live|i work|i was born|i grew up|i moved|i study|i studied|i own|i am allergic"
    r"|i'm allergic|i(?:'m| am) (?:an?|\d+|from|married|vegan|vegetarian|retired|pregnant|based)\b"
    r"|i(?:'ve got| have) (?:an? |two |three |\d+ )?(?:\w+ )?(?:dogs?|cats?|sons?|daughters?|kids"
    r"|child\w*|brothers?|sisters?|allerg\w+|diabetes|pets?|house|boat|car)\b"
    r"|my (?:\w+ ){0,2}(?:is called|is named|name is|lives?|works?|was born|birthday is)"
    r"|my (?:wife|husband|partner|son|daughter|dog|cat|mother|father|brother|sister|job|birthday"
    r"|hobby|hometown)\b|i (?:really |absolutely )?(?:love|hate|adore|can't stand)\b|call me [A-Z]"
    r"|ich (?:heiße|wohne|lebe|arbeite als|arbeite bei|bin (?:ein|\d+|in|aus|verheiratet|veganer"
    r"|vegetarier|allergisch))|mein\w* (?:\w+ )?(?:heißt|ist|arbeitet|wohnt)|ich (?:liebe|hasse)"
    r"|me llamo|vivo en|trabajo (?:como|en|de)|soy (?:un|una|de|alérgic\w|vegan\w|vegetarian\w)"
    r"|mi \w+ (?:se llama|es|vive|trabaja)|me (?:encanta|gusta)n?|tengo (?:un|una|dos|\d+)"
    r"|je m'appelle|j'habite|je travaille|je suis (?:un|une|allergique|végétarien\w*|marié\w?)"
    r"|(?:mon|ma) \w+ (?:s'appelle|est|habite|travaille)|j'(?:adore|ai (?:un|une|deux|\d+))"
    r"|mi chiamo|abito a|vivo a|lavoro (?:come|a|in)|sono (?:un|una|allergic\w|vegan\w)"
    r"|(?:mio|mia) \w+ (?:si chiama|è|vive|lavora)"
    r"|meu nome é|moro em|trabalho (?:como|em|na|no)|sou (?:um|uma|de|alérgic\w|vegan\w)"
    r"|меня зовут|я (?:живу|работаю|родил\w+|люблю|ненавижу)|у меня (?:есть|дв\w+|аллергия)"
    r"|اسمي|أعيش في|أعمل)\b"
    r"|我(?:叫|住在?|是(?:一[个名位]|做)|在.{1,10}(?:工作|上班|上学)|喜欢|讨厌|有(?:一|两|三|个)|对.{1,6}过敏)"
    r"|我的?(?:妻子|老婆|丈夫|老公|儿子|女儿|狗|猫|名字|生日|工作)(?:叫|是|在)"
    r"|(?:私|僕|俺)(?:は|の(?:名前|妻|夫|犬|猫|仕事|誕生日)).{1,30}(?:です|ます|だ|といいます|住んで)"
    r"|(?:저는|나는|제 이름은|내 이름은).{1,30}(?:입니다|이에요|예요|살아|살고|일해|일하고|좋아)",
    re.IGNORECASE,
)


def tells_of_user(said: Iterable[Said]) -> bool:
    """Whether one of these messages has a sentence, not a question, that says what the user is."""
    return any(_tells(each.own[:READ].replace("’", "'")) for each in said)


def _tells(text: str) -> bool:
    sentences = _SENTENCE.findall(text.replace(BLANK, "\n"))
    return any(_TELLS.search(each) and each[-1] not in "?？؟" for each in sentences)
