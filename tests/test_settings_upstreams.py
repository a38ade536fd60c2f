"""[[upstreams]]: where keys are read from, what is inherited, and that mistakes say what to do."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from proxy import preflight
from proxy.settings import ListedUpstream, Settings, SettingsError, effective, load
from proxy.settings.content import MAX_CHARACTERS

ONE = '[[upstreams]]\nname = "one"\nurl = "http://one/v1"\n'
CLIENTS = (
    '[tenancy]\nmode = "clients"\n[upstream]\napi_key = "sk-up"\n'
    f'[[clients]]\nname = "web"\nkey_sha256 = ["{"0" * 64}"]\n'
)


def loaded(folder: Path, text: str, **environ: str) -> Settings:
    path = folder / "proxy.toml"
    path.write_text(text, encoding="utf-8")
    return load(path, {}, environ)


def one(folder: Path, text: str, **environ: str) -> ListedUpstream:
    (found,) = loaded(folder, ONE + text, **environ).upstreams
    return found


def key(upstream: ListedUpstream) -> str | None:
    return upstream.api_key.get_secret_value() if upstream.api_key else None


def test_without_any_there_are_none() -> None:
    assert Settings().upstreams == ()


def test_a_key_is_read_from_the_file_itself_or_from_where_it_says(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("sk-3\n")
    assert key(one(tmp_path, "")) is None
    assert key(one(tmp_path, 'api_key = "sk-1"')) == "sk-1"
    assert key(one(tmp_path, 'api_key_env = "THEIR_KEY"', THEIR_KEY=" sk-2 ")) == "sk-2"
    assert key(one(tmp_path, f'api_key_file = "{secret}"')) == "sk-3"


def test_they_can_be_given_as_json_in_the_environment() -> None:
    text = json.dumps([{"name": "one", "url": "http://one/v1", "headers": {"X-Title": "a b"}}])
    (found,) = load(environ={"MEMORY_PROXY_UPSTREAMS": text}).upstreams
    assert found.headers["x-title"].get_secret_value() == "a b"


def test_what_one_does_not_set_it_has_from_upstream_but_never_its_key(tmp_path: Path) -> None:
    text = '[upstream]\napi_key = "sk-up"\nread_timeout = 7\nconnect_timeout = 3\n'
    settings = loaded(tmp_path, f"{text}{ONE}connect_timeout = 1\n")
    found = settings.with_upstream(settings.upstreams[0]).upstream
    assert (found.url, found.api_key) == ("http://one/v1", None)
    assert (found.read_timeout, found.connect_timeout) == (7, 1)


def test_no_key_and_no_header_is_shown(tmp_path: Path) -> None:
    settings = loaded(tmp_path, f'{ONE}api_key = "sk-secret"\nheaders = {{ X-A = "secret" }}\n')
    assert "secret" not in f"{effective(settings)} {settings!r}"
    assert pickle.loads(pickle.dumps(settings)) == settings


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(
            '[[upstreams]]\nname = "default"\nurl = "http://a/v1"',
            'upstreams[0].name: must not be "default": that is [upstream]',
            id="default",
        ),
        pytest.param(
            '[[upstreams]]\nname = "My GPU"\nurl = "http://a/v1"',
            "upstreams[0].name: must be a name of the characters a-z, 0-9, _ and -, at most 64",
            id="name",
        ),
        pytest.param(ONE + ONE, 'upstreams[1].name: "one" names more than one', id="twice"),
        pytest.param(
            '[[upstreams]]\nname = "a"\nurl = "http://127.0.0.1:8080/v1"',
            "upstreams[0].url: is the address of this proxy itself: it would call itself",
            id="itself",
        ),
        pytest.param(ONE + "kind = 'grpc'", "upstreams[0].kind: must be 'openai', ", id="kind"),
        pytest.param(ONE + "model = []", "did you mean upstreams[0].models?", id="unknown"),
        pytest.param(
            ONE + "api_key = 'a'\napi_key_env = 'B'",
            "upstreams[0].api_key_env: is set beside api_key: keep one of them",
            id="two-keys",
        ),
        pytest.param(
            ONE + "api_key_env = 'NOT_THERE'",
            "upstreams[0].api_key_env: the environment has no NOT_THERE",
            id="no-variable",
        ),
        pytest.param(
            ONE + "api_key_file = '/no/such'",
            "upstreams[0].api_key_file: /no/such: No such file or directory",
            id="no-file",
        ),
        pytest.param(
            ONE + "api_key = 'a'\nclient_keys = true",
            "upstreams[0].client_keys: sends the clients' own keys, and api_key is set: keep one",
            id="whose-key",
        ),
        pytest.param(
            CLIENTS + ONE + "client_keys = true",
            "clients' keys are this proxy's: set api_key",
            id="clients",
        ),
        pytest.param(
            ONE + "headers = { Authorization = 'x' }",
            "upstreams[0].headers: must not hold Authorization: set api_key",
            id="key-in-a-header",
        ),
        pytest.param(
            ONE + "headers = { Transfer-Encoding = 'x' }",
            "upstreams[0].headers: must not hold Transfer-Encoding: the proxy sets it itself",
            id="framing",
        ),
        pytest.param(
            ONE + 'headers = { X-A = "a\\r\\nb: c" }',
            "upstreams[0].headers: the value of X-A must be visible ASCII, and not empty",
            id="line-break",
        ),
        pytest.param(
            ONE + "[memory.summary]\nupstream = 'two'",
            'memory.summary.upstream: no [[upstreams]] has the name "two"',
            id="summary",
        ),
        pytest.param(
            ONE + "[profiles.p.facts]\nupstream = 'one'\nurl = 'http://a/v1'",
            "profiles.p.facts.url: is set beside upstream: keep one of them",
            id="summary-of-two",
        ),
    ],
)
def test_a_mistake_says_what_to_do(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(SettingsError) as caught:
        loaded(tmp_path, text)
    assert told in str(caught.value)


def test_a_key_that_is_none_is_told_without_it(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        one(tmp_path, 'api_key_env = "THEIR_KEY"', THEIR_KEY="sk secret")
    assert "upstreams[0].api_key_env: must be visible ASCII" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_key_file_that_is_far_too_long_is_told_and_not_cut(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("k" * (MAX_CHARACTERS + 1))
    with pytest.raises(SettingsError) as caught:
        one(tmp_path, f'api_key_file = "{file}"')
    told = f"upstreams[0].api_key_file: {file}: holds more than 1,048,576 characters"
    assert str(caught.value) == told


@pytest.mark.parametrize(
    "url",
    [
        "http://gateway/embeddings",
        "https://gateway.example.com/v1/account/messages",
        "https://gateway.example.com/responses/v1",
    ],
)
def test_a_gateways_path_may_be_called_as_an_endpoint(url: str, tmp_path: Path) -> None:
    (found,) = loaded(tmp_path, ONE.replace("http://one/v1", url)).upstreams
    assert found.url == url


@pytest.mark.parametrize(
    "end", ["chat/completions", "v1/messages", "openai/responses/", "api/v1/embeddings"]
)
def test_an_endpoint_is_no_base_url(end: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="leave out /"):
        loaded(tmp_path, ONE.replace("http://one/v1", f"http://one/{end}"))


def test_a_url_that_only_the_client_cannot_use_is_told_before_the_start(tmp_path: Path) -> None:
    settings = loaded(tmp_path, ONE.replace("http://one/v1", "http://one/\u00fc"))
    assert [line.partition(":")[0] for line in preflight.configuration_problems(settings)] == [
        "upstreams[0]"
    ]
