"""Places as sortable bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from proxy.memory.items import Place
from proxy.stores.common.rules import bound_after, lower_bound, pack, unpack, upper_bound
from tests.support.oracle.items import within

TEXTS = st.text(st.characters(min_codepoint=0x20, exclude_categories=["Cc", "Cs"]), max_size=3)
NAMESPACES = st.lists(TEXTS.filter(bool), max_size=3).map(tuple)
PLACES = st.builds(Place, NAMESPACES, TEXTS)


@given(PLACES)
def test_a_packed_place_is_the_same_place(place: Place) -> None:
    assert unpack(pack(place)) == place


@given(PLACES, PLACES)
def test_packed_places_sort_as_places_do(one: Place, other: Place) -> None:
    assert (pack(one) < pack(other)) == (one < other)


@given(PLACES, NAMESPACES)
def test_a_prefix_is_of_whole_labels(place: Place, prefix: tuple[str, ...]) -> None:
    packed, beginning = pack(place), lower_bound(prefix)
    assert packed.startswith(beginning) == within(place.namespace, prefix)
    assert (beginning < packed < upper_bound(beginning)) == within(place.namespace, prefix)


@given(PLACES, NAMESPACES)
def test_behind_a_namespace_come_those_below_it(place: Place, namespace: tuple[str, ...]) -> None:
    assert (pack(place) > bound_after(namespace)) == (place.namespace > namespace)
