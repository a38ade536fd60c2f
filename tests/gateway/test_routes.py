"""Which paths are the relay's, and where they go upstream."""

from __future__ import annotations

import pytest

from proxy.gateway.routes import misses_v1, route


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
        b"/openai/models",
        b"/openai/deployments",
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
        (b"/v1/chat/completions/chatcmpl-1", False),
        (b"/v1/completions", False),
        (b"/v1/chat%2Fcompletions", False),
        (b"/v1/deployments/chat/completions", False),
    ],
)
def test_only_chat_completions_have_memory(path: bytes, chat: bool) -> None:
    found = route(path)
    assert found is not None
    assert found.chat is chat


@pytest.mark.parametrize(
    ("path", "misses"),
    [
        (b"/chat/completions", True),
        (b"/models", True),
        (b"/api/chat/completions", True),
        (b"/v1/chat/completions", False),
        (b"/memory/v1/sessions", False),
        (b"/", False),
    ],
)
def test_a_base_url_without_v1_is_recognised(path: bytes, misses: bool) -> None:
    assert misses_v1(path) is misses
