"""The architecture as a test: who may import whom, and how long things may be."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "proxy").rglob("*.py"))
EVERYTHING = sorted([*SOURCES, *(ROOT / "tests").rglob("*.py")])

MAX_FILE_LINES = 450
MAX_FUNCTION_LINES = 60
MAX_MODULES = 15
MAX_OF_A_PREFIX = 3
MAX_OF_A_NAME = 2

# Which of our modules a part may import, besides itself; a part is the first name under proxy.
# None is everything: the composition root and what people start.  Loading late is open to all.
ALLOWED: dict[str, frozenset[str] | None] = {
    "__init__": frozenset(),
    "__main__": frozenset({"cli"}),
    "app": None,
    "assembly": None,
    "cli": None,
    "lazy": frozenset(),
    "tenancy": frozenset({"errors"}),
    "factory": frozenset({"app", "cors", "settings"}),
    "preflight": frozenset(
        {
            "learning",
            "memory.store",
            "assembly.origin",
            "process.sqlite_file",
            "process.sqlite_version",
            "settings",
            "stores.address",
            "stores.sqlite.schema",
        }
    ),
    "server": None,
    "reasons": frozenset(),
    "check": None,
    "demo": None,
    "maintenance": None,
    "commands": None,
    "cors": frozenset({"wire", "gateway", "errors"}),
    "gateway": frozenset(
        {
            "process.threads",
            "tenancy",
            "wire",
            "chat",
            "formats",
            "memory",
            "recall",
            "learning",
            "rewrite",
            "errors",
            "telemetry",
            "logs",
            "reasons",
            "settings",
            "upstreams",
        }
    ),
    "memory_api": frozenset(
        {
            "process.threads",
            "tenancy",
            "chat.json_size",
            "chat.jsontext",
            "chat.message",
            "chat.usage",
            "gateway.preview",
            "memory",
            "recall",
            "learning",
            "portable",
            "summary.attempts",
            "console",
            "errors",
            "telemetry",
            "logs",
            "settings",
            "wire.hosts",
            "wire.limits",
            "wire.relay",
            "wire.body",
            "wire.headers",
        }
    ),
    # Another door to the memory API: its operations, and nothing below them.
    "mcp": frozenset(
        {
            "memory_api",
            "chat.jsontext",
            "chat.message",
            "chat.tools.display",
            "gateway.identity",
            "memory.ids",
            "learning.facts.fact",
            "errors",
            "settings",
            "telemetry",
            "wire.hosts",
            "wire.limits",
        }
    ),
    "portable": frozenset({"memory", "chat"}),
    "console": frozenset({"errors"}),
    "stores": frozenset(
        {
            "memory.archive",
            "memory.erasure",
            "memory.limit",
            "memory.locks",
            "memory.store",
            "memory.model",
            "memory.items",
            "memory.usage",
            "process.sqlite_file",
            "process.sqlite_version",
            "process.threads",
            "recall.index",
        }
    ),
    "recall": frozenset(
        {
            "memory.archive",
            "memory.locks",
            "memory.store",
            "memory.model",
            "wire.api",
            "wire.failures",
            "wire.upstream",
        }
    ),
    "background": frozenset({"wire", "chat", "memory", "errors", "telemetry", "logs", "upstreams"}),
    "summary": frozenset(
        {"background.completion", "chat.jsontext", "memory", "recall.lexicon", "settings"}
    ),
    "rewrite": frozenset({"background.completion", "memory.store", "recall.query", "settings"}),
    "learning": frozenset(
        {
            "background.completion",
            "background.runner",
            "chat.jsontext",
            "memory",
            "recall",
            "settings",
        }
    ),
    # They run in other programs, and speak HTTP alone.
    "integrations": frozenset(),
    "memory": frozenset({"chat", "process.sqlite_file", "process.threads"}),
    "chat": frozenset(),
    "formats": frozenset({"chat", "errors"}),
    "wire": frozenset({"errors", "process"}),
    "process": frozenset(),
    "upstreams": frozenset({"wire", "chat", "tenancy", "errors", "settings.upstreams"}),
    "settings": frozenset({"stores.address"}),
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
    if allowed is None or module == "lazy" or module.partition(".")[0] == part:
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
        pytest.param("stores", "memory.prompt.window", False, id="stores-know-no-policy"),
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
        if len(path.read_text(encoding="utf-8").splitlines()) > MAX_FILE_LINES
    ]
    assert not wrong


def folders() -> dict[Path, list[Path]]:
    """The modules of each folder."""
    found: dict[Path, list[Path]] = {}
    for path in SOURCES:
        if path.name != "__init__.py":
            found.setdefault(path.parent, []).append(path)
    return found


def test_a_folder_has_a_page_of_modules() -> None:
    wrong = [named(folder) for folder, modules in folders().items() if len(modules) > MAX_MODULES]
    assert not wrong


def test_families_are_folders_and_no_prefixes() -> None:
    wrong = [
        f"{named(folder)}: {prefix}_"
        for folder, modules in folders().items()
        for prefix, count in Counter(path.stem.partition("_")[0] for path in modules).items()
        if count > MAX_OF_A_PREFIX
    ]
    assert not wrong


def test_a_name_means_one_thing() -> None:
    """A class that has its name in three modules is found by nobody."""
    classes = Counter(
        node.name for path in SOURCES for node in parse(path).body if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in classes.items() if count > MAX_OF_A_NAME] == []


def test_no_file_imports_itself_by_way_of_others() -> None:
    modules = {dotted(path): imports_of(path) for path in SOURCES}
    assert list(circles(modules)) == []


def dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path) -> set[str]:
    """The modules that a file needs when it is loaded; what only types need is not among them."""
    body = [node for node in parse(path).body if not is_for_types(node)]
    tree = ast.Module(body, [])
    froms = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module)
    named = {f"{node.module}.{alias.name}" for node in froms for alias in node.names}
    return {f"proxy.{name}" for name in imported(tree)} | named


def is_for_types(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def circles(modules: Mapping[str, set[str]]) -> Iterator[str]:
    """Modules that are left when those are taken away, again and again, that import no other."""
    left = {name: {other for other in its if other in modules} for name, its in modules.items()}
    while free := {name for name, its in left.items() if not its}:
        left = {name: its - free for name, its in left.items() if name not in free}
    yield from left


@pytest.mark.parametrize(
    ("modules", "found"),
    [
        pytest.param({"a": {"b"}, "b": set()}, [], id="a-line"),
        pytest.param({"a": {"b"}, "b": {"a"}}, ["a", "b"], id="a-circle"),
        pytest.param({"a": {"b"}, "b": {"c"}, "c": {"b"}}, ["a", "b", "c"], id="behind-it-too"),
    ],
)
def test_circles_are_found(modules: dict[str, set[str]], found: list[str]) -> None:
    assert list(circles(modules)) == found


def test_functions_stay_short_and_plain() -> None:
    wrong = [
        f"{named(path)}, {fault}"
        for path in EVERYTHING
        for node in statements(parse(path))
        for fault in faults(node)
    ]
    assert not wrong


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """All in a tree: what stands in an expression is no function, import or global."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            yield node
            yield from statements(node)


def faults(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Global):
        yield f"line {node.lineno}: global"
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        if (node.end_lineno or 0) - node.lineno >= MAX_FUNCTION_LINES:
            yield f"line {node.lineno}: {node.name} is longer than {MAX_FUNCTION_LINES} lines"
        for inner in statements(node):
            if isinstance(inner, ast.Import | ast.ImportFrom):
                yield f"line {inner.lineno}: import in {node.name}"


def test_long_functions_globals_and_inner_imports_are_found() -> None:
    body = "\n".join("    pass" for _ in range(MAX_FUNCTION_LINES))
    bad = f"def long():\n{body}\n\ndef inner():\n    global x\n    import os\n"
    found = [fault for node in statements(ast.parse(bad)) for fault in faults(node)]
    assert [fault.partition(": ")[2] for fault in found] == [
        "long is longer than 60 lines",
        "import in inner",
        "global",
    ]


def test_no_package_of_tests_has_an_init_file() -> None:
    assert not list((ROOT / "tests").rglob("__init__.py"))
