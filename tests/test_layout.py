"""The architecture as a test: who may import whom, and how long things may be."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "proxy").rglob("*.py"))
EVERYTHING = sorted([*SOURCES, *(ROOT / "tests").rglob("*.py")])

LONGEST_FILE = 450
LONGEST_FUNCTION = 60

# Which of our modules a part may import, besides itself; a part is the first name under proxy.
# None is everything: the composition root and what people start.
ALLOWED: dict[str, frozenset[str] | None] = {
    "__init__": frozenset(),
    "__main__": frozenset({"cli"}),
    "app": None,
    "assembly": None,
    "writing": None,
    "cli": None,
    "late": frozenset(),
    "factory": frozenset({"app", "cors", "late", "settings"}),
    "origin": frozenset({"settings", "wire"}),
    "preflight": frozenset(
        {
            "late",
            "learning",
            "memory.store",
            "origin",
            "settings",
            "stores.address",
            "stores.sqlite_schema",
        }
    ),
    "server": None,
    "reasons": frozenset(),
    "trial": frozenset(),
    "check": None,
    "demo": None,
    "upkeep": None,
    "administration": None,
    "commands": None,
    "cors": frozenset({"wire", "gateway", "errors"}),
    "gateway": frozenset(
        {"wire", "chat", "memory", "recall", "learning", "errors", "telemetry", "logs", "settings"}
    ),
    "admin": frozenset(
        {
            "chat.extent",
            "chat.jsontext",
            "memory",
            "recall",
            "learning",
            "portable",
            "console",
            "errors",
            "telemetry",
            "logs",
            "settings",
            "wire.hosts",
        }
    ),
    "portable": frozenset({"memory", "chat"}),
    "console": frozenset({"errors"}),
    "stores": frozenset(
        {
            "memory.archive",
            "memory.erasure",
            "memory.limit",
            "memory.store",
            "memory.model",
            "memory.summary",
            "memory.work",
            "memory.items",
            "memory.usage",
            "recall.index",
        }
    ),
    "recall": frozenset({"memory.archive", "memory.store", "memory.model"}),
    "background": frozenset({"wire", "chat", "memory", "errors", "telemetry"}),
    "summary": frozenset({"background.completion", "background.job", "memory", "settings"}),
    "learning": frozenset(
        {
            "background.completion",
            "background.job",
            "chat.jsontext",
            "memory",
            "recall",
            "settings",
        }
    ),
    # They run in other programs, and speak HTTP alone.
    "integrations": frozenset(),
    "memory": frozenset(),
    "chat": frozenset(),
    "wire": frozenset({"errors"}),
    "settings": frozenset(),
    "errors": frozenset(),
    "telemetry": frozenset(),
    "logs": frozenset(),
}


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def part_of(path: Path) -> str:
    return path.relative_to(ROOT / "proxy").with_suffix("").parts[0]


def imported(tree: ast.Module) -> Iterator[str]:
    """The modules of ours that are imported, as dotted names below proxy."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (a.name.removeprefix("proxy.") for a in node.names if is_ours(a.name))
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            if node.module == "proxy":
                yield from (alias.name for alias in node.names if alias.name != "__version__")
            elif node.module and is_ours(node.module):
                yield node.module.removeprefix("proxy.")


def is_ours(module: str) -> bool:
    return module.startswith("proxy.")


def may_import(part: str, module: str) -> bool:
    allowed = ALLOWED[part]
    if allowed is None or module.partition(".")[0] == part:
        return True
    return any(module == name or module.startswith(f"{name}.") for name in allowed)


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_a_module_imports_only_what_its_part_may() -> None:
    wrong = [
        f"{named(path)}: {name}"
        for path in SOURCES
        for name in imported(parse(path))
        if not may_import(part_of(path), name)
    ]
    assert not wrong


@pytest.mark.parametrize(
    ("part", "module", "allowed"),
    [
        pytest.param("stores", "memory.model", True, id="stores-know-the-values"),
        pytest.param("stores", "memory.window", False, id="stores-know-no-policy"),
        pytest.param("memory", "wire.headers", False, id="memory-knows-no-http"),
        pytest.param("chat", "chat.request", True, id="a-part-knows-itself"),
        pytest.param("settings", "memory.model", False, id="settings-know-nothing"),
        pytest.param("wire", "errors_of_another", False, id="whole-names-only"),
        pytest.param("cli", "stores.redis", True, id="the-root-knows-all"),
    ],
)
def test_the_rules_themselves(part: str, module: str, allowed: bool) -> None:
    assert may_import(part, module) is allowed


def test_files_stay_short() -> None:
    wrong = [
        named(path)
        for path in SOURCES
        if len(path.read_text(encoding="utf-8").splitlines()) > LONGEST_FILE
    ]
    assert not wrong


def test_functions_stay_short_and_plain() -> None:
    wrong = [
        f"{named(path)}, {fault}"
        for path in EVERYTHING
        for node in ast.walk(parse(path))
        for fault in faults(node)
    ]
    assert not wrong


def faults(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Global):
        yield f"line {node.lineno}: global"
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        if (node.end_lineno or 0) - node.lineno >= LONGEST_FUNCTION:
            yield f"line {node.lineno}: {node.name} is longer than {LONGEST_FUNCTION} lines"
        for inner in ast.walk(node):
            if isinstance(inner, ast.Import | ast.ImportFrom):
                yield f"line {inner.lineno}: import in {node.name}"


def test_long_functions_globals_and_inner_imports_are_found() -> None:
    body = "\n".join("    pass" for _ in range(LONGEST_FUNCTION))
    bad = f"def long():\n{body}\n\ndef inner():\n    global x\n    import os\n"
    found = [fault for node in ast.walk(ast.parse(bad)) for fault in faults(node)]
    assert [fault.partition(": ")[2] for fault in found] == [
        "long is longer than 60 lines",
        "import in inner",
        "global",
    ]


def test_no_package_of_tests_has_an_init_file() -> None:
    assert not list((ROOT / "tests").rglob("__init__.py"))
