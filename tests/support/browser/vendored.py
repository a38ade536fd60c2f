"""The libraries in proxy/console/vendor: fetched again with npm by ``python -m`` this module.

Each file is the package's own, but for what only a bundler understands: imports by a package's
name, and the question whether this is production.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.processes.program import ROOT

VENDOR = ROOT / "proxy" / "console" / "vendor"


@dataclass(frozen=True, slots=True)
class Package:
    """``files``: where each lies in the package, and its name here; ``changed``: text in them."""

    name: str
    version: str
    files: dict[str, str]
    changed: dict[str, str] = field(default_factory=dict)


PACKAGES = (
    Package(
        "preact",
        "10.29.8",
        {
            "dist/preact.module.js": "preact.module.js",
            "hooks/dist/hooks.module.js": "hooks.module.js",
            "LICENSE": "preact.LICENSE",
        },
        {'from"preact"': 'from"./preact.module.js"'},
    ),
    Package("htm", "3.1.1", {"dist/htm.module.js": "htm.module.js", "LICENSE": "htm.LICENSE"}),
    Package(
        "uplot",
        "1.6.32",
        {
            "dist/uPlot.esm.js": "uplot.js",
            "dist/uPlot.d.ts": "uplot.d.ts",
            "dist/uPlot.min.css": "uplot.css",
            "LICENSE": "uplot.LICENSE",
        },
    ),
    Package(
        "@tanstack/virtual-core",
        "3.19.11",
        {
            "dist/esm/index.js": "virtual-core/index.js",
            "dist/esm/index.d.ts": "virtual-core/index.d.ts",
            "dist/esm/utils.js": "virtual-core/utils.js",
            "dist/esm/utils.d.ts": "virtual-core/utils.d.ts",
            "dist/esm/ios-gesture.js": "virtual-core/ios-gesture.js",
            "dist/esm/ios-gesture.d.ts": "virtual-core/ios-gesture.d.ts",
            "dist/esm/lazy-measurements.js": "virtual-core/lazy-measurements.js",
            "dist/esm/lazy-measurements.d.ts": "virtual-core/lazy-measurements.d.ts",
            "dist/esm/scroll-classifier.js": "virtual-core/scroll-classifier.js",
            "dist/esm/scroll-classifier.d.ts": "virtual-core/scroll-classifier.d.ts",
            "LICENSE": "virtual-core/LICENSE",
        },
        {'process.env.NODE_ENV !== "production"': "false"},
    ),
)

ABOUT = """# Libraries of others

Served as they are: no build step, nothing from other hosts. `make vendor` fetches them again and
writes this file. The import of `preact` in `hooks.module.js` names the file beside it, questions
whether `process.env.NODE_ENV` is not `"production"` are answered with `false`, and comments that
name source maps are left out; all else is as its authors published it. `preact.js` and
`preact.d.ts` are ours. The SHA-256 is that of the file here.

| file | package | version | licence | source | SHA-256 |
|---|---|---|---|---|---|
"""


def vendored(text: bytes, package: Package) -> bytes:
    """A file of a package as it is kept here."""
    lines = [
        line for line in text.splitlines(True) if not line.startswith(b"//# sourceMappingURL=")
    ]
    kept = b"".join(lines)
    for name, path in package.changed.items():
        kept = kept.replace(name.encode(), path.encode())
    return kept


def fetch(package: Package, folder: Path) -> str:
    """Put a package's files into VENDOR; its licence's name."""
    wanted = f"{package.name}@{package.version}"
    packed = _run(["npm", "pack", "--silent", wanted], folder).strip()
    _run(["tar", "xzf", packed], folder)
    unpacked = folder / "package"
    for source, name in package.files.items():
        target = VENDOR / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(vendored((unpacked / source).read_bytes(), package))
    licence: str = json.loads((unpacked / "package.json").read_text(encoding="utf-8"))["license"]
    return licence


def digest(name: str) -> str:
    return hashlib.sha256((VENDOR / name).read_bytes()).hexdigest()


def rows(package: Package, licence: str) -> str:
    return "".join(
        f"| `{name}` | {package.name} | {package.version} | {licence} | `{source}` "
        f"| `{digest(name)}` |\n"
        for source, name in package.files.items()
    )


def main() -> None:
    table = ""
    for package in PACKAGES:
        with tempfile.TemporaryDirectory() as folder:
            table += rows(package, fetch(package, Path(folder)))
    (VENDOR / "README.md").write_text(ABOUT + table, encoding="utf-8")


def _run(command: list[str], folder: Path) -> str:
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
