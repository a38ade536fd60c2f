"""Asking a model for something learned, and finding the JSON in what it answers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

import msgspec

from proxy.background.completion import Completed, Completer, Unreadable, assignment
from proxy.settings import ProfileSettings
from proxy.settings.written import WriterSettings

MOST_READ = 256 * 1024
"""Characters of an answer that are read for its JSON, those counted again that are read again; as
many once more where it may have comments."""

REQUESTS = 2
"""How often a model is asked for the same at most."""

AGAIN = "That cannot be used: {problem}\nAnswer once more, with JSON only."

CUT = "it was cut off before its end"

_BEGINS = re.compile(r"[{\[]")
_TEXT = r'(?P<text>"(?:[^"\\]|\\.)*(?:"|\Z))'
_COMMENT = re.compile(rf"{_TEXT}|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_LAST_COMMA = re.compile(rf"{_TEXT}|,(?=\s*[}}\]])", re.DOTALL)
_IS_COMMENTED = re.compile(r"//|/\*|,\s*[}\]]")

_GIVEN = ("tool_calls", "function", "arguments", "parameters", "input")
"""The members in which calls of tools have what they are given, outermost first."""

_DEEPEST_CALL = 3

T = TypeVar("T")


class Unusable(ValueError):
    """What is wrong with an answer; not ``readable``: it has no such JSON at all."""

    def __init__(self, problem: str, *, readable: bool = True) -> None:
        super().__init__(problem)
        self.readable = readable


class About(Protocol):
    """What it is asked about; ``model`` is the one that the session uses."""

    @property
    def tenant(self) -> str: ...
    @property
    def settings(self) -> ProfileSettings: ...
    @property
    def model(self) -> str | None: ...


Again = Callable[[str, str, Unusable], str]
"""What is asked the next time: from the assignment, the answer and what was wrong with it."""


def again_with_answer(most: int) -> Again:
    """The assignment, ``most`` characters of the answer at most, and what was wrong with it."""

    def again(prompt: str, answer: str, wrong: Unusable) -> str:
        problem = AGAIN.format(problem=wrong)
        return f"{prompt}\nYour answer was:\n{answer[:most]}\n{problem}"

    return again


class KindModel(msgspec.Struct, frozen=True):
    """The model that writes one kind of memory, asked under that kind's settings.

    ``wants``: is it to write under a profile?
    """

    completer: Completer
    feature: str
    settings: Callable[[ProfileSettings], WriterSettings]
    wants: Callable[[ProfileSettings], bool]

    def room(self, profile: ProfileSettings) -> int:
        """Tokens of material that fit into one request."""
        return self.settings(profile).max_input_tokens

    def ready(self, tenant: str, profile: ProfileSettings) -> bool:
        """Is there a credential to ask the model with?"""
        return self.completer.ready(assignment(tenant, self.feature, self.settings(profile)))

    async def extract(
        self,
        about: About,
        prompt: str,
        read: Callable[[str], T],
        again: Again,
        schema: Mapping[str, object] | None = None,
        requests: int = REQUESTS,
    ) -> T | None:
        """What ``read`` makes of an answer; where it raises Unusable, the model is asked again.

        None: there were answers with JSON, but none of use.  Raises CompletionError: Unreadable if
        no answer has the JSON.
        """
        text, readable, problem = prompt, False, ""
        for _ in range(requests):
            answer = await self._ask(about, text, schema)
            try:
                return _whole(answer, read)
            except Unusable as wrong:
                readable, problem = readable or wrong.readable, str(wrong)
                text = again(prompt, answer.text, wrong)
        if not readable:
            raise Unreadable(problem)
        return None

    async def _ask(self, about: About, text: str, schema: Mapping[str, object] | None) -> Completed:
        writer = self.settings(about.settings)
        asked = assignment(about.tenant, self.feature, writer, text, about.model, schema)
        return await self.completer.complete(asked)


def _whole(answer: Completed, read: Callable[[str], T]) -> T:
    """What is made of an answer that came to its end.  Raises Unusable."""
    if answer.cut:
        raise Unusable(CUT, readable=False)
    return read(answer.text)


Wanted = Callable[[object], bool]


def json_in(answer: str, wanted: Wanted) -> object | None:
    """The first ``wanted`` value in an answer that may have fences, thoughts or talk around it, be
    written as a call of a tool, or have comments as programs have them.

    An empty list counts where there is no object, not even a broken one: it may be part of that.
    """
    found = _first_in(answer, wanted)
    if found is None and _IS_COMMENTED.search(answer, 0, MOST_READ):
        found = _first_in(_uncommented(answer[:MOST_READ]), wanted)
    return found


def _first_in(answer: str, wanted: Wanted) -> object | None:
    decoder = json.JSONDecoder()
    at = read = 0
    while read < MOST_READ and (found := _BEGINS.search(answer, at)):
        begin, at = found.start(), found.end()
        try:
            value: object
            value, at = decoder.raw_decode(answer, begin)
        except (ValueError, RecursionError):
            read += len(answer) - begin  # at most: an error does not say
            continue
        value = _argument(value, wanted)
        if wanted(value) and (value or "{" not in answer):
            return value
        read += at - begin
    return None


def _argument(value: object, wanted: Wanted) -> object:
    """What a call of a tool is given, if that is wanted; else the value itself."""
    call = found = value
    for _ in range(_DEEPEST_CALL):
        call = call[0] if isinstance(call, list) and len(call) == 1 else call
        if not isinstance(call, dict):
            break
        call = _read(next((call[name] for name in _GIVEN if name in call), None))
        found = call if wanted(call) else found
    return found


def _read(value: object) -> object:
    """An argument, which may be JSON in a text."""
    if not isinstance(value, str) or len(value) > MOST_READ:
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _uncommented(text: str) -> str:
    """A text without comments outside of its strings, nor commas before an end.  Linear."""
    bare = _COMMENT.sub(lambda found: found["text"] or " ", text)
    return _LAST_COMMA.sub(lambda found: found["text"] or "", bare)
