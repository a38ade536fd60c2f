"""As many facts as may be added or saved for one person."""

from __future__ import annotations

from proxy.learning.facts.fact import MAX_GIVEN, Fact, Facts

FULL = f"this person has as many memories as may be added or saved, {MAX_GIVEN:,}"
REFUSED = f"T{FULL[1:]}. Delete some first."


def filled(facts: Facts, most: int = MAX_GIVEN, before: float = 1000.0) -> None:
    """Put facts of all states that somebody has added, until there are ``most``."""
    for number in range(len(facts), most):
        facts[f"fact_{number:05}"] = Fact(
            id=f"fact_{number:05}",
            text=f"Note {number}.",
            state=("current", "quarantined", "superseded")[number % 3],
            last_confirmed=before + number,
            origin="added",
        )
