from __future__ import annotations

import json
import random
import time
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

import pytest
import tiktoken.load
from hypothesis import given
from hypothesis import strategies as st

from proxy.chat.message import read_stored
from proxy.chat.models import tokens
from proxy.chat.models.tokens import PIECE, Encode, TokenCounter, Tokenizers, bytes_counter
from tests.support.tables import O200K_FILE, o200k_table

PROSE = (
    "The history keeps everything, and memory is a view of it; nobody's words are lost.\n"
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich (1,234.56 €).\n\n"
    "def advance(log, start):\n    return [entry for entry in log if entry >= start]\n"
)


Oracle = Callable[[str, str], int]


@pytest.fixture(scope="module")
def oracle() -> Oracle:
    """Tokens of a text in an encoding, by another implementation."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # it loads its tables in an old way
        package = import_module("bpe_openai")
        encodings = {name: package.get_encoding(name) for name in ("cl100k_base", "o200k_base")}
    return lambda encoding, text: len(encodings[encoding].encode_ordinary(text))


@pytest.fixture(scope="module")
def cl100k() -> TokenCounter:
    return Tokenizers({"TIKTOKEN_CACHE_DIR": "/nowhere"}).counter_for(None)


def words(length: int) -> TokenCounter:
    """A counter that counts characters: its arithmetic can be followed by hand."""
    return TokenCounter("characters", lambda text: len(text) * length)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of tiktoken's with o200k_base in it, and no network."""
    path = tmp_path / O200K_FILE
    path.write_bytes(o200k_table())
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))

    def refuse(blobpath: str) -> bytes:
        if "://" in blobpath:
            raise AssertionError(f"asked the network for {blobpath}")
        return Path(blobpath).read_bytes()

    monkeypatch.setattr(tiktoken.load, "read_file", refuse)
    return path


def test_texts_are_counted_like_another_implementation_of_the_encoding(
    cl100k: TokenCounter, oracle: Oracle
) -> None:
    for text in (PROSE, "今日は😀", " ", "\n\n\n", "<|endoftext|>", "a" * 300):
        assert cl100k.count_text(text) == oracle("cl100k_base", text)
    assert cl100k.count_text("") == 0


def test_cutting_into_pieces_over_counts_by_less_than_a_hundredth(
    cl100k: TokenCounter, oracle: Oracle
) -> None:
    rng = random.Random(7)
    letters = "".join(rng.choices("abcdefghij KLMNO.,;0123", k=60_000))
    for text in (PROSE * 300, letters, letters.replace(" ", ""), "今日はとても良い天気" * 3_000):
        exact = oracle("cl100k_base", text)
        assert exact <= cl100k.count_text(text) <= exact * 1.01


def test_text_that_is_cut_at_spaces_is_counted_exactly(cl100k: TokenCounter) -> None:
    assert cl100k.count_text("memory" + " memory" * 9_999) == 10_000


HOSTILE = {
    "one letter": "a" * 1_000_000,
    "no spaces": "aB3+/" * 200_000,
    "spaces": " " * 1_000_000,
    "line feeds": "\n" * 1_000_000,
    "ideographs": "".join(map(chr, range(0x4E00, 0x9E00))) * 50,
    "accents": "e\u0301" * 500_000,
    "emoji": "👩‍👩‍👧‍👦" * 90_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_counted_in_linear_time(cl100k: TokenCounter, text: str) -> None:
    began = time.process_time()
    assert cl100k.count_text(text) >= len(text) / 130
    assert time.process_time() - began < 3.0


def test_half_a_surrogate_pair_is_counted(cl100k: TokenCounter) -> None:
    assert cl100k.count_text("a \ud83d b") > 1
    assert bytes_counter().count_text("a\ud83d") == 1


@given(st.lists(st.integers(0, 2 * PIECE), max_size=8))
def test_pieces_are_the_whole_text(lengths: list[int]) -> None:
    text = " ".join("a" * length for length in lengths)
    seen: list[str] = []

    def measure(piece: str) -> int:
        seen.append(piece)
        return len(piece)

    assert TokenCounter("characters", measure).count_text(text) == len(text)
    assert "".join(seen) == text
    assert all(len(piece) <= PIECE for piece in seen)


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("gpt-4o", "o200k_base"),
        ("gpt-4.1-mini", "o200k_base"),
        ("gpt-5", "o200k_base"),
        ("o3-mini", "o200k_base"),
        ("openai/gpt-4o-2024-08-06", "o200k_base"),
        ("ft:gpt-4o:acme::1", "o200k_base"),
        ("gpt-oss-20b", "o200k_base"),
        ("gpt-9-turbo", "o200k_base"),
        ("o9", "o200k_base"),
        ("gpt-4", "cl100k_base (offline)"),
        ("gpt-3.5-turbo", "cl100k_base (offline)"),
        ("llama3.2", "cl100k_base (offline)"),
        ("", "cl100k_base (offline)"),
        (None, "cl100k_base (offline)"),
        ("x" * 100_000, "cl100k_base (offline)"),
    ],
)
def test_a_model_is_counted_in_its_own_encoding(
    cache: Path, model: str | None, encoding: str
) -> None:
    assert Tokenizers().counter_for(model).name == encoding


def test_o200k_counts_like_another_implementation(cache: Path, oracle: Oracle) -> None:
    counter = Tokenizers().counter_for("gpt-4o")
    assert counter.count_text(PROSE) == oracle("o200k_base", PROSE)


def test_without_its_table_a_model_is_counted_in_cl100k_and_nothing_is_downloaded(
    cache: Path,
) -> None:
    cache.unlink()
    assert Tokenizers().counter_for("gpt-4o").name == "cl100k_base (offline)"
    assert Tokenizers().warm() == ("cl100k_base (offline)",)


def test_a_damaged_table_is_left_alone(cache: Path) -> None:
    damaged = cache.read_bytes()[:-1]
    cache.write_bytes(damaged)
    assert Tokenizers().counter_for("gpt-4o").name == "cl100k_base (offline)"
    assert cache.read_bytes() == damaged


def test_warming_up_loads_all_and_each_once(cache: Path) -> None:
    tokenizers = Tokenizers()
    assert tokenizers.warm() == ("o200k_base", "cl100k_base (offline)")
    assert tokenizers.counter_for("gpt-4o") is tokenizers.counter_for("gpt-5")
    assert repr(tokenizers.counter_for("gpt-4o")) == "TokenCounter('o200k_base')"


def test_it_is_said_which_table_counts_for_which_encoding(cache: Path) -> None:
    offline = "cl100k_base (offline)"
    assert Tokenizers().in_use() == {"o200k_base": "o200k_base", "others": offline}
    cache.unlink()
    assert Tokenizers().in_use() == {"o200k_base": offline, "others": offline}


@pytest.mark.parametrize("error", [FileNotFoundError, ValueError])
def test_without_any_table_a_third_of_the_bytes_is_counted(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> Encode:
        raise error

    monkeypatch.setattr(tokens, "cl100k_base", broken)
    counter = Tokenizers({}).counter_for(None)
    assert counter.name == "bytes/3"
    assert [counter.count_text(text) for text in ("", "a", "abcd", "é日")] == [0, 1, 2, 2]


# --- messages ------------------------------------------------------------------------------------


def count(message: object, counter: TokenCounter | None = None) -> int:
    return (counter or words(1)).count(json.dumps(message).encode())


def test_a_message_costs_its_text_and_a_little_more(cl100k: TokenCounter) -> None:
    assert count({"role": "user", "content": "hello world"}, cl100k) == 2 + 4
    assert count({"role": "user", "content": ""}) == 4
    assert count({"role": "user", "content": "hi", "name": "kai"}) == 4 + 2 + 3 + 1
    assert count({"role": "assistant", "content": None, "refusal": "No."}) == 4 + 3


def test_json_and_what_was_read_from_it_count_the_same() -> None:
    fields = {"role": "user", "content": [{"type": "text", "text": "hello"}]}
    raw = json.dumps(fields).encode()
    assert words(1).count(raw) == words(1).count(read_stored(raw)) == words(1).count(fields) == 9


def test_calls_cost_their_names_and_arguments() -> None:
    function = {"name": "get", "arguments": '{"a":1}'}
    asked = {"role": "assistant", "content": None}
    calls = [{"id": "c" * 99, "type": "function", "function": function}]
    assert count({**asked, "tool_calls": calls}) == 4 + 3 + 3 + 7
    assert count({**asked, "function_call": function}) == 4 + 3 + 3 + 7
    custom = [{"id": "c", "type": "custom", "custom": {"name": "f", "input": "x" * 50}}]
    assert count({**asked, "tool_calls": custom}) > 50


def test_reasoning_and_other_extras_cost_nothing() -> None:
    assert count({"role": "assistant", "content": "a", "reasoning_content": "b" * 99}) == 5


def test_inline_media_are_never_counted_as_text(cl100k: TokenCounter) -> None:
    data = "A" * 400_000
    parts = [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
        {"type": "input_audio", "input_audio": {"data": data, "format": "mp3"}},
        {"type": "file", "file": {"file_data": data}},
        {"type": "hologram", "hologram": {"url": f"data:x/y;base64,{data}"}},
        {"type": "blob", "data": data},
    ]
    for part in parts:
        assert 0 < count({"role": "user", "content": [part]}, cl100k) < 7_000


def in_its_api(*parts: Mapping[str, object], role: str = "assistant", said: str = "done") -> object:
    return {"role": role, "content": said, "native": {"api": "any", "parts": list(parts)}}


WORDS: dict[str, object] = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "done", "annotations": [{"title": "x" * 99}]}],
}


@pytest.mark.parametrize(
    "made",
    [
        {"type": "mcp_call", "name": "f", "arguments": "{}", "output": "x" * 5_000},
        {"type": "code_interpreter_call", "code": "x" * 5_000, "outputs": None},
        {"type": "mcp_tool_result", "content": [{"type": "text", "text": "x" * 5_000}]},
        {"type": "document", "source": {"type": "text", "data": "x" * 5_000}},
        {"type": "other", "data": "x" * 5_000},
    ],
    ids=lambda made: made["type"],
)
def test_what_an_upstreams_own_tools_made_counts_as_it_goes_back(made: dict[str, object]) -> None:
    assert 5_000 < count(in_its_api(made, WORDS)) < 5_200


def test_of_two_forms_the_larger_counts() -> None:
    call = {"type": "function_call", "name": "get", "arguments": "{}"}
    use = {"type": "tool_use", "name": "get", "input": {}}
    found = {"type": "found"}
    said = count({"role": "assistant", "content": "done"})
    assert count(in_its_api(WORDS)) == count(in_its_api({"type": "text", "text": "done"})) == said
    assert count(in_its_api(WORDS, found, call)) == said + len('{"type":"found"}') + 3 + 5
    assert count(in_its_api(use, found)) == said - 4 + len('{"type":"found"}') + 3 + 3
    assert count(in_its_api(found, said="x" * 99)) == said - 4 + 99


def test_thoughts_cost_nothing_beside_what_was_said() -> None:
    thoughts: list[dict[str, object]] = [
        {"type": "reasoning", "summary": [], "encrypted_content": "A" * 9_000},
        {"type": "thinking", "thinking": "hm" * 999, "signature": "A" * 9_000},
        {"type": "redacted_thinking", "data": "A" * 9_000},
    ]
    found: dict[str, object] = {"type": "found"}
    assert count(in_its_api(*thoughts, WORDS)) == 4 + 4
    assert count(in_its_api(*thoughts, WORDS, found)) == 4 + 4 + len('{"type":"found"}')


def test_what_is_encrypted_costs_three_sixteenths_of_its_base64() -> None:
    page = {"type": "web_search_result", "encrypted_content": "A" * 16_000}
    found = count(in_its_api({"type": "web_search_tool_result", "content": [page]}))
    assert 3_000 < found < 3_200


@pytest.mark.parametrize("native", [5, {}, {"parts": 5}, {"parts": [5]}, {"parts": []}])
def test_a_field_of_the_same_name_that_is_something_else_costs_nothing(native: object) -> None:
    assert count({"role": "user", "content": "hi", "native": native}) == 4 + 2


PICTURE = "data:image/png;base64," + "A" * 400_000


@pytest.mark.parametrize(
    ("part", "tokens"),
    [
        ({"type": "computer_screenshot", "image_url": PICTURE}, 765),
        ({"type": "input_image", "image_url": PICTURE}, 765),
        ({"type": "input_image", "image_url": PICTURE, "detail": "low"}, 85),
        ({"type": "input_image", "file_id": "file_1"}, 765),
        ({"type": "image", "source": {"type": "base64", "data": "A" * 400_000}}, 765),
        ({"type": "image", "source": {"type": "url", "url": "https://a/b.png"}}, 765),
        ({"type": "image", "url": PICTURE}, 765),
        ({"type": "image_generation_call", "result": "A" * 400_000}, 765),
        ({"type": "input_file", "file_data": "A" * 400_000}, 6_000),
        ({"type": "input_file", "file_id": "file_1"}, 765),
        ({"type": "document", "source": {"type": "base64", "data": "A" * 400_000}}, 6_000),
        ({"type": "new", "source": {"type": "base64", "data": "A" * 400_000}}, 6_000),
        ({"type": "new", "where": PICTURE}, 765),
    ],
)
def test_media_of_other_apis_cost_by_the_same_formula(part: dict[str, object], tokens: int) -> None:
    output = {"type": "function_call_output", "output": [part]}
    assert tokens < count(in_its_api(output, role="tool")) < tokens + 150


@pytest.mark.parametrize("raw", [b"", b"{", b"5", b"[]", b"\xff", b'{"content":{"a":[1]}}', b"{}"])
def test_what_is_no_message_is_counted_somehow(raw: bytes) -> None:
    assert words(1).count(raw) >= 3


def test_a_message_nested_deeply_is_counted_by_its_bytes() -> None:
    raw = b'{"content":' + b"[" * 5_000 + b"]" * 5_000 + b"}"
    assert words(1).count(raw) > 10_000


# Lines that are counted again and again

_PARTS = (
    "It's 12:30.",
    "word ",
    "…",
    "你好",
    "/etc",
    "a\u0301b",
    "  ",
    "don't",
    "1,000",
    "!?",
    "x" * 900,
)
_ENDS = (
    "\n",
    "\n\n",
    " \n",
    "\n ",
    "\t\n\t",
    "\n/",
    "\r\n",
    "\u2028",
    "\x85",
    "\n\u3000",
    "\n\x1c",
    "\n\v",
)


@pytest.mark.parametrize("seed", range(5))
def test_lines_counted_one_by_one_are_the_whole(seed: int) -> None:
    counter, drawn = Tokenizers().counter_for(None), random.Random(seed)
    for _ in range(100):
        text = "".join(drawn.choices(_PARTS + 2 * _ENDS, k=drawn.randint(0, 60)))
        assert counter.count_lines(text) == counter.count_text(text)


def test_a_line_is_counted_once() -> None:
    counted: list[str] = []

    def measure(text: str) -> int:
        counted.append(text)
        return len(text)

    counter = TokenCounter("characters", measure, by_line=True)
    assert counter.count_lines("one\ntwo\n  too\nthree") == 19
    assert counter.count_lines("three\ntwo\n  too\none\n") == 20
    assert counted == ["one\n", "two\n  too\n", "three", "three\n"]


def test_a_counter_that_rounds_counts_the_whole() -> None:
    counter = bytes_counter()
    assert counter.count_lines("a\nb\nc\n") == counter.count_text("a\nb\nc\n") == 2


def test_lines_are_not_kept_as_text_nor_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "LINES", 10)
    counter = TokenCounter("characters", len, by_line=True)
    for n in range(100):
        assert counter.count_lines(f"secret {n}\n") == len(f"secret {n}\n")
    assert len(counter._lines) <= 10
    assert all(isinstance(known, int) for known in counter._lines)
