"""The alert rules and the dashboard name metrics that there are; the unit is one."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proxy.telemetry import Telemetry
from tests.support.pages import read
from tests.support.processes.program import ROOT

CONFIG = ROOT / "config"


def metrics() -> set[str]:
    """All names of samples that /metrics has or can have."""
    text = Telemetry().render().decode()
    found: set[str] = set()
    for name, kind in re.findall(r"^# TYPE (\w+) (\w+)", text, re.MULTILINE):
        ends = ("_bucket", "_sum", "_count") if kind == "histogram" else ("",)
        found |= {name + end for end in ends}
    return found


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((CONFIG / "grafana.json").read_text())["panels"]
    return found


def asked() -> Iterator[str]:
    """The expressions of rules and panels."""
    yield from re.findall(r"^ +expr: (.+)$", (CONFIG / "alerts.yaml").read_text(), re.MULTILINE)
    yield from (target["expr"] for panel in panels() for target in panel["targets"])


@pytest.mark.parametrize("expression", list(asked()))
def test_an_expression_asks_for_metrics_that_there_are(expression: str) -> None:
    bare = re.sub(r"\{[^}]*\}", "", expression)
    named = set(re.findall(r"\b(?:memory|process)_\w+", bare))
    assert named
    assert named <= metrics()


def test_every_rule_has_a_name_of_its_own_and_says_what_is_wrong() -> None:
    text = (CONFIG / "alerts.yaml").read_text()
    names = re.findall(r"- alert: (\w+)$", text, re.MULTILINE)
    assert len(set(names)) == len(names) == text.count("summary: ") == text.count("expr: ")


def test_the_panels_lie_side_by_side() -> None:
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels()]
    assert len(set(places)) == len({panel["id"] for panel in panels()}) == len(panels())


def test_the_service_waits_longer_than_the_proxy_and_writes_only_its_own_folder() -> None:
    unit = (CONFIG / "memory-proxy.service").read_text()
    assert "../config/memory-proxy.service" in read("deployment.md")
    for line in (
        "TimeoutStopSec=40",
        "LimitNOFILE=65536",
        "ProtectSystem=strict",
        "DynamicUser=yes",
    ):
        assert f"\n{line}\n" in unit


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_the_service_is_one_that_systemd_takes(tmp_path: Path) -> None:
    unit = (CONFIG / "memory-proxy.service").read_text()
    own = tmp_path / "memory-proxy.service"
    own.write_text(unit.replace("/opt/memory-proxy/bin/memory-proxy", "/bin/true"))
    told = subprocess.run(
        ["systemd-analyze", "verify", str(own)], capture_output=True, text=True, timeout=60
    )
    assert (told.returncode, told.stderr) == (0, "")
