"""``memory-proxy sessions`` as people and programs use it."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from proxy.tenancy import digest_of
from tests.commands.conftest import ADMIN, KEY, Program, Run
from tests.support.waiting import PATIENCE


def test_list_shows_a_line_for_each_session(run: Run, talked: str) -> None:
    result = run("sessions", "list", "--user", "alice")
    assert result.exit_code == 0, result.output
    row = next(text for text in result.output.splitlines() if text.startswith(talked))
    assert row.split()[1] == "alice"
    assert "What is the weather in Bergen?" in row


@pytest.mark.parametrize("columns", ["60", "80", "120", "400"])
def test_ids_are_whole_on_a_screen_of_any_width(run: Run, program: Program, columns: str) -> None:
    session, user = "550e8400-e29b-41d4-a716-446655440000", "ann-" + "x" * 200
    body = {"messages": [{"role": "user", "content": "word " * 50}], "user": user}
    assert program.api("POST", f"/sessions/{session}/messages", json=body).status_code == 200
    listed = run("sessions", "list", "--user", user, COLUMNS=columns).output
    assert listed.count(session) == listed.count(user) == 1
    assert user in run("users", "list", COLUMNS=columns).output
    whole = run("tenants", "list", MEMORY_PROXY_ADMIN_KEY=ADMIN, COLUMNS=columns).output
    assert digest_of(KEY.encode()) in whole
    program.api("DELETE", f"/users/{user}")


def test_list_as_json_is_an_object_of_the_api_a_line(
    run: Run, talked: str, program: Program
) -> None:
    result = run("sessions", "list", "--query", talked, "--json")
    (found,) = [json.loads(text) for text in result.output.splitlines()]
    assert found["id"] == talked
    one = program.api("GET", f"/sessions/{talked}").json()
    assert {name: found[name] for name in one} == one


def test_nothing_found_is_said_to_people_and_empty_for_programs(run: Run) -> None:
    told = f"There are none that match for this key (tenant {digest_of(KEY.encode())[:8]}…).\n"
    lists = [["sessions", "list", "--user", "nobody"], ["memories", "list", "ann"]]
    assert run(*lists[0]).output == told
    assert run(*lists[1], "--kind", "episode").output == told
    assert run("sessions", "list", "--user", "nobody", "--json").output == ""


def test_lists_say_for_whom_there_is_nothing(run: Run) -> None:
    key = f"for this key (tenant {digest_of(b'typo')[:8]}…).\n"
    lists = [["sessions", "list"], ["users", "list"], ["memories", "list", "ann"]]
    for command in lists:
        found = run(*command, MEMORY_PROXY_KEY="typo")
        assert (found.exit_code, found.output.endswith(key)) == (0, True), found.output


def test_what_is_not_there_is_said_not_to_be_there_for_whom(run: Run) -> None:
    shown = run("sessions", "show", "nothing", MEMORY_PROXY_KEY="typo")
    whose = f"for this key (tenant {digest_of(b'typo')[:8]}…). (session_not_found)\n"
    assert (shown.exit_code, shown.stderr.endswith(f"no such session {whose}")) == (3, True)


def test_a_list_that_goes_on_says_so(run: Run, program: Program) -> None:
    whose = {"MEMORY_PROXY_KEY": "sk-many"}
    headers = {"authorization": "Bearer sk-many"}
    with httpx.Client(headers=headers, timeout=PATIENCE) as client:
        for n in range(55):
            body = {"user": f"u{n}", "messages": [{"role": "user", "content": "a"}]}
            url = f"{program.url}/memory/v1/sessions/s{n}/messages"
            assert client.post(url, json=body).status_code == 200
    for command, usual in (("sessions", 50), ("users", 100)):
        found = run(command, "list", **whose)
        assert len(found.stdout.splitlines()) == min(usual, 55) + 1
        assert ("there are more" in found.stderr) is (usual < 55)
        two = run(command, "list", "--limit", "2", **whose)
        assert len(two.stdout.splitlines()) == 3
        assert two.stderr == "These are 2; there are more: --limit N shows N of them.\n"
        for limit in ("55", "56"):
            assert run(command, "list", "--limit", limit, **whose).stderr == ""
        # Programs get all of it, or are told beside the output that they did not.
        all_of_it = run(command, "list", "--json", **whose)
        assert (len(all_of_it.stdout.splitlines()), all_of_it.stderr) == (55, "")
        some = run(command, "list", "--json", "--limit", "3", **whose)
        assert len(some.stdout.splitlines()) == 3 and "there are more" in some.stderr


def test_show_draws_the_conversation(run: Run, talked: str) -> None:
    shown = run("sessions", "show", talked).output
    order = ["Be brief.", "in Bergen?", '→ weather({"city": "Bergen"})', "rain", "It rains again."]
    places = [shown.index(text) for text in order]
    assert places == sorted(places)


def test_calls_of_any_shape_are_shown(run: Run, program: Program) -> None:
    """What clients have sent is remembered as it is."""
    function = {"name": "weather", "arguments": {"city": "Bergen"}}
    answers: list[dict[str, object]] = [
        {"tool_calls": "abc"},
        {"tool_calls": [None, 5, {"id": "c", "function": "text"}]},
        {"tool_calls": {"a": 1}},
        {"function_call": function},
        {"audio": {"id": "a1", "transcript": "It rains."}},
    ]
    odd = [{"role": "assistant", "content": "Well.", **answer} for answer in answers]
    talk = [{"role": "user", "content": "And now?"}, *odd]
    given = ("--format", "openai", "--session", "odd")
    assert run("sessions", "import", "-", *given, stdin=json.dumps(talk)).exit_code == 0
    shown = [
        run("sessions", "show", "odd"),
        run("sessions", "tail", "odd", "--no-follow"),
        run("context", "odd", "So?"),
    ]
    assert [each.exit_code for each in shown] == [0, 0, 0], [each.exception for each in shown]
    for each in shown[:2]:
        assert '→ weather({"city":"Bergen"})' in each.output and "[audio] It rains." in each.output
    program.api("DELETE", "/sessions/odd")


def test_what_was_said_cannot_drive_the_terminal(run: Run, talked: str, program: Program) -> None:
    hostile = "\x1b]0;owned\x07 [bold]tag[/bold] \u202e back"
    body = {"messages": [{"role": "user", "content": hostile}]}
    program.api("POST", f"/sessions/{talked}/messages", json=body)
    for shown in (run("sessions", "show", talked), run("sessions", "tail", talked, "--no-follow")):
        assert "\x1b" not in shown.output and "\u202e" not in shown.output
        assert "\u241b]0;owned\u2407 [bold]tag[/bold] \\u{202e} back" in shown.output


def test_tail_ends_with_the_last_messages(run: Run, talked: str) -> None:
    shown = run("sessions", "tail", talked, "-n", "1", "--no-follow").output
    assert "It rains again." in shown
    assert "And tomorrow?" not in shown


def test_tail_finds_the_end_of_what_was_rewound(run: Run, talked: str, program: Program) -> None:
    messages = [{"role": "user", "content": f"Question {n}?"} for n in range(60)]
    added = program.api("POST", f"/sessions/{talked}/messages", json={"messages": messages})
    assert added.status_code == 200
    listed = program.api("GET", f"/sessions/{talked}/messages?limit=1000").json()["data"]
    first = next(m["id"] for m in listed if m["message"]["content"] == "Question 0?")
    assert program.api("POST", f"/sessions/{talked}/rewind", json={"to": first}).status_code == 200
    shown = run("sessions", "tail", talked, "-n", "2", "--no-follow").output
    assert "And tomorrow?" in shown and "It rains again." in shown
    assert "It rains.\n" not in shown and "Question" not in shown


def test_the_question_before_a_rewind_says_how_much_there_is(
    run: Run, talked: str, program: Program
) -> None:
    there = program.api("GET", f"/sessions/{talked}").json()["messages"]
    asked = run("sessions", "rewind", talked, "--turns", "500")
    question = f"Rewind {talked}, which has {there} messages: the last 500 turns?"
    assert (asked.exit_code, question in asked.stderr) == (2, True), asked.stderr
    assert "the last 1 turn?" in run("sessions", "rewind", talked, "--turns", "1").stderr


def test_fork_and_rewind(run: Run, talked: str, program: Program) -> None:
    copy = f"{talked}-copy"
    assert run("sessions", "fork", talked, copy).exit_code == 0
    rewound = run("sessions", "rewind", copy, "--turns", "1", "--yes", "--json")
    assert json.loads(rewound.output)["messages"] == 4
    assert program.api("GET", f"/sessions/{talked}").json()["messages"] == 6
    again = run("sessions", "fork", talked, copy)
    assert (again.exit_code, "session_exists" in again.stderr) == (5, True)
    program.api("DELETE", f"/sessions/{copy}")


def test_export_and_import_bring_it_back(
    run: Run, talked: str, program: Program, tmp_path: Path
) -> None:
    path, file = f"/sessions/{talked}", tmp_path / "talk.ndjson"
    before = [program.api("GET", f"{path}{rest}").json() for rest in ("", "/messages")]
    assert run("sessions", "export", talked, "-o", str(file)).exit_code == 0
    piped = run("sessions", "export", talked)
    assert [json.loads(text)["kind"] for text in piped.output.splitlines()] == [
        json.loads(text)["kind"] for text in file.read_text().splitlines()
    ]
    assert run("sessions", "delete", talked, "--yes").exit_code == 0
    assert program.api("GET", path).status_code == 404
    assert run("sessions", "import", str(file)).exit_code == 0
    assert [program.api("GET", f"{path}{rest}").json() for rest in ("", "/messages")] == before
    skipped = run("sessions", "import", "-", stdin=file.read_bytes())
    assert "skipped, as they are there already: 1 session\n" in skipped.output


def test_an_export_that_fails_leaves_no_file(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "none.ndjson"
    result = run("sessions", "export", "no-such-session", "-o", str(file))
    assert (result.exit_code, list(tmp_path.iterdir())) == (3, [])
    assert "session_not_found" in result.stderr


@pytest.mark.parametrize("command", [["delete"], ["rewind", "--turns", "1"]])
def test_what_destroys_is_not_done_without_being_asked(
    run: Run, talked: str, program: Program, command: list[str]
) -> None:
    before = program.api("GET", f"/sessions/{talked}").json()
    result = run("sessions", command[0], talked, *command[1:])
    assert (result.exit_code, "--yes" in result.stderr) == (2, True), result.stderr
    assert program.api("GET", f"/sessions/{talked}").json() == before


def test_what_would_go_is_told_aside(run: Run, talked: str) -> None:
    for more in ([], ["--json"]):
        result = run("sessions", "delete", talked, *more)
        assert (result.exit_code, result.stdout) == (2, "")
        assert f"session {talked} has " in result.stderr


def test_a_format_that_nobody_knows_names_the_option(run: Run) -> None:
    result = run("sessions", "import", "-", stdin="no conversation")
    assert (result.exit_code, "?format=" in result.stderr) == (2, False)
    assert "say which it is: --format" in result.stderr


def test_delete_gives_a_receipt(run: Run, talked: str) -> None:
    receipt = json.loads(run("sessions", "delete", talked, "--yes", "--json").output)
    assert receipt["deleted"] is True
    assert receipt["counts"]["messages"] == 6
