"""What /metrics says, and what it never says.  The sum over workers: tests/test_server.py."""

from __future__ import annotations

import os
import re
import shutil
import time
from pathlib import Path
from typing import get_args

import pytest
from prometheus_client.metrics_core import CounterMetricFamily
from prometheus_client.parser import text_string_to_metric_families

from proxy.telemetry import FOLDER, Failing, ProcessMetrics, Telemetry
from tests.support.processes.program import ran


def samples(telemetry: Telemetry) -> dict[str, float]:
    """Sample names with their labels, and values."""
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(telemetry.render().decode()):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


def test_all_that_has_no_labels_is_there_from_the_start() -> None:
    found = samples(Telemetry())
    for name in (
        "memory_lost_total",
        "memory_quarantined_total",
        "memory_injected_tokens_total",
        "memory_upstream_cached_tokens_total",
        "memory_open_streams",
        "memory_spool_depth",
        "memory_load_seconds_count",
        "memory_commit_seconds_count",
        "memory_upstream_first_byte_seconds_count",
        "memory_background_call_seconds_count",
        "memory_extraction_empty_total",
    ):
        assert found[name] == 0


def test_answers_are_counted_by_route_status_and_what_memory_did() -> None:
    telemetry = Telemetry()
    for _ in range(3):
        telemetry.count_request("chat", 200, "applied")
    telemetry.count_request("chat", 502, "degraded")
    telemetry.count_request("relay", 200, "none")
    found = samples(telemetry)
    assert found["memory_requests_total{memory=applied,route=chat,status=200}"] == 3
    assert found["memory_requests_total{memory=degraded,route=chat,status=502}"] == 1
    assert found["memory_requests_total{memory=none,route=relay,status=200}"] == 1


def test_commits_are_counted_by_what_became_of_them() -> None:
    telemetry = Telemetry()
    for outcome in ("recorded", "recorded", "stale", "outrun", "spooled"):
        telemetry.count_commit(outcome)
    found = samples(telemetry)
    assert found["memory_commits_total{outcome=recorded}"] == 2
    assert found["memory_commits_total{outcome=stale}"] == 1
    assert found["memory_commits_total{outcome=outrun}"] == 1


def test_amounts_and_durations_add_up() -> None:
    telemetry = Telemetry()
    telemetry.count_injected_tokens(120)
    telemetry.count_injected_tokens(3)
    telemetry.count_cached_tokens(1000)
    telemetry.count_cache_writes(30)
    telemetry.count_lost()
    telemetry.count_quarantined()
    telemetry.observe_load(0.002)
    telemetry.observe_commit(0.2)
    telemetry.observe_first_byte(2)
    found = samples(telemetry)
    assert found["memory_injected_tokens_total"] == 123
    assert found["memory_upstream_cached_tokens_total"] == 1000
    assert found["memory_upstream_cache_write_tokens_total"] == 30
    assert (found["memory_lost_total"], found["memory_quarantined_total"]) == (1, 1)
    assert found["memory_load_seconds_bucket{le=0.001}"] == 0
    assert found["memory_load_seconds_bucket{le=0.0025}"] == 1
    assert found["memory_commit_seconds_sum"] == pytest.approx(0.2)
    assert found["memory_upstream_first_byte_seconds_bucket{le=1.0}"] == 0
    assert found["memory_upstream_first_byte_seconds_bucket{le=2.5}"] == 1


def test_the_work_of_the_background_is_counted_by_what_it_is_for() -> None:
    telemetry = Telemetry()
    telemetry.count_completion("summary", "done", 0.7, 1200, 90)
    telemetry.count_completion("summary", "done", 0.2, 300, 10)
    telemetry.count_completion("facts", "failed", 20, 0, 0)
    telemetry.count_work("learning", "put_off")
    telemetry.count_empty_learning()
    found = samples(telemetry)
    assert found["memory_background_calls_total{feature=summary,outcome=done}"] == 2
    assert found["memory_background_calls_total{feature=facts,outcome=failed}"] == 1
    assert found["memory_background_input_tokens_total{feature=summary}"] == 1500
    assert found["memory_background_output_tokens_total{feature=summary}"] == 100
    assert found["memory_background_call_seconds_count"] == 3
    assert found["memory_background_jobs_total{kind=learning,outcome=put_off}"] == 1
    assert found["memory_extraction_empty_total"] == 1


def test_streams_and_the_spool_are_as_deep_as_they_are_now() -> None:
    telemetry = Telemetry()
    telemetry.stream_opened()
    telemetry.stream_opened()
    telemetry.stream_closed()
    telemetry.set_spool_depth(7)
    telemetry.set_spool_depth(4)
    found = samples(telemetry)
    assert (found["memory_open_streams"], found["memory_spool_depth"]) == (1, 4)


def test_two_of_them_in_a_process_know_nothing_of_each_other() -> None:
    one, other = Telemetry(), Telemetry()
    one.count_lost()
    assert samples(one)["memory_lost_total"] == 1
    assert samples(other)["memory_lost_total"] == 0


def test_no_label_can_hold_a_tenant_a_user_or_a_session() -> None:
    telemetry = Telemetry()
    telemetry.count_request("chat", 200, "applied")
    telemetry.count_commit("recorded")
    telemetry.count_completion("summary", "done", 0.7, 1200, 90)
    telemetry.count_work("summary", "finished")
    labels = set(re.findall(r'(\w+)="', telemetry.render().decode()))
    release = {"version", "python"}
    assert labels == {"route", "status", "memory", "outcome", "feature", "kind", "le", *release}


def test_the_release_and_the_process_are_told() -> None:
    found = samples(Telemetry())
    assert [value for name, value in found.items() if name.startswith("memory_build_info{")] == [1]
    assert found["process_open_fds"] < found["process_max_fds"]
    assert 0 < found["process_start_time_seconds"] < time.time()
    assert found["process_resident_memory_bytes"] > 1_000_000


def test_several_processes_are_told_as_their_sum_and_one_that_has_ended_is_left_out() -> None:
    one = {metric.name: metric for metric in ProcessMetrics(lambda: ["self"]).collect()}
    two = {
        metric.name: metric for metric in ProcessMetrics(lambda: ["self", "self", "0"]).collect()
    }
    assert two.keys() == one.keys()
    for name, times in (("process_max_fds", 2), ("process_start_time_seconds", 1)):
        (sample,) = two[name].samples
        assert sample.value == one[name].samples[0].value * times


def test_a_sum_does_not_fall_by_its_last_bit_when_it_is_of_others() -> None:
    def told(*seconds: float) -> float:
        name = "process_cpu_seconds_total"
        found = ProcessMetrics(
            tuple, lambda: [CounterMetricFamily(name, "", value=s) for s in seconds]
        )
        return next(metric.samples[0].value for metric in found.collect() if metric.name in name)

    assert told(0.1, 0.2) == told(0.3) == 0.3


@pytest.mark.parametrize("kind", get_args(Failing))
def test_failures_of_upstreams_are_counted_by_kind(kind: Failing) -> None:
    telemetry = Telemetry()
    before = samples(telemetry)[f"memory_upstream_errors_total{{kind={kind}}}"]
    telemetry.count_upstream_failure(kind)
    assert (before, samples(telemetry)[f"memory_upstream_errors_total{{kind={kind}}}"]) == (0, 1)


def test_the_open_streams_of_a_killed_worker_are_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    dead, counted = tmp_path / "gauge_livesum_999999999.db", tmp_path / "counter_999999999.db"
    alive = tmp_path / f"gauge_livesum_{os.getpid()}.db"
    for file in (dead, counted, alive):
        file.write_bytes(b"\0" * 8)
    Telemetry().render()
    assert not dead.exists()
    assert counted.exists()
    assert alive.exists()


def test_what_a_worker_counts_into_has_its_blocks_before_it_is_mapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    ran("from proxy.telemetry import Telemetry\nTelemetry()")
    files = sorted(file.name.rpartition("_")[0] for file in tmp_path.iterdir())
    assert files == ["counter", "gauge_livemostrecent", "gauge_livesum", "histogram"]
    for file in tmp_path.iterdir():
        found = file.stat()
        assert found.st_blocks * 512 >= found.st_size


def test_a_worker_that_has_ended_keeps_no_more_room_than_it_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    for _ in range(3):
        ran("from proxy.telemetry import Telemetry\nTelemetry().count_lost()")
    assert samples(Telemetry())["memory_lost_total"] == 3
    others = [file for file in tmp_path.iterdir() if not file.stem.endswith(f"_{os.getpid()}")]
    assert len(others) == 6
    assert sum(file.stat().st_size for file in others) < 100_000


def test_a_folder_that_was_tidied_away_leaves_each_worker_its_own_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path / "folder"))
    (tmp_path / "folder").mkdir()
    telemetry = Telemetry()
    telemetry.count_lost()
    shutil.rmtree(tmp_path / "folder")
    assert samples(telemetry)["memory_lost_total"] == 1


def test_a_worker_that_is_just_opening_its_files_spoils_no_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    (tmp_path / f"counter_{os.getpid()}.db").touch()
    assert b"memory_build_info" in Telemetry().render()


def test_what_others_keep_in_the_folder_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    theirs = {
        "app.db": b"x",
        "shard_999999999.db": b"SQLite format 3",
        "gauge_max_999999999.db": b"\x08\0\0\0" + bytes(60),
        "counter_999999999999999999999.db": b"\x08\0\0\0" + bytes(60),
        "counter_999999998.db": b"SQLite format 3",
        "histogram_999999998.db": b"\xff\xff\xff\xff" + bytes(60),
        "gauge_livesum_999999998.db": b"x",
    }
    for name, content in theirs.items():
        (tmp_path / name).write_bytes(content)
    ran("from proxy.telemetry import Telemetry\nTelemetry().count_lost()")
    assert samples(Telemetry())["memory_lost_total"] == 1
    assert {name: (tmp_path / name).read_bytes() for name in theirs} == theirs
