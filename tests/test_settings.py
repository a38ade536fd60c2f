"""Precedence, names, inheritance, and that every mistake is told at once."""

from __future__ import annotations

import json
import os
import pickle
import re
import zoneinfo
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from proxy.settings import Settings, SettingsError, effective, load, without_credentials
from proxy.settings.content import MAX_CHARACTERS

DIGEST = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
WRITTEN = ("summary", "facts", "profile", "episodes", "instructions", "tools")


def write(folder: Path, text: str) -> Path:
    path = folder / "proxy.toml"
    path.write_text(text, encoding="utf-8")
    return path


def problems(folder: Path, text: str = "", **environ: str) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        load(write(folder, text), {}, environ)
    return caught.value.problems


def test_without_any_source_the_defaults_hold() -> None:
    assert load() == Settings()


def test_the_command_line_wins_over_the_environment_over_the_file(tmp_path: Path) -> None:
    config = write(tmp_path, "[server]\nport = 1001\nworkers = 2\nhost = '10.0.0.1'\n")
    environ = {"MEMORY_PROXY_PORT": "1002", "MEMORY_PROXY_WORKERS": "3"}
    server = load(config, {"server.port": "1003", "server.host": None}, environ).server
    assert (server.port, server.workers, server.host) == (1003, 3, "10.0.0.1")


@pytest.mark.parametrize(
    ("name", "text", "place", "value"),
    [
        pytest.param("UPSTREAM", "http://a/v1", "upstream.url", "http://a/v1", id="upstream"),
        pytest.param("STORE", "memory://", "store.url", "memory://", id="store"),
        pytest.param("HOST", "::1", "server.host", "::1", id="host"),
        pytest.param("PORT", "0", "server.port", "0", id="port"),
        pytest.param("WORKERS", "4", "server.workers", "4", id="workers"),
        pytest.param("ADMIN_KEY", "s3cret", "server.admin_key", "********", id="admin-key"),
        pytest.param("UPSTREAM_API_KEY", "sk-1", "upstream.api_key", "********", id="api-key"),
        pytest.param("SPOOL__PATH", "/x/s.db", "spool.path", "/x/s.db", id="any-other"),
        pytest.param("MEMORY__START_ON_USER", "false", "memory.start_on_user", "false", id="bool"),
        pytest.param(
            "MEMORY__RECALL__SCOPE", "session", "memory.recall.scope", "session", id="deep"
        ),
        pytest.param("SERVER__CORS_ORIGINS", '["*"]', "server.cors_origins", '["*"]', id="list"),
        pytest.param("PROFILES__FAST__TTL", "9", "profiles.fast.ttl", "9", id="profile"),
    ],
)
def test_a_variable_sets_what_its_name_says(name: str, text: str, place: str, value: str) -> None:
    settings = load(environ={f"MEMORY_PROXY_{name}": text})
    assert dict(effective(settings))[place] == value


def test_clients_can_be_given_as_json_in_the_environment() -> None:
    text = f'[{{"name": "web", "key_sha256": ["{DIGEST.upper()}"]}}]'
    (client,) = load(environ={"MEMORY_PROXY_CLIENTS": text}).clients
    assert (client.name, client.key_sha256) == ("web", (DIGEST,))


def test_the_environment_may_name_the_file(tmp_path: Path) -> None:
    config = write(tmp_path, "[server]\nport = 1001\n")
    assert load(environ={"MEMORY_PROXY_CONFIG": str(config)}).server.port == 1001


def test_a_file_of_defaults_is_below_everything_else(tmp_path: Path) -> None:
    config = write(tmp_path, "[server]\nport = 1001\n")
    defaults = tmp_path / "defaults.toml"
    defaults.write_text('[server]\nhost = "0.0.0.0"\nport = 1000\nworkers = 2\n')
    environ = {"MEMORY_PROXY_DEFAULTS": str(defaults), "MEMORY_PROXY_WORKERS": "3"}
    server = load(config, {}, environ).server
    assert (server.host, server.port, server.workers) == ("0.0.0.0", 1001, 3)


def test_a_file_of_defaults_that_is_not_there_is_told_by_what_named_it() -> None:
    with pytest.raises(SettingsError, match="^MEMORY_PROXY_DEFAULTS /no/such: No such file"):
        load(environ={"MEMORY_PROXY_DEFAULTS": "/no/such"})


def test_a_variable_may_name_a_file_with_the_value(tmp_path: Path) -> None:
    key, url = tmp_path / "key", tmp_path / "url"
    key.write_text("s3cret\n")
    url.write_text("redis://u:p@cache/0")
    environ = {"MEMORY_PROXY_ADMIN_KEY_FILE": str(key), "MEMORY_PROXY_STORE__URL_FILE": str(url)}
    settings = load(environ=environ)
    assert settings.server.admin_key is not None
    assert settings.server.admin_key.get_secret_value() == "s3cret"
    assert settings.store.url == "redis://u:p@cache/0"


def test_a_setting_that_is_a_file_itself_is_not_read() -> None:
    environ = {"MEMORY_PROXY_UPSTREAM__CA_FILE": "/no/such"}
    assert load(environ=environ).upstream.ca_file == "/no/such"


def test_a_file_of_a_thousand_clients_is_read_to_its_end(tmp_path: Path) -> None:
    clients = [{"name": f"c{n}", "key_sha256": [f"{n:064x}"]} for n in range(1000)]
    file = tmp_path / "clients.json"
    file.write_text(json.dumps(clients))
    assert file.stat().st_size > 2**16
    assert len(load(environ={"MEMORY_PROXY_CLIENTS_FILE": str(file)}).clients) == 1000


@pytest.mark.parametrize(
    ("held", "told"),
    [
        pytest.param(None, ": No such file", id="missing"),
        pytest.param(b"\n", ": is empty", id="empty"),
        pytest.param(b"\xff\xfe", ": is not text", id="binary"),
        pytest.param(b"a b", "must be visible ASCII", id="wrong"),
        pytest.param(b"a" * (MAX_CHARACTERS + 1), ": holds more than 1,048,576", id="too-long"),
    ],
)
def test_a_file_with_no_value_in_it_is_told_by_its_variable(
    held: bytes | None, told: str, tmp_path: Path
) -> None:
    file = tmp_path / "key"
    if held is not None:
        file.write_bytes(held)
    (problem,) = problems(tmp_path, MEMORY_PROXY_ADMIN_KEY_FILE=str(file))
    assert problem.startswith("MEMORY_PROXY_ADMIN_KEY_FILE: ")
    assert told in problem


@pytest.mark.parametrize(
    "environ",
    [
        pytest.param({"OPENAI_BASE_URL": "http://127.0.0.1:8080/v1"}, id="openai-base-url"),
        pytest.param({"MEMORY_PROXY_UPSTREAM": ""}, id="empty"),
        pytest.param({"MEMORYPROXY_PORT": "1"}, id="another-prefix"),
        pytest.param(
            {
                "MEMORY_PROXY_SERVICE_HOST": "10.0.0.9",
                "MEMORY_PROXY_SERVICE_PORT_HTTP": "8080",
                "MEMORY_PROXY_PORT": "tcp://10.0.0.9:8080",
                "MEMORY_PROXY_PORT_8080_TCP_ADDR": "10.0.0.9",
            },
            id="kubernetes-service-of-our-name",
        ),
    ],
)
def test_variables_that_are_not_settings_change_nothing(environ: dict[str, str]) -> None:
    assert load(environ=environ) == Settings()


def test_settings_made_in_code_do_not_read_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_PROXY_server__port", "1")
    monkeypatch.setenv("MEMORY_PROXY_PORT", "1")
    assert Settings().server.port == Settings.model_validate({}).server.port == 8080
    assert load().server.port == 8080


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        pytest.param("SERVER", '{"port": 1}', "SERVER: unknown setting", id="a-section"),
        pytest.param("PROFILES__FAST", "{}", "PROFILES__FAST: unknown setting", id="a-profile"),
        pytest.param("PROFILES", "{}", "PROFILES: must be a table", id="profiles"),
        pytest.param("CLIENTS__0__NAME", "a", "CLIENTS__0__NAME: unknown setting", id="an-item"),
        pytest.param("CLIENTS", "{}", "CLIENTS: must be a list; ", id="no-list"),
        pytest.param("CLIENTS", '[{"name"]', "CLIENTS: must be a list; ", id="no-json"),
        pytest.param("STORE__URL__X", "a", "STORE__URL__X: unknown setting", id="below-a-value"),
        pytest.param("UPSTREM", "a", "UPSTREM: unknown setting; did you mean", id="short-name"),
        pytest.param("STORE__URL", "memory://", "STORE__URL: contradicts ", id="two-names"),
        pytest.param("UPSTREM_FILE", "/no/such", "UPSTREM_FILE: unknown setting", id="no-file"),
    ],
)
def test_a_variable_that_is_no_setting_is_told(
    name: str, text: str, told: str, tmp_path: Path
) -> None:
    environ = {"MEMORY_PROXY_STORE": "sqlite:///a.db", f"MEMORY_PROXY_{name}": text}
    (problem,) = problems(tmp_path, **environ)
    assert problem.startswith(f"MEMORY_PROXY_{told}")


def test_the_same_value_under_both_of_its_names_is_no_contradiction() -> None:
    environ = {"MEMORY_PROXY_PORT": "81", "MEMORY_PROXY_SERVER__PORT": " 81"}
    assert load(environ=environ).server.port == 81


def test_a_list_replaces_the_list_of_a_weaker_source_and_a_table_is_merged(tmp_path: Path) -> None:
    config = write(tmp_path, "[memory]\nttl = 5\nside_requests = ['a', 'b']\n")
    environ = {"MEMORY_PROXY_MEMORY__SIDE_REQUESTS": '["c"]'}
    memory = load(config, {"memory.max_tokens": 7}, environ).memory
    assert (memory.side_requests, memory.ttl, memory.max_tokens) == (("c",), 5, 7)


def test_every_mistake_of_every_source_is_told_at_once_by_its_own_name(tmp_path: Path) -> None:
    config = write(
        tmp_path,
        """
        colour = "red"
        [server]
        prot = 1
        [memory]
        max_tokens = -4
        side_requests = ["(", "fine"]
        [memory.summary]
        prompt = "no variables"
        [profiles.fast]
        window = "round"
        [profiles.Fast]
        [tenancy]
        mode = "clients"
        """,
    )
    environ = {
        "MEMORY_PROXY_SERVR__PORT": "1",
        "MEMORY_PROXY_MEMORY__TTL": "-1",
        "MEMORY_PROXY_SERVER__CORS_ORIGINS": "https://a",
        "MEMORY_PROXY_CLIENTS": '[{"name": "web"}]',
    }
    with pytest.raises(SettingsError) as caught:
        load(config, {"server.port": "x", "server.workers": "0"}, environ)
    told = {line.partition(": ")[0]: line.partition(": ")[2] for line in caught.value.problems}
    assert told.keys() == {
        "colour",
        "server.prot",
        "memory.max_tokens",
        "memory.side_requests[0]",
        "memory.summary.prompt",
        "profiles.fast.window",
        "profiles.Fast",
        "upstream.api_key",
        "MEMORY_PROXY_SERVR__PORT",
        "MEMORY_PROXY_MEMORY__TTL",
        "MEMORY_PROXY_SERVER__CORS_ORIGINS",
        "MEMORY_PROXY_CLIENTS[0].key_sha256",
        "--port",
        "--workers",
    }
    assert told["server.prot"] == "unknown setting; did you mean server.port?"
    assert told["MEMORY_PROXY_SERVR__PORT"].endswith("did you mean MEMORY_PROXY_SERVER__PORT?")
    assert str(caught.value).count("\n") == len(told) - 1


@pytest.mark.parametrize("part", WRITTEN)
def test_what_a_model_writes_is_off_until_it_is_switched_on(part: str, tmp_path: Path) -> None:
    assert not getattr(Settings().memory, part).enabled
    assert load(write(tmp_path, f"[memory.{part}]\nenabled = false\n")) == Settings()
    chosen = load(write(tmp_path, f"[memory.{part}]\nenabled = true\n[profiles.fast]\n"))
    assert getattr(chosen.memory, part).enabled
    assert getattr(chosen.profiles["fast"], part).enabled


@pytest.mark.parametrize(
    ("text", "name"),
    [
        pytest.param("[memory]\nevict_to = 0.0", "memory.evict_to", id="evict-to-nothing"),
        pytest.param("[memory]\nevict_to = 1.1", "memory.evict_to", id="evict-to-more"),
        pytest.param("[memory]\nevict_to = nan", "memory.evict_to", id="evict-to-nan"),
        pytest.param("[memory]\nttl = 3162240001", "memory.ttl", id="a-century-and-more"),
        pytest.param("[profiles.x]\nttl = 3162240001", "profiles.x.ttl", id="of-a-profile"),
        pytest.param(
            "[memory.recall]\ntime_zone = 'Mars/Base'", "memory.recall.time_zone", id="no-zone"
        ),
        pytest.param(
            "[profiles.x.recall]\ntime_zone = '../UTC'",
            "profiles.x.recall.time_zone",
            id="zone-file",
        ),
        pytest.param("[memory.recall]\ntime_zone = ''", "memory.recall.time_zone", id="zone"),
        pytest.param("[store]\nurl = 'mysql://x'", "store.url", id="store-scheme"),
        pytest.param("[store]\nurl = 'memory://x'", "store.url", id="store-memory-name"),
        pytest.param("[store]\ntimeout = 0", "store.timeout", id="no-time"),
        pytest.param("[upstream]\nurl = 'ftp://a/v1'", "upstream.url", id="upstream-scheme"),
        pytest.param("[upstream]\nurl = 'http:///v1'", "upstream.url", id="upstream-no-host"),
        pytest.param("[upstream]\nurl = 'http://a:x/v1'", "upstream.url", id="upstream-port"),
        pytest.param("[upstream]\nurl = 'http://u:p@a'", "upstream.url", id="upstream-user"),
        pytest.param("[upstream]\nurl = 'http://localhost:8080'", "upstream.url", id="ourselves"),
        pytest.param("[upstream]\nurl = 'http://a/v1/messages/'", "upstream.url", id="endpoint"),
        pytest.param("[server]\ncors_origins = ['a.com']", "server.cors_origins[0]", id="origin"),
        pytest.param("[server]\nuser_aliases = ['a b']", "server.user_aliases[0]", id="header"),
        pytest.param(
            "[server]\nbody_session_ids = ['a.b.c']", "server.body_session_ids[0]", id="body-field"
        ),
        pytest.param("[server]\nadmin_key = ''", "server.admin_key", id="empty-key"),
        pytest.param("[server]\nport = 65536", "server.port", id="port"),
        pytest.param("server = 3", "server", id="no-table"),
        pytest.param("[Server]", "Server", id="another-case"),
        pytest.param("clients = 3", "clients", id="no-list"),
        pytest.param("[tenancy]\nmode = 'keys'", "tenancy.mode", id="tenancy-mode"),
    ],
)
def test_a_wrong_value_is_told_by_its_key(text: str, name: str, tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, text)
    assert problem.startswith(f"{name}: ")


def test_time_zones_are_known_where_the_system_has_no_table_of_them(tmp_path: Path) -> None:
    """As on Windows."""
    path = write(tmp_path, "[memory.recall]\ntime_zone = 'Asia/Kathmandu'")
    ZoneInfo.clear_cache()
    zoneinfo.reset_tzpath(to=[])
    try:
        assert load(path).memory.recall.zone is not None
    finally:
        zoneinfo.reset_tzpath()


def test_another_service_on_the_loopback_is_not_this_proxy(tmp_path: Path) -> None:
    text = "[server]\nhost = '10.0.0.1'\n[upstream]\nurl = 'http://127.0.0.1:8080/v1'\n"
    assert load(write(tmp_path, text)).server.host == "10.0.0.1"


def test_clients_need_a_key_to_spend_and_at_least_one_of_them(tmp_path: Path) -> None:
    told = problems(tmp_path, '[tenancy]\nmode = "clients"\n')
    assert [line.partition(":")[0] for line in told] == ["tenancy.mode", "upstream.api_key"]


def test_clients_have_names_keys_and_profiles_that_exist(tmp_path: Path) -> None:
    one = f'[[clients]]\nname = "a"\nkey_sha256 = ["{DIGEST}"]\nprofiles = ["fast"]\n'
    told = problems(tmp_path, one + one + "signing_secret = ''\n[profiles.fast]\n")
    assert [line.partition(":")[0] for line in told] == ["clients[1].signing_secret"]
    told = problems(tmp_path, one + one.replace("fast", "slow") + "[profiles.fast]\n")
    assert [line.partition(":")[0] for line in told] == [
        "clients[0].name",
        "clients[0].key_sha256",
        "clients[1].name",
        "clients[1].key_sha256",
        "clients[1].profiles",
    ]


def test_settings_made_in_code_obey_the_rules_between_sections_too() -> None:
    with pytest.raises(ValueError, match="tenancy.mode"):
        Settings.model_validate({"tenancy": {"mode": "clients"}})


def test_a_profile_inherits_what_it_does_not_set_field_by_field(tmp_path: Path) -> None:
    config = write(
        tmp_path,
        """
        [memory]
        max_tokens = 500
        ttl = 60
        [memory.recall]
        max_tokens = 77
        scope = "session"
        [profiles.brief]
        ttl = 0
        [profiles.brief.recall]
        max_tokens = 5
        """,
    )
    settings = load(config)
    brief = settings.profile("brief")
    assert brief is not None
    assert (brief.max_tokens, brief.ttl) == (500, 0)
    assert (brief.recall.max_tokens, brief.recall.scope) == (5, "session")
    assert settings.profile("") is settings.memory
    assert settings.profile("other") is None


@pytest.mark.parametrize(
    ("url", "written", "limit"),
    [
        pytest.param("sqlite:///a.db", None, 2.5, id="sqlite"),
        pytest.param("redis://a", None, 0.5, id="redis"),
        pytest.param("redis://a", 1.5, 1.5, id="as-written"),
    ],
)
def test_the_commit_limit_suits_the_back_end(url: str, written: float | None, limit: float) -> None:
    settings = load(overrides={"store.url": url, "store.commit_timeout": written})
    assert settings.store.commit_limit == limit


def test_what_a_value_must_be_is_told_in_plain_words(tmp_path: Path) -> None:
    text = "[server]\nport = 'x'\n[memory]\nevict_to = 'half'\nstart_on_user = 'maybe'\n"
    assert problems(tmp_path, text) == (
        "server.port: must be a whole number (it is 'x')",
        "memory.evict_to: must be a number (it is 'half')",
        "memory.start_on_user: must be true or false (it is 'maybe')",
    )


def test_a_missing_file_and_a_broken_one_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SettingsError, match="no-such.toml: No such file"):
        load(tmp_path / "no-such.toml")
    monkeypatch.chdir(tmp_path)
    for folder in (tmp_path, Path(".")):
        with pytest.raises(SettingsError, match="Is a directory"):
            load(folder)
    (problem,) = problems(tmp_path, "[server\n")
    assert "is not TOML" in problem
    (tmp_path / "latin.toml").write_bytes(b"# \xe9")
    with pytest.raises(SettingsError, match="is not UTF-8 text: save it as such"):
        load(tmp_path / "latin.toml")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "[memory.recall]\nenabled = true\n[memory.recall]\ntimeout = 1\n",
            "[memory.recall] stands there twice: put all of it below one (at line 3, column 15)",
        ),
        (
            "[upstream]\nurl = http://127.0.0.1/v1\n",
            "Invalid value (at line 2, column 7):"
            " text stands in quotes, and true and false are written small",
        ),
    ],
)
def test_what_is_no_toml_is_told_with_what_to_do(text: str, told: str, tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, text)
    assert problem.endswith(f"is not TOML: {told}")


def test_what_is_wrong_in_a_list_is_told_and_not_that_nothing_is_left_of_it(tmp_path: Path) -> None:
    text = '[[clients]]\nname = "Web App"\nkey_sha256 = ["sk-key"]\n[memory.recall]\nroles = []'
    hashed = 'must be the SHA-256 of a key in hex: printf %s "$KEY" | sha256sum'
    assert set(problems(tmp_path, text)) == {
        "clients[0].name: must be a name of the characters a-z, 0-9, _ and -",
        f"clients[0].key_sha256[0]: {hashed}",
        "memory.recall.roles: must list at least one",
    }


def test_a_value_for_a_table_is_told_though_the_environment_sets_some_of_that_table(
    tmp_path: Path,
) -> None:
    text = "server = 3\nmemory = 'x'\nstore = []\nprofiles = 1\n"
    environ = {
        "MEMORY_PROXY_MEMORY__WHY": "1",
        "MEMORY_PROXY_STORE": "sqlite:///m.db",
        "MEMORY_PROXY_PORT": "1001",
    }
    told = problems(tmp_path, text, **environ)
    names = ("server", "memory", "store", "profiles")
    assert told == tuple(f"{name}: must be a table" for name in names)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "[memory]\nrecall = false\n",
            "memory.recall: must be a table: write [memory.recall], and enabled = true or false"
            " below it",
        ),
        (
            "[clients]\nname = 'web'\n",
            "clients: must be a list; write [[clients]], in the environment JSON",
        ),
        (
            "[upstream]\nproxy = 'socks5://egress:1080'\n",
            "upstream.proxy: must be a URL such as http://egress.example.com:3128,"
            " of an HTTP proxy",
        ),
        *(
            (
                f"[server]\nhost = '{host}'\n",
                "server.host: must be a name or an address alone; the port is server.port",
            )
            for host in ("127.0.0.1:8080", "http://localhost", "[::1]")
        ),
    ],
)
def test_what_is_written_wrongly_is_told_as_it_is_written_well(
    text: str, told: str, tmp_path: Path
) -> None:
    assert problems(tmp_path, text) == (told,)


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "windows.toml"
    file.write_bytes(b"\xef\xbb\xbf[server]\r\nport = 1001\r\n")
    assert load(file).server.port == 1001


@pytest.mark.parametrize("alias", ["Authorization", "x-api-key", "Cookie", "Host"])
def test_a_header_of_keys_is_no_id(tmp_path: Path, alias: str) -> None:
    (told,) = problems(tmp_path, f"[server]\nsession_aliases = ['{alias}']\n")
    assert told.startswith("server.session_aliases[0]: must not be a header of keys")


def test_the_file_may_be_a_pipe() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"[server]\nport = 1001\n")
    os.close(writer)
    try:
        assert load(Path(f"/dev/fd/{reader}")).server.port == 1001
    finally:
        os.close(reader)


def test_settings_survive_being_sent_to_a_worker_process() -> None:
    settings = load(
        environ={"MEMORY_PROXY_ADMIN_KEY": "s3cret", "MEMORY_PROXY_PROFILES__A__TTL": "1"}
    )
    again = pickle.loads(pickle.dumps(settings))
    assert again == settings
    assert again.server.admin_key.get_secret_value() == "s3cret"


def test_no_secret_is_in_the_repr_or_among_the_effective_values() -> None:
    environ = {
        "MEMORY_PROXY_ADMIN_KEY": "hush1",
        "MEMORY_PROXY_UPSTREAM_API_KEY": "hush2",
        "MEMORY_PROXY_STORE": "redis://u:hush3@cache/0",
        "MEMORY_PROXY_UPSTREAM__PROXY": "http://u:hush4@egress:1",
    }
    settings = load(environ=environ)
    assert "hush" not in repr(settings)
    assert "hush" not in repr(effective(settings))
    assert dict(effective(settings))["store.url"] == "redis://********@cache/0"


@pytest.mark.parametrize("name", ["ADMIN_KEY", "UPSTREAM", "STORE", "CLIENTS", "UPSTREAM__PROXY"])
def test_no_problem_repeats_a_value_that_may_hold_a_secret(name: str, tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, **{f"MEMORY_PROXY_{name}": "hush hush"})
    assert problem.startswith(f"MEMORY_PROXY_{name}: ")
    assert "hush" not in problem


@given(secret=st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=6))
@example(secret="in?it@both")
def test_whatever_may_be_a_secret_in_a_url_is_masked(secret: str) -> None:
    assume(secret not in "********@host/0")
    for piece in filter(None, re.split(r"[@?*]", secret)):
        assume(piece not in "redis://host/0https://host/v1")
        assert piece not in without_credentials(f"redis://user:{secret}@host/0")
        assert piece not in without_credentials(f"https://host/v1?api-key={secret}")


def test_what_is_no_secret_in_a_url_is_shown() -> None:
    assert without_credentials("https://a.b:1/v1") == "https://a.b:1/v1"
    assert without_credentials("https://a/v1?version=2") == "https://a/v1?********"
    assert without_credentials("redis://u:p@a:1/0") == "redis://********@a:1/0"
    assert without_credentials("./data/spool@home?.db") == "./data/spool@home?.db"


def test_true_is_no_number(tmp_path: Path) -> None:
    text = "[server]\nport = true\n[store]\ncommit_timeout = false\n[profiles.p]\nevict_to = true\n"
    told = problems(tmp_path, text)
    names = ("server.port", "store.commit_timeout", "profiles.p.evict_to")
    assert told == tuple(f"{name}: must not be true or false: it is no switch" for name in names)


def test_switches_are_true_or_false(tmp_path: Path) -> None:
    text = (
        "[mcp]\nenabled = true\n[[upstreams]]\nname = 'a'\nurl = 'http://a/v1'\ntrust_env = true\n"
    )
    found = load(write(tmp_path, text))
    assert (found.mcp.enabled, found.upstreams[0].trust_env) == (True, True)


def test_what_is_wrong_with_a_time_says_in_what_it_is_measured(tmp_path: Path) -> None:
    text = "[server]\nbody_timeout = '30s'\nworkers = 'x'\n[memory]\nttl = '1h'\n"
    workers, body, ttl = problems(tmp_path, text)
    assert body.endswith("(it is '30s'; it is in seconds)")
    assert workers.endswith("(it is 'x')")
    assert ttl.endswith("(it is '1h'; it is in seconds)")


def test_a_setting_without_its_table_is_told_where_it_belongs(tmp_path: Path) -> None:
    told = problems(tmp_path, "port = 1\nmax_tokens = 7\nnonsense = 1\n")
    assert told == (
        "port: unknown setting; did you mean server.port?",
        "max_tokens: unknown setting; did you mean memory.max_tokens?",
        "nonsense: unknown setting",
    )
