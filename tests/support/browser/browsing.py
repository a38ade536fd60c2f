"""A real browser on the console of a real proxy: the system's Chromium, driven by Playwright."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.support.client import client_of
from tests.support.processes.node import FOLDER, missing, node_with_packages
from tests.support.processes.program import ROOT
from tests.support.processes.running import Running
from tests.support.upstream.scripted import ScriptedUpstream
from tests.support.waiting import PATIENCE

try:
    from playwright.async_api import (
        Browser,
        Locator,
        Page,
        Playwright,
        Request,
        Route,
        async_playwright,
        expect,
    )
except ImportError:  # said by `program` below
    Browser = Locator = Page = Playwright = Request = Route = None  # type: ignore[assignment,misc]
    async_playwright = expect = None  # type: ignore[assignment]

__all__ = [
    "Browser",
    "Console",
    "Locator",
    "Look",
    "Page",
    "Request",
    "Route",
    "SparePages",
    "chromium",
    "console",
    "expect",
    "own_page",
]

NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
"""The first of them needs least: it is Chromium without windows of its own."""

FLAGS = (
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""Not ``--disable-gpu``: with it Chromium 156 may stop drawing a page that is scrolled."""

SCREENS = ROOT / "build" / "screens"
"""Where tests put the pictures that they make."""

DESKTOP, PHONE = (1440, 900), (390, 844)
ADMIN = "sk-admin-of-the-console"

_AXE = FOLDER / "node_modules" / "axe-core" / "axe.min.js"
_REFUSED = re.compile(r"Failed to load resource: the server responded with a status of 4\d\d")


def program() -> str:
    """The browser's path.  Skips where there is none, or no Playwright; fails in CI."""
    if async_playwright is None:
        missing("no browser tests: playwright is not installed")
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    return found or missing("no browser tests: Chromium is not on PATH")


@asynccontextmanager
async def chromium(*flags: str) -> AsyncIterator[Browser]:
    """The browser, for as long as the block runs; ``flags`` beside those of all."""
    path = program()
    expect.set_options(timeout=PATIENCE * 1000)
    playing: Playwright
    async with async_playwright() as playing:
        browser = await playing.chromium.launch(executable_path=path, args=[*FLAGS, *flags])
        yield browser
        await browser.close()


@dataclass
class Look:
    """How a visitor's browser is set up.

    ``own``: a page that nobody had before, for those who look at how it is loaded, change it, or
    have its requests answered by somebody else.
    """

    size: tuple[int, int] = DESKTOP
    locale: str = "en-GB"
    zone: str | None = None
    dark: bool = False
    forced_colors: bool = False
    own: bool = False


@dataclass
class Console:
    """A page of the console, and a client of the same tenant beside it.

    ``complaints`` is what the browser has said on its console: scripts that failed, violations of
    the policy.  Refusals by the API (4xx) are none.
    """

    page: Page
    proxy: Running
    up: ScriptedUpstream
    client: httpx.AsyncClient
    key: str
    complaints: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    """The addresses of all requests of the page."""

    loaded: bool = False
    """The page stands at the sign-in already."""

    @property
    def address(self) -> str:
        return f"{self.proxy.url}/memory/"

    async def open(self, path: str = "") -> None:
        """Load the page, if it is not there already; nobody is signed in then."""
        if self.loaded:
            self.loaded = False
            await self.go(path)
        else:
            await self.page.goto(self.address + path)

    async def sign_in(self, path: str = "#/sessions", key: str | None = None) -> None:
        await self.open(path)
        await (
            self.page.get_by_label("API key")
            .or_(self.page.get_by_label("API 密钥"))
            .fill(key or self.key)
        )
        await self.page.keyboard.press("Enter")
        await self.page.locator(".shell").wait_for()

    async def go(self, path: str) -> None:
        """To another screen, without loading the page again."""
        await self.page.evaluate("path => { location.hash = path }", path)

    async def seed(self, session: str, *texts: str, user: str | None = None) -> list[str]:
        """Import messages, user and assistant in turn; their ids."""
        roles = ("user", "assistant")
        said = [{"role": roles[n % 2], "content": text} for n, text in enumerate(texts)]
        body = {"messages": said, **({"user": user} if user else {})}
        answer = await self.client.post(f"/memory/v1/sessions/{session}/messages", json=body)
        assert answer.status_code == 200, answer.text
        return [each["id"] for each in answer.json()["data"]]

    async def chat(self, session: str, text: str, user: str | None = None) -> httpx.Response:
        """A real chat through the proxy, answered by the scripted upstream."""
        headers = {"x-session-id": session, **({"x-user-id": user} if user else {})}
        body = {"model": "scripted-1", "messages": [{"role": "user", "content": text}]}
        answer = await self.client.post("/v1/chat/completions", json=body, headers=headers)
        assert answer.status_code == 200, answer.text
        return answer

    async def shot(self, name: str) -> None:
        """A picture of what is seen, to be looked at."""
        SCREENS.mkdir(parents=True, exist_ok=True)
        await self.page.screenshot(path=SCREENS / f"{name}.png")

    async def violations(self, *rules: str) -> list[str]:
        """What axe-core finds wrong and calls serious or critical, by these rules or by all."""
        node_with_packages()
        if not await self.page.evaluate("'axe' in window"):
            # Through the debugger, which the page's policy does not bind.
            await self.page.evaluate(_AXE.read_text(encoding="utf-8"))
        wanted = {**_ALL, **({"runOnly": {"type": "rule", "values": rules}} if rules else {})}
        found = await self.page.evaluate("wanted => axe.run(document, wanted)", wanted)
        return [_told(each) for each in found["violations"] if each["impact"] in _SERIOUS]


LOOKS_RULES = ("color-contrast", "target-size")
"""What hangs on colours and on the window's size."""

_ALL = {"resultTypes": ["violations"], "rules": {"target-size": {"enabled": True}}}
"""With the rule of WCAG 2.2 on how large a target is, which axe-core leaves out by itself."""

_SERIOUS = ("serious", "critical")


def _told(violation: dict[str, Any]) -> str:
    nodes: Sequence[dict[str, Any]] = violation["nodes"]
    return f"{violation['id']}: {violation['help']}: {json.dumps([n['html'] for n in nodes[:3]])}"


async def new_page(browser: Browser, look: Look) -> Page:
    """In a browser of its own, without anything kept from others."""
    width, height = look.size
    context = await browser.new_context(
        viewport={"width": width, "height": height},
        locale=look.locale,
        timezone_id=look.zone,
        color_scheme="dark" if look.dark else "light",
        forced_colors="active" if look.forced_colors else "none",
        accept_downloads=True,
    )
    context.set_default_timeout(PATIENCE * 1000)
    return await context.new_page()


@asynccontextmanager
async def own_page(browser: Browser, look: Look) -> AsyncIterator[Page]:
    page = await new_page(browser, look)
    try:
        yield page
    finally:
        await page.context.close()


class SparePages:
    """Pages that somebody has signed out of: to load the console is what takes the most time."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._free: dict[str, Page] = {}

    @asynccontextmanager
    async def at(self, address: str) -> AsyncIterator[Page]:
        """A page at the sign-in.  Afterwards it is spared, if it can be brought there again."""
        page = self._free.pop(address, None) or await self._loaded(address)
        clean = False
        try:
            yield page
            clean = await _signed_out(page, address)
        finally:
            if clean:
                self._free[address] = page
            else:
                await page.context.close()

    async def _loaded(self, address: str) -> Page:
        page = await new_page(self._browser, Look())
        await page.goto(address)
        await page.locator("input[name=key]").wait_for()
        return page


async def _signed_out(page: Page, address: str) -> bool:
    """Is the page as if it had just been loaded?"""
    width, height = DESKTOP
    if page.viewport_size != {"width": width, "height": height}:
        return False
    if not page.url.startswith(address):
        return False
    return bool(await page.evaluate(_SIGN_OUT))


_SIGN_OUT = """async () => {
  const drawn = () => new Promise((done) => setTimeout(done));
  document.querySelector(".top-end > .menu:last-child > button")?.click();
  await drawn();
  [...document.querySelectorAll(".top-end .menu-item")].at(-1)?.click();
  await drawn();
  history.replaceState(null, "", location.pathname);
  scrollTo(0, 0);
  const key = document.querySelector("input[name=key]");
  key?.focus();
  return key?.value === "" && !document.querySelector("dialog, .toast, .shell");
}"""


@asynccontextmanager
async def console(
    page: Page, proxy: Running, up: ScriptedUpstream, key: str, loaded: bool = False
) -> AsyncIterator[Console]:
    """``loaded``: the page stands at the sign-in already."""
    async with client_of(proxy.url, {"authorization": f"Bearer {key}"}) as client:
        one = Console(page, proxy, up, client, key, loaded=loaded)
        with _listening(one):
            yield one


@contextmanager
def _listening(one: Console) -> Iterator[None]:
    heard: dict[Any, Any] = {
        "console": lambda said: _heed(one, said.type, said.text),
        "pageerror": lambda error: one.complaints.append(str(error)),
        "request": lambda request: one.asked.append(request.url),
    }
    for event, hear in heard.items():
        one.page.on(event, hear)
    yield
    for event, hear in heard.items():
        one.page.remove_listener(event, hear)


def _heed(one: Console, kind: str, text: str) -> None:
    if kind in ("error", "warning") and not _REFUSED.match(text):
        one.complaints.append(text)
