"""Branches: what makes one the active one, against clients whose truth is known."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from proxy.memory.archive import PlacedExchange, Revision, StoredMessage
from proxy.memory.history.branches import NO_SWITCH, Switch, path_to, switch_to
from proxy.memory.model import Card, Entry, Exchange, LoadOptions, Position, State, exchange_of
from proxy.memory.reconciliation.match import open_calls
from tests.support.oracle import archive as oracle_archive
from tests.support.oracle.session import SessionState
from tests.support.talk.shorthand import message
from tests.support.talk.simulator import Conversation

KINDS = (
    "everything",
    "new only",
    "windowed",
    "edit",
    "regenerate",
    "rewind",
    "retry",
    "interrupted",
)
WHOLE = LoadOptions(profile="", whole=True)


@dataclass
class Told:
    """A conversation, written into the oracle; ``logs`` are the log behind each exchange, by id."""

    conversation: Conversation
    state: SessionState = field(
        default_factory=lambda: SessionState(created_at=0.0, last_active_at=0.0)
    )
    logs: dict[str, list[str]] = field(default_factory=dict)

    def play(self, kinds: Sequence[str]) -> Told:
        for kind in kinds:
            self.conversation.play([kind])
            self.write()
        return self

    def write(self) -> None:
        for commit in self.conversation.memory.commits:
            if commit.exchange.id not in self.logs:
                assert self.state.commit(commit) == "recorded"
                self.logs[commit.exchange.id] = self.log

    @property
    def log(self) -> list[str]:
        return [line.card.id for line in self.state.log]

    @property
    def lines(self) -> list[StoredMessage]:
        return oracle_archive.lines(self.state, 0)

    @property
    def exchanges(self) -> list[PlacedExchange]:
        return oracle_archive.exchanges(self.state, None)[::-1]

    def activate(self, id: str) -> None:
        """And let the conversation go on from there."""
        switch = switch_to(self.lines, self.exchanges, id)
        assert switch is not None
        revision = Revision(superseded=switch.superseded, activated=switch.activated)
        assert oracle_archive.revise(self.state, revision)
        talk = self.conversation
        talk.memory.snapshot = self.state.look(WHOLE, 0.0)
        cards = [line.card for line in self.state.log]
        talk.truth = [message(x.digest, x.role, x.calls, x.answers) for x in cards]


def told(rng: random.Random, kinds: Sequence[str]) -> Told:
    return Told(Conversation(rng, KINDS)).play(kinds)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.sampled_from(KINDS), min_size=2, max_size=12), st.randoms(use_true_random=False))
def test_an_activated_branch_is_the_log_as_it_was_when_the_branch_was_recorded(
    kinds: list[str], rng: random.Random
) -> None:
    session = told(rng, kinds)
    gone = [line.card.id for line in session.lines if line.state == "superseded"]
    for id in rng.sample(gone, min(len(gone), 4)):
        if session.state.find(id).state == "superseded":  # type: ignore[union-attr]
            session.activate(id)
            assert session.log == session.logs[exchange_of(id)]


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.sampled_from(KINDS), min_size=2, max_size=8),
    st.lists(st.sampled_from(KINDS), min_size=1, max_size=5),
    st.randoms(use_true_random=False),
)
def test_every_client_goes_on_with_an_activated_branch(
    before: list[str], behind: list[str], rng: random.Random
) -> None:
    """``wrong`` holds a sentence wherever what was sent or kept is not the truth, in order.

    A branch that ends while a call waits is another matter: the call is left out until then.
    """
    session = told(rng, before)
    gone = [line.card.id for line in session.lines if line.state == "superseded"]
    if gone:
        session.activate(rng.choice(gone))
    assume(not open_calls([Entry(x.position, x.card) for x in session.state.log]))
    session.play(behind)
    assert not session.conversation.wrong
    gone = [line.card.id for line in session.lines if line.state == "superseded"]
    if gone:
        message = rng.choice(gone)
        session.activate(message)
        assert session.log == session.logs[exchange_of(message)]


# Particular cases, in shorthand: a number is an exchange, a letter a message of it


def line(
    id: str, seq: int, turn: int, role: str, state: State = "active", **fields: Any
) -> StoredMessage:
    card = Card(id=id, role=role, tokens=1, digest=id, **fields)
    return StoredMessage(Position(turn, seq), card, state, b"{}")


def placed(id: str, first: int, follows: str | None, *messages: str) -> PlacedExchange:
    exchange = Exchange(id=id, profile="", started_at=0, created_at=0, size=9, follows=follows)
    return PlacedExchange(first, exchange, messages)


EDITED = (
    line("1.0", 1, 1, "user"),
    line("1.1", 2, 1, "assistant", origin="response"),
    line("2.0", 3, 3, "user", "superseded"),
    line("2.1", 4, 3, "assistant", "superseded", origin="response"),
    line("3.0", 5, 5, "user"),
    line("3.1", 6, 5, "assistant", origin="response"),
)
"""The second question was edited."""


def test_an_edited_question_comes_back_with_its_answer() -> None:
    exchanges = [placed("1", 1, ""), placed("2", 3, "1.1"), placed("3", 5, "1.1")]
    for id in ("2.0", "2.1"):
        switch = switch_to(EDITED, exchanges, id)
        assert switch == Switch(superseded=("3.0", "3.1"), activated=("2.0", "2.1"))


def test_where_nothing_says_what_it_followed_it_is_what_is_active_before_it() -> None:
    exchanges = [placed("1", 1, None), placed("2", 3, None), placed("3", 5, None)]
    switch = switch_to(EDITED, exchanges, "2.1")
    assert switch == Switch(superseded=("3.0", "3.1"), activated=("2.0", "2.1"))


def test_what_followed_a_removed_message_follows_the_one_before_it() -> None:
    without = [x for x in EDITED if x.card.id != "1.1"]
    exchanges = [placed("1", 1, ""), placed("2", 3, "1.1"), placed("3", 5, "1.1")]
    switch = switch_to(without, exchanges, "2.1")
    assert switch == Switch(superseded=("3.0", "3.1"), activated=("2.0", "2.1"))


def test_what_followed_a_removed_exchange_follows_what_is_active() -> None:
    exchanges = [placed("2", 3, "1.1"), placed("3", 5, "1.1")]
    assert switch_to(EDITED[2:], exchanges, "2.1") == Switch(("3.0", "3.1"), ("2.0", "2.1"))


def test_the_branch_ends_with_the_message_where_that_is_asked() -> None:
    exchanges = [placed("1", 1, ""), placed("2", 3, "1.1"), placed("3", 5, "1.1")]
    switch = switch_to(EDITED[:4], exchanges, "2.0", whole=False)
    assert switch == Switch(superseded=(), activated=("2.0",))


def test_another_choice_of_a_reply_comes_instead_of_the_active_one() -> None:
    lines = [
        line("1.0", 1, 1, "user"),
        line("1.1", 2, 1, "assistant", origin="response"),
        line("1.2", 3, 1, "assistant", "superseded", origin="response", choice=1),
        line("2.0", 4, 4, "user"),
    ]
    exchanges = [placed("1", 1, ""), placed("2", 4, "1.1")]
    assert switch_to(lines, exchanges, "1.2") == Switch(("1.1", "2.0"), ("1.2",))


def test_what_ran_beside_the_conversation_stays() -> None:
    """Two requests at once: 2 and 3 both followed 1; 4 followed 3, and was taken back."""
    lines = [
        line("1.0", 1, 1, "user"),
        line("2.0", 2, 2, "user"),
        line("3.0", 3, 3, "user"),
        line("4.0", 4, 4, "user", "superseded"),
    ]
    exchanges = [
        placed("1", 1, ""),
        placed("2", 2, "1.0"),
        placed("3", 3, "1.0"),
        placed("4", 4, "3.0"),
    ]
    assert switch_to(lines, exchanges, "4.0") == Switch((), ("4.0",))


def test_an_answer_that_was_edited_later_comes_back_as_it_was_edited() -> None:
    """3 put 3.0 in the place of 1.1, in its turn, and went on behind 2.1."""
    lines = [
        line("1.0", 1, 1, "user"),
        line("1.1", 2, 1, "assistant", "superseded"),
        line("2.0", 3, 3, "user"),
        line("2.1", 4, 3, "assistant"),
        line("3.0", 5, 1, "assistant", "superseded"),
        line("3.1", 6, 6, "user", "superseded"),
    ]
    exchanges = [placed("1", 1, ""), placed("2", 3, "1.1"), placed("3", 5, "2.1")]
    assert switch_to(lines, exchanges, "3.1") == Switch((), ("3.0", "3.1"))


def test_what_is_active_already_stays_as_it_is() -> None:
    exchanges = [placed("1", 1, ""), placed("2", 3, "1.1"), placed("3", 5, "1.1")]
    assert switch_to(EDITED, exchanges, "1.0") == NO_SWITCH


@pytest.mark.parametrize("message", ["", "9.9", "1.", "1.01"])
def test_an_unknown_message_has_no_branch(message: str) -> None:
    assert switch_to(EDITED, [placed("1", 1, "")], message) is None


def test_whoever_says_what_he_goes_on_from_has_nothing_beside_it() -> None:
    """Two requests at once: 2 and 3 both followed 1."""
    lines = [
        line("1.0", 1, 1, "user"),
        line("1.1", 2, 1, "assistant", origin="response"),
        line("2.0", 3, 3, "user"),
        line("2.1", 4, 3, "assistant", origin="response"),
        line("3.0", 5, 5, "user"),
        line("3.1", 6, 5, "assistant", origin="response"),
    ]
    exchanges = [placed("1", 1, ""), placed("2", 3, "1.1"), placed("3", 5, "1.1")]

    def way(message: str, of: Sequence[StoredMessage] = lines) -> str:
        return " ".join(entry.card.id for entry in path_to(of, exchanges, message))

    assert way("3.1") == "1.0 1.1 3.0 3.1"
    assert way("2.1") == way("2.1", EDITED) == "1.0 1.1 2.0 2.1"
    assert way("1.1") == "1.0 1.1"
    assert way("4.0") == ""
