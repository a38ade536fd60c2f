"""What mem0 and LangMem remember."""

from __future__ import annotations

import pytest

from proxy.portable.detection import open_source
from proxy.portable.names import Format
from proxy.portable.source import ImportedPart, InvalidFile, Note, Notes, Warnings
from tests.support.talk.foreign import LIMITS, dumped, sample


def noted(
    content: bytes, wanted: Format | None = None, piece: int = 7
) -> tuple[list[Notes], list[str]]:
    warnings = Warnings()
    _, source = open_source(content, wanted, LIMITS, warnings)
    found: list[ImportedPart] = []
    for at in range(0, len(content), piece):
        found += source.feed(content[at : at + piece])
    found += source.finish()
    notes = [each for each in found if isinstance(each, Notes)]
    assert len(notes) == len(found)
    return notes, warnings.all


def test_memories_of_mem0_have_their_person_and_their_dates() -> None:
    (found,), warnings = noted(sample("mem0.json"))
    bees, tea = found.notes
    assert found.user == "keeper"
    assert (bees.text, bees.created_at, bees.updated_at) == (
        "Keeps bees behind the house.",
        1711983600.0,
        1714575600.0,
    )
    assert bees.metadata == {"room": "garden", "categories": ["hobbies"]}
    assert (tea.created_at, tea.updated_at, tea.until) == (1712016000.0, None, 1924992000.0)
    assert tea.metadata == {"run_id": "r1"}
    assert warnings == ["Memory 3 says nothing and was left out."]


def test_items_of_langmem_are_sentences_or_values() -> None:
    (found,), warnings = noted(sample("langmem.json"))
    assert (found.user, warnings) == ("keeper", [])
    assert [note.text for note in found.notes] == ["Sails on Sundays.", "Has a red kite.", None]
    profile = found.notes[2]
    assert (profile.labels, profile.key) == (("langmem", "memories", "profile"), "k3")
    assert profile.value == b'{"kind":"Profile","content":{"town":"Bergen","boats":2}}'
    assert found.notes[0].updated_at == 1738454400.0


def test_notes_of_several_people_are_kept_apart() -> None:
    memories = [{"id": str(n), "memory": f"m{n}", "user_id": f"u{n % 2}"} for n in range(6)]
    found, _ = noted(dumped(memories))
    assert [(each.user, len(each.notes)) for each in found] == [("u0", 3), ("u1", 3)]


def test_very_many_notes_come_in_parts() -> None:
    memories = [{"id": str(n), "memory": f"m{n}", "user_id": "u"} for n in range(450)]
    for content in (dumped(memories), dumped({"memories": memories})):
        found, _ = noted(content, piece=1000)
        assert [len(each.notes) for each in found] == [200, 200, 50]


def test_a_note_of_nobody_names_nobody() -> None:
    mine = {"namespace": ["memories"], "key": "k", "value": {"content": "x"}}
    (found,), _ = noted(dumped([mine]))
    assert (found.user, found.notes[0].labels) == (None, ("langmem", "memories"))


@pytest.mark.parametrize("content", [b'{"results": [5]}', b'{"results": [{"memory": "x"}, []]}'])
def test_what_is_no_memory_is_told_by_the_one_before(content: bytes) -> None:
    with pytest.raises(InvalidFile, match="has what is no memory, behind memory"):
        noted(content)


def test_wrong_types_are_as_if_they_were_not_there() -> None:
    hostile = {"memory": "x", "id": 5, "user_id": [], "metadata": 3, "created_at": "soon"}
    (found,), _ = noted(dumped([hostile]), "mem0")
    note = found.notes[0]
    assert (found.user, note) == (
        None,
        Note(("mem0",), "x", dumped(hostile).replace(b": ", b":").replace(b", ", b","), "x", {}),
    )
