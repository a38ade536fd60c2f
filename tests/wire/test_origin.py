"""Where the upstream is, and what of a ``Location`` is there."""

from __future__ import annotations

import pytest

from proxy.wire.origin import Origin


@pytest.mark.parametrize(
    ("location", "behind"),
    [
        (b"http://api.example:9/v1/models?a=b", b"/models?a=b"),
        (b"HTTP://API.example:9/v1/models", b"/models"),
        (b"/v1/models/", b"/models/"),
        (b"http://api.example:9/v2/models", None),
        (b"http://api.example:9/v1", None),
        (b"http://api.example:90/v1/models", None),
        (b"http://api.example/v1/models", None),
        (b"https://api.example:9/v1/models", None),
        (b"//elsewhere.example/v1/models", None),
        (b"/v1x/models", None),
        (b"/v1/../../secret", None),
        (b"/v1/a/%2E%2e/b", None),
        (b"/v1/.", None),
        (b"/v1/a..b/.c?d=/../", b"/a..b/.c?d=/../"),
        (b"models", None),
        (b"", None),
    ],
)
def test_what_is_behind_the_base_url_is_told_from_what_is_elsewhere(
    location: bytes, behind: bytes | None
) -> None:
    assert Origin.of("http://api.example:9/v1").below(location) == behind


def test_where_the_base_url_has_no_path_another_host_is_elsewhere_all_the_same() -> None:
    origin = Origin.of("http://api.example:9")
    assert origin.below(b"/models") == b"/models"
    assert origin.below(b"//elsewhere.example/models") is None


@pytest.mark.parametrize(
    ("query", "behind"),
    [(b"?v=1", b"/a"), (b"?v=1&b=2", b"/a?b=2"), (b"?v=12", b"/a?v=12"), (b"?b=2", b"/a?b=2")],
)
def test_the_query_of_the_base_url_is_not_told_again(query: bytes, behind: bytes) -> None:
    origin = Origin.of("http://api.example/api?v=1")
    assert origin.below(b"/api/a" + query) == behind
