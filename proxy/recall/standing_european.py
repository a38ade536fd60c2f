"""The same in German, Spanish, French, Portuguese, Italian and Russian; see the English ones."""

from __future__ import annotations

from proxy.recall.standing_patterns import START, Patterns

_DE_DO = r"""(?:antworte|schreibe?|verwende|benutze|nutze|gib|nenne?|sprich|rede|formatiere
        |erkläre|füge
    |zeige?|duze|sieze|mache?|halte|fasse|rechne|übersetze|sage?|frage?|schlage?|empfiehl|zitiere
    |vermeide|lass|erwähne|beginne|liste|prüfe|achte|bleib)(?:n\ Sie)?\b"""
_DE_EVER = (
    r"(?:immer|nie(?:mals)?|stets|grundsätzlich|nie\ wieder|nicht\ mehr|kein\w*\b.{0,120}\bmehr)"
)
_DE_NOW_ON = (
    r"(?:ab\ (?:jetzt|sofort|heute|nun)|von\ (?:nun|jetzt)\ an|künftig|zukünftig|in\ Zukunft)"
)
_DE_START = rf"{START}(?:(?:bitte|ok|und|also|danke|hallo|gut|aber)[,!]?\s+){{0,3}}"
_DE_ORDERS = (
    rf"{_DE_START}{_DE_DO}.{{0,120}}\b(?:{_DE_EVER}|{_DE_NOW_ON})\b",
    rf"""{_DE_START}(?:immer|nie|niemals|stets)\b.{{0,120}}\b(?:antworten|schreiben
        |verwenden|benutzen|angeben)\b""",
    rf"""{_DE_START}{_DE_NOW_ON}\b,?\ (?:bitte|{_DE_DO}|nur|immer|nie|sollst\ du
        |möchte\ ich,?\ dass\ du)""",
    rf"""{START}wenn\ ich\b.{{0,120}}\b(?:frage|bitte|schreibe|erwähne),?\ (?:dann\ )?
        (?:bitte\ |immer\ |sollst\ du|{_DE_DO})""",
    rf"{_DE_START}{_DE_DO}.{{0,120}}\bwenn\ ich\b.{{0,120}}\b(?:frage|bitte|schreibe|erwähne)\b",
    rf"{START}wenn\ ich\b.{{1,80}}\b(?:sage|schreibe),?\ (?:dann\ )?meine\ ich\b",
    rf"{_DE_START}(?:denke?|merke?)\ (?:bitte\ |immer\ |dir\ |stets\ ){{0,2}}(?:daran|dir|dass)\b",
    rf"""{_DE_START}ich\ (?:möchte|will|hätte\ gerne?),?\ dass\ du\b.{{0,120}}
        \b(?:{_DE_EVER}|{_DE_NOW_ON})\b""",
)
_DE_PREFERENCES = (
    r"\bich\ (?:persönlich\ |generell\ |eher\ )?bevorzuge\b|\bbevorzuge\ ich\b",
    r"\bich\ ziehe\b.{1,120}\bvor\b",
    r"\bmir\ (?:ist|sind)\b.{1,80}\blieber\b|\bich\ mag\b.{1,80}\blieber\b",
    r"\bich\ (?:mag|esse|trinke|nehme|nutze|arbeite|lese|reise|höre)\ (?:am\ liebsten|lieber)\b",
    r"\bich\ hätte\b.{0,30}\b(?:antworten|texte|erklärungen|zusammenfassungen)\b.{0,30}\blieber\b",
)
_DE_LEANINGS = (
    r"\bich\ (?:würde|hätte|möchte)\b.{0,30}\blieber\b",
    r"""\bich\ (?:möchte|will|würde\ gern)\b.{1,120}\bvermeiden\b
        |\bich\ fühle\ mich\b.{1,60}\bwohler\b""",
)
_DE_WITHDRAWALS = (
    r"\bvergiss,?\ (?:bitte\ )?was\ ich\b.{0,120}\bgesagt\b",
    r"""\bdu\ (?:musst|brauchst)\b.{0,120}\b(?:nicht|kein\w*)\ .{0,120}\bmehr\b|\bdu\ (?:musst
        |brauchst)\b.{0,120}\bnicht\ mehr\b""",
)

_ES_DO = r"""(?:responde|respóndeme|contesta|contéstame|usa|utiliza|escribe|escríbeme|habla|háblame
    |incluye|da|dame|muestra|muéstrame|explica|explícame|llámame|trátame|tutéame|formatea|mantén
        |evita
    |haz|pon(?:me|l[oa]s?)?|dime|añade|convierte|indica|indícame|avísame|recuérdame|resume|traduce|pregunta|pregúntame|cita|menciona|sugiere|recomienda|confirma|verifica
    |responda|conteste|use|utilice|escriba|incluya|hable|muestre|explique|evite)\b"""
_ES_DONT = r"""(?:me\ )?(?:uses|utilices|respondas|contestes|escribas|incluyas|hables|des|pongas
        |digas
    |llames|hagas|muestres|sugieras|recomiendes|vuelvas\ a|use|utilice|responda)\b"""
_ES_NOW_ON = r"(?:a\ partir\ de\ (?:ahora|hoy)|de\ ahora\ en\ adelante|desde\ ahora|en\ adelante)"
_ES_START = rf"{START}(?:(?:por\ favor|ok|y|pero|gracias|hola|bueno)[,!]?\s+){{0,3}}"
_ES_ORDERS = (
    rf"{_ES_START}siempre\ {_ES_DO}",
    rf"{_ES_START}(?!firme|conforme|enorme)\w{{2,12}}(?<!r)me\ (?:por\ favor\ )?siempre\b",
    r"\bcuando\ (?:yo\ )?dig[oa]\b.{1,80}\b(?:me\ refiero\ a|quiero\ decir)\b",
    rf"""{_ES_START}{_ES_DO}
        .{{0,120}}\b(?:siempre|{_ES_NOW_ON}|cuando\ (?:te\ )?(?:pregunte|pida|hable))\b""",
    rf"""{_ES_START}(?:nunca|jamás)\ {_ES_DONT}|{_ES_START}no\ {_ES_DONT}.{{0,120}}\b(?:más
        |nunca|{_ES_NOW_ON})\b""",
    rf"{_ES_START}no\ vuelvas\ a\ \w+",
    rf"""{_ES_START}{_ES_NOW_ON},?\ (?:por\ favor,?\ |solo\ |siempre\ 
        |nunca\ |no\ |quiero\ que\ )*(?:{_ES_DO}|{_ES_DONT})""",
    rf"""{START}cuando\ (?:te\ )?(?:pregunte|pida|hable|mencione)\b.{{0,120}},\ *(?:por\ favor,?\ 
        |siempre\ |nunca\ |no\ )*(?:{_ES_DO}|{_ES_DONT})""",
    rf"""{_ES_START}(?:recuerda|no\ olvides)\ (?:siempre\ )?(?:usar|responder
        |incluir|escribir|hablar|mencionar)\w*""",
)
_FR_DO = r"""(?:réponds|répondez|utilise[sz]?|emploie|écris|écrivez|parle[sz]?|inclus|incluez
        |donne[sz]?
    |montre[sz]?|explique[sz]?|appelle|tutoie|vouvoie|formate|garde[sz]?|évite[sz]?|fais|faites|mets
    |mettez|résume[sz]?|traduis|cite[sz]?|mentionne[sz]?|propose[sz]?|ajoute[sz]?|commence[sz]?
    |termine[sz]?|précise[sz]?|vérifie[sz]?|confirme[sz]?)(?:[-\ ](?:moi|me))?\b"""
_FR_NOW_ON = r"(?:désormais|dorénavant|à\ partir\ (?:de\ maintenant|d'aujourd'hui)|à\ l'avenir)"
_FR_START = rf"""{START}(?:(?:s'il\ (?:te|vous)\ pla[iî]t|stp|svp|merci|ok|et|mais|alors|bonjour)
    [,!]?\s+){{0,3}}"""
_FR_ORDERS = (
    r"\b(?:quand|lorsque)\ je\ dis\b.{1,80}\bje\ (?:parle\ d|veux\ dire)",
    rf"""{_FR_START}{_FR_DO}.{{0,120}}\b(?:toujours|{_FR_NOW_ON}|(?:quand|lorsque)\ je\ (?:te\ 
        |vous\ )?(?:demande|pose|parle))\b""",
    rf"{_FR_START}toujours\ (?:répondre|utiliser|écrire|inclure|{_FR_DO})",
    rf"{_FR_START}(?:ne\ (?:me\ )?|n'){_FR_DO}.{{0,120}}\b(?:jamais|plus|{_FR_NOW_ON})\b",
    rf"""{_FR_START}{_FR_NOW_ON},?\ (?:s'il\ te\ plaît,?\ |merci\ de\ 
        |je\ veux\ que\ tu\ |ne\ |n'|{_FR_DO})""",
    rf"""{START}(?:quand|lorsque|chaque\ fois\ que)\ je\ (?:te\ |vous\ )?(?:demande
        |pose|parle)\b.{{0,120}},\ *(?:ne\ |n')?{_FR_DO}""",
    r"""\b(?:rappelle-toi|n'oublie(?:\ pas|z\ pas)|pense|souviens-toi)\ (?:bien\ )?(?:de
        |d'|à)\ ?(?:toujours\ )?(?:répondre|utiliser|écrire|inclure|mentionner)""",
)
_PT_DO = r"""(?:responda|responde|use|usa|utilize|utiliza|escreva|escreve|fale|fala|inclua
        |inclui|dê|dá
    |mostre|mostra|explique|explica|me\ chame|chame-me|mantenha|evite|evita|faça|resuma|traduza|cite
    |mencione|sugira|recomende|confirme|verifique|pergunte)\b"""
_PT_NOW_ON = (
    r"(?:a\ partir\ de\ (?:agora|hoje)|de\ agora\ em\ diante|daqui\ (?:para|pra)\ (?:a\ )?frente)"
)
_PT_START = rf"{START}(?:(?:por\ favor|ok|e|mas|obrigad[oa]|olá|bom)[,!]?\s+){{0,3}}"
_IT_DO = r"""(?:rispondi(?:mi)?|risponda|usa|usi|utilizza|scrivi(?:mi)?|parla(?:mi)?|includi
        |dammi|mostra(?:mi)?
    |spiega(?:mi)?|chiamami|mantieni|evita|fai|fammi|riassumi|traduci|cita|menziona|suggerisci
        |conferma
    |verifica|chiedi(?:mi)?|indica)\b"""
_IT_DONT = (
    r"(?:usare|rispondere|scrivere|parlare|includere|dare|dire|chiamarmi|fare|mettere|suggerire)"
)
_IT_NOW_ON = r"(?:d'ora\ in\ (?:poi|avanti)|da\ (?:ora|adesso|oggi)\ in\ (?:poi|avanti)|in\ futuro)"
_IT_START = rf"{START}(?:(?:per\ favore|ok|e|ma|grazie|ciao)[,!]?\s+){{0,3}}"
_RU_DO = r"""(?:отвечай|пиши|используй|говори|указывай|добавляй|называй|обращайся|давай\ мне
        |показывай
    |объясняй|включай|избегай|делай|приводи|переводи|предлагай|уточняй|проверяй|спрашивай
        |зови)(?:те)?\b"""
_RU_NOW_ON = r"(?:с\ этого\ момента|отныне|впредь|с\ сегодняшнего\ дня|в\ дальнейшем|теперь)"
_RU_START = rf"{START}(?:(?:пожалуйста|ок|и|но|спасибо|привет)[,!]?\s+){{0,3}}"
_ROMANCE_SLAVIC_ORDERS = (
    r"\bquando\ (?:eu\ )?(?:digo|disser)\b.{1,80}\b(?:quero\ dizer|me\ refiro)\b",
    r"\bquando\ dico\b.{1,80}\b(?:intendo|voglio\ dire|mi\ riferisco)\b",
    r"\bкогда\ я\ говорю\b.{1,80}\bя\ имею\ в\ виду\b",
    rf"""{_PT_START}sempre\ {_PT_DO}|{_PT_START}{_PT_DO}.{{0,120}}\b(?:sempre|{_PT_NOW_ON}
        |quando\ eu\ (?:te\ |lhe\ )?(?:perguntar|pedir|falar))\b""",
    rf"""{_PT_START}(?:nunca|não)\ (?:me\ )?{_PT_DO}(?<!não\ )(?:
        .{{0,120}}\b(?:mais|nunca|{_PT_NOW_ON})\b)""",
    rf"{_PT_START}nunca\ (?:me\ )?{_PT_DO}",
    rf"""{_PT_START}{_PT_NOW_ON},?\ (?:por\ favor,?\ |só\ |sempre\ |nunca\ 
        |não\ |quero\ que\ você\ )*{_PT_DO}""",
    rf"""{START}quando\ eu\ (?:te\ |lhe\ )?(?:perguntar|pedir
        |falar)\b.{{0,120}},\ *(?:por\ favor,?\ 
        |sempre\ |não\ |nunca\ )*{_PT_DO}""",
    rf"""{_PT_START}(?:lembre-se\ de|não\ (?:se\ )?esqueça\ de)\ (?:sempre\ )?(?:usar
        |responder|incluir|escrever)""",
    rf"""{_IT_START}{_IT_DO}
        .{{0,120}}\b(?:sempre|{_IT_NOW_ON}|quando\ (?:ti\ )?(?:chiedo|parlo|domando))\b""",
    rf"{_IT_START}(?:sempre\ {_IT_DO}|non\ {_IT_DONT}\b.{{0,120}}\b(?:mai|più)\b|mai\ {_IT_DONT})",
    rf"""{_IT_START}{_IT_NOW_ON},?\ (?:per\ favore,?\ |solo\ |sempre\ 
        |non\ |voglio\ che\ )*(?:{_IT_DO}|{_IT_DONT})""",
    rf"""{START}quando\ (?:ti\ )?(?:chiedo|parlo|domando)\b.{{0,120}},\ *(?:per\ favore,?\ 
        |sempre\ |non\ )*(?:{_IT_DO}|{_IT_DONT})""",
    rf"{_IT_START}(?:ricordati\ di|non\ dimenticare\ di)\ (?:\w+\ )?{_IT_DONT}",
    rf"""{_RU_START}(?:всегда|только)\ {_RU_DO}|{_RU_START}никогда\ не\ {_RU_DO}
        |{_RU_START}больше\ не\ {_RU_DO}""",
    rf"""{_RU_START}{_RU_DO}
        .{{0,120}}\b(?:всегда|{_RU_NOW_ON}|когда\ я\ (?:спрашиваю|прошу|говорю))\b""",
    rf"""{_RU_START}{_RU_NOW_ON},?\ (?:пожалуйста,?\ |всегда\ |только\ 
        |никогда\ |не\ |мне\ )*{_RU_DO}""",
    rf"""{START}когда\ я\ (?:спрашиваю|прошу|говорю)\b.{{0,120}},\ *(?:пожалуйста,?\ 
        |всегда\ |не\ )*{_RU_DO}""",
    r"\b(?:quiero|quisiera)\ que\ (?:siempre|nunca)\b|\bquero\ que\ você\ (?:sempre|nunca)\b",
    r"\bje\ (?:veux|voudrais|souhaite)\ que\ tu\ .{0,60}\b(?:toujours|jamais)\b",
    r"\bvoglio\ che\ .{0,60}\b(?:sempre|mai)\b|\bхочу,?\ чтобы\ ты\ (?:всегда|никогда)\b",
)
_ROMANCE_SLAVIC_PREFERENCES = (
    r"""\bprefiero\ (?!no\b|(?:el|la)\ (?:primer|segund|otr|últim)|est[ea]\b
        |es[ea]\b)\w|\bme\ gustan?\ más\b"""
    r"|\bmi\ preferencia\ es\b|\bsoy\ (?:alérgic[oa]|vegetarian[oa]|vegan[oa])\b",
    r"\bje\ préfère\ (?!(?:le|la)\ (?:premi|deuxi|second|derni)|celui|celle)\w|\bj'aime\ mieux\b"
    r"|\bje\ suis\ (?:allergique|végétarien|végane)",
    r"\bprefiro\ (?!(?:o|a)\ (?:primeir|segund|outr|últim)|est[ea]\b|ess[ea]\b)\w|\bgosto\ mais\ d"
    r"|\bsou\ (?:alérgic[oa]|vegetarian[oa]|vegan[oa])\b",
    r"""\bpreferisco\ (?!(?:il|la)\ (?:prim|second|altr|ultim)|quest|quell)\w
        |\bmi\ piac(?:e|iono)\ di\ più\b""",
    r"\bя\ (?:всегда\ |обычно\ |больше\ )?предпочитаю\b|\bпредпочитаю\b|\bмне\ больше\ нравится\b",
)
_ROMANCE_SLAVIC_LEANINGS = (
    r"\bpreferiría\b|\b(?:quiero|quisiera|me\ gustaría)\ evitar\b|\bme\ siento\ más\ cómod[oa]\b",
    r"\bje\ préférerais\b|\bje\ (?:veux|voudrais)\ éviter\b|\bj'aimerais\ éviter\b",
    r"""\b(?:eu\ )?preferiria\b|\b(?:quero|gostaria\ de)\ evitar\b|\bpreferirei\b
        |\bvorrei\ evitare\b""",
    r"\b(?:io\ )?preferirei\b|\bя\ бы\ предпоч[её]л|\bхочу\ избежать\b",
)
_ROMANCE_SLAVIC_WITHDRAWALS = (
    r"""\bolvida\ lo\ que\ (?:te\ )?(?:dije|he\ dicho|pedí)\b|\bya\ no\ (?:hace\ falta
        |es\ necesario|tienes\ que|necesitas)\b""",
    r"""\boublie\ ce\ que\ j'ai\ (?:dit|demandé)\b|\btu\ n'as\ plus\ besoin\b
        |\bce\ n'est\ plus\ (?:la\ peine|nécessaire)\b""",
    r"\besque[çc]a\ o\ que\ eu\ (?:disse|falei|pedi)\b|\bnão\ (?:precisa|é)\ mais\b",
    r"""\bdimentica\ (?:quello\ che|ciò\ che|cosa)\ ho\ detto\b|\bnon\ (?:serve
        |devi|c'è\ bisogno)\ più\b""",
    r"\bзабудь,?\ что\ я\ (?:говорил|сказал|просил)|\bбольше\ не\ (?:нужно|надо|обязательно)\b",
)

# Blanks inside a cue are written as "|".
_CUES = """
immer stets grundsätzlich niemals |nie |wieder nicht|mehr kein ab|jetzt ab|sofort ab|heute ab|nun
von|nun von|jetzt künftig zukunft wenn|ich daran merk bevorzug ziehe lieber wohler vermeiden
vergiss du|musst du|brauchst siempre nunca jamás a|partir ahora en|adelante cuando vuelvas |más
recuerda olvid prefier gusta preferencia alérgic vegetarian vegan preferiría evitar cómod ya|no
toujours jamais |plus désormais dorénavant l'avenir quand|je lorsque|je chaque|fois rappelle
oublie pense souviens préfèr préfér j'aime|mieux allergique végétarien végane éviter sempre agora
em|diante daqui quando lembre esqueça prefiro gosto|mais preferiria não|precisa não|é d'ora da|ora
da|adesso da|oggi in|futuro |mai |più ricorda dimentica preferi piac всегда никогда только больше
момента отныне впредь дня дальнейшем теперь когда|я предпоч избежать забудь
"""

EUROPEAN = Patterns(
    tuple(cue.replace("|", " ") for cue in _CUES.split()),
    _DE_ORDERS + _ES_ORDERS + _FR_ORDERS + _ROMANCE_SLAVIC_ORDERS,
    _DE_PREFERENCES + _ROMANCE_SLAVIC_PREFERENCES,
    _DE_LEANINGS + _ROMANCE_SLAVIC_LEANINGS,
    _DE_WITHDRAWALS + _ROMANCE_SLAVIC_WITHDRAWALS,
)
