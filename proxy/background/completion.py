"""The contract of asking a model in the background: what is asked, in OpenAI's format, and what
comes of it.

Design: such a request has no memory itself, is bounded and counted, and never holds up a chat.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from proxy.chat import jsontext
from proxy.chat.models.limits import too_long
from proxy.chat.request import count_of
from proxy.wire.api import refuses

ANSWER_BYTES = 512 * 1024
"""A hundred times what is asked for, with a model's thoughts.  It is read in one go, and nothing
else is done meanwhile."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """One thing to write: ``text`` is the single user message of the request.

    ``feature`` is "summary", "facts", …: what the tokens are counted for.  ``model`` "" means the
    one that ``default_model`` names.  ``upstream`` names one of several, ``url`` another API; with
    neither it is asked where chats with its model go.  ``key`` None: the upstream's, or
    the credential of the tenant's last request; to another ``url`` neither is ever sent.
    ``parameters`` go into the body as they are.  ``schema`` is a JSON Schema that the answer should
    follow; a model that knows no schemas is asked without, so the text must describe it too.
    ``timeout`` in seconds.  ``most_bytes`` of an answer are read; a longer one is unreadable.
    """

    tenant: str
    feature: str
    text: str
    model: str = ""
    default_model: str | None = None
    upstream: str = ""
    url: str = ""
    key: str | None = field(default=None, repr=False)
    parameters: Mapping[str, object] = field(default_factory=dict)
    schema: Mapping[str, object] | None = None
    timeout: float = 120.0
    most_bytes: int = ANSWER_BYTES

    @property
    def place(self) -> str:
        """Where the settings say that it is asked, "" where they leave it open."""
        return self.upstream or self.url


class Secret(Protocol):
    """A text that is not shown."""

    def get_secret_value(self) -> str: ...


class ModelSettings(Protocol):
    """Which model a feature asks, as its settings say; the fields are those of an assignment."""

    @property
    def model(self) -> str: ...
    @property
    def upstream(self) -> str: ...
    @property
    def url(self) -> str: ...
    @property
    def api_key(self) -> Secret | None: ...
    @property
    def parameters(self) -> Mapping[str, object]: ...
    @property
    def timeout(self) -> float: ...


def assignment(
    tenant: str,
    feature: str,
    settings: ModelSettings,
    text: str = "",
    model: str | None = None,
    schema: Mapping[str, object] | None = None,
    most_bytes: int = ANSWER_BYTES,
) -> Assignment:
    """What is asked under a feature's settings; ``model`` is the one of the session."""
    return Assignment(
        tenant=tenant,
        feature=feature,
        text=text,
        model=settings.model,
        default_model=model,
        upstream=settings.upstream,
        url=settings.url,
        key=settings.api_key.get_secret_value() if settings.api_key else None,
        parameters=settings.parameters,
        schema=schema,
        timeout=settings.timeout,
        most_bytes=most_bytes,
    )


class Completed(msgspec.Struct, frozen=True):
    """What a model has written, and which model it says it is.

    ``cut``: it was not finished when the tokens that it may write were used up, or a filter broke
    it off.
    """

    text: str
    model: str
    cut: bool = False


class CompletionError(Exception):
    """Nothing came of an assignment.  ``asked``: for what, and which model, where that is known."""

    asked = ""

    def __str__(self) -> str:
        text = super().__str__()
        return f"{text} ({self.asked})" if self.asked else text


class Refused(CompletionError):
    """The same request would be refused again (a 4xx that is not about the moment)."""


class Denied(Refused):
    """A refusal that is not about what was asked: key, rights, quota or model are not right."""


DENIALS = 500
"""Failures after which work is given up whose key, rights, quota or model are not right."""


class Failed(CompletionError):
    """It may go well later: no connection, no answer in time, 408, 409, 425, 429, 5xx.

    ``retry_after`` in seconds, None where the answer did not say.
    """

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Unreadable(Failed):
    """An answer came that cannot be used; it may stay so however often it is asked for."""


def try_again(denied: Denied, attempts: int, wait: float) -> None:
    """Raise Failed for work that was denied and that nobody else asks for, unless it has failed too
    often: it is tried again after ``wait`` seconds."""
    if attempts < DENIALS:
        raise Failed(str(denied), wait) from denied


class NoCredential(CompletionError):
    """The tenant's credential is not known in this process: not before its next request."""


class NoModel(CompletionError):
    """Neither the settings nor the session name one: not before somebody goes on with it."""


class NotYet(CompletionError):
    """Nothing is asked before ``until`` (Unix seconds), and nobody has failed."""

    def __init__(self, message: str, until: float) -> None:
        super().__init__(message)
        self.until = until


class BudgetSpent(NotYet):
    """The tenant has no tokens left for today."""

    def __init__(self, until: float) -> None:
        super().__init__("the tokens of the day are spent", until)


class Paused(NotYet):
    """The model is left alone for a while."""

    def __init__(self, until: float) -> None:
        super().__init__("the model is left alone until it may be asked again", until)


class Completer(Protocol):
    """Asks models."""

    def ready(self, assignment: Assignment) -> bool:
        """Is there a credential for it, or none needed?"""
        ...

    async def complete(self, assignment: Assignment) -> Completed:
        """Ask once.  Raises Refused, Failed, NoCredential, NoModel, NotYet, StoreError."""
        ...


FORMAT = "response_format"

MOST_TOKENS = 100_000_000
"""Ten times what any model takes at once."""

LONGEST_NAME = 200
"""Characters of a model's."""

_THOUGHTS = re.compile(r"\s*<think(?:ing)?>.*?(?:</think(?:ing)?>\s*|\Z)", re.DOTALL)
"""What local models put before their answer, for want of a field of its own."""

_THOUGHT_END = re.compile(r"</think(?:ing)?>[ \t]*(?:\n\s*|\Z)")
"""It may end what is not seen to begin: chat templates open it in the prompt."""

_CUT = ("length", "content_filter")


class SchemaRefused(Refused):
    """Refused, and perhaps only because of the schema."""


class Written(msgspec.Struct, frozen=True):
    """An answer.  Tokens are None where it does not say; ``model`` is "" then.

    ``cut``: its ``finish_reason`` says so.
    """

    text: str
    model: str = ""
    cut: bool = False
    input_tokens: int | None = None
    output_tokens: int | None = None


def wants_schema(assignment: Assignment) -> bool:
    """Is a format to be asked for that the operator has not chosen otherwise?"""
    return assignment.schema is not None and FORMAT not in assignment.parameters


def request_body(assignment: Assignment, model: str, *, with_schema: bool) -> bytes:
    """The least that can be asked: some models refuse what others need."""
    body: dict[str, object] = {
        "model": model,
        "messages": [{"role": "user", "content": assignment.text}],
        **assignment.parameters,
    }
    if with_schema:
        form = {"name": assignment.feature, "schema": assignment.schema, "strict": True}
        body[FORMAT] = {"type": "json_schema", "json_schema": form}
    return jsontext.encode(body)


DENIED = frozenset({401, 402, 403, 404})
"""Statuses that any request would get until somebody changes something."""


def failure(status: int, said: bytes, wait: float | None, *, with_schema: bool) -> Refused | Failed:
    """What an answer that is no good one comes to; ``wait`` are the seconds it asks for."""
    if with_schema and status in (400, 422) and not too_long(status, said):
        return SchemaRefused(f"refused with status {status}")
    if status in DENIED:
        return Denied(f"refused with status {status}")
    if refuses(status):
        return Refused(f"refused with status {status}")
    return Failed(f"answered with status {status}", wait)


def read_answer(body: bytes) -> Written:
    """The first choice of a ``chat.completion``; without a message, as one that was blocked has
    none, it is empty.  Raises Unreadable where there is no choice."""
    try:
        answer = jsontext.decode(body)
    except jsontext.UNREADABLE as error:
        raise Unreadable("the answer is not JSON") from error
    fields = answer if isinstance(answer, dict) else {}
    match fields.get("choices"):
        case [dict(choice), *_]:
            message = choice.get("message")
        case _:
            raise Unreadable("the answer is not a completion")
    content = message.get("content") if isinstance(message, dict) else None
    text = jsontext.well_formed(_text(content))
    model, used = fields.get("model"), fields.get("usage")
    return Written(
        text=_without_thoughts(text),
        model=model if isinstance(model, str) and len(model) <= LONGEST_NAME else "",
        cut=choice.get("finish_reason") in _CUT,
        input_tokens=_tokens(used, "prompt_tokens"),
        output_tokens=_tokens(used, "completion_tokens"),
    )


def _text(content: object) -> str:
    """Content as text; a refusal, or nothing, is none."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, Mapping))
    return "".join(text for text in texts if isinstance(text, str))


def _without_thoughts(text: str) -> str:
    if (thoughts := _THOUGHTS.match(text)) is not None:
        return text[thoughts.end() :]
    end = _THOUGHT_END.search(text)
    return text if end is None or "<think" in text[: end.start()] else text[end.end() :]


def _tokens(used: object, name: str) -> int | None:
    """What the usage says; some servers say 0 for want of counting, and what no model can take
    would spend the tenant's day."""
    count = count_of(used.get(name)) if isinstance(used, dict) else None
    return count if count is not None and count <= MOST_TOKENS else None
