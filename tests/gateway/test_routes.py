"""Which paths are the relay's, and where they go upstream."""

from __future__ import annotations

import pytest

from proxy.gateway import routes
from proxy.gateway.routes import FORMATS, api_without_v1, route
from proxy.settings import ClientSettings


@pytest.mark.parametrize(
    ("path", "session", "target", "name"),
    [
        pytest.param(b"/v1/models", None, b"/models", "models", id="plain"),
        pytest.param(b"/v1/", None, b"/", "", id="the-root-with-a-slash"),
        pytest.param(b"/v1/chat/completions", None, b"/chat/completions", "chat/completions"),
        pytest.param(b"/s/a/v1/models", b"a", b"/models", "models", id="session"),
        pytest.param(b"/s/a%2Fb/v1/models", b"a%2Fb", b"/models", "models", id="encoded-session"),
        pytest.param(b"/s//v1/models", b"", b"/models", "models", id="empty-session"),
        pytest.param(b"/openai/v1/models", None, b"/models", "models", id="azure-v1"),
        pytest.param(
            b"/openai/deployments/d/chat/completions",
            None,
            b"/deployments/d/chat/completions",
            "chat/completions",
            id="azure-deployment",
        ),
        pytest.param(
            b"/s/a/openai/deployments/d/embeddings",
            b"a",
            b"/deployments/d/embeddings",
            "embeddings",
            id="azure-deployment-with-a-session",
        ),
        pytest.param(b"/openai/files", None, b"/files", "files", id="azure-without-a-deployment"),
        pytest.param(b"/openai/deployments", None, b"/deployments", "deployments", id="azure-list"),
        pytest.param(b"/s/a/openai/responses", b"a", b"/responses", "responses", id="azure-named"),
        pytest.param(b"/v1/models/a%2Fb", None, b"/models/a%2Fb", "models/a%2Fb", id="encoded"),
        pytest.param(b"/v1//x//y/", None, b"//x//y/", "x//y", id="slashes-are-kept"),
        pytest.param(b"/v1/v1/models", None, b"/v1/models", "v1/models", id="v1-once-only"),
        pytest.param(b"/v1/s/a/v1/x", None, b"/s/a/v1/x", "s/a/v1/x", id="session-first-or-not"),
    ],
)
def test_what_is_below_v1_goes_below_the_upstream(
    path: bytes, session: bytes | None, target: bytes, name: str
) -> None:
    found = route(path)
    assert found is not None
    assert (found.session, found.target, found.name) == (session, target, name)


@pytest.mark.parametrize(
    "path",
    [
        b"/",
        b"",
        b"/v2/models",
        b"/v1x/models",
        b"/V1/models",
        b"/v1",
        b"/s/a/v1",
        b"/openai/v1",
        b"/memory/v1/sessions",
        b"/healthz",
        b"/metrics",
        b"/chat/completions",
        b"/s/a/models",
        b"/s/a/b/v1/models",
        b"/x/v1/models",
        b"/openai",
    ],
)
def test_other_paths_are_not_the_relays(path: bytes) -> None:
    assert route(path) is None


@pytest.mark.parametrize(
    ("path", "chat"),
    [
        (b"/v1/chat/completions", True),
        (b"/s/x/v1/chat/completions", True),
        (b"/openai/v1/chat/completions", True),
        (b"/openai/deployments/gpt/chat/completions", True),
        (b"/openai/responses", True),
        (b"/openai/batches", False),
        (b"/v1/chat/completions/chatcmpl-1", False),
        (b"/v1/completions", False),
        (b"/v1/chat%2Fcompletions", False),
        (b"/v1/deployments/chat/completions", False),
    ],
)
def test_only_chat_completions_have_memory(path: bytes, chat: bool) -> None:
    found = route(path)
    assert found is not None
    assert found.is_chat is chat


@pytest.mark.parametrize(
    ("path", "misses"),
    [
        (b"/chat/completions", "chat/completions"),
        (b"/models", "models"),
        (b"/api/chat/completions", "chat/completions"),
        (b"/v1/chat/completions", None),
        (b"/memory/v1/sessions", None),
        (b"/memory/v1/sessions/s/messages/models", None),
        (b"/", None),
    ],
)
def test_a_base_url_without_v1_is_recognised(path: bytes, misses: str | None) -> None:
    assert api_without_v1(path) == misses


ALLOWED = ("chat/completions", "models", "embeddings")


@pytest.mark.parametrize(
    "path",
    [
        b"/openai/deployments/..%2f..%2fv1%2ffine_tuning%2fjobs%3f/chat/completions",
        b"/v1/deployments/..%2ffiles%3f/models",
        b"/openai/deployments/../chat/completions",
        b"/openai/deployments/%2e%2e/chat/completions",
        b"/openai/deployments/..;x=1/chat/completions",
        b"/openai/deployments/a%2ffiles/chat/completions",
        b"/openai/deployments/a%5cfiles/chat/completions",
        b"/openai/deployments/a%252ffiles/chat/completions",
        b"/openai/deployments/files%3f/chat/completions",
        b"/openai/deployments/files%23/chat/completions",
        b"/openai/deployments/a%00b/chat/completions",
        b"/openai/deployments/a%0d%0ab/chat/completions",
        b"/v1/chat/deployments/x/completions",
        b"/v1/files/deployments/x/models",
        b"/v1/models/../files",
        b"/v1/models/..\\files",
        b"/v1/models/%2e%2e/files",
        b"/v1/models/%252e%252e%252ffiles",
        b"/v1/models/%25252e%25252e/files",
        b"/v1/models/%2525252e%2525252e/files",
        b"/v1/models/" + b"%25" * 50 + b"2e/files",
        b"/v1/models/%" + b"25" * 50 + b"2e%2e/files",
        b"/v1/models/%c0%ae%c0%ae/files",
        b"/v1/models/%c0%ae%c0%ae%c0%affiles",
        b"/v1/models/%e0%80%ae%e0%80%ae/files",
        b"/v1/models/%ef%bc%8e%ef%bc%8e/files",
        b"/v1/models/%u002e%u002e/files",
        b"/v1/models/..%00/files",
        b"/v1/models/..;/files",
        b"/v1/models/;x/../files",
        b"/v1/models/x%3f",
        b"/v1/models/.%20./%2e./files",
        b"/v1/models;x",
        b"/v1/models%2f..%2ffiles",
        b"/v1/Models",
        b"/v1/modelsx",
    ],
)
def test_no_spelling_leads_out_of_the_allowed_paths(path: bytes) -> None:
    found = route(path)
    assert found is None or not found.allowed_by("POST", ALLOWED)


@pytest.mark.parametrize(
    "path",
    [
        b"/v1/models",
        b"/v1/models/gpt-4o",
        b"/v1/models/meta-llama%2FLlama-3.1-8B",
        b"/v1/models/ft:gpt-4o:org::x",
        b"/v1/models/caf%C3%A9%20..x...",
        b"/v1/chat/completions",
        b"/s/a%2fb/v1/chat/completions",
        b"/openai/deployments/gpt-4o/chat/completions",
        b"/openai/deployments/my%20own/embeddings",
    ],
)
def test_what_is_allowed_stays_so_however_it_is_encoded(path: bytes) -> None:
    found = route(path)
    assert found is not None
    assert found.allowed_by("POST", ALLOWED)


@pytest.mark.parametrize(
    ("path", "named"),
    [
        (b"/v1/messages/batches", "messages/batches"),
        (b"/v1/messages/batches/b1/results", "messages/batches"),
        (b"/v1/messages/b%61tches/b1", ""),
        (b"/v1/messages%2fbatches", ""),
        (b"/v1/messages//batches;x=1", ""),
        (b"/openai/deployments/d/messages/batches", "messages/batches"),
    ],
)
def test_batches_of_others_are_not_below_messages(path: bytes, named: str) -> None:
    found = route(path)
    assert found is not None
    for method in ("GET", "POST"):
        assert not found.allowed_by(method, ("messages",))
        assert not named or found.allowed_by(method, ("messages", named))


DEFAULT: tuple[str, ...] = ClientSettings.model_fields["allowed_paths"].default


@pytest.mark.parametrize(
    ("method", "path", "named"),
    [
        ("GET", b"/v1/chat/completions", "GET chat/completions"),
        ("GET", b"/openai/deployments/d/chat/completions/", "GET chat/completions"),
        ("GET", b"/v1/chat/completions/%20", "GET chat/completions"),
        ("GET", b"/v1/responses", "GET responses"),
        ("get", b"/v1/messages", ""),
        ("DELETE", b"/v1/models/ft:gpt-4o:org::x", "DELETE models"),
        ("delete", b"/v1/models/x", ""),
        ("DELETE", b"/v1/files/file-1", "files"),
        ("DELETE", b"/v1/files/file-1", "DELETE files"),
        ("GET", b"/v1/conversations/conv_1", "conversations"),
        ("GET", b"/v1/threads/thread_1", "threads"),
        ("GET", b"/v1/batches", "batches"),
        ("POST", b"/v1/fine_tuning/jobs", "POST fine_tuning"),
    ],
)
def test_what_is_of_all_clients_is_open_to_one_that_it_is_named_for(
    method: str, path: bytes, named: str
) -> None:
    found = route(path)
    assert found is not None
    assert not found.allowed_by(method, DEFAULT)
    assert not found.allowed_by(method, (*DEFAULT, "PUT models", "PUT files"))
    assert not named or found.allowed_by(method, (*DEFAULT, named))


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", b"/v1/models"),
        ("POST", b"/v1/models/gemini-2.5-pro:generateContent"),
        ("GET", b"/v1/chat/completions/chatcmpl-1"),
        ("DELETE", b"/v1/responses/resp_1"),
        ("POST", b"/v1/messages/count_tokens"),
    ],
)
def test_what_is_of_whoever_knows_its_name_is_open_to_each(method: str, path: bytes) -> None:
    found = route(path)
    assert found is not None
    assert found.allowed_by(method, DEFAULT)


def test_a_path_that_is_named_with_a_method_is_open_to_no_other() -> None:
    found = route(b"/v1/files/file-1")
    assert found is not None
    assert found.allowed_by("GET", ("GET files",))
    assert not found.allowed_by("DELETE", ("GET files",))


def test_a_client_that_is_told_no_paths_may_call_every_api_that_has_memory() -> None:
    routes = [route(f"/v1/{name}".encode()) for name in FORMATS]
    assert all(found is not None and found.allowed_by("POST", DEFAULT) for found in routes)


def test_a_long_path_is_read_and_not_remembered() -> None:
    before = routes._cached_route.cache_info(), routes._cached_is_allowed.cache_info()
    found = route(b"/s/a/v1/models/" + b"x" * routes.MAX_CACHED_PATH)
    assert found is not None
    assert found.allowed_by("GET", ("GET models",))
    after = routes._cached_route.cache_info(), routes._cached_is_allowed.cache_info()
    assert after == before
