"""What speaks against putting proposed instructions into force before a person has seen them.

They stand in the system message of everybody's chats, and are made from what users say.  Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from proxy.recall.words import words

SAME_WORDS = 8
"""So many words in a row that a user has said too were taken over and not understood; characters
of scripts without spaces count half."""

_ALARMING = {
    "an address": re.compile(
        r"https?:|www\.|[\w.+-]+@[\w-]+\.\w+|\b\w[\w-]*\.(?:com|net|org|io|ru|cn|xyz|dev|app|info)\b"
        r"|!\[|\]\(|\b\d{1,3}(?:\.\d{1,3}){3}\b",
        re.IGNORECASE,
    ),
    "secrets": re.compile(
        r"\b(?:pass ?words?|passwörter|passwort|contraseñas?|mots? de passe|api[ _-]?keys?|secrets?"
        r"|credentials?|tokens?|private keys?|credit cards?|iban|ssn)\b"
        r"|парол|密码|密碼|パスワード|비밀번호",
        re.IGNORECASE,
    ),
    "the system message or other rules": re.compile(
        r"\b(?:system|developer) (?:prompt|message|instruction)"
        r"|\b(?:ignore|disregard|override|bypass|forget)\b.{0,40}\b(?:instruction|rule|guideline|polic|safety|restriction)"
        r"|\bignorier\w*|忽略|无视|無視|игнорир",
        re.IGNORECASE,
    ),
    "other people's data": re.compile(
        r"\b(?:other|all|every) (?:users?|customers?|people|sessions?|conversations?)\b"
        r"|\b(?:leak|exfiltrat\w*|reveal|disclose|forward|upload|transmit)\b",
        re.IGNORECASE,
    ),
    "code or data": re.compile(r"[A-Za-z0-9+/_-]{32,}|<\s*/?\s*\w+[^>]*>|\$\{|\{\{"),
}


def doubts(text: str, current: str, material: Iterable[str]) -> tuple[str, ...]:
    """Why a person should look at a text first, where it says more than the current one.

    ``material`` is what users have said: questions and comments.
    """
    found = [f"it speaks of {what}" for what in _alarms(text) - _alarms(current)]
    if _taken_over(text, current, material):
        found.append("it repeats a user's words")
    return tuple(sorted(found))


def _alarms(text: str) -> set[str]:
    return {what for what, pattern in _ALARMING.items() if pattern.search(text)}


def _taken_over(text: str, current: str, material: Iterable[str]) -> bool:
    new = set(_runs(text)) - set(_runs(current))
    return any(not new.isdisjoint(_runs(said)) for said in material)


def _runs(text: str) -> Iterator[tuple[str, ...]]:
    """All runs of ``SAME_WORDS`` words; two characters without spaces are a word."""
    said: list[str] = []
    for word in words(text):
        said += list(word.text) if word.unspaced else [word.text, ""]
    length = 2 * SAME_WORDS
    return (tuple(said[at : at + length]) for at in range(len(said) - length + 1))
