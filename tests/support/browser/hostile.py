"""Text that tries to do harm where it is shown, and a page that notices when some does."""

from __future__ import annotations

from typing import Any

from tests.support.browser.browsing import Console

EVERY_CHARACTER = "".join(chr(code) for code in range(0x21, 0x7F))
"""Visible ASCII: what ids are made of."""

MARKUP_ID = "<img/src=x/onerror=window.hurt=1>\"'`${window.hurt=1}"

MEGABYTE = 1 << 20
DEEP = '{"a":' * 3000 + "1" + "}" * 3000
BROKEN = '{"path": "/etc/passwd", "then": <script>window.hurt=1</script>'

TEXTS = (
    "<script>window.hurt = 1</script>",
    "<img src=x onerror='window.hurt = 1'><svg onload='window.hurt = 1'></svg>",
    "</title></textarea></style><iframe srcdoc='<script>parent.hurt = 1</script>'></iframe>",
    "\" autofocus onfocus='window.hurt = 1' style='position:fixed;inset:0' x=\"",
    "javascript:window.hurt=1 [click](javascript:window.hurt=1) data:text/html,<script>1</script>",
    "![image](https://elsewhere.example/pixel.png) <https://elsewhere.example/>",
    "${window.hurt = 1} {{window.hurt = 1}} <%= hurt %> __proto__ constructor",
    "bidi \u202egpj.exe\u202c \u2066isolated\u2069 \u061c and \u200b\ufeff invisible",
    "controls \u0000 \u0007 \u001b[31m \u0085 \u009f end",
    "z\u0351\u036b\u0343\u036a\u0302\u036b\u033d\u034f" * 100,
    "w" * 5000,
    "العربية עברית 中文 𝒳 👩‍👩‍👧‍👦 \U000e0041",
)

SHORT_TEXTS = tuple(text[:200].strip() for text in TEXTS)
"""As titles."""

_WATCH = """
window.broken = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.broken.push(`${event.violatedDirective} ${event.blockedURI}`));
"""


def names_of(texts: tuple[str, ...]) -> dict[str, str]:
    """A JSON object with all of them as names and as values."""
    return {text: text for text in texts}


def hostile_messages() -> list[dict[str, Any]]:
    """Every text in every place of a message, and JSON that is broken, deep and long."""
    said: list[dict[str, Any]] = [{"role": "user", "content": text} for text in TEXTS]
    arguments = {**{text[:60]: text for text in TEXTS}, "broken": BROKEN, "deep": DEEP}
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": text}}
        for n, (name, text) in enumerate(arguments.items())
    ]
    said.append({"role": "assistant", "content": None, "tool_calls": calls})
    said += [
        {"role": "tool", "tool_call_id": f"c{n}", "content": text}
        for n, text in enumerate(arguments.values())
    ]
    said.append({"role": "user", "content": [*_parts()]})
    said.append({"role": "assistant", "content": "", "refusal": TEXTS[0], "reasoning": TEXTS[1]})
    said.append({"role": "user", "content": "a megabyte: " + "<b>x</b> " * (MEGABYTE // 9)})
    said.append({"role": "assistant", "content": f"```{TEXTS[0]}\n{TEXTS[1]}\n```\nThe end"})
    return said


def _parts() -> list[dict[str, Any]]:
    texts = [{"type": "text", "text": text} for text in TEXTS[:4]]
    pictures = [
        {"type": "image_url", "image_url": {"url": url}}
        for url in (
            "https://elsewhere.example/pixel.png",
            "javascript:window.hurt=1",
            "data:text/html;base64,PHNjcmlwdD4x",
            "data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9ImFsZXJ0KDEpIi8+",
            "data:image/png;base64,AAAA",
        )
    ]
    return [*texts, *pictures, {"type": "unheard_of", "of": names_of(TEXTS[:4])}]


async def guard(console: Console) -> None:
    """Notice what happens in the page from now on; before anything is opened."""
    await console.page.add_init_script(_WATCH)


async def harm(console: Console) -> list[str]:
    """What has happened that must not: scripts that ran, requests to elsewhere, a page that is
    wider than the window or does not answer."""
    page = console.page
    seen = await page.evaluate("""() => ({
      hurt: window.hurt, broken: window.broken, title: document.title,
      wide: document.documentElement.scrollWidth > innerWidth,
      links: [...document.querySelectorAll("a[href]")].map((one) => one.href),
      foreign: [...document.querySelectorAll("iframe, object, embed, script:not([src^=console])")]
        .map((one) => one.outerHTML.slice(0, 100)),
    })""")
    found = [f"broke the policy: {one}" for one in seen["broken"]]
    found += [f"an element: {one}" for one in seen["foreign"]]
    found += [f"asked for {url[:80]}" for url in console.asked if not _is_ours(console, url)]
    found += [f"a link to {url[:80]}" for url in seen["links"] if not url.startswith("http")]
    if seen["hurt"] is not None:
        found.append("a script ran")
    if seen["wide"]:
        found.append("wider than the window")
    if len(page.context.pages) > 1:
        found.append("another page was opened")
    return found


def _is_ours(console: Console, url: str) -> bool:
    return url.startswith((f"{console.proxy.url}/", "data:", "blob:"))
