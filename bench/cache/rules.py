"""Caches of prompts as their providers document them.  Pure: no clock, so nothing expires.

https://platform.claude.com/docs/en/build-with-claude/prompt-caching
https://developers.openai.com/api/docs/guides/prompt-caching
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import accumulate
from typing import NamedTuple, Protocol

MAX_MARKS = 4
"""Marks that a request may have at Anthropic, and that OpenAI writes of one."""

MIN_TOKENS = 1024
"""Tokens below which nothing is cached: OpenAI, and Anthropic for most models."""

BACK = 20
"""Blocks that Anthropic looks at from a mark backwards, itself the first."""

CONSIDERED = 80
"""Breakpoints that OpenAI looks at, the latest."""

STEP = 128
"""Tokens: what OpenAI's older models cache grows by."""


class Block(NamedTuple):
    """A piece of a prompt.  ``ends``: a message that is not the model's ends with it."""

    content: bytes
    tokens: int
    marked: bool = False
    ends: bool = False


class Prompt(NamedTuple):
    """In the order in which it is read.  ``implicit``: may the provider set a breakpoint itself?

    ``key`` is the client's name for what it has in common with other prompts.
    """

    blocks: Sequence[Block]
    implicit: bool = True
    key: str = ""


class Used(NamedTuple):
    """Tokens: of all the prompt, read from the cache, and written to it."""

    prompt: int = 0
    read: int = 0
    written: int = 0

    def __add__(self, other: object) -> Used:
        assert isinstance(other, Used)
        return Used(*map(sum, zip(self, other, strict=True)))


class Rates(NamedTuple):
    """What a token costs that is read, or written, where any other costs 1."""

    read: float
    written: float

    def billed(self, used: Used) -> float:
        """In tokens that are neither."""
        rest = used.prompt - used.read - used.written
        return rest + self.read * used.read + self.written * used.written


PAID = Rates(0.1, 1.25)
FREE = Rates(0.1, 1.0)
"""OpenAI's models before GPT-5.6: writing costs what reading anew does."""


class Refused(Exception):
    """The provider would answer 400."""


class Cache(Protocol):
    """What one organisation has cached at a provider."""

    def ask(self, prompt: Prompt) -> Used:
        """What a request reads and writes.  Raises Refused."""
        ...


class Anthropic:
    """Up to each mark a prompt is written.  From each mark a lookup goes back to what was."""

    def __init__(self) -> None:
        self._known: set[bytes] = set()

    def ask(self, prompt: Prompt) -> Used:
        marks = [at for at, block in enumerate(prompt.blocks) if block.marked]
        if len(marks) > MAX_MARKS:
            raise Refused(f"A maximum of {MAX_MARKS} blocks with cache_control: found {len(marks)}")
        ends, names = _ends(prompt), list(_names(prompt))
        seen = {at for mark in marks for at in range(mark, max(-1, mark - BACK), -1)}
        read = max((ends[at] for at in seen if names[at] in self._known), default=0)
        written = [at for at in marks if ends[at] >= MIN_TOKENS]
        self._known.update(names[at] for at in written)
        return _used(ends, read, written)


class Breakpoints:
    """OpenAI from GPT-5.6 on: what is read ends exactly at a breakpoint.

    Its own stands at the newest message that is not the model's.  Whether it looks at those that
    earlier requests had there is told in two ways: here it does, which is best for a client that
    resends all of a conversation.
    """

    def __init__(self) -> None:
        self._known: set[tuple[str, bytes]] = set()

    def ask(self, prompt: Prompt) -> Used:
        explicit = [at for at, block in enumerate(prompt.blocks) if block.marked]
        if any(not prompt.blocks[at].ends for at in explicit):
            raise Refused("Unknown parameter: 'prompt_cache_breakpoint'")
        implicit = [at for at, block in enumerate(prompt.blocks) if block.ends]
        considered, written = explicit, explicit[-MAX_MARKS:]
        if prompt.implicit:
            considered = sorted({*explicit, *implicit})
            written = sorted({*explicit[-MAX_MARKS + 1 :], *implicit[-1:]})
        ends, names = _ends(prompt), [(prompt.key, name) for name in _names(prompt)]
        found = (ends[at] for at in considered[-CONSIDERED:] if names[at] in self._known)
        read = max(found, default=0)
        written = [at for at in written if ends[at] >= MIN_TOKENS]
        self._known.update(names[at] for at in written)
        return _used(ends, read, written)


class Automatic:
    """OpenAI before GPT-5.6: the longest beginning of any prompt before, in steps."""

    def __init__(self) -> None:
        self._known: set[bytes] = set()

    def ask(self, prompt: Prompt) -> Used:
        ends, names = _ends(prompt), list(_names(prompt))
        same = max((ends[at] for at, name in enumerate(names) if name in self._known), default=0)
        self._known.update(names)
        read = same - same % STEP if same >= MIN_TOKENS else 0
        return Used(ends[-1] if ends else 0, read)


def _ends(prompt: Prompt) -> list[int]:
    """Tokens up to the end of each block."""
    return list(accumulate(block.tokens for block in prompt.blocks))


def _names(prompt: Prompt) -> Iterator[bytes]:
    """Of what stands before the end of each block."""
    whole = sha256()
    for block in prompt.blocks:
        whole.update(b"%d:%b" % (len(block.content), block.content))
        yield whole.digest()


def _used(ends: Sequence[int], read: int, written: Sequence[int]) -> Used:
    furthest = max((ends[at] for at in written), default=0)
    return Used(ends[-1] if ends else 0, read, max(0, furthest - read))
