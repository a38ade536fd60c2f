"""Metrics in Prometheus' format.  Knows counts and durations; must not know whose they are.

No label ever holds a tenant, a user, a session or a model: labels come from closed sets.  Several
workers write their numbers into files of one folder, and each answers /metrics with the sum.
prometheus_client does so if ``PROMETHEUS_MULTIPROC_DIR`` is set before it is imported, so workers
are spawned and not forked.  A worker whose files cannot be created reports its own numbers only.
"""

from __future__ import annotations

import logging
import os
import platform
import re
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from itertools import chain, product
from math import fsum
from pathlib import Path
from typing import Literal, get_args

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Metric,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
    values,
)
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from proxy import __version__

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Route = Literal["chat", "relay", "memory", "mcp", "health", "other"]

Failing = Literal["unreachable", "timeout", "broken", "saturated", "rate_limited", "server_error"]
"""Failures of an upstream: no answer, timeout, cut off, no free connection, 429, 5xx."""

Outcome = Literal["answered", "unlisted"] | Failing
"""Result of a request to one of several upstreams; "unlisted": left out of the list of models."""

_STORE_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_UPSTREAM_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

_FILE_BYTES = {
    "counter": 1 << 20,
    "histogram": 1 << 16,
    "gauge_livesum": 1 << 16,
    "gauge_livemostrecent": 1 << 16,
}
"""Bytes of a worker's files; the counters suffice for some hundred upstreams."""

_NAME = re.compile(rf"({'|'.join(_FILE_BYTES)})_[0-9]{{1,9}}[.]db")

_LOG = logging.getLogger("proxy.server")


class Telemetry:
    """All metrics of a process, in a registry of their own."""

    def __init__(self) -> None:
        # A time stamp beside every counter would double /metrics.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._folder = _usable_folder(os.environ.get(FOLDER))
        self._registry = CollectorRegistry()
        self._registry.register(ProcessMetrics(lambda: ("self",)))
        self._of_upstreams: dict[tuple[str, str], Callable[[], None]] = {}
        self._make_counters()
        self._make_background_counters()
        self._make_histograms()
        self._make_gauges()

    def _make_counters(self) -> None:
        requests = self._counter(
            "memory_requests", "Answered requests.", "route", "status", "memory"
        )
        self._answers = cache(lambda *labels: requests.labels(*labels).inc)
        commits = self._counter(
            "memory_commits",
            "Exchanges handed to the store, by what became of them (recorded, duplicate, "
            "stale, outrun, foreign, erased, spooled).",
            "outcome",
        )
        self._outcomes = cache(lambda outcome: commits.labels(outcome).inc)
        self._injected = self._counter("memory_injected_tokens", "Tokens that memory added.")
        self._cached = self._counter(
            "memory_upstream_cached_tokens", "Prompt tokens that upstreams say they had cached."
        )
        self._cache_writes = self._counter(
            "memory_upstream_cache_write_tokens",
            "Prompt tokens that upstreams say they wrote to their cache.",
        )
        errors = self._counter("memory_upstream_errors", "Failures of upstreams, by kind.", "kind")
        self._upstream_errors = {kind: errors.labels(kind).inc for kind in get_args(Failing)}
        self._passages = self._counter("memory_recalled", "Older passages put into prompts.")
        self.count_indexed: Callable[[int], None] = self._counter(
            "memory_indexed", "Messages indexed for recall."
        ).inc
        self.count_lost: Callable[[], None] = self._counter(
            "memory_lost", "Exchanges that neither the store nor the spool could take."
        ).inc
        self.count_failing_session: Callable[[], None] = self._counter(
            "memory_session_failures",
            "Requests without memory because of their own session: too long, or damaged.",
        ).inc
        self.count_quarantined: Callable[[], None] = self._counter(
            "memory_quarantined", "Spooled exchanges that cannot be replayed and are kept."
        ).inc

    def _make_background_counters(self) -> None:
        self._calls = self._counter(
            "memory_background_calls",
            "Requests to models that write memory, by what came of them (done, refused, failed).",
            "feature",
            "outcome",
        )
        self._read = self._counter(
            "memory_background_input_tokens", "Tokens that these models read.", "feature"
        )
        self._written = self._counter(
            "memory_background_output_tokens", "Tokens that these models wrote.", "feature"
        )
        self._jobs = self._counter(
            "memory_background_jobs",
            "Work in the background, by what became of it (finished, refused, failed, put_off, "
            "lost).",
            "kind",
            "outcome",
        )
        self.count_empty_learning: Callable[[], None] = self._counter(
            "memory_extraction_empty", "Times that nothing was learned from what held something."
        ).inc
        self._skipped = self._counter(
            "memory_lessons_skipped",
            "Lessons left unlearned: refused by the model, or answered uselessly.",
            "feature",
        )

    def _make_histograms(self) -> None:
        self.observe_load = self._histogram(
            "memory_load_seconds", "Time to load a session's snapshot.", _STORE_SECONDS
        )
        self.observe_commit = self._histogram(
            "memory_commit_seconds", "Time to make an exchange durable.", _STORE_SECONDS
        )
        self._recall = self._histogram(
            "memory_recall_seconds", "Time to find what is recalled.", _STORE_SECONDS
        )
        self.observe_first_byte = self._histogram(
            "memory_upstream_first_byte_seconds",
            "Time from calling the upstream to the first byte of its body.",
            _UPSTREAM_SECONDS,
        )
        self._call_seconds = self._histogram(
            "memory_background_call_seconds",
            "Time of a request to a model that writes memory.",
            _UPSTREAM_SECONDS,
        )

    def _make_gauges(self) -> None:
        streams = self._gauge("memory_open_streams", "Answers being relayed now.", "livesum")
        self.stream_opened: Callable[[], None] = streams.inc
        self.stream_closed: Callable[[], None] = streams.dec
        # The workers of a host share one spool: its depth is what the last one saw, not a sum.
        self.set_spool_depth: Callable[[float], None] = self._gauge(
            "memory_spool_depth", "Exchanges waiting in the spool for the store."
        ).set
        self.set_store_up: Callable[[float], None] = self._gauge(
            "memory_store_up", "Whether the store answered when this was asked for: 1 or 0."
        ).set
        self.set_tasks: Callable[[float], None] = self._gauge(
            "memory_tasks", "Tasks of the event loop in the process that was asked."
        ).set

    def count_request(self, route: Route, status: int, memory: str) -> None:
        """``memory`` is the answer's X-Memory-Status, "none" for requests without a session."""
        self._answers(route, status, memory)()

    def count_commit(self, outcome: str) -> None:
        """Count a commit; ``outcome`` is an ``Outcome`` of the store or "spooled"."""
        self._outcomes(outcome)()

    def count_injected_tokens(self, tokens: int) -> None:
        if tokens:
            self._injected.inc(tokens)

    def observe_recall(self, seconds: float, passages: int) -> None:
        self._recall(seconds)
        if passages:
            self._passages.inc(passages)

    def count_cached_tokens(self, tokens: int) -> None:
        if tokens:
            self._cached.inc(tokens)

    def count_cache_writes(self, tokens: int) -> None:
        if tokens:
            self._cache_writes.inc(tokens)

    def count_upstream_failure(self, kind: Failing) -> None:
        self._upstream_errors[kind]()

    def label_upstreams(self, upstreams: Iterable[str]) -> None:
        """Count the answers of each of these upstreams separately."""
        counter = self._counter(
            "memory_upstream_requests",
            "Requests to each of several upstreams, by what came of them (answered, a kind of "
            "failure, or unlisted: left out of the list of models).",
            "upstream",
            "outcome",
        )
        outcomes = [outcome for kinds in get_args(Outcome) for outcome in get_args(kinds)]
        pairs = product(upstreams, outcomes)
        self._of_upstreams = {pair: counter.labels(*pair).inc for pair in pairs}

    def count_upstream_request(self, upstream: str, outcome: Outcome) -> None:
        """Count a request to one of several upstreams."""
        self._of_upstreams[upstream, outcome]()

    def count_completion(
        self, feature: str, outcome: str, seconds: float, input_tokens: int, output_tokens: int
    ) -> None:
        """Count a background request to a model; ``outcome`` is "done", "refused" or "failed"."""
        self._calls.labels(feature, outcome).inc()
        self._call_seconds(seconds)
        self._read.labels(feature).inc(input_tokens)
        self._written.labels(feature).inc(output_tokens)

    def count_work(self, kind: str, outcome: str) -> None:
        """Count a piece of background work."""
        self._jobs.labels(kind, outcome).inc()

    def count_skipped(self, feature: str) -> None:
        """Count a batch that was skipped, as the model refused it or no answer was usable."""
        self._skipped.labels(feature).inc()

    def render(self) -> bytes:
        """The text of /metrics: of this process, or the sum over the workers."""
        folder = self._folder
        if folder is None or not folder.is_dir():  # or it was tidied away
            return generate_latest(self._registry)
        _remove_dead_gauges(folder)
        summed = CollectorRegistry()
        WorkerMetrics(summed, path=str(folder))  # type: ignore[no-untyped-call]
        workers = [_process_of(file) for file in _worker_files(folder, "gauge_livesum_*.db")]
        summed.register(ProcessMetrics(lambda: workers, _dead_workers_cpu))
        return generate_latest(summed)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(name, text, labels, registry=self._registry)

    def _gauge(
        self, name: str, text: str, over: Literal["livesum", "livemostrecent"] = "livemostrecent"
    ) -> Gauge:
        """``over``: how the workers' numbers become one."""
        return Gauge(name, text, registry=self._registry, multiprocess_mode=over)

    def _histogram(
        self, name: str, text: str, buckets: tuple[float, ...]
    ) -> Callable[[float], None]:
        return Histogram(name, text, registry=self._registry, buckets=buckets).observe


class WorkerMetrics(MultiProcessCollector):
    """The sum over the workers, except one that is just creating its file: that is still empty, and
    reading it would fail."""

    def collect(self) -> Iterable[Metric]:
        files = [str(file) for file in _worker_files(Path(self._path)) if _is_readable(file)]
        metrics: Iterable[Metric] = self.merge(files, accumulate=True)  # type: ignore[no-untyped-call]
        return metrics


class ProcessMetrics(Collector):
    """The release, and the operating system's figures of the processes: CPU, memory, open files.

    They are sums, of limits too; the start time is the earliest.  ``more`` returns further metrics
    of the same names.  Without /proc only the release is reported.
    """

    def __init__(
        self, processes: Callable[[], Iterable[str]], more: Callable[[], Iterable[Metric]] = tuple
    ) -> None:
        self._processes, self._more = processes, more

    def collect(self) -> Iterator[Metric]:
        build = GaugeMetricFamily("memory_build_info", "Always 1.", labels=("version", "python"))
        build.add_metric((__version__, platform.python_version()), 1)
        yield build
        found: dict[str, Metric] = {}
        for metric in chain(*map(_process_metrics, self._processes()), self._more()):
            if metric.name in found:
                found[metric.name].samples += metric.samples
            else:
                found[metric.name] = metric
        for metric in found.values():
            together = min if metric.name == "process_start_time_seconds" else fsum
            # Rounded: the last bit would fall where the same seconds are of other processes.
            value = round(together(sample.value for sample in metric.samples), 6)
            metric.samples = [metric.samples[0]._replace(value=value)]
            yield metric


def _process_metrics(process: str) -> Iterable[Metric]:
    try:
        return ProcessCollector(pid=lambda: process, registry=None).collect()
    except (OSError, ValueError):  # it has just ended, or has no limit
        return ()


def _dead_workers_cpu() -> Iterable[Metric]:
    """CPU time of ended workers, which the system adds to their parent: without it the sum would
    fall."""
    with suppress(OSError):
        stat = Path(f"/proc/{os.getppid()}/stat").read_bytes().rpartition(b")")[2].split()
        seconds = (int(stat[13]) + int(stat[14])) / os.sysconf("SC_CLK_TCK")
        return (CounterMetricFamily("process_cpu_seconds_total", "", value=seconds),)
    return ()


def _usable_folder(path: str | None) -> Path | None:
    """The folder that all workers share, with this worker's files created; None if the disk is
    full.

    They are filled with zeros before they are mapped: a write into a hole of a mapped file ends the
    process with a signal if the disk is full.
    """
    if path is None:
        return None
    folder = Path(path)
    files = {folder / f"{kind}_{os.getpid()}.db": room for kind, room in _FILE_BYTES.items()}
    try:
        _remove_dead_gauges(folder)
        for file, room in files.items():
            _preallocate(file, room)
    except OSError as error:
        _count_alone(files, error)
        return None
    return folder


def _preallocate(file: Path, room: int) -> None:
    with file.open("ab") as opened:
        opened.write(bytes(max(0, room - opened.tell())))


def _count_alone(files: Iterable[Path], error: OSError) -> None:
    _LOG.warning(
        "no room for this worker's metrics (%s): it tells its own, and no sum has them",
        error.strerror,
        extra={"fields": {"process": os.getpid()}},
    )
    values.ValueClass = values.MutexValue
    for file in files:
        with suppress(OSError):
            file.unlink()


def _remove_dead_gauges(folder: Path) -> None:
    """Remove the gauges of dead workers, such as open streams; their counters stay."""
    for file in _worker_files(folder):
        if not _alive(int(_process_of(file))):
            with suppress(OSError):  # another was faster, or may do so alone
                _remove_gauges(file)


def _remove_gauges(file: Path) -> None:
    """Remove a dead worker's gauges, and cut its other files to the bytes in use: a worker that
    dies again and again leaves many, most of them empty."""
    used = _used_bytes(file)
    if used is None:
        return
    if file.name.startswith("gauge"):
        file.unlink()
    else:
        os.truncate(file, used)


def _is_readable(file: Path) -> bool:
    with suppress(OSError):  # of a worker that another has just forgotten
        return bool(_used_bytes(file))
    return False


def _used_bytes(file: Path) -> int | None:
    """The number of bytes in use, from the file's header; None if no worker wrote it."""
    with file.open("rb") as opened:
        head = opened.read(4).ljust(4, b"\0")
        size = os.fstat(opened.fileno()).st_size
    used = int(struct.unpack("i", head)[0])
    return used if 0 <= used <= size else None


def _worker_files(folder: Path, like: str = "*.db") -> list[Path]:
    """The workers' files: there may be others in the folder."""
    return [file for file in folder.glob(like) if _NAME.fullmatch(file.name)]


def _process_of(file: Path) -> str:
    """The id of the worker whose file it is."""
    return file.stem.rpartition("_")[2]


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
