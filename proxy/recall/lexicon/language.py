"""What a file of a language holds, and what each of its lists is for.

A language may leave out any of them: it is understood with less finesse then.  What is no regular
expression is called words, and is text with blanks between them.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Unit = Literal["day", "week", "weekend", "month", "season", "year"]


class Phrases(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Patterns of phrases that indicate something where a text has one.

    ``words`` match between word boundaries, ``anywhere`` also inside words and in scripts without
    spaces.
    """

    words: tuple[str, ...] = ()
    anywhere: tuple[str, ...] = ()


class LanguageInfo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The language itself.

    ``name`` is Snowball's, ``script`` a name of ``common.toml``.  ``stop_words`` are function
    words: they say nothing, and tell the language; so do they with the ``conjunction`` that is
    written together with the word behind it.  ``stop_characters`` are grammar too, in scripts
    without spaces.  ``article`` is one that is written together with its word, and ``articles``
    what such words begin with: it, and what may stand before it.
    """

    name: str
    script: str = ""
    stop_words: str = ""
    stop_characters: str = ""
    conjunction: str = ""
    article: str = ""
    articles: Phrases = Phrases()


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the wording of a question tells what it is about, beside its topic."""

    frame: str = ""
    """Words of how one asks, in all their forms: they say little of what is asked about."""
    likened: Phrases = Phrases()
    """What ends with a word that says nothing there ("what is it like", "looks like")."""
    before_nouns: str = ""
    """Articles and the like, where nouns have a capital: what is behind one is nobody's name."""
    about_user: Phrases = Phrases()
    """Words of the first person."""
    about_assistant: Phrases = Phrases()
    """It asks for what the assistant said ("what did you recommend")."""
    when: Phrases = Phrases()
    """It asks for a time."""
    orders: Phrases = Phrases()
    """It asks in which order things were."""
    general: Phrases = Phrases()
    """How one begins that anybody might ask: for work, or for what is known ("write me a ...")."""
    works_on: Phrases = Phrases()
    """Which of these ask for work on a text that is given ("translate")."""
    lists: Phrases = Phrases()
    """It asks for all there are of something, or how many they are."""
    goes_on: Phrases = Phrases()
    """What a message begins with that goes on about what was said ("and ...")."""
    points_back: Phrases = Phrases()
    """Words that stand for something said before ("it", "the other")."""
    determiners: str = ""
    """Those of them that stand before what they mean too ("that bike")."""
    auxiliaries: str = ""
    """Verbs behind which they do not, where one word follows ("does that work?")."""
    was: Phrases = Phrases()
    """It asks for what was ("who was the vet")."""
    again: Phrases = Phrases()
    """It asks for what was told already ("what was that called again")."""


class Words(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What words have in common that their endings do not tell."""

    forms: tuple[str, ...] = ()
    """Forms of one word ("go went gone")."""
    alike: tuple[str, ...] = ()
    """Words that say nearly the same: each finds the others, for less."""
    kinds: tuple[str, ...] = ()
    """Words for a kind of thing, a colon, and what is of it: those find these, for less."""


class Dates(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How days are named.

    Patterns may use {NUMBER}, {UNIT}, {YEAR} and {DAY}, and say what they found in groups: number,
    unit, year, month, day, weekday; half, if it is half a unit, more, if it is one half more.
    """

    months: tuple[str, ...] = ()
    """Words for each month, from January on."""
    weekdays: tuple[str, ...] = ()
    """Words for each day of the week, from Monday on."""
    units: dict[Unit, str] = {}
    """Words for spans of time, in all their forms."""
    numbers: tuple[str, ...] = ()
    """Words for one, two, three and so on; further words for three say "a few"."""
    ordinals: str = ""
    """What a day's number may end with ("3rd")."""
    of: str = ""
    """Words between day, month and year ("3rd of May")."""
    before_month: tuple[str, ...] = ()
    before_year: tuple[str, ...] = ()
    """Words before a month or a year that say it is one ("in May")."""
    tells: Phrases = Phrases()
    """Anything that tells when something was or will be."""
    today: Phrases = Phrases()
    yesterday: Phrases = Phrases()
    day_before_yesterday: Phrases = Phrases()
    tomorrow: Phrases = Phrases()
    day_after_tomorrow: Phrases = Phrases()
    ago: tuple[str, ...] = ()
    """So many units ago."""
    last: tuple[str, ...] = ()
    """The last unit."""
    this: tuple[str, ...] = ()
    """The unit that is now, as far as it has come; not of years, in which most of it all was."""
    last_weekday: tuple[str, ...] = ()
    """The last day of this name before today, where it cannot be another; {WEEKDAY} is one."""
    weekday: tuple[str, ...] = ()
    date: tuple[str, ...] = ()
    month: tuple[str, ...] = ()
    year: tuple[str, ...] = ()
    """Other ways to write these than with the words above."""


Slot = Literal["own_name", "name", "role", "home", "work", "number", "favourite"]
"""What has one value at a time; a ``name`` is another's or a thing's, a ``role`` is who is one's
boss or doctor.  Of a ``number`` the value
has a digit or an @; of all others but a ``favourite`` it is a name, with a capital where the script
has them."""


class Slots(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What users tell that has one value at a time, by slot: patterns of whole sentences, without
    what ``leads`` in and what follows the first of ``goes_on``.

    Patterns may use their language's ``parts`` and {VALUE}, and {OLD} for what was before; a group
    ``of`` tells whose value it is.
    """

    leads: tuple[str, ...] = ()
    goes_on: tuple[str, ...] = ()
    doubts: Phrases = Phrases()
    """A sentence is of another time then, or not sure."""
    others: Phrases = Phrases()
    """There may be several of what a message is about ("my other dog")."""
    titles: str = ""
    """Words before names that are no part of them ("Mrs")."""
    parts: dict[str, str] = {}
    holds: dict[Slot, tuple[str, ...]] = {}
    becomes: dict[Slot, tuple[str, ...]] = {}
    """It is so now, and was not."""
    ends: dict[Slot, tuple[str, ...]] = {}
    """It is so no more."""


class SmallTalk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Messages that ask for nothing."""

    polite: str = ""
    """Words that are said to somebody, whose name may follow: thanks, greetings."""
    others: str = ""
    """Words that, beside those and each other, ask for nothing."""
    in_questions: str = ""
    """Those of both that ask for nothing in a question either."""
    unspaced: tuple[str, ...] = ()
    """The same in scripts without spaces: what remains without these asks for something."""
    polite_unspaced: tuple[str, ...] = ()
    filler: str = ""
    """Further words that sentences of thanks, praise and comfort are made of."""
    filler_unspaced: tuple[str, ...] = ()
    titles: str = ""
    """Words that follow a name without a space."""
    vocative: str = ""
    """A word that says a name follows."""
    sounds: tuple[str, ...] = ()
    """Laughter and the like, however long; each is all of a word."""
    how_are_you: tuple[str, ...] = ()
    """Questions that ask for nothing."""
    asking: Phrases = Phrases()
    """Words that questions begin with."""
    question_marks: str = ""
    """Characters that make a question, beside the question mark."""


class Standing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a user says shall be done from now on, or prefers.  Each is searched in a sentence.

    Patterns may use {START}, where an order can begin, and their language's ``parts``.
    """

    cues: tuple[str, ...] = ()
    """Plain text in small letters: a sentence without any is not looked at."""
    parts: dict[str, str] = {}
    orders: tuple[str, ...] = ()
    preferences: tuple[str, ...] = ()
    leanings: tuple[str, ...] = ()
    """Preferences said softly: what answers shall keep to or avoid, and no mere likes and moods."""
    withdrawals: tuple[str, ...] = ()
    """Of what was said before."""
    ended: tuple[str, ...] = ()
    """The same, told of oneself: what somebody is, has or eats is so no more."""
    unsure: tuple[str, ...] = ()
    """Before one of those: it is asked, doubted, supposed, or what another thinks."""
    sure: tuple[str, ...] = ()
    """But not by this, up to the end: it is so, whoever says it ("the doctor says")."""
    mistaken: tuple[str, ...] = ()
    """Nor by this: what tells it is wrong ("a false test")."""
    corrected: tuple[str, ...] = ()
    """Behind one of those: it was only told wrongly ("it's a severe one"), or another goes on."""
    eating: str = ""
    """Verbs that all food and drink is taken with: they do not tell which is taken again."""
    reported: Phrases = Phrases()
    """Another one's words follow."""
    reported_after: tuple[str, ...] = ()
    """Another one's words came before."""
    everything: Phrases = Phrases()
    """A withdrawal of all."""
    taken_back: tuple[str, ...] = ()
    """Whole sentences that withdraw what was said right before them."""
    here: tuple[str, ...] = ()
    """It is about the work at hand or this moment ("in this letter", "today"), and not to last."""
    works: tuple[str, ...] = ()
    """A piece of work is ordered: orders that follow in the message are about it."""
    lasting: tuple[str, ...] = ()
    """But not those that say they are to last."""
    conditions: tuple[str, ...] = ()
    """Under which an order holds, up to where they end."""
    joins: Phrases = Phrases()
    """Words between two parts of a sentence, each of which may be taken back alone ("and")."""
    but: Phrases = Phrases()
    """The same where the other side follows."""
    links: Phrases = Phrases()
    """Words before what narrows a thing that is named before them ("noix de coco")."""
    general: str = ""
    """Words that say nothing of an order's matter."""
    general_unspaced: tuple[str, ...] = ()
    general_phrases: tuple[str, ...] = ()
    """The same of several words."""
    articles: tuple[str, ...] = ()
    """What words may begin with that is no part of them."""
    values: dict[str, str] = {}
    """By what they are a choice of, words one of which takes the place of another: languages."""
    unspaced_values: dict[str, tuple[str, ...]] = {}
    value_phrases: dict[str, tuple[str, ...]] = {}
    """The same where an order sets one by several words ("call me ...")."""


class OwnWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What of a message is not its writer's own words."""

    mail: tuple[str, ...] = ()
    """Lines before a mail that is forwarded or answered."""
    mail_from: tuple[str, ...] = ()
    """How the line with a mail's sender begins."""
    please: tuple[str, ...] = ()
    """What may stand before an order."""
    tasks: Phrases = Phrases()
    """Orders before a text that something shall be done with ("translate this: ...")."""
    roles: str = ""
    """How recorded talks with assistants name their speakers."""
    no_speakers: str = ""
    """Before a colon, words that are no name of who speaks here."""
    says: str = ""
    """Characters before a colon that tell another's words."""
    role_play: tuple[str, ...] = ()
    """How messages begin that set up a part to be played."""
    abbreviations: str = ""
    """Words whose full stop ends no sentence."""


Trait = Literal["name", "home", "work", "age"]
"""What people tell of themselves and ask for again; an ``age`` is a birthday too."""


class Person(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What messages say of the one who writes them."""

    tells: Phrases = Phrases()
    """A sentence tells something of them."""
    pleased: Phrases = Phrases()
    """The answer before was good."""
    traits: dict[Trait, Phrases] = {}
    """A message tells this of them."""
    asks: dict[Trait, Phrases] = {}
    """A message asks for it."""
    asks_all: Phrases = Phrases()
    """It asks for all that is known of them."""


class Facts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whom a statement is about, and whether two say the same."""

    user_names: tuple[str, ...] = ()
    """What the user is called, in small letters, where it is asked whom a fact is about."""
    before: tuple[str, ...] = ()
    """What a sentence may begin with before it comes to somebody."""
    others: tuple[str, ...] = ()
    """Somebody else ("my friend Jack"), and no compound with them ("my mother tongue"); {NAME}
    stands for a name that may follow."""
    first_person: Phrases = Phrases()
    """The sentence comes to the user after all."""
    user: Phrases = Phrases()
    """The user, where others tell of them ("the user's")."""
    addressed: Phrases = Phrases()
    """Somebody who is spoken to; no word that may be another's as well."""
    own: Phrases = Phrases()
    """Somebody is the user's own ("my")."""
    kin: Phrases = Phrases()
    """A fact tells a name, or of the family, beside those of the next two."""
    married: Phrases = Phrases()
    """Who has somebody called so, as their own, is married; and other words for that."""
    children: Phrases = Phrases()
    """Those whose father or mother the one is who has them."""
    denies: Phrases = Phrases()
    """Words that make the opposite of a statement."""


class Injection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Text that tells the assistant what to do, or is about secrets."""

    set_aside: tuple[str, ...] = ()
    """To ignore what holds."""
    system: tuple[str, ...] = ()
    """Words of the system message and the like."""
    you_are: tuple[str, ...] = ()
    articles: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()
    """What the assistant is told to be: "you are", "a", "bot"."""
    assistant: tuple[str, ...] = ()
    that: tuple[str, ...] = ()
    must: tuple[str, ...] = ()
    """What it is told it must: "that", "the assistant", "must"."""
    from_now_on: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    """How it shall answer from now on."""
    orders: tuple[str, ...] = ()
    """Other orders."""
    gives_away: tuple[str, ...] = ()
    secrets: Phrases = Phrases()
    rules: tuple[str, ...] = ()
    """The rules that hold, or to ignore them."""


class Chat(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How models chat where they should write."""

    openings: tuple[str, ...] = ()
    """How answers to people begin, and no summary does."""
    second_person: Phrases = Phrases()


class SummaryWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What models put around a summary: "Sure!  Here is the updated summary: ..."."""

    names: tuple[str, ...] = ()
    """What it is called."""
    before: Phrases = Phrases()
    """What stands before that in a title."""
    consent: tuple[str, ...] = ()
    here: tuple[str, ...] = ()
    closings: tuple[str, ...] = ()
    """How offers of more begin."""


class Language(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of a language."""

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
    ``captions`` what a machine's words of a picture begin with."""

    order: tuple[str, ...]
    sounds: tuple[str, ...]
    captions: tuple[str, ...]
    scripts: Scripts
