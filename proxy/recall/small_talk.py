"""Messages that ask for nothing: thanks, greetings, good wishes, assent, laughter.  Pure.

Lists of words in the languages that recall is tested with.  A message that has others beside them
and function words asks for something; one name ("Thanks, Anna!") is no other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import islice

from proxy.recall.words import Word, fold, words

_POLITE = """
    afternoon appreciate bye cheers evening goodbye goodnight greetings hello hey hi howdy
    morning night thank thanks thankyou thx tks ty welcome abend danke dank dankeschön gruß
    grüße hallo moin morgen nacht servus tschau tschüss tschüs wiedersehen grüezi adiós buenas
    buenos chao gracias hola noches saludos tardes adieu bonjour bonsoir bonne coucou merci nuit
    salut arrivederci buonanotte buonasera buongiorno ciao grazie salve boa bom obrigada
    obrigado olá oi tchau abraço bedankt dag doei goedemorgen hoi welterusten hej hejdå tack tak
    takk moi kiitos cześć dzięki dziękuję bardzo dobranoc merhaba selam sağol teşekkürler
    teşekkür günaydın halo kasih selamat terima banyak cảm ơn chào привет здравствуйте
    здравствуй спасибо благодарю пока доброе добрый ночи дякую привіт ευχαριστώ γεια καλημέρα
    καληνύχτα صباح مساء شكرا شكرًا مرحبا مرحبًا السلام سلام أهلا وداعا عليكم وعليكم تصبح متشکرم
    ممنون مرسی תודה שלום धन्यवाद नमस्ते शुक्रिया
"""
_OTHER = """
    dr mr mrs ms prof herr frau señor señora sr sra monsieur madame mme absolutely again ahead
    alright amazing awesome best bingo bravo btw certainly clear cool correct day days dear
    definitely done excellent exactly excited fab fair fantastic feel fine friend fun funny
    genius glad go good got great guess happy hear help helpful helps hilarious hope huge
    impressive indeed interesting k keep kidding kind know later life lot lots love lovely luck
    luv makes many matter maybe mate mean mille mind mm moment much need nah never neat nice
    nope ok okay okey okie oops oh ooh one pal perfect please pls plz plus point pretty problem
    proceed really right safe saver saying see sense sleep soon sorry sound sounds splendid star
    sure super superb sweet swell take talk tell today together tomorrow tonight totally true
    understand understood useful week weekend well whoa wish wonderful wow worries yay yea yeah
    yep yes yup amen ach continue going enjoy helped lifesaver np work sweetie buddy man guys
    folks start think time try way wait hang second sec minute chat gotcha alles allen beste
    besten bis bitte bestens dann einverstanden ende erstmal fein feierabend freut freue genau
    gern gerne gleich glück gut gute guten guter herzlichen hilfe hilfreich hilft jawohl jo klar
    klasse klingt lieb liebe lieben mach mal passt perfekt prima richtig sagen schlaf schön
    schöne schönen schönes sehr selbst soweit sowieso spitze später stimmt tag toll verstanden
    verstehe viel viele vielen weiß weiter wochenende wunderbar wochen erst heute bald bleib
    hast acuerdo adelante ahora amable ayuda bien bueno buena claro cierto correcto cuídate día
    días dale descansa duerme encantado encanta entendido entiendo excelente exacto fenomenal
    fin finde genial gusto hasta igualmente impresionante luego listo mañana mil muchas
    muchísimas mucho nada oído perdón perfecto pronto semana siento sigue suerte supuesto tarde
    todo vale verdad viva hoy genio buen gracioso graciosa risa tal tenga tengas tengan geht
    gehts geht's accord aide allez beaucoup bientôt bonne chouette compris d'accord demain
    désolé exactement excuse formidable gentil grâce journée là-bas oui ouais merveilleux mieux
    nickel noté parfait pardon plaisir sympa soirée voilà vrai bene bella bello brava buona
    buono buonissimo capito certo chiaro continua d'accordo domani esatto fantastico giusto
    notte ottimo perfetto pomeriggio prego presto ragione scusa sera sì tutto va vero volentieri
    giornata ajuda amanhã até beleza bem bom combinado dia entendi exatamente isso legal logo
    muito muita noite ótimo perfeito prazer sim tudo valeu verdade fijn goed goede graag
    helemaal klopt lekker mooi nacht oké prachtig slaap top wel bra fint god natt godt jättebra
    självklart tusen mange meget hyvä hyvää dobrze dobry dobra jasne świetnie tamam iyi evet
    harika çok ederim geceler günler baik bagus malam pagi sama siang sore ya rất tốt да да-да
    ладно ок окей отлично понял поняла понятно прекрасно продолжай продолжайте спокойной супер
    точно хорошо ясно конечно большое утро вечер день здорово класс أحسنت أكيد الخير النور
    بالتأكيد تمام جدا جداً جزيلا جزيلًا جميل جيد حسنا حسنًا خير رائع صباح صحيح طيب لك ليلة سعيدة
    مساء مفهوم ممتاز نعم والله يعطيك العافية بخير على خوب عالی باشه بله بسیار अच्छा ठीक बहुत जी
    हाँ हां शुभ रात्रि
"""

POLITE = frozenset(fold(_POLITE).split())
"""Words that are said to somebody, whose name may follow."""
SMALL_TALK = POLITE | frozenset(fold(_OTHER).split())
"""Words that alone, with each other or with function words ask for nothing, unless in a question:
"thanks for the work today" does not, "When do I start work?" does."""

_IN_QUESTIONS = frozenset(
    fold("""
    alright bye correct cool fine good great hello hey hi hm nice ok okay oh please really right
    sorry sure thank thanks true understood well wow yeah yes bitte danke echt gut hallo ja klar
    nein richtig wirklich bien bueno claro gracias hola sí vale verdad merci oui voilà vrai va bene
    grazie bem certo obrigada obrigado sim tudo goed ja да правда хорошо спасибо نعم حسنا شكرا
    """).split()
)

_SOUND = re.compile(
    r"(?:[bm]?w?[ahu]*(?:ha|he|hi|ho|ah|eh)+h*|(?:ja|je|ji){2,}j?|(?:rs)+|k{2,}|x+d+|lo+l(?:ol)*"
    r"|lmf?ao+"
    r"|rofl|mdr|ptdr|h*m+h*m*|o+h+|a+h+|a+w+|u+h+|wo+w+|ye+s+|ye+a+h*|no+|so+|o+k+(?:a+y+)?|ja+|o+oh"
    r"|(?:ха|хе|хи|ах){2,}х*|ه{2,}|[\u110f\u1112\u1172\u116e]+|w{2,}|[1-9]|10|100)"
)
"""Laughter and the like, however long; and "1" or "10/10", which nothing is found by."""

_UNSPACED = re.compile(
    r"谢谢|謝謝|多谢|多謝|感谢|感謝|感激|谢啦|谢了|你好|您好|大家好|早上|早安|晚安|晚上|中午|下午"
    r"|再见|再見|拜拜|回见|明天见|回头见|好的|好吧|好啊|好呀|好嘞|好滴|好耶|好|嗯|哦|噢|喔|哈|呵"
    r"|嘿|嘻|是的|对的|對|没错|沒錯|不错|不錯|没问题|沒問題|没事|知道|明白|了解|收到|继续|繼續|请"
    r"|請|可以|行|真|太|棒|赞|讚|厉害|厲害|辛苦|客气|客氣|牛|强|帮助|帮忙|幫忙|幫助|帮|幫|有用"
    r"|清楚|懂|完美|优秀|非常|十分|特别|一下|很|了|的|吗|吧|啊|呢|呀|啦|哇|嘛|你|您|我|对|不|用|这"
    r"|那|是|就|先|这样|今天|到|里|麻烦|开心|高兴|好喜欢|爱你|大|笑|ありがとう|ありがと"
    r"|ございま[すし]た?|サンキュー|こんにち|こんばん|おはよう|おやすみ|おつかれ|お疲れ|さま"
    r"|さようなら|またね|また明日|またあした|また|お願い(?:いた)?し|よろしく|はい|いいえ|いい|うん"
    r"|ええ|そうなん|そうで|そう|わかりまし|分かりまし|わかった|分かった|了解|承知|なるほど|なるほ"
    r"|すごい|すばらしい|素晴らしい|最高|完璧|大丈夫|嬉しい|うれしい|良かった|よかった|助かりまし"
    r"|助かります|助かる|続けて|ください|どうも|本当に|ほんとに|ほんとう|本当|とても|たくさん"
    r"|いたし|まし|です|ます|した|すか|じゃ|オッケー|オーケー|お元気|元気|参考|なり|笑|に|ね|よ|か"
    r"|は|ー|わ|お|た|を|て|ない|から|でも|み|なさい|감사(?:합니다|해요|드립니다|드려요)?"
    r"|고마워요?|고맙(?:습니다|다)?|안녕(?:하세요|히|가세요|계세요)?|잘자요?|잘|자요?|주무세요"
    r"|좋(?:아요?|은|습니다|네요?)|알겠(?:습니다|어요)?|알았어요?|계속|정말로?|진짜|너무|많이|네+"
    r"|넵|예|응|오케이|그래요?|맞아요?|밤|아침|수고(?:하셨습니다|하세요|했어요)?|도움(?:이)?"
    r"|됐어요|되었습니다|최고|완벽(?:해요)?|대박|하루|되세요|보내세요|요|이에요|예요|입니다|สวัสดี"
    r"|ขอบคุณ|ขอบใจ|ครับ|ค่ะ|คะ|มาก|ราตรีสวัสดิ์|โอเค|ดี|ได้|ใช่|555+|เลย"
)
_POLITE_UNSPACED = re.compile(
    r"谢|謝|感谢|感謝|你好|您好|早安|早上好|晚安|晚上好|再见|再見|拜拜|辛苦|ありがと|こんにち"
    r"|こんばん|おはよう|おやすみ|お疲れ|감사|고마|고맙|안녕|수고|สวัสดี|ขอบคุณ"
)
_CALLED = re.compile("(?:さん|ちゃん|くん|君|様|先生|씨|님)$")
_VOCATIVE = fold("يا")
_NEAR = 2
_MOST_NAMED = 3
"""Characters of a name without a title, in scripts without spaces."""

_HOW_ARE_YOU = re.compile(
    r"\bhow(?: are|'s| is|’s) (?:you|it|things|everything|life)\b[\w\s]{0,16}\?"
    r"|\bwie geht(?:'s|’s|s| es)[\w\s]{0,16}\?|¿?\b(?:qué tal|cómo (?:estás|va))[\w\s]{0,8}\?"
    r"|\bça va\s?\?|\bcome (?:stai|va)\?|\btudo bem\?|كيف حالك\s?؟|как дела\?"
    r"|你好吗[？?]|元気ですか[？?]"
)
_MARK = re.compile("[?？؟¿]|[吗呢么]")
_ASKING = re.compile(
    r"\b(?:what|when|where|who|whose|which|why|how|remind|wann|wo|wer|wie|warum|welche\w?"
    r"|qué|cuándo|dónde|quién|cómo|cuál|quand|où|qui|comment|quel\w*|quando|dove|chi|come|onde"
    r"|quem|когда|где|кто|как|что|متى|أين|من|كيف|ماذا)\b"
)
_REPEATED = re.compile(r"(.)\1{2,}")
_NAME = re.compile(r"[^\W\d_][^\W\d_'’-]*")


def is_small_talk(text: str, found: Sequence[Word], says_nothing: Callable[[str], bool]) -> bool:
    """Whether a message has nothing that could be looked for.

    ``found`` are its words; ``says_nothing`` tells function words of its language.
    """
    asking = _asks(text)
    others = (
        place
        for place, word in enumerate(found)
        if not _is_said(word, asking) and (word.unspaced or not says_nothing(word.text))
    )
    left = list(islice(others, 2))
    return not left or (len(left) == 1 and not asking and _names(text, found, left[0]))


def closes(text: str) -> bool:
    """Whether small talk asks for nothing of a day that it names ("That's all for today!")."""
    return not _asks(text) and any(map(_is_said, words(text)))


def _asks(text: str) -> bool:
    """Whether a message asks; "how nice!" does not, nor does "how are you?"."""
    text = _HOW_ARE_YOU.sub("", text.lower())
    exclaims = text.rstrip().endswith(("!", "！"))
    return bool(_MARK.search(text)) or (not exclaims and bool(_ASKING.search(text)))


def _is_said(word: Word, asking: bool = False) -> bool:
    """Whether a word is one of small talk."""
    if word.unspaced:
        return not _UNSPACED.sub("", word.text)
    if asking:
        return word.text in _IN_QUESTIONS
    shorter = (_REPEATED.sub(r"\1", word.text), _REPEATED.sub(r"\1\1", word.text))
    return not SMALL_TALK.isdisjoint((word.text, *shorter)) or bool(_SOUND.fullmatch(word.text))


def _names(text: str, found: Sequence[Word], place: int) -> bool:
    """Whether the one word that is left is the name of who is thanked or greeted."""
    word = found[place]
    if word.unspaced:
        polite = any(_POLITE_UNSPACED.search(each.text) for each in found)
        name = _CALLED.sub("", _POLITE_UNSPACED.split(_UNSPACED.sub("", word.text))[0])
        return polite and len(name) <= _MOST_NAMED
    if not any(each.text in POLITE or _POLITE_UNSPACED.search(each.text) for each in found):
        return False
    beside = [*found[max(0, place - _NEAR) : place], *found[place + 1 : place + 2]]
    if found[place - 1].text == _VOCATIVE:
        return True
    capital = (name for name in _NAME.findall(text) if name[0].isupper() and name[1:].islower())
    return any(map(_is_said, beside)) and word.text in map(fold, capital)
