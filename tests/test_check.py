"""What ``check`` finds out about store, upstream and spool, and what makes it doubt."""

from __future__ import annotations

import socket
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from textwrap import dedent
from urllib.parse import urlsplit

import pytest

from proxy import check
from proxy.check import Finding
from proxy.commands.likely_mistakes import setting_warnings
from proxy.memory.model import SessionKey
from proxy.memory.recording.spool import Spool
from proxy.settings import ProfileSettings, RecallSettings, Settings, load
from proxy.stores.sqlite.schema import MIGRATIONS, SCHEMA, connect, migrate, schema_of
from tests.support.processes.certificate import CA_FILE, server_context
from tests.support.processes.program import ran
from tests.support.processes.redis import standalone
from tests.support.processes.running import running, settings_for
from tests.support.upstream.scripted import SILENT, Script, ScriptedUpstream, json_answer, pieces_of
from tests.support.waiting import PATIENCE


def settings(folder: Path, **overrides: object) -> Settings:
    dotted = {name.replace("__", "."): value for name, value in overrides.items()}
    places = {"store.url": f"sqlite:///{folder}/m.db", "spool.path": str(folder / "spool.db")}
    return load(None, {**places, **dotted})


def tree(folder: Path) -> dict[str, bytes]:
    """All that lies in a folder; None of a folder's own."""
    found = sorted(folder.rglob("*"))
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in found}


@contextmanager
def unused() -> Iterator[int]:
    """A port on which nobody listens, and nobody else may."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        yield closed.getsockname()[1]


# The upstreams


async def test_each_of_several_upstreams_is_tried_with_its_own_key(tmp_path: Path) -> None:
    async with ScriptedUpstream() as up, ScriptedUpstream() as paid, ScriptedUpstream() as shy:
        shy.always(json_answer({}, 401))
        listed = [
            {"name": "paid", "url": paid.url, "kind": "anthropic", "api_key": "sk-of-paid"},
            {"name": "wrong", "url": shy.url, "api_key": "sk-of-nobody"},
            {"name": "shy", "url": shy.url},
            {"name": "shared", "url": shy.url, "client_keys": True},
        ]
        chosen = settings(tmp_path, upstream__url=up.url, upstreams=listed)
        found = [(each.grade, each.part) for each in await check.upstreams(chosen)]
    assert found == [
        ("ok", "upstream"),
        ("ok", "upstreams.paid"),
        ("problem", "upstreams.wrong"),
        ("problem", "upstreams.shy"),
        ("ok", "upstreams.shared"),
    ]
    assert paid.requests[0].header("x-api-key") == "sk-of-paid"
    assert up.requests[0].header("x-api-key") is None


def test_a_key_that_everybody_spends_is_doubted(tmp_path: Path) -> None:
    listed = [{"name": "paid", "url": "http://paid.example.com/v1", "api_key": "sk-of-paid"}]
    chosen = settings(tmp_path, server__host="0.0.0.0", upstreams=listed)
    told = [setting for setting, _ in setting_warnings(chosen) if setting.startswith("upstreams.")]
    assert told == ["upstreams.paid.api_key", "upstreams.paid.url"]


# The store


async def test_a_store_that_reads_and_writes_is_ok(tmp_path: Path) -> None:
    connect(tmp_path / "m.db", PATIENCE).close()
    (found,) = await check.store(settings(tmp_path))
    assert found == Finding("ok", "store", f"sqlite:///{tmp_path}/m.db reads and writes")


@pytest.mark.parametrize("folder", [".", "deep/down"])
async def test_nothing_is_made_for_a_check(folder: str, tmp_path: Path) -> None:
    where = tmp_path / folder
    chosen = settings(
        tmp_path, store__url=f"sqlite:///{where}/m.db", spool__path=str(where / "spool.db")
    )
    found = [*await check.store(chosen), check.spool(chosen)]
    assert [each.grade for each in found] == ["ok", "ok"]
    assert tree(tmp_path) == {}


async def test_an_older_schema_is_a_warning_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        migrate(connection, MIGRATIONS[:4])
    (found,) = await check.store(settings(tmp_path))
    assert found.grade == "warning"
    assert f"has schema 4, this release writes {SCHEMA}" in found.text
    assert "there is no way back; back it up first" in found.text
    assert schema_of(path, PATIENCE) == 4


@pytest.mark.parametrize("spoilt", ["garbage", "newer", "another program's", "a folder"])
async def test_a_database_that_cannot_be_used_is_a_problem(spoilt: str, tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    if spoilt == "garbage":
        path.write_text("garbage" * 50)
    elif spoilt == "a folder":
        path.mkdir()
    else:
        statement = "PRAGMA user_version = 99" if spoilt == "newer" else "CREATE TABLE t (a)"
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(statement)
    before = tree(tmp_path)
    (found,) = await check.store(settings(tmp_path))
    assert (found.grade, found.part) == ("problem", "store")
    assert spoilt != "a folder" or "name a file in it" in found.text
    assert tree(tmp_path) == before


async def test_a_store_that_is_away_is_a_problem_and_its_password_is_not_told(
    tmp_path: Path,
) -> None:
    with unused() as port:
        url = f"redis://u:hush@127.0.0.1:{port}/0"
        (found,) = await check.store(settings(tmp_path, store__url=url))
    assert (found.grade, found.part) == ("problem", "store")
    assert "hush" not in found.text


async def test_a_redis_that_wants_another_password_is_said(tmp_path: Path) -> None:
    with standalone(requirepass="hush") as server:
        for user in ("", ":wrong@"):
            url = f"redis://{user}{server.address}"
            (found,) = await check.store(settings(tmp_path, store__url=url))
            assert found.grade == "problem"
            assert found.text.endswith("missing or wrong: write redis://USER:PASSWORD@host")


async def test_what_is_no_redis_no_cluster_and_no_sentinel_is_said(tmp_path: Path) -> None:
    async def told(url: str) -> str:
        (found,) = await check.store(settings(tmp_path, store__url=url))
        return found.text.partition(" does not work: Redis: ")[2]

    async with running(settings_for(tmp_path, "http://127.0.0.1:9/v1")) as proxy:
        no_redis = await told(proxy.url.replace("http:", "redis:"))
    with standalone() as server:
        no_cluster = await told(f"redis+cluster://{server.address}")
    no_sentinel = await told(f"redis+sentinel://{server.address}/mymaster")
    assert no_redis == "what answers there is no Redis"
    assert no_cluster.endswith("slots are: This instance has cluster support disabled")
    assert no_sentinel == "no Sentinel answers and knows a master of this name"


async def test_what_may_lose_memory_later_is_a_warning_and_missing_replicas_are_a_problem(
    tmp_path: Path,
) -> None:
    with standalone(save="", maxmemory_policy="allkeys-lru") as server:
        alone = await check.store(settings(tmp_path, store__url=server.url))
        waiting = settings(tmp_path, store__url=server.url, store__wait_replicas=1)
        short = await check.store(waiting)
    assert [each.grade for each in alone] == ["ok", "warning", "warning"]
    assert "allkeys-lru" in alone[1].text and "appendonly" in alone[2].text
    assert [each.grade for each in short] == ["ok", "warning", "warning", "problem"]
    assert "every exchange goes to the spool" in short[3].text


async def test_tls_where_there_is_none_is_said(tmp_path: Path) -> None:
    with standalone() as server:
        url = server.url.replace("redis://", "rediss://")
        (found,) = await check.store(settings(tmp_path, store__url=url))
    assert found.grade == "problem"
    assert found.text.endswith("the server speaks no TLS: write redis://")


async def test_no_tls_where_there_is_some_is_said(tmp_path: Path) -> None:
    async with ScriptedUpstream(ssl_context=server_context()) as server:
        port = urlsplit(server.url).port
        url = f"redis+cluster://localhost:{port}"
        (found,) = await check.store(settings(tmp_path, store__url=url))
    assert found.grade == "problem"
    assert found.text.endswith("the server speaks TLS: write rediss+cluster://")


# The upstream


@pytest.mark.parametrize("client", ["direct", "aiohttp", "httpx"])
async def test_an_upstream_that_answers_is_ok(client: str, tmp_path: Path) -> None:
    async with ScriptedUpstream() as up:
        found = await check.upstream(
            settings(tmp_path, upstream__url=up.url, upstream__client=client)
        )
        assert (found.grade, found.part) == ("ok", "upstream")
        (request,) = up.requests
        assert request.method == "GET"
        assert request.target == b"/v1/models"


@pytest.mark.parametrize(
    ("status", "headers", "grade", "said"),
    [
        pytest.param(401, {}, "ok", "it wants a key, which clients send", id="wants a key"),
        pytest.param(500, {}, "problem", "it answers with 500", id="fails"),
        pytest.param(429, {}, "warning", "answers with 429", id="has too much to do"),
        pytest.param(404, {}, "warning", "is upstream.url whole? Most end in /v1", id="nothing"),
        pytest.param(
            301,
            {"location": "https://u:hush@there.example/v1/models?key=hush"},
            "problem",
            "there.example/v1: redirects are not followed",
            id="is elsewhere",
        ),
    ],
)
async def test_what_an_upstream_answers_is_judged(
    status: int, headers: dict[str, str], grade: str, said: str, tmp_path: Path
) -> None:
    async with ScriptedUpstream() as up:
        up.reply(json_answer({}, status=status, headers=tuple(headers.items())))
        found = await check.upstream(settings(tmp_path, upstream__url=up.url))
    assert (found.grade, said in found.text) == (grade, True), found.text
    assert "hush" not in found.text


async def test_a_url_without_v1_is_told_from_a_server_without_a_list_of_models(
    tmp_path: Path,
) -> None:
    async with ScriptedUpstream() as up:
        up.reply(json_answer({}, status=404))
        up.reply(json_answer({"data": []}))
        root = up.url.removesuffix("/v1")
        found = await check.upstream(settings(tmp_path, upstream__url=root))
        assert [request.target for request in up.requests] == [b"/models", b"/v1/models"]
    assert found.grade == "problem"
    assert "let upstream.url end in /v1" in found.text


async def test_the_query_of_an_upstream_is_not_told(tmp_path: Path) -> None:
    async with ScriptedUpstream() as up:
        well = await check.upstream(settings(tmp_path, upstream__url=f"{up.url}?api-key=hush"))
    away = await check.upstream(settings(tmp_path, upstream__url=f"{up.url}?api-key=hush"))
    assert (well.grade, away.grade) == ("ok", "problem")
    assert up.url in well.text and up.url in away.text
    assert "hush" not in well.text + away.text


CLIENTS = pytest.mark.parametrize("client", ["direct", "aiohttp", "httpx"])


@CLIENTS
async def test_an_upstream_that_is_away_is_a_problem_with_its_reason(
    client: str, tmp_path: Path
) -> None:
    with unused() as port:
        chosen = {"upstream__client": client, "upstream__url": f"http://127.0.0.1:{port}/v1"}
        refused = await check.upstream(settings(tmp_path, **chosen))
        chosen["upstream__proxy"] = f"http://u:hush@127.0.0.1:{port}"
        proxied = await check.upstream(settings(tmp_path, **chosen))
    assert {refused.grade, proxied.grade} == {"problem"}
    assert refused.text.endswith("nothing listens there (connection refused)")
    assert f"@127.0.0.1:{port}: nothing listens there" in proxied.text
    assert "through the proxy http://" in proxied.text and "hush" not in proxied.text


@CLIENTS
async def test_an_upstream_of_no_name_is_said(client: str, tmp_path: Path) -> None:
    url = "http://no-such-host.invalid/v1"
    found = await check.upstream(settings(tmp_path, upstream__url=url, upstream__client=client))
    assert found.grade == "problem"
    assert "name" in found.text.partition("cannot be reached: ")[2]


@CLIENTS
async def test_an_upstream_that_is_silent_is_said(client: str, tmp_path: Path) -> None:
    async with ScriptedUpstream() as up:
        up.reply(SILENT)
        chosen = settings(
            tmp_path, upstream__url=up.url, upstream__client=client, upstream__read_timeout=0.2
        )
        found = await check.upstream(chosen)
    assert (found.grade, "within 0.2 s" in found.text) == ("problem", True), found.text


@CLIENTS
@pytest.mark.parametrize("served", ["with TLS", "without TLS", "for another name"])
async def test_why_no_tls_comes_about_is_said(served: str, client: str, tmp_path: Path) -> None:
    context = None if served == "without TLS" else server_context()
    async with ScriptedUpstream(ssl_context=context) as up:
        port = urlsplit(up.url).port
        host = "0.0.0.0" if served == "for another name" else "127.0.0.1"
        chosen: dict[str, object] = {
            "upstream__client": client,
            "upstream__url": f"https://{host}:{port}/v1",
        }
        if served == "for another name":
            chosen["upstream__ca_file"] = str(CA_FILE)
        elif served == "without TLS":
            chosen["upstream__connect_timeout"] = 0.5
        found = await check.upstream(settings(tmp_path, **chosen))
        plain = f"http://127.0.0.1:{port}/v1"
        other = await check.upstream(
            settings(tmp_path, upstream__client=client, upstream__url=plain)
        )
    said = {
        "with TLS": "its certificate is not trusted",
        "without TLS": "what listens there speaks no TLS: write http://",
        "for another name": "its certificate is for another name",
    }
    assert (found.grade, said[served] in found.text) == ("problem", True), found.text
    if context is not None:
        assert other.text.endswith("what listens there speaks TLS: write https://")


async def test_a_certificate_file_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    missing = str(tmp_path / "no.pem")
    chosen = settings(tmp_path, upstream__ca_file=missing, upstream__url="https://localhost:1/v1")
    found = await check.upstream(chosen)
    assert (found.grade, found.part) == ("problem", "upstream")


# This host


def test_a_spool_that_cannot_be_used_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "spool.db").write_text("garbage" * 50)
    found = check.spool(settings(tmp_path))
    assert (found.grade, found.part) == ("problem", "spool")
    assert "file is not a database; move it away" in found.text


def test_a_spool_that_is_in_use_is_tried_and_keeps_what_it_has(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool.db", f"sqlite:///{tmp_path}/m.db", 1 << 20)
    spool.open()
    try:
        spool.put(SessionKey("t", "s"), "x1", "commit", b"{}")
        assert check.spool(settings(tmp_path)).grade == "ok"
        assert [entry.exchange for entry in spool.entries()] == ["x1"]
    finally:
        spool.close()


def test_what_waits_for_another_store_is_a_warning_and_left_as_it_is(tmp_path: Path) -> None:
    path, hosts = tmp_path / "spool.db", "redis+sentinel://b:1,a:1/main/0"
    for store in (hosts, "redis+sentinel://c:1/main/0"):
        spool = Spool(path, store, 1 << 20)
        spool.open()
        spool.put(SessionKey("t", "s"), "x1", "commit", b"{}")
        spool.close()
    found = check.spool(settings(tmp_path, store__url="redis+sentinel://me:hush@a:1,d:1/main"))
    assert (found.grade, found.part) == ("warning", "spool")
    assert found.text.endswith("waits for another store: 1 for redis+sentinel://c:1/main/0")
    spool.open()
    assert spool.waiting_for_others() == {hosts: 1}
    spool.close()


@pytest.mark.parametrize("there", [True, False], ids=["there", "not there"])
def test_a_full_disk_is_a_problem_of_the_spool(there: bool, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "spool.db"
    if there:
        path.parent.mkdir()
        spool = Spool(path, "memory://", 1 << 20)
        spool.open()
        spool.close()
    before = tree(tmp_path).keys()
    script = f"""
        import resource, signal
        from pathlib import Path
        from proxy.preflight import database_problem
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (16384, 16384))
        print(database_problem(Path({str(path)!r})))
    """
    told = ran(dedent(script)).stdout
    assert "disk I/O error" in told or "full" in told
    logs = {f"{path}-wal", f"{path}-shm"}  # SQLite's own: it cannot tidy up either
    assert tree(tmp_path).keys() - logs == before


def test_a_place_that_cannot_be_written_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = check.spool(settings(tmp_path, spool__path=str(tmp_path / "file" / "spool.db")))
    assert (found.grade, "cannot write in the folder" in found.text) == ("problem", True)


async def test_an_address_that_is_free_is_ok(tmp_path: Path) -> None:
    assert (await check.listening(settings(tmp_path, server__port=0))).grade == "ok"


async def test_a_host_of_no_name_and_a_port_in_use_are_problems(tmp_path: Path) -> None:
    nowhere = await check.listening(settings(tmp_path, server__host="no-such-host.invalid"))
    assert (nowhere.grade, "no address for the host" in nowhere.text) == ("problem", True)
    async with ScriptedUpstream() as other:
        port = urlsplit(other.url).port
        taken = await check.listening(settings(tmp_path, server__port=port))
    assert (taken.grade, "already in use" in taken.text) == ("problem", True)


async def test_a_proxy_that_serves_already_is_what_a_check_before_a_restart_finds(
    tmp_path: Path,
) -> None:
    async with running(settings_for(tmp_path, "http://127.0.0.1:9/v1")) as proxy:
        port = urlsplit(proxy.url).port
        found = await check.listening(settings(tmp_path, server__port=port))
    assert (found.grade, found.text) == ("warning", f"a proxy serves on 127.0.0.1:{port} already")


async def test_a_proxy_whose_answer_comes_in_pieces_is_known(tmp_path: Path) -> None:
    async with ScriptedUpstream() as other:
        other.reply(Script(pieces=pieces_of(b'{"status":"ok"}', 1), framing="length"))
        found = await check.listening(settings(tmp_path, server__port=other.port))
    assert found.text == f"a proxy serves on 127.0.0.1:{other.port} already"


# Doubts


@pytest.mark.parametrize(
    ("overrides", "doubted"),
    [
        pytest.param({}, [], id="nothing"),
        pytest.param({"store.url": "memory://"}, ["store.url"], id="memory"),
        pytest.param(
            {"store.url": "memory://", "server.workers": 2},
            ["store.url", "server.workers"],
            id="memory-of-each-worker",
        ),
        pytest.param(
            {"store.url": "sqlite:///m.db", "spool.path": "./m.db"}, ["spool.path"], id="one-file"
        ),
        pytest.param({"store.wait_replicas": 1}, ["store.wait_replicas"], id="sqlite-replicas"),
        pytest.param({"server.host": "0.0.0.0"}, ["server.admin_key"], id="public-without-key"),
        pytest.param(
            {"server.host": "0.0.0.0", "server.admin_key": "k" * 16, "tenancy.mode": "single"},
            ["tenancy.mode"],
            id="public-and-single",
        ),
        pytest.param({"server.admin_key": "k" * 15}, ["server.admin_key"], id="short-key"),
        pytest.param({"upstream.url": "http://a.example/v1"}, ["upstream.url"], id="in-the-clear"),
        pytest.param({"upstream.url": "http://ollama:11434/v1"}, [], id="own-network"),
        pytest.param({"upstream.api_key": "sk-up"}, ["upstream.api_key"], id="a-key-of-no-use"),
        pytest.param(
            {"clients": [{"name": "web", "key_sha256": ["0" * 64]}]}, ["clients"], id="open-to-all"
        ),
        pytest.param(
            {"upstream.api_key": "sk-up", "memory.recall.embeddings.model": "m"},
            [],
            id="a-key-for-embeddings",
        ),
        pytest.param(
            {"memory.summary.enabled": True, "memory.window": "all"},
            ["memory.summary.enabled"],
            id="nothing-to-summarise",
        ),
        pytest.param(
            {"memory.summary.enabled": True, "memory.max_tokens": 500},
            ["memory.max_tokens", "memory.summary.max_tokens"],
            id="no-room-for-a-summary",
        ),
        pytest.param(
            {"memory.facts.enabled": True, "memory.facts.url": "http://a.example/v1"},
            ["memory.facts.api_key", "memory.facts.url"],
            id="another-api",
        ),
        pytest.param(
            {"memory.facts.url": "http://a.example/v1"}, [], id="another-api-that-is-not-asked"
        ),
    ],
)
def test_what_is_valid_and_probably_not_meant_is_said(
    overrides: dict[str, object], doubted: list[str], tmp_path: Path
) -> None:
    found = [part for part, _ in setting_warnings(settings(tmp_path, **overrides))]
    assert found == doubted


def test_mcp_without_its_library_is_said_as_serve_says_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = settings(tmp_path, **{"mcp.enabled": True})
    assert not list(setting_warnings(wanted))
    monkeypatch.setitem(sys.modules, "mcp", None)
    ((setting, text),) = setting_warnings(wanted)
    assert setting == "mcp.enabled"
    assert "pip install '.[mcp]'" in text
    assert not list(setting_warnings(settings(tmp_path)))


def test_a_window_that_recall_leaves_no_room_for_is_said() -> None:
    cramped = ProfileSettings.model_construct(
        max_tokens=1000, recall=RecallSettings.model_construct(enabled=True, max_tokens=1000)
    )
    roomy = cramped.model_copy(update={"max_tokens": 1001})
    cases = {"tight": cramped, "wide": roomy}
    found = setting_warnings(Settings.model_construct(profiles=cases))
    assert [part for part, _ in found] == ["profiles.tight.max_tokens"]
