"""A prompt whose stored messages are sent as text alone, since an upstream refuses their media.
Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec.structs import replace

from proxy.chat.media.words import with_text_only
from proxy.gateway.prompt.prompt import AssembledPrompt, Worded, rendered


def in_text(prompt: AssembledPrompt, ids: Collection[str] | None = None) -> AssembledPrompt:
    """The prompt with its stored messages, or those with these ids, as text alone; the same object
    if they have nothing else.  Takes long for large ones."""
    worded = dict(_worded(prompt, ids))
    if not worded:
        return prompt
    worded = {**prompt.worded, **worded}
    messages = rendered(prompt.loaded, prompt.prompt, worded)
    return replace(prompt, worded=worded, messages=messages)


def _worded(prompt: AssembledPrompt, ids: Collection[str] | None) -> Iterator[tuple[str, Worded]]:
    """Not of calls that are sent as text anyway."""
    count, bodies = prompt.exchange.counter.count, prompt.loaded.bodies
    done = prompt.prompt.told.union(prompt.worded)
    for entry in prompt.prompt.stored:
        id = entry.card.id
        if id in done or (ids is not None and id not in ids) or id not in bodies:
            continue
        text = with_text_only(bodies[id])
        if text is not bodies[id]:
            yield id, Worded(text, count(text))
