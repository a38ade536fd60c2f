"""What must not become a fact without a person's say: text that tells the assistant what to do.

Somebody may have put it into what the user pasted, or a model may have written it down as if it
were true of the user.  Found by pattern; facts are told in the third person, so that an order
stands out.  Pure.
"""

from __future__ import annotations

import re

from proxy.recall.standing import notice

_SET_ASIDE = (
    r"\b(?:ignor\w*|disregard\w*|forget\w*|overrid\w*|bypass\w*|circumvent\w*)\b.{0,40}"
    r"\b(?:previous|prior|earlier|above|all|any|these|those|your|system|safety)\b.{0,30}"
    r"\b(?:instruction|rule|prompt|guideline|message|restriction|polic|direction|filter)",
    r"\b(?:ignorier\w*|vergiss|missachte)\b.{0,40}\b(?:anweisung|regel|vorgabe|befehl)",
    r"\b(?:ignora|olvida|ignore[zr]?|oublie[rz]?|dimentica|esqueça|desconsidere)\b.{0,40}"
    r"\b(?:instruc|consigne|istruzion|instruç|regla|règle|regol|regra)",
    r"(?:игнорир|забудь).{0,40}(?:инструкц|указан|правил)",
    r"(?:忽略|无视|無視|忘记|忘掉).{0,20}(?:指令|指示|规则|規則|提示|说明)",
    r"(?:指示|命令|ルール|プロンプト).{0,10}(?:無視|忘れ)",
    r"(?:지시|명령|규칙).{0,10}(?:무시|잊)",
    r"(?:تجاهل|انس).{0,40}(?:تعليمات|التعليمات|القواعد)",
)
"""To set aside what holds: the classic of injected text, wherever it stands."""

_TOLD_WHAT_IT_IS = (
    r"\bsystem ?(?:prompt|message|instruction|note)|\bdeveloper (?:mode|message)|\bjail ?break",
    r"系统提示|系統提示|システムプロンプト|시스템 프롬프트",
    r"^\W*(?:system|admin|administrator|developer)\W*[:：]",
    r"\b(?:you are|act as|pretend to be|du bist|eres|tu es|sei|você é|ты)\s+(?:now\s+)?"
    r"(?:(?:an?|the|ein\w*|une?|una)\s+)?"
    r"(?:dan\b|\w* ?(?:gpt|bot|assistant|model|mode)\b|assistent|asistente|unrestricted|free of"
    r"|no longer)",
)

_MODEL = (
    r"(?:(?:(?:the|your|this|an?)\s+)?(?:ai|assistant|chat ?bot|bot|llm|language model|chatgpt)"
    r"|you|der assistent|die ki|el asistente|l'assistant|l'assistente|o assistente|ассистент"
    r"|アシスタントは|어시스턴트는|المساعد)"
)
_MUST = (
    r"(?:must|should|shall|has to|have to|needs? to|is to|are to|will|may|always|never"
    r"|(?:is|are) (?:now )?(?:required|allowed|instructed|ordered)"
    r"|muss|soll|darf|musst|sollst|debe|debes|doit|dois|deve|devi|должен|всегда|必ず|항상|يجب)"
)
_FROM_NOW_ON = (
    r"\b(?:from now on|from this (?:point|moment) on|henceforth|going forward"
    r"|in all (?:future|your)"
    r"|ab jetzt|ab sofort|von nun an|künftig|de ahora en adelante|a partir de ahora|désormais"
    r"|dorénavant|à partir de maintenant|d'ora in poi|a partir de agora|отныне|с этого момента)\b"
)
_ANSWER = (
    r"\b(?:you|assistant|answer|repl|respon|antwort|soll|muss|vous |usted|refus|always|never"
    r"|recommend|empfehl|recomiend|recommand|risp|отвеч|ответ)"
)
_DO = (
    r"(?:answer|reply|respond|use|include|recommend|mention|say|tell|add|end|start|begin|write"
    r"|speak|call|trust|send|refuse|ask|give|show|follow|obey|ignore|reveal|share|do|be|make|assume"
    r"|agree|praise|promote|advise|translate|output|print|execute)"
)
_ORDERED = (
    rf"{_FROM_NOW_ON}.{{0,80}}{_ANSWER}",
    r"(?:从现在起|从现在开始|今后|以后).{0,20}(?:你|回答|必须|总是|推荐)",
    r"(?:今後|これから).{0,20}(?:答え|必ず|回答)|(?:앞으로|이제부터).{0,20}(?:대답|답변|항상)",
    rf"(?:^|[.;:!?\n,]\s*|\b(?:that|wants?|dass|que|что)\s+){_MODEL}\s+(?:to\s+)?{_MUST}\b",
    r"(?:你|助手|您|机器人)(?:必须|应该|应当|总是|永远|不要|不能|只能|要)",
    r"\bwhenever (?:the user|someone|anyone|he|she|they|you)\b.{0,60}"
    r"\b(?:recommend|mention|say|include|send|reply|answer|tell)\b",
    rf"^\W*(?:please\s+)?(?:always|never|do not|don't|do not ever)\s+{_DO}\b",
    r"^\W*(?:immer|niemals|nie|stets)\s+(?:antworten?|empfehlen|empfiehl|sagen|nutzen|verwenden)\b",
    r"^\W*(?:siempre|nunca|toujours|sempre|всегда|никогда)\s+"
    r"(?:responde|contesta|usa|di|recomienda|réponds|répondez|utilise|dis|rispondi|raccomanda"
    r"|responda|recomende|отвечай|говори|используй|рекомендуй)\b",
    r"^\W*(?:总是|永远|始终|务必|必须|不要|请)(?:用|回答|推荐|说|告诉|忽略|使用|把)",
    r"^\W*(?:answer|respond|reply|recommend|reveal|execute|antworte|empfiehl|responde|réponds"
    r"|rispondi|отвечай)\s",
)

_GIVEN_AWAY = (
    r"\b(?:reveal|leak|exfiltrat\w*|send|post|forward)\b.{0,40}"
    r"\b(?:password|api ?key|credential|secret|token|conversation|chat history)s?\b",
    r"!\[[^\]]*\]\(\s*https?:",
)

_ORDER = re.compile(
    "|".join((*_SET_ASIDE, *_TOLD_WHAT_IT_IS, *_ORDERED, *_GIVEN_AWAY)),
    re.IGNORECASE | re.MULTILINE,
)


def is_instruction(text: str) -> bool:
    """Whether a text tells the assistant what to do, rather than what is true of the user."""
    if _ORDER.search(text.replace("’", "'")):
        return True
    return any(wish.kind in ("instruction", "withdrawal") for wish in notice(text))
