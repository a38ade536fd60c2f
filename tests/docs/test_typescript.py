"""The blocks in TypeScript are type-checked against the SDK that they use."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.pages import all_blocks
from tests.support.processes.node import FOLDER, node_with_packages

SECONDS = 100
OPTIONS = {
    "strict": True,
    "noEmit": True,
    "skipLibCheck": True,
    "target": "es2022",
    "module": "nodenext",
    "moduleResolution": "nodenext",
    "lib": ["es2022", "dom", "dom.asynciterable"],
    "types": [],
}
NODE = "declare const process: { stdout: { write(text: string): void } };\n"
"""As much of Node's own types as the blocks use."""


@pytest.mark.node
@pytest.mark.xdist_group("node")
def test_the_blocks_in_typescript_are_well_typed(tmp_path: Path) -> None:
    node = node_with_packages()
    blocks = [block for block in all_blocks("typescript") if block.untested is None]
    assert blocks
    (tmp_path / "node_modules").symlink_to(FOLDER / "node_modules")
    (tmp_path / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    (tmp_path / "tsconfig.json").write_text(
        json.dumps({"compilerOptions": OPTIONS}), encoding="utf-8"
    )
    (tmp_path / "node.d.ts").write_text(NODE, encoding="utf-8")
    for block in blocks:
        name = f"{block.page.removesuffix('.md')}-{block.line}.ts"
        (tmp_path / name).write_text(block.text, encoding="utf-8")
    compiler = FOLDER / "node_modules" / "typescript" / "bin" / "tsc"
    checked = subprocess.run(
        [node, str(compiler), "--project", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        cwd=tmp_path,
    )
    assert checked.returncode == 0, checked.stdout
