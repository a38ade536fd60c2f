"""Replaces media in a prompt's stored messages by text, if an upstream refuses them.  Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec.structs import replace

from proxy.chat.media.words import with_text_only
from proxy.gateway.prompt.prompt import AssembledPrompt, TextOnly, render_messages


def stored_as_text(prompt: AssembledPrompt, ids: Collection[str] | None = None) -> AssembledPrompt:
    """The prompt with its stored messages, or only those with these ids, without media; the same
    object if they have none.  Slow for large ones: use a thread."""
    texts = dict(_text_only_messages(prompt, ids))
    if not texts:
        return prompt
    texts = {**prompt.text_only, **texts}
    messages = render_messages(prompt.loaded, prompt.prompt, texts)
    return replace(prompt, text_only=texts, messages=messages)


def _text_only_messages(
    prompt: AssembledPrompt, ids: Collection[str] | None
) -> Iterator[tuple[str, TextOnly]]:
    """The text-only form of each message, by id; not for messages that are sent as text already."""
    count, bodies = prompt.exchange.counter.count, prompt.loaded.bodies
    text_ids = prompt.prompt.sent_as_text.union(prompt.text_only)
    for entry in prompt.prompt.stored:
        id = entry.card.id
        if id in text_ids or (ids is not None and id not in ids) or id not in bodies:
            continue
        text = with_text_only(bodies[id])
        if text is not bodies[id]:
            yield id, TextOnly(text, count(text))
