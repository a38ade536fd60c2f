"""The reference of the memory API, from the OpenAPI document that the proxy itself serves.

It stands where ``api-reference.md`` has its mark.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from sphinx.application import Sphinx

from proxy.memory_api.openapi.document import DocumentOptions, document
from proxy.memory_api.operations import OPERATIONS

PAGE = "api-reference"
MARK = "<!-- operations -->"
METHODS = ("get", "put", "post", "patch", "delete")

Json = Mapping[str, Any]


def written(found: Json) -> str:
    """An OpenAPI document as Markdown: its operations by tag, then its objects."""
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
    yield from (f"{operation[part]}\n" for part in ("summary", "description") if part in operation)
    parameters = [*item.get("parameters", ()), *operation.get("parameters", ())]
    yield from _parameters([_resolved(found, each) for each in parameters])
    body = _resolved(found, operation.get("requestBody", {}))
    for kind, media in body.get("content", {}).items():
        yield f"Takes {_type(media.get('schema', {}))} as `{kind}`.\n"
    yield from _answers(found, operation["responses"])


def _parameters(parameters: list[Json]) -> Iterator[str]:
    if parameters:
        yield from _table("parameter", "in", "type", "meaning")
        for each in parameters:
            kind = _type(each.get("schema", {}))
            yield _row(f"`{each['name']}`", each["in"], kind, each.get("description", ""))
        yield ""


def _answers(found: Json, responses: Json) -> Iterator[str]:
    yield from _table("status", "answers", "meaning")
    for status, response in responses.items():
        answer = _resolved(found, response)
        kinds = [_type(media.get("schema", {})) for media in answer.get("content", {}).values()]
        yield _row(status, ", ".join(dict.fromkeys(kinds)), _sentence(answer["description"]))
    yield ""


def _sentence(text: str) -> str:
    """Of a list, its items one after the other: a cell has one paragraph."""
    return " ".join(line.removeprefix("- ") for line in text.splitlines())


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
    if "allOf" in schema:
        return _type(schema["allOf"][0])
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
        source[0] = source[0].replace(MARK, written(document(DocumentOptions(), OPERATIONS)))


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", _fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
