"""How commands end where their output, or who answers them, is not as it should be."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.commands.conftest import KEY, Program
from tests.support.processes.program import surroundings
from tests.support.waiting import PATIENCE

COMMAND = [sys.executable, "-m", "proxy"]
NO_ROOM = (
    "import resource as r; r.setrlimit(r.RLIMIT_FSIZE, (0, 0)); import proxy.cli as c; c.main()"
)
"""The command where no byte can be written to a file."""


@contextmanager
def started(
    program: Program, *arguments: str, by: list[str] = COMMAND, **options: Any
) -> Iterator[subprocess.Popen[str]]:
    environ = surroundings(
        MEMORY_PROXY_URL=program.url,
        MEMORY_PROXY_KEY=KEY,
        COLUMNS="200",
        **options.pop("environ", {}),
    )
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    with subprocess.Popen([*by, *arguments], env=environ, text=True, **piped | options) as process:
        try:
            yield process
        finally:
            process.kill()


def ended(
    program: Program, *arguments: str, by: list[str] = COMMAND, **options: Any
) -> tuple[int, str | None, str]:
    """Its status, and what it wrote."""
    with started(program, *arguments, by=by, **options) as process:
        output, errors = process.communicate(timeout=PATIENCE)
        return process.returncode, output, errors


@contextmanager
def nobody_reads() -> Iterator[int]:
    """The end of a pipe to write to, of which the other is closed."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        yield writer
    finally:
        os.close(writer)


LISTED = pytest.mark.parametrize("more", [[], ["--json"]], ids=["text", "json"])


@LISTED
def test_who_reads_no_further_has_seen_enough(
    more: list[str], program: Program, talked: str
) -> None:
    with nobody_reads() as writer:
        assert ended(program, "sessions", "show", talked, *more, stdout=writer) == (0, None, "")


CHECK = ["check", "--upstream", "demo", "--port", "0", "--store", "memory://"]
SERVE = ["serve", *CHECK[1:]]
ALL = pytest.mark.parametrize(
    "arguments",
    [["--help"], ["sessions", "--help"], ["version"], CHECK, ["demo"], SERVE],
    ids=" ".join,
)


@ALL
def test_whatever_prints_ends_well_where_nobody_reads_further(
    arguments: list[str], program: Program, tmp_path: Path
) -> None:
    with nobody_reads() as writer:
        status, _, errors = ended(program, *arguments, stdout=writer, cwd=tmp_path)
    assert (status, "Traceback" in errors) == (0, False), errors


@ALL
def test_whatever_prints_says_that_there_is_no_room_for_it(
    arguments: list[str], program: Program, tmp_path: Path
) -> None:
    with Path("/dev/full").open("wb") as full:
        status, _, errors = ended(program, *arguments, stdout=full, cwd=tmp_path)
    said = "memory-proxy: Reading or writing failed: No space left on device\n"
    assert (status, errors.endswith(said), "Traceback" in errors) == (1, True, False), errors


@LISTED
def test_output_that_has_no_room_is_said(
    more: list[str], program: Program, talked: str, tmp_path: Path
) -> None:
    with (tmp_path / "full").open("wb") as full:
        arguments = ["sessions", "show", talked, *more]
        found = ended(program, *arguments, by=[sys.executable, "-c", NO_ROOM], stdout=full)
    assert found == (1, None, "memory-proxy: Reading or writing failed: File too large\n")


@LISTED
def test_output_that_is_closed_is_said(more: list[str], program: Program, talked: str) -> None:
    by = ["sh", "-c", 'exec "$@" >&-', "sh", *COMMAND]
    found = ended(program, "sessions", "show", talked, *more, by=by)
    assert found == (1, "", "memory-proxy: Standard output is closed.\n")


def test_a_file_needs_no_output(program: Program, talked: str, tmp_path: Path) -> None:
    by = ["sh", "-c", 'exec "$@" >&-', "sh", *COMMAND]
    file = tmp_path / "talk.ndjson"
    found = ended(program, "sessions", "export", talked, "-o", str(file), by=by)
    assert found == (0, "", "")
    assert file.stat().st_size > 0


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_what_the_output_has_no_letter_for_is_written_as_its_number(
    encoding: str, program: Program, talked: str
) -> None:
    body = {"messages": [{"role": "user", "content": "Sun \N{BLACK SUN WITH RAYS}"}]}
    program.api("POST", f"/sessions/{talked}/messages", json=body)
    environ = {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    status, output, errors = ended(program, "sessions", "show", talked, environ=environ)
    assert (status, errors) == (0, "")
    assert output is not None
    assert "Sun \\u2600" in output


@contextmanager
def asked(program: Program, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], int, str]]:
    """A command that has asked: the process, its terminal, and what it told before."""
    terminal, stdin = pty.openpty()
    try:
        with started(program, *arguments, stdin=stdin) as process:
            assert process.stderr is not None
            told = ""
            while not told.endswith("[y/N]: "):
                piece = process.stderr.read(1)
                assert piece, told
                told += piece
            yield process, terminal, told
    finally:
        os.close(terminal)
        os.close(stdin)


def test_the_question_is_told_aside_and_the_output_is_the_receipt(
    program: Program, talked: str
) -> None:
    with asked(program, "sessions", "delete", talked, "--json") as (process, terminal, told):
        os.write(terminal, b"y\n")
        output, _ = process.communicate(timeout=PATIENCE)
    assert f"session {talked} has " in told
    assert process.returncode == 0
    assert json.loads(output)["deleted"] is True


def test_a_memory_is_shown_aside_before_it_goes(program: Program) -> None:
    added = program.api("POST", "/users/fay/memories", json={"text": "Fay fishes."}).json()
    with asked(program, "memories", "forget", "fay", added["id"], "--json") as (process, at, told):
        os.write(at, b"y\n")
        output, _ = process.communicate(timeout=PATIENCE)
    assert "Fay fishes." in told
    assert (process.returncode, len(output.splitlines())) == (0, 1)
    assert isinstance(json.loads(output), dict)


def test_no_does_nothing(program: Program, talked: str) -> None:
    with asked(program, "sessions", "delete", talked) as (process, terminal, _):
        os.write(terminal, b"n\n")
        output, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, output) == (1, "")
    assert errors.endswith("memory-proxy: Nothing was done.\n")
    assert program.api("GET", f"/sessions/{talked}").status_code == 200


STOPS = pytest.mark.parametrize(
    ("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)


@STOPS
def test_a_signal_at_the_question_ends_it(
    program: Program, talked: str, sent: signal.Signals, status: int
) -> None:
    with asked(program, "sessions", "delete", talked) as (process, _, _):
        process.send_signal(sent)
        output, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, output) == (status, "")
    assert "Traceback" not in errors
    assert program.api("GET", f"/sessions/{talked}").status_code == 200


@STOPS
def test_a_signal_in_the_midst_of_an_export_leaves_no_file(
    program: Program, tmp_path: Path, sent: signal.Signals, status: int
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        arguments = ["sessions", "export", "-o", str(tmp_path / "out"), "--url", url]
        with started(program, *arguments) as process:
            asking, _ = silent.accept()
            with asking:
                assert len(list(tmp_path.iterdir())) == 1
                process.send_signal(sent)
                _, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, list(tmp_path.iterdir())) == (status, [])
    assert "Traceback" not in errors
