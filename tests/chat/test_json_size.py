"""How much there is in a JSON text, counted before any of it is made."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.chat import json_size
from proxy.chat.json_size import has_more_text, has_more_values

JSON = st.recursive(
    st.none() | st.integers() | st.text(alphabet='a,"\\[]{} é\n'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet='b,"\\{'), inner),
    max_leaves=20,
)


def signs(value: object) -> int:
    """Commas and opening brackets that the text of a value has outside its strings."""
    if isinstance(value, dict):
        return 1 + max(0, len(value) - 1) + sum(map(signs, value.values()))
    if isinstance(value, list):
        return 1 + max(0, len(value) - 1) + sum(map(signs, value))
    return 0


@given(JSON, st.integers(1, 40))
def test_values_are_counted_outside_strings_wherever_pieces_are_cut(
    value: object, piece: int
) -> None:
    raw = json.dumps(value).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_size, "PIECE", piece)
        assert sum(map(len, json_size._pieces(raw))) == len(raw)
        most = signs(value)
        # A text that is shorter than the bound is not looked at.
        padded = raw + b" " * (most + 1)
        assert not has_more_values(most, padded)
        assert most == 0 or has_more_values(most - 1, padded)


def test_a_long_text_of_commas_and_brackets_is_one_value() -> None:
    raw = json.dumps([{"content": '[{"a": 1}, {"b": 2}],\n' * 100_000}]).encode()
    assert not has_more_values(2, raw)


def test_several_texts_count_together() -> None:
    assert not has_more_values(20, b"[1,2,3,4]", b"[1,2,3,4]", b" " * 100)
    assert has_more_values(7, b"[1,2,3,4]", b"[1,2,3,4]")


def test_media_are_no_text_however_large() -> None:
    media = b'[{"image_url":{"url":"data:image/png;base64,' + b"iVBORw0KGgo" * 100_000 + b'"}}]'
    assert not has_more_text(3 * json_size.PIECE, media)
    assert has_more_text(3 * json_size.PIECE, media.replace(b"Ggo", b"G o"))


@pytest.mark.parametrize("some", [b"iVBORw0K", rb"iVBOR\/0K", rb"iVBORw0K\r\n"])
def test_many_small_media_are_no_text_either(some: bytes) -> None:
    image = b'{"type":"image_url","image_url":{"url":"data:image/png;base64,%b"}}'
    media = b"[" + b",".join(300 * [image % (some * 3750)]) + b"]"
    assert not has_more_text(len(media) // 20, media)
    text = b"I said it. " * (len(media) // 100)
    assert has_more_text(len(text), media[:-1] + b',{"text":"' + text + b'"}]')


def test_text_of_escaped_letters_is_text() -> None:
    text = json.dumps({"content": 1_000 * "你好"}).encode()
    assert has_more_text(len(text) // 2, text)
