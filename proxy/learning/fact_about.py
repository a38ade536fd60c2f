"""Whom a statement is about: the user, or somebody or something in their life.  Pure.

Small models write what a friend likes down as the user's own.  Where a sentence begins with whom
it is about ("my friend Jack ..."), that is told by pattern; a language without any still learns.
"""

from __future__ import annotations

import re

from proxy.learning.fact import MOST_ABOUT, USER, one_line

_USER_NAMES = frozenset(
    [
        "",
        "user",
        "the user",
        "users",
        "me",
        "myself",
        "i",
        "self",
        "speaker",
        "the speaker",
        "author",
    ]
    + ["person", "the person", "benutzer", "nutzer", "der nutzer", "der benutzer", "ich", "usuario"]
    + ["el usuario", "yo", "utilisateur", "l'utilisateur", "moi", "utente", "l'utente", "io"]
    + ["usuário", "o usuário", "eu", "用户", "用戶", "我", "ユーザー", "私", "사용자", "나", "я"]
)
_RELATIVES = (
    r"(?:best |old |good |close |ex-?|step-?|grand-?|great-?|older |younger |little |big |twin "
    r"|new |former )*"
    r"(?:friend|brother|sister|mother|father|mom|mum|dad|wife|husband|partner|son|daughter|child"
    r"|boyfriend|girlfriend|fianc[ée]e?|boss|manager|colleague|co-?worker|neighbou?r|room-?mate"
    r"|flat-?mate|teacher|cousin|aunt|uncle|niece|nephew|ma|pa|client|doctor|landlord|buddy)s?"
)
_VERWANDTE = (
    r"(?:freund|bruder|schwester|mutter|vater|mama|papa|frau|mann|partner|sohn|tochter|kind|chef"
    r"|kolleg|nachbar|mitbewohner|lehrer|cousin|tante|onkel|oma|opa)\w{0,4}"
)
_PARIENTES = (
    r"(?:amig[oa]|herman[oa]|madre|padre|mamá|papá|espos[oa]|marido|mujer|novi[oa]|hij[oa]|jef[ea]"
    r"|compañer[oa]|vecin[oa]|prim[oa]|tí[oa]|abuel[oa]|profesora?)s?"
)
_PARENTS = (
    r"(?:ami|amie|frère|sœur|soeur|mère|père|maman|papa|femme|mari|fils|fille|copain|copine|chef"
    r"|collègue|voisin|voisine|cousin|cousine|tante|oncle)s?"
)
_PARENTI = (
    r"(?:amic[oa]|fratello|sorella|madre|padre|mamma|papà|moglie|marito|figli[oa]|capo|collega"
    r"|vicin[oa]|cugin[oa]|zi[oa]|irmão|irmã|mãe|pai|esposa|marido|filh[oa]|namorad[oa]|chefe)"
)
_NAME = r"(?:,? (?-i:[A-ZÀ-ÞА-Я])[\w'’-]+(?: (?-i:[A-ZÀ-ÞА-Я])[\w'’-]+)?)?"
_OTHERS = re.compile(
    r"^\W*(?:(?:and|but|so|also|well|oh|und|aber|y|pero|et|mais|e|ma)\W+)?(?P<whom>"
    rf"(?:my|our|a) {_RELATIVES}(?:'s \w+)?{_NAME}"
    rf"|(?:mein|unser)\w{{0,2}} {_VERWANDTE}{_NAME}"
    rf"|(?:mi|mis|nuestr[oa]) {_PARIENTES}{_NAME}"
    rf"|(?:mon|ma|mes|notre) {_PARENTS}{_NAME}"
    rf"|(?:il mio|la mia|mio|mia|o meu|a minha|meu|minha) {_PARENTI}{_NAME}"
    r"|(?:мой|моя|наш|наша) (?:друг|подруга|брат|сестра|мама|мать|папа|отец|жена|муж|сын|дочь"
    r"|коллега|начальник|сосед\w*)"
    r"|我的?(?:朋友|哥哥?|姐姐?|弟弟?|妹妹?|妈妈?|母亲|爸爸?|父亲|妻子|老婆|丈夫|老公|儿子|女儿|同事|老板"
    r"|室友|邻居|老师|男朋友|女朋友)[^，。,.\s]{0,4}"
    r"|(?:私|僕|俺)の(?:友達|友人|兄|姉|弟|妹|母|父|妻|夫|息子|娘|同僚|上司|彼氏|彼女)"
    r")(?!\w)?",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(
    r"\b(?:i|i'm|i've|i'd|i'll|me|we|we're|us|ich|mich|mir|wir|uns|yo|me|nos|nosotr[oa]s|je|j|moi"
    r"|nous|io|mi|ci|eu|nós|я|мне|меня|мы|нас)\b|(?<!^)我|(?<!^)(?:私|僕|俺)",
    re.IGNORECASE,
)


def about(claimed: str) -> str:
    """``USER``, or whom or what else, on one line."""
    plain = one_line(claimed).strip("\"'.")[:MOST_ABOUT]
    return USER if plain.lower() in _USER_NAMES else plain


def others(quote: str) -> str | None:
    """Whom a quote is about, if it begins with somebody else and never comes to the user."""
    found = _OTHERS.match(quote)
    if found is None or _FIRST_PERSON.search(quote, found.end()):
        return None
    return found["whom"].strip()


def names(text: str, whom: str) -> bool:
    """Does a text name them, by any word of how they are called?"""
    folded = text.lower()
    return any(word in folded for word in re.findall(r"\w{3,}|[一-鿿]{2,}", whom.lower())[-2:])
