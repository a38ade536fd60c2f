"""The names of fields in stored JSON stay what they were, whatever the attributes are called."""

import msgspec

from proxy.memory.model import Commit, Exchange, Injection, MessageEdit, SessionVersion
from proxy.memory.reconciliation.match import Intent
from tests.support.store.commits import card

EXCHANGE = Exchange(
    id="x1",
    profile="p",
    started_at=1.0,
    created_at=2.0,
    requested_model="m",
    has_idempotency_key=True,
    memory=Injection(trace=msgspec.Raw(b'{"system":3}')),
)


def test_an_exchange() -> None:
    stored = msgspec.json.encode(EXCHANGE)
    assert stored == (
        b'{"id":"x1","profile":"p","started_at":1.0,"created_at":2.0,"model":null,"status":200,'
        b'"incomplete":false,"finish_reason":null,"usage":null,"memory":{"status":"empty",'
        b'"reason":null,"messages":0,"tokens":0,"evicted_messages":0,"evicted_tokens":0,'
        b'"evicted_reason":null,"duration_ms":0.0,"recalled":[],"tools":[],"shown":{"system":3}},'
        b'"size":0,"asked":"m","follows":null,"keyed":true}'
    )
    assert msgspec.json.decode(stored, type=Exchange) == EXCHANGE


def test_a_commit() -> None:
    commit = Commit(
        exchange=EXCHANGE, supersedes_siblings=True, planned_for=SessionVersion("x0", 4)
    )
    stored = msgspec.json.encode(commit)
    assert stored.endswith(b',"due":[],"alone":true,"seen":["x0",4]}')
    assert msgspec.json.decode(stored, type=Commit) == commit


def test_an_edit() -> None:
    edit = MessageEdit(card=card("x1", 0), body=b"new", replaced_wire=b"old")
    stored = msgspec.json.encode(edit)
    assert stored.endswith(b',"body":"bmV3","wire":null,"was":"b2xk"}')
    assert msgspec.json.decode(stored, type=MessageEdit) == edit


def test_an_intent() -> None:
    assert msgspec.json.encode(Intent(continued_answer="x1.1", branch=(), now=1.5)) == (
        b'{"history":"auto","rewind":0,"on":"x1.1","way":[],"retry":false,"now":1.5}'
    )
