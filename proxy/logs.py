"""Log lines, for people or as JSON.  Knows their format; must never be given message texts.

All lines use the formatters here, uvicorn's included.  Tracebacks have files, lines and exception
types, but no exception texts, which may quote a message or a key, except for OSError.  Other
libraries log from level "warning": some log headers below that.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
import traceback
from contextlib import nullcontext, suppress
from functools import lru_cache
from typing import Any, Literal, TextIO

import msgspec

Format = Literal["human", "json"]

ACCESS = logging.getLogger("proxy.access")
AUDIT = logging.getLogger("proxy.audit")

CLIENT_GONE = 499
"""The status in logs and metrics of a request whose client disconnected, as in nginx."""


class Access(msgspec.Struct, frozen=True, gc=False):
    """One answered request.  ``tenant``, ``session`` and ``user`` are hashes; see ``hashed``.

    ``path`` has no ids.  ``error`` is a code, ``upstream_ms`` the time to the upstream's first
    byte, ``upstream`` its name unless it is the default, ``by`` "admin" for the administrator,
    ``cause`` why the upstream failed.
    """

    request: str
    method: str
    route: str
    path: str
    status: int
    ms: float
    memory: str
    bytes: int
    error: str | None = None
    upstream_ms: float | None = None
    model: str | None = None
    upstream: str | None = None
    by: str | None = None
    tenant: str | None = None
    session: str | None = None
    user: str | None = None
    cause: str | None = None

    @property
    def level(self) -> int:
        return logging.INFO if self.cause is None else logging.WARNING


_REQUEST = logging.LogRecord(ACCESS.name, logging.INFO, "", 0, "request", None, None)


def access(line: Access) -> None:
    """Log an answered request.

    Called for each request, so the record is a copy of a template: making one looks up the caller,
    thread and process, which these lines do not have.
    """
    if ACCESS.isEnabledFor(line.level):
        record, now = logging.LogRecord.__new__(logging.LogRecord), time.time()
        values = msgspec.structs.asdict(line).items()
        fields = {name: value for name, value in values if value is not None}
        record.__dict__.update(
            _REQUEST.__dict__,
            created=now,
            msecs=int(now % 1 * 1e3),
            levelno=line.level,
            levelname=logging.getLevelName(line.level),
            fields=fields,
        )
        ACCESS.handle(record)


def audit(event: str, **fields: object) -> None:
    """Log an irreversible change of memory.  ``fields`` have hashed ids and no texts."""
    AUDIT.info(event, extra={"fields": fields})


def hashed(identifier: str) -> str:
    """A short hash, to correlate lines without revealing the id."""
    return hashlib.sha256(identifier.encode("utf-8", "surrogatepass")).hexdigest()[:12]


class ExpectedAbortFilter(logging.Filter):
    """Drops uvicorn's lines about answers that are cut off on purpose: because the upstream failed,
    or the proxy is shutting down, which are logged elsewhere."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        cut = "returned without completing response" in str(record.msg)
        return not (cut or isinstance(error, asyncio.CancelledError))


BUFFER_SECONDS = 0.05
BUFFER_BYTES = 4000
"""Limits on buffered access lines.  A write of up to 4096 bytes to a pipe is atomic, so lines of
several processes do not mix."""


class BufferingHandler(logging.StreamHandler[TextIO]):
    """Buffers access lines and writes several at once: each write releases the GIL and then waits
    for other threads.  Other lines are written at once, after the buffered ones."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._lines: list[str] = []
        self._size = 0
        self._timer_loop: asyncio.AbstractEventLoop | None = None
        """The event loop that has a timer to flush the buffer."""

    def emit(self, record: logging.LogRecord) -> None:
        loop = _running_loop() if record.name == ACCESS.name else None
        if loop is None:
            self.flush()
            return super().emit(record)
        line = self.format(record) + self.terminator
        if self._size + len(line) > BUFFER_BYTES:
            self.flush()
        if (
            self._timer_loop is not loop
        ):  # one timer at a time: many would write each line by itself
            self._timer_loop = loop
            loop.call_later(BUFFER_SECONDS, self._due)
        self._lines.append(line)
        self._size += len(line)

    def _due(self) -> None:
        self._timer_loop = None
        self.flush()

    def flush(self) -> None:
        """Write the buffered lines; also called at the end of the process."""
        # Errors are ignored: there is no other place to report them.
        with self.lock or nullcontext(), suppress(OSError, ValueError):
            lines, self._lines, self._size = self._lines, [], 0
            if lines:
                self.stream.write("".join(lines))
            super().flush()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def configuration(level: str, style: Format) -> dict[str, Any]:
    """The configuration for ``logging.config.dictConfig``, of values that can be pickled."""
    chosen = level.upper()
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"ours": {"()": f"{__name__}.{_formatter(style, level)}"}},
        "filters": {"unsurprising": {"()": f"{__name__}.ExpectedAbortFilter"}},
        "handlers": {
            "stderr": {
                "()": f"{__name__}.BufferingHandler",
                "formatter": "ours",
                "stream": "ext://sys.stderr",
            }
        },
        "root": {"level": "WARNING", "handlers": ["stderr"]},
        "loggers": {
            "proxy": {"level": chosen},
            "proxy.audit": {"level": "INFO"},
            "uvicorn": {"level": chosen},
            "uvicorn.error": {"filters": ["unsurprising"]},
            # Its warnings repeat what clients send.
            "mcp": {"level": "ERROR"},
        },
    }


def _formatter(style: Format, level: str) -> str:
    if style == "json":
        return "JsonFormatter"
    return "HumanFormatter" if level == "debug" else "FoldedFormatter"


class HumanFormatter(logging.Formatter):
    """``2026-01-31 12:00:00.123+0100 INFO    proxy.access request status=200 ms=3.1``"""

    def format(self, record: logging.LogRecord) -> str:
        moment, zone = _clock(int(record.created))
        head = f"{moment}.{int(record.msecs):03d}{zone} {record.levelname:<7} {_name(record)}"
        fields = [
            f"{name}={value:.1f}" if isinstance(value, float) else f"{name}={value}"
            for name, value in _fields(record).items()
        ]
        line = " ".join((head, _message(record), *fields))
        return "\n".join((line, *_trace(record))) if record.exc_info else line


class FoldedFormatter(HumanFormatter):
    """The same in one line, tracebacks included."""

    def format(self, record: logging.LogRecord) -> str:
        lines = super().format(record).splitlines()
        return " | ".join(map(str.strip, lines)) if len(lines) > 1 else lines[0].strip()


class JsonFormatter(logging.Formatter):
    """One JSON object a line; ``time`` is Unix seconds."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": round(record.created, 3),
            "level": record.levelname.lower(),
            "logger": _name(record),
            "event": _message(record),
            **_fields(record),
        }
        trace = _trace(record)
        if trace:
            line["trace"] = trace
        return json.dumps(line, default=str)


@lru_cache(maxsize=8)
def _clock(second: int) -> tuple[str, str]:
    """Local time and zone of a second, cached for lines within the same second."""
    then = time.localtime(second)
    return time.strftime("%Y-%m-%d %H:%M:%S", then), time.strftime("%z", then)


def _name(record: logging.LogRecord) -> str:
    # uvicorn says so in all its lines, errors or not.
    return "uvicorn" if record.name == "uvicorn.error" else record.name


def _message(record: logging.LogRecord) -> str:
    message = record.getMessage()
    # asyncio's messages continue with the repr of a task and its exception, which may have texts.
    return message.partition("\n")[0] if record.name == "asyncio" else message


def _fields(record: logging.LogRecord) -> dict[str, object]:
    fields = getattr(record, "fields", None)
    return fields if isinstance(fields, dict) else {}


def _trace(record: logging.LogRecord) -> list[str]:
    """The outermost exception last, as Python prints them, one line a frame."""
    exception = record.exc_info[1] if record.exc_info else None
    lines: list[str] = []
    seen: set[int] = set()
    while exception is not None and id(exception) not in seen:
        seen.add(id(exception))
        frames = traceback.extract_tb(exception.__traceback__)
        places = [f"  {frame.filename}:{frame.lineno} in {frame.name}" for frame in frames]
        lines[:0] = [*places, _type(exception)]
        exception = exception.__cause__ or exception.__context__
    return lines


def _type(exception: BaseException) -> str:
    name = f"{type(exception).__module__}.{type(exception).__qualname__}".removeprefix("builtins.")
    return f"{name}: {exception}" if isinstance(exception, OSError) else name
