"""The benchmark runs from end to end, and its table has a number wherever there is one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.apis import ApiCost
from bench.at_once import AtOnce, Rate
from bench.plan import QUICK, Level, Plan, Row, rows, sessions
from bench.requests import Requests
from bench.single import Single
from bench.streams import Open
from bench.suite import AtLevel, Measured, Result, steps
from bench.table import report

TINY = Plan(
    sizes=(0, 20),
    api_sizes=(),
    hot_turns=16,
    new_sessions=16,
    rounds=1,
    pairs=3,
    afterwards=0.0,
    levels=(
        Level(1, runs=1, chunks=5, interval=0.001),
        Level(4, runs=1, chunks=8, interval=0.005),
    ),
    redis=False,
)


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def test_every_step_is_announced_for_the_progress_bar() -> None:
    assert steps(TINY) == 1 + 1 + 4 + 4 + 1
    assert steps(QUICK) > steps(TINY)


def test_a_session_is_used_only_while_it_keeps_its_size() -> None:
    assert sessions(TINY, 20) == 3 + 1 + 4
    assert sessions(TINY, 20_000) == 1
    requests = Requests(TINY, Row("proxy", "sqlite", 20))
    names = [requests.plain().partition(b"x-session-id: ")[2].split(b"\r\n")[0] for _ in range(9)]
    assert len(set(names)) == 8


def test_a_new_session_is_never_used_twice_and_none_has_no_header() -> None:
    fresh = Requests(TINY, Row("proxy", "sqlite", 0))
    assert fresh.plain() != fresh.plain()
    assert b"x-session-id" not in Requests(TINY, Row("proxy")).plain()


def result(row: Row, through: float, memory: str) -> Result:
    single = Single([0.001, 0.001], [through, through], cpu=0.004)
    level = AtLevel(Level(2, 1, 5, 0.1), Open([0.001]), Open([0.003], 0.01, 100, 3 << 20))
    level.through.memory[memory] += 2
    return Result(row, single, [level], idle_rss=1 << 20)


def crowd(memory: str) -> AtOnce:
    hot = Rate(200, 2.0, 1.0, Counter({memory: 200}))
    return AtOnce(Row("proxy", "redis"), hot, Rate(400, 2.0, 1.0, Counter({memory: 400})))


def apis() -> ApiCost:
    return ApiCost("chat completions", 20, result(Row("proxy"), 0.002, "none").single)


def test_the_tables_add_up() -> None:
    found = Measured([result(Row("proxy"), 0.0025, "none")], [apis()], [crowd("none")])
    first, each, second = report(found).split("\n\n")[:3]
    *_, line = first.splitlines()
    assert cells(line) == ["proxy, no session", "1.50", "1.50", "2,000", "2.00", "100", "1,024"]
    *_, line = each.splitlines()
    assert cells(line) == ["chat completions, session of 20", "1.00", "1.00", "2,000", "1.00"]
    *_, line = second.splitlines()
    assert cells(line) == ["Redis", "100", "5.00", "1.00", "200", "2.50", "1.00"]


def test_memory_that_failed_is_said_below_the_table() -> None:
    row = result(Row("proxy", "redis", 20), 0.002, "degraded")
    text = report(Measured([row], [], [crowd("degraded")]))
    assert "session of 20, Redis: 2 of 2 answers went without memory." in text
    assert "16 at once, Redis: 600 of 600 answers went without memory." in text


def test_all_rows_of_the_full_plan_are_different() -> None:
    names = [row.name for row in rows(Plan())]
    assert len(names) == len(set(names)) == 15


def test_an_unknown_option_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--nonsense"])
    assert ended.value.code == 2
    assert "--quick" in capsys.readouterr().err


def test_the_readme_beside_it_names_every_option_and_column() -> None:
    text = (Path(__file__).parents[1] / "bench" / "README.md").read_text(encoding="utf-8")
    for word in ("--quick", "--write", "--no-redis", "added ms", "CPU µs", "kB / open stream"):
        assert word in text
