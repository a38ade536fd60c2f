"""The demo: what it shows is what happened, everywhere, and nothing stays behind."""

from __future__ import annotations

import html
import io
import re
import tempfile
from pathlib import Path

import pytest
from rich.console import Console

from docs.record import PICTURE, record
from proxy import demo
from proxy.demo.apis import Json, Used, completion_events
from proxy.demo.model import answer, said
from proxy.demo.screen import MARK, SCENES, from_memory
from tests.support.processes.program import running
from tests.support.waiting import PATIENCE

U1: Json = {"role": "user", "content": "one"}
A1: Json = {"role": "assistant", "content": "1"}
U2: Json = {"role": "user", "content": "two"}


def played(width: int = 100) -> list[list[str]]:
    """What the demo prints, a list of lines for each scene; the opening comes first."""
    console = Console(file=io.StringIO(), width=width)
    demo.run(console)
    assert isinstance(console.file, io.StringIO)
    return [part.splitlines() for part in console.file.getvalue().split("\n\n")]


@pytest.fixture(scope="module")
def shown() -> list[list[str]]:
    return played()


def marked(lines: list[str]) -> list[str]:
    """The messages that came from memory."""
    return [line.partition(MARK)[2].strip() for line in lines if MARK in line]


def answered(lines: list[str]) -> str:
    (line,) = [line for line in lines if line.strip().startswith("app gets")]
    return line.partition("assistant ")[2]


def test_every_scene_is_played_once_and_in_order(shown: list[list[str]]) -> None:
    titles = [lines[0].partition("  [")[0] for lines in shown[1:-1]]
    assert titles == [f"{number}. {scene.title}" for number, scene in enumerate(SCENES, 1)]


def test_the_first_request_has_no_memory_and_the_second_knows_the_name(
    shown: list[list[str]],
) -> None:
    assert marked(shown[1]) == []
    assert marked(shown[2]) == [
        "user      Hi, my name is Kai.",
        "assistant Nice to meet you, Kai!",
    ]
    assert answered(shown[2]) == "Your name is Kai."


def test_another_session_does_not_know_the_name(shown: list[list[str]]) -> None:
    assert marked(shown[3]) == []
    assert answered(shown[3]) == "I do not know. You have not told me."


def test_a_tool_result_goes_upstream_behind_its_call(shown: list[list[str]]) -> None:
    assert answered(shown[4]) == 'calls get_weather({"city": "Oslo"})'
    assert marked(shown[5])[-1] == 'assistant calls get_weather({"city": "Oslo"})'
    assert answered(shown[5]).startswith("Oslo has snow")


def test_the_small_window_leaves_the_name_out_and_the_history_still_has_it(
    shown: list[list[str]],
) -> None:
    assert any("(4 older messages are left out)" in line for line in shown[6])
    assert len(marked(shown[6])) == 4
    assert answered(shown[6]) == "I do not know. You have not told me."
    assert answered(shown[7]) == "Your name is Kai."


def test_recall_finds_the_name_in_another_session_of_the_user(shown: list[list[str]]) -> None:
    assert any("user: Hi, my name is Kai." in line for line in marked(shown[8]))
    assert answered(shown[8]) == "Your name is Kai."
    assert re.search(r"X-Memory-Recalled: [1-9]", "\n".join(shown[8]))


def test_a_summary_takes_the_place_of_what_leaves_the_window(shown: list[list[str]]) -> None:
    before, after, said = marked(shown[9]), marked(shown[10]), "user      Hi, my name is Kai."
    assert said in before and said not in after
    assert any("The human said: my name is Kai." in line for line in after)
    assert answered(shown[10]) == "Your name is Kai."


def test_the_headers_count_what_is_marked(shown: list[list[str]]) -> None:
    for lines in shown[1:8]:
        (count,) = re.findall(r"X-Memory-Messages: (\d+)", "\n".join(lines))
        assert int(count) == len(marked(lines))


def test_no_line_is_longer_than_a_terminal_and_all_of_it_is_ascii(shown: list[list[str]]) -> None:
    lines = [line for part in shown for line in part]
    assert max(map(len, lines)) <= 80
    assert "".join(lines).isascii()


def test_the_command_ends_well_without_a_terminal_and_leaves_no_files(
    tmp_path: Path,
) -> None:
    with running(["proxy", "demo"], tmp_path, {"TMPDIR": str(tmp_path)}) as process:
        out, errors = process.communicate(timeout=3 * PATIENCE)
    assert (process.returncode, errors) == (0, "")
    assert "Your name is Kai." in out
    assert "\x1b" not in out
    assert list(tmp_path.glob("memory-proxy*")) == []  # tiktoken's own cache may stay


def test_it_cleans_up_where_it_is_cut_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            assert list(tmp_path.glob("memory-proxy*"))
            raise OSError("nobody reads")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(OSError, match="nobody reads"):
        demo.run(Console(file=Closed(), width=100))
    assert list(tmp_path.glob("memory-proxy*")) == []


@pytest.mark.parametrize(
    ("sent", "received", "marks"),
    [
        pytest.param([U1], [U1], [False], id="nothing-added"),
        pytest.param([U2], [U1, A1, U2], [True, True, False], id="in-front"),
        pytest.param([U1], [U1, A1, U1], [True, True, False], id="the-same-words-again"),
        pytest.param([U1, U2], [U1, A1, U2], [False, True, False], id="between"),
    ],
)
def test_what_the_app_did_not_send_came_from_memory(
    sent: list[Json], received: list[Json], marks: list[bool]
) -> None:
    assert from_memory(sent, received) == marks


def test_the_pretended_model_streams_what_it_answers() -> None:
    for messages, tools in (([U1], []), ([{"role": "user", "content": "weather?"}], [{}])):
        message = answer(messages, tools)
        streamed = said(
            b"".join(completion_events(message, "chatcmpl-1", Used(9, 2, False))).decode()
        )
        assert streamed["content"] == (message["content"] or "")
        calls = [call["function"] for call in streamed.get("tool_calls", [])]
        assert calls == [call["function"] for call in message.get("tool_calls", [])]


def test_the_picture_in_the_readme_is_the_demo_of_today() -> None:
    """``make picture`` draws it anew."""
    assert lines_of(PICTURE.read_text(encoding="utf-8")) == lines_of(record())


def lines_of(picture: str) -> list[str]:
    """The texts in the order they stand in; colours and measures are rich's own business."""
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", picture)
    assert len(texts) > 20
    return [html.unescape(text) for text in texts]
