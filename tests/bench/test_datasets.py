"""Each set is read as its authors publish it: tiny files of invented people, in each form."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bench.recall.counting import counter
from bench.recall.datasets.locomo_plus import gap
from bench.recall.datasets.part import LONG, PART, telling_part
from bench.recall.datasets.table import DATASETS, load
from bench.recall.people import Person, Repairs


def written(path: Path, value: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")
    return path


def chat(*texts: str) -> list[dict[str, Any]]:
    roles = ("user", "assistant")
    return [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)]


def turns(person: Person) -> list[list[str]]:
    return [[f"{turn.by}: {turn.text}" for turn in session.turns] for session in person.sessions]


# LoCoMo and what was made after it

CONVERSATION = {
    "speaker_a": "Ada",
    "speaker_b": "Bo",
    "session_1": [{"speaker": "Ada", "dia_id": "D1:1", "text": "I sew hats."}],
    "session_1_date_time": "1:56 pm on 8 May, 2023",
    "session_2": [{"speaker": "Bo", "dia_id": "D2:1", "text": "My boat leaks."}],
    "session_2_date_time": "4:04 pm on 8 June, 2023",
}
LOCOMO = [{"sample_id": "one", "conversation": CONVERSATION, "qa": []}]
CUE = {
    "relation_type": "causal",
    "cue_dialogue": "A: I gave up sugar.\nfor good\nB: Well done.",
    "trigger_query": "A: The bakery has new buns.",
    "time_gap": "about two weeks later",
}


def test_a_cue_is_said_so_long_before_its_trigger(tmp_path: Path) -> None:
    written(tmp_path / "locomo10.json", LOCOMO)
    found = load(
        written(tmp_path / "locomo_plus.json", [CUE, {**CUE, "time_gap": "one week later"}])
    )
    earlier, later = found.people
    assert found.dataset == "LoCoMo-Plus"
    # A week after the last session is the trigger, two weeks before that the cue.
    assert [session.id for session in earlier.sessions] == ["session_1", "cue", "session_2"]
    assert [session.id for session in later.sessions] == ["session_1", "session_2", "cue"]
    assert earlier.sessions[1].date == "04:04 PM on 01 June, 2023"
    assert turns(earlier)[1] == ["u: Ada: I gave up sugar.\nfor good", "a: Bo: Well done."]
    (question,) = earlier.questions
    assert (question.kind, question.text) == ("causal", "Ada: The bakery has new buns.")
    assert question.evidence == ("cue:0",)


@pytest.mark.parametrize(
    ("text", "days"),
    [("a year after", 365), ("roughly three months later", 90), ("12 weeks", 84), ("several", 0)],
)
def test_gaps_are_days(text: str, days: int) -> None:
    assert gap(text) == timedelta(days=days)


def test_cues_need_the_conversations_they_are_said_in(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"locomo10\.json belongs to it, and is not there"):
        load(written(tmp_path / "locomo_plus.json", [CUE]))


def test_realtalk_is_a_person_a_file(tmp_path: Path) -> None:
    said = [
        {"speaker": "Cem", "dia_id": "D1:1", "clean_text": "Snow!", "blip_caption": "a sledge"},
        {"speaker": "Dee", "dia_id": "D1:2", "clean_text": "Here it rains."},
        {"speaker": "Dee", "dia_id": "D1:3", "clean_text": "Since Monday."},
    ]
    asked = [{"question": "Where does it rain?", "answer": "-", "evidence": ["D1:2-D1:3"]}]
    file = {
        "name": {"speaker_1": "Cem", "speaker_2": "Dee"},
        "session_1": said,
        "session_1_date_time": "29.12.2023, 00:51:12",
        "events_session_1": {},
        "qa": [{**asked[0], "category": 1}],
    }
    written(tmp_path / "Chat_1_Cem_Dee.json", file)
    written(tmp_path / "Chat_2_Cem_Dee.json", file)
    written(tmp_path / "locomo" / "Chat_1.json", LOCOMO)  # deeper: not of the folder
    found = load(tmp_path)
    assert (found.dataset, len(found.people)) == ("REALTALK", 2)
    person = found.people[0]
    assert person.id == "Chat_1_Cem_Dee"
    assert turns(person)[0][:2] == ["u: Cem: Snow! [photo: a sledge]", "a: Dee: Here it rains."]
    assert person.questions[0].kind == "several sessions"
    assert person.questions[0].evidence == ("D1:2", "D1:3")


# LongMemEval


def instance(id: str, **more: object) -> dict[str, Any]:
    old, new = chat("I own a kayak.", "Nice."), chat("Where to paddle?", "On the lake.")
    old[0]["has_answer"] = True
    new[0]["has_answer"] = False
    return {
        "question_id": id,
        "question_type": "single-session-user",
        "question": "What do I own?",
        "answer": 1,
        "question_date": "2023/06/01 (Thu) 10:00",
        "haystack_session_ids": ["b", "a"],
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/03 (Wed) 11:00"],
        "haystack_sessions": [new, old],
        "answer_session_ids": ["a"],
        **more,
    }


def test_longmemeval_is_a_person_a_question(tmp_path: Path) -> None:
    unlabelled = instance("q3", haystack_sessions=[chat("Hi.", "Hi."), chat("Hm.", "Yes?")])
    listed = [instance("q1"), instance("q2_abs"), unlabelled]
    found = load(written(tmp_path / "longmemeval_s_cleaned.json", listed))
    assert found.dataset == "LongMemEval"
    assert found.repairs == Repairs(questions=1, left_out=1)
    (person,) = found.people
    assert [session.date[:10] for session in person.sessions] == ["2023/05/03", "2023/05/20"]
    (question,) = person.questions
    assert (question.kind, question.evidence) == ("single-session-user", ("1:0",))
    assert person.texts()["1:0"] == "I own a kayak."


def test_of_a_long_turn_the_part_counts_that_the_answer_is_about() -> None:
    words = [f"w{n}" for n in range(4 * PART)]
    words[100:102] = ["Lisbon", "2019"]
    part = telling_part(" ".join(words), "It was in Lisbon, in 2019.").split()
    assert len(part) == PART
    assert {"Lisbon", "2019"} <= set(part)
    assert telling_part(" ".join(words), "Nobody knows.") == ""
    assert telling_part(" ".join(words[:LONG]), "Lisbon") == ""


# BEAM


def beam(folder: Path, chat: object, **kinds: Sequence[Mapping[str, Any]]) -> None:
    asked = {"information_extraction": [], "temporal_reasoning": [], **kinds}
    written(folder / "chat.json", chat)
    written(folder / "probing_questions" / "probing_questions.json", asked)


def batch(*subjects: tuple[int, str, str]) -> dict[str, Any]:
    talks = []
    for id, anchor, text in subjects:
        question, answer = chat(text, "I see.")
        anchored = {"time_anchor": anchor} if anchor else {}
        talks.append([{**question, "id": id, **anchored}, {**answer, "id": id + 1}])
    return {"batch_number": 1, "time_anchor": None, "turns": talks}


def test_beam_is_a_person_a_chat(tmp_path: Path) -> None:
    said = [batch((0, "March-15-2024", "I build a shed."), (2, "", "It has a door."))]
    said.append(batch((4, "April-05-2024", "The door is blue.")))
    beam(
        tmp_path / "100K" / "7",
        said,
        abstention=[{"question": "Which lock?", "ideal_response": "-"}],
        event_ordering=[
            {"question": "Which order?", "source_chat_ids": [[0, 2], 4], "answer": "-"}
        ],
        knowledge_update=[
            {"question": "Colour?", "source_chat_ids": {"old": [2], "new": [4]}, "answer": "blue"},
            {"question": "Lost?", "source_chat_ids": [99, "None"], "answer": "-"},
        ],
    )
    found = load(tmp_path / "100K")
    assert (found.dataset, found.name) == ("BEAM", "100K")
    assert found.repairs == Repairs(dropped=1, questions=1, left_out=1)
    (person,) = found.people
    assert person.id == "100K-7"
    assert [session.date for session in person.sessions] == ["March-15-2024"] * 2 + [
        "April-05-2024"
    ]
    assert [(q.kind, q.evidence) for q in person.questions] == [
        ("event_ordering", ("0", "2", "4")),
        ("knowledge_update", ("2", "4")),
    ]


def test_the_longest_chats_of_beam_are_several_plans(tmp_path: Path) -> None:
    plans = [{"plan-1": [batch((0, "May-01-2024", "One."))]}, {"plan-2": [batch((2, "", "Two."))]}]
    asked = {"question": "Which?", "source_chat_ids": [2], "answer": "two"}
    beam(tmp_path / "10M" / "1", plans, temporal_reasoning=[asked])
    (person,) = load(tmp_path / "10M").people
    assert turns(person) == [["u: One.", "a: I see."], ["u: Two.", "a: I see."]]


# PrefEval

PREFERENCE = {"preference": "I avoid lifts.", "question": "Which hotel?", "explanation": "-"}
CHOICE = {
    "conversation": {
        "query": "Which floor?",
        "assistant_options": "1. Ground 2. Ninth",
        "user_selection": "The ground floor, please.",
        "assistant_acknowledgment": "Noted.",
    }
}


def test_a_preference_comes_before_other_peoples_talk(tmp_path: Path) -> None:
    written(
        tmp_path / "filtered_inter_turns.json", [{"conversation": chat("What is rust?", "Iron.")}]
    )
    explicit = written(tmp_path / "explicit_preference" / "travel.json", [PREFERENCE])
    choice = tmp_path / "implicit_preference" / "choice-based" / "travel.json"
    written(choice, [{**PREFERENCE, **CHOICE}])
    (stated,), (chosen,) = load(explicit).people, load(choice).people
    assert turns(stated) == [["u: I avoid lifts."], ["u: What is rust?", "a: Iron."]]
    assert [(q.kind, q.evidence) for q in stated.questions] == [("stated preference", ("stated",))]
    assert turns(chosen)[0][2] == "u: The ground floor, please."
    assert chosen.questions[0].evidence == ("user_selection",)


def test_personas_conversations_are_not_labelled(tmp_path: Path) -> None:
    item = {**PREFERENCE, "persona": "a clerk", "conversation": {"0": {"user": "-"}}}
    with pytest.raises(ValueError, match="no turn of persona-driven conversations is labelled"):
        load(written(tmp_path / "travel.json", [item]))


# PersonaMem


def personamem(folder: Path, *, off: int = 0) -> Path:
    said = chat("User: I play the oboe in a wind quintet on Sundays.", "Assistant: Lovely. " * 30)
    messages = [
        {"role": "system", "content": "Current user persona: a clerk."},
        *said,
        {"role": "system", "content": "Current user persona: a clerk."},
        *chat("User: My reed broke.\u2028Again.", "Assistant: Buy two. " * 30, "User: Bye."),
    ]
    count = counter()
    before = count(messages[0]["content"]) + sum(count(f" {one['content']}") for one in said)
    before += count(f" {messages[3]['content']}")
    row = {
        "persona_id": "0",
        "question_id": "q1",
        "question_type": "recall_user_shared_facts",
        "context_length_in_tokens": "5000",
        "distance_to_ref_in_tokens": str(5000 - before - off),
        "user_question_or_message": "What, then,\nbroke?",
        "shared_context_id": "c0ffee",
        "end_index_in_shared_context": "6",
    }
    folder.mkdir(exist_ok=True)
    contexts = folder / "shared_contexts_32k.jsonl"
    lines = [{"c0ffee": messages}, {"other": []}]
    contexts.write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in lines), "utf-8")
    path = folder / "questions_32k.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, row)
        writer.writeheader()
        writer.writerow(row)
    return path


def test_personamems_evidence_is_where_the_distance_points(tmp_path: Path) -> None:
    found = load(personamem(tmp_path, off=5))
    assert found.dataset == "PersonaMem"
    (person,) = found.people
    # What is said behind the place of the question is not there yet, and no persona is told.
    assert [len(session.turns) for session in person.sessions] == [2, 2]
    (question,) = person.questions
    assert question.text == "What, then,\nbroke?"
    assert person.texts()[question.evidence[0]] == "User: My reed broke.\u2028Again."


def test_a_distance_that_points_nowhere_is_dropped(tmp_path: Path) -> None:
    found = load(personamem(tmp_path, off=60))
    assert found.people == ()
    assert found.repairs == Repairs(dropped=1, questions=1)


# Which is which


def test_other_files_get_a_sentence_that_names_what_is_read(tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_text("{", encoding="utf-8")
    for path in (tmp_path, tmp_path / "notes.json", written(tmp_path / "list.json", [])):
        with pytest.raises(ValueError, match="not a file of conversations") as told:
            load(path)
        assert all(each.name in str(told.value) for each in DATASETS)


def test_a_folder_of_several_sets_is_refused(tmp_path: Path) -> None:
    written(tmp_path / "a.json", LOCOMO)
    written(tmp_path / "b.json", [instance("q1")])
    with pytest.raises(ValueError, match="files of several sets: LoCoMo, LongMemEval"):
        load(tmp_path)


def test_a_file_that_is_not_as_it_is_published_says_what_is_missing(tmp_path: Path) -> None:
    broken = instance("q1")
    del broken["question_type"]
    with pytest.raises(ValueError, match="not as LongMemEval is published: KeyError"):
        load(written(tmp_path / "longmemeval.json", [broken]))


def test_the_readme_tells_the_protocol_of_each_set() -> None:
    text = (Path(__file__).parents[2] / "bench" / "README.md").read_text(encoding="utf-8")
    for each in DATASETS:
        assert f"| {each.name} | `{each.file.split(',')[0]}`" in text
