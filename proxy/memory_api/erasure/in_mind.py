"""What a process keeps in mind of texts that it has read, forgotten at once.

Texts and words that were said are kept for a while, as the same are read again soon.  What is
erased must not stay with them, and nobody can tell any more whose they were: so all of them go.
"""

from __future__ import annotations

from proxy.learning.facts.statements import gist
from proxy.memory.model import SessionKey
from proxy.recall import known_index
from proxy.recall.query import question, words
from proxy.recall.ranking import select
from proxy.recall.standing import standing
from proxy.summary.attempts import forget


def forget_texts() -> None:
    """All of them, and all that was found out of them; what is read next is read anew."""
    words.forget()
    question.forget()
    standing.forget()
    select.forget()
    gist.cache_clear()
    known_index.forget()


def forget_session(key: SessionKey) -> None:
    """What is being written of a session: it stands by its name."""
    forget(key)
