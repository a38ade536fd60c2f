"""Requests to the model that writes learned memory, and finding the JSON in its answers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

import msgspec

from proxy.background.completion import Completed, Completer, Unreadable, assignment
from proxy.settings import ProfileSettings
from proxy.settings.learned import WriterSettings

MAX_PARSED_CHARACTERS = 256 * 1024
"""Characters of an answer that are parsed in search of its JSON, in all attempts together; as many
again if it may have comments."""

MAX_REQUESTS = 2
"""The most requests for one answer."""

RETRY = "That cannot be used: {problem}\nAnswer once more, with JSON only."

TRUNCATED = "it was cut off before its end"

_OPENING_BRACKET = re.compile(r"[{\[]")
_TEXT = r'(?P<text>"(?:[^"\\]|\\.)*(?:"|\Z))'
_COMMENT = re.compile(rf"{_TEXT}|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_LAST_COMMA = re.compile(rf"{_TEXT}|,(?=\s*[}}\]])", re.DOTALL)
_IS_COMMENTED = re.compile(r"//|/\*|,\s*[}\]]")

_ARGUMENT_FIELDS = ("tool_calls", "function", "arguments", "parameters", "input")
"""The fields in which tool calls have their arguments, outermost first."""

_MAX_CALL_DEPTH = 3

T = TypeVar("T")


class Unusable(ValueError):
    """An answer cannot be used, with the reason; ``readable`` is False if it has no such JSON."""

    def __init__(self, problem: str, *, readable: bool = True) -> None:
        super().__init__(problem)
        self.readable = readable


class Request(Protocol):
    """What a request is made for; ``model`` is the one that the session uses."""

    @property
    def tenant(self) -> str: ...
    @property
    def settings(self) -> ProfileSettings: ...
    @property
    def model(self) -> str | None: ...


RetryPrompt = Callable[[str, str, Unusable], str]
"""Makes the next prompt from the first one, the answer, and what is wrong with that."""


def retry_with_answer(most: int) -> RetryPrompt:
    """A prompt of the first one, at most ``most`` characters of the answer, and its problem."""

    def again(prompt: str, answer: str, wrong: Unusable) -> str:
        problem = RETRY.format(problem=wrong)
        return f"{prompt}\nYour answer was:\n{answer[:most]}\n{problem}"

    return again


class KindModel(msgspec.Struct, frozen=True):
    """The model that writes one kind of memory, called with that kind's settings.

    ``wants``: whether this kind is to be written under a profile.
    """

    completer: Completer
    feature: str
    settings: Callable[[ProfileSettings], WriterSettings]
    wants: Callable[[ProfileSettings], bool]

    def message_budget(self, profile: ProfileSettings) -> int:
        """Tokens of messages that fit into one request."""
        return self.settings(profile).max_input_tokens

    def is_ready(self, tenant: str, profile: ProfileSettings) -> bool:
        """Whether there is a credential to call the model with."""
        return self.completer.is_ready(assignment(tenant, self.feature, self.settings(profile)))

    async def extract(
        self,
        about: Request,
        prompt: str,
        read: Callable[[str], T],
        again: RetryPrompt,
        schema: Mapping[str, object] | None = None,
        requests: int = MAX_REQUESTS,
    ) -> T | None:
        """The result of ``read`` on an answer; if that raises Unusable, the model is asked again.

        None if answers had JSON but none could be used.  Raises CompletionError: Unreadable if no
        answer had the JSON.
        """
        text, readable, problem = prompt, False, ""
        for _ in range(requests):
            answer = await self._ask(about, text, schema)
            try:
                return _read_complete(answer, read)
            except Unusable as wrong:
                readable, problem = readable or wrong.readable, str(wrong)
                text = again(prompt, answer.text, wrong)
        if not readable:
            raise Unreadable(problem)
        return None

    async def _ask(
        self, about: Request, text: str, schema: Mapping[str, object] | None
    ) -> Completed:
        writer = self.settings(about.settings)
        asked = assignment(about.tenant, self.feature, writer, text, about.model, schema)
        return await self.completer.complete(asked)


def _read_complete(answer: Completed, read: Callable[[str], T]) -> T:
    """Read an answer.  Raises Unusable, also if it was truncated."""
    if answer.is_truncated:
        raise Unusable(TRUNCATED, readable=False)
    return read(answer.text)


Accepts = Callable[[object], bool]


def find_json(answer: str, accepts: Accepts) -> object | None:
    """The first JSON value in an answer that ``accepts`` is true for, None if there is none.

    There may be other text around it, such as code fences or reasoning; it may be the argument of
    a tool call, or have comments.  An empty list counts only if the answer has no object, not even
    a broken one: it could be a part of that.
    """
    found = _first_in(answer, accepts)
    if found is None and _IS_COMMENTED.search(answer, 0, MAX_PARSED_CHARACTERS):
        found = _first_in(_without_comments(answer[:MAX_PARSED_CHARACTERS]), accepts)
    return found


def _first_in(answer: str, accepts: Accepts) -> object | None:
    decoder = json.JSONDecoder()
    at = read = 0
    while read < MAX_PARSED_CHARACTERS and (found := _OPENING_BRACKET.search(answer, at)):
        begin, at = found.start(), found.end()
        try:
            value: object
            value, at = decoder.raw_decode(answer, begin)
        except (ValueError, RecursionError):
            read += len(answer) - begin  # at most: an error does not say
            continue
        value = _call_argument(value, accepts)
        if accepts(value) and (value or "{" not in answer):
            return value
        read += at - begin
    return None


def _call_argument(value: object, accepts: Accepts) -> object:
    """The argument of a tool call, if that is accepted; else the value itself."""
    call = found = value
    for _ in range(_MAX_CALL_DEPTH):
        call = call[0] if isinstance(call, list) and len(call) == 1 else call
        if not isinstance(call, dict):
            break
        call = _parsed_argument(
            next((call[name] for name in _ARGUMENT_FIELDS if name in call), None)
        )
        found = call if accepts(call) else found
    return found


def _parsed_argument(value: object) -> object:
    """An argument, decoded if it is a string with JSON."""
    if not isinstance(value, str) or len(value) > MAX_PARSED_CHARACTERS:
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _without_comments(text: str) -> str:
    """A text without comments outside its strings, or commas before a closing bracket.

    Linear time.
    """
    bare = _COMMENT.sub(lambda found: found["text"] or " ", text)
    return _LAST_COMMA.sub(lambda found: found["text"] or "", bare)
