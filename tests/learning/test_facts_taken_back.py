"""What was superseded by something that was said later stays so, whatever arrives later still."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count as counter

from hypothesis import given
from hypothesis import strategies as st

from proxy.learning.evidence import Source
from proxy.learning.facts.claim import Claim, Op
from proxy.learning.facts.fact import USER, Fact
from proxy.learning.facts.rules import MAX_SUPERSEDED, ClaimMerger, apply_claims
from proxy.settings.learned import FactsSettings

PLAIN = FactsSettings()
HABITS = ("smokes", "has quit", "vapes")


def claim(op: Op, habit: str, at: float, fact: str | None = None) -> Claim:
    source = Source(session="s", message=f"{at}", exchange=f"{at}", at=at)
    return Claim(op, f"The user {habit}.", USER, "current", None, None, source, fact)


def arrived(said: Sequence[str], order: Sequence[int]) -> list[Fact]:
    """What becomes of statements about one thing, each said at the time that is its place, read in
    this order.  The model is shown what is current, and adds older news that it cannot place."""
    facts: dict[str, Fact] = {}
    latest, number = -1, counter()
    for time in order:
        current = next((fact for fact in facts.values() if fact.state == "current"), None)
        known = any(said[time] in fact.text for fact in facts.values())
        op: Op = "add" if current is None or (known and time < latest) else "supersede"
        news = claim(op, said[time], float(time), current.id if current else None)
        facts = apply_claims(facts, [news], PLAIN, lambda: f"f{next(number)}", 1000.0)
        latest = max(latest, time)
    return list(facts.values())


def test_what_was_taken_back_is_so_however_often_and_late_that_was_said() -> None:
    said = ["has quit", "vapes", "has quit", "has quit", "smokes"]
    quit, vapes, smokes = arrived(said, [0, 1, 4, 2, 3])
    assert len(quit.sources) == 3 and quit.last_confirmed > vapes.last_confirmed
    assert [fact.state for fact in (quit, vapes, smokes)] == ["superseded", "superseded", "current"]


@given(st.data(), st.lists(st.sampled_from(HABITS), min_size=1, max_size=7))
def test_what_was_said_last_is_alone_current_in_any_order_of_arrival(
    data: st.DataObject, said: list[str]
) -> None:
    facts = arrived(said, data.draw(st.permutations(range(len(said)))))
    assert [fact.text for fact in facts if fact.state == "current"] == [f"The user {said[-1]}."]
    for fact in facts:
        assert all(said[int(source.at)] in fact.text for source in fact.sources)
    assert sum(len(fact.sources) for fact in facts) == len(said), "nothing that was said is lost"


def test_what_was_taken_back_gets_the_older_message_as_a_source() -> None:
    smokes, quit = arrived(["smokes", "smokes", "has quit"], [1, 2, 0])
    assert (smokes.state, smokes.superseded_by, quit.state) == ("superseded", quit.id, "current")
    assert [source.at for source in smokes.sources] == [1.0, 0.0]


def test_what_was_taken_back_and_is_said_again_later_is_current_again() -> None:
    facts = arrived(["smokes", "has quit", "smokes"], [0, 1, 2])
    assert [fact.state for fact in facts] == ["superseded", "superseded", "current"]


def compared(habit: str, at: float, facts: Mapping[str, Fact]) -> int:
    """With how many facts a statement is compared."""
    merger = ClaimMerger(dict(facts), PLAIN, lambda: "new", 1000.0)
    merger.merge(claim("add", habit, at))
    return len(merger._gists)


def test_only_old_news_are_compared_with_what_is_past_and_with_no_more_than_so_many() -> None:
    last = MAX_SUPERSEDED + 500
    facts = {
        f"f{n}": Fact(
            id=f"f{n}",
            text=f"The user owns boat {n}.",
            state="superseded" if n < last else "current",
            superseded_by=f"f{n + 1}" if n < last else None,
            last_confirmed=float(n),
        )
        for n in range(last + 1)
    }
    assert compared("smokes", last + 1.0, facts) == 1
    assert compared("smokes", 0.5, facts) == MAX_SUPERSEDED + 1
