"""Commands on a store in Redis, with no proxy."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

from typer.testing import CliRunner

from proxy.cli import app
from tests.support.processes.redis import standalone

RUNNER = CliRunner()


def test_a_conversation_is_imported_shown_and_erased(tmp_path: Path) -> None:
    file = tmp_path / "talk.json"
    file.write_text(json.dumps([{"role": "user", "content": "Where is the library?"}]))
    session, tenant = f"s-{uuid.uuid4().hex}", f"t-{uuid.uuid4().hex}"
    environ = {"MEMORY_PROXY_SPOOL__PATH": f"{tmp_path}/spool.db", "COLUMNS": "200"}

    with standalone() as server:

        def run(*arguments: str) -> str:
            at = ["--store", server.url, "--tenant", tenant]
            result = RUNNER.invoke(app, [*arguments, *at], env=environ)
            assert result.exit_code == 0, result.output
            return result.output

        imported = run("sessions", "import", str(file), "--session", session)
        assert imported.startswith("1 session with 1 message ")
        assert "Where is the library?" in run("sessions", "show", session)
        assert "1 message" in run("sessions", "delete", session, "--yes")
        at = ["--store", server.url, "--tenant", tenant]
        gone = RUNNER.invoke(app, ["sessions", "list", *at], env=environ)
        assert (gone.exit_code, f"There is no tenant '{tenant}'" in gone.stderr) == (3, True)
