"""One of everything that a store keeps, written and read back by the contract alone.

``tests/stores/data`` holds what an earlier release made of ``write``, and what it read of it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec

from proxy.chat.message import ROLES
from proxy.memory.archive import (
    Details,
    Page,
    PlacedExchange,
    Revision,
    Session,
    SessionArchive,
    StoredMessage,
)
from proxy.memory.erasure import Subject
from proxy.memory.items import Change, Item, ItemOwner, Place, item_pages
from proxy.memory.model import (
    Amendment,
    Card,
    Injection,
    LoadOptions,
    Position,
    SessionKey,
    State,
    Summary,
    WindowMove,
    WorkRequest,
)
from proxy.memory.store import Store
from proxy.memory.usage import UsageKey, UsageTotals
from proxy.recall.index import IndexBatch, IndexMark, Owner
from proxy.stores.open import Backend
from tests.support.store.archives import edited, exchanges, lines
from tests.support.store.commits import card, chat, draft, exchange, record, summary

SPOOLED, DEFERRED = SessionKey("acme", "spooled"), SessionKey("acme", "deferred")
TENANT, OTHER = "acme", "späte:{Leute}"
TALK = SessionKey(TENANT, "talk/1")
EDITED, BRIEF, BACK = (SessionKey(TENANT, name) for name in ("edited", "brief", "put back"))
ELSEWHERE = SessionKey(OTHER, "talk/1")
SESSIONS = (TALK, EDITED, BRIEF, BACK, ELSEWHERE)
KAI, NOBODY = ItemOwner(TENANT, "kai"), ItemOwner(TENANT)
FACTS, NOTES = ("users", "kai", "facts"), ("notes",)
DAYS = ("2026-01-01", "2026-01-02")
SUBJECTS = (Subject(TENANT, "eve"), Subject(TENANT, session="gone"), Subject(TENANT, "mia"))
OWNERS = (Owner(TENANT, user="kai"), Owner(TENANT, session="brief"))
TERMS = (b"term-one", b"term-two", b"no-such!")
MODEL, WIDTH, PASSAGES = "embedder", 8, 200
STATES: tuple[State, ...] = ("superseded",)
FOREVER = 1e9
"""Seconds: behind all times of these tests."""
CARD = Card.__struct_fields__
SINCE = CARD.index("side_text_tokens")
"""Where the fields begin that cards have gained since."""
GAINED = "keyed"
"""The field that exchanges have gained since."""


async def write(store: Backend) -> None:
    await _talk(store)
    await _edit(store)
    await _put_back(store)
    await _items(store)
    await _spend(store)
    await _index(store)
    await store.mark([SUBJECTS[0]], 4000.0)
    await store.mark([SUBJECTS[1]], 4500.5)
    await store.mark([SUBJECTS[2]], 4000.0)
    await store.unmark(SUBJECTS[2])


async def _talk(store: Backend) -> None:
    memory = Injection(status="injected", messages=3, tokens=7, recalled=msgspec.Raw(b'[{"a":1}]'))
    due = (WorkRequest(kind="summary", profile="default", due_at=1000.0),)
    system = b'[{"role":"system","content":"be brief"}]'
    first = chat(
        "x1",
        user="kai",
        system=system,
        system_tokens=3,
        reserved=1,
        idempotency_key="k1",
        work_requests=due,
    )
    first = msgspec.structs.replace(
        first, exchange=msgspec.structs.replace(first.exchange, memory=memory, follows="")
    )
    choice = draft("x1", 2, "assistant", choice=1, state="superseded")
    assert await store.commit(TALK, first) == "recorded"
    await store.amend(TALK, Amendment(exchange="x1", usage=b'{"n":1}', drafts=(choice,)))
    call = draft("x2", 1, "assistant", calls=("c1",), wire=b'{"role":"assistant","more":"x"}')
    await store.commit(TALK, record("x2", draft("x2", 0), call, at=1001.0, model="m"))
    late = draft("x3", 0, "tool", turn="x2.0", answers="c1")
    window = WindowMove(profile="default", start="x2.0")
    await store.commit(TALK, record("x3", late, at=1002.0, window=window))
    await store.commit(TALK, chat("x4", at=1003.0, idempotency_key="k4"))
    await store.commit(TALK, chat("x5", at=1004.0, superseded=("x4.0", "x4.1"), incomplete=True))
    for after in range(2):
        assert await store.put_summary(TALK, summary(4 + after, f"number {after}"), after, None)
    await store.commit(ELSEWHERE, chat("x1", at=900.0, ttl=1000, user="käthe & co"))


async def _edit(store: Backend) -> None:
    for number in range(1, 4):
        await store.commit(EDITED, chat(f"e{number}", at=1000.0 + number, user="kai"))
    change = edited(
        "e1", 0, replaced_wire=draft("e1", 0).body, wire=b'{"role":"user","content":"new"}'
    )
    seen = await store.session(EDITED)
    assert seen is not None
    details = Details(title="Über Käse", metadata=b'{"a":[1,null]}', ttl=50_000, system=b"[]")
    revision = Revision(
        edited=(change,),
        removed=("e2.0", "e2.1"),
        superseded=("e3.1",),
        details=details,
        expected_details=seen.details,
    )
    assert await store.revise(EDITED, revision)
    await store.mark_stalled(EDITED)
    await store.commit(BRIEF, chat("b1", at=1500.0, ttl=30_000))
    await store.enqueue(
        EDITED,
        WorkRequest(
            kind="learning", profile="p", due_at=2000.0, min_requests=5, due_if_fewer=9000.0
        ),
    )
    await store.enqueue(BRIEF, WorkRequest(kind="summary", profile="q", due_at=3000.0))
    (work,) = (each for each in await store.waiting(3000.0, 9) if each.session == BRIEF.session)
    held = await store.claim(work, 3000.0, 3600.0)
    assert held is not None
    await store.postpone(held, 4000.0, failed=True)


async def _put_back(store: Backend) -> None:
    messages = tuple(
        StoredMessage(Position(3, seq), card("p1", seq - 3, role), "active", b'{"seq":%d}' % seq)
        for seq, role in ((3, "user"), (4, "assistant"))
    )
    session = Session(
        "", "mia", 2, 20, 3, 800.0, 850.0, Details(title="T"), end=9, last="p1",
        windows={"default": Position(3, 3)},
    )  # fmt: skip
    placed = PlacedExchange(3, exchange("p1", 850.0, size=2), ("p1.0", "p1.1"))
    kept = Summary(text="long ago", version=7, until=Position(3, 3), seen=2, tokens=2, model="m")
    assert await store.restore(BACK, SessionArchive(session, messages, (placed,), (kept,)))


async def _items(store: Backend) -> None:
    fact = Place(FACTS, "f1")
    for value in (b'{"text":"likes tea"}', b'{"text":"likes \xc3\xa9clairs"}'):
        assert await store.change_items(KAI, [_put(fact, value)])
    assert await store.change_items(KAI, [_put(Place(FACTS, "gone"), b"{}", expires_at=5000.5)])
    short = _put(Place((*NOTES, "a"), ""), b'{"n":1.5}', expires_at=90_000.0)
    assert await store.change_items(NOBODY, [_put(Place(NOTES, "b"), b"{}"), short])
    adopted = Item(
        namespace=NOTES, key="old", value=msgspec.Raw(b'{"old":true}'), version=9,
        created_at=1.5, updated_at=2.5,
    )  # fmt: skip
    assert await store.adopt_items(NOBODY, [adopted]) == 1


def _put(place: Place, value: bytes, expires_at: float | None = None) -> Change:
    return Change(namespace=place.namespace, key=place.key, value=value, expires_at=expires_at)


async def _spend(store: Backend) -> None:
    for day in DAYS:
        spent = UsageTotals(calls=2, failed=1, input_tokens=30, output_tokens=4, micro_usd=5)
        await store.add_usage(TENANT, UsageKey(day, "summary"), spent)
    await store.add_usage(TENANT, UsageKey(DAYS[0], "facts"), UsageTotals(calls=1))


async def _index(store: Backend) -> None:
    rows = b"".join((n % 2).to_bytes(4, "little") + b"%016d" % n for n in range(PASSAGES))
    postings = {TERMS[0]: b"".join(b"%06d" % n for n in range(PASSAGES)), TERMS[1]: b"000001"}
    batch = IndexBatch(0, b"state", TALK.session, IndexMark(1, 6, 77), 0, rows, postings, ttl=0)
    assert await store.write(OWNERS[0], batch)
    more = IndexBatch(
        1, b"more", "other", IndexMark(0, 2), PASSAGES, rows[:20], {TERMS[1]: b"000200"}
    )
    assert await store.write(OWNERS[0], more)
    vectors = {n: b"%08d" % n for n in (0, 3, 150)}
    await store.put_vectors(OWNERS[0], MODEL, WIDTH, vectors)
    brief = IndexBatch(
        0, b"s", "brief", IndexMark(0, 2), 0, rows[:40], {TERMS[0]: b"000000"}, ttl=30_000
    )
    assert await store.write(OWNERS[1], brief)


async def read(store: Backend) -> Any:
    """All of it, as JSON has it."""
    found = {
        "tenants": await store.tenants(),
        "lists": [await _listed(store, *who) for who in ((TENANT, None), (TENANT, "kai"))],
        "sessions": [await _session(store, key) for key in SESSIONS],
        "passages": sorted((await store.passages(TENANT, "kai", {TALK.session: range(9)})).items()),
        "work": [msgspec.structs.replace(each, lease="") for each in await _work(store)],
        "items": [await _shelf(store, shelf) for shelf in (KAI, NOBODY)],
        "people": await store.people(TENANT),
        "spent": sorted((await store.usage_of_days(TENANT, DAYS)).items()),
        "erased": [[await store.is_erased([s], at) for at in (3999.0, 4250.0)] for s in SUBJECTS],
        "indexes": [await _indexed(store, owner) for owner in OWNERS],
    }
    return _as_then(msgspec.json.decode(msgspec.json.encode(found)))


async def _work(store: Backend) -> Any:
    return sorted(await store.waiting(FOREVER, 100), key=lambda each: (each.session, each.kind))


async def _listed(store: Backend, tenant: str, user: str | None) -> list[Page[Session]]:
    pages = [await store.sessions(tenant, user, None, 2)]
    while pages[-1].after is not None:
        pages.append(await store.sessions(tenant, user, pages[-1].after, 2))
    return pages


async def _session(store: Backend, key: SessionKey) -> dict[str, Any]:
    asks = (
        LoadOptions(profile="default", whole=True, idempotency_key="k4"),
        LoadOptions(profile="default", max_messages=1, max_uncovered_tokens=5),
        LoadOptions(profile="other", max_tokens=15),
    )
    entries = await lines(store, key)
    ids = [each.card.id for each in entries]
    placed = await exchanges(store, key, 2)
    return {
        "session": await store.session(key),
        "loads": [await _load(store, key, options) for options in asks],
        "lines": entries,
        "bodies": sorted((await store.bodies(key, ids)).items()),
        "messages": await store.messages(key, STATES, 0, 100),
        "exchanges": placed,
        "each": [await store.exchange(key, each.exchange.id) for each in placed],
        "summaries": await store.summaries(key),
    }


async def _load(store: Backend, key: SessionKey, options: LoadOptions) -> dict[str, Any]:
    """What an earlier release loaded too, with its names; it did not load when a session began."""
    seen = await store.load(key, options)
    lookup: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(seen))
    session = await store.session(key)
    lookup["lost"] = lookup.pop("missing_messages")
    assert lookup.pop("created_at") == (session.created_at if session else 0.0)
    return lookup


async def _shelf(store: Backend, shelf: ItemOwner) -> dict[str, Any]:
    pages: AsyncIterator[Any] = item_pages(store, shelf, (), 2)
    return {
        "items": [item async for page in pages for item in page],
        "namespaces": await store.namespaces(shelf, (), None, 99),
        "at": sorted((await store.items_at(shelf, [Place(FACTS, "f1")])).items()),
    }


async def _indexed(store: Backend, owner: Owner) -> dict[str, Any]:
    rows = await store.rows(owner, [0, 1, 150, PASSAGES, PASSAGES + 1])
    vectors = await store.vectors(owner, MODEL, WIDTH, 0, PASSAGES)
    return {
        "look": await store.lookup(owner, TERMS, 170, "talk/1"),
        "rows": (rows.data, sorted(rows.sessions.items())),
        "vectors": vectors.rstrip(b"\0"),  # a store may leave out what was never put
    }


async def replayed(store: Store) -> Any:
    """What the spool of the data has in it for a store, once it is there."""
    found = [await lines(store, key) for key in (SPOOLED, DEFERRED)]
    return _as_then(msgspec.json.decode(msgspec.json.encode(found)))


def _as_then(value: Any) -> Any:
    """What that release read too: without what cards and exchanges have gained since, where that
    says nothing."""
    if isinstance(value, dict):
        return {key: _as_then(each) for key, each in value.items() if each or key != GAINED}
    if not isinstance(value, list):
        return value
    if len(value) == len(CARD) and value[1] in ROLES and not any(value[SINCE:]):
        return value[:SINCE]
    return [_as_then(each) for each in value]
