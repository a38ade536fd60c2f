"""What a tag sets off: .github/workflows/release.yml, read and not run."""

from __future__ import annotations

import re
from typing import Any

import yaml

from proxy import __version__
from tests.support.processes.program import ROOT

TEXT = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
WORKFLOW: dict[Any, Any] = yaml.safe_load(TEXT)
JOBS: dict[str, Any] = WORKFLOW["jobs"]
PUBLISHING = ("wheel", "image")


def commands(job: str) -> str:
    return "\n".join(step.get("run", "") for step in JOBS[job]["steps"])


def used(job: str) -> set[str]:
    return {step["uses"].partition("@")[0] for step in JOBS[job]["steps"] if "uses" in step}


def test_only_a_tag_releases() -> None:
    assert WORKFLOW[True] == {"push": {"tags": ["v*"]}}  # YAML takes "on" for a switch


def test_nothing_is_published_before_it_is_tested_audited_and_built() -> None:
    for job in PUBLISHING:
        assert {*JOBS[job]["needs"]} == {"test", "test-release", "audit", "build"}
    assert commands("test").strip() == ".ci/run"
    assert commands("test-release").strip() == "make test-release"
    assert "pip-audit" in commands("audit")
    assert "pip-audit" not in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "make dist" in commands("build")


def test_what_is_published_is_attested() -> None:
    for job in ("build", "image"):
        assert "actions/attest-build-provenance" in used(job)
        assert JOBS[job]["permissions"]["attestations"] == "write"
    assert "pypa/gh-action-pypi-publish" in used("wheel")
    assert "docker/build-push-action" in used("image")


def test_a_job_may_write_only_what_it_publishes() -> None:
    assert WORKFLOW["permissions"] == {"contents": "read"}
    may = {name: job.get("permissions", {}) for name, job in JOBS.items()}
    writing = {name for name, each in may.items() if {*each.values()} - {"read"}}
    assert writing == {"build", *PUBLISHING}
    assert all(each.get("contents", "read") == "read" for each in may.values())
    assert re.findall(r"secrets\.(\w+)", TEXT) == ["GITHUB_TOKEN"]


def test_the_tag_is_held_against_the_one_place_of_the_version() -> None:
    assert 'grep -Fqx "__version__ = \\"${GITHUB_REF_NAME#v}\\"" proxy/__init__.py' in TEXT
    lines = (ROOT / "proxy" / "__init__.py").read_text(encoding="utf-8").splitlines()
    assert f'__version__ = "{__version__}"' in lines


def test_every_job_ends_and_keeps_no_credentials() -> None:
    for job in JOBS.values():
        assert 0 < job["timeout-minutes"] <= 60
        for step in job["steps"]:
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False
