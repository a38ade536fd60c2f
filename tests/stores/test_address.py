"""Store URLs: what they mean, how the store is called, and what is refused with which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from proxy.stores.address import is_same_store, read_address
from proxy.stores.open import open_store
from proxy.stores.redis.store import RedisStore
from proxy.stores.sqlite.store import SQLiteMemory, SQLiteStore


@pytest.mark.parametrize(
    ("url", "name"),
    [
        pytest.param("memory://", "memory://", id="memory"),
        pytest.param("sqlite:////data/memory.db", "sqlite:////data/memory.db", id="absolute"),
        pytest.param(
            "sqlite:////data/my%20memory.db", "sqlite:////data/my memory.db", id="encoded"
        ),
        pytest.param("redis://", "redis://localhost:6379/0", id="all-defaults"),
        pytest.param("redis://example", "redis://example:6379/0", id="default-port"),
        pytest.param("REDIS://Example:6379/", "redis://example:6379/0", id="case-and-slash"),
        pytest.param("redis://u:p%40ss@h:1/2", "redis://h:1/2", id="no-credentials"),
        pytest.param("redis://:secret@h", "redis://h:6379/0", id="no-password"),
        pytest.param("redis://[::1]:7000", "redis://[::1]:7000/0", id="ipv6"),
        pytest.param("rediss://h?ssl_cert_reqs=none", "rediss://h:6379/0", id="tls"),
        pytest.param("redis+cluster://a,b:7000", "redis+cluster://a:6379,b:7000", id="cluster"),
        pytest.param("redis+cluster://b:2,a,b:1", "redis+cluster://a:6379,b:1,b:2", id="any-order"),
        pytest.param(
            "redis+sentinel://p@a,b:1/main",
            "redis+sentinel://a:26379,b:1/main/0",
            id="sentinel",
        ),
        pytest.param(
            "redis+sentinel://a/main/3?sentinel_password=x",
            "redis+sentinel://a:26379/main/3",
            id="sentinel-with-database",
        ),
    ],
)
def test_a_url_has_one_name(url: str, name: str) -> None:
    assert open_store(url, timeout=1, commit_timeout=1).name == name
    assert read_address(url).name == name


SENTINEL, CLUSTER = "redis+sentinel://", "redis+cluster://"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        pytest.param(f"{SENTINEL}b:1,a:1/main", f"{SENTINEL}a:1,b:1/main", True, id="order"),
        pytest.param(f"{SENTINEL}a,b/main/0", f"{SENTINEL}b,c/main", True, id="one-in-common"),
        pytest.param(f"{SENTINEL}a/main", f"{SENTINEL}b/main", False, id="none-in-common"),
        pytest.param(f"{SENTINEL}a/main", f"{SENTINEL}a/other", False, id="service"),
        pytest.param(f"{SENTINEL}a/main/0", f"{SENTINEL}a/main/1", False, id="database"),
        pytest.param(f"{CLUSTER}a:1", f"{CLUSTER}a:1,b:1", True, id="a-seed-added"),
        pytest.param(f"{CLUSTER}a:1", f"{CLUSTER}a:2", False, id="another-port"),
        pytest.param(f"{CLUSTER}a:1", "rediss+cluster://a:1", False, id="tls"),
        pytest.param(f"{CLUSTER}a:6379", "redis://a:6379/0", False, id="kind"),
        pytest.param("sqlite:////a b?.db", "sqlite:////a b?.db", True, id="file"),
        pytest.param("sqlite:////a.db", "sqlite:////b.db", False, id="another-file"),
        pytest.param("redis://a", "what nobody writes any more", False, id="no-name"),
    ],
)
def test_names_of_one_store_have_a_host_in_common(one: str, other: str, same: bool) -> None:
    assert is_same_store(one, other) is is_same_store(other, one) is same


def test_hosts_are_asked_in_the_order_in_which_they_are_written() -> None:
    assert read_address(f"{CLUSTER}b:2,a:1").nodes == (("b", 2), ("a", 1))


def test_a_relative_file_is_named_by_its_absolute_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store("sqlite:///data/memory.db", timeout=1, commit_timeout=1)
    assert store.name == f"sqlite:///{tmp_path}/data/memory.db"
    assert not (tmp_path / "data").exists()


def test_credentials_are_read_and_never_shown() -> None:
    address = read_address("redis+cluster://us%3Aer:p%2Fw@h")
    assert (address.username, address.password) == ("us:er", "p/w")
    store = open_store("redis+cluster://us%3Aer:p%2Fw@h", timeout=1, commit_timeout=1)
    for text in (repr(address), repr(store), store.name):
        assert "p/w" not in text and "us:er" not in text and "%2F" not in text


@pytest.mark.parametrize(
    ("url", "words"),
    [
        pytest.param("", "sqlite:///relative.db", id="empty"),
        pytest.param("postgres://h/db", "unknown store 'postgres'", id="unknown-scheme"),
        pytest.param("memory.db", "sqlite:///relative.db", id="a-bare-path"),
        pytest.param("sqlite://", "sqlite:////absolute.db", id="no-file"),
        pytest.param("sqlite://memory.db", "sqlite:///relative.db", id="two-slashes"),
        pytest.param("sqlite:///folder/", "sqlite:///relative.db", id="a-folder"),
        pytest.param("sqlite:///:memory:", "memory://", id="sqlite-in-memory"),
        pytest.param("memory://x", "memory://", id="named-memory"),
        pytest.param("redis://h:port", "localhost:6379", id="port-is-no-number"),
        pytest.param("redis://h:70000", "localhost:6379", id="port-is-too-large"),
        pytest.param("redis://h/db", "redis://host:6379/0", id="database-is-no-number"),
        pytest.param("redis://:a/b@h", "in a password write / as %2F", id="slash-in-password"),
        pytest.param("redis://:a?b@h", "in a password write / as %2F", id="mark-in-password"),
        pytest.param("redis://a,b", "redis+cluster://", id="several-hosts"),
        pytest.param("redis+cluster://h/1", "database 0", id="cluster-with-database"),
        pytest.param("redis+sentinel://h", "redis+sentinel://host:26379/service", id="no-service"),
        pytest.param("redis://h?timeout=1", "unknown option 'timeout'", id="unknown-option"),
        pytest.param("redis://h?ssl_ca_certs=x", "unknown option", id="tls-option-without-tls"),
    ],
)
def test_a_url_that_means_nothing_is_refused_with_what_to_write(url: str, words: str) -> None:
    with pytest.raises(ValueError) as refused:
        open_store(url, timeout=1, commit_timeout=1)
    assert words in str(refused.value)


def test_the_value_of_an_option_may_have_an_at_sign() -> None:
    found = read_address("redis+sentinel://h/main?sentinel_password=a@b")
    assert (found.service, found.options) == ("main", {"sentinel_password": "a@b"})
    found = read_address("rediss://h?ssl_ca_certs=/certs@1/ca.pem")
    assert found.options == {"ssl_ca_certs": "/certs@1/ca.pem"}


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("hush", id="no-url"),
        pytest.param("hush hush://h", id="no-scheme"),
        pytest.param("redis://:hush/hush@h", id="a-slash"),
        pytest.param("redis://:1/hush@h", id="a-slash-behind-a-port"),
        pytest.param("redis://h/hush", id="a-database"),
        pytest.param("redis://:pass?hush@h", id="a-question-mark"),
    ],
)
def test_what_may_be_a_password_is_not_repeated(url: str) -> None:
    with pytest.raises(ValueError) as refused:
        read_address(url)
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        pytest.param("memory://", SQLiteMemory, id="memory"),
        pytest.param("sqlite:///a.db", SQLiteStore, id="sqlite"),
        pytest.param("rediss+sentinel://h/s", RedisStore, id="sentinel"),
    ],
)
def test_the_scheme_chooses_the_store(url: str, kind: type) -> None:
    store = open_store(url, timeout=1, commit_timeout=1)
    assert isinstance(store, kind)
    assert kind.__name__ in repr(store)
