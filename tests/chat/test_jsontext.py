from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import repeat

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.chat import jsontext
from proxy.process.runtime import prepare_threads

HALF = rb"\ud83d"

texts = st.text(st.characters(codec=None), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(texts, values, max_size=4), st.sampled_from([None, 2]))
def test_an_object_split_and_joined_is_the_same_value_with_untouched_pieces(
    fields: dict[str, object], indent: int | None
) -> None:
    raw = json.dumps(fields, indent=indent).encode()
    pieces = jsontext.fields(raw)
    assert list(pieces) == list(json.loads(raw))
    assert all(piece in raw for piece in pieces.values())
    assert json.loads(jsontext.join_fields(pieces)) == json.loads(raw)


@given(st.lists(values, max_size=4), st.sampled_from([None, 2]))
def test_a_list_split_and_joined_is_the_same_value(items: list[object], indent: int | None) -> None:
    raw = json.dumps(items, indent=indent).encode()
    assert json.loads(jsontext.join_items(jsontext.items(raw))) == json.loads(raw)


@given(values)
def test_values_are_read_as_the_standard_library_reads_them(value: object) -> None:
    raw = json.dumps(value).encode()
    assert jsontext.decode(raw) == json.loads(raw)
    assert json.loads(jsontext.encode(value)) == json.loads(raw)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[1]",
        b"null",
        b'{"a":1} x',
        b'{"a":NaN}',
        b'{"a":01}',
        b'{"a":1,}',
        b'{"a" 1}',
        b'\xef\xbb\xbf{"a":1}',
        b'{"a":"\x01"}',
        b'{"\xff":1}',
        b"{1:2}",
    ],
)
@pytest.mark.parametrize("half", [b"", HALF], ids=["plain", "with half a pair"])
def test_what_is_no_object_is_refused_on_both_ways(raw: bytes, half: bytes) -> None:
    broken = raw.replace(b'"a"', b'"' + half + b'"')
    with pytest.raises(ValueError):
        jsontext.fields(broken)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"x":NaN, "h":"\\ud83d"}',
        b'{"h":"\\ud83d",}',
        b'{"h":"\\ud83d"} {}',
        b'{"h":"\\ud83d" "x":1}',
        b'["\\ud83d"]',
        b'\xef\xbb\xbf{"h":"\\ud83d"}',
        b'{"h":"\\ud83d\xff"}',
    ],
)
def test_the_way_round_for_half_a_pair_is_as_strict(raw: bytes) -> None:
    with pytest.raises(ValueError):
        jsontext.fields(raw)


@pytest.mark.parametrize(
    "raw", [b'["\\ud83d",]', b'["\\ud83d"', b'["\\ud83d"] 1', b'{"\\ud83d":1}']
)
def test_broken_lists_with_half_a_pair_are_refused(raw: bytes) -> None:
    with pytest.raises(ValueError):
        jsontext.items(raw)


def test_half_a_pair_keeps_all_bytes_around_it() -> None:
    raw = b' { "a" : 1e999 ,"h":"\\uD83D", "big":123456789012345678901234567890 , "l" : [ 1, 2 ] } '
    assert jsontext.fields(raw) == {
        "a": b"1e999",
        "h": b'"\\uD83D"',
        "big": b"123456789012345678901234567890",
        "l": b"[ 1, 2 ]",
    }
    assert jsontext.items(b' [ "\\ud83d" , {"a": 1} ] ') == [b'"\\ud83d"', b'{"a": 1}']


def test_empty_objects_and_lists_have_nothing_in_them() -> None:
    assert jsontext.fields(b" { } ") == {}
    assert jsontext.items(b" [ ] ") == []


def test_the_last_of_equal_keys_wins() -> None:
    assert jsontext.fields(b'{"a":1,"b":2,"a":3}') == {"a": b"3", "b": b"2"}
    assert jsontext.fields(b'{"a":"\\ud83d","b":2,"a":3}') == {"a": b"3", "b": b"2"}


def test_halves_that_meet_are_joined_and_lone_ones_are_kept_or_replaced() -> None:
    assert jsontext.join_surrogates("a\ud83d" + "\ude00b") == "a😀b"
    assert jsontext.join_surrogates("\ude00\ud83d") == "\ude00\ud83d"
    assert jsontext.well_formed("a\ud83d" + "\ude00b") == "a😀b"
    assert jsontext.well_formed("x\ud83dy") == "x\ufffdy"


def test_text_with_half_a_pair_is_written_as_ascii() -> None:
    assert jsontext.encode({"a": "é\ud83d"}) == b'{"a":"\\u00e9\\ud83d"}'
    assert jsontext.canonical({"b": 1, "a": "\ud83d"}) == b'{"a":"\\ud83d","b":1}'


@pytest.mark.parametrize(
    ("a", "b"),
    [(b"1.0", b"1"), (b"1e2", b"100"), (b"-0.0", b"0"), (b'{"a":1,"b":2.50}', b'{"b":2.5, "a":1}')],
)
def test_equal_values_have_equal_canonical_bytes(a: bytes, b: bytes) -> None:
    assert jsontext.canonical(jsontext.value(a)) == jsontext.canonical(jsontext.value(b))


@pytest.mark.parametrize(("a", "b"), [(b"1", b'"1"'), (b"1e999", b"-1e999"), (b"1", b"1.5")])
def test_different_values_have_different_canonical_bytes(a: bytes, b: bytes) -> None:
    assert jsontext.canonical(jsontext.value(a)) != jsontext.canonical(jsontext.value(b))


@pytest.mark.parametrize("open, close", [(b"[", b"]"), (b'{"a":', b"}")], ids=["lists", "objects"])
def test_what_is_nested_too_deeply_is_unreadable_and_never_more_than_that(
    open: bytes, close: bytes
) -> None:
    for depth in (150, 5_000):
        with pytest.raises(jsontext.UNREADABLE):
            jsontext.decode_shallow(open * depth + b"1" + close * depth)
    assert jsontext.decode_shallow(open * 20 + b"1" + close * 20) is not None
    assert jsontext.decode_shallow(b"[" + b"[]," * 500 + b"1]") is not None


@pytest.mark.parametrize(
    ("raw", "read"),
    [
        (
            b'{"a":NaN,"b":[Infinity,-Infinity],"c":"NaN"}',
            {"a": None, "b": [None, None], "c": "NaN"},
        ),
        (b'{"a":-1e999,"b":1e3,"c":-0.5}', {"a": None, "b": 1000.0, "c": -0.5}),
        (b'\xef\xbb\xbf {"a":1}', {"a": 1}),
        (b'{"a":"x\xff","n":NaN}', {"a": "x\ufffd", "n": None}),
        (b'{"a":"\\ud83d","n":NaN}', {"a": "\ud83d", "n": None}),
        (b'{"a":%b,"n":NaN}' % (b"9" * 6000), {"a": None, "n": None}),
        (b'{"a":123456789012345678901,"n":NaN}', {"a": 123456789012345678901.0, "n": None}),
    ],
)
def test_what_upstreams_write_that_is_no_json_is_read_as_json(raw: bytes, read: object) -> None:
    mended = jsontext.repaired(raw)
    assert json.loads(mended) == jsontext.decode(mended) == read
    assert jsontext.read_leniently(jsontext.decode_shallow, raw) == read


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"NaN",
        b"[NaN]",
        b"ping",
        b'{"a":NaN',
        b'{"a":NaN}' * 2,
        b"{%b}" % bytes(b"," * 200_000),
    ],
)
def test_what_is_no_object_even_so_is_not_read(raw: bytes) -> None:
    with pytest.raises(ValueError):
        jsontext.read_leniently(jsontext.decode_shallow, raw)


class Item(msgspec.Struct):
    text: bytes
    number: int = 0


class Several(msgspec.Struct):
    items: tuple[Item, ...] = ()
    meta: str = msgspec.field(name="about", default="")


def test_a_struct_is_written_and_read_item_by_item_as_in_one_piece() -> None:
    for what in (Several(), Several(tuple(map(Item, (b"a", b"")))), Several((), "[{")):
        raw = msgspec.json.encode(what)
        assert msgspec.json.decode(jsontext.encode_by_item(what, "items")) == json.loads(raw)
        assert jsontext.decode_by_item(raw, Several, "items", Item) == what
    assert jsontext.decode_by_item(b'{"more":1}', Several, "items", Item) == Several()
    for damaged in (b"[]", b'{"items":1}', b'{"items":[{}]}', b'{"items":[', rb'"\ud83d'):
        with pytest.raises(msgspec.DecodeError):
            jsontext.decode_by_item(damaged, Several, "items", Item)


@pytest.mark.usefixtures("_served")
def test_other_threads_run_while_many_items_are_written_or_read() -> None:
    many = Several(tuple(map(Item, repeat(b"x" * 100, 30_000))))
    raw = msgspec.json.encode(many)
    for work in (
        lambda: jsontext.encode_by_item(many, "items"),
        lambda: jsontext.decode_by_item(raw, Several, "items", Item),
    ):
        assert any(others_run_amid(work) for _ in range(10))


def others_run_amid(work: Callable[[], object]) -> bool:
    """Whether another thread has run in each fifth of the time but the first and last."""
    ran: list[float] = []
    done = threading.Event()

    def run() -> None:
        while not done.wait(0.0001):
            ran.append(time.perf_counter())

    other = threading.Thread(target=run)
    other.start()
    began = time.perf_counter()
    work()
    fifth = (time.perf_counter() - began) / 5
    done.set()
    other.join()
    return {1, 2, 3} <= {int((at - began) / fifth) for at in ran}


@pytest.fixture
def _served() -> Iterator[None]:
    """Threads take turns as in a process that serves."""
    before = sys.getswitchinterval()
    prepare_threads()
    yield
    sys.setswitchinterval(before)
