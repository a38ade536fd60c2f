"""File descriptors are taken as allowed, and missed aloud."""

from __future__ import annotations

import logging
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from proxy.process.descriptors import MAX_LIMIT, RESERVE, SILENCE, Shortage, limit, raise_limit
from tests.support.processes.program import line, running
from tests.support.waiting import PATIENCE

HELLO = "tests.support.processes.hello"


@pytest.fixture
def low() -> Iterator[int]:
    """The limit of this process, and of those it starts, is lower than it could be."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, before[1]))
    yield before[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_the_limit_is_raised_to_what_is_allowed(low: int) -> None:
    assert limit() == 1024
    assert raise_limit() == limit() == min(low, MAX_LIMIT)
    assert raise_limit() == min(low, MAX_LIMIT), "and stays there"


def test_a_server_and_its_workers_have_the_raised_limit(low: int, tmp_path: Path) -> None:
    with running([HELLO, "server.workers=2"], tmp_path) as process:
        line(process, "http://")
        assert resource.prlimit(process.pid, resource.RLIMIT_NOFILE)[0] == min(low, MAX_LIMIT)
        assert f"descriptors={min(low, MAX_LIMIT)}" in errors(process.stderr, "listening")


def test_the_log_says_why_connections_fail(tmp_path: Path) -> None:
    with running([HELLO], tmp_path) as process, ExitStack() as idle:
        host, port = line(process, "http://").removeprefix("http://").split(":")
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (64, 64))
        for _ in range(100):
            idle.enter_context(socket.create_connection((host, int(port)), timeout=PATIENCE))
        said = errors(process.stderr, "EMFILE")
    assert "limit=64" in said


def test_it_is_said_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    now, most = 100.0, limit()
    assert most is not None
    shortage = Shortage(lambda: now)
    with caplog.at_level(logging.WARNING):
        shortage.taken(most - RESERVE - 1)
        assert not caplog.records
        for _ in range(3):
            shortage.taken(most - RESERVE)
        assert len(caplog.records) == 1
        now += SILENCE
        shortage.taken(most - 1)
        assert len(caplog.records) == 2


def test_the_limit_is_looked_up_once_in_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now, looks = 100.0, [64, 128]
    monkeypatch.setattr("proxy.process.descriptors.limit", lambda: looks.pop(0))
    shortage = Shortage(lambda: now)
    for _ in range(3):
        shortage.taken(1)
    assert looks == [128]
    now += SILENCE
    shortage.taken(1)
    assert looks == []


def errors(stream: object, containing: str) -> str:
    """The next line of a program's errors that contains this."""
    assert stream is not None
    for text in stream:  # type: ignore[attr-defined]
        if containing in text:
            return str(text)
    raise AssertionError(f"it ended without saying {containing!r}")
