"""config/proxy.toml tells every setting and its default, and nothing else."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import BaseModel

from proxy.settings import ClientSettings, ListedUpstream, Settings, load

FILE = Path(__file__).parents[1] / "config" / "proxy.toml"
OPTIONAL = re.compile(r"^#(?=\w+ = |\[)", re.MULTILINE)


def written(tree: Mapping[str, object], above: str = "") -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            found |= written(value, f"{above}{key}.")
        else:
            found[above + key] = tuple(value) if isinstance(value, list) else value
    return found


def defaults(section: BaseModel, above: str = "") -> Iterator[tuple[str, object]]:
    for name in type(section).model_fields:
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            yield from defaults(value, f"{above}{name}.")
        else:
            yield above + name, value


def text() -> str:
    return FILE.read_text(encoding="utf-8")


def test_every_default_stands_in_the_file_and_every_value_of_the_file_is_a_default() -> None:
    expected = {
        name: value
        for name, value in defaults(Settings())
        if value is not None and name not in ("clients", "profiles", "upstreams")
    }
    assert written(tomllib.loads(text())) == expected, "config/proxy.toml"


def test_every_setting_without_a_default_stands_there_commented_out() -> None:
    everything = tomllib.loads(OPTIONAL.sub("", text()))
    active = tomllib.loads(text())
    commented = set(written(everything)) - set(written(active))
    without_default = {name for name, value in defaults(Settings()) if value is None}
    examples = {
        "clients",
        "upstreams",
        "profiles.brief.max_tokens",
        "profiles.brief.recall.max_tokens",
    }
    assert commented == without_default | examples
    (client,) = everything["clients"]
    assert client.keys() == ClientSettings.model_fields.keys()
    (upstream,) = everything["upstreams"]
    assert upstream.keys() == ListedUpstream.model_fields.keys()


def test_the_file_is_accepted_as_it_is() -> None:
    assert load(FILE) == Settings()


def test_its_examples_are_accepted_once_they_are_no_comments(tmp_path: Path) -> None:
    config = tmp_path / "proxy.toml"
    config.write_text(OPTIONAL.sub("", text()), encoding="utf-8")
    assert load(config).clients[0].signing_secret is not None


def test_every_setting_has_one_comment_line_above_it() -> None:
    lines = text().splitlines()
    for above, line in zip(lines, lines[1:], strict=False):
        key = re.match(r"#?(\w+) = ", line)
        if key and not line.startswith(("#max_tokens",)):
            assert re.match(r"# \S", above), f"{key[1]} has no comment"
