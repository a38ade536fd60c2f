"""What cannot be read or written stops a program at once; a server or a spool does not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from proxy.check import address_file
from proxy.preflight import configuration_problems, database_problem, start_problem, write_problem
from tests.support.processes.certificate import CA_FILE
from tests.support.processes.running import settings_for

UPSTREAM = "http://127.0.0.1:1/v1"


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    """A path below a file, where nothing can be."""
    (tmp_path / "file").write_text("")
    return tmp_path / "file" / "m.db"


def test_a_file_where_the_stores_folder_should_be_stops_serve_with_one_sentence(
    bad: Path, tmp_path: Path
) -> None:
    problem = start_problem(settings_for(tmp_path, UPSTREAM, store__url=f"sqlite:///{bad}"))
    assert problem is not None
    assert str(bad.parent) in problem
    assert "\n" not in problem


def test_a_spool_that_cannot_be_written_does_not_stop_serve(bad: Path, tmp_path: Path) -> None:
    """The chats do not need it; the log, /readyz and memory_lost_total tell of it."""
    assert start_problem(settings_for(tmp_path, UPSTREAM, spool__path=str(bad))) is None


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_file_that_may_not_be_written_is_told(tmp_path: Path) -> None:
    file = tmp_path / "m.db"
    file.touch(mode=0o400)
    assert write_problem(file) == f"cannot write the file {file}"


def test_a_folder_where_the_file_should_be_is_told(tmp_path: Path) -> None:
    said = f"{tmp_path} is a folder: name a file in it"
    assert write_problem(tmp_path) == database_problem(tmp_path) == said


@pytest.mark.parametrize(
    ("file", "told"),
    [
        pytest.param("none/address", "cannot write in the folder", id="no folder"),
        pytest.param("taken/address", "cannot write in the folder", id="a file as its folder"),
        pytest.param("folder", "cannot write the file", id="a folder"),
    ],
)
def test_a_file_for_the_address_that_cannot_be_written_stops_serve_before_it_begins(
    file: str, told: str, tmp_path: Path
) -> None:
    (tmp_path / "taken").touch()
    (tmp_path / "folder").mkdir()
    chosen = settings_for(tmp_path, UPSTREAM, server__address_file=str(tmp_path / file))
    problem = start_problem(chosen)
    assert problem is not None and problem.startswith(f"server.address_file: {told}")
    assert [found.text for found in address_file(chosen)] == [problem]


def test_the_address_of_a_proxy_that_serves_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "address"
    file.write_text("http://127.0.0.1:8080")
    chosen = settings_for(tmp_path, UPSTREAM, server__address_file=str(file))
    assert (start_problem(chosen), address_file(chosen)) == (None, [])
    assert file.read_text() == "http://127.0.0.1:8080"
    assert start_problem(settings_for(tmp_path, UPSTREAM)) is None


def test_a_server_that_is_away_does_not_stop_serve(tmp_path: Path) -> None:
    assert (
        start_problem(settings_for(tmp_path, UPSTREAM, store__url="redis://127.0.0.1:1/0")) is None
    )


def test_a_schema_that_is_none_is_told_like_every_other_mistake(tmp_path: Path) -> None:
    schema = tmp_path / "profile.json"
    schema.write_text('{"type": "array"}', encoding="utf-8")
    chosen = settings_for(tmp_path, UPSTREAM, **{"memory.profile.schema": str(schema)})
    (told,) = configuration_problems(chosen)
    assert told.startswith("memory.profile.schema: ") and "must describe an object" in told


def test_a_file_of_authorities_that_is_none_is_told_by_each_setting(tmp_path: Path) -> None:
    missing, other = tmp_path / "no.pem", tmp_path / "other.pem"
    other.write_text("no certificate")
    listed = [
        {"name": "good", "url": UPSTREAM, "ca_file": str(CA_FILE)},
        {"name": "other", "url": UPSTREAM, "ca_file": str(other)},
        {"name": "inherits", "url": UPSTREAM},
    ]
    files = {"upstream__ca_file": str(missing), "store__url": f"rediss://h?ssl_ca_certs={missing}"}
    chosen = settings_for(tmp_path, UPSTREAM, upstreams=listed, **files)
    assert list(configuration_problems(chosen)) == [
        f"upstream.ca_file: cannot read {missing}: No such file or directory",
        f"upstreams[1].ca_file: {other} holds no certificate",
        f"store.url: ssl_ca_certs: cannot read {missing}: No such file or directory",
    ]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("ssl_certfile={server}", []),
        ("ssl_certfile={server}&ssl_keyfile={server}", []),
        (
            "ssl_certfile={missing}",
            ["ssl_certfile: cannot read {missing}: No such file or directory"],
        ),
        (
            "ssl_certfile={server}&ssl_keyfile={missing}",
            ["ssl_keyfile: cannot read {missing}: No such file or directory"],
        ),
        ("ssl_keyfile={server}", ["ssl_keyfile: is of no use without ssl_certfile"]),
        (
            "ssl_certfile={ca}",
            ["ssl_certfile: {ca} holds no certificate, or its key is not there"],
        ),
    ],
)
def test_a_certificate_that_cannot_be_shown_to_redis_is_told_by_its_option(
    options: str, told: list[str], tmp_path: Path
) -> None:
    files = {
        "missing": tmp_path / "no.pem",
        "ca": CA_FILE,
        "server": CA_FILE.with_name("server.pem"),
    }
    url = f"rediss://h?{options.format(**files)}"
    found = configuration_problems(settings_for(tmp_path, UPSTREAM, store__url=url))
    assert list(found) == [f"store.url: {each.format(**files)}" for each in told]
