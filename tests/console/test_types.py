"""The console's modules: their types, and the logic that needs no browser."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from proxy.console.pages import FOLDER
from tests.support.processes.node import FOLDER as NODE
from tests.support.processes.node import node_with_packages

HERE = Path(__file__).parent

STRICT = {
    "allowJs": True,
    "checkJs": True,
    "lib": ["es2023", "dom", "dom.iterable"],
    "module": "es2022",
    "moduleResolution": "bundler",
    "noEmit": True,
    "noUncheckedIndexedAccess": True,
    "noUnusedLocals": True,
    "noUnusedParameters": True,
    "skipLibCheck": True,
    "strict": True,
    "target": "es2022",
    "types": [],
}


@pytest.mark.node
def test_the_types_hold(tmp_path: Path) -> None:
    project = {
        "compilerOptions": STRICT,
        "include": [f"{FOLDER}/**/*.js"],
        "exclude": [f"{FOLDER}/vendor"],
    }
    (tmp_path / "tsconfig.json").write_text(json.dumps(project), encoding="utf-8")
    compiler = NODE / "node_modules" / "typescript" / "bin" / "tsc"
    command = [node_with_packages(), str(compiler), "--project", str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=170)
    assert (ran.returncode, ran.stdout) == (0, "")


@pytest.mark.node
@pytest.mark.parametrize("path", sorted(HERE.glob("*.test.mjs")), ids=lambda path: path.name)
def test_the_logic_holds(path: Path) -> None:
    command = [node_with_packages(), "--test", str(path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=110)
    assert ran.returncode == 0, ran.stdout + ran.stderr
