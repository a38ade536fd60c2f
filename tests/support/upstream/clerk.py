"""A model that coding agents ask: what it answers follows from the prompt alone.

Asked for the note it reads that with the agent's own tool and says what is in it; told to send a
helper it has the agent begin another one; asked for a summary it gives one.  Nothing else is asked
of it: whoever looks for other hosts through it is turned away.
"""

from __future__ import annotations

from typing import Any

from tests.support.upstream.answers import Script, error_answer
from tests.support.upstream.connection import Request
from tests.support.upstream.weatherman import Weatherman, spoken, text_of

NOTE = "The sea is green."
READ = "What does the note say?"
HELP = "Send a helper."
HELPER = "Count the boats."
SUMMARY = "<analysis>Brief.</analysis><summary>They said: my name is Kai.</summary>"

READERS: dict[str, dict[str, str]] = {
    "Read": {"file_path": "note.txt"},
    "exec_command": {"cmd": "cat note.txt"},
}
"""The tools that show a file, and what they are given."""

_HELPER = "Agent"


class Clerk(Weatherman):
    """An answer for ``ScriptedUpstream.always``."""

    def __call__(self, request: Request) -> Script:
        if request.method != "POST":
            return error_answer(403, "nobody is there")
        return super().__call__(request)

    def _answer(self, body: dict[str, Any]) -> tuple[str | None, list[dict[str, Any]]]:
        messages = [each for each in body["messages"] if each["role"] != "system"]
        offered = [tool["function"].get("name") for tool in body["tools"]]
        asked, last = text_of(messages[-1]), messages[-1]
        if "create a detailed summary" in asked or "CONTEXT CHECKPOINT" in asked:
            return SUMMARY, []
        if last["role"] == "tool":
            return f"It says: {NOTE}" if NOTE in asked else "Done.", []
        if READ in asked:
            tool = next(name for name in READERS if name in offered)
            return None, [self._call(tool, READERS[tool])]
        if HELP in asked:
            given = {"description": "count", "prompt": HELPER}
            return None, [self._call(_HELPER, given)]
        return spoken(messages), []
