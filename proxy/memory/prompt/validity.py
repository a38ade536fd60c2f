"""Keeps tool calls and their results together in a prompt.  Pure.

OpenAI's chat API refuses a tool message that answers no call of the assistant message before it,
and an assistant message whose calls are not all answered directly after it.  The client's own
messages stay as they are; stored messages are left out until the rule holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Protocol, Self, TypeVar


class Sent(Protocol):
    """A message on its way upstream; ``stored`` ones may be left out.

    ``as_text`` is the message with unanswered calls replaced by their text; None without one.
    """

    @property
    def role(self) -> str: ...
    @property
    def calls(self) -> tuple[str, ...]: ...
    @property
    def answers(self) -> str | None: ...
    @property
    def stored(self) -> bool: ...
    @property
    def as_text(self) -> Self | None: ...


S = TypeVar("S", bound=Sent)


def valid_messages(messages: Sequence[S]) -> list[S]:
    """The messages without stored calls that lack a result and stored results that lack a call.

    Of a stored call that has no result at all the words stay, if there are some.  One that the
    client itself answers, though only in part, is kept: the client knows.
    """
    messages, kept = _group_results(messages), list[S]()
    at = 0
    while at < len(messages):
        end = _end_of_block(messages, at)
        kept += _valid_block(messages[at:end])
        at = end
    return kept


def _group_results(messages: Sequence[S]) -> Sequence[S]:
    """The messages with all results of a call moved directly after it.

    Messages that stood between results follow them; at the end of a prompt, where they would come
    last, they are left out.
    """
    pairs = zip(messages, messages[1:], strict=False)
    late = [n for n, (a, b) in enumerate(pairs, 1) if b.answers is not None and _may_separate(a, b)]
    if not late:
        return messages
    found, moved = list(messages), 0
    for at in late:
        if at < moved:  # with those before it
            continue
        end = _end_of_block(found, at)
        begin = _start_of_interjection(found, at)
        if begin < at:
            put_between, moved = found[begin:at] if end < len(found) else [], end
            found[begin:end] = [*found[at:end], *put_between]
    return found


def _may_separate(message: Sent, result: Sent) -> bool:
    """Whether this message, directly before a result, may separate it from its call."""
    return message.stored and (not result.stored or _is_interim(message))


def _start_of_interjection(found: Sequence[Sent], at: int) -> int:
    """The index of the first message between a call and its result at ``at``; ``at`` if there is
    none.

    Between them may stand answers to other results of the round or, if the client sends both, any
    stored message.  Ids may repeat: an unanswered call of the client's is preferred, then one that
    has a stored result.
    """
    for passes, again in ((_is_stored, False), (_is_interim, True), (_is_stored, True)):
        if found[at].stored and passes is _is_stored:
            continue
        begin = at
        while begin and passes(found[begin - 1]):
            begin -= 1
        while begin < at and found[begin].answers is not None:
            begin += 1
        if _has_open_call_before(found, begin, found[at].answers or "", again=again):
            return begin
    return at


def _is_stored(message: Sent) -> bool:
    return message.stored


def _is_interim(message: Sent) -> bool:
    """Whether it is a stored answer without calls, perhaps to some of several results."""
    return message.stored and message.role == "assistant" and not message.calls


def _has_open_call_before(messages: Sequence[Sent], at: int, call: str, *, again: bool) -> bool:
    """Whether the block before ``at`` has this call without a result; ``again``: without a result
    of the client's."""
    begin = at
    while begin and messages[begin - 1].answers is not None:
        begin -= 1
    made = messages[begin - 1].calls.count(call) if begin else 0
    if not made:
        return False
    answers = (x.answers for x in messages[begin:at] if not (again and x.stored))
    return made > sum(answer == call for answer in answers)


def _end_of_block(messages: Sequence[S], at: int) -> int:
    """A block is a message and the results that follow it directly."""
    end = at + 1
    while end < len(messages) and messages[end].answers is not None:
        end += 1
    return end


def _valid_block(block: Sequence[S]) -> list[S]:
    head, results = block[0], block[1:]
    if head.answers is not None:  # results without anything before them
        return [x for x in block if not x.stored]
    if not head.calls:
        return [head, *(x for x in results if not x.stored)]
    wanted = Counter(head.calls)
    answered = Counter(x.answers for x in results if x.answers in wanted)
    by_client = any(not x.stored and x.answers in answered for x in results)
    if head.stored and not by_client and not answered >= wanted:
        words = None if answered else head.as_text
        return [*([words] if words else []), *(x for x in results if not x.stored)]
    return [head, *_one_result_per_call(results, head.calls)]


def _one_result_per_call(results: Sequence[S], calls: Sequence[str]) -> list[S]:
    """Each call answered once; where the client sends a result that is stored, the client's.

    Calls may share an id: some upstreams give them none.
    """
    left = Counter(calls)
    left.subtract(x.answers for x in results if not x.stored and x.answers is not None)
    kept: list[S] = []
    for result in results:
        if result.stored and left[result.answers or ""] <= 0:
            continue
        if result.stored:
            left[result.answers or ""] -= 1
        kept.append(result)
    return kept
