"""The server as a process: one worker and several, the end of both, and what can go wrong."""

from __future__ import annotations

import multiprocessing
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
import psutil
import pytest
import uvicorn
from uvicorn.supervisors.multiprocess import Process

from proxy.server import HttpProtocolFactory, ServerError, _Workers, address_of, listen
from proxy.settings import ServerSettings
from tests.support.processes.program import line, ran, running
from tests.support.store.files import files_of_at_most
from tests.support.waiting import PATIENCE

HELLO = "tests.support.processes.hello"
WORKERS = pytest.mark.parametrize(
    "workers", [pytest.param(1, id="one-worker"), pytest.param(2, id="two-workers")]
)


def pids(address: str, wanted: int) -> list[str]:
    """The workers that answered, one connection each, until so many different ones have."""
    seen: list[str] = []
    deadline = time.monotonic() + PATIENCE
    while len(set(seen)) < wanted and time.monotonic() < deadline:
        seen.append(httpx.get(f"{address}/", timeout=PATIENCE, trust_env=False).text)
    return seen


def stopped_listening(address: str) -> bool:
    host, port = address.removeprefix("http://").split(":")
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
        except ConnectionRefusedError:
            return True
        except OSError:
            continue
    return False


@WORKERS
def test_metrics_are_the_sum_over_the_workers_and_their_folder_does_not_stay(
    workers: int, tmp_path: Path
) -> None:
    environ = {"TMPDIR": str(tmp_path)}
    with running([HELLO, f"server.workers={workers}"], tmp_path, environ) as process:
        address = line(process, "http://")
        seen = pids(address, workers)
        text = httpx.get(f"{address}/metrics", timeout=PATIENCE, trust_env=False).text
        process.terminate()
        assert process.wait(PATIENCE) == 0
    assert len(set(seen)) == workers
    counted = re.findall(r"^memory_requests_total\{.*\} (\d+)", text, re.MULTILINE)
    assert [int(count) for count in counted] == [len(seen)]
    assert "memory_lost_total 0.0" in text
    assert text.count("\nmemory_build_info{") == 1
    (resident,) = re.findall(r"^process_resident_memory_bytes (\S+)", text, re.MULTILINE)
    assert float(resident) > workers * 10_000_000
    assert not list(tmp_path.glob("memory-proxy-*"))


@pytest.mark.skipif(sys.platform != "linux", reason="only its /proc tells")
def test_the_time_that_workers_spent_does_not_fall_when_one_dies(tmp_path: Path) -> None:
    def spent() -> float:
        text = httpx.get(f"{address}/metrics", timeout=PATIENCE, trust_env=False).text
        (seconds,) = re.findall(r"^process_cpu_seconds_total (\S+)", text, re.MULTILINE)
        return float(seconds)

    with running([HELLO, "server.workers=2"], tmp_path) as process:
        address = line(process, "http://")
        dead = psutil.Process(int(pids(address, 2)[0]))
        told = [spent()]
        dead.kill()
        dead.wait(PATIENCE)
        told.extend(spent() for _ in range(10))
        pids(address, 2)
        told.append(spent())
    assert told == sorted(told)


def replaced(address: str, known: set[str]) -> str:
    """The worker that serves in the place of one of those."""
    deadline = time.monotonic() + PATIENCE
    while (pid := pids(address, 1)[0]) in known:
        assert time.monotonic() < deadline
    return pid


def test_a_worker_that_is_slow_keeps_its_streams_and_holds_up_no_replacement(
    tmp_path: Path,
) -> None:
    with running([HELLO, "server.workers=2"], tmp_path) as process:
        address = line(process, "http://")
        slow, dead = set(pids(address, 2))
        psutil.Process(int(slow)).suspend()  # as one that has no processor, or reads what is large
        known = {slow, dead}
        for _ in range(2):  # so that the supervisor has seen to both of them
            psutil.Process(int(dead)).kill()
            dead = replaced(address, known)
            known.add(dead)
        psutil.Process(int(slow)).resume()
        assert slow in pids(address, 2)


@pytest.fixture
def signals() -> Iterator[None]:
    """What a supervisor changes."""
    before = {number: signal.getsignal(number) for number in signal.valid_signals()}
    yield
    for number, handler in before.items():
        if signal.getsignal(number) is not handler:
            signal.signal(number, handler)


@pytest.mark.usefixtures("signals")
def test_what_a_slow_worker_answers_late_counts_once() -> None:
    """Else one that hung later would be taken for alive, and the pipe to it fill up."""
    config = uvicorn.Config(HELLO)
    supervisor = _Workers(config, [])
    worker = Process(config, [])
    worker.process = multiprocessing.current_process()  # type: ignore[assignment] # it lives
    supervisor.processes = [worker]
    for _ in range(3):
        supervisor.keep_subprocess_alive()
    for _ in range(3):
        worker.pong()
    supervisor.keep_subprocess_alive()
    assert not worker.parent_conn.poll()


@pytest.mark.usefixtures("signals")
def test_a_worker_that_hangs_at_the_end_is_killed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("proxy.server.HUNG_SECONDS", 0.0)
    config = uvicorn.Config(HELLO)
    supervisor = _Workers(config, [])
    worker = Process(config, [])
    spawn = multiprocessing.get_context("spawn")
    worker.process = spawn.Process(target=time.sleep, args=(PATIENCE * 10,), daemon=True)
    worker.start()
    supervisor.processes = [worker]
    supervisor.join_all()
    assert worker.exitcode == -signal.SIGKILL
    assert f"worker {worker.pid} does not end and is killed" in caplog.text


@contextmanager
def workers_of(process: subprocess.Popen[str]) -> Iterator[list[psutil.Process]]:
    """What it has started by now, killed at the end."""
    found = psutil.Process(process.pid).children(recursive=True)
    try:
        yield found
    finally:
        for each in found:
            with suppress(psutil.NoSuchProcess):
                each.kill()


@pytest.mark.parametrize(
    "size", [pytest.param(0, id="not-for-a-folder"), pytest.param(5000, id="not-in-the-folder")]
)
def test_workers_serve_and_count_alone_where_their_metrics_have_no_room(
    size: int, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        with files_of_at_most(size):
            process = stack.enter_context(running([HELLO, "server.workers=2"], tmp_path))
        address = line(process, "http://")
        assert len(set(pids(address, 2))) == 2
        text = httpx.get(f"{address}/metrics", timeout=PATIENCE, trust_env=False).text
        process.terminate()
        assert process.wait(PATIENCE) == 0
        assert process.stderr is not None
        errors = process.stderr.read()
    assert re.search(r"^memory_requests_total\{", text, re.MULTILINE)
    assert "metrics" in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(signal.SIGTERM, id="sigterm"),
        pytest.param(signal.SIGINT, id="ctrl-c"),
        pytest.param(signal.SIGHUP, id="sighup"),
    ],
)
@WORKERS
def test_a_running_answer_ends_well_after_the_server_was_told_to_stop(
    workers: int, how: signal.Signals, tmp_path: Path
) -> None:
    with (
        running([HELLO, f"server.workers={workers}"], tmp_path) as process,
        socket.create_server(("127.0.0.1", 0)) as gate,
    ):
        address = line(process, "http://")
        gate.settimeout(PATIENCE)
        hold = f"{address}/hold?port={gate.getsockname()[1]}"
        with httpx.stream("GET", hold, timeout=PATIENCE, trust_env=False) as answer:
            pieces = answer.iter_text()
            assert next(pieces) == "begun "
            waiting, _ = gate.accept()
            process.send_signal(how)
            assert stopped_listening(address)
            with waiting:
                waiting.sendall(b".")
            assert "".join(pieces) == "ended"
        assert process.wait(PATIENCE) == 0
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


def test_workers_end_well_when_their_supervisor_is_killed_and_leave_port_and_folder_free(
    tmp_path: Path,
) -> None:
    with (
        running([HELLO, "server.workers=2"], tmp_path, {"TMPDIR": str(tmp_path)}) as process,
        socket.create_server(("127.0.0.1", 0)) as gate,
    ):
        address = line(process, "http://")
        assert len(set(pids(address, 2))) == 2
        gate.settimeout(PATIENCE)
        hold = f"{address}/hold?port={gate.getsockname()[1]}"
        with (
            workers_of(process) as workers,
            httpx.stream("GET", hold, timeout=PATIENCE, trust_env=False) as answer,
        ):
            pieces = answer.iter_text()
            assert next(pieces) == "begun "
            waiting, _ = gate.accept()
            process.kill()
            assert stopped_listening(address)
            with waiting:
                waiting.sendall(b".")
            assert "".join(pieces) == "ended"
            assert psutil.wait_procs(workers, PATIENCE)[1] == []
    assert not list(tmp_path.glob("memory-proxy-*"))


@WORKERS
def test_a_terminal_that_is_closed_cuts_no_answer(workers: int, tmp_path: Path) -> None:
    with (
        running([HELLO, f"server.workers={workers}"], tmp_path) as process,
        socket.create_server(("127.0.0.1", 0)) as gate,
    ):
        address = line(process, "http://")
        gate.settimeout(PATIENCE)
        hold = f"{address}/hold?port={gate.getsockname()[1]}"
        with httpx.stream("GET", hold, timeout=PATIENCE, trust_env=False) as answer:
            pieces = answer.iter_text()
            assert next(pieces) == "begun "
            waiting, _ = gate.accept()
            for each in [*psutil.Process(process.pid).children(recursive=True), process]:
                each.send_signal(signal.SIGHUP)  # as a terminal does, to all of them
            assert stopped_listening(address)
            with waiting:
                waiting.sendall(b".")
            assert "".join(pieces) == "ended"
        assert process.wait(PATIENCE) == 0


def test_what_was_started_by_nohup_stays_when_the_terminal_is_closed() -> None:
    told = ran(
        "import asyncio, signal, uvicorn\n"
        "from proxy.server import Application, _Workers\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "async def made(): Application(lambda: None)()\n"
        "asyncio.run(made())\n"
        "print(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)\n"
        "_Workers(uvicorn.Config('x', log_config=None), [])\n"
        "print(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)\n"
    )
    assert told.stdout.split() == ["True", "True"]


@WORKERS
def test_a_file_says_where_it_listens_for_as_long_as_it_does(workers: int, tmp_path: Path) -> None:
    file = tmp_path / "address"
    arguments = [HELLO, "server.host=0.0.0.0", f"server.workers={workers}"]
    with running([*arguments, f"server.address_file={file}"], tmp_path) as process:
        port = line(process, "http://").rpartition(":")[2]
        while not (file.exists() and file.read_text()):
            assert process.poll() is None
        assert httpx.get(file.read_text(), timeout=PATIENCE, trust_env=False).text.isdigit()
        assert file.read_text() == f"http://127.0.0.1:{port}"
        process.terminate()
        assert process.wait(PATIENCE) == 0
    assert not file.exists()


@pytest.mark.parametrize("replaced", [False, True])
def test_the_file_of_a_proxy_that_took_the_place_of_one_that_drains_stays(
    replaced: bool, tmp_path: Path
) -> None:
    file = tmp_path / "address"
    with running([HELLO, f"server.address_file={file}"], tmp_path) as process:
        address = line(process, "http://")
        assert httpx.get(address, timeout=PATIENCE, trust_env=False).status_code == 200
        if replaced:
            file.rename(tmp_path / "former")
        file.write_text(address)
        process.terminate()
        assert process.wait(PATIENCE) == 0
    assert file.read_text() == address


def test_a_file_for_the_address_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    missing = f"server.address_file={tmp_path}/none/address"
    with running([HELLO, missing], tmp_path) as process:
        assert process.wait(PATIENCE) == 1
        assert process.stderr is not None
        assert "cannot write the file" in process.stderr.read()


def test_nothing_is_added_to_answers_but_the_date(tmp_path: Path) -> None:
    with running([HELLO], tmp_path) as process:
        answer = httpx.get(f"{line(process, 'http://')}/", timeout=PATIENCE, trust_env=False)
    assert answer.headers.keys() == {"date", "content-length"}


def test_a_head_larger_than_the_setting_is_refused(tmp_path: Path) -> None:
    with running([HELLO, "server.max_header_bytes=2000"], tmp_path) as process:
        address = line(process, "http://")
        sizes = [
            httpx.get(address, headers={"x": "y" * size}, timeout=PATIENCE, trust_env=False)
            for size in (1000, 3000)
        ]
    assert [answer.status_code for answer in sizes] == [200, 431]


@WORKERS
def test_an_application_that_cannot_be_made_ends_the_server_with_a_sentence(
    workers: int, tmp_path: Path
) -> None:
    arguments = [HELLO, f"server.workers={workers}", "upstream.url=http://127.0.0.1:1"]
    with running(arguments, tmp_path) as process:
        assert process.wait(PATIENCE) == 1
        assert process.stderr is not None
        errors = process.stderr.read()
    assert "the disk is gone" in errors
    assert "ServerError: the proxy did not start" in errors


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


def test_a_port_in_use_is_said_with_the_way_out(taken: int) -> None:
    with pytest.raises(
        ServerError, match=rf"127\.0\.0\.1:{taken}: address already in use; .*--port"
    ):
        listen(ServerSettings(port=taken))


def test_a_second_proxy_on_a_port_finds_it_in_use_before_the_first_one_serves() -> None:
    with listen(ServerSettings(port=0)) as first:
        port = first.getsockname()[1]
        with pytest.raises(ServerError, match="in use"):
            listen(ServerSettings(port=port))


def test_a_host_that_does_not_exist_is_said() -> None:
    with pytest.raises(ServerError, match="'no-such-host.invalid'"):
        listen(ServerSettings(host="no-such-host.invalid", port=0))


def test_the_address_of_an_ipv6_socket_has_brackets() -> None:
    with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as listener:
        try:
            listener.bind(("::1", 0))
        except OSError:
            pytest.skip("this host has no IPv6")
        assert address_of(listener) == f"http://[::1]:{listener.getsockname()[1]}"


def test_all_connections_share_one_protocol_class() -> None:
    assert HttpProtocolFactory(2000) == HttpProtocolFactory(2000)
    assert HttpProtocolFactory(2000) != HttpProtocolFactory(3000)


def test_the_collector_leaves_alone_what_the_application_is_made_of() -> None:
    told = ran(
        "import asyncio, gc\n"
        "from proxy.server import Application\n"
        "kept = []\n"
        "async def made(): Application(lambda: kept.extend([[] for _ in range(1000)]))()\n"
        "asyncio.run(made())\n"
        "print(gc.isenabled(), gc.get_freeze_count() > 1000)\n"
    )
    assert told.stdout.split() == ["True", "True"]
