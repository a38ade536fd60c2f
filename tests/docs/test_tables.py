"""The tables of README.md and docs/ are true: settings, headers, routes, metrics, commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from msgspec.structs import fields

from proxy.gateway.context import reserved_tokens
from proxy.gateway.identity import MEMORY_HEADERS, Mode
from proxy.gateway.report import MemoryReport, Reason
from proxy.learning.kinds import Kinds
from proxy.mcp.tools import TOOLS
from proxy.memory.model import Status
from proxy.memory.reconciliation.match import History
from proxy.memory_api.errors import CODES
from proxy.memory_api.operations import OPERATIONS
from proxy.settings import ProfileSettings, Settings, SettingsError, effective, load
from proxy.settings.model import PREFIX
from proxy.settings.sources import CONFIG, DEFAULTS, FLAGS, FROM_FILE, SHORT_NAMES
from proxy.stores.address import read_address
from proxy.telemetry import Telemetry
from tests.support.pages import PAGES, code, name_of, read, table, tables
from tests.support.processes.program import ROOT

EFFECTIVE = dict(effective(Settings()))
PAGE_OF_A_SECTION = {"summaries.md": "memory.summary.", "recall.md": "memory.recall."}
"""Pages with a table of all settings of a section, named without it."""

LONG = {
    "memory.summary.prompt",
    "memory.summary.parameters",
    "memory.recall.rewrite.parameters",
    "memory.side_requests",
}
"""Too long for a table, or a table themselves."""


# Settings


def settings_told() -> Iterator[tuple[str, str, str]]:
    """Page, setting and default of every row that gives a setting its whole name."""
    for path in PAGES:
        page = name_of(path)
        for head, *rows in tables(page):
            if head[:2] == ["setting", "default"]:
                yield from ((page, code(row[0])[0], row[1].strip("`")) for row in rows)


@pytest.mark.parametrize(
    ("page", "setting", "default"),
    [x for x in settings_told() if x[0] not in PAGE_OF_A_SECTION and x[1] not in LONG],
)
def test_a_setting_has_the_default_that_is_told(page: str, setting: str, default: str) -> None:
    assert default == (EFFECTIVE[setting] or "not set")


@pytest.mark.parametrize(("page", "section"), PAGE_OF_A_SECTION.items())
def test_every_setting_of_a_section_is_there_with_its_default(page: str, section: str) -> None:
    told = {section + name: words(value) for where, name, value in settings_told() if where == page}
    known = {
        name: words(value or "not set")
        for name, value in EFFECTIVE.items()
        if name.startswith(section)
    }
    assert {name: told[name] for name in told.keys() - LONG} == {
        name: known[name] for name in known.keys() - LONG
    }, f"docs/{page}"


def words(default: str) -> list[str]:
    """Lists are written with and without quotes."""
    return re.findall(r"[\w.]+", default) or ["not", "set"]


def test_every_kind_of_learned_memory_is_named() -> None:
    told = {code(row[0])[0] for row in table("long-term-memory.md", "section")}
    assert told == {f"memory.{name}" for name in (*ProfileSettings().learned, "tools")}


def test_every_reserved_label_is_told_with_its_place() -> None:
    rows = table("langgraph.md", "reserved label")
    first = {label for row in rows if row[1] == "the first of all" for label in code(row[0])}
    third = {label for row in rows if "users" in row[1] for label in code(row[0])}
    known = Kinds()
    assert (first, third) == (set(known.first_labels), set(known.labels))


def test_every_window_is_named() -> None:
    rows = table("windows.md", "`window`")
    told = [code(row[0])[0] for row in rows]
    assert sorted(told) == sorted(get_args(ProfileSettings.model_fields["window"].annotation))
    assert Settings().memory.window == told[0]


@pytest.mark.parametrize("page", [path.name for path in PAGES if path.name.startswith("from-lang")])
def test_settings_in_place_of_others_are_accepted(page: str, tmp_path: Path) -> None:
    told_in = [cell for _, *rows in tables(page) for row in rows for cell in row]
    told = [text for cell in told_in for text in code(cell) if re.match(r"[a-z._]+ = ", text)]
    for text in told:
        config = tmp_path / "proxy.toml"
        config.write_text(f"[memory]\n{text}\n", encoding="utf-8")
        load(config)
    settings = {name for name in EFFECTIVE if name.startswith("memory.")}
    assert {f"memory.{text.partition(' = ')[0]}" for text in told} <= settings


def test_the_budgets_are_those_of_the_code() -> None:
    for total, switched_on, left in table("windows.md", "`max_tokens`"):
        parts = [part for part in ("recall", "summary", "facts") if part in switched_on]
        told = {f"memory.{part}.enabled": "true" for part in parts}
        memory = load(None, {"memory.max_tokens": total, **told}, {}).memory
        assert memory.max_tokens - reserved_tokens(memory) == int(left)
        assert all(
            f"{part} ({getattr(memory, part).max_tokens})" in switched_on for part in parts[-1:]
        )


@pytest.mark.parametrize("row", table("configuration.md", "upstream"), ids=lambda row: row[0][:20])
def test_upstream_urls_are_accepted(row: list[str]) -> None:
    overrides: dict[str, object] = {"upstream.url": code(row[1])[0]}
    if flag := re.search(r"--port (\d+)", row[0]):
        with pytest.raises(SettingsError, match="call itself"):
            load(None, overrides, {})
        overrides["server.port"] = flag[1]
    assert load(None, overrides, {}).upstream.url == code(row[1])[0]


@pytest.mark.parametrize("row", table("configuration.md", "store"), ids=lambda row: row[0][:20])
def test_store_urls_are_accepted(row: list[str]) -> None:
    url = code(row[1])[0]
    assert load(None, {"store.url": url}, {}).store.url == url
    assert read_address(url).name


def test_flags_and_variables_are_those_that_are_read() -> None:
    rows = table("configuration.md", "setting", "flag")
    told = {row[0].strip("`"): (row[1].strip("`"), code(row[2])[0]) for row in rows}
    assert told.pop("the file") == ("--config", CONFIG)
    assert told.pop("any other") == ("", "MEMORY_PROXY_SECTION__NAME")
    assert told.pop("a value from a file") == ("", FROM_FILE)
    assert told.pop("a file below all of these") == ("", DEFAULTS)
    known = {".".join(map(str, place)): f"{PREFIX}{name}" for name, place in SHORT_NAMES.items()}
    assert told == {name: (FLAGS.get(name, ""), variable) for name, variable in known.items()}


# Headers


def test_the_request_headers_are_those_that_are_read() -> None:
    (rows, _) = header_tables()
    told = {code(row[0])[0].lower() for row in rows}
    assert told == {*(name.decode() for name in MEMORY_HEADERS), "idempotency-key"}


def header_tables() -> list[list[list[str]]]:
    return [rows for head, *rows in tables("sessions.md") if head == ["header", "meaning"]]


def test_the_response_headers_are_those_that_are_sent() -> None:
    told_at_times = {each.name: 1.0 for each in fields(MemoryReport) if each.default is None}
    filled: dict[str, Any] = {**told_at_times, "exchange": "ex", "reason": "spooled"}
    account = MemoryReport("session", **filled)
    sent = {name.decode() for name, _ in account.headers()}
    assert {code(row[0])[0].lower() for row in header_tables()[1]} == sent, "docs/sessions.md"


@pytest.mark.parametrize(
    ("header", "known"),
    [
        pytest.param("X-Memory-Mode", get_args(Mode), id="mode"),
        pytest.param("X-Memory-History", get_args(History), id="history"),
        pytest.param("X-Memory-Status", get_args(Status), id="status"),
    ],
)
def test_the_words_of_a_header_are_all_there(header: str, known: tuple[str, ...]) -> None:
    (row,) = (row for rows in header_tables() for row in rows if code(row[0]) == [header])
    assert set(code(row[1])) == set(known)


def test_every_alias_is_named_in_its_order() -> None:
    text = read("sessions.md")
    (paragraph,) = re.findall(r"^Where there is no `X-Session-Id`.*?\n\n", text, re.M | re.S)
    server = Settings().server
    assert code(paragraph)[1:] == [*server.session_aliases, *server.user_aliases]


def test_the_reasons_are_those_that_the_gateway_gives() -> None:
    told = {code(row[0])[0] for row in table("sessions.md", "reason")}
    assert told == set(get_args(Reason))


# What is served


def test_every_route_of_the_memory_api_is_in_the_table() -> None:
    told = {
        tuple(code(row[0])[0].split(maxsplit=1))
        for head, *rows in tables("api.md")
        if head == ["request", "does"]
        for row in rows
    }
    assert told == routes(), "docs/api.md"


def routes() -> set[tuple[str, str]]:
    """Method and path of each operation of the memory API; the document of itself is told apart."""
    found = {(str(operation.method), operation.path) for operation in OPERATIONS}
    return found - {("GET", "/memory/v1/openapi.json")}


def codes(page: str) -> dict[str, list[str]]:
    return {row[0]: code(row[1]) for row in table(page, "status", "codes")}


def test_the_errors_of_the_memory_api_are_told() -> None:
    known: dict[str, list[str]] = {}
    for name, told in CODES.items():
        known.setdefault(str(told.status), []).append(name)
    assert codes("api.md") == known


def test_the_tools_of_agents_are_told() -> None:
    told = {code(row[0])[0]: set(code(row[2])) for row in table("mcp.md", "tool", "what it does")}
    assert told == {tool.name: set(tool.input_schema["properties"]) for tool in TOOLS}


def test_the_errors_of_chats_are_told() -> None:
    source = (ROOT / "proxy" / "errors.py").read_text(encoding="utf-8")
    known = set(re.findall(r'(?:ProxyError|FixedError)\(\s*\d+,\s*"(\w+)"', source))
    told = {name for names in codes("sessions.md").values() for name in names}
    assert told <= known
    assert known - told <= CODES.keys()


def test_every_metric_is_told() -> None:
    told = {code(row[0])[0] for row in table("operations.md", "metric")}
    telemetry = Telemetry()
    telemetry.label_upstreams(["default"])
    text = telemetry.render().decode()
    kinds = dict(re.findall(r"^# TYPE (memory_\w+) (\w+)", text, re.MULTILINE))
    assert told == kinds.keys()


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_the_probes_are_told(path: str) -> None:
    assert [f"GET {path}"] in [code(row[0]) for row in table("operations.md", "request", "says")]


# Links


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not missing


def test_every_picture_is_on_some_page() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    pictures = [path.name for path in (ROOT / "docs" / "images").iterdir()]
    assert [name for name in pictures if f"images/{name})" not in pages] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_commands_of_make_are_there(page: Path) -> None:
    verbs = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    told = re.findall(r"`make (\w+)|^make (\w+)", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert {code or line for code, line in told} <= set(verbs)
