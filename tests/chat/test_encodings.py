"""Tables are read and left alone: no download, no copy, nothing kept twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from proxy.chat.models import tokens
from proxy.chat.models.tokens import Encode, cl100k_base, has_o200k_table
from tests.support.tables import O200K_FILE, o200k_table

COUNT = """
import json
from proxy.chat.models import tokens
from proxy.chat.models.tokens import Tokenizers
tokenizers = Tokenizers()
counters = [tokenizers.counter_for(model) for model in (None, "gpt-4o")]
print(json.dumps([[counter.name, counter.count_text("hello world")] for counter in counters]))
"""


@pytest.fixture
def reload() -> Callable[[], Encode]:
    """cl100k_base as if this process had not loaded it yet."""
    return cl100k_base.__wrapped__


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The table of a package that is not quite what it should be."""
    table = tmp_path / "data" / "cl100k_base.tiktoken"
    table.parent.mkdir()
    monkeypatch.setattr(tokens, "files", lambda _: tmp_path)
    return table


def counted(tmp_path: Path, **environ: str) -> list[list[object]]:
    """What a new process counts whose files can only lie in ``tmp_path``."""
    inherited = {
        name: text
        for name, text in os.environ.items()
        if name not in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR")
    }
    ran = subprocess.run(
        [sys.executable, "-c", COUNT],
        env={**inherited, "TMPDIR": str(tmp_path), "HOME": str(tmp_path), **environ},
        cwd=Path(__file__).parents[2],
        check=True,
        capture_output=True,
        text=True,
        timeout=30,
    )
    counts: list[list[object]] = json.loads(ran.stdout)
    return counts


@pytest.mark.parametrize(
    "environ",
    [
        pytest.param({}, id="no-cache-named"),
        pytest.param({"TIKTOKEN_CACHE_DIR": "{folder}/missing"}, id="missing"),
        pytest.param({"TIKTOKEN_CACHE_DIR": "{folder}/read-only"}, id="read-only"),
        pytest.param({"DATA_GYM_CACHE_DIR": "/dev/null"}, id="no-folder"),
        pytest.param({"TIKTOKEN_CACHE_DIR": ""}, id="caching-off"),
    ],
)
def test_counting_writes_nothing_whatever_the_cache_is(
    environ: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "read-only"
    folder.mkdir(mode=0o500)
    found = counted(
        tmp_path, **{name: text.format(folder=tmp_path) for name, text in environ.items()}
    )
    assert found == [["cl100k_base (offline)", 2]] * 2
    assert list(tmp_path.rglob("*")) == [folder]


def test_a_table_in_a_read_only_cache_is_used(tmp_path: Path) -> None:
    folder = tmp_path / "read-only"
    folder.mkdir()
    table = folder / O200K_FILE
    table.write_bytes(o200k_table())
    table.chmod(0o400)
    folder.chmod(0o500)
    found = counted(tmp_path, TIKTOKEN_CACHE_DIR=str(folder))
    assert found == [["cl100k_base (offline)", 2], ["o200k_base", 2]]
    assert set(tmp_path.rglob("*")) == {folder, table}


def test_loading_takes_a_moment_and_keeps_no_second_copy(reload: Callable[[], Encode]) -> None:
    began = time.process_time()
    reload()
    assert time.process_time() - began < 1.0
    tracemalloc.start()
    try:
        encode = reload()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(encode("hello world")) == 2
    assert kept < 1_000_000


def test_a_table_is_loaded_once_a_process() -> None:
    assert cl100k_base() is cl100k_base()


def test_a_package_without_its_table_is_an_error(
    package: Path, reload: Callable[[], Encode]
) -> None:
    with pytest.raises(FileNotFoundError):
        reload()


@pytest.mark.parametrize(
    "table", [b"", b"IQ== 0\nIg== 1\n", b"not a table"], ids=["empty", "cut", "other"]
)
def test_a_damaged_table_in_the_package_is_an_error(
    table: bytes, package: Path, reload: Callable[[], Encode]
) -> None:
    package.write_bytes(table)
    with pytest.raises(ValueError, match="damaged"):
        reload()


def test_tables_are_looked_for_where_tiktoken_looks(tmp_path: Path) -> None:
    (tmp_path / O200K_FILE).write_bytes(o200k_table())
    folder = str(tmp_path)
    assert has_o200k_table({"TIKTOKEN_CACHE_DIR": folder})
    assert has_o200k_table({"DATA_GYM_CACHE_DIR": folder})
    assert not has_o200k_table({"TIKTOKEN_CACHE_DIR": "/nowhere", "DATA_GYM_CACHE_DIR": folder})
    assert not has_o200k_table({"TIKTOKEN_CACHE_DIR": ""})
