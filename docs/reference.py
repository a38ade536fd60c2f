"""The reference of the memory API, from the OpenAPI document that the proxy itself serves.

It stands where ``api-reference.md`` has its mark.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
from sphinx.application import Sphinx

from proxy.app import Factory
from proxy.settings import load

PAGE = "api-reference"
MARK = "<!-- operations -->"
PATH = "/memory/v1/openapi.json"
METHODS = ("get", "put", "post", "patch", "delete")

Json = Mapping[str, Any]


def document() -> Json | None:
    """The document of a proxy that is not started; None if it has none."""
    return asyncio.run(_asked())


async def _asked() -> Json | None:
    application = Factory(load(None, {"store.url": "memory://"}, {}))()
    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        answer = await client.get(PATH)
    return answer.json() if answer.status_code == 200 else None


def written(found: Json | None) -> str:
    """The document as Markdown: its operations by tag, then its objects."""
    if found is None:
        return "This version of the proxy serves no OpenAPI document."
    return "\n".join([*_operations(found), *_objects(found)])


def _operations(found: Json) -> Iterator[str]:
    by_tag: dict[str, list[str]] = {}
    for path, item in found["paths"].items():
        for method in METHODS:
            if method in item:
                lines = by_tag.setdefault((item[method].get("tags") or ["Other"])[0], [])
                lines += _operation(found, method, path, item)
    told = {tag["name"]: tag.get("description", "") for tag in found.get("tags", ())}
    for tag, lines in by_tag.items():
        yield from (f"## {tag[:1].upper()}{tag[1:]}", "", told.get(tag, ""), "", *lines)


def _operation(found: Json, method: str, path: str, item: Json) -> Iterator[str]:
    operation = item[method]
    yield f"### `{method.upper()} {path}`\n"
    for part in ("summary", "description"):
        if operation.get(part):
            yield f"{operation[part]}\n"
    parameters = [
        _resolved(found, p) for p in (*item.get("parameters", ()), *operation.get("parameters", ()))
    ]
    if parameters:
        yield from _table("parameter", "in", "type", "meaning")
        for each in parameters:
            yield _row(
                f"`{each['name']}`",
                each["in"],
                _type(each.get("schema", {})),
                each.get("description", ""),
            )
        yield ""
    body = _resolved(found, operation.get("requestBody", {}))
    for kind, media in body.get("content", {}).items():
        yield f"Takes {_type(media.get('schema', {}))} as `{kind}`.\n"
    yield from _table("status", "answers", "meaning")
    for status, answer in operation["responses"].items():
        answer = _resolved(found, answer)
        kinds = [_type(media.get("schema", {})) for media in answer.get("content", {}).values()]
        yield _row(status, ", ".join(dict.fromkeys(kinds)), answer.get("description", ""))
    yield ""


def _objects(found: Json) -> Iterator[str]:
    schemas = found.get("components", {}).get("schemas", {})
    if schemas:
        yield "## Objects\n"
    for name, schema in schemas.items():
        yield f"### {name}\n"
        if schema.get("description"):
            yield f"{schema['description']}\n"
        fields = schema.get("properties", {})
        if fields:
            yield from _table("field", "type", "meaning")
            for field, kind in fields.items():
                yield _row(f"`{field}`", _type(kind), kind.get("description", ""))
            yield ""


def _resolved(found: Json, value: Json) -> Json:
    """What a reference within the document stands for."""
    while "$ref" in value:
        target: Any = found
        for part in value["$ref"].removeprefix("#/").split("/"):
            target = target[part.replace("~1", "/").replace("~0", "~")]
        value = target
    return value


def _type(schema: Json) -> str:
    """A schema in a few words; objects of the API link to their table."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(_type(each) for each in schema[several]))
    if "enum" in schema or "const" in schema:
        words = schema.get("enum", [schema.get("const")])
        return ", ".join(f"`{json.dumps(word)}`" for word in words)
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _table(*names: str) -> Iterator[str]:
    yield _row(*names)
    yield "|" + "---|" * len(names)


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _fill(app: Sphinx, docname: str, source: list[str]) -> None:
    if docname == PAGE:
        source[0] = source[0].replace(MARK, written(document()))


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", _fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
