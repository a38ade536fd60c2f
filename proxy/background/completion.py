"""The interface for calling a model in the background: assignments, results and errors, and
OpenAI's format for them.

Design: such a request has no memory itself, is bounded and counted, and never delays a chat.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from proxy.chat import jsontext
from proxy.chat.models.limits import is_context_error
from proxy.chat.reply.answer import CUT_OFF
from proxy.chat.request import positive_int
from proxy.wire.api import is_permanent_refusal

MAX_ANSWER_BYTES = 512 * 1024
"""The largest answer: a hundred times what is asked for, with reasoning.  Parsing it blocks the
event loop."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """One request to a model: ``text`` is its only user message.

    ``feature`` is "summary", "facts", …, for which tokens are counted.  ``model`` "" means
    ``default_model``.  ``upstream`` names one of several, ``url`` is another API; without both it
    goes where chats with its model go.  ``key`` None: the upstream's, or that of the tenant's last
    request; neither is ever sent to another ``url``.  ``parameters`` are added to the body.
    ``schema`` is a JSON Schema for the answer; it is omitted for models that do not support it, so
    the text must describe it too.  ``timeout`` in seconds.  ``max_answer_bytes``: limit of the
    answer.
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
    max_answer_bytes: int = MAX_ANSWER_BYTES

    @property
    def endpoint(self) -> str:
        """The upstream or URL in the settings, "" if they have none."""
        return self.upstream or self.url


class Secret(Protocol):
    """A text that ``repr`` does not show."""

    def get_secret_value(self) -> str: ...


class ModelSettings(Protocol):
    """A feature's settings of its model; the fields are those of an Assignment."""

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
    session_model: str | None = None,
    schema: Mapping[str, object] | None = None,
    max_answer_bytes: int = MAX_ANSWER_BYTES,
) -> Assignment:
    """An assignment with a feature's settings; ``session_model`` is that of the session."""
    return Assignment(
        tenant=tenant,
        feature=feature,
        text=text,
        model=settings.model,
        default_model=session_model,
        upstream=settings.upstream,
        url=settings.url,
        key=settings.api_key.get_secret_value() if settings.api_key else None,
        parameters=settings.parameters,
        schema=schema,
        timeout=settings.timeout,
        max_answer_bytes=max_answer_bytes,
    )


class Completed(msgspec.Struct, frozen=True):
    """The text of an answer, and the model that it names.

    ``is_truncated``: it was cut off by the token limit or a content filter.
    """

    text: str
    model: str
    is_truncated: bool = False


class CompletionError(Exception):
    """An assignment failed.  ``target``: its feature and model, if known."""

    target = ""

    def __str__(self) -> str:
        text = super().__str__()
        return f"{text} ({self.target})" if self.target else text


class Refused(CompletionError):
    """The same request would be refused again (a 4xx that is not temporary)."""


class Denied(Refused):
    """A refusal because of key, rights, quota or model, and not of the request itself."""


DENIALS = 500
"""Failures after which denied work is given up."""


class Failed(CompletionError):
    """A temporary failure: no connection, timeout, 408, 409, 425, 429, 5xx.

    ``retry_after`` in seconds, None if the answer has none.
    """

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Unreadable(Failed):
    """The answer cannot be used; that may be the same in each attempt."""


def retry_denied(denied: Denied, attempts: int, wait: float) -> None:
    """Raise Failed for denied work, so that it is tried again after ``wait`` seconds, unless it has
    failed ``DENIALS`` times."""
    if attempts < DENIALS:
        raise Failed(str(denied), wait) from denied


class NoCredential(CompletionError):
    """The tenant's credential is not known in this process before its next request."""


class NoModel(CompletionError):
    """Neither the settings nor the session have a model; the next turn may bring one."""


class NotYet(CompletionError):
    """Not to be called before ``until`` (Unix seconds); no failure."""

    def __init__(self, message: str, until: float) -> None:
        super().__init__(message)
        self.until = until


class BudgetSpent(NotYet):
    """The tenant has no tokens left for today."""

    def __init__(self, until: float) -> None:
        super().__init__("the tokens of the day are spent", until)


class Paused(NotYet):
    """Calls to the model are paused: see ``pauses``."""

    def __init__(self, until: float) -> None:
        super().__init__("the model is left alone until it may be asked again", until)


class Completer(Protocol):
    def is_ready(self, assignment: Assignment) -> bool:
        """Whether its credential is known, or none is needed."""
        ...

    async def complete(self, assignment: Assignment) -> Completed:
        """Call the model once.  Raises Refused, Failed, NoCredential, NoModel, NotYet,
        StoreError."""
        ...


FORMAT = "response_format"

MAX_USAGE_TOKENS = 100_000_000
"""Larger numbers in a usage are ignored: ten times what any model accepts."""

MAX_NAME = 200
"""Characters of a model's name."""

_THOUGHTS = re.compile(r"\s*<think(?:ing)?>.*?(?:</think(?:ing)?>\s*|\Z)", re.DOTALL)
"""Reasoning that local models put before their answer instead of in a field."""

_THOUGHT_END = re.compile(r"</think(?:ing)?>[ \t]*(?:\n\s*|\Z)")
"""The end of reasoning whose opening tag is in the chat template's prompt."""


class SchemaRefused(Refused):
    """Refused, possibly because of the schema."""


class ParsedAnswer(msgspec.Struct, frozen=True):
    """A parsed answer.  Tokens are None and ``model`` is "" if it does not have them.

    ``is_truncated``: by its ``finish_reason``.
    """

    text: str
    model: str = ""
    is_truncated: bool = False
    input_tokens: int | None = None
    output_tokens: int | None = None


def wants_schema(assignment: Assignment) -> bool:
    """Whether to send the schema: not if the operator's parameters have a format."""
    return assignment.schema is not None and FORMAT not in assignment.parameters


def request_body(assignment: Assignment, model: str, *, with_schema: bool) -> bytes:
    """A request's body with as few fields as possible: some models refuse what others need."""
    body: dict[str, object] = {
        "model": model,
        "messages": [{"role": "user", "content": assignment.text}],
        **assignment.parameters,
    }
    if with_schema:
        schema_format = {"name": assignment.feature, "schema": assignment.schema, "strict": True}
        body[FORMAT] = {"type": "json_schema", "json_schema": schema_format}
    return jsontext.encode(body)


DENIED = frozenset({401, 402, 403, 404})
"""Statuses that all requests get until the key, rights, quota or model is changed."""


def failure_of(
    status: int, error_body: bytes, wait: float | None, *, with_schema: bool
) -> Refused | Failed:
    """The exception for a status other than 200; ``wait``: its ``Retry-After`` in seconds."""
    if with_schema and status in (400, 422) and not is_context_error(status, error_body):
        return SchemaRefused(f"refused with status {status}")
    if status in DENIED:
        return Denied(f"refused with status {status}")
    if is_permanent_refusal(status):
        return Refused(f"refused with status {status}")
    return Failed(f"answered with status {status}", wait)


def read_answer(body: bytes) -> ParsedAnswer:
    """Parse a ``chat.completion``: its first choice, "" if that was blocked and has no message.
    Raises Unreadable without a choice."""
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
    model, usage = fields.get("model"), fields.get("usage")
    return ParsedAnswer(
        text=_without_thoughts(text),
        model=model if isinstance(model, str) and len(model) <= MAX_NAME else "",
        is_truncated=choice.get("finish_reason") in CUT_OFF,
        input_tokens=_tokens(usage, "prompt_tokens"),
        output_tokens=_tokens(usage, "completion_tokens"),
    )


def _text(content: object) -> str:
    """Content as text; "" for a refusal or no content."""
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


def _tokens(usage: object, name: str) -> int | None:
    """A count in the usage; None for 0, which servers send that do not count, and for absurd
    numbers, which would use up the tenant's budget."""
    count = positive_int(usage.get(name)) if isinstance(usage, dict) else None
    return count if count is not None and count <= MAX_USAGE_TOKENS else None
