"""Where namespaces lie, and who may write there."""

from __future__ import annotations

import pytest

from proxy.memory.items import RESERVED, Namespace, Shelf, is_reserved, shelf_of


@pytest.mark.parametrize(
    ("namespace", "user"),
    [
        ((), ""),
        (("docs",), ""),
        (("docs", "users", "kai"), ""),
        (("instructions", "x"), ""),
        (("users", "kai"), "kai"),
        (("users", "kai", "facts"), "kai"),
    ],
)
def test_what_belongs_to_people_lies_on_their_shelves(namespace: Namespace, user: str) -> None:
    assert shelf_of("tenant", namespace) == Shelf("tenant", user)


def test_only_the_proxys_own_namespaces_are_reserved() -> None:
    for name in RESERVED:
        assert is_reserved(("users", "kai", name)) and is_reserved(("users", "kai", name, "x"))
        assert not is_reserved((name,)) and not is_reserved(("users", name, "x"))
        assert not is_reserved(("users", "kai", "x", name)) and not is_reserved(("a", "kai", name))
    assert is_reserved(("instructions",)) and is_reserved(("instructions", "x"))
    assert not is_reserved(()) and not is_reserved(("users", "kai"))
    assert not is_reserved(("users", "kai", "instructions"))
