"""What ``-o FILE`` writes to."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tests.commands.conftest import Run


def exported(run: Run, session: str, file: Path) -> bytes:
    """What the file must have; it is written."""
    result = run("sessions", "export", session, "-o", str(file))
    assert result.exit_code == 0, result.stderr
    return run("sessions", "export", session).stdout_bytes


def kinds(export: bytes) -> list[bytes]:
    return [row[:20] for row in export.splitlines()]


def test_a_pipe_is_written_to_and_stays_a_pipe(run: Run, talked: str, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    # Open for both, so that no opening waits; what is written stays in the pipe.
    end = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    try:
        expected = exported(run, talked, pipe)
        assert stat.S_ISFIFO(pipe.stat().st_mode)
        assert kinds(os.read(end, 1 << 16)) == kinds(expected)
    finally:
        os.close(end)


@pytest.mark.parametrize("before", [None, b"old"], ids=["new", "there"])
def test_a_link_stays_and_what_it_names_is_written(
    before: bytes | None, run: Run, talked: str, tmp_path: Path
) -> None:
    (tmp_path / "there").mkdir()
    file, link = tmp_path / "there" / "talk.ndjson", tmp_path / "link"
    link.symlink_to(file)
    if before is not None:
        file.write_bytes(before)
    expected = exported(run, talked, link)
    assert link.is_symlink()
    assert kinds(file.read_bytes()) == kinds(expected)


def test_a_directory_is_refused_before_anything_is_asked(run: Run, tmp_path: Path) -> None:
    result = run("sessions", "export", "no-such-session", "-o", str(tmp_path))
    assert (result.exit_code, list(tmp_path.iterdir())) == (2, [])
    assert "is a directory" in result.stderr


def test_what_may_not_be_written_is_said(run: Run, tmp_path: Path) -> None:
    result = run("sessions", "export", "-o", str(tmp_path / "none" / "talk.ndjson"))
    assert (result.exit_code, "Cannot write in" in result.stderr) == (2, True)
