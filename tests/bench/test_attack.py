"""The attacks and the soak run from end to end, and what they tell is what happened."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.attack import soak, suite
from bench.attack.attacks import attacks
from bench.attack.kinds import Attack, Run
from bench.attack.sending import Attacker, messages_body, user
from bench.attack.soak import Sample, Soak
from bench.attack.table import report

pytestmark = pytest.mark.release

SECONDS = 2.0


def chats(session: str, number: int) -> Callable[[], Run]:
    def run(attacker: Attacker) -> None:
        for n in range(number):
            attacker.chat(session, messages_body([user(f"hello {n}")]))

    return lambda: run


def quiet(text: str) -> None:
    """Progress that nobody follows."""


@pytest.mark.slow
def test_an_attack_is_watched_on_either_side_of_a_restart(tmp_path: Path) -> None:
    attack = Attack("three chats", chats("attack", 3), after=0.5, restarts=True)
    (result,) = suite.run([attack], ["sqlite"], tmp_path, quiet)
    assert result.statuses == ("200 empty", "200 applied", "200 applied")
    for seen in (result.seen, result.restarted):
        assert seen is not None and seen.chats > 0 and seen.stall > 0 and seen.rss > 0
        assert (seen.degraded, seen.failed) == (0, 0)
    _, _, first, second = report([result]).splitlines()
    assert first.startswith("| three chats | sqlite | 200 empty, 2 x 200 applied |")
    assert second.startswith("| three chats: restarted | sqlite |")


@pytest.mark.slow
def test_the_longest_command_of_a_redis_is_told(tmp_path: Path) -> None:
    def many(attacker: Attacker) -> None:
        attacker.chat("s", messages_body([user(f"m{n}") for n in range(11_000)]))

    (result,) = suite.run([Attack("many", lambda: many)], ["redis"], tmp_path, quiet)
    assert 0.01 < result.longest < result.seconds
    assert f"| {result.longest * 1000:.0f} |" in report([result])


@pytest.mark.slow
def test_a_soak_keeps_a_proxy_busy_with_all_kinds_of_clients(tmp_path: Path) -> None:
    soaked = soak.run("sqlite", tmp_path, SECONDS, lambda seconds: None)
    assert soaked.samples and soaked.samples[-1].rss > 0
    assert soaked.statuses["200 applied"] > 10
    assert "Answers: " in soak.report(soaked)


def test_what_a_soak_grew_by_is_told() -> None:
    soaked = Soak.__new__(Soak)
    soaked.statuses = {"200 applied": 7}
    soaked.samples = [Sample(n * 60.0, 100_000_000 + n * 500_000, 50, 9, 20, n) for n in range(21)]
    assert "Grown in the second half: +5.0 MB" in soak.report(soaked)


def test_every_attack_has_a_name_of_its_own() -> None:
    names = [attack.name for attack in attacks()]
    assert len(names) == len(set(names))
