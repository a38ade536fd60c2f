"""Which language a text is in, and the words in it that say nothing.  Pure.

A text's language is guessed from its script and, where many languages share one, from its function
words: they are a third of every text that has sentences, and short texts are what chats are made
of.  A wrong guess costs little, because questions are stemmed under every plausible language.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from proxy.recall.words import fold

ENGLISH = "english"
UNKNOWN = ""

_WORDS = {
    "english": """
        a about after again all also am an and any are aren as at be been before being both
        but by can could couldn d did didn do does doesn doing don down each ever for from
        further had hadn has hasn have haven having he her here hers him his how i if in
        into is isn it its just let ll m me more most my no nor not now of off on once only
        or other our ours out over own re s same shall she should shouldn so some such t
        than that the their theirs them then there these they this those through to too
        under until up us ve very was wasn we were weren what when where which while who
        whom whose why will with won would wouldn you your yours
        """,
    "german": """
        aber alle als also am an auch auf aus bei bin bis bist da damit dann das dass dein
        deine dem den denn der des dich die dies diese diesem diesen dieser dir doch dort du
        durch ein eine einem einen einer eines er es euch euer für gegen hab habe haben hat
        hatte hattest hier hin ich ihm ihn ihr ihre im in ist ja jede jeder kann kein keine
        können man mein meine meinem meinen meiner mich mir mit nach nicht noch nur ob oder
        ohne schon sehr sein seine sich sie sind so über um und uns unser unter vom von vor
        wann war waren warum was weil welche welchem welchen welcher welches wem wen wenn
        wer werden wie wieder will wir wird wo wurde würde zu zum zur zwischen
        """,
    "spanish": """
        a al algo ante antes aunque como cómo con cual cuál cuáles cuando cuándo de del
        desde donde dónde durante e el él ella ellas ellos en entre era es esa ese eso esta
        está están este esto estoy fue fui ha había han has hasta hay he la las le les lo
        los más me mi mis mucho muy nada ni no nos nosotros nuestra nuestro o os otra otro
        para pero por porque que qué quien quién se ser si sí sin sobre son soy su sus
        también te tengo ti tiene todo todos tu tú tus un una uno unos usted y ya yo
        """,
    "french": """
        ai alors as au aussi autre aux avec avez avons c ce ces cet cette comme comment d
        dans de des donc du elle elles en es est et étais était été être eu fait il ils j je
        l la le les leur leurs lui m ma mais me même mes moi mon n ne nos notre nous on ont
        ou où par pas plus pour pourquoi qu quand que quel quelle quelles quels qui quoi s
        sa sans se ses si son sont suis sur t ta te tes toi ton tous tout très tu un une vos
        votre vous y à ça
        """,
    "italian": """
        a ad ai al alla alle anche avere aveva c che chi ci come con cosa cui da dal dalla
        dei del della delle di dove e è ed era ero essere fra gli ha hai hanno ho i il in io
        l la le lei li lo loro lui ma me mi mia mie miei mio molto ne nel nella no noi non
        nostro o per perché più quale quali quando quella quello questa questo se sei si sia
        sono sta su sua suo sul te ti tra tu tua tuo tutti un una uno vi voi
        """,
    "portuguese": """
        a ao aos aquela aquele as até com como da das de dela dele depois do dos e é ela
        elas ele eles em entre era essa esse esta está estava este estou eu foi fui há isso
        isto já lhe mais mas me mesmo meu meus minha minhas muito na não nas nem no nos nós
        num numa o onde os ou para pela pelo por porque qual quais quando que quem se sem
        ser seu sua são só também te tem tenho teu tinha tu tua um uma você vocês à às
        """,
    "dutch": """
        aan al als bij ben dan dat de deze die dit doen door dus een en er gaan geen haar
        had heb hebben heeft hem het hier hij hoe hun ik in is je jij jou jouw kan kunnen
        maar me met mij mijn na naar niet nog nu of om omdat ons ook op over te toen tot u
        uit van veel voor waar waarom wanneer was wat we welke werd wie wij wil worden zal
        ze zei zich zij zijn zo zonder
        """,
    "swedish": """
        alla att av blev bli de dem den denna det detta dig din dina ditt du där efter ej
        eller en ett från för ha hade han har hon hur här i icke inte jag kan kunde man med
        mellan men mig min mina mitt mot mycket ni nu när någon något några och om oss på
        samma sedan sig sin sina sitt ska skulle som så till under upp ut utan vad var
        varför vem vi vid vilka vilken än är över
        """,
    "danish": """
        af alle at blev bliver da de dem den denne der deres det dette dig din dine dit du
        efter eller en er et for fra ham han hans har havde hende her hos hun hvad hvem hvis
        hvor hvordan hvorfor hvornår i ikke ind jeg jer kan kunne man med meget men mig min
        mine mit nogle nu når og også om op os over på sin som skal skulle så til ud under
        var vi vil ville være
        """,
    "finnish": """
        ei eivät että he hän ja jo joka jos kanssa kuin kun kuka me mikä milloin minun minä
        missä mitä mutta myös ne niin nyt oli olen olet olin on ovat se sen siellä sinun
        sinä sitä tai tämä vain vai voi
        """,
    "polish": """
        a ale bo był była było być by co czy dla do go i ich ja jak jaka jaki jakie jest
        jestem już kiedy kto która które który ma mam mi mnie mój moja moje mu na nie o od
        on ona oni po przez się są ta tak tam te tego ten to tu twój ty tylko w we z za ze
        że żeby
        """,
    "turkish": """
        acaba ama ben beni benim bir biz bu çok da daha de değil diye en gibi hangi hem her
        için ile ise kadar kim ki mi mı mu mü nasıl ne neden nerede o olan olarak oldu onu
        onun sen seni senin şey şu ve veya ya
        """,
    "indonesian": """
        ada adalah akan aku anda apa apakah atau bagaimana bahwa bisa dalam dan dari dengan
        di dia ini itu jika juga kamu kapan karena ke kita lagi mana mereka mengapa oleh
        pada saat saya sebagai siapa sudah telah tidak untuk yang
        """,
    "russian": """
        а без был была были было быть в вам вас во вот все вы где да для до его ее если есть
        еще же за и из или им их к как какая какие какой когда кто ли мне мной мои мой моя
        мы на над нас не него нее нет ни них но о об он она они от по под почему при с со
        так такой там тебе тебя то тоже только ты у уже чем что чтобы эта эти это этот я
        """,
    "arabic": """
        أن أنا أنت أو أي أين إلى إن الآن التي الذي الذين بعد بل بين تلك ثم حتى ذلك عن على
        عند في قبل قد كان كانت كل كم كما كنت كيف لا لك لقد لكن لم لماذا لن له لها لي ليس ما
        ماذا متى مع من منذ نحن نعم هذا هذه هل هم هنا هناك هو هي و يا
        """,
    "persian": """
        آن آنها از است اگر اما او این با باید بر برای بود به تا تو خود در را شد شما کجا که
        کی ما من می نه هر هم و چرا چه چی چیست یا یک
        """,
    "hindi": """
        अब आप इस इसे उस एक और कब कहाँ का कि किस की के को कौन क्या क्यों जो तक तुम तो था थी
        थे ने नहीं पर भी मुझे में मेरा मेरी मेरे मैं मैंने यह ये वह वे से हम ही हुआ है हैं
        हो
        """,
    "greek": """
        αλλά αν από αυτό για δεν εγώ είναι εσύ η ήταν θα και μας με μου να ο οι όταν πού που
        πως πώς σας σε στη στην στο στον τα τη την της τι το τον του των τους ως
        """,
}

STOP_WORDS: Mapping[str, frozenset[str]] = MappingProxyType(
    {language: frozenset(fold(text).split()) for language, text in _WORDS.items()}
)
"""Function words by Snowball's name of the language, folded."""

# Scripts of one language, or of one that stands for its relatives; others are shared.
_OWN_SCRIPT = (
    (re.compile("[\u3041-\u30ff]"), "japanese"),
    (re.compile("[\uac00-\ud7af]"), "korean"),
    (re.compile("[\u3400-\u9fff]"), "chinese"),
    (re.compile("[\u0900-\u097f]"), "hindi"),
    (re.compile("[\u0370-\u03ff]"), "greek"),
    (re.compile("[\u0530-\u058f]"), "armenian"),
    (re.compile("[\u0b80-\u0bff]"), "tamil"),
)
_SHARED_SCRIPT = (
    (re.compile("[a-z\u00df-\u024f]"), tuple(_WORDS)[: list(_WORDS).index("russian")]),
    (re.compile("[\u0400-\u04ff]"), ("russian",)),
    (re.compile("[\u0600-\u06ff]"), ("arabic", "persian")),
)
_SAMPLE = 200
"""Words that are looked at."""


def _inverted() -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for language, known in STOP_WORDS.items():
        for word in known:
            found.setdefault(word, []).append(language)
    return {word: tuple(languages) for word, languages in found.items()}


_LANGUAGES_OF: Mapping[str, tuple[str, ...]] = MappingProxyType(_inverted())


def plausible(words: Sequence[str]) -> tuple[str, ...]:
    """The languages that folded words may be in, the likeliest first; () if nothing tells.

    Likely are those with at least half as many function words as the likeliest.
    """
    hits: Counter[str] = Counter()
    for word in words[:_SAMPLE]:
        hits.update(_LANGUAGES_OF.get(word, ()))
    best = hits.most_common()
    return tuple(language for language, count in best if 2 * count >= best[0][1])


def guess(words: Sequence[str]) -> str:
    """The likeliest language of folded words, "" if nothing tells."""
    likely = plausible(words)
    if likely:
        return likely[0]
    text = " ".join(words[:_SAMPLE])
    return next((language for script, language in _OWN_SCRIPT if script.search(text)), UNKNOWN)


def of_script(word: str) -> tuple[str, ...]:
    """The languages that a folded word may be in by its letters alone."""
    for script, languages in _SHARED_SCRIPT:
        if script.search(word):
            return languages
    return tuple(language for script, language in _OWN_SCRIPT if script.search(word))
