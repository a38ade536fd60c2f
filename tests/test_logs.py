"""How log lines look, and that nothing which was said gets into them."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import re
import sys

import pytest

from proxy import logs
from proxy.logs import Access, ExpectedAbortFilter, Format, HumanFormatter, JsonFormatter, hashed
from tests.support.processes.program import ran
from tests.support.waiting import PATIENCE

LINE = Access(
    request="r1",
    method="POST",
    route="chat",
    path="/v1/chat/completions",
    status=200,
    ms=12.345,
    memory="applied",
    bytes=99,
)


def record(message: str, name: str = "proxy.x", **extra: object) -> logging.LogRecord:
    made = logging.LogRecord(name, logging.INFO, "file.py", 1, message, None, None)
    made.__dict__.update(extra)
    return made


def failure(error: BaseException, cause: BaseException | None = None) -> logging.LogRecord:
    """A record of an exception that was really raised."""
    made = record("it failed")
    try:
        raise error from cause
    except type(error):
        made.exc_info = sys.exc_info()
    return made


def said(level: str, form: Format, statements: str) -> list[str]:
    """What a process of ours writes to stderr: logging is configured for a whole process."""
    script = (
        "import logging, logging.config\n"
        "from proxy import logs\n"
        f"logging.config.dictConfig(logs.configuration({level!r}, {form!r}))\n"
        f"{statements}\n"
    )
    return ran(script).stderr.splitlines()


def test_a_request_is_one_json_line() -> None:
    (line,) = said("info", "json", f"logs.access(logs.{LINE!r})")
    told = json.loads(line)
    assert told.pop("time") > 1_700_000_000
    assert told == {
        "level": "info",
        "logger": "proxy.access",
        "event": "request",
        "request": "r1",
        "method": "POST",
        "route": "chat",
        "path": "/v1/chat/completions",
        "status": 200,
        "ms": 12.345,
        "memory": "applied",
        "bytes": 99,
    }


class Writes(io.StringIO):
    """Notes what is written at once."""

    def __init__(self) -> None:
        super().__init__()
        self.all: list[str] = []

    def write(self, text: str) -> int:
        self.all.append(text)
        return len(text)


def record_of(logger: str, text: str) -> logging.LogRecord:
    return logging.LogRecord(logger, logging.INFO, "", 0, text, None, None)


async def test_lines_of_requests_are_written_together_and_before_what_comes_later() -> None:
    stream = Writes()
    handler = logs.BufferingHandler(stream)
    for text in ("one", "two"):
        handler.handle(record_of("proxy.access", text))
    assert stream.all == []
    async with asyncio.timeout(PATIENCE):
        while not stream.all:
            await asyncio.sleep(logs.BUFFER_SECONDS / 5)
    assert stream.all == ["one\ntwo\n"]
    handler.handle(record_of("proxy.access", "three"))
    handler.handle(record_of("proxy.memory", "four"))
    assert stream.all[1:] == ["three\n", "four\n"]
    handler.handle(record_of("proxy.access", "five"))
    handler.flush()
    assert stream.all[3:] == ["five\n"]


async def test_no_more_lines_gather_than_a_pipe_takes_at_once() -> None:
    stream = Writes()
    handler = logs.BufferingHandler(stream)
    for _ in range(9):
        handler.handle(record_of("proxy.access", "x" * 999))
    assert stream.all == [("x" * 999 + "\n") * 4] * 2


async def test_lines_that_gather_wait_for_one_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    timers: list[object] = []
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "call_later", lambda *timer: timers.append(timer))
    handler = logs.BufferingHandler(Writes())
    for _ in range(9):
        handler.handle(record_of("proxy.access", "x" * 999))
    assert len(timers) == 1


async def test_a_stream_that_nobody_reads_any_more_stops_nobody() -> None:
    stream = io.StringIO()
    handler = logs.BufferingHandler(stream)
    handler.handle(record_of("proxy.access", "one"))
    stream.close()
    handler.flush()


def test_a_request_is_one_line_for_people() -> None:
    (line,) = said("info", "human", f"logs.access(logs.{LINE!r})")
    assert line.endswith(
        " INFO    proxy.access request request=r1 method=POST route=chat"
        " path=/v1/chat/completions status=200 ms=12.3 memory=applied bytes=99"
    )


def test_times_for_people_have_their_zone() -> None:
    (line,) = said("info", "human", f"logs.access(logs.{LINE!r})")
    assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}[+-]\d{4} INFO ", line)


FAILS = (
    "try:\n    int('x')\nexcept ValueError:\n    logging.getLogger('proxy.x').exception('a\\nb')"
)


def test_a_failure_is_one_line_for_people_with_all_of_its_trace() -> None:
    (line,) = said("info", "human", FAILS)
    assert re.search(r" ERROR +proxy\.x a \| b \| \S+:\d+ in <module> \| ValueError$", line)


def test_at_debug_a_trace_has_its_lines() -> None:
    assert len(said("debug", "human", FAILS)) == 4


def test_what_was_done_for_good_is_logged_above_info_too() -> None:
    (line,) = said("error", "json", "logs.audit('erased', by='admin', messages=3)")
    told = json.loads(line)
    assert (told["logger"], told["event"]) == ("proxy.audit", "erased")
    assert (told["by"], told["messages"]) == ("admin", 3)


def test_requests_are_not_logged_above_info() -> None:
    statements = f"logs.access(logs.{LINE!r})\nlogging.getLogger('proxy.x').warning('seen')"
    (line,) = said("warning", "human", statements)
    assert line.endswith("proxy.x seen")


def test_the_server_looks_the_same_and_other_libraries_are_heard_from_warning_on() -> None:
    lines = said(
        "debug",
        "json",
        "logging.getLogger('uvicorn.error').info('started %d', 7)\n"
        "logging.getLogger('httpcore.http11').debug('Authorization: Bearer sk-1')\n"
        "logging.getLogger('httpx').info('GET https://a/?key=1')\n"
        "logging.getLogger('redis').warning('gone')",
    )
    told = [json.loads(line) for line in lines]
    assert [line["event"] for line in told] == ["started 7", "gone"]
    assert told[0]["logger"] == "uvicorn"


@pytest.mark.parametrize(
    "formatter",
    [pytest.param(HumanFormatter(), id="human"), pytest.param(JsonFormatter(), id="json")],
)
def test_a_traceback_says_where_and_what_kind_but_not_what_was_said(
    formatter: logging.Formatter,
) -> None:
    text = formatter.format(failure(ValueError("dear diary"), KeyError("dear cause")))
    assert "dear" not in text
    assert "in failure" in text
    assert text.index("KeyError") < text.index("ValueError")


def test_operating_system_errors_keep_their_texts() -> None:
    text = HumanFormatter().format(failure(FileNotFoundError(2, "No such file", "/data/x.db")))
    assert "FileNotFoundError: [Errno 2] No such file: '/data/x.db'" in text


def test_asyncio_lines_lose_the_repr_of_what_failed() -> None:
    line = record("Task exception was never retrieved\nfuture: <Task 'dear diary'>", "asyncio")
    assert HumanFormatter().format(line).endswith("asyncio Task exception was never retrieved")


def test_exceptions_that_cause_each_other_end() -> None:
    first, second = ValueError(), KeyError()
    first.__cause__, second.__cause__ = second, first
    assert HumanFormatter().format(failure(first, second)).count("ValueError") == 1


def test_a_hash_is_short_steady_and_survives_any_text() -> None:
    assert hashed("kai") == hashed("kai") != hashed("kaj")
    assert len(hashed("\ud83d")) == 12


def test_answers_broken_off_on_purpose_are_not_the_servers_errors() -> None:
    leaves = ExpectedAbortFilter().filter
    assert not leaves(
        record("ASGI callable returned without completing response.", "uvicorn.error")
    )
    assert not leaves(failure(asyncio.CancelledError()))
    assert leaves(record("Application startup failed. Exiting.", "uvicorn.error"))
    assert leaves(failure(ValueError()))
