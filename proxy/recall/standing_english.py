"""How people say in English what shall be done from now on, and what they prefer.

An order counts where it is one: at the start of a clause, and with a verb for what an assistant
does, so that neither "never give up" nor "she always says" is one.
"""

from __future__ import annotations

from proxy.recall.standing_patterns import START, Patterns

_SOFTLY = r"""(?:(?:ok|okay|so|and|also|but|then|oh|hey|hi|hello|well|thanks|great|now|just|yes|no
    |please|kindly|btw|plus|instead|in\ general|by\ the\ way|one\ more\ thing|in\ that\ case)
    [,:!]?\s+){0,4}"""
_DO = r"""(?:add|address|adapt|adhere|answer|apply|ask|apologi[sz]e|assume|attach|avoid|base|begin
    |capitali[sz]e|check|cite|clarify|communicate|compare|confirm|consider|convert|convey|define
    |describe|display|discuss|double-?check|emphasi[sz]e|end|ensure|explain|express|finish|flag
    |follow\ (?:the|these|this|my)|format|give(?!\ (?:up|in))|greet|highlight|include|indent
    |indicate|introduce|keep\ (?:it|your|the|answers|responses|replies|things|explanations|code
    |everything)|label|leave\ out|limit|list|mark|maintain|make\ sure|mention|name|note|number
    |offer|omit|organi[sz]e|order|output|paraphrase|phrase|present|prioriti[sz]e|produce|propose
    |provide|quote|rank|recommend|refer\ to|remind\ me|rephrase|reply|report|respond|return
    |reveal|round|say(?!\ never)|send\ me|share|show\ (?:me|your|the|units|code|both|all
    |sources)|sign|skip|sort|speak|specify|spell|start|state|stick\ to|structure|suggest
    |summari[sz]e|supply|tag|tailor|talk\ to\ me|tell\ me(?!\ (?:why|what|how|if|whether|more)\b)
    |translate|treat\ me|use|verify|wrap
    |write|be\ (?:brief|concise|honest|direct|polite|formal|informal|specific|critical|blunt
    |precise|explicit|short|terse|critical|thorough|casual|detailed|clear|consistent)
    |call\ (?:me|it|them)|refer|put\ (?:the|your|all|a|units|code)
    |make\ (?:it|your|the|all|answers|code))\b"""
_EVER = r"(?:always|never(?:\ ever)?|(?:don't|do\ not)\ ever)"
_ASK_YOU = r"""(?:(?:(?:can|could|would|will)\ you|(?:i\ (?:want|need|expect)|i'd\ (?:like|love)
    |i\ would\ (?:like|love))\ you\ to|you\ (?:should|must|have\ to|need\ to|can|will)
    |make\ sure\ (?:to|you|that\ you)|be\ sure\ to|try\ to|please|let's|do\ not|don't|stop)\ )"""
_STYLE = r"(?:emojis?|jargon|bullet\ points|exclamation\ marks|markdown|tables|headings|filler)"
_NOW_ON = r"""(?:from\ now\ on(?:wards?)?|from\ here\ on(?:\ out)?|from\ (?:this\ point|today)\ on
    (?:wards?)?|going\ forward|henceforth|in\ all\ (?:of\ )?(?:your|our|future)\ \w+
    |(?:every|each)\ time\ you\ (?:answer|reply|respond|write|give|explain|suggest|recommend))"""
_IN_FUTURE = r"(?:in\ (?:the\ )?future|as\ of\ (?:now|today)|by\ default)"
# What lies between an order and its condition; with one of these it is a task, or a question.
_SO = r"""(?:(?!\b(?:that|which|how|what|why|who|where|script|function|macro|program|phrases
    |tips|to\ say)\b|,\ (?:it|my|this)\b).){0,160}"""
_ASKED = r"""(?:(?:when(?:ever)?|every\ ?time|each\ time|any\ ?time|if)\ i\ (?:ask|say|mention
    |request
    |want\ to\ know|talk\ about|tell\ you|bring\ up|inquire|need\ (?:help|advice)
    |(?:send|show|give)\ you)|(?:whenever|every\ ?time|each\ time|any\ ?time)\ i
    \ (?:send|share|paste|post|type))\b"""
_REPLIES = r"""(?:answers?|repl(?:y|ies)|responses?|explanations?|summar(?:y|ies)|messages|examples
    |suggestions|recommendations|emails?|code|text|texts|lists?|output)"""
_DEGREE = r"""(?:\s(?:really|much|strongly|generally|usually|definitely|always|personally|also|still
    |normally|tend\ to|actually|would|just|do|honestly|typically|simply|far|kind\ of)){0,2}\s"""

# What a choice at hand is called; to prefer it says nothing about the next one.
_THIS_ONE = r"""(?!(?:the\ )?(?:first|second|third|last|former|latter|other|this|that|these|those|it
    |option|version|plan|them)\b(?!\ (?:kind|type|sort|way)))"""

# What a word stands for: a rule for reading the user, unlike "when I say I'm tired, I mean it".
_BY_THIS_I_MEAN = rf"""{START}{_SOFTLY}(?:when(?:ever)?|if|every\ ?time|any\ ?time)\ i
    \ (?:just\ |only\ )?(?:say|write|type|mention|talk\ about|speak\ of|refer\ to)\b
    (?!\ (?:i|i'm|i've|we|you|he|she|it|they|that|this|there|so)\b).{{0,80}}(?<!\bdo)\ i
    \ (?:always\ |actually\ |really\ |usually\ )?mean\b
    (?!,|\ (?:it|really|literally|like|business)\b)"""

_EN_ORDERS = (
    _BY_THIS_I_MEAN,
    rf"{START}{_SOFTLY}{_EVER}\ (?:please\ )?{_DO}",
    rf"{START}{_SOFTLY}{_ASK_YOU}(?:please\ )?{_EVER}\ (?:\w+\ )?{_DO}",
    rf"{START}{_SOFTLY}(?:{_EVER}|please|(?:don't|do\ not|just|only)\ {_DO})\b{_SO}\b{_ASKED}",
    rf"""{START}{_SOFTLY}{_DO}{_SO}\b(?:when(?:ever)?|if|every\ time)\ i\ ask\ (?:you
        |about|a\ question)\b""",
    rf"""{START}{_SOFTLY}{_ASKED}.{{0,120}}[,:]\ *(?:then\ )?(?:{_EVER}|please|(?:don't|do\ not|just
        |only)\ {_DO}
        |(?:i\ want|i'd\ like)\ you\ to|you\ (?:should|must)|{_DO})\b""",
    rf"{START}{_SOFTLY}{_NOW_ON}:$",
    rf"""{START}{_SOFTLY}(?:no\ (?:more\ )?\w+|i\ (?:want|need|prefer)\ .{{0,40}}{_REPLIES})
        .{{0,60}}\b{_NOW_ON}""",
    rf"{START}{_SOFTLY}{_ASK_YOU}?stop\ calling\ me\b",
    rf"""{START}{_SOFTLY}(?:{_NOW_ON}|{_IN_FUTURE})[,:]?\ {_SOFTLY}
        (?:{_ASK_YOU}?(?:{_EVER}\ |only\ )?{_DO}|no\ (?:more\ )?{_STYLE})""",
    rf"{START}{_SOFTLY}{_ASK_YOU}?(?:{_EVER}\ |only\ )?{_DO}{_SO}\b{_NOW_ON}",
    rf"""{START}{_SOFTLY}{_ASK_YOU}?(?:{_EVER}\ |only\ )?(?:use|answer|reply|respond|write|format
        |include|add|speak|assume|call\ me)\b{_SO}\b{_IN_FUTURE}""",
    rf"""{START}{_SOFTLY}{_ASK_YOU}?{_DO}{_SO}\bwhenever\ (?:i|you|we|there|my|your|it|possible)\b
        (?!\ (?:like|want|can|need|feel|are|have|get)\b)
        (?!.{{0,120}}\bthis\ (?:function|file|text|code|essay|document|list|table)\b)""",
    rf"""{START}{_SOFTLY}(?:please\ )?(?:remember|don't\ forget|do\ not\ forget)\ to
        \ (?:always\ )?{_DO}""",
    rf"""{START}{_SOFTLY}(?:please\ )?(?:remember|keep\ in\ mind|note|don't\ forget)\ (?:that\ )?
        (?:i\ (?:like|prefer|don't|hate|want|only|never|always|can't)|my\ preferred)\b""",
    rf"""{START}{_SOFTLY}(?:you\ can\ )?(?:call|address)\ me\ (?:as\ )?
        (?-i:[A-Z])[\w.]+(?:\ (?-i:[A-Z])\w+)?\W*(?:from\ now\ on\W*)?$""",
    rf"""{START}{_SOFTLY}{_ASK_YOU}?(?:stop|avoid|no\ more|quit|don't\ use|do\ not\ use)
        \ (?:using\ |adding\ |writing\ )?(?:\w+\ ){{0,3}}(?:{_STYLE}|(?:in
        |with)\ your\ {_REPLIES})\b""",
    rf"{START}{_SOFTLY}(?:don't|do\ not)\ {_DO}.{{0,120}}\b(?:again|any\ ?more|ever)\W*$",
)
_EN_PREFERENCES = (
    rf"\bi{_DEGREE}prefer\ (?:to\ |that\ )?(?!not\ to\b){_THIS_ONE}",
    r"\bi'm\ someone\ who\ prefers\b|\bmy\ (?:personal\ |general\ |strong\ )?preference\ is\b",
    rf"""\bi{_DEGREE}(?:(?:like|love|hate|don't\ (?:like|want))\ (?:my|your)|want\ your)\ (?:\w+\ )?
        {_REPLIES}\ (?:to\ be|short|brief|concise|long|detailed|simple|plain|formal|informal|in|with
        |without|as)(?:er)?\b""",
    r"\bi\ only\ (?:eat|drink|use|buy|read|watch|listen\ to|wear|fly)\b",
    rf"""\bi{_DEGREE}(?:like|love|hate|dislike|don't\ like)\ (?:short|brief|concise|long
        |detailed|direct
        |simple|formal|structured|step-by-step)(?:er)?(?:,?\ \w+)?\ {_REPLIES}\b""",
    r"\bi\ (?:like|love|hate|prefer)\ it\ when\ (?:you|answers|explanations)\b",
    r"\bi(?:'m|\ am)\ (?:severely\ |very\ |highly\ )?allergic\ to\b",
    r"\bi(?:'m|\ am)\ (?:a\ |strictly\ )?(?:vegan|vegetarian|lactose[- ]intolerant)\b",
    r"\bi\ (?:don't|do\ not|never)\ eat\ \w+",
)
_EN_LEANINGS = (
    rf"""\bi(?:'d|\ would)(?:\ (?:really|much|definitely|strongly))?\ (?:prefer
        |rather)\ {_THIS_ONE}\w+""",
    r"""\bi(?:'d|\ would)\ (?:like|love|want)\ to\ (?:keep\ (?:it|things|everything|my|the)|avoid
        |stick\ (?:to|with)|focus\ on)\b""",
    r"\bi\ (?:want|need|try|like|am\ trying)\ to\ (?:avoid|steer\ clear\ of|stick\ (?:to|with))\b",
    # What somebody looks for by its qualities.
    r"""\bi'm\ (?:looking\ for|after)\b(?!.{0,12}\b(?:advice|help|ideas|tips|ways)\b).{1,80}
        \b(?:with|without|that|under|like)\b""",
    r"\bi'm\ trying\ to\ (?:avoid|stick\ (?:to|with))\b",
    r"\bi(?:'m|\ am|\ feel)\ (?:much\ )?(?:more|most)\ comfortable\b",
    r"\bi(?:'m|\ am)\ (?:more\ of\ an?|not\ (?:really\ )?an?\ (?:big\ |huge\ )?fan\ of)\b",
    r"\b(?:like|as|ones|way|what)\ i\ prefer\b|\bthe\ ones?\ i\ (?:like|prefer)\b",
    r"\bi\ can't\ stand\ \w+|\bi\ (?:don't|do\ not)\ (?:really\ )?like\ \w+",
)
_EN_WITHDRAWALS = (
    r"""\b(?:forget|ignore|disregard|drop|scrap|never\ mind)\ (?:about\ )?(?:what\ i\ (?:said
        |told\ you
        |asked)|(?:all\ (?:of\ )?)?my\ (?:\w+\ )?(?:instructions?|preferences?|rules?|requests?)
        |(?:the|that|my)\ (?:rule|instruction|preference))""",
    r"""\byou\ (?:don't|do\ not|no\ longer)\ (?:need|have)\ to\b.{0,120}\b(?:any\ ?more
        |any\ longer|now)\b
        |\byou\ no\ longer\ (?:need|have)\ to\b""",
    r"""\bi\ no\ longer\ (?:prefer|want\ you|need\ you)\b
        |\bi\ don't\ (?:prefer|want\ you\ to|need\ you\ to)\b.{0,120}\bany\ ?more\b""",
    r"\b(?:no\ need|not\ necessary)\ to\b.{0,120}\bany\ ?more\b",
)

# Blanks inside a cue are written as "|".
_CUES = """
always never |ever| prefer from|now|on from|here|on from|this|point from|today|on going|forward
henceforth in|all|your in|all|our in|all|of in|all|future in|future in|the|future as|of|now
as|of|today by|default time|you when|i| whenever if|i| every|time|i each|time|i any|time|i
anytime|i every|time|you remember|to remember|that remember|i forget|to forget|that forget|i
keep|in|mind note|i note|that call|me emoji jargon bullet|point exclamation|mark markdown tables
headings filler in|your with|your again. again! any|more anymore like|my like|your love|my
love|your want|my hate|my hate|your dislike want|your i|like| i|love| i|hate| t|like i|really|like
i|really|love don't allerg vegan vegetarian lactose not|eat i'd|rather i|would|rather like|to|keep
like|to|avoid to|avoid stick|to stick|with steer|clear to|focus|on love|to want|to|keep
more|comfortable most|comfortable more|of|a |fan|of the|one|i the|ones|i can't|stand forget|what
forget|about ignore disregard drop|what drop|my drop|all drop|the scrap mind|what no|longer
forget|all forget|my forget|the no|need not|necessary again |if|i i|mean mind|about mind|my mind|all
mind|the address|me calling|me m|looking m|after i|only not|like
"""

ENGLISH = Patterns(
    tuple(cue.replace("|", " ") for cue in _CUES.split()),
    _EN_ORDERS,
    _EN_PREFERENCES,
    _EN_LEANINGS,
    _EN_WITHDRAWALS,
)
