"""What clients resend: the table of reconciliation, in shorthand (see ``words``).

Every row is a conversation that has been had, what the client then sends, what the upstream must
get, and what must be in the log and out of it afterwards.
"""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    before: str
    sent: str
    said: str
    upstream: str
    log: str
    gone: str = ""
    headers: dict[str, str] = {}


ROWS = {
    "only-new-messages": Row("u1 a1", "u2", "a2", "u1 a1 u2", "u1 a1 u2 a2"),
    "everything": Row("u1 a1", "u1 a1 u2", "a2", "u1 a1 u2", "u1 a1 u2 a2"),
    "a-window-of-its-own": Row(
        "u1 a1 u2 a2", "u2 a2 u3", "a3", "u1 a1 u2 a2 u3", "u1 a1 u2 a2 u3 a3"
    ),
    "tool-results-only": Row(
        "u1 a1(c1,c2)", "t1:c1 t2:c2", "a2", "u1 a1 t1 t2", "u1 a1 t1 t2 a2"
    ),
    "parallel-results-in-another-order": Row(
        "u1 a1(c1,c2) t2:c2 t1:c1 a2",
        "u1 a1(c1,c2) t1:c1 t2:c2 a2 u3",
        "a3",
        "u1 a1 t1 t2 a2 u3",
        "u1 a1 t2 t1 a2 u3 a3",
    ),
    "parallel-results-in-another-order-in-a-loop": Row(
        "u1 a1(c1,c2) t2:c2 t1:c1 a2(c3)",
        "u1 a1(c1,c2) t1:c1 t2:c2 a2(c3) t3:c3",
        "a3",
        "u1 a1 t1 t2 a2 t3",
        "u1 a1 t2 t1 a2 t3 a3",
    ),
    "the-running-tool-loop": Row(
        "u0 a0 u1 a1(c1)", "u1 a1(c1) t1:c1", "a2", "u0 a0 u1 a1 t1", "u0 a0 u1 a1 t1 a2"
    ),
    "an-edit-resending": Row(
        "u1 a1 u2 a2", "u1 a1 u2'", "a2'", "u1 a1 u2'", "u1 a1 u2' a2'", gone="u2 a2"
    ),
    "regenerate-resending": Row(
        "u1 a1 u2 a2", "u1 a1 u2", "a2'", "u1 a1 u2", "u1 a1 u2 a2'", gone="a2"
    ),
    "few-shot-preamble-each-time": Row(
        "p1 q1 u1 a1", "p1 q1 u2", "a2", "p1 q1 u1 a1 u2", "p1 q1 u1 a1 u2 a2"
    ),
    "all-its-questions-without-answers": Row(
        "u1 a1 u2 a2", "u1 u2 u3", "a3", "u1 a1 u2 a2 u3", "u1 a1 u2 a2 u3 a3"
    ),
    "all-its-questions-retried": Row(
        "u1 a1 u2 a2", "u1 u2", "a2'", "u1 a1 u2", "u1 a1 u2 a2'", "u2 a2",
        {"x_stainless_retry_count": "1"},
    ),
    "questions-but-not-from-the-first": Row(
        "u1 a1 u2 a2", "u2 u3", "a3", "u1 a1 u2 a2 u2 u3", "u1 a1 u2 a2 u2 u3 a3"
    ),
    "the-same-words-again": Row("u1 a1", "u1", "a2", "u1 a1 u1", "u1 a1 u1 a2"),
    "an-sdks-retry-of-a-recorded-exchange": Row(
        "u1 a1", "u1", "a1'", "u1", "u1 a1'", "u1 a1", {"x_stainless_retry_count": "1"}
    ),
    "assistant-text-re-rendered": Row("u1 a1", "u1 a1* u2", "a2", "u1 a1* u2", "u1 a1 u2 a2"),
    "head-and-tail-middle-dropped": Row(
        "u1 a1 u2 a2 u3 a3",
        "u1 a1 u3 a3 u4",
        "a4",
        "u1 a1 u2 a2 u3 a3 u4",
        "u1 a1 u2 a2 u3 a3 u4 a4",
    ),
    "its-own-summary-first": Row(
        "u1 a1 u2 a2", "u9 u2 a2 u3", "a3", "u1 a1 u9 u2 a2 u3", "u1 a1 u2 a2 u3 a3"
    ),
    "its-history-without-the-tool-messages": Row(
        "u1 a1(c1) t1:c1 a2", "u1 a2 u3", "a3", "u1 a1 t1 a2 u3", "u1 a1 t1 a2 u3 a3"
    ),
    "nothing-in-common": Row(
        "u1 a1", "u9 q9 u10", "a10", "u1 a1 u9 q9 u10", "u1 a1 u9 q9 u10 a10"
    ),
    "something-else-while-a-call-waits": Row("u1 a1(c1)", "u2", "a2", "u1 u2", "u1 a1 u2 a2"),
    # The rules behind the table
    "the-first-request": Row("", "u1", "a1", "u1", "u1 a1"),
    "an-answer-that-the-client-edited": Row(
        "u1 a1 u2 a2", "u1 q9 u2 a2 u3", "a3", "u1 q9 u2 a2 u3", "u1 q9 u2 a2 u3 a3", "a1"
    ),
    "an-edited-answer-and-nothing-behind-it-matches": Row(
        "u1 a1 u2 a2", "u1 q9 u3", "a3", "u1 q9 u3", "u1 q9 u3 a3", "a1 u2 a2"
    ),
    "an-edit-behind-a-preamble-alone-supersedes-nothing": Row(
        "p1 q1 u1 a1", "p1 q1 u2 q2 u3", "a3", "p1 q1 u1 a1 u2 q2 u3", "p1 q1 u1 a1 u2 q2 u3 a3"
    ),
    "a-prefill-is-sent-and-not-doubled": Row("u1 a1", "u1 a1", "a2", "u1 a1", "u1 a1 a2"),
    "a-prefill-of-a-new-turn": Row("u1 a1", "u2 q2", "a2", "u1 a1 u2 q2", "u1 a1 u2 q2 a2"),
    "a-prefill-that-comes-each-time": Row(
        "u1 q9 a1 u2 q9 a2", "u3 q9", "a3", "u1 q9 a1 u2 q9 a2 u3 q9", "u1 q9 a1 u2 q9 a2 u3 q9 a3"
    ),
    "a-prefill-each-time-and-everything": Row(
        "u1 q9 a1", "u1 q1 u2 q9", "a2", "u1 q1 u2 q9", "u1 q1 u2 q9 a2", "q9 a1"
    ),
    "a-prefill-each-time-and-full": Row(
        "u1 q9 a1", "u1 q1 u2 q9", "a2", "u1 q1 u2 q9", "u1 q1 u2 q9 a2", "q9 a1",
        {"x_memory_history": "full"},
    ),
    "a-prefill-each-time-and-delta": Row(
        "u1 q9 a1", "u1 q9", "a2", "u1 q9 a1 u1 q9", "u1 q9 a1 u1 q9 a2", "",
        {"x_memory_history": "delta"},
    ),
    "a-prefilled-question-again": Row(
        "u1 q9 a1", "u1 q9", "a2", "u1 q9 a1 u1 q9", "u1 q9 a1 u1 q9 a2"
    ),
    "a-prefilled-request-retried": Row(
        "u1 q9 a1", "u1 q9", "a1'", "u1 q9", "u1 q9 a1'", "u1 q9 a1",
        {"x_stainless_retry_count": "1"},
    ),
    "late-tool-answers-join-their-turn": Row(
        "u1 a1(c1) u2 a2", "t1:c1", "a3", "u2 a2 u1 a1 t1", "u1 a1 t1 a3 u2 a2"
    ),
    "call-ids-that-repeat-mean-the-latest": Row(
        "u1 a1(c1) t1:c1 a2 u3 a3(c1)",
        "t3:c1",
        "a4",
        "u1 a1 t1 a2 u3 a3 t3",
        "u1 a1 t1 a2 u3 a3 t3 a4",
    ),
    "recorded-tool-results-again-are-a-retry": Row(
        "u1 a1(c1) t1:c1 a2", "t1:c1", "a2'", "u1 a1 t1", "u1 a1 t1 a2'", "t1 a2"
    ),
    "a-call-told-otherwise": Row(
        "u1 a1(c1)", "u1 a1(c9) t1:c9", "a2", "u1 a1 t1", "u1 a1 t1 a2", "a1"
    ),
    "a-call-told-otherwise-behind-other-turns": Row(
        "u0 a0 u1 a1(c1)", "u0 a0 u1 a1(c9) t1:c9", "a2", "u0 a0 u1 a1 t1", "u0 a0 u1 a1 t1 a2",
        "a1",
    ),
    "several-calls-told-otherwise": Row(
        "u1 a1(c1,c2)", "u1 a1(c8,c9) t1:c8 t2:c9", "a2", "u1 a1 t1 t2", "u1 a1 t1 t2 a2", "a1"
    ),
    "a-call-told-as-text": Row("u1 a1(c1)", "u1 q1 u9", "a2", "u1 q1 u9", "u1 q1 u9 a2", "a1"),
    "a-call-told-as-text-and-its-turn-over": Row(
        "u1 a1(c1) u2 a2", "u1 q1 u9 u2 a2 u3", "a3", "u1 q1 u9 u2 a2 u3", "u1 q1 u9 u2 a2 u3 a3",
        "a1",
    ),
    "a-loop-told-as-text-whose-answer-is-known": Row(
        "u1 a1(c1) t1:c1 a2", "u1 q1 u9 a2 u3", "a3", "u1 q1 u9 a2 u3", "u1 a1 t1 a2 u3 a3"
    ),
    "an-answer-told-as-a-call": Row(
        "u1 a1", "u1 q1(c9) t1:c9 u2", "a2", "u1 q1 t1 u2", "u1 q1 t1 u2 a2", "a1"
    ),
    "an-answer-of-an-earlier-turn-told-as-a-call": Row(
        "u1 a1 u2 a2", "u1 q1(c9) t1:c9 u2 a2 u3", "a3", "u1 q1 t1 u2 a2 u3",
        "u1 q1 t1 u2 a2 u3 a3", "a1",
    ),
    "two-user-messages-are-two-turns": Row("u1 a1", "u2 u3", "a3", "u1 a1 u2 u3", "u1 a1 u2 u3 a3"),
    "a-rewind-drops-turns": Row(
        "u1 a1 u2 a2 u3 a3", "u4", "a4", "u1 a1 u4", "u1 a1 u4 a4", "u2 a2 u3 a3",
        {"x_memory_rewind": "2"},
    ),
    "a-rewind-of-more-than-there-is": Row(
        "u1 a1", "u2", "a2", "u2", "u2 a2", "u1 a1", {"x_memory_rewind": "9"}
    ),
    "full-supersedes-what-is-not-sent": Row(
        "u1 a1 u2 a2", "u1 a1 u3", "a3", "u1 a1 u3", "u1 a1 u3 a3", "u2 a2",
        {"x_memory_history": "full"},
    ),
    "full-injects-no-window": Row(
        "u1 a1 u2 a2", "u9", "a9", "u9", "u9 a9", "u1 a1 u2 a2", {"x_memory_history": "full"}
    ),
    "full-by-profile": Row(
        "u1 a1", "u9", "a9", "u9", "u9 a9", "u1 a1", {"x_memory_profile": "whole"}
    ),
    "delta-takes-everything-as-new": Row(
        "u1 a1", "u1 q1 u2", "a2", "u1 a1 u1 q1 u2", "u1 a1 u1 q1 u2 a2", "",
        {"x_memory_history": "delta"},
    ),
    "delta-by-profile": Row(
        "u1 a1", "u1", "a2", "u1 a1 u1", "u1 a1 u1 a2", "", {"x_memory_profile": "piecewise"}
    ),
    "the-header-overrules-the-profile": Row(
        "u1 a1", "u2", "a2", "u1 a1 u2", "u1 a1 u2 a2", "",
        {"x_memory_profile": "whole", "x_memory_history": "delta"},
    ),
    "later-system-messages-stay-and-are-not-recorded": Row(
        "u1 a1", "u2 s1", "a2", "u1 a1 u2 s1", "u1 a1 u2 a2"
    ),
    "developer-messages-are-system-ones": Row("u1 a1", "d1 u2", "a2", "d1 u1 a1 u2", "u1 a1 u2 a2"),
}  # fmt: skip
