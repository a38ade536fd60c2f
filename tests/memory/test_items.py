"""Where namespaces lie."""

from __future__ import annotations

import pytest

from proxy.memory.items import ItemOwner, Namespace, item_owner_of


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
    assert item_owner_of("tenant", namespace) == ItemOwner("tenant", user)
