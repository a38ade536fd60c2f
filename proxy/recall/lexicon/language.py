"""The content of a language's file: what each of its lists is for.

A language may leave out any list, at the cost of precision.  Lists are regular expressions, except
those that are called words, which are texts of words with blanks between them.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Unit = Literal["day", "week", "weekend", "fortnight", "month", "season", "year", "decade"]


class Phrases(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Patterns of phrases; a text that has one of them has the meaning of the list.

    ``words`` match between word boundaries, ``anywhere`` also inside words and in scripts without
    spaces.
    """

    words: tuple[str, ...] = ()
    anywhere: tuple[str, ...] = ()


class LanguageInfo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The language itself.

    ``name`` is Snowball's, ``script`` a name in ``common.toml``.  ``stop_words`` are function
    words, which have no content and identify the language; also with the ``conjunction`` before
    them, which is joined to the next word.  ``stop_characters`` are the same in scripts without
    spaces.  ``article`` is one that is joined to its word, and ``articles`` match the beginning of
    such words: the article, and what may come before it.
    """

    name: str
    script: str = ""
    stop_words: str = ""
    stop_characters: str = ""
    conjunction: str = ""
    article: str = ""
    articles: Phrases = Phrases()


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Wordings that tell what kind of thing a question asks for."""

    frame: str = ""
    """Words that are typical of questions, in all their forms; they say little about the topic."""
    likened: Phrases = Phrases()
    """Phrases whose last word has no content there ("what is it like", "looks like")."""
    before_nouns: str = ""
    """Articles and the like, in languages with capitalised nouns: the next word is no name."""
    about_user: Phrases = Phrases()
    """Words of the first person."""
    about_assistant: Phrases = Phrases()
    """Asks for what the assistant said ("what did you recommend")."""
    when: Phrases = Phrases()
    """Asks for a time."""
    orders: Phrases = Phrases()
    """Asks for the order of events."""
    general: Phrases = Phrases()
    """Beginnings of requests that anybody might make, for a task or for general knowledge ("write
    me a ...")."""
    works_on: Phrases = Phrases()
    """Those of them that ask for work on a given text ("translate")."""
    lists: Phrases = Phrases()
    """Asks for all of something, or for their number."""
    goes_on: Phrases = Phrases()
    """Beginnings of messages that continue the topic ("and ...")."""
    points_back: Phrases = Phrases()
    """Anaphors: words that refer to something said before ("it", "the other")."""
    determiners: str = ""
    """Those of them that may be determiners ("that bike")."""
    auxiliaries: str = ""
    """Verbs after which they are no determiners if one word follows ("does that work?")."""
    was: Phrases = Phrases()
    """Asks about the past ("who was the vet")."""
    again: Phrases = Phrases()
    """Asks to repeat something ("what was that called again")."""


class Words(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Relations of words that stemming does not find."""

    forms: tuple[str, ...] = ()
    """Irregular forms of one word ("go went gone")."""
    alike: tuple[str, ...] = ()
    """Words with nearly the same meaning: each also finds the others, with less weight."""
    kinds: tuple[str, ...] = ()
    """Words for a kind of thing, a colon, and words for things of that kind: the former also find
    the latter, with less weight."""


class Dates(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Expressions for days and times.

    Patterns may use {NUMBER}, {UNIT}, {SEASON}, {YEAR} and {DAY}; their results are the groups
    number, unit, season, year, month, day, weekday; half, if it is half a unit, and more, if it
    is one half more.
    """

    months: tuple[str, ...] = ()
    """Words for each month, from January on."""
    weekdays: tuple[str, ...] = ()
    """Words for each day of the week, from Monday on."""
    seasons: tuple[str, ...] = ()
    """Words for each season, from spring on."""
    units: dict[Unit, str] = {}
    """Words for units of time, in all their forms."""
    numbers: tuple[str, ...] = ()
    """Words for one, two, three and so on; further words for three say "a few"."""
    ordinals: str = ""
    """Endings of a day's number ("3rd")."""
    of: str = ""
    """Words between day, month and year ("3rd of May")."""
    before_month: tuple[str, ...] = ()
    before_year: tuple[str, ...] = ()
    """Words before a month or a year, which identify it as one ("in May")."""
    tells: Phrases = Phrases()
    """Any expression that tells when something was or will be."""
    today: Phrases = Phrases()
    yesterday: Phrases = Phrases()
    day_before_yesterday: Phrases = Phrases()
    tomorrow: Phrases = Phrases()
    day_after_tomorrow: Phrases = Phrases()
    ago: tuple[str, ...] = ()
    """A number of units ago."""
    ahead: tuple[str, ...] = ()
    """A number of units from today on; not what may also tell how long something took."""
    last: tuple[str, ...] = ()
    """The last unit, or the last so many up to now."""
    before_last: tuple[str, ...] = ()
    """The unit before the last one."""
    this: tuple[str, ...] = ()
    """The current unit, up to now; not for years, which most of a history is in."""
    last_season: tuple[str, ...] = ()
    this_season: tuple[str, ...] = ()
    """The last season of a name that has ended, and the one that is or has just been."""
    lately: tuple[str, ...] = ()
    """A day of about the last two weeks ("the other day")."""
    last_weekday: tuple[str, ...] = ()
    """Unambiguously the last such day before today; {WEEKDAY} matches a day of the week."""
    weekday: tuple[str, ...] = ()
    date: tuple[str, ...] = ()
    month: tuple[str, ...] = ()
    year: tuple[str, ...] = ()
    """Other notations than with the words above."""


Slot = Literal["own_name", "name", "role", "home", "work", "number", "favourite"]
"""Things that have one value at a time.  A ``name`` is that of another person or of a thing; a
``role`` is somebody's boss or doctor, say.  The value of a ``number`` has a digit or an @; those of
the others, except a ``favourite``, are names, capitalised if the script has capitals."""


class Slots(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Statements of users that give a slot's value: patterns of whole sentences, without ``leads``
    at their beginning and without the rest from a match of ``goes_on`` on.

    Patterns may use their language's ``parts``, {VALUE}, and {OLD} for the value before; a group
    ``of`` is the subject that has the value.
    """

    leads: tuple[str, ...] = ()
    goes_on: tuple[str, ...] = ()
    doubts: Phrases = Phrases()
    """The sentence is about another time, or uncertain."""
    others: Phrases = Phrases()
    """The message tells that there are several of the thing ("my other dog")."""
    titles: str = ""
    """Words before names that are no part of them ("Mrs")."""
    parts: dict[str, str] = {}
    holds: dict[Slot, tuple[str, ...]] = {}
    becomes: dict[Slot, tuple[str, ...]] = {}
    """The value is new."""
    ends: dict[Slot, tuple[str, ...]] = {}
    """The value does not hold any more."""


class SmallTalk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Words of messages without content."""

    polite: str = ""
    """Thanks and greetings, which the name of who is addressed may follow."""
    others: str = ""
    """Words that, alone or with these, ask for nothing."""
    in_questions: str = ""
    """Those of both lists that ask for nothing in a question either."""
    unspaced: tuple[str, ...] = ()
    """The same in scripts without spaces; any remaining text asks for something."""
    polite_unspaced: tuple[str, ...] = ()
    filler: str = ""
    """Further words of sentences of thanks, praise and comfort."""
    filler_unspaced: tuple[str, ...] = ()
    titles: str = ""
    """Titles that are joined to the end of a name."""
    vocative: str = ""
    """Words that are followed by a name."""
    sounds: tuple[str, ...] = ()
    """Laughter and the like, of any length; each matches a whole word."""
    how_are_you: tuple[str, ...] = ()
    """Questions that are only polite."""
    asking: Phrases = Phrases()
    """Words that questions begin with."""
    question_marks: str = ""
    """Further characters that mark a question."""


class Standing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Standing instructions and preferences of users.  The patterns are searched in sentences.

    Patterns may use {START}, where an order can begin, and their language's ``parts``.
    """

    cues: tuple[str, ...] = ()
    """Plain texts in small letters: sentences without any of them are skipped."""
    parts: dict[str, str] = {}
    orders: tuple[str, ...] = ()
    preferences: tuple[str, ...] = ()
    leanings: tuple[str, ...] = ()
    """Weak preferences, about what answers should keep to or avoid; no mere likes and moods."""
    withdrawals: tuple[str, ...] = ()
    """Withdrawals of earlier instructions or preferences."""
    ended: tuple[str, ...] = ()
    """Withdrawals by a statement about oneself: something that one is, has or eats has ended."""
    unsure: tuple[str, ...] = ()
    """Before ``ended``: it is asked, doubted, supposed, or another's opinion."""
    sure: tuple[str, ...] = ()
    """What makes it certain in spite of that ("the doctor says")."""
    mistaken: tuple[str, ...] = ()
    """Before ``ended``: its source is wrong ("a false test")."""
    corrected: tuple[str, ...] = ()
    """After ``ended``: it was only described wrongly ("it's a severe one"), or another one goes
    on."""
    eating: str = ""
    """Verbs of eating and drinking, which do not tell which food is meant."""
    reported: Phrases = Phrases()
    """Another person's words follow."""
    reported_after: tuple[str, ...] = ()
    """Another person's words came before."""
    everything: Phrases = Phrases()
    """In a withdrawal: of everything."""
    taken_back: tuple[str, ...] = ()
    """Whole sentences that withdraw the instruction right before them."""
    here: tuple[str, ...] = ()
    """Only about the current task or moment ("in this letter", "today")."""
    works: tuple[str, ...] = ()
    """Orders of a task: instructions after one are only for that task."""
    lasting: tuple[str, ...] = ()
    """What makes an instruction after such an order permanent in spite of that."""
    conditions: tuple[str, ...] = ()
    """Conditions under which an instruction holds, to their end."""
    joins: Phrases = Phrases()
    """Words between parts of a sentence that may be withdrawn separately ("and")."""
    but: Phrases = Phrases()
    """The same before an opposite ("but")."""
    links: Phrases = Phrases()
    """Words between a thing and what specifies it ("noix de coco")."""
    general: str = ""
    """Words that do not belong to the topic of an instruction."""
    general_unspaced: tuple[str, ...] = ()
    general_phrases: tuple[str, ...] = ()
    """The same as phrases."""
    articles: tuple[str, ...] = ()
    """Articles that are joined to the beginning of a word."""
    values: dict[str, str] = {}
    """By the name of a thing, words for its alternative values, such as languages: a new value
    replaces the old one."""
    unspaced_values: dict[str, tuple[str, ...]] = {}
    value_phrases: dict[str, tuple[str, ...]] = {}
    """By the name of a thing, phrases that give it a value ("call me ...")."""


class OwnWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What identifies text that is not the author's own."""

    mail: tuple[str, ...] = ()
    """Lines before a forwarded or answered mail."""
    mail_from: tuple[str, ...] = ()
    """Beginnings of the line with a mail's sender."""
    please: tuple[str, ...] = ()
    """What may come before an order."""
    tasks: Phrases = Phrases()
    """Orders before the text that they apply to ("translate this: ...")."""
    roles: str = ""
    """Names of the speakers in transcripts of chats with assistants."""
    no_speakers: str = ""
    """Words before a colon that are no speaker of the conversation."""
    says: str = ""
    """Characters before a colon after which another person's words follow."""
    role_play: tuple[str, ...] = ()
    """Beginnings of messages that set up a role play."""
    abbreviations: str = ""
    """Abbreviations, whose full stop does not end a sentence."""


Trait = Literal["name", "home", "work", "age"]
"""What people tell about themselves and ask for later; ``age`` includes the birthday."""


class Person(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What messages tell about their author."""

    tells: Phrases = Phrases()
    """A sentence tells something about the author."""
    pleased: Phrases = Phrases()
    """The author likes the answer before."""
    traits: dict[Trait, Phrases] = {}
    """A message tells this trait."""
    asks: dict[Trait, Phrases] = {}
    """A message asks for this trait."""
    asks_all: Phrases = Phrases()
    """A message asks for everything that is known about the author."""


class Facts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tells whom a statement is about, and whether two statements say the same."""

    user_names: tuple[str, ...] = ()
    """Names for the user, in small letters, in the ``about`` of a fact."""
    before: tuple[str, ...] = ()
    """What a sentence may begin with before its subject."""
    others: tuple[str, ...] = ()
    """Another person ("my friend Jack"), but no compound ("my mother tongue"); {NAME} stands for a
    name that may follow."""
    first_person: Phrases = Phrases()
    """The sentence is about the user after all."""
    user: Phrases = Phrases()
    """The user in the third person ("the user's")."""
    addressed: Phrases = Phrases()
    """The second person; no words that may also be the third person."""
    own: Phrases = Phrases()
    """Possessives of the user ("my")."""
    kin: Phrases = Phrases()
    """A fact is about a name or the family, besides the next two lists."""
    married: Phrases = Phrases()
    """Words for a spouse, with a possessive, and other words that tell that somebody is married."""
    children: Phrases = Phrases()
    """Words for children: whoever has them is their father or mother."""
    denies: Phrases = Phrases()
    """Negations."""


class Injection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Text that gives orders to the assistant, or is about secrets."""

    set_aside: tuple[str, ...] = ()
    """Orders to ignore the rules."""
    system: tuple[str, ...] = ()
    """Words of the system message and the like."""
    you_are: tuple[str, ...] = ()
    articles: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()
    """Parts of a sentence that gives the assistant a role: "you are", "a", "bot"."""
    assistant: tuple[str, ...] = ()
    that: tuple[str, ...] = ()
    must: tuple[str, ...] = ()
    """Parts of a sentence that gives it a duty: "that", "the assistant", "must"."""
    from_now_on: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    """Orders how to answer from now on."""
    orders: tuple[str, ...] = ()
    """Other orders."""
    gives_away: tuple[str, ...] = ()
    secrets: Phrases = Phrases()
    rules: tuple[str, ...] = ()
    """The current rules, or orders to ignore them."""


class Chat(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Wordings of models that chat instead of writing."""

    openings: tuple[str, ...] = ()
    """Beginnings of answers to people, which no summary has."""
    second_person: Phrases = Phrases()


class SummaryWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What models write around a summary: "Sure!  Here is the updated summary: ..."."""

    names: tuple[str, ...] = ()
    """Names for a summary."""
    before: Phrases = Phrases()
    """What comes before that name in a title."""
    consent: tuple[str, ...] = ()
    here: tuple[str, ...] = ()
    closings: tuple[str, ...] = ()
    """Beginnings of offers of more."""


class Language(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A language's file."""

    language: LanguageInfo
    question: Question = Question()
    words: Words = Words()
    dates: Dates = Dates()
    slots: Slots = Slots()
    small_talk: SmallTalk = SmallTalk()
    standing: Standing = Standing()
    own_words: OwnWords = OwnWords()
    person: Person = Person()
    facts: Facts = Facts()
    injection: Injection = Injection()
    chat: Chat = Chat()
    summary: SummaryWords = SummaryWords()


class Scripts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Patterns of one character: ``shared`` by many languages, or the ``own`` of one."""

    shared: dict[str, str]
    own: dict[str, str]


class Common(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``common.toml``: ``order`` are the codes of all languages, ``sounds`` as in small talk,
    ``captions`` the beginnings of machine-made descriptions of pictures."""

    order: tuple[str, ...]
    sounds: tuple[str, ...]
    captions: tuple[str, ...]
    scripts: Scripts
