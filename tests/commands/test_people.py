"""``memory-proxy memories``, ``users``, ``context`` and ``stats``."""

from __future__ import annotations

import json

import pytest

from proxy.commands.stats import missing_usage_note
from tests.commands.conftest import Program, Run


def test_a_memory_is_added_found_edited_and_forgotten(run: Run) -> None:
    added = json.loads(run("memories", "add", "bob", "Bob plays the oboe.", "--json").output)
    listed = run("memories", "list", "bob")
    assert added["id"] in listed.output and "Bob plays the oboe." in listed.output
    assert "oboe" in run("memories", "search", "bob", "Who plays the oboe?").output
    changed = run("memories", "edit", "bob", added["id"], "--text", "Bob plays the horn.", "--json")
    assert json.loads(changed.output)["text"] == "Bob plays the horn."
    assert run("memories", "forget", "bob", added["id"], "--yes").output == "forgotten\n"
    gone = run("memories", "forget", "bob", added["id"], "--yes")
    assert (gone.exit_code, "memory_not_found" in gone.stderr) == (3, True)


@pytest.mark.parametrize("id", [".", ".."])
def test_an_id_of_dots_is_an_id(id: str, run: Run) -> None:
    kept = json.loads(run("memories", "add", "dora", "Dora has a dog.", "--json").output)
    gone = run("memories", "forget", "dora", id, "--yes")
    assert gone.exit_code == 3, gone.output
    assert kept["id"] in run("memories", "list", "dora").output


def test_memories_are_listed_by_kind_and_state(run: Run) -> None:
    old, new = (
        json.loads(run("memories", "add", "emil", text, "--json").output)["id"]
        for text in ("Emil lives in Bonn.", "Emil lives in Bern.")
    )
    assert run("memories", "edit", "emil", old, "--state", "superseded").exit_code == 0
    asked = [["--kind", "fact"], ["--state", "superseded"], ["--state", "current,superseded"]]
    listed = [run("memories", "list", "emil", *more, "--json").output for more in asked]
    found = [{json.loads(row)["id"] for row in rows.splitlines()} for rows in listed]
    assert [ids & {old, new} for ids in found] == [{new}, {old}, {old, new}]
    wrong = run("memories", "list", "emil", "--kind", "bogus")
    assert (wrong.exit_code, "fact, instruction, preference, episode" in wrong.stderr) == (2, True)


def test_a_person_is_shown_and_erased(run: Run, talked: str, program: Program) -> None:
    listed = run("users", "list")
    assert "alice" in listed.output
    shown = json.loads(run("users", "show", "alice", "--json").output)
    assert shown["sessions"] >= 1
    exported = run("users", "export", "alice")
    assert talked in exported.output
    refused = run("users", "erase", "alice")
    assert (refused.exit_code, "--yes" in refused.stderr) == (2, True)
    receipt = json.loads(run("users", "erase", "alice", "--yes", "--json").output)
    assert receipt["counts"]["sessions"] == shown["sessions"]
    assert program.api("GET", f"/sessions/{talked}").status_code == 404
    assert run("users", "show", "alice").exit_code == 3


def test_context_says_what_would_be_sent(run: Run, talked: str) -> None:
    shown = run("context", talked, "Do I need an umbrella?")
    assert shown.exit_code == 0, shown.output
    assert "It rains again." in shown.output
    assert "Do I need an umbrella?" in shown.output
    assert "of them from memory: 6 messages" in shown.output


def test_stats_say_of_how_many_exchanges_usage_is_known() -> None:
    told = missing_usage_note({"exchanges": 12, "with_usage": 3})
    assert told is not None
    assert told.startswith("Upstreams have told the usage of 3 of 12 exchanges")
    assert missing_usage_note({"exchanges": 12, "with_usage": 12}) is None
    assert missing_usage_note({"exchanges": 12}) is None


def test_stats_have_a_row_for_each_day(run: Run, talked: str) -> None:
    for columns in ("120", "40"):
        shown = run("stats", "--days", "3", COLUMNS=columns)
        assert shown.exit_code == 0, shown.output
        assert shown.output.splitlines()[-1].startswith("all")
        assert "…" not in shown.output
    found = json.loads(run("stats", "--days", "3", "--json").output)
    assert found["totals"]["exchanges"] == sum(row["exchanges"] for row in found["series"])
