"""What a standing instruction is about: words cut to stems, and when it applies.  Pure.

Cutting words to their first letters does for stemming in many languages at once (McNamee and
Mayfield, Character N-Gram Tokenization for European Language Text Retrieval, 2004).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

STEM = 5
"""Letters kept of a word."""

_WORD = re.compile(r"[一-鿿]+|[ァ-ヶー]{2,}|[가-힣]+|[^\W_぀-ヿ一-鿿가-힣]{2,}")
_HAN = re.compile(r"[一-鿿]")
_HANGUL = re.compile(r"[가-힣]")
_ARTICLE = re.compile(r"^(?:[وفبل]?ال|لل)(?=\w{3})")

_GENERAL = """
ai dit disse ditto detto sulle sugli parlé demandé pedi falei uses uso usare utilices vale rules
a about above after again ago all also always am an and another any anymore anything are as ask
asked asking asks at avoid away be because been before being best better between both but by call
can cannot could did do does doing don't done each either else even ever every everything explain
few find first for forget forward found from future general generally get getting give gives
giving go going good got great had has have having he help her here hers him his how however i i'd
i'll i'm i've if ignore in include including instruction instructions into is it it's its just
keep know like liked likes long look looking lot make makes making many matter me mention more
most much must my myself need needs never new no not nothing now of off often ok okay on once one
only or other our out over own part please prefer preference preferences preferred provide
provided question questions quite rather really remember reply replies respond response responses
answer answers right said same say saying says see set shall she should show so some something
soon start still stop such suggest sure take tell than thank thanks that that's the their them
then there these they thing things think this those time to told too tried try trying under until
up upon us use used using usually very want wants was way we well were what when whenever where
which while who why will wish with without won't work would write yes yet you you'd you're your
yours what's ab aber alle alles als antworte antworten auf aus bei bin bis bist bitte da damit
danach dann das dass dein deine deinen dem den denn der des dich die dies diese dieser dir doch du
durch ein eine einem einen einer eines er es etwas euch frage fragen für gib haben hat hast hätte
hier ich ihr im immer ist ja jede jeden jeder jetzt kann kein keine keinen können lieber mache
machen man mehr mein meine meinen mich mir mit möchte muss nach nicht nichts nie niemals noch nun
nur ob oder ohne schreib schreibe sehr sein sich sie sind sollen sollst soll sondern stets über um
und uns unter vergiss verwende verwenden benutze nutze vom von vor wann war weil wenn wer werde
wie wir wird wo zu zum zur zukunft künftig bevorzuge sofort gesagt al algo antes aunque cada como
con contra cual cuando de del desde donde dos el ella ellos en entre era esa ese eso esta estas
este esto estos está estoy ha hace hacer hasta hay la las le les lo los más mi mis mucho muy nada
ni nos nunca otra otro para pero poco por porque pregunte pregunto prefiero puede puedes que qué
quiero responde responder se ser si sí siempre sin sobre solo son su sus también te tengo ti tiene
toda todas todo todos tu tus un una unas uno unos usa usar uses usted y ya yo favor ahora adelante
partir gusta dije olvida escribe au aux avec ce ces cette chaque comme dans désormais donc dont
dorénavant elle elles est et être eu fait il ils j'ai jamais je leur lui ma mais même mes moi mon
ne notre nous ou où par pas plait plaît pour préfère quand quel quelle qui réponds répondre
répondez sa sans ses sont sur ta tes toi ton toujours tous tout toute toutes une utilise utiliser
vos votre vous avenir maintenant demande écris oublie agora ao aos com diante ela ele em essa esse
isso foi mas meu minha muito na não nas nem os pelo prefiro quando quem responda sem sempre seu
sua são também tem tudo uma umas você anche che chi ci come dai dal dalla degli dei della di dove
e ed gli hai ho io lei loro mai mia mio nei nel nella noi non ora ogni per però più poi preferisco
quello questa questo rispondi rispondere sia sono sul sulla tra tua tuo tutti tutto usare а без
был бы в вам вас все всегда вы где для до его ее если есть ещё же за и из или им их к как когда
который ли меня мне мои мой моя мы на надо не нет ни никогда но о об он она они от отвечай
отвечать по под предпочитаю при с со спрашиваю так также там тебя то тоже только ты у уже чем что
чтобы это этого этот я пиши используй теперь отныне впредь момента больше пожалуйста нужно في من
على إلى عن مع هذا هذه ذلك التي الذي ما لا لم لن أن إن كان كل كما أو ثم هو هي أنا أنت نحن عندما
دائما دائمًا دائماً أبدا أبدًا أبداً الآن فصاعدا فصاعدًا فصاعداً بعد أجب أجبني استخدم تستخدم اكتب
أفضل أفضّل أسأل أسألك فضلك رجاء المستقبل انس قلته 항상 언제나 앞으로 앞으로는 이제부터 지금부터
절대 절대로 저는 나는 제가 내가 대답해 답해 답변해 주세요 해줘 해주세요 말아 마세요 하지 사용해
사용하지 선호해 선호합니다 좋아해 좋아해요 좋아합니다 물어보면 때는
"""

_GENERAL_CJK = re.compile(
    "从现在起|从现在开始|從現在起|從現在開始|从今以后|從今以後|总是|總是|以后|以後|今后|今後|往后|每次|永远|永遠|始终"
    "|一直|务必|必须|记得|记住|当我|每当|如果我|的时候|不要再|不需要再|不要|不用再|不必再|不用|请|請|使用|都用|用|回答"
    "|答复|回复|回覆|我的|我们|我|你的|你|更喜欢|更喜歡|比较喜欢|最喜欢|很喜欢|喜欢|喜歡|偏好|偏爱|什么|怎么|可以|一下"
    "|推荐|帮|给|有|的|了|吗|是|都|就|要|关于|之前|说过|说|问到|问|忘掉|忘记|忘了|时|都|把|和|在"
    "|必ず|常に|以降|今後|二度|絶対|覚|忘|答|使|聞|言|私|僕|俺"
)

_LANGUAGES = (
    "english german french spanish italian portuguese chinese japanese korean russian arabic dutch"
    " polish turkish hindi mandarin cantonese ukrainian swedish greek hebrew"
    " englisch deutsch französisch spanisch italienisch portugiesisch chinesisch japanisch russisch"
    " koreanisch arabisch inglés alemán francés español italiano portugués chino japonés ruso"
    " coreano árabe anglais allemand français espagnol italien portugais chinois japonais russe"
    " coréen arabe inglês alemão francês espanhol português chinês japonês inglese tedesco"
    " francese spagnolo portoghese cinese giapponese russo английском английски немецком немецки"
    " французском французски русском русски испанском китайском"
    " الإنجليزية الألمانية الفرنسية العربية الإسبانية بالإنجليزية بالعربية بالفرنسية بالألمانية"
    " 영어로 한국어로 독일어로 일본어로 중국어로 프랑스어로"
)
_VALUES = {
    "<language>": _LANGUAGES,
    "<programming>": "python rust java javascript typescript golang kotlin swift ruby haskell",
    "<length>": "short shorter brief briefly concise concisely terse long longer detailed thorough"
    " lengthy verbose kurz knapp ausführlich corta cortas breve breves detallada detalladas"
    " courte courtes bref brève détaillée détaillées concis curto curtas detalhada lunghe lunghi"
    " brevi dettagliate кратко коротко подробно развёрнуто باختصار بالتفصيل"
    " 짧게 간단히 자세히 길게",
    "<temperature>": "celsius fahrenheit kelvin",
    "<units>": "metric imperial kilometers kilometres miles",
    "<manner>": "formal formally informal informally casual casually duze sieze duzen siezen"
    " tutoie vouvoie tutoyer vouvoyer tutéame formell informell",
}
_CJK_VALUES = {
    "<language>": re.compile(
        r"(?:中国?|英|日本?|法|德|韩国?|韓国?|俄)(?:文|语|語)|汉语|漢語|普通话|粤语|西班牙[语語]|"
        r"ドイツ語|フランス語|スペイン語|ロシア語|アラビア語"
    ),
    "<length>": re.compile(
        r"简短|简洁|简单|簡短|簡潔|短く|手短|详细|詳細|詳しく|長く|长一点|短一点"
    ),
}


def fold(word: str) -> str:
    """Small letters without accents; Arabic without its article."""
    plain = unicodedata.normalize("NFKD", word.casefold())
    plain = "".join(c for c in plain if not unicodedata.combining(c))
    return _ARTICLE.sub("", plain)


_STOPS = frozenset(fold(word) for word in _GENERAL.split())
_VALUE_OF = {fold(w): value for value, words in _VALUES.items() for w in words.split()}


def stems(text: str) -> frozenset[str]:
    """The words of a text that say what it is about, cut to stems; Chinese in pairs.

    A word that is one of several values of the same thing, as the name of a language, stands for
    that thing, in angle brackets, and for itself.
    """
    found: set[str] = set()
    text = unicodedata.normalize("NFKC", text)
    for value, pattern in _CJK_VALUES.items():
        text, hits = pattern.subn(" ", text)
        found.update([value] if hits else [])
    text = _GENERAL_CJK.sub(" ", text)
    for match in _WORD.finditer(text):
        found.update(_stems_of(match[0]))
    return frozenset(found)


def _stems_of(word: str) -> Iterable[str]:
    if _HAN.match(word):
        return [word[i : i + 2] for i in range(len(word) - 1)] or [word]
    plain = fold(word)
    if plain in _VALUE_OF:
        return [_VALUE_OF[plain]]
    if plain in _STOPS or (plain.isdigit() and len(plain) < 3) or word.casefold() in _STOPS:
        return []
    return [unicodedata.normalize("NFC", plain)[:2] if _HANGUL.match(word) else plain[:STEM]]


_SCOPE = re.compile(
    r"\b(?:when(?:ever)?|every ?time|each time|any ?time|if|in case) (?:i|we|you|my|there)\b[^,.;]*"
    r"|\bwenn (?:ich|es|du)\b[^,.;]*|\bcuando (?:te |yo |me )?\w+[^,.;]*"
    r"|\b(?:quand|lorsque|si) (?:je|tu|vous|il)\b[^,.;]*|\bquando (?:eu |ti |te |io )?\w+[^,.;]*"
    r"|\bкогда (?:я|мы|ты)\b[^,.;]*|عندما [^،,.]*"
    r"|(?:每?当|每當|當|只要|如果|若)我[^，,。]{1,30}|我(?:问|問|说|提|聊)[^，,。]{1,20}(?:时|的时候|時)"
    r"|[^、。，]{1,30}(?:聞いたら|尋ねたら|質問したら|ときは|時は)|[^,.]{1,30}(?:물어보면|질문하면|때는)",
    re.IGNORECASE,
)


def split_scope(text: str) -> tuple[str, str]:
    """A sentence's rule, and the condition under which it holds ("when I ask about ...")."""
    conditions = " ".join(m[0] for m in _SCOPE.finditer(text))
    return _SCOPE.sub(" ", text), conditions
