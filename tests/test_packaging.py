"""What the image, the compose file, the make file and the package promise, read and not run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from proxy import __version__
from proxy.settings import load
from tests.support.processes.program import line, running
from tests.support.tables import O200K_FILE, o200k_table
from tests.support.waiting import PATIENCE

ROOT = Path(__file__).parents[1]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def instructions(name: str) -> list[tuple[str, str]]:
    """The instructions of a Dockerfile, continued lines joined."""
    text = re.sub(r"\\\n\s*", " ", read(name))
    lines = (line.partition(" ") for line in text.splitlines() if line and not line.startswith("#"))
    return [(word, rest.strip()) for word, _, rest in lines]


def test_the_image_is_built_in_two_stages_and_its_second_one_is_not_root() -> None:
    found = instructions("Dockerfile")
    starts = [index for index, (word, _) in enumerate(found) if word == "FROM"]
    assert len(starts) == 2
    last = found[starts[1] :]
    users = [rest for word, rest in last if word == "USER"]
    assert users == ["10001"]
    assert any("--uid 10001" in rest for _, rest in last)
    assert ("EXPOSE", "8080") in last
    assert ("VOLUME", "/data") in last
    assert any(word == "HEALTHCHECK" and "/healthz" in rest for word, rest in last)
    bases = {rest.partition(" ")[0] for word, rest in found if word == "FROM"}
    (base,) = (rest for word, rest in found if word == "ARG" and rest.startswith("PYTHON_IMAGE="))
    assert bases == {"${PYTHON_IMAGE}"}
    assert re.fullmatch(r"PYTHON_IMAGE=python:\d+\.\d+\.\d+-slim-\w+", base)
    assert not any("pip" in rest for word, rest in last if word == "RUN")


def image_environment() -> dict[str, str]:
    """What the image sets, with the files that it names where they are in the repository."""
    found = instructions("Dockerfile")
    texts = [rest for word, rest in found if word == "ENV"]
    environ = dict(pair.split("=", 1) for text in texts for pair in text.split())
    copied = [rest.split() for word, rest in found if word == "COPY"]
    places = {words[-1]: str(ROOT / words[0]) for words in copied if len(words) == 2}
    return {name: places.get(value, value) for name, value in environ.items()}


def test_the_images_defaults_are_a_valid_configuration() -> None:
    environ = image_environment()
    settings = load(environ=environ)
    assert settings.server.host == "0.0.0.0"
    assert settings.server.port == 8080
    assert settings.store.url == "sqlite:////data/memory.db"
    assert settings.spool.path == "/data/spool.db"
    assert environ["TIKTOKEN_CACHE_DIR"].startswith("/opt/memory-proxy/")


def test_a_file_mounted_into_the_image_wins_over_its_defaults_which_still_hold(
    tmp_path: Path,
) -> None:
    mounted = tmp_path / "proxy.toml"
    mounted.write_text('[server]\nport = 9000\n[store]\nurl = "redis://cache/0"\n')
    environ = {**image_environment(), "MEMORY_PROXY_CONFIG": str(mounted)}
    settings = load(environ=environ)
    assert (settings.server.port, settings.store.url) == (9000, "redis://cache/0")
    assert (settings.server.host, settings.spool.path) == ("0.0.0.0", "/data/spool.db")
    assert load(environ={**environ, "MEMORY_PROXY_PORT": "9001"}).server.port == 9001


@pytest.mark.parametrize("alive", [True, False], ids=["alive", "dead"])
def test_the_images_health_check_finds_the_proxy_at_whatever_port(
    alive: bool, tmp_path: Path
) -> None:
    (check,) = (rest for word, rest in instructions("Dockerfile") if word == "HEALTHCHECK")
    command = json.loads(check.partition("CMD ")[2])
    settings = load(environ=image_environment())
    address_file = settings.server.address_file
    assert address_file is not None
    assert command[0] == "python"
    assert address_file in command[2]
    code = command[2].replace(address_file, str(tmp_path / "address"))
    # An egress proxy of the container's environment is not for its own loopback.
    environ = {**os.environ, "http_proxy": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}
    arguments = ["proxy", "serve", "--port", "0", "--store", "memory://", "--workers", "1"]
    own = {
        "MEMORY_PROXY_SERVER__ADDRESS_FILE": str(tmp_path / "address"),
        "MEMORY_PROXY_SPOOL__PATH": str(tmp_path / "spool.db"),
    }
    if not alive:
        (tmp_path / "address").write_text("http://127.0.0.1:9")
        assert python(code, environ).returncode == 1
        return
    with running(arguments, tmp_path, {**image_environment(), **own}) as process:
        line(process, "listening on")
        deadline = time.monotonic() + PATIENCE
        while (ran := python(code, environ)).returncode and time.monotonic() < deadline:
            assert process.poll() is None
        assert (ran.returncode, ran.stderr) == (0, "")


def step_of_token_tables() -> str:
    texts = [rest for word, rest in instructions("Dockerfile") if word == "RUN"]
    (found,) = (text for text in texts if "TOKEN_TABLES" in text)
    return found


@pytest.mark.parametrize(
    ("wanted", "fetched", "status"), [("required", 1, 1), ("optional", 1, 0), ("required", 0, 0)]
)
def test_the_build_ends_where_token_tables_are_not_had_unless_that_is_allowed(
    wanted: str, fetched: int, status: int, tmp_path: Path
) -> None:
    (tmp_path / "python").write_text(f"#!/bin/sh\nexit {fetched}\n")
    (tmp_path / "python").chmod(0o755)
    environ = {
        "PATH": f"{tmp_path}:/usr/bin:/bin",
        "TOKEN_TABLES": wanted,
        "TIKTOKEN_CACHE_DIR": str(tmp_path / "tables"),
    }
    step = ["/bin/sh", "-c", step_of_token_tables()]
    assert subprocess.run(step, env=environ, check=False, timeout=30).returncode == status


def test_the_image_is_not_built_without_both_tokenizer_tables(tmp_path: Path) -> None:
    fetch, check = re.findall(r'python -c "(.+?)"', step_of_token_tables())
    assert ("ARG", "TOKEN_TABLES=required") in instructions("Dockerfile")
    assert "get_encoding('o200k_base')" in fetch
    environ = {**os.environ, "TIKTOKEN_CACHE_DIR": str(tmp_path)}
    assert python(check, environ).returncode == 1
    (tmp_path / O200K_FILE).write_bytes(o200k_table())
    for code in (fetch, check):
        ran = python(code, environ)
        assert (ran.returncode, ran.stderr) == (0, "")


def python(code: str, environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environ,
        check=False,
        capture_output=True,
        text=True,
        timeout=30,
    )


def test_the_image_gets_all_that_it_copies() -> None:
    ignored = read(".dockerignore").splitlines()
    copied = [
        name
        for word, rest in instructions("Dockerfile")
        if word == "COPY" and not rest.startswith("--from")
        for name in rest.split()[:-1]
    ]
    assert copied
    for name in copied:
        assert (ROOT / name).exists()
        assert {f"!{name}", f"!{name.partition('/')[0]}"} & {*ignored}


def test_the_image_gets_the_packages_that_were_locked_and_all_that_the_project_needs() -> None:
    runs = [rest for word, rest in instructions("Dockerfile") if word == "RUN"]
    assert any("--require-hashes --no-deps -r requirements.txt" in each for each in runs)
    assert any(each.endswith("install --no-deps .") for each in runs)
    locked = dict(
        re.findall(r"^([\w.-]+)==(\S+)", read("config/container/requirements.txt"), re.MULTILINE)
    )
    project = tomllib.loads(read("pyproject.toml"))["project"]
    for wanted in map(Requirement, project["dependencies"]):
        assert wanted.specifier.contains(locked[canonicalize_name(wanted.name)]), wanted


def test_compose_runs_the_proxy_with_a_redis_that_loses_nothing() -> None:
    text = read("compose.yaml")
    services = re.findall(r"^  (\w+):$", text.partition("\nvolumes:")[0], re.MULTILINE)
    assert services == ["proxy", "redis"]
    assert '"--appendonly", "yes", "--appendfsync", "always"' in text
    assert "condition: service_healthy" in text
    for hardened in ("read_only: true", "- ALL", "- no-new-privileges:true", "max-size: 20m"):
        assert text.count(f" {hardened}\n") == len(services)
    assert '- "host.docker.internal:host-gateway"' in text
    settings = dict(re.findall(r"^      (MEMORY_PROXY_\w+): (\S+)$", text, re.MULTILINE))
    unset = {name: "" if value.startswith("${") else value for name, value in settings.items()}
    assert load(environ=unset).store.url == "redis://redis:6379/0"


def test_the_shipped_redis_configuration_syncs_before_every_reply() -> None:
    lines = [line for line in read("config/redis.conf").splitlines() if not line.startswith("#")]
    assert {"appendonly yes", "appendfsync always"} <= set(lines)


def test_every_dependency_has_a_lower_bound_and_a_sentence_why() -> None:
    lines = read("pyproject.toml").partition("[project.optional-dependencies]")[0].splitlines()
    start = lines.index("dependencies = [")
    wanted = lines[start + 1 : lines.index("]", start)]
    for above, below in zip(wanted, wanted[1:], strict=False):
        if not below.strip().startswith("#"):
            assert above.strip().startswith("# "), f"{below} has no reason"
            assert ">=" in below


def test_the_version_has_one_place_and_the_changelog_knows_it() -> None:
    project = tomllib.loads(read("pyproject.toml"))
    assert "version" not in project["project"]
    assert project["tool"]["hatch"]["version"]["path"] == "proxy/__init__.py"
    headings = re.findall(r"^## \[(.+?)\]", read("CHANGELOG.md"), re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert not headings[1:] or headings[1] == __version__


def test_an_index_shows_no_link_that_leads_nowhere() -> None:
    hook = tomllib.loads(read("pyproject.toml"))["tool"]["hatch"]["metadata"]["hooks"]
    text = read("README.md")
    for each in hook["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(each["pattern"], each["replacement"], text)
    assert "](" in read("README.md")
    assert all(link.startswith("https:") for link in re.findall(r"\]\(([^)]*)\)", text))
    assert "- Quickstart, in five minutes" in text


def test_the_package_says_that_it_has_types_and_has_them() -> None:
    project = tomllib.loads(read("pyproject.toml"))["project"]
    assert "Typing :: Typed" in project["classifiers"]
    assert (ROOT / "proxy" / "py.typed").exists()
    assert project["scripts"] == {"memory-proxy": "memory_proxy:main"}


def test_the_site_of_the_docs_needs_nothing_that_tests_need() -> None:
    told = make("docs", "-n", "-W", "pyproject.toml").stdout
    assert "'.[docs]'" in told
    assert "[dev" not in told


@pytest.mark.parametrize(
    "verb", ["run", "test", "lint", "format", "bench", "demo", "dist", "clean"]
)
def test_make_knows_the_verb(verb: str) -> None:
    make(verb, "-n")


def test_make_dist_tells_its_tests_where_to_build(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(read("Makefile"))
    made = ("-o", ".venv/.installed", "-o", ".venv/.installed-dev")
    told = make("dist", "-C", str(tmp_path), *made, 'PYTEST=mkdir "$$DIST" && :').stdout
    assert (tmp_path / "dist").is_dir(), told


def test_make_says_which_python_it_needs(tmp_path: Path) -> None:
    old = tmp_path / "python-of-old"
    old.write_text("#!/bin/sh\ncase $1 in --version) echo Python 3.8.1;; *) exit 1;; esac\n")
    old.chmod(0o755)
    told = failing_make(tmp_path, f"PYTHON={old}")
    assert f"needs Python 3.11 or newer, and {old} is Python 3.8.1" in told


def test_make_says_that_there_is_no_python(tmp_path: Path) -> None:
    assert "there is no no-such-python here" in failing_make(tmp_path, "PYTHON=no-such-python")


def failing_make(folder: Path, *arguments: str) -> str:
    """What make says in a folder with nothing but our make file and pyproject.toml."""
    for name in ("Makefile", "pyproject.toml"):
        (folder / name).write_text(read(name))
    ran = make("run", "-C", str(folder), *arguments, check=False)
    assert ran.returncode != 0
    assert not (folder / ".venv").exists()
    return ran.stderr


def make(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    # Under `make test` the variables of that make would reach this one.
    environ = {name: text for name, text in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(
        ["make", *arguments],
        cwd=ROOT,
        env={**environ, "MFLAGS": ""},
        check=check,
        capture_output=True,
        text=True,
        timeout=20,
    )
